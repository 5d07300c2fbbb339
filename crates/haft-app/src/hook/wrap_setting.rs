//! `hook.wrap` in the user's settings: haft writes it where the jail is full and an agent lets a hook change its calls, and takes it out again.
//!
//! It is the user's setting, whichever file has the hook: the hooks of a project are shared with others, whose machines may have no jail.

use std::path::PathBuf;

use haft_sandbox::Places;
use haft_setup::clients::settings_file::{EditableFile, FileTexts};
use haft_setup::edit::EditError;
use haft_setup::edit::toml as toml_edit;
use haft_setup::hook_settings::InstallEdit;
use toml::{Table, Value};

use crate::config::layer::SettingsLayer;
use crate::config::{Settings, document, user_file};
use crate::problem::Problem;
use crate::site::Site;
use crate::view::health;

/// The line that haft writes, and by which it knows its own again: one that a user wrote or changed is different.
const LINE: &str = "wrap = \"jail\" # by haft hook install; haft hook uninstall removes this line";
/// The header of its table.
const HEADER: &str = "[hook]";

/// What becomes of `hook.wrap`.
#[derive(Debug, Clone)]
pub enum WrapSetting {
    /// haft writes `jail` into this file, or has written it.
    Written(InstallEdit),
    /// The settings say `jail` already, here.
    Jail(String),
    /// The settings say something else, which is the user's own choice.
    Other {
        /// The value.
        value: String,
        /// Where it is set.
        place: String,
    },
    /// The jail is not full on this machine, for this reason.
    NoJail(String),
}

impl WrapSetting {
    /// Returns whether commands of an agent that lets its calls be changed run in the jail.
    pub fn is_jail(&self) -> bool {
        matches!(self, Self::Written(_) | Self::Jail(_))
    }

    /// Returns the edit of the user's settings, if there is one.
    pub fn edit(&self) -> Option<&InstallEdit> {
        match self {
            Self::Written(edit) => Some(edit),
            Self::Jail(_) | Self::Other { .. } | Self::NoJail(_) => None,
        }
    }
}

/// Has agents' commands run in the jail, unless the settings say how they run or the jail is not full here. `dry_run` writes nothing.
///
/// # Errors
/// The user's settings cannot be read, edited or written.
pub async fn wrap(
    site: &Site,
    settings: &Settings,
    places: Places,
    dry_run: bool,
) -> Result<WrapSetting, Problem> {
    let entry = settings.entry(&["hook", "wrap"]);
    if let Some(entry) = entry.filter(|entry| entry.layer() != SettingsLayer::BuiltIn) {
        let source = entry
            .sources
            .iter()
            .rev()
            .find_map(|one| one.place.as_ref());
        let place = source.map_or_else(|| entry.layer().to_string(), ToString::to_string);
        let value = entry.value.as_str().unwrap_or_default();
        return Ok(match value {
            "jail" => WrapSetting::Jail(place),
            value => WrapSetting::Other {
                value: value.to_owned(),
                place,
            },
        });
    }
    if let Some(why) = health::jail_shortfall(settings, places).await? {
        return Ok(WrapSetting::NoJail(why));
    }
    Ok(WrapSetting::Written(rewrite(site, dry_run, put)?))
}

/// Takes the line out of the user's settings that haft wrote; `None` if it is not there, or changed.
///
/// # Errors
/// The user's settings cannot be read, edited or written.
pub fn unwrap(site: &Site, dry_run: bool) -> Result<Option<InstallEdit>, Problem> {
    let edit = rewrite(site, dry_run, take_out)?;
    Ok(edit.changes().then_some(edit))
}

/// Edits the user's settings. A file that holds nothing afterwards is removed.
fn rewrite(
    site: &Site,
    dry_run: bool,
    edit: impl FnOnce(&str) -> Result<String, EditError>,
) -> Result<InstallEdit, Problem> {
    let file = EditableFile::own(&path(site)?, Some(0o600))?;
    let texts = file.rewrite(dry_run, |text| {
        let after = edit(text).map_err(|wrong| {
            let problem = wrong.problem("cannot set hook.wrap", &file.path, text);
            problem.advise("nothing was changed; set hook.wrap in that file by hand")
        })?;
        document::parse(&file.path.display().to_string(), &after)?;
        Ok(after)
    })?;
    let FileTexts { before, after } = texts;
    let is_spent = after.trim().is_empty();
    if is_spent && !dry_run && before.as_ref().is_some_and(|before| *before != after) {
        file.remove(&after)?;
    }
    Ok(InstallEdit {
        file: file.path,
        after: (!is_spent || before.as_ref() == Some(&after)).then_some(after),
        before,
        backup: None,
        replaces: false,
    })
}

