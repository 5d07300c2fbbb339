//! The names of the views that the settings `views.*` define.

use std::collections::BTreeSet;

use crate::config::Settings;
use crate::problem::Problem;

/// Maximum length of a view's name, in bytes.
const MAX_NAME: usize = 64;

/// Returns the names of the views in the settings.
pub(crate) fn names(settings: &Settings) -> Result<BTreeSet<String>, Problem> {
    let mut names = BTreeSet::new();
    for (path, entry) in settings.iter() {
        let [section, name, _] = path else {
            continue;
        };
        if section != "views" {
            continue;
        }
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(plain) {
            let wrong = Problem::settings(format!("`{name}` cannot be a view's name")).advise(
                format!("use 1 to {MAX_NAME} of letters, digits, `_` and `-`"),
            );
            let place = entry
                .sources
                .first()
                .and_then(|source| source.place.clone());
            return Err(match place {
                Some(place) => wrong.at(place),
                None => wrong,
            });
        }
        names.insert(name.clone());
    }
    Ok(names)
}
