//! Checks whether a written file is well-formed: JSON, TOML and YAML with their parsers.

use std::fmt;
use std::time::Duration;

use globset::GlobBuilder;
use haft::context::CallContext;
use haft::error::ToolError;
use haft::future::BoxFuture;
use haft::workspace::ResolvedPath;
use saphyr_parser::Parser;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::IgnoredAny;

/// Maximum size of a file that is parsed after a write, in bytes.
const MAX_CHECKED: usize = 8 << 20;
/// Maximum time for a configured checker.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);
/// Files named `.json` that usually contain comments.
const FILES_WITH_COMMENTS: [&str; 3] = ["tsconfig", "jsconfig", "devcontainer"];

/// A parser's or checker's verdict on a file as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileCheck {
    /// Whether the file is well-formed.
    pub ok: bool,
    /// What is wrong, or what a checker said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The line, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The column, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
}

/// The finding of a checker's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckerFinding {
    /// True if the file is correct.
    pub ok: bool,
    /// The beginning of the program's output.
    pub message: String,
}

/// Runs the programs that settings configure to check files after a write (`files.check`).
pub trait Checker: Send + Sync + fmt::Debug {
    /// Runs a program from the root of the workspace. The workspace's files were not approved, so the program runs in a jail
    /// or not at all, and its changes are discarded.
    ///
    /// # Errors
    ///
    /// If the program could not run.
    fn check<'a>(
        &'a self,
        argv: Vec<String>,
        time: Duration,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<CheckerFinding, ToolError>>;
}

impl FileCheck {
    pub(crate) fn ok() -> Self {
        Self {
            ok: true,
            message: None,
            line: None,
            column: None,
        }
    }

    fn wrong(message: impl Into<String>, line: usize, column: usize) -> Self {
        Self {
            ok: false,
            message: Some(message.into()),
            line: Some(line),
            column: Some(column),
        }
    }

    fn failure(message: String) -> Self {
        Self {
            ok: false,
            message: Some(message),
            line: None,
            column: None,
        }
    }

    /// Returns the check as a sentence, for the text next to the data.
    pub(crate) fn sentence(&self, what: &str) -> String {
        let message = self.message.as_deref().unwrap_or_default();
        match (self.ok, self.line, self.column) {
            (true, ..) => format!("check passed: {what}"),
            (false, Some(line), Some(column)) => {
                format!("written, but {what} is wrong at line {line}, column {column}: {message}")
            }
            (false, ..) => format!("written, but {what} is wrong: {message}"),
        }
    }
}

/// Checks a file's new text. Returns `None` for a kind of file that is not parsed here.
pub(crate) fn syntax(path: &str, text: &[u8]) -> Option<(&'static str, FileCheck)> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let (stem, extension) = name.rsplit_once('.')?;
    if text.len() > MAX_CHECKED {
        return None;
    }
    match extension.to_ascii_lowercase().as_str() {
        "json"
            if FILES_WITH_COMMENTS
                .iter()
                .any(|known| stem.starts_with(known)) =>
        {
            None
        }
        "json" => Some(("JSON", json(text))),
        "toml" => Some(("TOML", check_utf8(text, toml))),
        "yaml" | "yml" => Some(("YAML", check_utf8(text, yaml))),
        _ => None,
    }
}

/// Returns the command of the first checker whose glob matches the path, or a failed check for an invalid glob.
pub(crate) fn program(
    checkers: &[(String, Vec<String>)],
    place: &ResolvedPath,
) -> Option<Result<Vec<String>, FileCheck>> {
    let path = place.real();
    let glob = |pattern: &str| {
        let whole = if pattern.contains('/') {
            pattern.to_owned()
        } else {
            format!("**/{pattern}")
        };
        GlobBuilder::new(&whole).literal_separator(true).build()
    };
    for (pattern, argv) in checkers {
        match glob(pattern) {
            Ok(glob) if !glob.compile_matcher().is_match(path) => {}
            Ok(_) => {
                let path = path.to_string_lossy();
                let words = argv.iter().map(|word| word.replace("{path}", &path));
                return Some(Ok(words.collect()));
            }
            Err(error) => return Some(Err(FileCheck::failure(format!("files.check: {error}")))),
        }
    }
    None
}

