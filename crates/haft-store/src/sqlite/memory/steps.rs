//! Changes of the memory, within one transaction.

use haft::memory::record::digest;
use haft::memory::{
    Asker, Change, Counts, Draft, MAX_CANDIDATES, MAX_RECORDS, MemoryError, MemoryId, Record,
    State, Step, words,
};
use sqlx::SqliteConnection;

use super::super::{nanoseconds, number};
use super::{counts, one, row, store};

/// Expired records swept with each change; more than one change adds.
const SWEPT: i64 = 100;

const SWEEP: &str = "DELETE FROM memory WHERE row IN \
    (SELECT row FROM memory WHERE expires <= ? LIMIT ?)";
/// The same text on the same shelf: of the same state, or, for a candidate, of any.
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

/// Makes the changes; the caller commits.
pub(super) async fn apply(
    connection: &mut SqliteConnection,
    asker: &Asker,
    steps: Vec<Step>,
) -> Result<Vec<Record>, MemoryError> {
    let sweep = sqlx::query(SWEEP).bind(nanoseconds(asker.at)).bind(SWEPT);
    sweep.execute(&mut *connection).await.map_err(store)?;
    let mut records = Vec::new();
    for step in steps {
        records.push(match step {
            Step::Put(draft) => put(connection, asker, &draft).await?,
            Step::Update {
                id,
                revision,
                change,
            } => {
                let old = seen(connection, asker, &id, revision).await?;
                update(connection, asker, old, change).await?
            }
            Step::Delete { id, revision } => {
                let old = seen(connection, asker, &id, revision).await?;
                delete(connection, asker, &id, revision).await?;
                old
            }
        });
    }
    Ok(records)
}

/// The record, if it is at this revision still.
async fn seen(
    connection: &mut SqliteConnection,
    asker: &Asker,
    id: &MemoryId,
    revision: u64,
) -> Result<Record, MemoryError> {
    match one(connection, asker, id).await? {
        None => Err(MemoryError::NotFound(id.clone())),
        Some(record) if record.revision != revision => Err(MemoryError::Changed(id.clone())),
        Some(record) => Ok(record),
    }
}

async fn put(
    connection: &mut SqliteConnection,
    asker: &Asker,
    draft: &Draft,
) -> Result<Record, MemoryError> {
    draft.check()?;
    let digest = digest(&draft.content);
    if draft.path.is_none()
        && let Some(known) = same(connection, asker, draft, &digest).await?
    {
        return Ok(known);
    }
    room(counts(connection, asker).await?, draft.state)?;
    let lives = |ttl: std::time::Duration| {
        let ttl = i128::try_from(ttl.as_nanos()).unwrap_or(i128::MAX);
        nanoseconds(asker.at.saturating_add(ttl))
    };
    let from = &draft.provenance;
    let inserted = sqlx::query(INSERT)
        .bind(&*asker.principal.tenant)
        .bind(&*asker.principal.subject)
        .bind(draft.id.as_str())
        .bind(draft.shelf.scope.as_str())
        .bind(&draft.shelf.key)
        .bind(&draft.path)
        .bind(draft.state.as_str())
        .bind(i64::from(draft.deletes))
        .bind(nanoseconds(asker.at))
        .bind(draft.ttl.map(lives))
        .bind(digest)
        .bind(from.run.as_ref().map(haft::call::RunId::as_str))
        .bind(from.call.as_ref().map(haft::call::CallId::as_str))
        .bind(&from.agent)
        .bind(&from.author)
        .bind(draft.replaces.as_ref().map(|replaced| replaced.id.as_str()))
        .bind(
            draft
                .replaces
                .as_ref()
                .map(|replaced| number(replaced.revision)),
        )
        .bind(row::tags(&draft.tags))
        .bind(&draft.content)
        .execute(&mut *connection)
        .await;
    inserted.map_err(|e| named(e, draft.path.as_deref()))?;
    let record = written(connection, asker, &draft.id).await?;
    index(connection, asker, &record).await?;
    Ok(record)
}

