//! Refuses a state folder that another user can change: that user would decide what is allowed.

use std::fs;
use std::path::Path;

use haft_sandbox::{check_owner, check_owner_of_entry};

use crate::problem::{Problem, SourceLocation};

/// Folders whose files decide what is allowed, who may ask, and what haft starts or edits.
const DECIDING: [&str; 8] = [
    "rules",
    "grants",
    "budgets",
    "hooks",
    "servers",
    "listening",
    "mcp",
    "settings",
];
/// Maximum number of entries of a folder that are looked at; a folder with more is refused.
const MOST: usize = 65_536;

/// Checks the folder, what is above it and what is in it. A folder that is not there yet will be the user's own, so only what is above counts.
///
/// # Errors
/// What another user can change, with the command that mends it.
pub(super) fn check(home: &Path) -> Result<(), Problem> {
    let refuse = |why: String| {
        Problem::settings(format!(
            "the state folder is not safe: {why}; its rules and decisions could be another user's"
        ))
        .at(SourceLocation::file(home))
        .advise(format!(
            "look at what is in it, then `chown -R \"$(id -u)\" {0} && chmod -R go-w {0}`; or name another with --home or HAFT_HOME",
            quoted(home)
        ))
    };
    let Some(real) = home.ancestors().find_map(|path| path.canonicalize().ok()) else {
        return Err(refuse("it cannot be examined".to_owned()));
    };
    check_owner(&real).map_err(|why| refuse(format!("it {why}")))?;
    let home_is_there = home.symlink_metadata().is_ok();
    if !home_is_there {
        return Ok(());
    }
    check_entries(&real).map_err(refuse)?;
    DECIDING
        .iter()
        .map(|name| real.join(name))
        .filter(|folder| folder.is_dir())
        .try_for_each(|folder| check_entries(&folder).map_err(refuse))
}

/// Checks each entry of a folder; of a link, what it leads to as well.
fn check_entries(folder: &Path) -> Result<(), String> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        // The code that needs the folder refuses a file in its place, with a message of its own.
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return Ok(()),
        Err(error) => return Err(format!("{}: {error}", folder.display())),
    };
    for (count, entry) in entries.enumerate() {
        let path = entry
            .map_err(|error| format!("{}: {error}", folder.display()))?
            .path();
        if count == MOST {
            return Err(format!("{} has over {MOST} entries", folder.display()));
        }
        let led_to = path
            .is_symlink()
            .then(|| path.canonicalize().ok())
            .flatten();
        let led_to = led_to.as_deref().map_or(Ok(()), check_owner);
        let found = check_owner_of_entry(&path).and(led_to);
        // Another process of haft may have removed the entry meanwhile.
        if path.symlink_metadata().is_ok() {
            found.map_err(|why| format!("an entry {why}"))?;
        }
    }
    Ok(())
}

/// Returns the path as a shell reads it.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
    use std::path::Path;

    use super::check;

    /// Prepares the state folder below this one.
    type Prepare = fn(&Path);

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn give(path: &Path) {
        chown(path, Some(65_534), None).unwrap();
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "one table")]
    fn a_state_folder_when_others_can_change_it_is_refused() {
        let is_root = rustix::process::geteuid().is_root();
        let rows: [(&str, bool, &str, Prepare); 11] = [
            ("as made", false, "", |_| ()),
            ("not there yet", false, "", |home| {
                fs::remove_dir_all(home).unwrap();
            }),
            ("readable by all", false, "", |home| mode(home, 0o755)),
            ("writable by all", false, "may be changed", |home| {
                mode(home, 0o777);
            }),
            (
                "below a folder that is writable by all",
                false,
                "may be changed",
                |home| {
                    mode(home.parent().unwrap(), 0o777);
                },
            ),
            (
                "not there yet, in such a folder",
                false,
                "may be changed",
                |home| {
                    fs::remove_dir_all(home).unwrap();
                    mode(home.parent().unwrap(), 0o777);
                },
            ),
            (
                "with a database that all can write",
                false,
                "haft.db",
                |home| {
                    mode(&home.join("haft.db"), 0o666);
                },
            ),
            (
                "with a link to a folder that all can write",
                false,
                "may be changed",
                |home| {
                    let other = home.parent().unwrap().join("other");
                    fs::create_dir(&other).unwrap();
                    mode(&other, 0o777);
                    symlink(other, home.join("runs")).unwrap();
                },
            ),
            ("of another user", true, "belongs to another user", give),
            ("with a database of another user", true, "haft.db", |home| {
                give(&home.join("haft.db"));
            }),
            (
                "with a rule of another user",
                true,
                "rules/1.toml",
                |home| give(&home.join("rules/1.toml")),
            ),
        ];
        for (name, needs_root, expect, prepare) in rows {
            if needs_root && !is_root {
                continue;
            }
            let folder = tempfile::tempdir().unwrap();
            let home = folder.path().canonicalize().unwrap().join("state of 'u'");
            fs::create_dir_all(home.join("rules")).unwrap();
            fs::write(home.join("haft.db"), "").unwrap();
            fs::write(home.join("rules/1.toml"), "").unwrap();
            mode(&home, 0o700);
            prepare(&home);
            let found = check(&home);
            match (expect, &found) {
                ("", Ok(())) => {}
                (part, Err(problem)) if !part.is_empty() => {
                    let text = problem.to_string();
                    assert!(text.contains(part), "{name}: {text}");
                }
                _ => panic!("{name}: {found:?}"),
            }
        }
    }
}
