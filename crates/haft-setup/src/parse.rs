//! Parses a settings file as JSON with comments, TOML or YAML, by its extension.

use std::path::Path;

use serde_json::{Map, Value};

use crate::edit::{jsonc, toml};
use crate::problem::{Problem, SourceLocation};

/// Parses a text as an object.
pub(crate) fn parse(file: &Path, text: &str) -> Result<Map<String, Value>, Problem> {
    let wrong = |what: String| {
        Problem::usage(format!("cannot read {}: {what}", file.display()))
            .at(SourceLocation::file(file))
    };
    let ends = |ends: &[&str]| {
        let name = file.extension().and_then(std::ffi::OsStr::to_str);
        name.is_some_and(|name| ends.contains(&name))
    };
    let value = if ends(&["toml"]) {
        let table = toml::parse(text).map_err(|e| wrong(e.what))?;
        serde_json::to_value(table).map_err(|e| wrong(e.to_string()))?
    } else if ends(&["yaml", "yml"]) {
        haft::skill::read_yaml(text).map_err(wrong)?
    } else {
        jsonc::read(text).map_err(|e| {
            let shown = file.display().to_string();
            Problem::usage(format!("cannot read {shown}: {}", e.what))
                .at(SourceLocation::in_text(&shown, text, e.at))
        })?
    };
    match value {
        Value::Object(root) => Ok(root),
        Value::Null => Ok(Map::new()),
        _ => Err(wrong("it does not hold named members".to_owned())),
    }
}
