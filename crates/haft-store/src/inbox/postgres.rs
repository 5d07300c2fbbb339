//! The waiting calls in `PostgreSQL`: each step of a request is one statement, a compare-and-set against the table of steps that
//! [`transition`](haft::approval::transition::transition) allows.

use haft::approval::inbox::{
    InboxError, RequestEnding, RequestFilter, RequestStatus, StoredApproval, Submission,
    WaitingCalls, WaitingLimits,
};
use haft::approval::listing::{PAGE_BYTES, RequestPage};
use haft::approval::review::Review;
use haft::approval::suspended::{CollectedCall, SuspendedCall, SuspendedEntry};
use haft::approval::transition::WaitingEvent;
use haft::approval::{ApprovalId, ApprovalRequest, Decision};
use haft::call::{CallId, RunId};
use haft::clock;
use haft::future::BoxFuture;
use sqlx::postgres::PgRow;
use sqlx::{PgPool, Row as _};
use tokio::sync::broadcast;

use crate::inbox::{
    CapacityCheck, DecisionRow, ReviewChange, StepTable, StoredRow, refusal, stored_statuses,
    unavailable,
};
use crate::number::nanoseconds;
use crate::postgres::beat::hold;
use crate::postgres::{OperationError, PostgresServer, PostgresStore, is_lost};
use crate::request_draft::RequestDraft;

mod callers;
mod filing;
mod listen;
mod review;

/// The columns of an entry, for [`entry`].
macro_rules! columns {
    () => {
        "request, status, decision, outcome, why, review, delivered_by IS NOT NULL AS delivered, \
        coalesce(waiter IN (SELECT id FROM haft.processes WHERE alive_until > clock_timestamp()), false) AS attended, \
        CASE WHEN claimed_by IS NOT NULL THEN split_part(claimed_by, '/', 1) IN \
        (SELECT id FROM haft.processes WHERE alive_until > clock_timestamp()) END AS claimer_lives"
    };
}

/// Bytes that a row adds to a list, as [`RequestPage`] counts them or slightly more.
macro_rules! bytes {
    () => {
        "(octet_length(request) + coalesce(octet_length(decision), 0) + coalesce(octet_length(outcome), 0))"
    };
}

