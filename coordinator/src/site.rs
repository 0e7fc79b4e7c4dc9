//! `/etc/stillpoint.conf`: the settings of the machine's operators for all launches.
//!
//! ```toml
//! # Options of `run` and `restart`, as they are written there without the dashes. A user's own option or variable counts instead ...
//! [defaults]
//! interval = "30m"
//! keep = 3
//! on-term = "suspend"
//! operators = "hpc-operators"
//! tier = ["fast=/local/%h,capacity=200GB", "slow=/scratch/checkpoints"]
//!
//! # ... but for these.
//! [fixed]
//! options = ["operators"]
//! ```
//!
//! Users accept these settings by using this build of Stillpoint: their processes are their own. The system, not this file, has to prevent what users must
//! not do.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Value;

/// The path of the file.
const PATH: &str = "/etc/stillpoint.conf";
/// The variable that names another file, to try one out. That file has to be root's too.
const VARIABLE: &str = "STILLPOINT_CONF";
/// The longest file.
const LONGEST: u64 = 1 << 20;

/// The contents of the file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Site {
    /// Options, and their values for launches that set no others.
    #[serde(default)]
    pub defaults: BTreeMap<String, Value>,
    #[serde(default)]
    pub fixed: Fixed,
    #[serde(skip)]
    pub path: PathBuf,
}

/// The settings that users cannot change.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fixed {
    #[serde(default)]
    pub options: Vec<String>,
}

impl Site {
    /// Reads the settings of this machine. Without the file there are none.
    ///
    /// # Errors
    /// A message, if the file cannot be read or understood, or is not root's own.
    pub fn of_this_machine() -> Result<Site, String> {
        let path = std::env::var_os(VARIABLE).map_or_else(|| PATH.into(), PathBuf::from);
        match read(&path) {
            Ok(Some(text)) => Site::parse(&text, path.clone())
                .map_err(|error| format!("{}: {}", path.display(), error.trim())),
            Ok(None) => Ok(Site::default()),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    fn parse(text: &str, path: PathBuf) -> Result<Site, String> {
        let site: Site = toml::from_str(text).map_err(|error| error.to_string())?;
        for (option, value) in &site.defaults {
            if words(value).is_none() {
                return Err(format!(
                    "{option}: the value must be a text, a number, true, false or a list of texts"
                ));
            }
        }
        Ok(Site { path, ..site })
    }

    pub fn is_fixed(&self, option: &str) -> bool {
        self.fixed.options.iter().any(|fixed| fixed == option)
    }

    /// The values of an option, in the form of a command line.
    pub fn values(&self, option: &str) -> Option<Vec<String>> {
        words(self.defaults.get(option)?)
    }
}

fn words(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Integer(number) => Some(vec![number.to_string()]),
        Value::Boolean(flag) => Some(vec![flag.to_string()]),
        Value::Array(values) => {
            let one = |value: &Value| value.as_str().map(str::to_owned);
            values.iter().map(one).collect()
        }
        _ => None,
    }
}

/// The text of a file that has to be root's own; `None`: there is no file.
fn read(path: &Path) -> io::Result<Option<String>> {
    let about = match std::fs::symlink_metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if about.uid() != 0 || about.mode() & 0o022 != 0 {
        return Err(io::Error::other(
            "it is not root's own, or others may write to it: run chown root and chmod go-w on it",
        ));
    }
    let text = stillpoint_directory::read(path, LONGEST)?;
    String::from_utf8(text).map(Some).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_as_on_a_command_line() {
        let text = "[defaults]\ninterval = \"30m\"\nkeep = 3\nlazy = true\ntier = [\"fast=/a\", \"slow=/b\"]\n\
                    [fixed]\noptions = [\"keep\"]\n";
        let site = Site::parse(text, PATH.into()).unwrap();
        let values = |option| site.values(option).unwrap_or_default().join(" ");
        assert_eq!(values("interval"), "30m");
        assert_eq!(values("keep"), "3");
        assert_eq!(values("lazy"), "true");
        assert_eq!(values("tier"), "fast=/a slow=/b");
        assert_eq!(values("compress"), "");
        assert!(site.is_fixed("keep") && !site.is_fixed("interval"));
    }

    #[test]
    fn what_is_misspelt_is_not_passed_over() {
        for text in [
            "[default]\nkeep = 3\n",
            "[defaults]\nkeep = 3.5\n",
            "keep = 3\n",
            "[",
        ] {
            assert!(Site::parse(text, PATH.into()).is_err(), "{text}");
        }
    }
}
