//! Interprets a typed line where a request is shown, and lists the choices with their keys.

use haft::approval::ApprovalRequest;
use haft::spec::Risk;

use crate::screen::{BOLD, YELLOW, styled, visible};

/// Maximum number of columns of a typed line that is quoted.
const MAX_QUOTED: usize = 40;

/// Where a request is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PromptKind {
    /// At a prompt whose call waits for the answer: Enter alone means no.
    Prompt,
    /// In the inbox, one of many pending requests: Enter alone decides nothing.
    Inbox,
}

/// The meaning of a typed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TypedChoice {
    Once,
    Session,
    Always,
    Edit,
    /// No, with a message for the caller.
    No(Option<String>),
    Stop,
    Why,
    /// Go to another request; only in the inbox.
    Go(InboxMove),
    Unclear,
}

/// Where to go in the inbox without a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InboxMove {
    /// The next request.
    Next,
    /// The previous request.
    Back,
    /// Show the list again.
    List,
    /// Leave the inbox.
    Quit,
}

/// Interprets a line.
pub(super) fn choice(line: &str, request: &ApprovalRequest, place: PromptKind) -> TypedChoice {
    let word = line.trim();
    let critical = request.risk == Risk::Critical;
    let lasts = !request.is_decided_each_time();
    let lower = word.to_lowercase();
    match (place, lower.as_str()) {
        (PromptKind::Prompt, "") => return TypedChoice::No(None),
        (PromptKind::Prompt, "q" | "quit") | (PromptKind::Inbox, "x") => return TypedChoice::Stop,
        (PromptKind::Inbox, "q" | "quit") => return TypedChoice::Go(InboxMove::Quit),
        (PromptKind::Inbox, "j" | "skip") => return TypedChoice::Go(InboxMove::Next),
        (PromptKind::Inbox, "k" | "back") => return TypedChoice::Go(InboxMove::Back),
        (PromptKind::Inbox, "l" | "list") => return TypedChoice::Go(InboxMove::List),
        _ => {}
    }
    match lower.as_str() {
        "n" | "no" => TypedChoice::No(None),
        "?" | "why" => TypedChoice::Why,
        // Changed arguments are judged again, but the user could not confirm by name a call that was not shown yet.
        "e" | "edit" if !critical => TypedChoice::Edit,
        "y" | "yes" if !critical => TypedChoice::Once,
        "s" | "session" if lasts && !critical => TypedChoice::Session,
        // The rule is shown, and needs its own confirmation.
        "a" | "always" if lasts => TypedChoice::Always,
        _ if critical && word == request.tool.as_str() => TypedChoice::Once,
        _ => match word.split_once(char::is_whitespace) {
            Some(("n" | "N" | "no" | "No", words)) => {
                TypedChoice::No(Some(words.trim().to_owned()))
            }
            _ => TypedChoice::Unclear,
        },
    }
}

/// Says why a line decides nothing.
pub(super) fn unclear(line: &str, request: &ApprovalRequest) -> String {
    let word = line.trim();
    if word.is_empty() {
        return "nothing is decided yet".to_owned();
    }
    let word = visible::clipped(&visible::line(word), MAX_QUOTED);
    let means_yes =
        ["y", "yes", "s", "session", "e", "edit"].contains(&word.to_lowercase().as_str());
    if request.risk == Risk::Critical && means_yes {
        let tool = visible::line(request.tool.as_str());
        return format!("`{word}` does not run a critical call: type {tool} to run it once");
    }
    format!("`{word}` is not one of the choices")
}

/// Returns the choices, in as many lines as the width requires; `keeps` tells whether a rule could be kept under which the same call
/// would run without asking.
pub(super) fn choices(
    request: &ApprovalRequest,
    place: PromptKind,
    keeps: bool,
    columns: usize,
) -> String {
    let mut words = Vec::new();
    if request.is_question() {
        words.push("y answer".to_owned());
    } else if request.risk == Risk::Critical {
        let tool = visible::line(request.tool.as_str());
        words.push(format!("type {} to run it", styled(BOLD, &tool)));
        words.extend(keeps.then(|| "a always (shows the rule)".to_owned()));
    } else {
        words.extend(["y once", "s session"].map(str::to_owned));
        words.extend(keeps.then(|| "a always (shows the rule)".to_owned()));
        words.push("e edit".to_owned());
    }
    let rest: &[&str] = match place {
        PromptKind::Prompt => &["n no", "n WHY no, with your words", "q no and stop"],
        PromptKind::Inbox => &[
            "n no",
            "n WHY no, with your words",
            "x no and stop",
            "j skip",
            "k back",
            "l list",
            "q quit",
        ],
    };
    words.extend(rest.iter().map(|word| (*word).to_owned()));
    words.push("? why".to_owned());
    let question = if request.is_question() {
        "answer it?"
    } else {
        "run it?"
    };
    fill(&styled(YELLOW, question), &words, columns)
}

/// Returns words after a head, separated by two spaces, wrapped between words.
fn fill(head: &str, words: &[String], columns: usize) -> String {
    let width = |text: &str| visible::columns(&anstream::adapter::strip_str(text).to_string());
    let mut out = head.to_owned();
    let mut used = width(head);
    for word in words {
        let wide = width(word);
        if used + 2 + wide > columns {
            out.push_str("\n  ");
            used = 2;
        } else {
            out.push_str("  ");
            used += 2;
        }
        out.push_str(word);
        used += wide;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::fill;

    #[test]
    fn choices_are_broken_between_words() {
        let words = ["y once", "s session", "n no"].map(str::to_owned);
        let rows = [
            (80, "run it?  y once  s session  n no"),
            (26, "run it?  y once  s session\n  n no"),
            (12, "run it?\n  y once\n  s session\n  n no"),
            (1, "run it?\n  y once\n  s session\n  n no"),
        ];
        for (columns, expect) in rows {
            assert_eq!(fill("run it?", &words, columns), expect, "{columns}");
        }
    }
}
