//! Parts of a call in words, short enough for a sentence.

use crate::judged_call::JudgedCall;
use crate::protected::GIT;
use haft_types::permission::Effect;
use haft_types::text::visible::short_path;

/// Maximum length of a quoted part of a call in a sentence, in characters.
pub(crate) const MAX_QUOTE: usize = 160;

/// Returns the text on one line, short enough for a sentence.
pub(crate) fn clip(text: &str) -> String {
    let mut short: String = text
        .chars()
        .take(MAX_QUOTE)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(MAX_QUOTE).is_some() {
        short.push('…');
    }
    short
}

/// Returns the value of an effect, short enough for a sentence.
fn value(effect: &Effect) -> String {
    match effect.path() {
        Some(claim) => short_path(&claim.path, MAX_QUOTE),
        None => clip(effect.value()),
    }
}

/// Describes an effect in words: `writing src/a.rs`.
pub(crate) fn phrase(call: &JudgedCall<'_>, effect: &Effect) -> String {
    let value = value(effect);
    match effect {
        Effect::Call => format!("calls of {}", call.spec.name),
        Effect::Read(_) => format!("reading {value}"),
        Effect::Write(_) => format!("writing {value}"),
        Effect::Remove(_) => format!("removing {value}"),
        Effect::Run { jailed: true, .. } => format!("running {value}"),
        Effect::Run { jailed: false, .. } => format!("running {value} without the jail"),
        Effect::Apply { .. } => format!("applying what {value} changed"),
        Effect::Connect { .. } => match effect.method_shown() {
            Some(method) => format!("sending {} to {value}", clip(method)),
            None => format!("connecting to {value}"),
        },
        Effect::Sign { by, .. } => format!("using a login for {value} ({})", clip(by)),
        Effect::Remember { .. } => format!("writing to the memory {value}"),
        Effect::Question => "asking the user".to_owned(),
        Effect::Other { kind, .. } => format!("{} {value}", clip(kind)),
    }
}

/// Says which link gives the effect's path its name, as a clause; empty if none does.
pub(crate) fn by_link(effect: &Effect) -> String {
    let Some(claim) = effect.path() else {
        return String::new();
    };
    let Some(target) = claim.target.as_deref() else {
        return String::new();
    };
    let mut link: Vec<&str> = claim.path.split('/').collect();
    let mut to: Vec<&str> = target.split('/').collect();
    while !link.is_empty() && link.last() == to.last() {
        link.pop();
        to.pop();
    }
    // A repository in a folder of another name is not a link.
    if link.is_empty() || link.last() == Some(&GIT) {
        return String::new();
    }
    let (link, to) = (short_path(&link.join("/"), MAX_QUOTE), to.join("/"));
    match &*to {
        "" | "." => format!(
            ": {link} is a link to the workspace itself, so that everything in it has a name below {link}; remove the link, or give the rule another path"
        ),
        to => format!(" ({link} leads to {})", short_path(to, MAX_QUOTE)),
    }
}

/// Describes an effect as what needs approval: `to write src/a.rs`.
pub(crate) fn aim(call: &JudgedCall<'_>, effect: &Effect) -> String {
    let value = value(effect);
    match effect {
        Effect::Call => format!("to call {}", call.spec.name),
        Effect::Read(_) => format!("to read {value}"),
        Effect::Write(_) => format!("to write {value}"),
        Effect::Remove(_) => format!("to remove {value}"),
        Effect::Run { jailed: true, .. } => format!("to run {value}"),
        Effect::Run { jailed: false, .. } => format!("to run {value} without the jail"),
        Effect::Apply { .. } => format!("to apply what {value} changed"),
        Effect::Connect { .. } => match effect.method_shown() {
            Some(method) => format!("to send {} to {value}", clip(method)),
            None => format!("to connect to {value}"),
        },
        Effect::Sign { by, .. } => format!("to use a login for {value} ({})", clip(by)),
        Effect::Remember { .. } => format!("to write to the memory {value}"),
        Effect::Question => "to ask the user".to_owned(),
        // The tool names it in words of its own.
        Effect::Other { kind, .. } => format!("for {} {value}", clip(kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::by_link;
    use haft_types::permission::{Effect, PathClaim};

    #[test]
    fn a_denial_says_which_link_gives_a_path_its_name() {
        for (path, target, says) in [
            (
                "secret/k",
                "k",
                ": secret is a link to the workspace itself,",
            ),
            (
                "a/secret",
                ".",
                ": a/secret is a link to the workspace itself,",
            ),
            ("m/1.sql", "db/1.sql", " (m leads to db)"),
            ("m/x/1", "db/x/1", " (m leads to db)"),
            ("conf", "real/dev", " (conf leads to real/dev)"),
            ("bare/.git/config", "bare/config", ""),
            ("same", "same", ""),
        ] {
            let claim = PathClaim {
                path: path.to_owned(),
                target: Some(target.to_owned()),
            };
            let said = by_link(&Effect::Write(claim));
            assert!(said.starts_with(says), "{path}: {said}");
            assert_eq!(said.is_empty(), says.is_empty(), "{path}: {said}");
        }
        let plain = Effect::Write(PathClaim::plain("a"));
        assert_eq!(by_link(&plain), "");
    }
}
