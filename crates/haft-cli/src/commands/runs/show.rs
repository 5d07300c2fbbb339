//! `haft runs show`: shows a run's calls with their arguments and results, or one call in full.

use std::fmt::Write as _;

use haft::call::RunId;
use haft::result::{PartMark, Status};
use haft_app::app::App;
use haft_app::problem::Problem;
use haft_app::view::runs::RunListItem;
use haft_app::view::{runs, services, timeline, when};
use serde_json::{Value, json};

use crate::args::RunSelector;
use crate::commands::ExitResult;
use crate::commands::call::{colour, data};
use crate::commands::runs::outcome;
use crate::commands::runs::services::{exposed_lines, lines};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::{self, BOLD, DIM, RED, is_terminal, styled, visible};

/// Maximum number of lines of a result in the list of calls.
const LINES: usize = 6;
/// Columns for a call's tool and argument if stdout is not a screen.
const WIDE: usize = 200;

/// Shows a run, or one of its calls in full.
pub(super) async fn run(at: &Invocation, app: &App, of: &RunSelector) -> ExitResult {
    if at.screen.json {
        let mut events = runs::events(app, &of.run).await?;
        if let Some(call) = &of.call {
            events.retain(|event| text(event, "call") == call);
            known(of, call, events.is_empty())?;
        }
        let running = services::of_run(app, &of.run).await;
        let exposed = services::exposed(app, &of.run).await;
        let two = runs::rule_of_two(app, &of.run).await?;
        at.screen.document(
            &json!({"run": of.run, "events": events, "services": running, "exposed": exposed, "rule_of_two": two}),
        )?;
        return Ok(Exit::Done);
    }
    let calls = timeline::calls(app, &of.run).await?;
    if let Some(call) = &of.call {
        let one = calls.iter().find(|one| text(one, "call") == call);
        known(of, call, one.is_none())?;
        at.screen.out(&one.map(whole).unwrap_or_default())?;
        return Ok(Exit::Done);
    }
    let listed = runs::list_of(app, Some(vec![RunId::new(of.run.as_str())])).await?;
    at.screen.out(&head(&of.run, listed.first()))?;
    let two = runs::rule_of_two(app, &of.run).await?;
    if !two.is_none() {
        let held = format!("Rule of Two: has {}\n", two.words().join(", "));
        at.screen.out(&styled(DIM, &held))?;
    }
    let running = services::of_run(app, &of.run).await;
    at.screen.out(&lines(&running))?;
    let exposed = services::exposed(app, &of.run).await;
    at.screen.out(&exposed_lines(&exposed))?;
    for one in &calls {
        at.screen.out(&row(&of.run, one))?;
    }
    Ok(Exit::Done)
}

fn known(of: &RunSelector, call: &str, missing: bool) -> Result<(), Problem> {
    if !missing {
        return Ok(());
    }
    let problem = Problem::usage(format!("run {} has no call `{call}`", of.run));
    Err(problem.advise(format!("haft runs show {} lists its calls", of.run)))
}

fn text<'a>(of: &'a Value, name: &str) -> &'a str {
    of.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the facts about the run: id, outcome, time, client, workspace.
fn head(run: &str, listed: Option<&RunListItem>) -> String {
    let mut facts = Vec::new();
    if let Some(listed) = listed {
        facts.push(outcome(listed));
        facts.push(when::ago(&listed.started));
        let from = listed.client.as_ref().unwrap_or(&listed.door);
        facts.push(visible::line(from));
        facts.extend(listed.workspace.as_deref().map(visible::line));
    }
    let run = styled(BOLD, &visible::line(run));
    format!("{run}  {}\n", styled(DIM, &facts.join(" · ")))
}

/// Returns a call: how it ended, its arguments, how long it took, and the beginning of its result.
fn row(run: &str, call: &Value) -> String {
    let indent = if call.get("parent").is_some() {
        "  "
    } else {
        ""
    };
    let id = text(call, "call");
    let room = if is_terminal() { screen::width() } else { WIDE };
    let asked = format!("{} {}", text(call, "tool"), text(call, "argument"));
    let asked = visible::clipped(&visible::line(asked.trim_end()), room.saturating_sub(34));
    let took = call.get("duration_ms").and_then(Value::as_f64);
    let took = took.map(|took| styled(DIM, &format!("({})", when::duration(took))));
    let mut out = format!(
        "{indent}{:<8} {} {asked} {}\n",
        visible::line(id),
        status(call),
        took.unwrap_or_default()
    );
    let answer = answer(call);
    let lines: Vec<&str> = answer.lines().collect();
    for line in lines.iter().take(LINES) {
        let line = visible::clipped(line, room.saturating_sub(indent.len() + 9));
        let _ = writeln!(out, "{indent}         {}", styled(DIM, &line));
    }
    if lines.len() > LINES {
        let more = lines.len() - LINES;
        let more = format!("… {more} more lines: haft runs show {run} {id}");
        let _ = writeln!(out, "{indent}         {}", styled(DIM, &more));
    }
    out
}

