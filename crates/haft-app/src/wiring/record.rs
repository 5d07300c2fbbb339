//! The log of finished runs: where it lies, which key signs it, and where its checkpoints go, from settings.

use std::path::PathBuf;

use haft_builtins::web::http::Http;

use crate::config::Settings;
use crate::config::typed::RECORD_ON_FAULT;
use crate::notices::Notices;
use crate::problem::Problem;
use crate::record_log::{Anchor, AnchorService, LogPlace, LogSettings, RecordLog};
use crate::site::Site;
use crate::upstream::upstream;
use crate::wiring::stores;

/// Returns the log that the settings ask for; `None` for a temporary state folder, whose records go with it.
pub(crate) fn log(
    at: &Site,
    settings: &Settings,
    notices: &Notices,
) -> Result<Option<RecordLog>, Problem> {
    let (key, anchor) = (key(at, settings)?, anchor(at, settings)?);
    if at.home.is_temporary() {
        return Ok(None);
    }
    let settings = LogSettings {
        place: LogPlace::new(at.home.path(), key, data(at).as_deref()),
        anchor,
        is_index_shared: stores::is_index_shared(settings),
        // The key takes two words; any other word means the strictest.
        is_required: settings.get(RECORD_ON_FAULT) != "continue",
    };
    Ok(Some(RecordLog::new(settings, notices.clone())))
}

/// Returns what of the log lies outside of the state folder: haft's own, which no tool touches.
pub(crate) fn hidden_paths(at: &Site, settings: &Settings) -> Vec<PathBuf> {
    let named = ["record.key", "record.anchor"];
    let named = named.iter().filter_map(|key| path(at, settings.text(key)?));
    data(at).into_iter().chain(named).collect()
}

/// Returns haft's folder in the user's data folder.
fn data(at: &Site) -> Option<PathBuf> {
    let given = at.environment.folder("XDG_DATA_HOME");
    let own = || Some(at.environment.folder("HOME")?.join(".local/share"));
    Some(given.or_else(own)?.join("haft"))
}

fn key(at: &Site, settings: &Settings) -> Result<Option<PathBuf>, Problem> {
    let Some(text) = settings.text("record.key") else {
        return Ok(None);
    };
    let found = path(at, text).ok_or_else(|| not_a_path("record.key", text))?;
    if found.starts_with(at.home.path()) || found.starts_with(&at.workspace) {
        let why = format!("`record.key`: `{text}` lies in the state folder or the workspace");
        let advice =
            "name a file elsewhere: whoever could change the records must not have the key";
        return Err(Problem::settings(why).advise(advice));
    }
    Ok(Some(found))
}

fn anchor(at: &Site, settings: &Settings) -> Result<Option<Anchor>, Problem> {
    let Some(text) = settings.text("record.anchor") else {
        return Ok(None);
    };
    if is_url(text) {
        // The operator named the address, so one in the local network is fine.
        let http = Http::trusted().with_upstream(upstream(settings)?);
        return Ok(Some(Anchor::Url(AnchorService::new(text, http))));
    }
    let found = path(at, text).ok_or_else(|| not_a_path("record.anchor", text))?;
    Ok(Some(Anchor::File(found)))
}

fn is_url(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}

/// Returns the absolute path that a setting names.
fn path(at: &Site, text: &str) -> Option<PathBuf> {
    let path = match text.strip_prefix("~/") {
        Some(rest) => at.environment.folder("HOME")?.join(rest),
        None => PathBuf::from(text),
    };
    path.is_absolute().then_some(path)
}

/// The value of an anchor is not shown where it may be a URL with a secret.
fn not_a_path(key: &str, text: &str) -> Problem {
    let shown = if text.contains("://") {
        "its value"
    } else {
        text
    };
    Problem::settings(format!("`{key}`: `{shown}` is not an absolute path"))
        .advise("write the whole path, or begin it with `~/`")
}
