//! `haft tools`: lists the tools, shows one in full, prints the exact declarations for a dialect.

use std::fmt::Write as _;
use std::sync::Arc;

use haft::spec::{Exposure, ToolSpec};
use haft::toolset::search::SearchHit;
use haft::toolset::{ToolEntry, Toolset as _, ToolsetSnapshot};
use haft_app::app::App;
use haft_app::problem::Problem;
use haft_app::view::tools::{DisabledToolHit, describe, describe_all, find, search_off};
use haft_wire::Dialect;
use serde_json::{Value, json};

use crate::args;
use crate::commands::ExitResult;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::list::{TextTable, Truncation};
use crate::screen::{BOLD, DIM, styled, visible};

/// Lists tools, or shows one.
pub(crate) fn run(at: &Invocation, app: &App, args: &args::Tools) -> ExitResult {
    let tools = app.tools().snapshot();
    if let Some(dialect) = &args.dialect {
        return declarations(at, &tools, args.name.as_deref(), dialect);
    }
    if let Some(query) = &args.search {
        return search(at, app, &tools, query);
    }
    match &args.name {
        Some(name) => one(at, app, name),
        None => list(at, &tools),
    }
}

/// Refuses an empty search and an unknown dialect, before anything is read.
pub(crate) fn refuse(args: &args::Tools) -> Option<Problem> {
    if args.search.as_deref().is_some_and(|q| q.trim().is_empty()) {
        return Some(Problem::usage("`--search` has no words").advise("`haft tools` lists all"));
    }
    let dialect = args.dialect.as_deref().filter(|word| *word != MCP)?;
    let wrong = dialect.parse::<Dialect>().err()?;
    Some(Problem::usage(wrong.to_string()).advise("or `mcp`, as MCP clients get them"))
}

/// The word for the declarations that MCP clients get; the others are those of model providers.
const MCP: &str = "mcp";

fn list(at: &Invocation, tools: &ToolsetSnapshot) -> ExitResult {
    if at.screen.json {
        at.screen.document(&describe_all(tools))?;
        return Ok(Exit::Done);
    }
    at.screen.out(&table(tools.findable()))?;
    Ok(Exit::Done)
}

/// Maximum number of tools that a search shows.
const FOUND: usize = 20;

/// The rank up to which a disabled tool is still shown to the user.
const NEAR: usize = 3;

fn search(at: &Invocation, app: &App, tools: &ToolsetSnapshot, query: &str) -> ExitResult {
    let found = tools.search(query, None, FOUND);
    let off = search_off(app, tools, query, FOUND);
    if at.screen.json {
        at.screen.document(&merged(&found, &off))?;
        return Ok(Exit::Done);
    }
    let near: Vec<&DisabledToolHit> = off.iter().filter(|hit| hit.rank < NEAR).collect();
    if !found.is_empty() {
        at.screen
            .out(&table(found.iter().map(|found| found.entry)))?;
    } else if near.is_empty() {
        at.screen.say("no tool fits; `haft tools` lists all");
    }
    for hit in near {
        let line = format!("{}: {}", hit.spec.name, hit.advice);
        at.screen.say(&visible::line(&line));
    }
    Ok(Exit::Done)
}

/// Returns all matches, best first; a disabled tool says so and how to enable it.
fn merged(found: &[SearchHit<'_>], off: &[DisabledToolHit]) -> Vec<Value> {
    let with = |spec: &ToolSpec, more: Value| {
        let mut shown = describe(spec);
        if let (Value::Object(map), Value::Object(more)) = (&mut shown, more) {
            map.extend(more);
        }
        shown
    };
    let on = found
        .iter()
        .map(|hit| with(hit.entry.spec(), json!({"score": hit.score})));
    let mut all: Vec<Value> = on.collect();
    for hit in off {
        let more = json!({"enabled": false, "advice": hit.advice});
        all.insert(hit.rank.min(all.len()), with(&hit.spec, more));
    }
    all
}

/// Renders one tool per line.
fn table<'a>(entries: impl Iterator<Item = &'a Arc<ToolEntry>>) -> String {
    let columns = [
        ("TOOL", Truncation::Never),
        ("RISK", Truncation::Never),
        ("DESCRIPTION", Truncation::End),
    ];
    let mut list = TextTable::new(&columns);
    for entry in entries {
        let spec = entry.spec();
        let first = sentence(&spec.description);
        let mark = if spec.exposure == Exposure::Deferred {
            "(deferred) "
        } else {
            ""
        };
        let shown = format!("{mark}{first}");
        list.row([spec.name.as_str(), spec.risk.as_str(), &shown]);
    }
    list.render()
}