fn status(call: &Value) -> String {
    let word = match text(call, "status") {
        "" => "not ended",
        word => word,
    };
    let padded = format!("{word:<9}");
    match serde_json::from_value::<Status>(Value::from(word)) {
        Ok(status) => styled(colour(status), &padded),
        Err(_) => styled(DIM, &padded),
    }
}

/// Returns what a reader gets of the call, each part with its mark.
fn parts(call: &Value) -> Vec<(PartMark, String)> {
    let parts = call.get("rendered").and_then(Value::as_array);
    let parts = parts.into_iter().flatten().filter_map(|part| {
        let mark = serde_json::from_value(part.get("mark")?.clone()).ok()?;
        let given = part.get("text")?.as_str()?;
        let shown = match mark {
            PartMark::Data => data::render(given),
            PartMark::Details => data::details(given),
            _ => visible::block(given),
        };
        Some((mark, shown))
    });
    parts.collect()
}

/// Returns the call's answer: why it failed, what its tool gave, and notes.
fn answer(call: &Value) -> String {
    let mut out = String::new();
    for (mark, text) in parts(call) {
        if mark == PartMark::Note {
            out.push_str("note: ");
        }
        let _ = writeln!(out, "{}", text.trim_end());
    }
    out
}

/// Returns everything that the record holds of one call.
fn whole(call: &Value) -> String {
    let mut out = format!(
        "{} {} {}\n",
        styled(BOLD, &visible::line(text(call, "call"))),
        status(call),
        visible::line(text(call, "tool"))
    );
    let names = [
        "started",
        "ended",
        "verdict",
        "rule",
        "decided_by",
        "approval",
        "parent",
    ];
    for name in names {
        let value = text(call, name);
        if !value.is_empty() {
            let value = visible::line(value);
            let _ = writeln!(out, "{} {value}", styled(DIM, &format!("{name:<10}")));
        }
    }
    if let Some(review) = call.get("review") {
        let _ = writeln!(out, "{} {}", styled(DIM, "reviewer  "), reviewed(review));
    }
    section(&mut out, "arguments", &arguments(text(call, "arguments")));
    section(&mut out, "summary", &visible::block(text(call, "summary")));
    for (mark, given) in parts(call) {
        let given = match mark {
            PartMark::Status if call.get("error").is_some() => styled(RED, &given),
            _ => given,
        };
        section(&mut out, mark.as_str(), &given);
    }
    let kept = call.get("artifacts").and_then(Value::as_array);
    let kept = kept.into_iter().flatten().filter_map(Value::as_str);
    let kept: Vec<String> = kept
        .map(|one| format!("haft artifacts get {}", visible::line(one)))
        .collect();
    section(&mut out, "artifacts", &kept.join("\n"));
    out
}

/// Returns what a reviewer said of a call's request, in one line.
fn reviewed(review: &Value) -> String {
    let word = match text(review, "verdict") {
        "" => "no answer",
        _ if review.get("failed").is_some() => "no verdict",
        word => word,
    };
    let (model, reason) = (text(review, "model"), text(review, "reason"));
    let opinion = match text(review, "opinion") {
        "" => String::new(),
        why => format!(" (an opinion: {why})"),
    };
    visible::line(&format!("{model}: {word}: “{reason}”{opinion}"))
}

fn section(out: &mut String, name: &str, text: &str) {
    if !text.trim().is_empty() {
        let name = styled(DIM, &visible::line(name));
        let _ = writeln!(out, "\n{name}\n{}", text.trim_end());
    }
}

/// Returns the arguments, one member per line; as recorded if only their beginning is recorded.
fn arguments(recorded: &str) -> String {
    match serde_json::from_str::<Value>(recorded) {
        Ok(value) => visible::block(&serde_json::to_string_pretty(&value).unwrap_or_default()),
        Err(_) => visible::block(recorded),
    }
}