/// Runs a checker in the jail, from the root of the workspace.
pub(crate) async fn run_checker(
    checker: &dyn Checker,
    argv: Vec<String>,
    context: &CallContext,
) -> FileCheck {
    let name = argv.first().cloned().unwrap_or_default();
    match checker.check(argv, CHECK_TIMEOUT, context).await {
        Ok(CheckerFinding { ok: true, .. }) => FileCheck::ok(),
        Ok(found) => FileCheck::failure(format!("{name}: {}", found.message)),
        // The file is already written, so a checker that cannot run does not fail the call.
        Err(error) => FileCheck::failure(format!("{name} did not run: {error}")),
    }
}

fn json(text: &[u8]) -> FileCheck {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    match serde_json::from_slice::<IgnoredAny>(text) {
        Ok(_) => FileCheck::ok(),
        Err(error) => {
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default();
            FileCheck::wrong(message, error.line(), error.column())
        }
    }
}

fn toml(text: &str) -> FileCheck {
    match text.parse::<toml::Table>() {
        Ok(_) => FileCheck::ok(),
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            let before = text.get(..at).unwrap_or(text);
            let line = memchr::memchr_iter(b'\n', before.as_bytes()).count() + 1;
            let start = before.rfind('\n').map_or(0, |at| at + 1);
            FileCheck::wrong(error.message(), line, before[start..].chars().count() + 1)
        }
    }
}

fn yaml(text: &str) -> FileCheck {
    for event in Parser::new_from_str(text) {
        if let Err(error) = event {
            let at = error.marker();
            return FileCheck::wrong(error.info(), at.line(), at.col() + 1);
        }
    }
    FileCheck::ok()
}

fn check_utf8(text: &[u8], check: fn(&str) -> FileCheck) -> FileCheck {
    match std::str::from_utf8(text) {
        Ok(text) => check(text),
        Err(error) => {
            let before = &text[..error.valid_up_to()];
            let line = memchr::memchr_iter(b'\n', before).count() + 1;
            let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
            FileCheck::wrong("not UTF-8", line, before.len() - start + 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, expect: Option<(bool, usize, usize)>) {
        let got = syntax(path, text.as_bytes());
        let got = got.map(|(_, c)| (c.ok, c.line.unwrap_or(0), c.column.unwrap_or(0)));
        assert_eq!(got, expect, "{path}: {text:?}");
    }

    #[test]
    fn verdicts_say_line_and_column() {
        check("a.json", r#"{"a": [1, 2]}"#, Some((true, 0, 0)));
        check("a.json", "{\n  \"a\": 1,\n}", Some((false, 3, 1)));
        check("a.json", "", Some((false, 1, 0)));
        check("A.JSON", "[1", Some((false, 1, 2)));
        check("tsconfig.base.json", "// c\n{}", None);
        check("Cargo.toml", "a = 1\n[b]\nc = 2\n", Some((true, 0, 0)));
        check("Cargo.toml", "a = 1\nb = \n", Some((false, 2, 5)));
        check("x.yaml", "a: 1\nb:\n  - c\n", Some((true, 0, 0)));
        check("x.yml", "a: [1, 2\nb: 3\n", Some((false, 2, 2)));
        check("main.rs", "fn main( {", None);
        check("json", "x", None);
    }

    #[test]
    fn a_file_that_is_not_utf8_says_where() {
        let (_, verdict) = syntax("a.toml", b"a = 1\nb\xff").unwrap();
        assert_eq!((verdict.line, verdict.column), (Some(2), Some(2)));
    }
}