/// The record that says the same on the same shelf.
async fn same(
    connection: &mut SqliteConnection,
    asker: &Asker,
    draft: &Draft,
    digest: &str,
) -> Result<Option<Record>, MemoryError> {
    let id: Option<String> = sqlx::query_scalar(SAME)
        .bind(&*asker.principal.tenant)
        .bind(&*asker.principal.subject)
        .bind(draft.shelf.scope.as_str())
        .bind(&draft.shelf.key)
        .bind(digest)
        .bind(draft.state.as_str())
        .bind(nanoseconds(asker.at))
        .fetch_optional(&mut *connection)
        .await
        .map_err(store)?;
    match id {
        Some(id) => one(connection, asker, &MemoryId::new(id)).await,
        None => Ok(None),
    }
}

/// Whether one more fits.
fn room(counts: Counts, state: State) -> Result<(), MemoryError> {
    let all = counts.candidate + counts.accepted + counts.rejected;
    if all >= MAX_RECORDS {
        return Err(MemoryError::Full("records", MAX_RECORDS));
    }
    if state == State::Candidate && counts.candidate >= MAX_CANDIDATES {
        return Err(MemoryError::Full("candidates", MAX_CANDIDATES));
    }
    Ok(())
}

async fn update(
    connection: &mut SqliteConnection,
    asker: &Asker,
    old: Record,
    change: Change,
) -> Result<Record, MemoryError> {
    let draft = Draft {
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
    let updated = sqlx::query(UPDATE)
        .bind(&draft.content)
        .bind(digest(&draft.content))
        .bind(row::tags(&draft.tags))
        .bind(&draft.path)
        .bind(nanoseconds(asker.at))
        .bind(&change.by)
        .bind(&*asker.principal.tenant)
        .bind(&*asker.principal.subject)
        .bind(draft.id.as_str())
        .bind(number(old.revision))
        .execute(&mut *connection)
        .await;
    let updated = updated.map_err(|e| named(e, draft.path.as_deref()))?;
    if updated.rows_affected() != 1 {
        return Err(MemoryError::Changed(draft.id));
    }
    let record = written(connection, asker, &draft.id).await?;
    index(connection, asker, &record).await?;
    Ok(record)
}

/// Takes a record away; what hangs on it goes with it.
pub(super) async fn delete(
    connection: &mut SqliteConnection,
    asker: &Asker,
    id: &MemoryId,
    revision: u64,
) -> Result<(), MemoryError> {
    let deleted = sqlx::query(DELETE)
        .bind(&*asker.principal.tenant)
        .bind(&*asker.principal.subject)
        .bind(id.as_str())
        .bind(number(revision))
        .execute(connection)
        .await;
    match deleted.map_err(store)?.rows_affected() {
        0 => Err(MemoryError::Changed(id.clone())),
        _ => Ok(()),
    }
}

/// Puts the words of an accepted record into the index, in place of what it had there.
pub(super) async fn index(
    connection: &mut SqliteConnection,
    asker: &Asker,
    record: &Record,
) -> Result<(), MemoryError> {
    if record.state != State::Accepted || record.deletes {
        return Ok(());
    }
    if record.revision > 1 {
        let unindex = sqlx::query(UNINDEX)
            .bind(&*asker.principal.tenant)
            .bind(&*asker.principal.subject)
            .bind(record.id.as_str());
        unindex.execute(&mut *connection).await.map_err(store)?;
    }
    let path = record.path.as_deref().unwrap_or_default();
    let text = format!("{path}\n{}\n{}", record.content, record.tags.join("\n"));
    let index = sqlx::query(INDEX)
        .bind(words::terms(&text).join(" "))
        .bind(&*asker.principal.tenant)
        .bind(&*asker.principal.subject)
        .bind(record.id.as_str());
    index.execute(connection).await.map_err(store)?;
    Ok(())
}

/// The record that was just written.
pub(super) async fn written(
    connection: &mut SqliteConnection,
    asker: &Asker,
    id: &MemoryId,
) -> Result<Record, MemoryError> {
    let record = one(connection, asker, id).await?;
    record.ok_or_else(|| MemoryError::NotFound(id.clone()))
}

/// A name that is taken is no failure of the store's.
pub(super) fn named(error: sqlx::Error, path: Option<&str>) -> MemoryError {
    match (&error, path) {
        (sqlx::Error::Database(e), Some(path)) if e.is_unique_violation() => {
            MemoryError::Exists(path.to_owned())
        }
        _ => store(error),
    }
}