const GET: &str = concat!("SELECT ", columns!(), " FROM haft.approvals WHERE id = $1");
const FIND: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM haft.approvals WHERE fingerprint = $1 AND run = $2 AND stands"
);
/// Null means: any status (`$2`), any run (`$3`), from the first (`$4`). Returns at most `$6` bytes, or one request.
const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM (SELECT *, sum(",
    bytes!(),
    ") OVER (ORDER BY row) AS bytes FROM haft.approvals WHERE tenant = $1 AND ($2::text[] IS NULL OR status = ANY($2)) \
    AND ($3::text IS NULL OR run = $3) \
    AND ($4::text IS NULL OR row > coalesce((SELECT a.row FROM haft.approvals a WHERE a.id = $4), 0))) AS listed \
    WHERE bytes <= $6 OR bytes = ",
    bytes!(),
    " ORDER BY row LIMIT $5"
);
/// True if fewer than `$4` requests of the run are pending, or if an identical one still counts.
const ROOM: &str = "SELECT (SELECT count(*) FROM (SELECT 1 FROM haft.approvals \
    WHERE tenant = $1 AND status = 'pending' AND run = $2 AND expires > $5 LIMIT $4) AS waiting) < $4 \
    AND (SELECT count(*) FROM (SELECT 1 FROM haft.approvals \
    WHERE tenant = $1 AND status = 'pending' AND expires > $5 LIMIT $6) AS waiting) < $6 \
    AND ($7::bigint IS NULL OR (SELECT coalesce(sum(octet_length(request)), 0) FROM haft.approvals \
    WHERE tenant = $1 AND status = 'pending' AND expires > $5) < $7) \
    OR EXISTS (SELECT 1 FROM haft.approvals WHERE fingerprint = $3 AND run = $2 AND stands \
    AND (status <> 'pending' OR expires > $5))";
/// The steps of an event ([`StepTable`]) as the first parameters, after the id.
macro_rules! steps {
    () => {
        "FROM unnest($2::text[], $3::boolean[], $4::boolean[], $5::text[]) AS step(was, claims, delivers, becomes)"
    };
}
/// Whether a row is where a step begins.
macro_rules! at_step {
    () => {
        "status = step.was AND (claimed_by IS NOT NULL) = step.claims AND (delivered_by IS NOT NULL) = step.delivers"
    };
}
const DECIDE: &str = concat!(
    "UPDATE haft.approvals SET status = step.becomes, decision = $6, edited_digest = $7 ",
    steps!(),
    " WHERE id = $1 AND expires > $8 AND ",
    at_step!(),
    " RETURNING ",
    columns!()
);
/// A retry whose first answer was lost claims the same request again.
const CLAIM: &str = concat!(
    "UPDATE haft.approvals SET status = CASE WHEN claimed_by = $6 THEN status ELSE step.becomes END, claimed_by = $6 ",
    steps!(),
    " WHERE id = $1 AND (claimed_by = $6 OR ",
    at_step!(),
    ") RETURNING ",
    columns!()
);
const FINISH: &str = concat!(
    "UPDATE haft.approvals SET status = step.becomes, outcome = $6, delivered_by = coalesce(delivered_by, $7) ",
    steps!(),
    " WHERE id = $1 AND ",
    at_step!()
);
const DELIVER: &str = "UPDATE haft.approvals SET delivered_by = $2 \
    WHERE id = $1 AND (delivered_by IS NULL OR delivered_by = $2)";
const ATTEND: &str = "UPDATE haft.approvals SET waiter = $2 WHERE id = $1";
const LEAVE: &str = "UPDATE haft.approvals SET waiter = NULL WHERE id = $1 AND waiter = $2";
/// A request that has expired before it is withdrawn becomes expired.
const END: &str = concat!(
    "UPDATE haft.approvals \
    SET status = CASE WHEN status = 'pending' AND expires <= $6 THEN 'expired' ELSE step.becomes END, \
    why = CASE WHEN status = 'pending' AND expires <= $6 THEN why ELSE nullif($7, '') END ",
    steps!(),
    " WHERE id = $1 AND step.was <> step.becomes AND ",
    at_step!()
);
const EXPIRE: &str = "UPDATE haft.approvals SET status = 'expired' \
    WHERE tenant = $1 AND status = 'pending' AND expires <= $2";

/// Why a step failed.
pub(super) enum PostgresInboxError {
    Inbox(InboxError),
    Database(sqlx::Error),
}

impl From<sqlx::Error> for PostgresInboxError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<InboxError> for PostgresInboxError {
    fn from(error: InboxError) -> Self {
        Self::Inbox(error)
    }
}

impl PostgresInboxError {
    fn is_lost(&self) -> bool {
        matches!(self, Self::Database(error) if is_lost(error))
    }
}

impl PostgresServer {
    /// Converts the result of an operation to the inbox's error type.
    pub(super) fn to_inbox_result<T>(
        &self,
        result: Result<T, OperationError<impl Into<PostgresInboxError>>>,
    ) -> Result<T, InboxError> {
        result.map_err(|error| match error {
            OperationError::Silent => unavailable(self.timeout_message()),
            OperationError::Refused(no) => match no.into() {
                PostgresInboxError::Inbox(no) => no,
                PostgresInboxError::Database(error) => unavailable(self.failure(error)),
            },
        })
    }

    async fn step<T, F>(&self, make: impl Fn(PgPool) -> F) -> Result<T, InboxError>
    where
        F: Future<Output = Result<T, PostgresInboxError>>,
    {
        self.to_inbox_result(self.ask(make, PostgresInboxError::is_lost).await)
    }
}

/// Binds a request and the steps of an event to a statement.
fn stepping<'q>(
    sql: &'static str,
    id: &'q ApprovalId,
    event: WaitingEvent,
) -> sqlx::query::Query<'q, sqlx::Postgres, sqlx::postgres::PgArguments> {
    let StepTable {
        was,
        claimed,
        delivered,
        becomes,
    } = StepTable::of(event);
    sqlx::query(sql)
        .bind(id.as_str())
        .bind(was)
        .bind(claimed)
        .bind(delivered)
        .bind(becomes)
}

