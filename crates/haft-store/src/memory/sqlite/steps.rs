//! Changes of the memory, within one transaction.

use haft::call::{CallId, RunId};
use haft::memory::record::digest;
use haft::memory::{
    MAX_CANDIDATES, MAX_RECORDS, MemoryAccess, MemoryCounts, MemoryDraft, MemoryError, MemoryId,
    MemoryOperation, MemoryRecord, MemoryState, MemoryUpdate, words,
};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{MemoryJobError, counts, one, row};
use crate::number::{nanoseconds, number};
use crate::sqlite::worker::is_taken;

/// Number of expired records swept with each change; more than one change adds.
const SWEEP_BATCH: i64 = 100;

const SWEEP: &str = "DELETE FROM memory WHERE row IN \
    (SELECT row FROM memory WHERE expires <= ? LIMIT ?)";
/// Finds the same text on the same shelf, in the same state or, for a candidate, in any.
const SAME: &str = "SELECT id FROM memory WHERE tenant = ?1 AND subject = ?2 AND scope = ?3 AND key = ?4 \
    AND digest = ?5 AND path IS NULL AND (state = ?6 OR ?6 = 'candidate') \
    AND (expires IS NULL OR expires > ?7) ORDER BY state = 'accepted' DESC, row LIMIT 1";
const INSERT: &str = "INSERT INTO memory (tenant, subject, id, scope, key, path, state, deletes, created, updated, \
    expires, revision, digest, run, call, agent, author, changed_by, replaces, replaces_revision, tags, content) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10, 1, ?11, ?12, ?13, ?14, ?15, ?15, ?16, ?17, ?18, ?19)";
const UPDATE: &str = "UPDATE memory SET content = ?, digest = ?, tags = ?, path = ?, updated = ?, changed_by = ?, \
    revision = revision + 1 WHERE tenant = ? AND subject = ? AND id = ? AND revision = ?";
const DELETE: &str =
    "DELETE FROM memory WHERE tenant = ? AND subject = ? AND id = ? AND revision = ?";
const UNINDEX: &str = "DELETE FROM memory_words WHERE rowid = \
    (SELECT row FROM memory WHERE tenant = ? AND subject = ? AND id = ?)";
const INDEX: &str = "INSERT INTO memory_words (rowid, words) \
    SELECT row, ?1 FROM memory WHERE tenant = ?2 AND subject = ?3 AND id = ?4";

/// Returns roughly how many bytes a change holds in memory.
pub(super) fn bytes(step: &MemoryOperation) -> usize {
    match step {
        MemoryOperation::Put(draft) => draft.content.len(),
        MemoryOperation::Update { change, .. } => change.content.as_ref().map_or(0, String::len),
        MemoryOperation::Delete { .. } => 0,
    }
}

/// Applies the changes; the caller commits.
pub(super) fn apply(
    connection: &Connection,
    asker: &MemoryAccess,
    steps: Vec<MemoryOperation>,
) -> Result<Vec<MemoryRecord>, MemoryJobError> {
    let mut sweep = connection.prepare_cached(SWEEP)?;
    sweep.execute(params![nanoseconds(asker.at), SWEEP_BATCH])?;
    let mut records = Vec::new();
    for step in steps {
        records.push(match step {
            MemoryOperation::Put(draft) => put(connection, asker, &draft)?,
            MemoryOperation::Update {
                id,
                revision,
                change,
            } => {
                let old = at_revision(connection, asker, &id, revision)?;
                update(connection, asker, old, change)?
            }
            MemoryOperation::Delete { id, revision } => {
                let old = at_revision(connection, asker, &id, revision)?;
                delete(connection, asker, &id, revision)?;
                old
            }
        });
    }
    Ok(records)
}

/// Returns the record if it is still at this revision.
fn at_revision(
    connection: &Connection,
    asker: &MemoryAccess,
    id: &MemoryId,
    revision: u64,
) -> Result<MemoryRecord, MemoryJobError> {
    match one(connection, asker, id)? {
        None => Err(MemoryError::NotFound(id.clone()).into()),
        Some(record) if record.revision != revision => Err(MemoryError::Changed(id.clone()).into()),
        Some(record) => Ok(record),
    }
}

fn put(
    connection: &Connection,
    asker: &MemoryAccess,
    draft: &MemoryDraft,
) -> Result<MemoryRecord, MemoryJobError> {
    draft.check()?;
    let digest = digest(&draft.content);
    if draft.path.is_none()
        && let Some(known) = find_same(connection, asker, draft, &digest)?
    {
        return Ok(known);
    }
    room(counts(connection, asker)?, draft.state)?;
    let lives = |ttl: std::time::Duration| {
        let ttl = i128::try_from(ttl.as_nanos()).unwrap_or(i128::MAX);
        nanoseconds(asker.at.saturating_add(ttl))
    };
    let from = &draft.provenance;
    let replaced = draft.replaces.as_ref();
    let inserted = connection.prepare_cached(INSERT)?.execute(params![
        &*asker.principal.tenant,
        &*asker.principal.subject,
        draft.id.as_str(),
        draft.shelf.scope.as_str(),
        draft.shelf.key,
        draft.path,
        draft.state.as_str(),
        i64::from(draft.deletes),
        nanoseconds(asker.at),
        draft.ttl.map(lives),
        digest,
        from.run.as_ref().map(RunId::as_str),
        from.call.as_ref().map(CallId::as_str),
        from.agent,
        from.author,
        replaced.map(|replaced| replaced.id.as_str()),
        replaced.map(|replaced| number(replaced.revision)),
        row::tags(&draft.tags),
        draft.content,
    ]);
    inserted.map_err(|e| named(e, draft.path.as_deref()))?;
    let record = written(connection, asker, &draft.id)?;
    index(connection, asker, &record)?;
    Ok(record)
}

