//! Converts between dialects: tools of unsupported kinds, the arguments of a call, unique call ids.

use std::borrow::Cow;
use std::collections::HashSet;

use haft_json::escape::string;
use serde_json::value::RawValue;

use crate::declared::Grammar;
use crate::reply::{Call, CallKind};
use crate::strict::DeclarationLoss;

/// Returns a report of what was lost.
pub(crate) fn lost(tool: &str, at: &str, what: &str) -> DeclarationLoss {
    DeclarationLoss {
        tool: tool.to_owned(),
        at: at.to_owned(),
        what: what.to_owned(),
    }
}

/// Returns the name of a provider's declaration, for a report.
pub(crate) fn named(spec: &RawValue) -> String {
    let members = haft_json::members::members(spec.get()).unwrap_or_default();
    let text = |name: &str| {
        let member = members.iter().find(|member| member.is(name))?;
        serde_json::from_str::<String>(member.value().get()).ok()
    };
    let first = || serde_json::from_str(members.first()?.key()).ok();
    text("name")
        .or_else(|| text("type"))
        .or_else(first)
        .unwrap_or_default()
}

/// Writes the schema of the single argument that replaces a freeform tool's text.
pub(crate) fn input(grammar: Option<&Grammar>, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"type":"object","properties":{"input":{"type":"string""#);
    if let Some(grammar) = grammar {
        out.extend_from_slice(b",\"description\":");
        let (syntax, definition) = (&grammar.syntax, &grammar.definition);
        string(
            out,
            &format!("A text of this {syntax} grammar:\n{definition}"),
        );
    }
    out.extend_from_slice(br#"}},"required":["input"],"additionalProperties":false}"#);
}

/// Returns the arguments of a call as a JSON object. A freeform text becomes the single argument `input`; anything that is not an object is
/// wrapped in one whose member says so, as Anthropic's page on fine-grained streaming specifies.
pub(crate) fn arguments(call: &Call) -> Cow<'_, str> {
    match call.kind {
        CallKind::Freeform => Cow::Owned(within("input", &call.arguments)),
        _ => object(&call.arguments),
    }
}

/// Returns a function's arguments as a JSON object.
pub(crate) fn object(arguments: &str) -> Cow<'_, str> {
    let text = arguments.trim();
    if text.is_empty() {
        return Cow::Borrowed("{}");
    }
    if text.starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(within("INVALID_JSON", arguments))
}

fn within(member: &str, text: &str) -> String {
    let mut out = format!("{{\"{member}\":").into_bytes();
    string(&mut out, text);
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

/// The ids of calls in one request: a provider refuses duplicates, and another provider's ids need not be unique.
#[derive(Debug, Default)]
pub(crate) struct CallIds(HashSet<String>);

impl CallIds {
    /// Records an id of a turn that is sent back unchanged.
    pub(crate) fn note(&mut self, id: &str) {
        self.0.insert(id.to_owned());
    }

    /// Returns an id for a call of another dialect: letters, digits, `_` and `-`, and different from all other calls.
    pub(crate) fn unique(&mut self, id: &str) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let mut base: String = id.chars().map(|c| if plain(c) { c } else { '_' }).collect();
        if base.is_empty() {
            base.push_str("call");
        }
        let mut unique = base.clone();
        let mut count = 1;
        while !self.0.insert(unique.clone()) {
            count += 1;
            unique = format!("{base}-{count}");
        }
        unique
    }
}

#[cfg(test)]
mod tests {
    use super::{CallIds, object};

    #[test]
    fn arguments_that_are_no_object_are_wrapped_in_one() {
        let rows = [
            (r#"{"a": 1}"#, r#"{"a": 1}"#),
            ("", "{}"),
            ("  ", "{}"),
            (r#"{"a": "#, r#"{"INVALID_JSON":"{\"a\": "}"#),
            ("[1]", r#"{"INVALID_JSON":"[1]"}"#),
            ("{} {}", r#"{"INVALID_JSON":"{} {}"}"#),
        ];
        for (arguments, expect) in rows {
            assert_eq!(object(arguments), expect);
        }
    }

    #[test]
    fn an_id_is_made_unique_and_of_plain_letters() {
        let mut ids = CallIds::default();
        ids.note("a");
        let rows = [
            ("a", "a-2"),
            ("a", "a-3"),
            ("call.1", "call_1"),
            ("", "call"),
            ("é", "_"),
        ];
        for (id, expect) in rows {
            assert_eq!(ids.unique(id), expect);
        }
    }
}
