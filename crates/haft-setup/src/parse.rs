//! Parses a settings file as JSON with comments, TOML or YAML, by its extension.

use std::path::Path;

use serde_json::{Map, Value};

use crate::edit::{EditError, jsonc, toml};
use crate::problem::Problem;

/// Parses a text as an object. The error names the file, the line and the column.
pub(crate) fn parse(file: &Path, text: &str) -> Result<Map<String, Value>, Problem> {
    let read = value(file, text).and_then(|value| match value {
        Value::Object(root) => Ok(root),
        Value::Null => Ok(Map::new()),
        _ => Err(EditError::at("it does not hold named members", 0..1)),
    });
    read.map_err(|wrong| {
        let failed = format!("cannot read {}", file.display());
        let problem = wrong.problem(&failed, file, text);
        problem.advise("correct the file there, then run the command again")
    })
}

fn value(file: &Path, text: &str) -> Result<Value, EditError> {
    let ends = |ends: &[&str]| {
        let name = file.extension().and_then(std::ffi::OsStr::to_str);
        name.is_some_and(|name| ends.contains(&name))
    };
    if ends(&["toml"]) {
        let table = toml::parse(text)?;
        serde_json::to_value(table).map_err(|e| EditError::new(e.to_string()))
    } else if ends(&["yaml", "yml"]) {
        haft::skill::read_yaml(text).map_err(|why| of_yaml(text, &why))
    } else {
        jsonc::read(text)
    }
}

/// Takes the position out of a message of the YAML reader: `line 3, column 5: …`.
fn of_yaml(text: &str, message: &str) -> EditError {
    let read = || {
        let (line, rest) = message.strip_prefix("line ")?.split_once(", column ")?;
        let (column, what) = rest.split_once(": ")?;
        let lines = text.split_inclusive('\n');
        let before = lines.take(line.parse::<usize>().ok()?.checked_sub(1)?);
        let begin: usize = before.map(str::len).sum();
        let column = column.parse::<usize>().ok()?.checked_sub(1)?;
        let inside = text.get(begin..)?.chars().take(column);
        let at = begin + inside.map(char::len_utf8).sum::<usize>();
        Some(EditError::at(what, at..at))
    };
    read().unwrap_or_else(|| EditError::new(message))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::parse;

    #[test]
    fn every_parse_error_names_the_file_the_line_and_the_column() {
        for (file, text, place) in [
            ("a.json", "{\n  \"a\": }", "a.json:2:8"),
            ("a.json", "{\"a\": 1", "a.json:1:1"),
            ("a.json", "[]", "a.json:1:1"),
            ("a.toml", "a = \n", "a.toml:1:5"),
            ("a.toml", "x = 1\na = \"b", "a.toml:2:"),
            ("a.toml", "x = 1\na = [", "a.toml:2:"),
            ("a.toml", "x = 1\n[a", "a.toml:2:"),
            ("a.toml", "x", "a.toml:1:"),
            ("a.yaml", "a: 1\nb: [", "a.yaml:"),
            ("a.yaml", "a: 1\n  b: \"x", "a.yaml:"),
            ("a.yml", "- 1\n", "a.yml:1:1"),
        ] {
            let refused = parse(Path::new(file), text).unwrap_err();
            let said = refused.place().unwrap().to_string();
            assert!(said.starts_with(place), "{text:?}: {said}: {refused}");
            assert!(refused.place().unwrap().spot.is_some(), "{text:?}");
            assert!(!refused.what().contains("column"), "{refused}");
            assert!(refused.advice().is_some(), "{refused}");
        }
    }
}
