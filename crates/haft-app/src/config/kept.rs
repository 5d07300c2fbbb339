//! The file of the rules saved with approvals: read as a layer of the settings, and as entries to list and change. A rule in it that does
//! not load covers nothing and blocks nothing.

use std::io::ErrorKind;
use std::path::Path;

use haft::policy::{Policy, PolicyContext, Profile, RuleSet, RuleText};
use toml::{Table, Value};

use crate::config::document::{self, LayerEntry, MAX_BYTES};
use crate::config::layer::{LayerContent, SettingsFile, SettingsLayer};
use crate::plain_file;
use crate::problem::{Problem, SourceLocation};

/// What earlier versions wrote when the last rule was removed: rules added after it made the file unreadable.
const EMPTY_LIST: &str = "allow = []";

/// Reads the file; returns an empty table if there is none.
///
/// # Errors
/// It cannot be read, or is not TOML.
pub(crate) fn read(path: &Path) -> Result<Table, Problem> {
    let shown = path.display().to_string();
    match text_of(path, &shown)? {
        Some(text) => text
            .parse()
            .map_err(|_| match document::parse(&shown, &text) {
                Err(problem) => with_file_advice(problem),
                Ok(_) => damaged_rules("it is not a table", &shown),
            }),
        None => Ok(Table::new()),
    }
}

fn text_of(path: &Path, shown: &str) -> Result<Option<String>, Problem> {
    match plain_file::read(path, MAX_BYTES) {
        Ok(text) => Ok(Some(remove_legacy_list(text))),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(damaged_rules(&e.to_string(), shown)),
    }
}

/// Removes the empty list that earlier versions wrote before the rules.
fn remove_legacy_list(text: String) -> String {
    if text.parse::<Table>().is_ok() {
        return text;
    }
    let lines = text.lines().filter(|line| line.trim() != EMPTY_LIST);
    let without: String = lines.flat_map(|line| [line, "\n"]).collect();
    if without.parse::<Table>().is_ok() {
        without
    } else {
        text
    }
}

fn damaged_rules(what: &str, shown: &str) -> Problem {
    with_file_advice(
        Problem::settings(format!(
            "cannot read the rules saved with approvals: {what}"
        ))
        .at(SourceLocation::named(shown)),
    )
}

fn with_file_advice(problem: Problem) -> Problem {
    problem.advise(
        "fix that line, or move the file away: haft then asks again about the calls that its rules covered",
    )
}

/// Returns the entries of its list, as written.
pub(crate) fn entries(table: &Table) -> &[Value] {
    let allow = table.get("policy").and_then(|policy| policy.get("allow"));
    allow.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Parses an entry as a rule, with the code that parses rules at the start; or returns why it is invalid.
pub(crate) fn rule(entry: &Value, places: &PolicyContext) -> Result<RuleText, String> {
    let read: Result<RuleText, _> = entry.clone().try_into();
    let rule = read.map_err(|e: toml::de::Error| format!("read a rule: {}", e.message()))?;
    let allow = RuleSet {
        allow: vec![rule.clone()],
        ..RuleSet::default()
    };
    let mut builder = Policy::builder(Profile::ReadOnly)
        .classes(haft_builtins::classes())
        .rules(allow.in_layer(SettingsLayer::Always.as_str()));
    if let Some(root) = &places.workspace {
        builder = builder.workspace_root(Path::new(root));
    }
    if let Some(home) = &places.home {
        builder = builder.home(Path::new(home));
    }
    match builder.build() {
        Ok(_) => Ok(rule),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads the file as a layer, without the entries that do not load; returns a line about each of those.
///
/// # Errors
/// The file cannot be read, is not TOML, or contains another setting that is wrong.
pub(crate) fn layer(
    path: &Path,
    places: &PolicyContext,
) -> Result<Option<(LayerContent, Vec<String>)>, Problem> {
    let shown = path.display().to_string();
    let Some(text) = text_of(path, &shown)? else {
        return Ok(None);
    };
    let mut warnings = Vec::new();
    let mut loads = |entry: &Value| match rule(entry, places) {
        Ok(_) => true,
        Err(why) => {
            warnings.push(format!(
                "a rule saved with an approval covers nothing: {why}; `haft policy rules` shows and removes it"
            ));
            false
        }
    };
    // An entry without even the form of a rule must not hide the others.
    let mut given = match document::parse(&shown, &text) {
        Ok(given) => given,
        Err(problem) => {
            let mut table: Table = text
                .parse()
                .map_err(|_| with_file_advice(problem.clone()))?;
            retain(&mut table, &mut loads);
            document::parse(&shown, &table.to_string()).map_err(with_file_advice)?
        }
    };
    for key in &mut given {
        if key.path == ["policy", "allow"] {
            retain_given(key, &mut loads);
        }
    }
    let sheet = LayerContent {
        layer: SettingsLayer::Always,
        file: Some(SettingsFile::new(path, &text)),
        given,
    };
    Ok(Some((sheet, warnings)))
}

fn retain(table: &mut Table, loads: &mut dyn FnMut(&Value) -> bool) {
    let policy = table.get_mut("policy").and_then(Value::as_table_mut);
    let allow = policy.and_then(|policy| policy.get_mut("allow")?.as_array_mut());
    if let Some(allow) = allow {
        allow.retain(|entry| loads(entry));
    }
}

fn retain_given(key: &mut LayerEntry, loads: &mut dyn FnMut(&Value) -> bool) {
    let Value::Array(entries) = &mut key.value else {
        return;
    };
    let keeps: Vec<bool> = entries.iter().map(loads).collect();
    let mut at = keeps.iter();
    entries.retain(|_| at.next().copied().unwrap_or(false));
    let mut at = keeps.iter();
    key.items.retain(|_| at.next().copied().unwrap_or(false));
}
