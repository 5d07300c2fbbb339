//! `haft approvals`: lists and decides approval requests.

mod confirm;
mod inbox;
mod review;
mod settle;

use std::fmt::Write as _;

use haft::approval::inbox::{RequestFilter, RequestStatus, StoredApproval};
use haft::approval::{ApprovalId, ApprovalScope, Choice, Decision};
use haft::audit::runs::{closed, run_dir};
use haft::call::{CallId, RunId};
use haft::result::Outcome;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;

use crate::args::ApprovalsAction;
use crate::commands::{ExitResult, arguments, call};
use crate::exit::Exit;
use crate::invocation::{Invocation, is_interactive};
use crate::screen::list::{TextTable, Truncation};
use crate::screen::{DIM, Screen, is_terminal, styled, visible};
use crate::terminal::fact;
use haft_app::agent::is_kept;
use haft_app::app::App;
use haft_app::follow::unknown;
use haft_app::problem::Problem;
use haft_app::requests::{visit, with_status};
use haft_app::view::approvals::whole::ApprovalDetails;
use haft_app::view::approvals::{ApprovalListItem, file};
use haft_app::view::prefix::ambiguous;
use haft_app::view::rule;
use haft_app::view::when;
use settle::DecisionEffect;

/// The origin of this command's decisions.
const FROM: &str = "command line";

/// Lists, shows, watches or decides; without an action, opens an inbox if a user is at the terminal.
pub(crate) async fn run(
    at: &Invocation,
    app: &App,
    action: Option<&ApprovalsAction>,
) -> ExitResult {
    match action {
        None if is_interactive() && is_terminal() && !at.screen.json => inbox::run(at, app).await,
        None => list(at, app, false).await,
        Some(ApprovalsAction::List { all }) => list(at, app, *all).await,
        Some(ApprovalsAction::Show {
            id,
            file: Some(path),
            offset,
        }) => show_file(at, app, id, path, *offset).await,
        Some(ApprovalsAction::Show { id, .. }) => show(at, app, id).await,
        Some(ApprovalsAction::Watch) => watch(at, app).await,
        Some(ApprovalsAction::Approve {
            id,
            edit,
            scope,
            rule,
            yes,
        }) => {
            let edited = edit.as_deref().map(arguments::read).transpose()?;
            let choice = Choice::Approve {
                scope: scope.unwrap_or_default().into(),
                edited,
                rule: rule.clone(),
            };
            decide(at, app, id, choice, *yes).await
        }
        Some(ApprovalsAction::Deny { id, message, stop }) => {
            let choice = Choice::Deny {
                message: message.clone(),
                stop: *stop,
            };
            decide(at, app, id, choice, false).await
        }
        Some(ApprovalsAction::Review {
            id: Some(id), word, ..
        }) => review::one(at, app, id, *word).await,
        Some(ApprovalsAction::Review { stats: true, .. }) => review::stats(at, app).await,
        Some(ApprovalsAction::Review { limit, .. }) => review::list(at, app, *limit).await,
        Some(ApprovalsAction::Answer { id, answers }) => {
            let answers = arguments::read(answers)?;
            decide(at, app, id, Choice::Answer { answers }, false).await
        }
    }
}

async fn list(at: &Invocation, app: &App, all: bool) -> ExitResult {
    let filter = if all {
        RequestFilter::default()
    } else {
        with_status(RequestStatus::Pending)
    };
    let mut items = Vec::new();
    visit(app, filter, |entry| {
        items.push(ApprovalListItem::of(app, &entry));
    })
    .await?;
    if at.screen.json {
        at.screen.document(&items)?;
        return Ok(Exit::Done);
    }
    let mut list = TextTable::new(&[
        ("ID", Truncation::Never),
        ("TOOL", Truncation::Never),
        ("RISK", Truncation::Never),
        ("ASKED", Truncation::Never),
        ("STATUS", Truncation::Never),
        ("CLIENT", Truncation::End),
        ("WHAT", Truncation::End),
    ]);
    for item in &items {
        let what = visible::line(&item.fact.sentence());
        let asked = when::ago(&item.created);
        list.row([
            &item.id,
            &item.tool,
            &item.risk,
            &asked,
            &item.status,
            &visible::line(
                &app.redactor()
                    .redact(item.client.as_deref().unwrap_or_default()),
            ),
            &what,
        ]);
    }
    at.screen.out(&list.render())?;
    if items.is_empty() && !all {
        at.screen.say(&styled(DIM, "no request is pending"));
    }
    Ok(Exit::Done)
}

/// Maximum number of requests examined with the same ID prefix.
const MOST_ALIKE: usize = 64;

/// Finds the request with an ID, or with an unambiguous prefix of one.
async fn find_request(app: &App, id: &str) -> Result<StoredApproval, Problem> {
    let whole = ApprovalId::new(id);
    let known = app.executor().inbox().get(&whole).await;
    if let Some(entry) = known.map_err(|e| Problem::failed(e.to_string()))? {
        return Ok(entry);
    }
    let mut alike = Vec::new();
    let keep = |entry: StoredApproval| {
        let fits = entry.request.id.as_str().starts_with(id) && id.len() > "ap-".len();
        if fits && alike.len() < MOST_ALIKE {
            alike.push(entry);
        }
    };
    visit(app, RequestFilter::default(), keep).await?;
    if alike.len() > 1 {
        let ids: Vec<String> = alike.iter().map(|e| e.request.id.to_string()).collect();
        return Err(ambiguous("approvals", id, &ids));
    }
    alike.pop().ok_or_else(|| unknown(&whole))
}

