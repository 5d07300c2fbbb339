//! Rows of the memory table as records, and what of a record goes into a statement.

use haft::call::{CallId, RunId};
use haft::clock;
use haft::memory::{MemoryId, Provenance, Record, Replaced, Revision, Scope, Shelf, State};
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

/// Shelves as the JSON list of `scope:key` that statements compare with; `None` for all.
pub(super) fn shelves(shelves: &[Shelf]) -> Option<String> {
    let names = shelves
        .iter()
        .map(|shelf| format!("{}:{}", shelf.scope.as_str(), shelf.key));
    let names: Vec<String> = names.collect();
    (!names.is_empty()).then(|| serde_json::Value::from(names).to_string())
}

/// Tags as they are kept.
pub(super) fn tags(tags: &[String]) -> String {
    serde_json::Value::from(tags).to_string()
}

pub(super) fn record(row: &SqliteRow) -> Result<Record, sqlx::Error> {
    let text = |column: &str| row.try_get::<String, _>(column);
    let maybe = |column: &str| row.try_get::<Option<String>, _>(column);
    let replaces = match (maybe("replaces")?, row.try_get("replaces_revision")?) {
        (Some(id), Some(revision)) => Some(Replaced {
            id: MemoryId::new(id),
            revision: unsigned(revision),
        }),
        _ => None,
    };
    let scope = Scope::parse(&text("scope")?).ok_or_else(|| wrong("scope"))?;
    let tags = serde_json::from_str(&text("tags")?).map_err(|e| sqlx::Error::Decode(e.into()))?;
    Ok(Record {
        id: MemoryId::new(text("id")?),
        shelf: Shelf {
            scope,
            key: text("key")?,
        },
        path: maybe("path")?,
        content: text("content")?,
        tags,
        state: state(row)?,
        provenance: Provenance {
            run: maybe("run")?.map(RunId::new),
            call: maybe("call")?.map(CallId::new),
            agent: maybe("agent")?,
            author: text("author")?,
        },
        created: time(row.try_get("created")?),
        updated: time(row.try_get("updated")?),
        expires: row.try_get::<Option<i64>, _>("expires")?.map(time),
        revision: unsigned(row.try_get("revision")?),
        replaces,
        deletes: row.try_get::<i64, _>("deletes")? != 0,
        decided_by: maybe("decided_by")?,
    })
}

pub(super) fn revision(row: &SqliteRow, since: &str, by: &str) -> Result<Revision, sqlx::Error> {
    Ok(Revision {
        revision: unsigned(row.try_get("revision")?),
        since: time(row.try_get(since)?),
        state: state(row)?,
        content: row.try_get("content")?,
        by: row.try_get(by)?,
    })
}

fn state(row: &SqliteRow) -> Result<State, sqlx::Error> {
    let all = [State::Candidate, State::Accepted, State::Rejected];
    let word: &str = row.try_get("state")?;
    let state = all.into_iter().find(|state| state.as_str() == word);
    state.ok_or_else(|| wrong("state"))
}

fn time(nanoseconds: i64) -> String {
    clock::rfc3339(nanoseconds.into())
}

fn unsigned(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

fn wrong(column: &str) -> sqlx::Error {
    sqlx::Error::Decode(format!("column {column} holds no word that is known").into())
}
