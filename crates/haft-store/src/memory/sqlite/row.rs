//! Conversion between rows of the memory table and records.

use haft::call::{CallId, RunId};
use haft::clock;
use haft::memory::{
    MemoryId, MemoryRecord, MemoryRevision, MemoryScope, MemoryState, Provenance, ReplacedRecord,
    Shelf,
};
use rusqlite::types::{FromSqlError, Type};
use rusqlite::{Error, Row};

/// Returns shelves as the JSON list of `scope:key` that statements compare with; `None` for all.
pub(super) fn shelves(shelves: &[Shelf]) -> Option<String> {
    let names = shelves
        .iter()
        .map(|shelf| format!("{}:{}", shelf.scope.as_str(), shelf.key));
    let names: Vec<String> = names.collect();
    (!names.is_empty()).then(|| serde_json::Value::from(names).to_string())
}

/// Returns tags as stored.
pub(super) fn tags(tags: &[String]) -> String {
    serde_json::Value::from(tags).to_string()
}

pub(super) fn record(row: &Row<'_>) -> rusqlite::Result<MemoryRecord> {
    let text = |column: &str| row.get::<_, String>(column);
    let maybe = |column: &str| row.get::<_, Option<String>>(column);
    let replaces = match (maybe("replaces")?, row.get("replaces_revision")?) {
        (Some(id), Some(revision)) => Some(ReplacedRecord {
            id: MemoryId::new(id),
            revision: unsigned(revision),
        }),
        _ => None,
    };
    let scope = MemoryScope::parse(&text("scope")?).ok_or_else(|| wrong(row, "scope"))?;
    let tags = serde_json::from_str(&text("tags")?).map_err(|_| wrong(row, "tags"))?;
    Ok(MemoryRecord {
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
        created: time(row.get("created")?),
        updated: time(row.get("updated")?),
        expires: row.get::<_, Option<i64>>("expires")?.map(time),
        revision: unsigned(row.get("revision")?),
        replaces,
        deletes: row.get::<_, i64>("deletes")? != 0,
        decided_by: maybe("decided_by")?,
    })
}

pub(super) fn revision(row: &Row<'_>, since: &str, by: &str) -> rusqlite::Result<MemoryRevision> {
    Ok(MemoryRevision {
        revision: unsigned(row.get("revision")?),
        since: time(row.get(since)?),
        state: state(row)?,
        content: row.get("content")?,
        by: row.get(by)?,
    })
}

fn state(row: &Row<'_>) -> rusqlite::Result<MemoryState> {
    let all = [
        MemoryState::Candidate,
        MemoryState::Accepted,
        MemoryState::Rejected,
    ];
    let word: String = row.get("state")?;
    let state = all.into_iter().find(|state| state.as_str() == word);
    state.ok_or_else(|| wrong(row, "state"))
}

fn time(nanoseconds: i64) -> String {
    clock::rfc3339(nanoseconds.into())
}

fn unsigned(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

/// Returns the error for a column with an unknown value.
fn wrong(row: &Row<'_>, column: &str) -> Error {
    let at = row.as_ref().column_index(column).unwrap_or(0);
    let why = format!("column {column} of the memory holds what this haft does not know");
    Error::FromSqlConversionFailure(at, Type::Text, FromSqlError::Other(why.into()).into())
}
