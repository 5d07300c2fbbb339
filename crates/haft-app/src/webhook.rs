//! `Webhook`: an address that receives every approval request, and whose signed reply decides that one request, once.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use haft::approval::preview::Aspect;
use haft::approval::{ApprovalRequest, Approver, ApproverReply};
use haft::audit::redact::Redactor;
use haft::clock;
use haft::future::BoxFuture;
use haft_builtins::web::http::{FetchLimits, Http};
use hmac::{Hmac, Mac};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;

use crate::config::Settings;
use crate::fact::Fact;
use crate::problem::Problem;
use crate::upstream::upstream;
use haft::text::hex;

/// The signature of a body: `sha256=` and the HMAC-SHA-256 as hex.
pub const SIGNATURE: &str = "x-haft-signature";
/// The minimum length of the secret, in bytes.
const MIN_SECRET: usize = 16;
/// How long the address may take to accept a request.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of files in a message, and of meanings.
const MAX_FILES: usize = 100;
/// Maximum size of its response, in bytes; the content does not matter.
const MAX_RESPONSE: usize = 64 * 1024;

/// A webhook's address, and the secret that it shares with haft.
#[derive(Clone)]
pub struct Webhook(Arc<Inner>);

struct Inner {
    http: Http,
    url: String,
    secret: String,
    redactor: Redactor,
    /// The server's base URL, to which replies go, once it listens.
    base: OnceLock<String>,
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhook")
            .field("url", &self.0.url)
            .finish_non_exhaustive()
    }
}

impl Webhook {
    /// Returns the webhook that the settings name, if they do.
    ///
    /// # Errors
    /// A [`Problem`] if the address is invalid or the secret is too short or missing.
    pub fn of(settings: &Settings) -> Result<Option<Self>, Problem> {
        let Some(url) = settings.text("approval.webhook.url") else {
            return Ok(None);
        };
        let secret = settings.text("approval.webhook.secret").unwrap_or_default();
        if secret.len() < MIN_SECRET {
            return Err(Problem::settings(format!(
                "`approval.webhook.secret` has fewer than {MIN_SECRET} characters"
            ))
            .advise("make one with `openssl rand -hex 32` and write `${env:NAME}` here"));
        }
        let limits = FetchLimits {
            max_bytes: MAX_RESPONSE,
            whole: RESPONSE_TIMEOUT,
            ..FetchLimits::default()
        };
        Ok(Some(Self(Arc::new(Inner {
            // The operator named the address, so one in the local network is fine.
            http: Http::trusted()
                .with_limits(limits)
                .with_upstream(upstream(settings)?),
            url: url.to_owned(),
            secret: secret.to_owned(),
            redactor: settings.redactor.clone(),
            base: OnceLock::new(),
        }))))
    }

    /// Sets the base URL of the server that receives replies.
    pub fn listens(&self, base: String) {
        // Set once: a listener is bound once.
        let _ = self.0.base.set(base);
    }

    /// Returns the nonce that a reply about this request must include: it cannot be created without the secret, and fits no other request.
    pub fn nonce(&self, request: &ApprovalRequest) -> String {
        let bound = format!(
            "{}\n{}\n{}",
            request.id, request.fingerprint, request.expires
        );
        hex(&self.mac(&[b"nonce\n", bound.as_bytes()]))
    }

    /// Returns whether a reply to this request was signed with the secret.
    pub fn signed(&self, request: &ApprovalRequest, signature: &str, body: &[u8]) -> bool {
        let nonce = self.nonce(request);
        let expected = self.signature(&[nonce.as_bytes(), b"\n", body]);
        is_same(signature, &expected)
    }

    fn signature(&self, parts: &[&[u8]]) -> String {
        format!("sha256={}", hex(&self.mac(parts)))
    }

    fn mac(&self, parts: &[&[u8]]) -> Vec<u8> {
        // HMAC accepts keys of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(self.0.secret.as_bytes()) else {
            return Vec::new();
        };
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().to_vec()
    }

    async fn post_request(&self, request: &ApprovalRequest) {
        let inner = &self.0;
        let redacted = |text: &str| inner.redactor.redact(text).into_owned();
        let reply = inner.base.get();
        let mut body = json!({
            "type": "approval",
            "id": request.id,
            "run": request.run,
            "call": request.call,
            "tool": request.tool,
            "risk": request.risk,
            "reason": request.reason,
            "rule": request.rule,
            "fact": Fact::of(request, &inner.redactor),
            "arguments": redacted(&request.arguments),
            "conditions": request.snapshot.conditions,
            "principal": request.principal.to_string(),
            "workspace": request.workspace,
            "created": clock::rfc3339(request.created),
            "expires": clock::rfc3339(request.expires),
            "meanings": meanings(request, &inner.redactor),
            "files": files(request, &inner.redactor),
        });
        if request.snapshot.preview.len() > MAX_FILES {
            body["more_files"] = (request.snapshot.preview.len() - MAX_FILES).into();
        }
        if let Some(base) = reply {
            body["nonce"] = self.nonce(request).into();
            body["reply"] = format!("{base}/api/v1/webhook/{}", request.id).into();
            body["console"] = format!("{base}/waiting/{}", request.id).into();
        }
        let body = body.to_string();
        let signature = self.signature(&[body.as_bytes()]);
        let headers = [(SIGNATURE, signature.as_str())];
        let url = &inner.url;
        match inner.http.post_json(url, &headers, body).await {
            Ok(answer) if answer.is_success() => {}
            Ok(answer) => tracing::warn!(%url, status = %answer.status, "tell a webhook"),
            Err(error) => tracing::warn!(%url, %error, "tell a webhook"),
        }
    }
}

/// Returns what the changes amount to: titles and warnings, without contents.
fn meanings(request: &ApprovalRequest, redactor: &Redactor) -> Vec<Value> {
    let redacted = |text: &String| redactor.redact(text).into_owned();
    let each = request.snapshot.meanings.iter().take(MAX_FILES);
    each.map(|meaning| {
        let warnings = meaning.warnings.iter().map(redacted);
        json!({
            "kind": meaning.kind,
            "title": redacted(&meaning.title),
            "warnings": warnings.collect::<Vec<String>>(),
        })
    })
    .collect()
}

/// Returns which files change and by how many lines, without contents.
fn files(request: &ApprovalRequest, redactor: &Redactor) -> Vec<Value> {
    let each = request.snapshot.preview.iter().take(MAX_FILES);
    each.map(|file| {
        let mut facts = json!({"path": redactor.redact(&file.path), "action": file.action});
        if let Some((added, removed)) = file.lines() {
            (facts["added"], facts["removed"]) = (added.into(), removed.into());
        }
        if file.aspect != Aspect::Content {
            facts["aspect"] = json!(file.aspect);
        }
        if let Some(count) = file.files {
            facts["files"] = count.into();
        }
        facts
    })
    .collect()
}

/// Compares two texts in a time that reveals neither where they differ nor how long they are.
fn is_same(given: &str, expected: &str) -> bool {
    let digest = |text: &str| Sha256::digest(text.as_bytes());
    bool::from(digest(given).ct_eq(&digest(expected)))
}

impl Approver for Webhook {
    /// Never answers: the answer comes through the inbox.
    fn ask<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        Box::pin(async { ApproverReply::Nobody })
    }

    fn notify<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ()> {
        Box::pin(self.post_request(request))
    }
}
