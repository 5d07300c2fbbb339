//! haft put into the settings of a client, and taken out: the rest of the file stays as it is, to the byte.

use std::path::{Path, PathBuf};

use haft::text::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::clients::jsonc::{self, Wrong};
use crate::clients::settings_file::SettingsFile;
use crate::clients::{Client, Format, Launch, Level, SERVER, toml_text};
use crate::plain_file;
use crate::problem::{Place, Problem};
use crate::site::Site;

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
}

impl Edit {
    /// Whether anything is different.
    pub fn changes(&self) -> bool {
        self.before != self.after
    }
}

/// What haft remembers of an install.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    v: u32,
    file: PathBuf,
    /// Whether the file existed before.
    existed: bool,
    /// SHA-256 of what haft wrote.
    after: String,
}

/// Largest record.
const MAX_RECORD: u64 = 64 * 1024;

/// Largest backup.
const MAX_BACKUP: u64 = 64 * 1024 * 1024;

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
    let file = SettingsFile::locate(client, level, site)?;
    let _lock = (!dry_run).then(|| file.lock()).transpose()?;
    let before = file.read()?;
    let text = before.clone().unwrap_or_default();
    let after = put(client, &text, launch).map_err(|wrong| refuse(client, &file, &text, wrong))?;
    let mut edit = Edit {
        file: file.path.clone(),
        before,
        after: Some(after.clone()),
        backup: None,
    };
    if dry_run || !edit.changes() {
        return Ok(edit);
    }
    let original_copy = Original::of(site, &file.path);
    let is_first = !is_installed(client, &text) || original_copy.load()?.is_none();
    if is_first {
        site.home.create()?;
        original_copy.save_text(edit.before.as_deref())?;
    }
    let existed = original_copy.text()?.is_some();
    file.write(&after)?;
    original_copy.save_record(&Record {
        v: 1,
        file: file.path.clone(),
        existed,
        after: digest(&after),
    })?;
    edit.backup = existed.then(|| original_copy.before.clone());
    Ok(edit)
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
    let file = SettingsFile::locate(client, level, site)?;
    let mut edit = Edit {
        file: file.path.clone(),
        before: file.read()?,
        after: None,
        backup: None,
    };
    if edit.before.is_none() {
        return Ok(edit);
    }
    let _lock = (!dry_run).then(|| file.lock()).transpose()?;
    edit.before = file.read()?;
    let Some(text) = edit.before.as_deref() else {
        return Ok(edit);
    };
    let original_copy = Original::of(site, &file.path);
    let record = original_copy.load()?;
    let original = original_copy.text()?;
    edit.after = match &record {
        Some(record) if record.after == digest(text) && record.existed => original,
        Some(record) if record.after == digest(text) => None,
        _ => {
            let parent_is_ours = record.is_some()
                && original.as_deref().is_none_or(|text| {
                    client.format == Format::Json && !jsonc::has(text, client.servers)
                });
            let taken = take(client, text, parent_is_ours);
            let taken = taken.map_err(|wrong| refuse(client, &file, text, wrong))?;
            Some(taken.unwrap_or_else(|| text.to_owned()))
        }
    };
    if dry_run || !edit.changes() {
        return Ok(edit);
    }
    match &edit.after {
        Some(text) => file.write(text)?,
        None => file.remove()?,
    }
    original_copy.forget();
    Ok(edit)
}

/// The backup of a settings file and the record of the install, in the state folder.
struct Original {
    before: PathBuf,
    record: PathBuf,
}

impl Original {
    fn of(site: &Site, file: &Path) -> Self {
        let name = digest(&file.to_string_lossy());
        let folder = site.home.join("clients");
        Self {
            before: folder.join(format!("{}.before", &name[..16])),
            record: folder.join(format!("{}.json", &name[..16])),
        }
    }

    fn load(&self) -> Result<Option<Record>, Problem> {
        match plain_file::read(&self.record, MAX_RECORD) {
            // A damaged record is as good as none: haft's entry is then removed by itself.
            Ok(text) => Ok(serde_json::from_str(&text).ok()),
            Err(e) if is_missing(&e) => Ok(None),
            Err(e) => Err(failed("read", &self.record, &e)),
        }
    }

    fn text(&self) -> Result<Option<String>, Problem> {
        match plain_file::read(&self.before, MAX_BACKUP) {
            Ok(text) => Ok(Some(text)),
            Err(e) if is_missing(&e) => Ok(None),
            Err(e) => Err(failed("read", &self.before, &e)),
        }
    }

    fn save_text(&self, text: Option<&str>) -> Result<(), Problem> {
        let folder = self.before.parent().unwrap_or(Path::new("."));
        plain_file::private_folder(folder).map_err(|e| failed("make", folder, &e))?;
        if let Some(text) = text {
            return plain_file::write_private(&self.before, text)
                .map_err(|e| failed("write", &self.before, &e));
        }
        // One of an earlier install may be there.
        let _ = std::fs::remove_file(&self.before);
        Ok(())
    }

    fn save_record(&self, record: &Record) -> Result<(), Problem> {
        let text = serde_json::to_string(record)
            .map_err(|e| Problem::failed(format!("write the record of an install: {e}")))?;
        plain_file::write_private(&self.record, &text)
            .map_err(|e| failed("write", &self.record, &e))
    }

    fn forget(&self) {
        for file in [&self.before, &self.record] {
            if let Err(error) = std::fs::remove_file(file) {
                tracing::debug!(%error, file = %file.display(), "remove a backup");
            }
        }
    }
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

fn is_installed(client: &Client, text: &str) -> bool {
    matches!(take(client, text, false), Ok(Some(_)))
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

fn is_missing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Problem {
    Problem::failed(format!("{what} the backup of a client's settings: {error}"))
        .at(Place::file(path))
}

fn digest(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}
