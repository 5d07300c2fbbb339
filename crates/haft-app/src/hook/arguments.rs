//! The arguments of an agent's call as rules see them: the agent's own input, and where it works.

use std::collections::BTreeMap;

use haft_hook::{CallAction, HookCall};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::hook::location::Doubt;
use crate::problem::Problem;

/// The members that haft adds to the input.
const OURS: [&str; 2] = ["cwd", "doubts"];

/// Returns the input that rules match. If the agent calls a server's tool through one of its own, it is the input of the server's tool.
pub(super) fn input_of(call: &HookCall) -> &RawValue {
    let nested = call.actions.iter().find_map(|action| match action {
        CallAction::Mcp { .. } => call.arguments(action),
        _ => None,
    });
    nested.unwrap_or(&call.input)
}

/// Returns the folder that a call works in; `None` for a server's tool, which works elsewhere.
pub(super) fn folder_of<'p>(call: &HookCall, cwd: &'p str) -> Option<&'p str> {
    let of_server = |action: &CallAction| matches!(action, CallAction::Mcp { .. });
    (!call.actions.iter().any(of_server)).then_some(cwd)
}

/// Returns the input as it came, with two members added: `cwd`, the folder that the agent works in, where that is not the workspace (`.`),
/// since the policy looks for it there; and `doubts`, what is uncertain about the call, so that no certain call is alike. An input that has
/// such a member itself is also kept whole, as `input`; its other members stay where rules look for them. `folder` is `None` for a server's
/// tool: a `cwd` in its input is its own.
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
            let what = "the tool's input is not a JSON object, so the call cannot be judged";
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
        // The input's own members are for the agent's tool; those that haft adds are for the policy.
        let mut whole = "input".to_owned();
        while own.contains_key(&whole) {
            whole.push('_');
        }
        return Ok(format!("{more}{others},\"{whole}\":{object}}}"));
    }
    let comma = if rest.starts_with('}') { "" } else { "," };
    Ok(format!("{more}{comma}{rest}"))
}

/// Returns every form that a call's arguments may have had when the agent announced it: with its folder or without, with doubts or without.
pub(super) fn announced_forms(input: &RawValue, cwd: &str, doubts: &[Doubt]) -> Vec<String> {
    let forms = [
        (Some(cwd), doubts),
        (Some(cwd), &[]),
        (None, doubts),
        (None, &[]),
    ];
    let forms = forms.map(|(folder, doubts)| arguments(input, folder, doubts).ok());
    forms.into_iter().flatten().collect()
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