/// Reads one request, if it exists.
pub(super) async fn known(
    pool: &PgPool,
    id: &str,
) -> Result<Option<Result<StoredApproval, InboxError>>, sqlx::Error> {
    let row = sqlx::query(GET).bind(id).fetch_optional(pool).await?;
    row.as_ref().map(entry).transpose()
}

async fn find(
    pool: &PgPool,
    run: &RunId,
    fingerprint: &str,
) -> Result<Option<StoredApproval>, PostgresInboxError> {
    let query = sqlx::query(FIND).bind(fingerprint).bind(run.as_str());
    let row = query.fetch_optional(pool).await?;
    Ok(match row.as_ref().map(entry).transpose()? {
        Some(found) => Some(found?),
        None => None,
    })
}

async fn get_existing(
    pool: &PgPool,
    id: &ApprovalId,
) -> Result<StoredApproval, PostgresInboxError> {
    match known(pool, id.as_str()).await? {
        Some(entry) => Ok(entry?),
        None => Err(InboxError::NotFound(id.clone()).into()),
    }
}

/// Reads a row of [`columns`].
fn entry(row: &PgRow) -> Result<Result<StoredApproval, InboxError>, sqlx::Error> {
    let outcome: Option<Vec<u8>> = row.try_get("outcome")?;
    let kept = StoredRow {
        request: row.try_get("request")?,
        status: row.try_get("status")?,
        decision: row.try_get("decision")?,
        outcome: outcome.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        delivered: row.try_get("delivered")?,
        attended: row.try_get("attended")?,
        claimer_lives: row.try_get("claimer_lives")?,
        why: row.try_get("why")?,
        review: row.try_get("review")?,
    };
    Ok(kept.entry(clock::now()))
}

async fn decide(
    pool: &PgPool,
    id: &ApprovalId,
    verdict: &DecisionRow,
    decision: &Decision,
) -> Result<StoredApproval, PostgresInboxError> {
    let decided = stepping(DECIDE, id, verdict.event)
        .bind(&verdict.json)
        .bind(&verdict.edited_digest)
        .bind(nanoseconds(clock::now()))
        .fetch_optional(pool)
        .await?;
    if let Some(row) = decided {
        return Ok(entry(&row)??);
    }
    let entry = get_existing(pool, id).await?;
    if entry.decision.as_ref() == Some(decision) {
        // Written before the connection broke: nobody else makes the same decision in the same nanosecond.
        return Ok(entry);
    }
    if entry.status == RequestStatus::Expired {
        end(pool, id, RequestEnding::Expired, "").await?;
    }
    Err(refusal(&entry, verdict.event).into())
}

async fn end(
    pool: &PgPool,
    id: &ApprovalId,
    ending: RequestEnding,
    why: &str,
) -> Result<(), PostgresInboxError> {
    let ending = stepping(END, id, WaitingEvent::End(ending))
        .bind(nanoseconds(clock::now()))
        .bind(why);
    if ending.execute(pool).await?.rows_affected() == 0 {
        get_existing(pool, id).await?;
    }
    Ok(())
}

async fn list(
    pool: &PgPool,
    filter: &RequestFilter,
) -> Result<Vec<StoredApproval>, PostgresInboxError> {
    let (mut page, mut stale) = (RequestPage::new(filter.limit), false);
    let mut after = filter.after.clone();
    // Requests that have expired since are filtered out below; if that empties the page, the next rows are read.
    while page.is_empty() {
        let rows = rows(pool, filter, after.as_ref()).await?;
        let Some(last) = rows.last() else { break };
        after = Some(entry(last)??.request.id);
        for row in &rows {
            let (kept, request): (&str, &str) = (row.try_get("status")?, row.try_get("request")?);
            let (entry, bytes) = (entry(row)??, request.len());
            stale |= kept == "pending" && entry.status == RequestStatus::Expired;
            let wanted = filter.status.is_empty() || filter.status.contains(&entry.status);
            if wanted && !page.add(entry, bytes) {
                break;
            }
        }
    }
    if stale {
        let expire = sqlx::query(EXPIRE).bind(&filter.tenant);
        expire.bind(nanoseconds(clock::now())).execute(pool).await?;
    }
    Ok(page.into_entries())
}

