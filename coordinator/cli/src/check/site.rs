//! The site's settings, and the options that hold for launches from this shell.

use super::{Row, row};
use crate::{definition, site_defaults};
use stillpoint_coordinator::site::Site;

pub fn rows() -> Vec<Row> {
    const FILE: &str = "site's file (/etc/stillpoint.conf)";
    const OPTIONS: &str = "options of run that are set";
    let site = Site::of_this_machine().and_then(|site| {
        let path = site.path.display();
        let applied = site_defaults::apply(definition(), &site);
        applied.map_err(|error| format!("{path}: {error}"))?;
        match site_defaults::unknown_group(&site) {
            Some(group) => Err(format!("{path}: operators: there is no group '{group}'")),
            None => Ok(site),
        }
    });
    match site {
        Ok(site) => {
            let there = !site.path.as_os_str().is_empty();
            let found = match there {
                true => site.path.display().to_string(),
                false => "none: options keep their built-in defaults".to_owned(),
            };
            let set = site_defaults::in_words(&definition(), &site);
            let any = !set.is_empty();
            vec![
                row(FILE, false, there, found),
                row(OPTIONS, false, any, set),
            ]
        }
        // With this error, no launch works.
        Err(error) => vec![row(FILE, true, false, error)],
    }
}
