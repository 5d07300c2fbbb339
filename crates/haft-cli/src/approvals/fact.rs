//! `Fact`: what a request is about, in one bounded line: the command, the file, the address.

use haft::approval::ApprovalRequest;
use haft::audit::redact::Redactor;
use haft::permission::Effect;
use serde::Serialize;
use serde_json::Value;

/// The longest line, in bytes.
const LONGEST: usize = 400;

/// The deciding fact.
#[derive(Debug, Serialize)]
pub(crate) struct Fact {
    /// What sort of fact: `command`, `diff`, `url`, `arguments`, `question`.
    pub(crate) kind: &'static str,
    /// The line, secrets redacted.
    pub(crate) text: String,
}

impl Fact {
    /// The fact of a request.
    pub(crate) fn of(request: &ApprovalRequest, redactor: &Redactor) -> Self {
        let (kind, text) = found(request);
        let text = redactor.redact_within(&text, LONGEST).into_owned();
        Self { kind, text }
    }
}

fn found(request: &ApprovalRequest) -> (&'static str, String) {
    if let Some(form) = &request.form {
        return ("question", form.title.clone());
    }
    let effects = || request.permissions.iter().map(|p| &p.effect);
    let run = effects().find_map(|effect| match effect {
        Effect::Run { command, .. } => Some(command.clone()),
        _ => None,
    });
    if let Some(first) = run {
        return (
            "command",
            whole_command(&request.arguments).unwrap_or(first),
        );
    }
    if let Some(change) = request.preview.first() {
        let more = request.preview.len() - 1;
        let text = match (&change.to, more) {
            (Some(to), _) => format!("{} → {to}", change.path),
            (None, 0) => change.path.clone(),
            (None, more) => format!("{} and {more} more", change.path),
        };
        return ("diff", text);
    }
    let url = effects().find_map(|effect| match effect {
        Effect::Connect { url, .. } => Some(url.clone()),
        _ => None,
    });
    match url {
        Some(url) => ("url", url),
        None => ("arguments", request.arguments.clone()),
    }
}

/// The command line as it was given: the parts that are judged may be several.
fn whole_command(arguments: &str) -> Option<String> {
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    arguments.get("command")?.as_str().map(str::to_owned)
}
