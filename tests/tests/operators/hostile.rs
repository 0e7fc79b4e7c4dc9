//! A hostile user's obstacles to operators and other users.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use stillpoint_tests::{Failed, strike};

use super::house::{Work, text};

/// Puts every obstacle in place that a user can make, and returns a file that no process may have read.
pub fn be_hostile(work: &Work<'_>, another: &Work<'_>) -> Result<PathBuf, Failed> {
    let secret = work.house.root.join("secret");
    fs::write(
        &secret,
        "{\"name\":\"x\",\"directory\":\"/\",\"launch\":\"x\"}",
    )
    .map_err(text)?;
    fs::set_permissions(&secret, Permissions::from_mode(0o600)).map_err(text)?;
    // The access time is old and the file has changed since, so a read leaves a trace.
    let long_ago = fs::FileTimes::new().set_accessed(std::time::UNIX_EPOCH);
    let file = File::options().write(true).open(&secret).map_err(text)?;
    file.set_times(long_ago).map_err(text)?;
    let registry = work.house.registry(work.user)?;
    let all = Mode::from_bits_truncate(0o666);
    mkfifo(&registry.join("fifo.json"), all).map_err(text)?;
    symlink(&secret, registry.join("link.json")).map_err(text)?;
    symlink("/dev/zero", registry.join("endless.json")).map_err(text)?;
    // One job consists only of a FIFO, and one belongs to another user.
    let trap = work.directory.join("trap");
    fs::create_dir(&trap).map_err(text)?;
    mkfifo(&trap.join("job.json"), all).map_err(text)?;
    let bent = work.directory.join("bent");
    symlink(another.epochs(), &bent).map_err(text)?;
    let own = |path: &Path| {
        let owner = work.house.is_root().then_some(work.user);
        std::os::unix::fs::lchown(path, owner, None).map_err(text)
    };
    for (number, place) in [&trap, &bent].into_iter().enumerate() {
        let entry = serde_json::json!({
            "name": format!("trap-{number}"), "directory": place, "launch": "x",
        });
        let path = registry.join(format!("trap-{number}.json"));
        fs::write(&path, entry.to_string()).map_err(text)?;
        own(&path)?;
        own(place)?;
    }
    strike::signal(strike::coordinator(&work.epochs())?, Signal::SIGSTOP)?;
    let job_json = work.epochs().join("job.json");
    fs::remove_file(&job_json).map_err(text)?;
    let file = File::create(&job_json).map_err(text)?;
    file.set_len(1 << 30).map_err(text)?;
    own(&job_json)?;
    Ok(secret)
}
