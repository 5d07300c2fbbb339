//! `FilingQueue`: sends concurrent requests to the server together, in one statement.

use std::collections::HashSet;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::approval::inbox::{ENDED_BYTES, InboxError, Submission};
use haft::clock;
use haft::error::HostFailure;
use parking_lot::MutexGuard;
use sqlx::{PgConnection, PgPool};
use tokio::sync::oneshot;

use super::known;
use crate::inbox::{MAX_PENDING, RETENTION, SWEEP_BYTES, inbox_full, unavailable};
use crate::number::nanoseconds;
use crate::postgres::beat::hold;
use crate::postgres::filing_queue::{FilingState, SubmissionSender};
use crate::postgres::{PostgresServer, is_lost};
use crate::request_draft::RequestDraft;

/// Maximum number of requests per statement.
const MAX_BATCH: usize = 256;

/// Interval between deletions of old requests.
const SWEEP_INTERVAL: Duration = Duration::from_hours(1);

/// The time of the write in microseconds, followed by the notification of the change; a trigger on the table would cost more.
macro_rules! now {
    () => {
        "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    };
}
macro_rules! unless_one_stands {
    () => {
        "ON CONFLICT (fingerprint, run) WHERE stands DO NOTHING \
        RETURNING id, pg_notify('haft_approvals', changed || ' ' || id)"
    };
}

const FILE: &str = concat!(
    "INSERT INTO haft.approvals (tenant, id, run, fingerprint, created, expires, changed, waiter, digest, request) \
    SELECT n.tenant, n.id, n.run, n.fingerprint, n.created, n.expires, ",
    now!(),
    ", $9, n.digest, n.request \
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::text[], $8::text[]) \
    AS n(tenant, id, run, fingerprint, created, expires, digest, request) ",
    unless_one_stands!()
);
const FILE_ONE: &str = concat!(
    "INSERT INTO haft.approvals (tenant, id, run, fingerprint, created, expires, digest, request, waiter, changed) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, ",
    now!(),
    ") ",
    unless_one_stands!()
);
const PENDING: &str = "SELECT count(*) FROM (SELECT 1 FROM haft.approvals \
    WHERE tenant = $1 AND status = 'pending' LIMIT $2) AS p";
const ALIKE: &str = "SELECT id FROM haft.approvals WHERE fingerprint = $1 AND run = $2 AND stands";
const EXPIRE: &str = "UPDATE haft.approvals SET status = 'expired' \
    WHERE id = $1 AND status = 'pending' AND expires <= $2";
const OLD: &str = "DELETE FROM haft.approvals WHERE created < $1 \
    AND status IN ('done', 'denied', 'answered', 'expired', 'withdrawn')";
/// Deletes all but the newest bytes of what ended undecided.
const UNDECIDED: &str = "DELETE FROM haft.approvals WHERE row IN (SELECT row FROM \
    (SELECT row, sum(octet_length(request)) OVER (ORDER BY row DESC) AS newer FROM haft.approvals \
    WHERE status IN ('expired', 'withdrawn') OR status = 'pending' AND expires <= $1) AS ended WHERE newer > $2)";
const GONE: &str =
    "DELETE FROM haft.processes WHERE alive_until < clock_timestamp() - interval '1 day'";

/// Files a request together with those queued beside it.
pub(super) async fn file(
    server: &Arc<PostgresServer>,
    draft: RequestDraft,
) -> Result<Submission, InboxError> {
    let weight = u32::try_from((draft.request.len() >> 10) + 1).unwrap_or(u32::MAX);
    let room = server.filing.room.acquire_many(weight).await;
    let _room = room.map_err(|e| unavailable(HostFailure::of(e)))?;
    let (answer, mut heard) = oneshot::channel();
    let id = draft.id.clone();
    server.lock_waiting().push((draft, answer));
    let at_work = Arc::clone(&server.filing.at_work);
    tokio::select! {
        biased;
        heard = &mut heard => return heard.map_err(|_| task_ended())?,
        // The task that holds the lock takes everything in the queue.
        at_work = at_work.lock_owned() => {
            let batch = server.take();
            if let [(draft, _)] = batch.as_slice() && draft.id == id {
                // Requests that arrive meanwhile wait until this one ends or is dropped.
                file_batch(server, batch).await;
                drop(at_work);
            } else if !batch.is_empty() {
                let server = Arc::clone(server);
                // In a task of its own: this caller may stop waiting while the others go on.
                drop(tokio::spawn(async move {
                    work(&server, batch).await;
                    drop(at_work);
                }));
            }
        }
    }
    heard.await.map_err(|_| task_ended())?
}

fn task_ended() -> InboxError {
    unavailable("its task ended")
}

impl PostgresServer {
    fn lock_waiting(&self) -> MutexGuard<'_, Vec<(RequestDraft, SubmissionSender)>> {
        let waiting = &self.filing.waiting;
        waiting.lock()
    }

    fn lock_desk(&self) -> MutexGuard<'_, FilingState> {
        let desk = &self.filing.desk;
        desk.lock()
    }

    /// Takes up to one statement's worth of queued requests, dropping those whose callers have gone.
    fn take(&self) -> Vec<(RequestDraft, SubmissionSender)> {
        let mut waiting = self.lock_waiting();
        waiting.retain(|(_, answer)| !answer.is_closed());
        let now = waiting.len().min(MAX_BATCH);
        let later = waiting.split_off(now);
        mem::replace(&mut *waiting, later)
    }
}

