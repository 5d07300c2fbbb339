//! The arguments of a foreign call: the agent's own input, and where it works.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::hook::location::Doubt;
use crate::problem::Problem;

/// The input as it came, with the folder that the agent works in as `cwd` where that is not the workspace (`.`): there the policy
/// looks for it; and with what is not certain about it as `doubts`, so that no other call is alike. An input that has a member of such a
/// name is kept whole, as `input`.
///
/// # Errors
/// The input is no JSON object.
pub(super) fn arguments(
    input: &RawValue,
    folder: &str,
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
    let has_own = || {
        let members = serde_json::from_str::<Map<String, Value>>(object);
        members.is_ok_and(|members| {
            ["cwd", "doubts"]
                .iter()
                .any(|own| members.contains_key(*own))
        })
    };
    let has_own = has_own();
    let mut more = Map::new();
    if folder != "." || has_own {
        more.insert("cwd".to_owned(), folder.into());
    }
    if !doubts.is_empty() {
        let texts: Vec<String> = doubts.iter().map(Doubt::to_text).collect();
        more.insert("doubts".to_owned(), texts.into());
    }
    if more.is_empty() {
        return Ok(object.to_owned());
    }
    let more = Value::Object(more).to_string();
    let more = more.strip_suffix('}').unwrap_or(&more);
    if has_own {
        // What the input says is for the agent's tool; where the agent is, is for the policy.
        return Ok(format!("{more},\"input\":{object}}}"));
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
                "{\"cwd\":null}",
                ".",
                "{\"cwd\":\".\",\"input\":{\"cwd\":null}}",
            ),
        ];
        for (input, cwd, expected) in rows {
            let input: &RawValue = serde_json::from_str(input).unwrap();
            let given = arguments(input, cwd, &[]).unwrap();
            assert_eq!(given, expected);
        }
        let list: &RawValue = serde_json::from_str("[1]").unwrap();
        assert!(arguments(list, ".", &[]).is_err());
    }
}
