//! The arguments of a foreign call: the agent's own input, and where it works.

use std::collections::BTreeMap;

use haft_hook::{Action, Call};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::hook::location::Doubt;
use crate::problem::Problem;

/// The members that haft adds.
const OURS: [&str; 2] = ["cwd", "doubts"];

/// The input that rules speak of: that of the tool of a server, where the agent calls it through one of its own.
pub(super) fn input_of(call: &Call) -> &RawValue {
    let nested = call.actions.iter().find_map(|action| match action {
        Action::Mcp { .. } => call.arguments(action),
        _ => None,
    });
    nested.unwrap_or(&call.input)
}

/// The folder that a call works in; none where it is of a server's tool, which works elsewhere.
pub(super) fn folder_of<'p>(call: &Call, place: &'p str) -> Option<&'p str> {
    let of_server = |action: &Action| matches!(action, Action::Mcp { .. });
    (!call.actions.iter().any(of_server)).then_some(place)
}

/// The input as it came, with the folder that the agent works in as `cwd` where that is not the workspace (`.`): there the policy
/// looks for it; and with what is not certain about it as `doubts`, so that no other call is alike. An input that has a member of such a
/// name is kept whole besides, as `input`; its other members stay where rules look for them. No `folder` is for a call that does nothing in it:
/// a tool of a server has its own `cwd`, if any.
///
/// # Errors
/// The input is no JSON object.
pub(super) fn arguments(
    input: &RawValue,
    folder: Option<&str>,
    doubts: &[Doubt],
) -> Result<String, Problem> {
    let text = input.get().trim();
    let (object, rest) = match text.strip_prefix('{') {
        Some(rest) => (text, rest.trim_start()),
        None if text == "null" => ("{}", "}"),
        None => {
            let what = "the tool's input is no JSON object, so the call cannot be judged";
            return Err(Problem::failed(what));
        }
    };
    let own: BTreeMap<String, &RawValue> = serde_json::from_str(object).unwrap_or_default();
    let ours = if folder.is_some() {
        &OURS[..]
    } else {
        &OURS[1..]
    };
    let has_own = ours.iter().any(|name| own.contains_key(*name));
    let mut more = Map::new();
    if let Some(folder) = folder
        && (folder != "." || has_own)
    {
        more.insert("cwd".to_owned(), folder.into());
    }
    if !doubts.is_empty() {
        let texts: Vec<String> = doubts.iter().map(Doubt::to_text).collect();
        more.insert("doubts".to_owned(), texts.into());
    }
    if more.is_empty() {
        return Ok(object.to_owned());
    }
    let others = own.iter().filter(|(name, _)| !more.contains_key(*name));
    let others =
        others.map(|(name, value)| format!(",{}:{}", Value::from(name.as_str()), value.get()));
    let others: String = others.collect();
    let more = Value::Object(more).to_string();
    let more = more.strip_suffix('}').unwrap_or(&more);
    if has_own {
        // What the input says of them is for the agent's tool; where the agent is, is for the policy.
        let mut whole = "input".to_owned();
        while own.contains_key(&whole) {
            whole.push('_');
        }
        return Ok(format!("{more}{others},\"{whole}\":{object}}}"));
    }
    let comma = if rest.starts_with('}') { "" } else { "," };
    Ok(format!("{more}{comma}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_added_where_it_says_something() {
        let rows = [
            ("{\"command\":\"ls\"}", ".", "{\"command\":\"ls\"}"),
            (
                "{\"command\":\"ls\"}",
                "a",
                "{\"cwd\":\"a\",\"command\":\"ls\"}",
            ),
            ("{ }", "a", "{\"cwd\":\"a\"}"),
            ("null", "a", "{\"cwd\":\"a\"}"),
            (
                "{\"cwd\":\"b\"}",
                "a",
                "{\"cwd\":\"a\",\"input\":{\"cwd\":\"b\"}}",
            ),
            (
                "{\"title\":\"x\", \"cwd\":\"b\",\"input\":1}",
                ".",
                "{\"cwd\":\".\",\"input\":1,\"title\":\"x\",\"input_\":{\"title\":\"x\", \"cwd\":\"b\",\"input\":1}}",
            ),
            (
                "{\"cwd\":null}",
                ".",
                "{\"cwd\":\".\",\"input\":{\"cwd\":null}}",
            ),
        ];
        for (input, cwd, expected) in rows {
            let input: &RawValue = serde_json::from_str(input).unwrap();
            let given = arguments(input, Some(cwd), &[]).unwrap();
            assert_eq!(given, expected);
        }
        let own: &RawValue = serde_json::from_str("{\"cwd\":\"secret\"}").unwrap();
        assert_eq!(arguments(own, None, &[]).unwrap(), own.get());
        let list: &RawValue = serde_json::from_str("[1]").unwrap();
        assert!(arguments(list, Some("."), &[]).is_err());
    }
}
