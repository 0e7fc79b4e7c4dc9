//! Results that several tests need: a digest, a program's success, a suspended job. One test makes the result, and the others
//! find it in `target/trials/kept`. It is made again when any of its inputs changes. Each test has a process of its own, so a
//! locked file decides which of them makes it.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use crate::{Failed, place};

/// One result, and the sum of all its inputs.
#[derive(Clone, Debug)]
pub struct Kept {
    name: String,
    sum: DefaultHasher,
}

impl Kept {
    /// Names the result. Each name has one.
    pub fn named(name: &str) -> Kept {
        Kept {
            name: name.to_owned(),
            sum: DefaultHasher::new(),
        }
    }

    /// Adds a word to the inputs.
    pub fn on(mut self, word: &str) -> Kept {
        self.sum.write(word.as_bytes());
        self.sum.write_u8(0xff);
        self
    }

    /// Adds a file's bytes to the inputs.
    pub fn on_file(mut self, path: &Path) -> Result<Kept, Failed> {
        let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        self.sum.write_usize(bytes.len());
        self.sum.write(&bytes);
        Ok(self)
    }

    /// Adds a native run of a program to the inputs: its bytes, its libraries, its launcher, the machine.
    pub fn on_program(self, program: &Path) -> Result<Kept, Failed> {
        let libraries = Command::new("ldd").arg(program).output();
        let libraries = libraries.map_err(|error| format!("ldd: {error}"))?;
        let libraries = String::from_utf8_lossy(&libraries.stdout).into_owned();
        let path = std::env::var("PATH").unwrap_or_default();
        let launcher = path
            .split(':')
            .map(|folder| Path::new(folder).join("mpirun"));
        let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = processor
            .lines()
            .find(|line| line.starts_with("model name"));
        let mut kept = self
            .on_file(program)?
            .on(&fs::read_to_string("/proc/version").unwrap_or_default())
            .on(processor.unwrap_or_default())
            .on(&format!("{:?}", thread::available_parallelism().ok()));
        // The addresses in this text differ each time.
        let files = libraries
            .split_whitespace()
            .filter(|word| word.starts_with('/'))
            .map(PathBuf::from);
        for file in files.chain(launcher) {
            if let Ok(about) = fs::metadata(&file) {
                let modified = about.modified().ok();
                kept = kept.on(&format!("{} {} {modified:?}", file.display(), about.len()));
            }
        }
        Ok(kept)
    }

    fn place(&self, what: &str) -> Result<PathBuf, Failed> {
        let folder = place::target().join("trials").join("kept");
        fs::create_dir_all(&folder)
            .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        Ok(folder.join(format!("{}.{what}", self.name)))
    }

    /// Opens the lock of this name.
    fn lock(&self) -> Result<File, Failed> {
        let path = self.place("lock")?;
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path);
        file.map_err(|error| format!("cannot open {}: {error}", path.display()))
    }

    fn is_current(&self) -> Result<bool, Failed> {
        let sum = fs::read_to_string(self.place("sum")?).unwrap_or_default();
        Ok(sum == self.sum.finish().to_string())
    }

    /// Marks the result as complete.
    fn is_made(&self) -> Result<(), Failed> {
        let path = self.place("sum")?;
        fs::write(&path, self.sum.finish().to_string())
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Returns a text, and makes it if need be. A failure is not kept.
    pub fn text(&self, make: impl FnOnce() -> Result<String, Failed>) -> Result<String, Failed> {
        let lock = self.lock()?;
        let failed = |error: std::io::Error| format!("{}: {error}", self.name);
        lock.lock().map_err(failed)?;
        let path = self.place("text")?;
        if self.is_current()? {
            return fs::read_to_string(&path).map_err(failed);
        }
        let text = make()?;
        fs::write(&path, &text).map_err(failed)?;
        self.is_made()?;
        Ok(text)
    }

    /// Gives access to a folder, for copies from it, and makes it if need be. No other test makes it again meanwhile.
    pub fn folder<T>(
        &self,
        make: impl FnOnce(&Path) -> Result<(), Failed>,
        copy: impl FnOnce(&Path) -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        let lock = self.lock()?;
        let failed = |error: std::io::Error| format!("{}: {error}", self.name);
        let path = self.place("folder")?;
        lock.lock().map_err(failed)?;
        if !self.is_current()? {
            if path.exists() {
                fs::remove_dir_all(&path).map_err(failed)?;
            }
            make(&path)?;
            self.is_made()?;
        }
        // Others may copy at the same time.
        lock.lock_shared().map_err(failed)?;
        copy(&path)
    }
}
