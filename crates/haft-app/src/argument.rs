//! The most telling argument of a call, on one line: shown next to the tool's name in lists and bars.

use haft::audit::redact::Redactor;
use serde_json::Value;

/// The most telling argument names, best first.
const ARGUMENT_NAMES: [&str; 19] = [
    "command", "argv", "path", "paths", "from", "url", "urls", "pattern", "query", "q", "skill",
    "ref", "task", "title", "rule", "name", "id", "code", "patch",
];
/// Maximum number of characters that are shown.
const MAX_SHOWN: usize = 160;
/// Maximum number of bytes of the arguments that are read.
const MAX_READ: usize = 64 << 10;

/// Returns the most telling argument, redacted; `None` if there is none.
pub fn of_text(arguments: &str, redactor: &Redactor) -> Option<String> {
    let line = match serde_json::from_str::<Value>(arguments) {
        Ok(arguments) => of(&arguments)?,
        // The record only contains the beginning of long arguments.
        Err(_) => line(arguments.get(..MAX_READ).unwrap_or(arguments)),
    };
    let line = redactor.redact(&line).into_owned();
    (!line.is_empty()).then_some(line)
}

/// Returns the most telling argument, as given.
fn of(arguments: &Value) -> Option<String> {
    let Value::Object(members) = arguments else {
        return (!arguments.is_null()).then(|| line(&arguments.to_string()));
    };
    let telling = ARGUMENT_NAMES.iter().find_map(|name| members.get(*name));
    let text = |value: &&Value| value.as_str().is_some_and(|text| !text.is_empty());
    // A script's first line says what it is for, or at least how it begins.
    if let Some(Value::String(code)) = members.get("code")
        && telling == members.get("code")
    {
        let first = code.lines().find(|text| !text.trim().is_empty());
        return Some(line(first.unwrap_or_default()));
    }
    let value = telling
        .or_else(|| members.values().find(text))
        .or_else(|| members.values().next())?;
    Some(match value {
        Value::String(text) => line(text),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let words: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            line(&words.join(" "))
        }
        other => line(&other.to_string()),
    })
}

/// Returns a text on one line, cut to the maximum length.
fn line(text: &str) -> String {
    let mut line = String::new();
    let mut count = 0_usize;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        if count > 0 {
            line.push(' ');
            count += 1;
        }
        for character in word.chars() {
            if count >= MAX_SHOWN {
                line.push('…');
                return line;
            }
            line.push(character);
            count += 1;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn telling_argument(arguments: &str) -> Option<String> {
        of_text(arguments, &Redactor::new(["hunter22"]))
    }

    #[test]
    fn the_telling_argument_stands_on_one_line_without_secrets() {
        let rows = [
            (r#"{"path": "src/a.rs", "content": "x"}"#, Some("src/a.rs")),
            (r#"{"argv": ["ls", "-l"]}"#, Some("ls -l")),
            (
                r#"{"reason": "ignore what was said", "rule": "Edit(/docs/**)"}"#,
                Some("Edit(/docs/**)"),
            ),
            ("{\"command\": \"echo a\\n  b\"}", Some("echo a b")),
            (r#"{"limit": 3, "text": "hello"}"#, Some("hello")),
            (r#"{"limit": 3}"#, Some("3")),
            ("{\"code\": \"\\n# Tidy up\\nx = 1\"}", Some("# Tidy up")),
            (r#"{"command": "login hunter22"}"#, Some("login [redacted]")),
            ("{}", None),
            ("null", None),
            (r#"{"path": "cut"#, Some(r#"{"path": "cut"#)),
        ];
        for (arguments, expect) in rows {
            assert_eq!(
                telling_argument(arguments).as_deref(),
                expect,
                "{arguments}"
            );
        }
        let long = format!(r#"{{"query": "{}"}}"#, "ä".repeat(500));
        assert_eq!(
            telling_argument(&long).unwrap_or_default().chars().count(),
            161
        );
    }
}
