//! What the callers of the HTTP API may make haft hold: each class within its share, so that no class uses up another's.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use haft::bounds::{Budget, Charge, Class, Places, Shares};
use haft_mcp::intake::{ChargedBody, Intake, IntakeError, Outgoing, Within};
use http_body::Body as _;
use http_body_util::BodyExt;

/// Where hooks of coding agents are answered, each about one call.
pub(crate) const HOOKS: &str = "/api/v1/hooks/";

/// The longest body, and how long it may take; the executor's own limits decide about a call.
const BODY: Within = Within {
    bytes: 4 << 20,
    time: Duration::from_secs(30),
};
/// The same for the events of agents' hooks: a file that is written stands in it whole.
const HOOKS_BODY: Within = Within {
    bytes: 17 << 20,
    time: Duration::from_secs(30),
};
/// The same for what strangers send: a login code or a webhook's reply.
const STRANGERS_BODY: Within = Within {
    bytes: 64 << 10,
    time: Duration::from_secs(10),
};
/// What each reader of events may hold of live output in any case, in bytes.
const OWN_OUTPUT: usize = 256 << 10;

/// The bounds of the HTTP API.
#[derive(Debug)]
pub(crate) struct Bounds {
    /// Calls and scripts at work: each may wait for a person for minutes.
    pub(crate) calls: Places,
    /// Other requests at work, a person's decisions among them.
    pub(crate) requests: Places,
    /// Streams of events.
    pub(crate) streams: Places,
    /// Artifacts on their way to a client.
    pub(crate) downloads: Places,
    bodies: Intake,
    answers: Outgoing,
    /// Live output that readers of events have not taken yet.
    output: Shares<Arc<Budget>>,
}

impl Default for Bounds {
    fn default() -> Self {
        let places = |strangers, clients, operator| {
            Places::new(Shares {
                strangers,
                clients,
                operator,
            })
        };
        let bytes = |clients, operator| Shares {
            strangers: 1 << 20,
            clients,
            operator,
        };
        Self {
            calls: places(0, 256, 64),
            requests: places(64, 64, 64),
            streams: places(0, 48, 16),
            downloads: places(0, 32, 16),
            bodies: Intake::new(bytes(64 << 20, 32 << 20)),
            answers: Outgoing::new(bytes(64 << 20, 64 << 20)),
            output: bytes(32 << 20, 32 << 20).map(|shared| Budget::new(shared, OWN_OUTPUT)),
        }
    }
}

/// Marks an answer that comes in small pieces, as its client takes them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piecemeal;

/// The class holds too much of something; the text says of what.
#[derive(Debug, Clone, thiserror::Error)]
#[error("too many {0}: try again in a moment")]
pub(crate) struct Busy(pub(crate) &'static str);

impl Bounds {
    /// What a reader's untaken live output is charged to.
    pub(crate) fn output(&self, class: Class) -> Charge {
        self.output.of(class).charge()
    }

    /// Reads a request's body, and gives what is held for it.
    async fn body(&self, body: Body, class: Class, hook: bool) -> Result<ChargedBody, IntakeError> {
        let within = match class {
            Class::Stranger => STRANGERS_BODY,
            Class::Client | Class::Operator if hook => HOOKS_BODY,
            Class::Client | Class::Operator => BODY,
        };
        self.bodies.read(body, class, within).await
    }

    /// Takes a request to its route: its body is read, one of the places is held while it is at work, and its answer is charged.
    pub(crate) async fn pass<E: From<Busy> + From<IntakeError>>(
        &self,
        places: &Places,
        class: Class,
        request: Request,
        next: Next,
    ) -> Result<Response, E> {
        let (parts, body) = request.into_parts();
        let hook = parts.uri.path().starts_with(HOOKS);
        let taken = self.body(body, class, hook).await?;
        // Whoever still sends its body is not at work: it holds a connection, and others' requests go on.
        let place = places.take(class);
        let place = place.ok_or(Busy("requests are at work"))?;
        let request = Request::from_parts(parts, Body::from(taken.bytes));
        let response = next.run(request).await;
        drop((place, taken.charge));
        Ok(self.answer(response, class).await?)
    }

    /// Charges an answer that is whole until it is sent.
    async fn answer(&self, response: Response, class: Class) -> Result<Response, Busy> {
        let whole = response.body().size_hint().exact().is_some();
        if !whole || response.extensions().get::<Piecemeal>().is_some() {
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        // It is in memory already: there is nothing to wait for, and nothing that could fail.
        let bytes = body
            .collect()
            .await
            .map(http_body_util::Collected::to_bytes);
        let held = self.answers.hold(bytes.unwrap_or_default(), class);
        let held = held.ok_or(Busy("answers are waiting to be read"))?;
        Ok(Response::from_parts(parts, Body::from(held)))
    }
}