/// Reads the rows of one page as stored.
async fn rows(
    pool: &PgPool,
    filter: &RequestFilter,
    after: Option<&ApprovalId>,
) -> Result<Vec<PgRow>, PostgresInboxError> {
    let statuses = stored_statuses(&filter.status);
    let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
    // Read more than the limit where rows are filtered out for what they have become since.
    let over = matches!(
        filter.status.as_slice(),
        [] | [RequestStatus::Done | RequestStatus::Denied]
    );
    let rows = sqlx::query(LIST)
        .bind(&filter.tenant)
        .bind((!statuses.is_empty()).then_some(&statuses))
        .bind(filter.run.as_ref().map(RunId::as_str))
        .bind(after.map(ApprovalId::as_str))
        .bind(if over { limit } else { i64::MAX })
        .bind(i64::try_from(PAGE_BYTES).unwrap_or(i64::MAX));
    Ok(rows.fetch_all(pool).await?)
}

async fn has_room(pool: &PgPool, room: &CapacityCheck) -> Result<bool, PostgresInboxError> {
    let query = sqlx::query_scalar(ROOM)
        .bind(&room.tenant)
        .bind(&room.run)
        .bind(&room.fingerprint)
        .bind(room.per_run)
        .bind(nanoseconds(clock::now()))
        .bind(room.total)
        .bind(room.bytes);
    Ok(query.fetch_one(pool).await?)
}

impl WaitingCalls for PostgresStore {
    fn is_durable(&self) -> bool {
        true
    }

