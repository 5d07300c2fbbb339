//! haft put into the settings of a client, and taken out: the rest of the file stays as it is, to the byte.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::clients::jsonc::{self, Wrong};
use crate::clients::settings_file::SettingsFile;
use crate::clients::{Client, Format, Launch, Level, SERVER, toml_text};
use crate::problem::{Place, Problem};
use crate::site::Site;

use record::{Original, Record, digest};
use step::Step;

mod record;
mod step;

/// What became of a settings file, or would.
#[derive(Debug, Clone)]
pub struct Edit {
    /// The file.
    pub file: PathBuf,
    /// Its text; `None` where it did not exist.
    pub before: Option<String>,
    /// Its text now; `None` where it was removed.
    pub after: Option<String>,
    /// Where the file is kept as it was before haft came.
    pub backup: Option<PathBuf>,
    /// Whether an entry of haft's name was there that starts something else. It is kept, and put back when haft goes.
    pub replaces: bool,
}

impl Edit {
    /// Whether anything is different.
    pub fn changes(&self) -> bool {
        self.before != self.after
    }
}

/// Takes the steps of an edit, one after the other. A test stops where a process could be killed.
type Hands<'a> = &'a mut dyn FnMut(Step<'_>) -> Result<(), Problem>;

/// Puts haft into the settings of a client; `dry_run` only says what would become of the file.
///
/// # Errors
/// A [`Problem`] where the client has no such file, or the file cannot be read, understood or written.
pub fn install(
    client: &'static Client,
    level: Level,
    site: &Site,
    launch: &Launch,
    dry_run: bool,
) -> Result<Edit, Problem> {
    let target = Target::find(client, level, site)?;
    if dry_run {
        return Ok(target.plan(launch)?.edit);
    }
    site.home.create()?;
    target.install(launch, &mut Step::take)
}

/// Takes haft out of the settings of a client. A file that is as haft wrote it becomes again what it was; in any other haft's
/// entry alone is removed.
///
/// # Errors
/// As for [`install`].
pub fn uninstall(
    client: &'static Client,
    level: Level,
    site: &Site,
    dry_run: bool,
) -> Result<Edit, Problem> {
    let target = Target::find(client, level, site)?;
    if dry_run {
        return target.without();
    }
    if target.file.read()?.is_none() && target.original.load()?.is_none() {
        return Ok(target.unchanged(None));
    }
    site.home.create()?;
    target.uninstall(&mut Step::take)
}

/// What an install does.
struct Plan {
    edit: Edit,
    memory: Option<Memory>,
}

/// What is remembered of it.
struct Memory {
    record: Record,
    before: Before,
}

/// The text to go back to.
enum Before {
    /// The one that is kept already.
    AsItIs,
    /// This text; `None` where there was no file.
    Now(Option<String>),
}

/// What can go wrong on the way to it.
enum Fault {
    Wrong(Wrong),
    Problem(Problem),
}

impl From<Wrong> for Fault {
    fn from(wrong: Wrong) -> Self {
        Self::Wrong(wrong)
    }
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

/// A client's settings file, and what haft remembers of it.
#[derive(Debug)]
struct Target {
    client: &'static Client,
    file: SettingsFile,
    original: Original,
}

impl Target {
    fn find(client: &'static Client, level: Level, site: &Site) -> Result<Self, Problem> {
        let file = SettingsFile::locate(client, level, site)?;
        let original = Original::of(&site.home, &file.path);
        Ok(Self {
            client,
            file,
            original,
        })
    }

    /// Every step leaves what the next install or uninstall understands: what haft is about to write is remembered before it is
    /// written.
    fn install(&self, launch: &Launch, hands: Hands<'_>) -> Result<Edit, Problem> {
        let _own = self.original.lock()?;
        let made = self.file.missing_folders();
        if !made.is_empty() {
            hands(Step::KeepRecord(&self.original, Record::of_folders(&made)))?;
            hands(Step::MakeFolders(&self.file))?;
        }
        let _lock = self.file.lock()?;
        self.file.sweep();
        let Plan { mut edit, memory } = self.plan(launch)?;
        let Some(Memory { record, before }) = memory else {
            return Ok(edit);
        };
        let existed = record.existed;
        if let Before::Now(kept) = before {
            hands(Step::KeepText(&self.original, kept))?;
        }
        hands(Step::KeepRecord(&self.original, record))?;
        self.write(&edit, hands)?;
        edit.backup = existed.then(|| self.original.before.clone());
        Ok(edit)
    }

    fn uninstall(&self, hands: Hands<'_>) -> Result<Edit, Problem> {
        let _own = self.original.lock()?;
        let record = self.original.load()?;
        let made = record.as_ref().map(|record| record.made.clone());
        let made = made.unwrap_or_default();
        // A folder that is gone holds nothing to be locked.
        let lock = self.file.missing_folders().is_empty();
        let _lock = lock.then(|| self.file.lock()).transpose()?;
        self.file.sweep();
        let edit = self.without()?;
        match (&edit.before, &edit.after) {
            (before, after) if before == after && before.is_some() => {}
            (_, Some(_)) => self.write(&edit, hands)?,
            (before, None) => {
                if let Some(before) = before {
                    hands(Step::Remove(&self.file, before))?;
                }
                hands(Step::RemoveFolders(&made))?;
            }
        }
        if record.is_some() {
            hands(Step::Forget(&self.original))?;
        }
        Ok(edit)
    }

    fn write(&self, edit: &Edit, hands: Hands<'_>) -> Result<(), Problem> {
        let draft = self.file.draft_path()?;
        let text = edit.after.as_deref().unwrap_or_default();
        hands(Step::Draft(&self.file, &draft, text))?;
        hands(Step::Rename(&self.file, &draft, edit.before.as_deref()))
    }

    /// What an install does to the file, and what it remembers; nothing is to be remembered where nothing changes.
    fn plan(&self, launch: &Launch) -> Result<Plan, Problem> {
        let before = self.file.read()?;
        let text = before.clone().unwrap_or_default();
        let refuse = |wrong| refuse(self.client, &self.file, &text, wrong);
        let after = put(self.client, &text, launch).map_err(refuse)?;
        let mut edit = self.unchanged(before);
        edit.after = Some(after);
        if !edit.changes() {
            return Ok(Plan { edit, memory: None });
        }
        let entry = entry(self.client, &text).map_err(refuse)?;
        edit.replaces = entry.as_ref().is_some_and(|entry| !entry.is_ours);
        let memory = self.memory(&edit, entry).map_err(|fault| match fault {
            Fault::Wrong(wrong) => refuse(wrong),
            Fault::Problem(problem) => problem,
        })?;
        Ok(Plan {
            edit,
            memory: Some(memory),
        })
    }

    fn memory(&self, edit: &Edit, entry: Option<Entry>) -> Result<Memory, Fault> {
        let text = edit.before.clone().unwrap_or_default();
        let after = digest(edit.after.as_deref().unwrap_or_default());
        let old = self.original.load()?;
        if let Some(old) = old.as_ref().filter(|old| old.wrote(&text))
            && old.fits(self.original.text()?.as_deref())
        {
            let record = Record {
                written: vec![digest(&text), after],
                ..old.clone()
            };
            return Ok(Memory {
                record,
                before: Before::AsItIs,
            });
        }
        let made = old.as_ref().map(|old| old.made.clone());
        let own = old.filter(|_| entry.as_ref().is_some_and(|entry| entry.is_ours));
        // The file was changed since, or haft was not in it: going back means this text without haft.
        let kept = match &entry {
            Some(entry) if entry.is_ours => {
                let taken = without_entry(self.client, &text, own.as_ref())?;
                Some(taken.unwrap_or_else(|| text.clone()))
            }
            _ => edit.before.clone(),
        };
        let has_servers =
            self.client.format == Format::Json && jsonc::has(&text, self.client.servers);
        let record = Record {
            existed: kept.is_some(),
            before: kept.as_deref().map(digest),
            written: vec![after],
            made_servers: own.as_ref().map_or(!has_servers, |own| own.made_servers),
            replaced: match own {
                Some(own) => own.replaced,
                None => entry.filter(|entry| !entry.is_ours).map(|entry| entry.text),
            },
            ..Record::of_folders(&made.unwrap_or_default())
        };
        Ok(Memory {
            record,
            before: Before::Now(kept),
        })
    }

    /// What the file becomes without haft.
    fn without(&self) -> Result<Edit, Problem> {
        let mut edit = self.unchanged(self.file.read()?);
        let Some(text) = edit.before.as_deref() else {
            return Ok(edit);
        };
        let record = self.original.load()?;
        let kept = self.original.text()?;
        let is_own = record
            .as_ref()
            .is_some_and(|record| record.wrote(text) && record.fits(kept.as_deref()));
        if is_own {
            edit.after = kept.filter(|_| record.is_some_and(|record| record.existed));
            return Ok(edit);
        }
        let taken = without_entry(self.client, text, record.as_ref());
        let taken = taken.map_err(|wrong| refuse(self.client, &self.file, text, wrong))?;
        if taken.is_some() {
            edit.after = taken;
        }
        Ok(edit)
    }

    fn unchanged(&self, text: Option<String>) -> Edit {
        Edit {
            file: self.file.path.clone(),
            before: text.clone(),
            after: text,
            backup: None,
            replaces: false,
        }
    }
}

/// What stands at haft's name in a client's settings.
struct Entry {
    /// As the record keeps it: JSON, or a table of TOML.
    text: String,
    /// Whether it starts haft.
    is_ours: bool,
}

fn entry(client: &Client, text: &str) -> Result<Option<Entry>, Wrong> {
    let (value, text) = if client.format == Format::Toml {
        let Some(found) = toml_text::entry(text, client.servers, SERVER)? else {
            return Ok(None);
        };
        found
    } else {
        let Some(value) = jsonc::entry(text, client.servers, SERVER)? else {
            return Ok(None);
        };
        let text = value.to_string();
        (value, text)
    };
    Ok(Some(Entry {
        text,
        is_ours: starts_haft(&value),
    }))
}

/// Whether an entry starts `haft serve`, wherever the program lies and however the client spells it.
fn starts_haft(entry: &Value) -> bool {
    let words = ["command", "args"]
        .into_iter()
        .flat_map(|key| match &entry[key] {
            Value::Array(words) => words.iter().collect(),
            word => vec![word],
        });
    let words: Vec<&str> = words.filter_map(Value::as_str).collect();
    let program = words.first().and_then(|word| Path::new(word).file_name());
    let program = program.and_then(OsStr::to_str).unwrap_or_default();
    program.starts_with(SERVER) && words.get(1) == Some(&"serve")
}

/// The text without haft's entry, and with the one that stood in its place; `None` where haft is not in it. An entry of haft's name
/// that starts something else, and that no record tells of, is not haft's.
fn without_entry(
    client: &Client,
    text: &str,
    record: Option<&Record>,
) -> Result<Option<String>, Wrong> {
    let known = record.filter(|record| !record.written.is_empty());
    let Some(entry) = entry(client, text)? else {
        return Ok(None);
    };
    if known.is_none() && !entry.is_ours {
        return Ok(None);
    }
    let Some(replaced) = known.and_then(|known| known.replaced.as_deref()) else {
        let with_parent = known.is_some_and(|known| known.made_servers);
        return take(client, text, with_parent);
    };
    if !entry.is_ours {
        // The user's own again.
        return Ok(None);
    }
    if client.format == Format::Toml {
        return toml_text::put_table(text, client.servers, SERVER, replaced).map(Some);
    }
    let value = serde_json::from_str(replaced).map_err(|e| Wrong {
        what: format!("the entry that haft replaced cannot be read: {e}"),
        at: 0..0,
    })?;
    jsonc::put(text, client.servers, SERVER, &value).map(Some)
}

fn put(client: &Client, text: &str, launch: &Launch) -> Result<String, Wrong> {
    match client.format {
        Format::Toml => toml_text::put(text, client.servers, SERVER, launch),
        _ => jsonc::put(text, client.servers, SERVER, &(client.entry)(launch)),
    }
}

fn take(client: &Client, text: &str, with_parent: bool) -> Result<Option<String>, Wrong> {
    if client.format == Format::Toml {
        return toml_text::remove(text, client.servers, SERVER);
    }
    let taken = jsonc::remove(text, client.servers, SERVER)?;
    match taken {
        Some(text) if with_parent => jsonc::remove_empty(&text, client.servers).map(Some),
        taken => Ok(taken),
    }
}

fn refuse(client: &Client, file: &SettingsFile, text: &str, wrong: Wrong) -> Problem {
    let source = file.path.display().to_string();
    let place = if wrong.at.is_empty() {
        Place::file(&file.path)
    } else {
        Place::in_text(&source, text, wrong.at)
    };
    Problem::usage(format!("edit the settings of {}: {}", client.name, wrong.what))
        .at(place)
        .advise(format!(
            "nothing was changed; correct the file, or paste the settings yourself: haft mcp snippet {}",
            client.name
        ))
}

#[cfg(test)]
mod tests;
