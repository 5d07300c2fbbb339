//! `ApiLimits`: limits on what callers of the HTTP API may make haft hold. Each class has its own share, so no class can use
//! up another's. The API has one principal per class: tokens of other principals are valid for MCP only, which has limits of its own.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use haft::bounds::{ByteBudget, CallerClass, Charge, ConcurrencyLimit, PrincipalShares, Shares};
use haft_mcp::intake::{BodyLimits, ChargedBody, Intake, IntakeError, OutgoingBudget};
use http_body::Body as _;
use http_body_util::BodyExt;

/// The path of hook events, each about one call.
pub(crate) const HOOKS_PATH: &str = "/api/v1/hooks/";

/// Maximum size of a body and the time to receive it; the executor's own limits apply to the call itself.
const BODY: BodyLimits = BodyLimits {
    bytes: 4 << 20,
    time: Duration::from_secs(30),
};
/// The same for hook events, which contain the whole text of a written file.
const HOOKS_BODY: BodyLimits = BodyLimits {
    bytes: 17 << 20,
    time: Duration::from_secs(30),
};
/// The same for what unauthenticated callers send: a login code or a webhook's reply.
const STRANGERS_BODY: BodyLimits = BodyLimits {
    bytes: 64 << 10,
    time: Duration::from_secs(10),
};
/// Bytes of live output that each reader of events may hold in any case.
const RESERVED_OUTPUT: usize = 256 << 10;

/// The limits of the HTTP API.
#[derive(Debug)]
pub(crate) struct ApiLimits {
    /// Calls and scripts in progress: each may wait minutes for a user.
    pub(crate) calls: ConcurrencyLimit,
    /// Other requests in progress, including users' decisions.
    pub(crate) requests: ConcurrencyLimit,
    /// Event streams.
    pub(crate) streams: ConcurrencyLimit,
    /// Artifact downloads.
    pub(crate) downloads: ConcurrencyLimit,
    bodies: Intake,
    answers: OutgoingBudget,
    /// Live output that readers of events have not received yet.
    output: PrincipalShares,
}

impl Default for ApiLimits {
    fn default() -> Self {
        let places = |strangers, clients, operator| {
            ConcurrencyLimit::new(&PrincipalShares::by_class(Shares {
                strangers,
                clients,
                operator,
            }))
        };
        let bytes = |clients, operator| {
            PrincipalShares::by_class(Shares {
                strangers: 1 << 20,
                clients,
                operator,
            })
        };
        Self {
            calls: places(0, 256, 64),
            requests: places(64, 64, 64),
            streams: places(0, 48, 16),
            downloads: places(0, 32, 16),
            bodies: Intake::new(bytes(64 << 20, 32 << 20)),
            answers: OutgoingBudget::new(bytes(64 << 20, 64 << 20)),
            output: bytes(32 << 20, 32 << 20),
        }
    }
}

/// Marks a response that is streamed in small pieces, at its client's pace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piecemeal;

/// The class holds too much of something; the text says of what.
#[derive(Debug, Clone, thiserror::Error)]
#[error("too many {0}: try again in a moment")]
pub(crate) struct LimitReached(pub(crate) &'static str);

impl ApiLimits {
    /// Returns the charge for a reader's unread live output.
    pub(crate) fn output(&self, class: CallerClass) -> Charge {
        ByteBudget::of(&self.output, &class.into(), RESERVED_OUTPUT).charge()
    }

    /// Reads a request's body, charged to its class.
    async fn body(
        &self,
        body: Body,
        class: CallerClass,
        hook: bool,
    ) -> Result<ChargedBody, IntakeError> {
        let within = match class {
            CallerClass::Stranger => STRANGERS_BODY,
            CallerClass::Client | CallerClass::Operator if hook => HOOKS_BODY,
            CallerClass::Client | CallerClass::Operator => BODY,
        };
        self.bodies.read(body, &class.into(), within).await
    }

    /// Passes a request to its route: reads its body, holds a place while the request is in progress, and charges the response.
    pub(crate) async fn pass<E: From<LimitReached> + From<IntakeError>>(
        &self,
        places: &ConcurrencyLimit,
        class: CallerClass,
        request: Request,
        next: Next,
    ) -> Result<Response, E> {
        let (parts, body) = request.into_parts();
        let hook = parts.uri.path().starts_with(HOOKS_PATH);
        let read = self.body(body, class, hook).await?;
        // A client that is still sending its body takes no place: it holds only a connection, and others' requests proceed.
        let place = places.take(&class.into());
        let place = place.ok_or(LimitReached("requests are at work"))?;
        let request = Request::from_parts(parts, Body::from(read.bytes));
        let response = next.run(request).await;
        drop((place, read.charge));
        Ok(self.answer(response, class).await?)
    }

    /// Charges a complete response until it is sent.
    async fn answer(
        &self,
        response: Response,
        class: CallerClass,
    ) -> Result<Response, LimitReached> {
        let whole = response.body().size_hint().exact().is_some();
        if !whole || response.extensions().get::<Piecemeal>().is_some() {
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        // It is in memory already, so this neither waits nor fails.
        let bytes = body
            .collect()
            .await
            .map(http_body_util::Collected::to_bytes);
        let held = self.answers.hold(bytes.unwrap_or_default(), &class.into());
        let held = held.ok_or(LimitReached("answers are waiting to be read"))?;
        Ok(Response::from_parts(parts, Body::from(held)))
    }
}
