//! `EditorApprover`: asks the user in the editor whether a call may run. The inbox holds the same request: the first decision counts, and the
//! editor's prompt is withdrawn if the decision came from elsewhere.

use std::sync::Arc;

use haft::approval::{ApprovalRequest, ApprovalScope, Approver, ApproverReply, Decision};
use haft::audit::redact::Redactor;
use haft::future::BoxFuture;
use haft::spec::Risk;
use haft_app::host::ApproverParts;
use haft_app::rules::RuleCheck;
use serde_json::{Value, json};

use crate::protocol::{PermissionOutcome, PermissionReply};
use crate::updates::{Updates, card, text};

/// The origin of its decisions, for the record.
const FROM: &str = "editor";

/// Run it this time.
const ONCE: &str = "allow-once";
/// Allow the same effects of the same tool until the session ends.
const SESSION: &str = "allow-session";
/// Keep the suggested rule.
const ALWAYS: &str = "allow-always";
/// Do not run it.
const REJECT: &str = "reject";

/// The user behind the editor: the user who runs the process decides, as at a terminal.
#[derive(Debug)]
pub(crate) struct EditorApprover {
    updates: Arc<Updates>,
    by: String,
    rules: RuleCheck,
    redactor: Redactor,
}

impl EditorApprover {
    pub(crate) fn new(updates: Arc<Updates>, parts: ApproverParts) -> Self {
        Self {
            updates,
            by: format!("{}@{FROM}", parts.principal.subject),
            rules: parts.rules,
            redactor: parts.redactor,
        }
    }

    async fn put(&self, request: &ApprovalRequest) -> ApproverReply {
        let id = &request.id;
        if request.is_question() {
            // The protocol's stable part only has requests for permission.
            self.updates.say(&format!(
                "A question waits for your answer, at a terminal or in the console: {}",
                request.decision_advice()
            ));
            return ApproverReply::Nobody;
        }
        if let Some(why) = beyond_an_editor(request) {
            self.updates.waits(
                &request.call,
                request.tool.as_str(),
                &format!(
                    "{why}, so the editor does not decide about it: `haft approvals approve {id}` at a terminal, or the console."
                ),
            );
            return ApproverReply::Nobody;
        }
        let keeps = self.rules.problem(request, None).is_none();
        let params = json!({
            "sessionId": self.updates.session(),
            "toolCall": self.card(request),
            "options": options(request, keeps, &self.redactor),
        });
        // However it ends, the call must not stay pending in the editor.
        let mut settled = WaitEndReport {
            updates: &self.updates,
            request,
            rejected: false,
        };
        let client = self.updates.client();
        let question = client.ask("session/request_permission", &params);
        let Some(answer) = question.answer().await else {
            return ApproverReply::Nobody;
        };
        match serde_json::from_str(answer.get()) {
            Ok(PermissionReply {
                outcome: PermissionOutcome::Selected { option_id },
            }) => {
                settled.rejected = option_id == REJECT;
                self.decided(&option_id, request, keeps)
            }
            Ok(PermissionReply {
                outcome: PermissionOutcome::Cancelled,
            }) => ApproverReply::Nobody,
            Err(error) => {
                tracing::warn!(%error, "the client's answer about a permission");
                ApproverReply::Nobody
            }
        }
    }

    /// Returns the decision for an option; an option that was not offered decides nothing.
    fn decided(&self, option: &str, request: &ApprovalRequest, keeps: bool) -> ApproverReply {
        let yes = |scope| Decision::approve(&*self.by, FROM).hold_for(scope);
        match option {
            ONCE => yes(ApprovalScope::Once).into(),
            SESSION => yes(ApprovalScope::Session).into(),
            ALWAYS if keeps => {
                let yes = yes(ApprovalScope::Always);
                match request.suggested.first() {
                    Some(rule) => yes.with_rule(rule).into(),
                    None => ApproverReply::Nobody,
                }
            }
            REJECT => Decision::deny(&*self.by, FROM).into(),
            other => {
                tracing::warn!(option = other, "the client chose what was not offered");
                ApproverReply::Nobody
            }
        }
    }

    /// Returns the call with everything that matters for the decision.
    fn card(&self, request: &ApprovalRequest) -> Value {
        let tool = request.tool.as_str();
        let mut content = self.updates.previews(request);
        content.push(text::content(&self.reasons(request)));
        let class = self.updates.class(tool);
        json!({
            "toolCallId": request.call,
            "title": card::title(tool, &request.arguments, &self.redactor),
            "kind": card::kind(tool, class),
            "status": "pending",
            "content": content,
            "locations": card::locations(&request.arguments, &request.workspace),
            "rawInput": text::raw(&request.arguments, &self.redactor),
        })
    }

    fn reasons(&self, request: &ApprovalRequest) -> String {
        let redacted = |text: &str| text::plain(&self.redactor.redact(text));
        let mut lines = vec![format!(
            "**{}**: {}",
            request.risk,
            redacted(&request.reason)
        )];
        let permissions = request.snapshot.permissions.iter();
        for (place, permission) in permissions.enumerate() {
            let effect = &permission.effect;
            let verdict = request.verdicts.get(place);
            let verdict = verdict.map(|verdict| format!("{verdict}: "));
            let verdict = verdict.unwrap_or_default();
            let what = format!("{verdict}{} {}", effect.kind(), effect.value());
            lines.push(format!("- {}", redacted(&what)));
        }
        for (name, value) in &request.bound {
            let what = format!("{name} = {value} (from the settings)");
            lines.push(format!("- {}", redacted(&what)));
        }
        if let Some(review) = &request.review {
            lines.push(format!("Reviewer: {}", redacted(&review.sentence())));
        }
        lines.push(format!(
            "Asked by {}; also in the inbox as {}.",
            redacted(&request.rule),
            request.id
        ));
        lines.join("\n")
    }
}

impl Approver for EditorApprover {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        Box::pin(self.put(request))
    }
}

/// Returns why the decision is made elsewhere. The editor may answer by itself, and cannot have the user type a tool's name.
fn beyond_an_editor(request: &ApprovalRequest) -> Option<&'static str> {
    if request.is_over_budget() {
        return Some("A budget applies to it");
    }
    if request.needs_person() {
        return Some("A guard asks about it");
    }
    (request.risk == Risk::Critical).then_some("It is critical")
}

/// Returns the options to choose from.
fn options(request: &ApprovalRequest, keeps: bool, redactor: &Redactor) -> Vec<Value> {
    let option =
        |id: &str, name: &str, kind: &str| json!({"optionId": id, "name": name, "kind": kind});
    let mut options = vec![
        option(ONCE, "Allow once", "allow_once"),
        option(SESSION, "Allow for this session", "allow_always"),
    ];
    if let Some(first) = request.suggested.first().filter(|_| keeps) {
        let rules = request.kept_rules(Some(first));
        let rules: Vec<&str> = rules.iter().map(|rule| rule.rule.as_str()).collect();
        let rules = text::line(&redactor.redact(&rules.join(" and ")));
        options.push(option(
            ALWAYS,
            &format!("Always allow {rules}"),
            "allow_always",
        ));
    }
    options.push(option(REJECT, "Reject", "reject_once"));
    options
}

/// Reports that a call no longer waits for the user.
struct WaitEndReport<'a> {
    updates: &'a Updates,
    request: &'a ApprovalRequest,
    rejected: bool,
}

impl Drop for WaitEndReport<'_> {
    fn drop(&mut self) {
        self.updates.settled(&self.request.call, self.rejected);
    }
}