fn path(site: &Site) -> Result<PathBuf, Problem> {
    user_file(&site.environment).ok_or_else(|| {
        Problem::failed("there is no home folder for haft's settings: HOME is not set")
            .advise("set HOME to an absolute path")
    })
}

/// Returns the text with the line, below the header of its table or in a table of its own at the end.
fn put(text: &str) -> Result<String, EditError> {
    let mut expected = toml_edit::parse(text)?;
    let hook = expected
        .entry("hook")
        .or_insert_with(|| Value::Table(Table::new()));
    let hook = hook.as_table_mut().ok_or_else(not_a_table)?;
    hook.insert("wrap".to_owned(), Value::String("jail".to_owned()));
    let header = text.split_inclusive('\n').scan(0, |at, line| {
        *at += line.len();
        Some((*at, line))
    });
    let header = header
        .into_iter()
        .find(|(_, line)| line.trim_end() == HEADER);
    let out = if let Some((end, line)) = header {
        let newline = if line.ends_with("\r\n") { "\r\n" } else { "\n" };
        let gap = if line.ends_with('\n') { "" } else { newline };
        let (before, behind) = text.split_at(end);
        format!("{before}{gap}{LINE}{newline}{behind}")
    } else {
        let mut out = text.to_owned();
        toml_edit::append(&mut out, &format!("{HEADER}\n{LINE}\n"));
        out
    };
    checked(out, &expected)
}

/// Returns the text without the line, and without a table that held nothing else.
fn take_out(text: &str) -> Result<String, EditError> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some(at) = lines.iter().position(|line| line.trim_end() == LINE) else {
        return Ok(text.to_owned());
    };
    let mut expected = toml_edit::parse(text)?;
    let hook = expected.get_mut("hook").and_then(Value::as_table_mut);
    let hook = hook.ok_or_else(not_a_table)?;
    hook.remove("wrap");
    let is_alone = hook.is_empty();
    let is_end = |line: Option<&&str>| {
        line.is_none_or(|line| line.trim_start().starts_with('[') || line.trim().is_empty())
    };
    let has_header = at > 0 && lines[at - 1].trim_end() == HEADER;
    let mut from = at;
    if is_alone && has_header && is_end(lines.get(at + 1)) {
        expected.remove("hook");
        from -= 1;
        // The blank line that haft put before it.
        if at + 1 == lines.len() && from > 0 && lines[from - 1].trim().is_empty() {
            from -= 1;
        }
    }
    let out: String = [&lines[..from], &lines[at + 1..]].concat().concat();
    checked(out, &expected)
}

/// Fails unless the edited text says exactly what it should.
fn checked(out: String, expected: &Table) -> Result<String, EditError> {
    match toml_edit::parse(&out) {
        // A `nan`, which never equals itself, is written the same.
        Ok(now) if now == *expected || now.to_string() == expected.to_string() => Ok(out),
        _ => Err(not_a_table()),
    }
}

fn not_a_table() -> EditError {
    EditError::new(
        "`hook` is not written as a table with a header, `[hook]`, so it cannot be edited",
    )
}

#[cfg(test)]
mod tests {
    use super::{LINE, put, take_out};

    #[test]
    fn the_line_is_put_in_and_taken_out_and_the_rest_stays() {
        for text in [
            "",
            "# mine\n",
            "[policy]\nallow = [\"Read\"]\n",
            "[policy]\nprofile = \"workspace\"",
            "[hook]\nask = \"haft\" # mine\n\n[policy]\n",
            "[policy]\r\n[hook]\r\nask = \"haft\"\r\n",
            "x = 1\n\n\n",
            "[hook] \nwait_s = 5",
        ] {
            let with = put(text).unwrap();
            assert_eq!(with.matches(LINE).count(), 1, "{with}");
            let again = take_out(&with).unwrap();
            let same = again == text || again.trim_end() == text.trim_end();
            assert!(same, "{text:?}: {again:?}");
            assert_eq!(take_out(text).unwrap(), text);
        }
    }

    #[test]
    fn what_the_user_wrote_stays() {
        for text in [
            "[hook]\nwrap = \"jail\"\n",
            "[hook]\nwrap = \"none\" # by haft hook install; haft hook uninstall removes this line\n",
            "hook.wrap = \"jail\"\n",
        ] {
            assert_eq!(take_out(text).unwrap(), text);
        }
        for text in ["hook = { ask = \"haft\" }\n", "hook.ask = \"haft\"\n"] {
            assert!(put(text).is_err(), "{text}");
        }
        let text = "x = '''\n[hook]\n'''\n";
        assert!(put(text).is_err());
    }
}
