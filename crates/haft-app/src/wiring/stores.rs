//! `Stores`: what outlives the process, in the database that `store.url` names.

use std::path::PathBuf;
use std::sync::Arc;

use haft::approval::inbox::WaitingCalls;
use haft::audit::index::RunIndex;
use haft::journal::Journal;
use haft::journal::dir::DirJournal;
use haft_store::journal::DbJournal;
use haft_store::postgres::PostgresStore;
use haft_store::sqlite::{SqliteInbox, SqliteStore};

use crate::config::Settings;
use crate::problem::Problem;
use crate::site::Site;
use crate::wiring::artifacts;

/// Suffixes of the files that `SQLite` keeps next to a database file.
const SQLITE_SUFFIXES: [&str; 2] = ["-wal", "-shm"];

/// The stores, none of them opened yet.
#[derive(Debug)]
pub(crate) struct Stores {
    /// The index of runs.
    pub(crate) index: Arc<dyn RunIndex>,
    /// The inbox of approval requests, with the calls that wait for them.
    pub(crate) inbox: Arc<dyn WaitingCalls>,
    /// The journal of chains: next to the runs' records, which is fastest, unless a database is named.
    pub(crate) journal: Arc<dyn Journal>,
    /// The agents' memory: always a `SQLite` file, which has the full-text index.
    pub(crate) memory: Arc<SqliteStore>,
}

/// Builds the stores that the settings ask for.
pub(crate) fn stores(at: &Site, settings: &Settings) -> Result<Stores, Problem> {
    let home = at.home.path();
    if let Some(url) = settings.text("store.url").filter(|url| is_postgres(url)) {
        let to_problem = |e: haft_store::StoreError| refused(&e.to_string());
        let store = Arc::new(PostgresStore::new(url).map_err(to_problem)?);
        let journal = DbJournal::postgres(url, home).map_err(to_problem)?;
        return Ok(Stores {
            journal: Arc::new(journal),
            index: Arc::clone(&store) as Arc<dyn RunIndex>,
            inbox: store,
            memory: Arc::new(SqliteStore::new(home)),
        });
    }
    let (store, inbox, journal): (_, _, Arc<dyn Journal>) =
        match (settings.text("store.url"), file(at, settings)) {
            (Some(_), None) => return Err(refused("it names no known database")),
            (_, Some(path)) => {
                let journal = DbJournal::sqlite(path.clone(), home);
                let inbox = SqliteInbox::at(path.clone());
                (SqliteStore::at(path), inbox, Arc::new(journal))
            }
            (None, None) => {
                let journal = DirJournal::new(home);
                (
                    SqliteStore::new(home),
                    SqliteInbox::new(home),
                    Arc::new(journal),
                )
            }
        };
    let store = Arc::new(store);
    Ok(Stores {
        index: Arc::clone(&store) as Arc<dyn RunIndex>,
        inbox: Arc::new(inbox),
        journal,
        memory: store,
    })
}

/// Returns the database files and the artifacts folder that the settings place elsewhere: haft's own, which no tool touches.
pub(crate) fn hidden_paths(at: &Site, settings: &Settings) -> Vec<PathBuf> {
    let artifacts = settings.text("artifacts.url").and_then(artifacts::folder);
    let Some(path) = file(at, settings) else {
        return artifacts.into_iter().collect();
    };
    let beside = SQLITE_SUFFIXES.map(|end| {
        let mut name = path.clone().into_os_string();
        name.push(end);
        PathBuf::from(name)
    });
    std::iter::once(path)
        .chain(beside)
        .chain(artifacts)
        .collect()
}

/// Returns the file that `store.url` names; a relative path is below haft's state folder.
fn file(at: &Site, settings: &Settings) -> Option<PathBuf> {
    let path = settings.text("store.url")?.strip_prefix("sqlite:")?;
    let path = path.strip_prefix("//").unwrap_or(path);
    (!path.is_empty()).then(|| at.home.path().join(path))
}

/// Returns whether processes of other machines may use the same index of runs.
pub(crate) fn is_index_shared(settings: &Settings) -> bool {
    settings.text("store.url").is_some_and(is_postgres)
}

fn is_postgres(url: &str) -> bool {
    ["postgres://", "postgresql://"]
        .iter()
        .any(|scheme| url.starts_with(scheme))
}

/// The value is not shown, since it may contain a password.
fn refused(why: &str) -> Problem {
    Problem::settings(format!("`store.url`: {why}"))
        .advise("write sqlite:PATH or postgres://USER@HOST/DATABASE, or remove it")
}