/// Returns the first sentence of a description, or its first line.
fn sentence(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    line.find(". ").map_or(line, |end| &line[..end])
}

fn one(at: &Invocation, app: &App, name: &str) -> ExitResult {
    let tools = app.tools().snapshot();
    let entry = find(app, &tools, name)?;
    if at.screen.json {
        at.screen.document(&describe(entry.spec()))?;
    } else {
        at.screen.out(&render_spec(entry.spec()))?;
    }
    Ok(Exit::Done)
}

/// Prints the tools as a model provider or an MCP client gets them.
fn declarations(
    at: &Invocation,
    tools: &ToolsetSnapshot,
    name: Option<&str>,
    dialect: &str,
) -> ExitResult {
    let entry = match name {
        None => None,
        Some(name) => match tools.entry(name) {
            Some(entry) => Some(entry),
            None => {
                return Err(
                    Problem::usage(format!("no tool `{name}`")).advise("`haft tools` lists them")
                );
            }
        },
    };
    let mut bytes = match (dialect.parse::<Dialect>(), entry) {
        (Ok(dialect), _) => haft_agent::declarations(tools, dialect, name)
            .json()
            .to_vec(),
        (Err(_), None) => tools.mcp_list().to_vec(),
        (Err(_), Some(entry)) => entry.mcp().to_vec(),
    };
    bytes.push(b'\n');
    at.screen.raw(&bytes)?;
    Ok(Exit::Done)
}

fn render_spec(spec: &ToolSpec) -> String {
    let mut out = format!(
        "{} · {} · from {}\n",
        styled(BOLD, spec.name.as_str()),
        spec.risk,
        visible::line(&spec.source)
    );
    let _ = writeln!(out, "{}", visible::block(&spec.description));
    out.push_str(&parameters(spec));
    out
}

/// Renders the arguments of a tool, one per line: name, type, whether it is required, description.
pub(crate) fn parameters(spec: &ToolSpec) -> String {
    let mut out = String::new();
    let properties = spec
        .input_schema
        .get("properties")
        .and_then(Value::as_object);
    let required = spec.input_schema.get("required").and_then(Value::as_array);
    let needed = |name: &str| required.is_some_and(|list| list.iter().any(|item| item == name));
    for (name, schema) in properties.into_iter().flatten() {
        let text = schema
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let mark = if needed(name) { " (required)" } else { "" };
        let line = format!(
            "  {} {}{mark}",
            visible::line(name),
            styled(DIM, &kind(schema))
        );
        let _ = writeln!(out, "{line}  {}", visible::line(text));
    }
    out
}

/// Returns the type of an argument in a word: `string`, `integer`, `a|b` for an enumeration.
fn kind(schema: &Value) -> String {
    let words = |list: &Value, word: fn(&Value) -> Option<&str>| -> Option<String> {
        let words: Option<Vec<&str>> = list.as_array()?.iter().map(word).collect();
        Some(words?.join("|"))
    };
    if let Some(words) = words(&schema["enum"], Value::as_str) {
        return words;
    }
    if let Some(words) = words(&schema["oneOf"], |choice| choice["const"].as_str()) {
        return words;
    }
    match &schema["type"] {
        Value::String(kind) if kind == "array" => match kind_of_items(schema) {
            Some(items) => format!("list of {items}"),
            None => "list".to_owned(),
        },
        Value::String(kind) => kind.clone(),
        kinds => words(kinds, Value::as_str).unwrap_or_default(),
    }
}

fn kind_of_items(schema: &Value) -> Option<String> {
    let items = kind(schema.get("items")?);
    (!items.is_empty()).then_some(items)
}