async fn work(server: &Arc<PostgresServer>, mut batch: Vec<(RequestDraft, SubmissionSender)>) {
    while !batch.is_empty() {
        file_batch(server, batch).await;
        // There may be no other task left to take what remains.
        batch = server.take();
    }
}

async fn file_batch(server: &Arc<PostgresServer>, batch: Vec<(RequestDraft, SubmissionSender)>) {
    let (drafts, answers): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
    let drafts = &drafts;
    let made = server.ask(
        move |pool| async move { insert(server, &pool, drafts).await },
        is_lost,
    );
    match server.to_inbox_result(made.await) {
        Ok(filed) => {
            for (filed, answer) in filed.into_iter().zip(answers) {
                let _ = answer.send(filed);
            }
        }
        Err(error) => {
            for answer in answers {
                let _ = answer.send(Err(error.clone()));
            }
        }
    }
}

/// Writes the requests that are admitted; for the others, returns the error or the identical request that still counts.
async fn insert(
    server: &Arc<PostgresServer>,
    pool: &PgPool,
    drafts: &[RequestDraft],
) -> Result<Vec<Result<Submission, InboxError>>, sqlx::Error> {
    sweep(server, pool).await?;
    server.lock_desk().filed += drafts
        .iter()
        .map(|draft| draft.request.len())
        .sum::<usize>();
    let mut admitted: Vec<bool> = Vec::with_capacity(drafts.len());
    for draft in drafts {
        // Not written yet, so no count includes them.
        let before = drafts.iter().zip(&admitted);
        let before = before.filter(|(other, admitted)| **admitted && other.tenant == draft.tenant);
        let before = i64::try_from(before.count()).unwrap_or(i64::MAX);
        admitted.push(reserve_place(server, pool, &draft.tenant, before).await?);
    }
    let write: Vec<&RequestDraft> = drafts
        .iter()
        .zip(&admitted)
        .filter_map(|(draft, admitted)| admitted.then_some(draft))
        .collect();
    hold(server, pool, write.iter().map(|draft| draft.id.clone())).await?;
    let mut new = insert_batch(server, pool, &write).await?;
    let mut filed = Vec::with_capacity(drafts.len());
    for (draft, admitted) in drafts.iter().zip(admitted) {
        filed.push(if !admitted {
            Err(inbox_full())
        } else if new.remove(&draft.id) {
            Ok(Submission::New)
        } else {
            conflict(server, pool, draft).await?
        });
    }
    Ok(filed)
}

async fn insert_batch(
    server: &Arc<PostgresServer>,
    pool: &PgPool,
    drafts: &[&RequestDraft],
) -> Result<HashSet<String>, sqlx::Error> {
    let me = server.beat.process_name(pool).await?;
    let spare = server.filing.lock().take();
    let mut connection = match spare {
        Some(connection) => connection,
        None => pool.acquire().await?.detach(),
    };
    // On failure or when dropped, the connection is dropped too, with whatever is in progress on it.
    let new = match drafts {
        [] => Vec::new(),
        [draft] => write_one(&mut connection, me, draft).await?,
        drafts => write_all(&mut connection, me, drafts).await?,
    };
    *server.filing.lock() = Some(connection);
    Ok(new.into_iter().collect())
}

