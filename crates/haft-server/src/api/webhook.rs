//! Replies of the webhook: signed, one per request, and never an approval of a critical call.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::Response;
use haft::approval::{ApprovalId, ApprovalScope, Choice, Decision};
use haft::spec::Risk;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;

use crate::api::approvals::refusal;
use crate::api::state::ApiState;
use crate::reply;
use haft_app::view::approvals::ApprovalListItem;
use haft_app::webhook::SIGNATURE;

/// The body of a reply.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WebhookReply {
    decision: WebhookDecision,
    #[serde(default)]
    message: Option<String>,
    /// Who decided, as the other system names them; for the record.
    #[serde(default)]
    by: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WebhookDecision {
    Approve,
    Deny,
}

/// Handles one reply.
pub(crate) async fn take(
    State(api): ApiState,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let forged = || {
        let why = "the signature is not that of this request";
        reply::error(StatusCode::UNAUTHORIZED, "unauthorized", why)
    };
    let id = ApprovalId::new(id);
    let entry = api.app.executor().inbox().get(&id).await;
    // Only a sender that knows the secret learns whether the request exists.
    let (Some(webhook), Ok(Some(entry))) = (api.app.webhook(), entry) else {
        return forged();
    };
    let signature = headers.get(SIGNATURE).and_then(|value| value.to_str().ok());
    if !signature.is_some_and(|given| webhook.signed(&entry.request, given, &body)) {
        return forged();
    }
    let webhook_reply: WebhookReply = match serde_json::from_slice(&body) {
        Ok(webhook_reply) => webhook_reply,
        Err(e) => {
            let message = format!("the body is not a reply: {e}");
            return reply::error(StatusCode::BAD_REQUEST, "invalid_arguments", &message);
        }
    };
    let choice = match webhook_reply.decision {
        WebhookDecision::Approve if entry.request.risk == Risk::Critical => {
            let why = "a critical call can be approved only in the console or at a terminal";
            return reply::error(StatusCode::FORBIDDEN, "denied", why);
        }
        WebhookDecision::Approve => Choice::Approve {
            scope: ApprovalScope::Once,
            edited: None,
            rule: None,
        },
        WebhookDecision::Deny => Choice::Deny {
            message: webhook_reply.message,
            stop: false,
        },
    };
    let by: String = webhook_reply
        .by
        .unwrap_or_default()
        .chars()
        .take(100)
        .collect();
    let by = if by.is_empty() {
        "webhook".to_owned()
    } else {
        by
    };
    let decision = Decision::new(choice, by, "webhook");
    match api.app.decide(&id, decision).await {
        Ok(entry) => reply::document(&ApprovalListItem::of(&api.app, &entry)),
        Err(refused) => {
            let (status, error) = refusal(&refused);
            reply::problem(status, &error)
        }
    }
}
