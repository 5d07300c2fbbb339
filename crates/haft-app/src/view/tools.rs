//! Tools as data (contract §9).

use std::sync::Arc;

use haft::spec::ToolSpec;
use haft::toolset::{ToolEntry, Toolset as _, ToolsetSnapshot};
use serde_json::{Value, json};

use crate::app::App;
use crate::problem::Problem;

/// Describes all tools that callers may know of, including deferred ones (contract §9).
pub fn describe_all(tools: &ToolsetSnapshot) -> Vec<Value> {
    tools
        .findable()
        .map(|entry| describe(entry.spec()))
        .collect()
}

/// Describes a tool (contract §9).
pub fn describe(spec: &ToolSpec) -> Value {
    let mut shown = json!({
        "name": spec.name,
        "title": spec.title.as_deref().unwrap_or(spec.name.as_str()),
        "description": spec.description,
        "category": spec.category.as_deref().unwrap_or("other"),
        "risk": spec.risk,
        "exposure": spec.exposure,
        "source": spec.source,
        "input_schema": *spec.input_schema,
    });
    if let (Value::Object(map), Some(output)) = (&mut shown, &spec.output_schema) {
        map.insert("output_schema".into(), Value::clone(output));
    }
    shown
}

/// Finds a tool by its name.
///
/// # Errors
/// There is no such tool, or it is off; the advice says what to do.
pub fn find<'a>(
    app: &App,
    tools: &'a ToolsetSnapshot,
    name: &str,
) -> Result<&'a ToolEntry, Problem> {
    if let Some(entry) = tools.entry(name) {
        return Ok(entry);
    }
    let problem = Problem::usage(format!("no tool `{name}`"));
    if let Some(advice) = app.how_to_enable(name) {
        return Err(problem.advise(advice));
    }
    Err(match tools.nearest(name).first() {
        Some(near) => problem.advise(format!("did you mean `{near}`?")),
        None => problem.advise("`haft tools` lists them"),
    })
}

/// A tool that matches a search and is off.
#[derive(Debug, Clone)]
pub struct DisabledToolHit {
    /// The tool's specification.
    pub spec: Arc<ToolSpec>,
    /// Its rank among all matching tools, on or off, from 0.
    pub rank: usize,
    /// How to turn it on.
    pub advice: String,
}

/// Returns up to `most` tools that match a query and are off, best first; `on` are those that are on.
pub fn search_off(
    app: &App,
    on: &ToolsetSnapshot,
    query: &str,
    most: usize,
) -> Vec<DisabledToolHit> {
    let all = app.all().snapshot();
    let hits = all.search(query, None, most);
    let off = hits.into_iter().enumerate().filter_map(|(rank, hit)| {
        let name = hit.entry.spec().name.as_str();
        if on.entry(name).is_some() {
            return None;
        }
        Some(DisabledToolHit {
            spec: Arc::clone(hit.entry.spec()),
            rank,
            advice: app.how_to_enable(name)?,
        })
    });
    off.collect()
}
