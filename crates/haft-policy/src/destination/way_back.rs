//! Which calls may return to where content came from: those that can carry nothing there that did not stand in it.

use serde_json::Value;

use crate::destination::bare_address::is_bare_address;
use crate::judged_call::JudgedCall;
use crate::untrusted::{ConnectionContent, SERVER_EFFECT, origin};
use haft_types::permission::{Effect, Permission};
use haft_types::spec::{ToolClass, ToolSpec};

/// First words of the names of tools that look something up.
const READING: [&str; 10] = [
    "describe", "fetch", "find", "get", "list", "lookup", "read", "search", "show", "view",
];

/// Whether an effect of a call may go to this recipient again, given that content came from there. Whoever wrote the content may want to
/// be sent something, and may read what anybody writes there: a comment on an issue, a mail, a request with a secret in its address.
pub(crate) fn is_free(call: &JudgedCall<'_>, permission: &Permission, to: &str) -> bool {
    match &permission.effect {
        Effect::Connect { url, .. } => match call.spec.class {
            // No other tool has this class, and only haft itself calls it.
            Some(ToolClass::Network) => {
                ConnectionContent::of(call.value()) >= ConnectionContent::NothingBack
            }
            Some(ToolClass::WebFetch) => {
                origin::registry_of(to).is_some() || call.run.links.has(url)
            }
            _ if call.spec.source == "builtin" => call.run.links.has(url),
            // Nobody says what it sends.
            _ => false,
        },
        Effect::Other { kind, .. } if kind == SERVER_EFFECT => {
            looks_up(call.spec) && names_only_seen_links(call, "", call.value())
        }
        _ => true,
    }
}

/// Whether an effect carries nothing of the run's, wherever it leads and whatever the run has read: a connection of a command that only
/// fetches.
pub(crate) fn carries_nothing(call: &JudgedCall<'_>, permission: &Permission) -> bool {
    matches!(&permission.effect, Effect::Connect { .. })
        && call.spec.class == Some(ToolClass::Network)
        && ConnectionContent::of(call.value()) == ConnectionContent::Nothing
}

/// Whether a server's tool only looks something up, as far as its hints and its name say. This takes the server's word: the server gets
/// the arguments in any case, and what is to be stopped is a stranger's text that makes an honest server pass them on.
fn looks_up(spec: &ToolSpec) -> bool {
    let by_name = || {
        let name = spec.name.as_str();
        let own = name.rsplit('.').next().unwrap_or(name);
        let end = own.find(|c: char| !c.is_ascii_lowercase());
        let first = own.get(..end.unwrap_or(own.len())).unwrap_or(own);
        READING.contains(&first)
    };
    spec.annotations.read_only_hint.unwrap_or_else(by_name)
}

/// Whether each address in the value of an argument stood in what was read: a server that fetches pages passes on what the address holds.
fn names_only_seen_links(call: &JudgedCall<'_>, name: &str, value: &Value) -> bool {
    match value {
        Value::String(text) => is_seen(call, name, text),
        Value::Array(all) => all.iter().all(|one| names_only_seen_links(call, name, one)),
        Value::Object(all) => all
            .iter()
            .all(|(name, one)| is_seen(call, "", name) && names_only_seen_links(call, name, one)),
        _ => true,
    }
}

/// Whether a text holds no address, or one that was read, with its scheme or without.
fn is_seen(call: &JudgedCall<'_>, name: &str, text: &str) -> bool {
    let links = &call.run.links;
    let with_scheme = |scheme: &str| links.has(&format!("{scheme}://{}", text.trim()));
    links.has_all_in(text)
        && (!is_bare_address(name, text) || with_scheme("https") || with_scheme("http"))
}