/// Returns the record with the same text on the same shelf.
fn find_same(
    connection: &Connection,
    asker: &MemoryAccess,
    draft: &MemoryDraft,
    digest: &str,
) -> rusqlite::Result<Option<MemoryRecord>> {
    let mut query = connection.prepare_cached(SAME)?;
    let values = params![
        &*asker.principal.tenant,
        &*asker.principal.subject,
        draft.shelf.scope.as_str(),
        draft.shelf.key,
        digest,
        draft.state.as_str(),
        nanoseconds(asker.at),
    ];
    let id: Option<String> = query.query_row(values, |row| row.get(0)).optional()?;
    match id {
        Some(id) => one(connection, asker, &MemoryId::new(id)),
        None => Ok(None),
    }
}

/// Returns an error if there is no room for one more record.
fn room(counts: MemoryCounts, state: MemoryState) -> Result<(), MemoryError> {
    let all = counts.candidate + counts.accepted + counts.rejected;
    if all >= MAX_RECORDS {
        return Err(MemoryError::Full("records", MAX_RECORDS));
    }
    if state == MemoryState::Candidate && counts.candidate >= MAX_CANDIDATES {
        return Err(MemoryError::Full("candidates", MAX_CANDIDATES));
    }
    Ok(())
}

fn update(
    connection: &Connection,
    asker: &MemoryAccess,
    old: MemoryRecord,
    change: MemoryUpdate,
) -> Result<MemoryRecord, MemoryJobError> {
    let draft = MemoryDraft {
        content: change.content.unwrap_or(old.content),
        tags: change.tags.unwrap_or(old.tags),
        path: change.path.or(old.path),
        id: old.id,
        shelf: old.shelf,
        provenance: old.provenance,
        state: old.state,
        ttl: None,
        replaces: old.replaces,
        deletes: old.deletes,
    };
    draft.check()?;
    let updated = connection.prepare_cached(UPDATE)?.execute(params![
        draft.content,
        digest(&draft.content),
        row::tags(&draft.tags),
        draft.path,
        nanoseconds(asker.at),
        change.by,
        &*asker.principal.tenant,
        &*asker.principal.subject,
        draft.id.as_str(),
        number(old.revision),
    ]);
    let updated = updated.map_err(|e| named(e, draft.path.as_deref()))?;
    if updated != 1 {
        return Err(MemoryError::Changed(draft.id).into());
    }
    let record = written(connection, asker, &draft.id)?;
    index(connection, asker, &record)?;
    Ok(record)
}

/// Deletes a record together with what depends on it.
pub(super) fn delete(
    connection: &Connection,
    asker: &MemoryAccess,
    id: &MemoryId,
    revision: u64,
) -> Result<(), MemoryJobError> {
    let deleted = connection.prepare_cached(DELETE)?.execute(params![
        &*asker.principal.tenant,
        &*asker.principal.subject,
        id.as_str(),
        number(revision),
    ])?;
    match deleted {
        0 => Err(MemoryError::Changed(id.clone()).into()),
        _ => Ok(()),
    }
}

/// Indexes the words of an accepted record, replacing its previous ones.
pub(super) fn index(
    connection: &Connection,
    asker: &MemoryAccess,
    record: &MemoryRecord,
) -> rusqlite::Result<()> {
    if record.state != MemoryState::Accepted || record.deletes {
        return Ok(());
    }
    let (tenant, subject) = (&*asker.principal.tenant, &*asker.principal.subject);
    if record.revision > 1 {
        let mut unindex = connection.prepare_cached(UNINDEX)?;
        unindex.execute([tenant, subject, record.id.as_str()])?;
    }
    let path = record.path.as_deref().unwrap_or_default();
    let text = format!("{path}\n{}\n{}", record.content, record.tags.join("\n"));
    let words = words::terms(&text).join(" ");
    let mut index = connection.prepare_cached(INDEX)?;
    index.execute([words.as_str(), tenant, subject, record.id.as_str()])?;
    Ok(())
}

/// Returns the record that was just written.
pub(super) fn written(
    connection: &Connection,
    asker: &MemoryAccess,
    id: &MemoryId,
) -> Result<MemoryRecord, MemoryJobError> {
    let record = one(connection, asker, id)?;
    Ok(record.ok_or_else(|| MemoryError::NotFound(id.clone()))?)
}

/// Maps a name that is already taken to its own error instead of a store failure.
pub(super) fn named(error: rusqlite::Error, path: Option<&str>) -> MemoryJobError {
    match path {
        Some(path) if is_taken(&error) => MemoryError::Exists(path.to_owned()).into(),
        _ => error.into(),
    }
}