async fn show(at: &Invocation, app: &App, id: &str) -> ExitResult {
    let entry = find_request(app, id).await?;
    if at.screen.json {
        at.screen.document(&ApprovalDetails::of(app, &entry))?;
        return Ok(Exit::Done);
    }
    let mut lines = facts(app, &entry);
    let past = rule::past(app, &entry).await;
    lines.extend(
        past.iter()
            .map(|line| visible::line(&app.redactor().redact(line))),
    );
    let mut out = lines.join("\n");
    if entry.decision.is_some() {
        let words = in_words(&entry);
        let _ = write!(out, "\n{}", app.redactor().redact(&words));
    }
    out.push('\n');
    at.screen.out(&out)?;
    Ok(Exit::Done)
}

/// Shows one file of a request, before and after.
async fn show_file(at: &Invocation, app: &App, id: &str, path: &str, offset: u64) -> ExitResult {
    let entry = find_request(app, id).await?;
    let range = file::ByteRange {
        offset,
        ..file::ByteRange::default()
    };
    let sides = file::file(app, &entry.request, path, range)?;
    if at.screen.json {
        at.screen.document(&sides)?;
        return Ok(Exit::Done);
    }
    let mut out = fact::sides(&sides).join("\n");
    out.push('\n');
    at.screen.out(&out)?;
    Ok(Exit::Done)
}

/// Describes how and by whom a request was decided, or else its status.
fn in_words(entry: &StoredApproval) -> String {
    match &entry.decision {
        None => entry.status.to_string(),
        Some(decision) => {
            let (how, message) = match &decision.choice {
                Choice::Approve { .. } => ("approved", None),
                Choice::Deny { message, .. } => ("denied", message.as_deref()),
                Choice::Answer { .. } => ("answered", None),
            };
            let (by, from) = (visible::line(&decision.by), visible::line(&decision.from));
            let words = message.map(|words| format!(": {}", visible::line(words)));
            format!("{how} by {by} ({from}){}", words.unwrap_or_default())
        }
    }
}

/// Returns all of a request as lines for the user.
fn facts(app: &App, entry: &StoredApproval) -> Vec<String> {
    let request = &entry.request;
    let mut lines = fact::lines(request, app.redactor());
    let item = ApprovalListItem::of(app, entry);
    // A client's name is its own word.
    let client = item.client.as_deref().map_or_else(
        || item.origin.to_owned(),
        |client| {
            let client = app.redactor().redact(client);
            format!("{}, as it reports", visible::line(&client))
        },
    );
    let asked = format!(
        "{} · {} · asked by {client} ({})",
        item.tool, item.risk, item.door
    );
    let redacted = |text: &str| visible::line(&app.redactor().redact(text));
    let fields = [
        ("tool", asked),
        ("why", redacted(&request.reason)),
        ("rule", redacted(&request.rule)),
        ("asked", when::ago(&item.created)),
        ("status", status(&item)),
        ("run", item.run.clone()),
        ("folder", visible::line(&request.workspace)),
    ];
    lines.extend(fields.map(|(name, value)| format!("{name:<8}{value}")));
    let two = item.rule_of_two.as_deref().map(redacted);
    lines.extend(two.map(|two| format!("{:<8}{two} (Rule of Two)", "two")));
    let review = item.review.as_ref();
    lines.extend(review.map(|one| format!("{:<8}{}", "model", visible::line(&one.sentence))));
    lines.extend(deadline(&item).map(|when| format!("{:<8}{when}", "until")));
    lines
}

/// Returns the status of a request, and why it ended without its call.
fn status(item: &ApprovalListItem) -> String {
    match &item.why {
        Some(why) => format!("{}: {}", item.status, visible::line(why)),
        None => item.status.clone(),
    }
}

/// Returns when a pending request expires, or its call stops waiting, and what happens then.
fn deadline(item: &ApprovalListItem) -> Option<String> {
    let then = item.then?;
    let what = match &item.waits_until {
        Some(until) => format!("{}: {then}", when::until(until)),
        None => format!("expires {}: {then}", when::until(&item.expires)),
    };
    Some(what)
}

/// Prints pending requests, and then every change, until interrupted.
async fn watch(at: &Invocation, app: &App) -> ExitResult {
    let mut changes = app.executor().inbox().changes();
    all_told(at.screen, app).await?;
    let mut signals = crate::commands::signals::Signals::heard()?;
    loop {
        let changed = tokio::select! {
            changed = changes.recv() => changed,
            _ = signals.next() => return Ok(Exit::Interrupted),
        };
        match changed {
            Ok(id) => {
                if let Ok(entry) = app.entry(&id).await {
                    print_entry(at.screen, app, &entry)?;
                }
            }
            Err(RecvError::Lagged(_)) => all_told(at.screen, app).await?,
            Err(RecvError::Closed) => return Ok(Exit::Done),
        }
    }
}