async fn write_one(
    connection: &mut PgConnection,
    me: &str,
    draft: &RequestDraft,
) -> Result<Vec<String>, sqlx::Error> {
    let writing = sqlx::query_scalar(FILE_ONE)
        .bind(&draft.tenant)
        .bind(&draft.id)
        .bind(&draft.run)
        .bind(&draft.fingerprint)
        .bind(draft.created)
        .bind(draft.expires)
        .bind(&draft.digest)
        .bind(&draft.request)
        .bind(me);
    writing.fetch_all(connection).await
}

async fn write_all(
    connection: &mut PgConnection,
    me: &str,
    drafts: &[&RequestDraft],
) -> Result<Vec<String>, sqlx::Error> {
    let texts = |of: fn(&RequestDraft) -> &String| -> Vec<&str> {
        drafts.iter().map(|draft| of(draft).as_str()).collect()
    };
    let numbers = |of: fn(&RequestDraft) -> i64| -> Vec<i64> {
        drafts.iter().map(|draft| of(draft)).collect()
    };
    let writing = sqlx::query_scalar(FILE)
        .bind(texts(|draft| &draft.tenant))
        .bind(texts(|draft| &draft.id))
        .bind(texts(|draft| &draft.run))
        .bind(texts(|draft| &draft.fingerprint))
        .bind(numbers(|draft| draft.created))
        .bind(numbers(|draft| draft.expires))
        .bind(texts(|draft| &draft.digest))
        .bind(texts(|draft| &draft.request))
        .bind(me);
    writing.fetch_all(connection).await
}

/// Returns the request that conflicts with a new one, or files the new one if there is none. An expired request does not conflict.
async fn conflict(
    server: &Arc<PostgresServer>,
    pool: &PgPool,
    draft: &RequestDraft,
) -> Result<Result<Submission, InboxError>, sqlx::Error> {
    // Another request may come in between in each round; the number of rounds is limited.
    for _ in 0..8 {
        let query = sqlx::query_scalar(ALIKE).bind(&draft.fingerprint);
        let alike: Option<String> = query.bind(&draft.run).fetch_optional(pool).await?;
        if let Some(alike) = alike {
            let Some(entry) = known(pool, &alike).await? else {
                continue;
            };
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => return Ok(Err(error)),
            };
            if alike == draft.id {
                // Written before the connection broke.
                return Ok(Ok(Submission::New));
            }
            if entry.answers_again() {
                server.beat.release(&draft.id);
                return Ok(Ok(Submission::Existing(Box::new(entry))));
            }
            let expire = sqlx::query(EXPIRE).bind(&alike);
            expire.bind(nanoseconds(clock::now())).execute(pool).await?;
        }
        if !insert_batch(server, pool, &[draft]).await?.is_empty() {
            return Ok(Ok(Submission::New));
        }
    }
    Ok(Err(unavailable(
        "the same call is asked about over and over",
    )))
}

/// Takes one of a tenant's places; counts again each time half of those that were free are used.
async fn reserve_place(
    server: &PostgresServer,
    pool: &PgPool,
    tenant: &str,
    before: i64,
) -> Result<bool, sqlx::Error> {
    if let Some(left) = server
        .lock_desk()
        .left
        .get_mut(tenant)
        .filter(|left| **left > 0)
    {
        *left -= 1;
        return Ok(true);
    }
    let most = i64::from(MAX_PENDING);
    let query = sqlx::query_scalar(PENDING).bind(tenant).bind(most);
    let pending: i64 = query.fetch_one(pool).await?;
    let pending = pending + before;
    if pending >= most {
        return Ok(false);
    }
    let left = &mut server.lock_desk().left;
    if left.len() >= 1024 {
        left.clear();
    }
    left.insert(tenant.to_owned(), (most - pending - 1) / 2);
    Ok(true)
}

/// Deletes old requests when due.
async fn sweep(server: &PostgresServer, pool: &PgPool) -> Result<(), sqlx::Error> {
    let due = {
        let desk = server.lock_desk();
        desk.swept.is_none_or(|at| at.elapsed() >= SWEEP_INTERVAL) || desk.filed >= SWEEP_BYTES
    };
    if !due {
        return Ok(());
    }
    let now = nanoseconds(clock::now());
    sqlx::query(OLD)
        .bind(now.saturating_sub(RETENTION))
        .execute(pool)
        .await?;
    let most = i64::try_from(ENDED_BYTES).unwrap_or(i64::MAX);
    let undecided = sqlx::query(UNDECIDED).bind(now).bind(most);
    undecided.execute(pool).await?;
    sqlx::query(GONE).execute(pool).await?;
    let mut desk = server.lock_desk();
    desk.swept = Some(Instant::now());
    desk.filed = 0;
    Ok(())
}
