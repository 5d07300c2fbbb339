//! The deciding fact of an approval in full: the command, the diff, the URL, or else the arguments; and the conditions of the call.

use std::borrow::Cow;

use haft::approval::ApprovalRequest;
use haft::approval::snapshot::CallSnapshot;
use haft::audit::redact::Redactor;
use haft::permission::{Effect, Verdict};
use haft_app::view::coverage::coverage;
use serde_json::{Map, Value};

use crate::screen::{BOLD, DIM, RED, YELLOW, styled, visible};
use crate::terminal::changes;

pub(crate) use changes::sides;

/// Arguments that a request shows in a format of their own.
const IN_COMMAND: [&str; 4] = ["command", "argv", "cwd", "env"];
const IN_ADDRESS: [&str; 2] = ["url", "urls"];
/// The arguments of a command's connection that are shown in a format of their own.
const IN_CONNECTION: [&str; 10] = [
    "program", "host", "port", "leads_to", "request", "also", "login", "carries", "command", "task",
];
const IN_PREVIEW: [&str; 6] = ["path", "content", "edits", "patch", "from", "to"];
/// Arguments that link a request for a command's changes to them: the diff shows the changes.
const IN_CHANGES: [&str; 4] = ["run", "view", "part", "sha256"];
/// The tools that ask for a command's connection and for its use of a login.
const CONNECT: &str = "connect";
const SIGN: &str = "sign";

/// Returns the lines to show, safe to print and without secrets.
pub(crate) fn lines(request: &ApprovalRequest, redactor: &Redactor) -> Vec<String> {
    let arguments = match serde_json::from_str(&request.arguments) {
        Ok(Value::Object(arguments)) => arguments,
        _ => Map::new(),
    };
    let mut out = run(request, &arguments);
    let mut shown: &[&str] = if out.is_empty() { &[] } else { &IN_COMMAND };
    if let Some(known) = reached(request, &arguments, &mut out) {
        shown = known;
    }
    if of_command(request)
        && let Some(line) = arguments.get("command").and_then(Value::as_str)
    {
        out.extend(command_lines(line));
    }
    let changed = changes::lines(&request.id, &without_secrets(request, redactor));
    if !changed.is_empty() {
        out.extend(changed);
        shown = match request.tool.as_str() {
            "apply_changes" => &IN_CHANGES,
            _ => &IN_PREVIEW,
        };
    }
    if let Some(rule) = request.proposal() {
        let reason = arguments.get("reason").and_then(Value::as_str);
        out.push(format!("allow {}", styled(BOLD, &visible::line(rule))));
        out.extend(coverage(rule).map(|covers| format!("  {}", visible::line(&covers))));
        out.push(format!("  “{}”", visible::line(reason.unwrap_or_default())));
        shown = &["rule", "reason"];
    }
    if out.is_empty() {
        out.extend(all(request, &arguments));
    } else {
        out.extend(rest(&arguments, shown));
    }
    out.extend(surroundings(request));
    let text = out.join("\n");
    redactor
        .redact_exactly(&text)
        .lines()
        .map(str::to_owned)
        .collect()
}

/// Adds the places that a request is about, and the logins; returns the arguments that this shows.
fn reached(
    request: &ApprovalRequest,
    arguments: &Map<String, Value>,
    out: &mut Vec<String>,
) -> Option<&'static [&'static str]> {
    let mut shown: Option<&'static [&'static str]> = None;
    for permission in &request.snapshot.permissions {
        if let Effect::Sign { purpose, by } = &permission.effect {
            out.push(login(purpose, arguments));
            out.push(field("by", &visible::line(by)));
            shown = Some(&IN_CONNECTION);
        }
        if let Effect::Connect {
            url,
            host,
            method,
            leads_to,
        } = &permission.effect
        {
            if request.tool.as_str() == CONNECT {
                let place = connect(url, host);
                out.push(connection(&place, method.as_deref(), arguments));
                shown = Some(&IN_CONNECTION);
            } else {
                out.push(connect(url, host));
                shown = Some(&IN_ADDRESS);
            }
            out.extend(
                leads_to
                    .iter()
                    .map(|to| field("at", &styled(YELLOW, &format!("{to}, a private address")))),
            );
        }
    }
    shown
}

/// Returns the request's files and meanings without secrets. Each text is searched as it is and by itself, so that no
/// text around a secret can hide it.
fn without_secrets(request: &ApprovalRequest, redactor: &Redactor) -> CallSnapshot {
    let mut snapshot = request.snapshot.clone();
    snapshot.visit_texts(&mut |text| {
        if let Cow::Owned(redacted) = redactor.redact_exactly(text) {
            *text = redacted;
        }
    });
    snapshot
}

/// Returns all arguments as they are.
fn all(request: &ApprovalRequest, arguments: &Map<String, Value>) -> Vec<String> {
    let text = if arguments.is_empty() {
        request.arguments.clone()
    } else {
        serde_json::to_string_pretty(arguments).unwrap_or_default()
    };
    visible::block(&text).lines().map(str::to_owned).collect()
}