/// Prints the pending requests.
async fn all_told(screen: Screen, app: &App) -> Result<(), Problem> {
    let mut printed = Ok(());
    let print = |entry: StoredApproval| {
        if printed.is_ok() {
            printed = print_entry(screen, app, &entry);
        }
    };
    visit(app, with_status(RequestStatus::Pending), print).await?;
    printed
}

fn print_entry(screen: Screen, app: &App, entry: &StoredApproval) -> Result<(), Problem> {
    let item = ApprovalListItem::of(app, entry);
    if screen.json {
        let line = serde_json::to_string(&json!({"type": "approval", "approval": item}));
        return screen.out(&format!("{}\n", line.unwrap_or_default()));
    }
    screen.out(&format!(
        "{:<10}{}  {} ({})  {}\n",
        item.status,
        item.id,
        item.tool,
        item.risk,
        visible::line(&item.fact.sentence())
    ))
}

/// Decides, and prints the result. At a terminal it shows the request first.
async fn decide(at: &Invocation, app: &App, id: &str, choice: Choice, yes: bool) -> ExitResult {
    let entry = find_request(app, id).await?;
    if entry.is_open() {
        refuse_rule(app, &entry, &choice)?;
        confirm::confirm(at.screen, &facts(app, &entry), &entry, &choice, yes)?;
    }
    let denies = matches!(choice, Choice::Deny { .. });
    let decision = Decision::new(choice, app.principal().subject.to_string(), FROM);
    let id = &entry.request.id;
    let settled = if settle::is_elsewhere(app, &entry) {
        let there = settle::in_folder(at, &entry.request.workspace)?;
        let settings = there.settings()?;
        let app = App::build(&there.site, &settings, there.host(false))?;
        let settled = settle::settle(&there, &app, id, decision).await;
        app.shut_down().await;
        settled?
    } else {
        settle::settle(at, app, id, decision).await?
    };
    print_settled(at, app, &settled, denies)
}

/// Refuses to keep a rule for a call that is decided each time, before it says anything about the rule.
fn refuse_rule(app: &App, entry: &StoredApproval, choice: &Choice) -> Result<(), Problem> {
    let Choice::Approve {
        scope: ApprovalScope::Always,
        rule,
        ..
    } = choice
    else {
        return Ok(());
    };
    let request = &entry.request;
    if !request.is_decided_each_time() {
        return Ok(());
    }
    let problem = app.rule_check().problem(request, rule.as_deref());
    problem.map_or(Ok(()), |what| {
        Err(Problem::usage(what).advise("nothing was decided"))
    })
}

fn print_settled(at: &Invocation, app: &App, settled: &DecisionEffect, denies: bool) -> ExitResult {
    let exit = match settled {
        DecisionEffect::Ran(outcome) => {
            call::print_outcome(at, outcome)?;
            let run = &outcome.run;
            if let Ok(folder) = run_dir(app.home(), run.as_str())
                && is_kept(&folder)
            {
                at.screen.say(&match closed(&folder) {
                    Ok(Some(_)) => format!("  run {run} has ended"),
                    _ => format!("  `haft run --resume {run}` continues the run"),
                });
            }
            Exit::of(outcome, true)
        }
        DecisionEffect::Ended { id, outcome } => {
            match read_stored(outcome) {
                Some(ended) if !at.screen.json => call::print_outcome(at, &ended)?,
                None if !at.screen.json => {
                    let unreadable = "the call has ended, but its outcome cannot be read";
                    at.screen.err(&format!("{id}  {unreadable}"));
                }
                _ => at.screen.document(outcome)?,
            }
            Exit::of_stored(outcome)
        }
        DecisionEffect::Decided(entry) => return print_status(at, app, entry),
    };
    Ok(if denies { Exit::Done } else { exit })
}

/// Returns the outcome that another process stored.
pub(super) fn read_stored(outcome: &serde_json::Value) -> Option<Outcome> {
    let name = |name: &str| outcome[name].as_str().unwrap_or_default();
    let (run, call) = (RunId::new(name("run")), CallId::new(name("call")));
    Outcome::from_stored(&outcome.to_string(), run, call, name("tool"))
}

/// Prints a decision that another process acts on.
fn print_status(at: &Invocation, app: &App, entry: &StoredApproval) -> ExitResult {
    let item = ApprovalListItem::of(app, entry);
    if at.screen.json {
        at.screen.document(&item)?;
    } else {
        at.screen
            .out(&format!("{}  {}\n", item.id, status(&item)))?;
    }
    Ok(Exit::Done)
}

impl From<crate::args::ScopeWord> for ApprovalScope {
    fn from(word: crate::args::ScopeWord) -> Self {
        match word {
            crate::args::ScopeWord::Once => Self::Once,
            crate::args::ScopeWord::Session => Self::Session,
            crate::args::ScopeWord::Always => Self::Always,
        }
    }
}
