//! "always" at the prompt: shows the rule that would be kept, and keeps it only after a yes.

use haft::approval::{ApprovalRequest, ApprovalScope, ApproverReply, Decision};
use haft::permission::Effect;
use haft_app::view::coverage::coverage;
use tokio::sync::mpsc;

use super::prompt::ApprovalPrompt;
use crate::screen::{BOLD, styled, visible};

/// The meaning of a line where a rule is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Consent {
    /// Keep the rule shown.
    Yes,
    /// Keep nothing.
    No,
    /// A rule typed by the user.
    Rule(String),
}

/// Interprets a line. Enter alone means no, and so do the keys for going back: no rule has such a name.
pub(super) fn consent(line: &str) -> Consent {
    let word = line.trim();
    match word.to_lowercase().as_str() {
        "" | "n" | "no" | "q" | "quit" => Consent::No,
        "y" | "yes" => Consent::Yes,
        _ => Consent::Rule(word.to_owned()),
    }
}

impl ApprovalPrompt {
    /// Offers the suggested rules, or a typed one, provided that the same call would run without asking under them. Returns `None` if
    /// nothing is kept, and the choice is open again.
    pub(super) async fn always(
        &self,
        request: &ApprovalRequest,
        lines: &mut mpsc::Receiver<String>,
    ) -> Option<ApproverReply> {
        let mut offered = match self.rules.problem(request, None) {
            None => request.suggested.first().cloned(),
            Some(problem) => {
                self.screen.err(&visible::line(&problem));
                None
            }
        };
        loop {
            self.offer(request, offered.as_deref());
            let Some(line) = lines.recv().await else {
                return Some(ApproverReply::Nobody);
            };
            match consent(&line) {
                Consent::No => return None,
                Consent::Yes => {
                    if let Some(rule) = offered {
                        let yes = Decision::approve(self.by.as_ref(), self.from);
                        return Some(yes.hold_for(ApprovalScope::Always).with_rule(rule).into());
                    }
                }
                Consent::Rule(rule) => match self.rules.problem(request, Some(&rule)) {
                    None => offered = Some(rule),
                    Some(problem) => self.screen.err(&visible::line(&problem)),
                },
            }
        }
    }

    /// Shows what would be kept, and asks.
    fn offer(&self, request: &ApprovalRequest, rule: Option<&str>) {
        let Some(rule) = rule else {
            self.screen
                .err("type a rule to keep for this workspace; Enter, n or q goes back:");
            return;
        };
        let kept = request.kept_rules(Some(rule));
        for rule in &kept {
            let text = visible::line(&self.redactor.redact(&rule.rule));
            self.screen.err(&format!(
                "keeps for this workspace: {}",
                styled(BOLD, &text)
            ));
            if let Some(covers) = coverage(&rule.rule) {
                self.screen.err(&format!("  {}", visible::line(&covers)));
            }
        }
        for line in self.rules.newly_allowed(&kept) {
            let line = self.redactor.redact(&line);
            self.screen.err(&format!("  {}", visible::line(&line)));
        }
        let changes = request.snapshot.permissions.iter();
        let mut changes = changes.filter_map(|wanted| match &wanted.effect {
            Effect::Apply { command, .. } => Some(command),
            _ => None,
        });
        if let Some(command) = changes.next() {
            let command = visible::line(&self.redactor.redact(command));
            self.screen
                .err(&format!("  only for what this command changes: {command}"));
        } else if kept.iter().any(|rule| rule.tool.is_some()) {
            let tool = visible::line(request.tool.as_str());
            self.screen.err(&format!(
                "  only for {tool}, and only with the same remaining arguments"
            ));
        }
        self.screen.err("keep it? [y/N]  or type another rule:");
    }
}