/// Returns the arguments not shown yet: approving the call approves them, too.
fn rest(arguments: &Map<String, Value>, shown: &[&str]) -> Vec<String> {
    let rest = arguments
        .iter()
        .filter(|(name, _)| !shown.contains(&name.as_str()));
    let line = |(name, value): (&String, &Value)| {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        field(name, &visible::line(&value))
    };
    rest.map(line).collect()
}

/// Returns what the settings fill in and decide.
fn surroundings(request: &ApprovalRequest) -> Vec<String> {
    let bound = request.bound.iter().map(|(name, value)| {
        let value = visible::line(&value.to_string());
        field(name, &format!("{value} (from the settings)"))
    });
    let is_shown = |name: &str| of_command(request) && IN_CONNECTION.contains(&name);
    let conditions = request.snapshot.conditions.iter();
    let conditions = conditions.filter(|condition| !is_shown(&condition.name));
    let conditions = conditions.map(|condition| {
        styled(
            DIM,
            &field(&condition.name, &visible::line(&condition.value)),
        )
    });
    bound.chain(conditions).collect()
}

fn field(name: &str, value: &str) -> String {
    format!("  {:<6} {value}", visible::line(name))
}

/// Returns the whole command line with its folder and variables, then its parts: each command separately, and what it
/// writes, each with the policy's verdict.
fn run(request: &ApprovalRequest, arguments: &Map<String, Value>) -> Vec<String> {
    let permissions = &request.snapshot.permissions;
    let effects = || permissions.iter().map(|p| &p.effect).enumerate();
    let parts: Vec<(usize, &str)> = effects()
        .filter_map(|(at, effect)| match effect {
            Effect::Run { command, .. } => Some((at, command.as_str())),
            _ => None,
        })
        .collect();
    let Some((_, first)) = parts.first() else {
        return Vec::new();
    };
    let line = arguments.get("command").and_then(Value::as_str);
    let line = line.unwrap_or(first);
    let mut out = command_lines(line);
    if let Some(cwd) = arguments.get("cwd").and_then(Value::as_str) {
        out.push(field("in", &visible::path(cwd)));
    }
    let variables = arguments.get("env").and_then(Value::as_object);
    for (name, value) in variables.into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        out.push(field("with", &visible::line(&format!("{name}={value}"))));
    }
    if parts.len() > 1 {
        let runs = |(at, part): &(usize, &str)| judged(request, *at, "runs", &visible::line(part));
        out.extend(parts.iter().map(runs));
    }
    for (at, effect) in effects() {
        if let Some(claim) = effect.changed_path() {
            let path = styled(BOLD, &visible::path(&claim.path));
            let path = changes::leading_to(path, claim.target.as_deref());
            out.push(judged(request, at, "writes", &path));
        }
    }
    out
}

/// Returns a part of a command; the verdict comes first, so that nothing in the part can be mistaken for it.
fn judged(request: &ApprovalRequest, at: usize, does: &str, part: &str) -> String {
    let Some(verdict) = request.verdicts.get(at) else {
        return format!("  {does:<6} {part}");
    };
    let style = match verdict {
        Verdict::Allow => DIM,
        Verdict::Ask => YELLOW,
        Verdict::Deny => RED,
    };
    let word = styled(style, &format!("{:<6}", verdict.as_str()));
    format!("  {word} {does} {part}")
}

fn command_lines(command: &str) -> Vec<String> {
    let shown = visible::block(command);
    let mark = |(i, line): (usize, &str)| {
        let mark = if i == 0 { "$" } else { ">" };
        format!("{mark} {}", styled(BOLD, line))
    };
    shown.lines().enumerate().map(mark).collect()
}

fn connect(url: &str, host: &str) -> String {
    let (url, host) = (visible::line(url), visible::line(host));
    match url.split_once(&host) {
        Some((before, after)) if !host.is_empty() => {
            format!("{before}{}{after}", styled(BOLD, &host))
        }
        _ => format!("{url} (host {})", styled(BOLD, &host)),
    }
}

/// Whether a running command asks.
fn of_command(request: &ApprovalRequest) -> bool {
    [CONNECT, SIGN].contains(&request.tool.as_str())
}

/// Returns a command's use of a login: the program and what it is for.
fn login(purpose: &str, arguments: &Map<String, Value>) -> String {
    let program = arguments.get("program").and_then(Value::as_str);
    let program = visible::line(program.unwrap_or_default());
    let purpose = visible::line(purpose);
    format!("{program} uses your login for {}", styled(BOLD, &purpose))
}

/// Returns a command's connection: the program and the place.
fn connection(place: &str, method: Option<&str>, arguments: &Map<String, Value>) -> String {
    let program = arguments.get("program").and_then(Value::as_str);
    let program = visible::line(program.unwrap_or_default());
    match method {
        Some(method) => {
            let method = styled(BOLD, &visible::line(method));
            format!("{program} sends {method} to {place}")
        }
        None => format!("{program} connects to {place}"),
    }
}
