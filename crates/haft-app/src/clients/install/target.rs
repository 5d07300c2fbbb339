//! A settings file that haft puts something into: edited in place so that a kill at any moment leaves what the next edit understands,
//! and brought back to its bytes where nothing else changed it.

use std::fmt;
use std::path::PathBuf;

use crate::clients::install::record::{Original, Record, digest};
use crate::clients::install::step::Step;
use crate::clients::jsonc::Wrong;
use crate::clients::settings_file::SettingsFile;
use crate::home::Home;
use crate::problem::{Place, Problem};

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

/// What haft puts into a settings file, as it is found there again.
pub(crate) trait Content: fmt::Debug {
    /// Whose file it is.
    fn owner(&self) -> &'static str;

    /// What to do where the file cannot be edited.
    fn by_hand(&self) -> String;

    /// What of it, or in its place, stands in a text.
    fn entry(&self, text: &str) -> Result<Option<Entry>, Wrong>;

    /// Whether a text has what is made around it where it is missing.
    fn has_parent(&self, text: &str) -> bool;

    /// The text without it, and with what stood in its place; `None` where it is not in the text.
    fn without(&self, text: &str, record: Option<&Record>) -> Result<Option<String>, Wrong>;

    /// Whether a text without it is of no use, so that the file goes, too.
    fn is_spent(&self, text: &str) -> bool {
        let _ = text;
        false
    }
}

/// What stands in haft's place in settings.
pub(crate) struct Entry {
    /// As the record keeps it: JSON, or a table of TOML.
    pub(crate) text: String,
    /// Whether it starts haft.
    pub(crate) is_ours: bool,
}

impl Entry {
    /// One of which the record keeps no text: it is known by what it starts.
    pub(crate) fn unrecorded(is_ours: bool) -> Self {
        Self {
            text: String::new(),
            is_ours,
        }
    }
}

/// Puts the content into a text.
pub(crate) type Put<'a> = &'a dyn Fn(&str) -> Result<String, Wrong>;

/// Takes the steps of an edit, one after the other. A test stops where a process could be killed.
pub(crate) type Hands<'a> = &'a mut dyn FnMut(Step<'_>) -> Result<(), Problem>;

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

/// A settings file, what is put into it, and what haft remembers of that.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) content: Box<dyn Content>,
    pub(crate) file: SettingsFile,
    pub(crate) original: Original,
}

impl Target {
    /// Puts the content in; `dry_run` only says what would become of the file.
    pub(crate) fn put_in(&self, home: &Home, put: Put<'_>, dry_run: bool) -> Result<Edit, Problem> {
        if dry_run {
            return Ok(self.plan(put)?.edit);
        }
        home.create()?;
        self.install(put, &mut Step::take)
    }

    /// Takes the content out; `dry_run` only says what would become of the file.
    pub(crate) fn take_out(&self, home: &Home, dry_run: bool) -> Result<Edit, Problem> {
        if dry_run {
            return self.without();
        }
        if self.file.read()?.is_none() && self.original.load()?.is_none() {
            return Ok(self.unchanged(None));
        }
        home.create()?;
        self.uninstall(&mut Step::take)
    }

    /// Every step leaves what the next install or uninstall understands: what haft is about to write is remembered before it is
    /// written.
    pub(crate) fn install(&self, put: Put<'_>, hands: Hands<'_>) -> Result<Edit, Problem> {
        let _own = self.original.lock()?;
        let made = self.file.missing_folders();
        if !made.is_empty() {
            hands(Step::KeepRecord(&self.original, Record::of_folders(&made)))?;
            hands(Step::MakeFolders(&self.file))?;
        }
        let _lock = self.file.lock()?;
        self.file.sweep();
        let Plan { mut edit, memory } = self.plan(put)?;
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

    pub(crate) fn uninstall(&self, hands: Hands<'_>) -> Result<Edit, Problem> {
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
    fn plan(&self, put: Put<'_>) -> Result<Plan, Problem> {
        let before = self.file.read()?;
        let text = before.clone().unwrap_or_default();
        let refuse = |wrong| self.refuse(&text, wrong);
        let after = put(&text).map_err(refuse)?;
        let mut edit = self.unchanged(before);
        edit.after = Some(after);
        if !edit.changes() {
            return Ok(Plan { edit, memory: None });
        }
        let entry = self.content.entry(&text).map_err(refuse)?;
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
                let taken = self.content.without(&text, own.as_ref())?;
                Some(taken.unwrap_or_else(|| text.clone()))
            }
            _ => edit.before.clone(),
        };
        let has_servers = self.content.has_parent(&text);
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
        let taken = self.content.without(text, record.as_ref());
        let taken = taken.map_err(|wrong| self.refuse(text, wrong))?;
        if taken.is_some() {
            edit.after = taken.filter(|rest| !self.content.is_spent(rest));
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

    fn refuse(&self, text: &str, wrong: Wrong) -> Problem {
        let source = self.file.path.display().to_string();
        let place = if wrong.at.is_empty() {
            Place::file(&self.file.path)
        } else {
            Place::in_text(&source, text, wrong.at)
        };
        let owner = self.content.owner();
        Problem::usage(format!("edit the settings of {owner}: {}", wrong.what))
            .at(place)
            .advise(self.content.by_hand())
    }
}
