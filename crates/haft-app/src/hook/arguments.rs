//! The arguments of a foreign call: the agent's own input, and where it works.

use serde_json::value::RawValue;

use crate::problem::Problem;

/// The input as it came, with the folder that the agent works in as `cwd` where that is not the workspace (`.`): there the policy
/// looks for it. An input that has a member of that name is kept whole, as `input`.
///
/// # Errors
/// The input is no JSON object.
pub(super) fn arguments(input: &RawValue, folder: &str) -> Result<String, Problem> {
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
        let members = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(object);
        members.is_ok_and(|members| members.contains_key("cwd"))
    };
    let has_own = has_own();
    if folder == "." && !has_own {
        return Ok(object.to_owned());
    }
    let cwd = serde_json::Value::from(folder);
    if has_own {
        // What the input says is for the agent's tool; where the agent is, is for the policy.
        return Ok(format!("{{\"cwd\":{cwd},\"input\":{object}}}"));
    }
    let comma = if rest.starts_with('}') { "" } else { "," };
    Ok(format!("{{\"cwd\":{cwd}{comma}{rest}"))
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
            let given = arguments(input, cwd).unwrap();
            assert_eq!(given, expected);
        }
        let list: &RawValue = serde_json::from_str("[1]").unwrap();
        assert!(arguments(list, ".").is_err());
    }
}