    fn submit<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> BoxFuture<'a, Result<Submission, InboxError>> {
        Box::pin(async move { filing::file(&self.0, RequestDraft::of(request)?).await })
    }

    fn get<'a>(
        &'a self,
        id: &'a ApprovalId,
    ) -> BoxFuture<'a, Result<Option<StoredApproval>, InboxError>> {
        Box::pin(async move {
            let got = self
                .0
                .step(move |pool| async move { Ok(known(&pool, id.as_str()).await?) });
            got.await?.transpose()
        })
    }

    fn find<'a>(
        &'a self,
        run: &'a RunId,
        fingerprint: &'a str,
    ) -> BoxFuture<'a, Result<Option<StoredApproval>, InboxError>> {
        Box::pin(async move {
            let found = self
                .0
                .step(move |pool| async move { find(&pool, run, fingerprint).await });
            Ok(found.await?.filter(StoredApproval::answers_again))
        })
    }

    fn has_room<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        limits: WaitingLimits,
    ) -> BoxFuture<'a, Result<bool, InboxError>> {
        Box::pin(async move {
            let room = &CapacityCheck::of(request, limits);
            let step = self
                .0
                .step(move |pool| async move { has_room(&pool, room).await });
            step.await
        })
    }

    fn list<'a>(
        &'a self,
        filter: &'a RequestFilter,
    ) -> BoxFuture<'a, Result<Vec<StoredApproval>, InboxError>> {
        Box::pin(
            self.0
                .step(move |pool| async move { list(&pool, filter).await }),
        )
    }

    fn decide<'a>(
        &'a self,
        id: &'a ApprovalId,
        decision: &'a Decision,
    ) -> BoxFuture<'a, Result<StoredApproval, InboxError>> {
        Box::pin(async move {
            let verdict = &DecisionRow::of(decision)?;
            let step = self
                .0
                .step(move |pool| async move { decide(&pool, id, verdict, decision).await });
            step.await
        })
    }

    fn claim<'a>(
        &'a self,
        id: &'a ApprovalId,
    ) -> BoxFuture<'a, Result<StoredApproval, InboxError>> {
        let attempt = self.0.beat.attempt();
        Box::pin(self.0.step(move |pool| async move {
            let attempt = format!("{}/{attempt}", self.0.beat.process_name(&pool).await?);
            hold(&self.0, &pool, std::iter::once(id.to_string())).await?;
            let claiming = stepping(CLAIM, id, WaitingEvent::Claim).bind(attempt);
            if let Some(row) = claiming.fetch_optional(&pool).await? {
                return Ok(entry(&row)??);
            }
            let entry = get_existing(&pool, id).await?;
            Err(refusal(&entry, WaitingEvent::Claim).into())
        }))
    }

    fn finish<'a>(
        &'a self,
        id: &'a ApprovalId,
        outcome: &'a str,
        delivered: bool,
    ) -> BoxFuture<'a, Result<(), InboxError>> {
        Box::pin(self.0.step(move |pool| async move {
            let finishing = stepping(FINISH, id, WaitingEvent::Finish { delivered })
                .bind(outcome.as_bytes())
                .bind(delivered.then_some("finish"));
            let rows = finishing.execute(&pool).await?.rows_affected();
            self.0.beat.release(id.as_str());
            if rows == 0 {
                get_existing(&pool, id).await?;
            }
            Ok(())
        }))
    }

    fn deliver<'a>(&'a self, id: &'a ApprovalId) -> BoxFuture<'a, Result<bool, InboxError>> {
        let attempt = self.0.beat.attempt();
        Box::pin(self.0.step(move |pool| async move {
            let attempt = format!("{}/{attempt}", self.0.beat.process_name(&pool).await?);
            let delivering = sqlx::query(DELIVER).bind(id.as_str()).bind(attempt);
            let first = delivering.execute(&pool).await?.rows_affected() == 1;
            if !first {
                get_existing(&pool, id).await?;
            }
            Ok(first)
        }))
    }

    fn set_attended<'a>(
        &'a self,
        id: &'a ApprovalId,
        attended: bool,
    ) -> BoxFuture<'a, Result<(), InboxError>> {
        Box::pin(self.0.step(move |pool| async move {
            if attended {
                hold(&self.0, &pool, std::iter::once(id.to_string())).await?;
            } else {
                self.0.beat.release(id.as_str());
            }
            let me = self.0.beat.process_name(&pool).await?;
            let sql = if attended { ATTEND } else { LEAVE };
            let attending = sqlx::query(sql).bind(id.as_str()).bind(me);
            if attending.execute(&pool).await?.rows_affected() == 0 {
                get_existing(&pool, id).await?;
            }
            Ok(())
        }))
    }

    fn end<'a>(
        &'a self,
        id: &'a ApprovalId,
        ending: RequestEnding,
        why: &'a str,
    ) -> BoxFuture<'a, Result<(), InboxError>> {
        Box::pin(self.0.step(move |pool| async move {
            self.0.beat.release(id.as_str());
            end(&pool, id, ending, why).await
        }))
    }

    fn set_review<'a>(
        &'a self,
        id: &'a ApprovalId,
        was: Option<&'a Review>,
        now: &'a Review,
    ) -> BoxFuture<'a, Result<bool, InboxError>> {
        Box::pin(async move {
            let change = &ReviewChange::of(was, now)?;
            let step = self
                .0
                .step(move |pool| async move { review::set(&pool, id, change).await });
            step.await
        })
    }

    fn suspend<'a>(&'a self, call: &'a SuspendedCall) -> BoxFuture<'a, Result<(), InboxError>> {
        let now = nanoseconds(clock::now());
        let sweeps = self.0.sweeps.is_due(now);
        Box::pin(self.0.step(move |pool| async move {
            if sweeps {
                callers::sweep(&pool, now).await?;
            }
            callers::suspend(&pool, call, now).await
        }))
    }

    fn find_suspended<'a>(
        &'a self,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<SuspendedEntry>, InboxError>> {
        Box::pin(
            self.0
                .step(move |pool| async move { callers::find(&pool, key).await }),
        )
    }

    fn get_suspended<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<Option<SuspendedEntry>, InboxError>> {
        Box::pin(
            self.0
                .step(move |pool| async move { callers::get(&pool, run, call).await }),
        )
    }

    fn end_suspended<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
        outcome: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), InboxError>> {
        Box::pin(
            self.0
                .step(move |pool| async move { callers::end(&pool, run, call, outcome).await }),
        )
    }

    fn collect<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<Option<CollectedCall>, InboxError>> {
        let attempt = self.0.beat.attempt();
        Box::pin(self.0.step(move |pool| async move {
            let attempt = format!("{}/{attempt}", self.0.beat.process_name(&pool).await?);
            callers::collect(&pool, run, call, &attempt).await
        }))
    }

    fn changes(&self) -> broadcast::Receiver<ApprovalId> {
        let receiver = self.0.changes.subscribe();
        listen::start(&self.0);
        receiver
    }
}
