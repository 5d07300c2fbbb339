//! `haft approvals`: what waits for a person, and the decision.

mod confirm;

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use haft::approval::inbox::{Entry, Filter, RequestStatus};
use haft::approval::listing;
use haft::approval::{ApprovalId, Choice, Decision, Scope};
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use crate::approvals::whole::Whole;
use crate::approvals::{Item, Refused, outcome_exit};
use crate::args::{ApprovalsAction, Options};
use crate::assemble::follow::{Followed, unknown};
use crate::assemble::{Door, House, Waits};
use crate::commands::{Done, arguments, call};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::problem::Problem;
use crate::screen::list::{Cut, List};
use crate::screen::{DIM, Screen, styled, visible, when};
use crate::terminal::fact;

/// Most requests listed.
const MOST: usize = 10_000;

/// How long to wait for what another process makes of a decision.
const ELSEWHERE: Duration = Duration::from_secs(10);

/// How often to look meanwhile.
const LOOK: Duration = Duration::from_millis(50);

/// From where this command decides.
const FROM: &str = "command line";

/// Lists, shows, watches or decides.
pub(crate) async fn run(at: &Invocation, house: &House, action: Option<&ApprovalsAction>) -> Done {
    match action {
        None => list(at, house, false).await,
        Some(ApprovalsAction::List { all }) => list(at, house, *all).await,
        Some(ApprovalsAction::Show { id }) => show(at, house, id).await,
        Some(ApprovalsAction::Watch) => watch(at, house).await,
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
            decide(at, house, id, choice, *yes).await
        }
        Some(ApprovalsAction::Deny { id, message, stop }) => {
            let choice = Choice::Deny {
                message: message.clone(),
                stop: *stop,
            };
            decide(at, house, id, choice, false).await
        }
        Some(ApprovalsAction::Answer { id, answers }) => {
            let answers = arguments::read(answers)?;
            decide(at, house, id, Choice::Answer { answers }, false).await
        }
    }
}

/// Visits the user's requests, oldest first.
pub(crate) async fn each(
    house: &House,
    filter: Filter,
    visit: impl FnMut(Entry),
) -> Result<(), Problem> {
    let filter = Filter {
        tenant: house.principal().tenant.to_string(),
        limit: MOST,
        ..filter
    };
    let visited = listing::each(&**house.executor().inbox(), filter, visit).await;
    visited.map_err(|e| Problem::failed(e.to_string()))
}

/// The filter for requests with this status.
pub(crate) fn with(status: RequestStatus) -> Filter {
    Filter {
        status: vec![status],
        ..Filter::default()
    }
}

async fn list(at: &Invocation, house: &House, all: bool) -> Done {
    let filter = if all {
        Filter::default()
    } else {
        with(RequestStatus::Pending)
    };
    let mut items = Vec::new();
    each(house, filter, |entry| items.push(Item::of(house, &entry))).await?;
    if at.screen.json {
        at.screen.document(&items)?;
        return Ok(Exit::Done);
    }
    let mut list = List::new(&[
        ("ID", Cut::Never),
        ("TOOL", Cut::Never),
        ("RISK", Cut::Never),
        ("ASKED", Cut::Never),
        ("STATUS", Cut::Never),
        ("WHAT", Cut::End),
    ]);
    for item in &items {
        let what = visible::line(&item.fact.text);
        let asked = when::ago(&item.created);
        list.row([
            &item.id,
            &item.tool,
            &item.risk,
            &asked,
            &item.status,
            &what,
        ]);
    }
    at.screen.out(&list.render())?;
    if items.is_empty() && !all {
        at.screen.say(&styled(DIM, "nothing waits for a person"));
    }
    Ok(Exit::Done)
}

/// The request of an id or of its beginning, where that is enough.
async fn found(house: &House, id: &str) -> Result<Entry, Problem> {
    let whole = ApprovalId::new(id);
    let known = house.executor().inbox().get(&whole).await;
    if let Some(entry) = known.map_err(|e| Problem::failed(e.to_string()))? {
        return Ok(entry);
    }
    let mut alike = Vec::new();
    let keep = |entry: Entry| {
        let fits = entry.request.id.as_str().starts_with(id) && id.len() > "ap-".len();
        if fits && alike.len() < 2 {
            alike.push(entry);
        }
    };
    each(house, Filter::default(), keep).await?;
    match alike.pop() {
        Some(entry) if alike.is_empty() => Ok(entry),
        Some(_) => Err(Problem::usage(format!("several approvals begin with {id}"))
            .advise("`haft approvals list --all` shows them")),
        None => Err(unknown(&whole)),
    }
}

async fn show(at: &Invocation, house: &House, id: &str) -> Done {
    let entry = found(house, id).await?;
    if at.screen.json {
        at.screen.document(&Whole::of(house, &entry))?;
        return Ok(Exit::Done);
    }
    let mut out = facts(house, &entry).join("\n");
    if let Some(decision) = &entry.decision {
        let how = decision.choice.as_str();
        let _ = write!(
            out,
            "\ndecided {how} by {} ({})",
            decision.by, decision.from
        );
    }
    out.push('\n');
    at.screen.out(&out)?;
    Ok(Exit::Done)
}

/// A request whole, in lines for people.
fn facts(house: &House, entry: &Entry) -> Vec<String> {
    let request = &entry.request;
    let mut lines = fact::lines(request, house.redactor());
    let item = Item::of(house, entry);
    let asked = format!(
        "{} · {} · asked by {} ({})",
        item.tool, item.risk, item.origin, item.door
    );
    let redacted = |text: &str| visible::line(&house.redactor().redact(text));
    let fields = [
        ("tool", asked),
        ("why", redacted(&request.reason)),
        ("rule", redacted(&request.rule)),
        ("asked", when::ago(&item.created)),
        ("status", item.status.clone()),
        ("run", item.run.clone()),
        ("folder", visible::line(&request.workspace)),
    ];
    lines.extend(fields.map(|(name, value)| format!("{name:<8}{value}")));
    lines
}

/// Prints what waits, and then whatever changes, until it is interrupted.
async fn watch(at: &Invocation, house: &House) -> Done {
    let mut changes = house.executor().inbox().changes();
    all_told(at.screen, house).await?;
    let mut signals = crate::commands::signals::Signals::heard()?;
    loop {
        let changed = tokio::select! {
            changed = changes.recv() => changed,
            _ = signals.next() => return Ok(Exit::Interrupted),
        };
        match changed {
            Ok(id) => {
                if let Ok(entry) = house.entry(&id).await {
                    told(at.screen, house, &entry)?;
                }
            }
            Err(RecvError::Lagged(_)) => all_told(at.screen, house).await?,
            Err(RecvError::Closed) => return Ok(Exit::Done),
        }
    }
}

/// Prints what waits.
async fn all_told(screen: Screen, house: &House) -> Result<(), Problem> {
    let mut printed = Ok(());
    let print = |entry: Entry| {
        if printed.is_ok() {
            printed = told(screen, house, &entry);
        }
    };
    each(house, with(RequestStatus::Pending), print).await?;
    printed
}

fn told(screen: Screen, house: &House, entry: &Entry) -> Result<(), Problem> {
    let item = Item::of(house, entry);
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
        visible::line(&item.fact.text)
    ))
}

/// Decides, and sees to it that what was decided happens. Whoever decides at a terminal sees the request first.
async fn decide(at: &Invocation, house: &House, id: &str, choice: Choice, yes: bool) -> Done {
    let entry = found(house, id).await?;
    if entry.is_open() {
        confirm::confirm(at.screen, &facts(house, &entry), &entry, &choice, yes)?;
    }
    let id = entry.request.id.clone();
    if entry.request.workspace != house.workspace() && !entry.request.workspace.is_empty() {
        let there = elsewhere(at, &entry.request.workspace)?;
        let settings = there.settings()?;
        let house = House::build(&there, &settings, false)?;
        let done = decided(&there, &house, &id, choice).await;
        house.shut().await;
        return done;
    }
    decided(at, house, &id, choice).await
}

/// The same command in the workspace of the request.
fn elsewhere(at: &Invocation, workspace: &str) -> Result<Invocation, Problem> {
    Invocation::new(Options {
        workspace: Some(workspace.into()),
        ..at.options.clone()
    })
}

async fn decided(at: &Invocation, house: &House, id: &ApprovalId, choice: Choice) -> Done {
    let by = house.principal().subject.to_string();
    let denies = matches!(choice, Choice::Deny { .. });
    let decision = Decision::new(choice, by, FROM);
    let entry = house.decide(id, decision).await.map_err(Refused::problem)?;
    let door = Door {
        waits: Waits::Never,
        ..call::door(at, "approval")
    };
    match house.follow(id, door).await? {
        Followed::Ran(outcome) => {
            call::told(at, &outcome)?;
            Ok(if denies {
                Exit::Done
            } else {
                outcome_exit(&outcome)
            })
        }
        Followed::Elsewhere => elsewhere_told(at, house, id, denies).await,
        Followed::Foreign => shown(at, house, &entry),
    }
}

/// What another process made of the decision, if it comes to an end within a while.
async fn elsewhere_told(at: &Invocation, house: &House, id: &ApprovalId, denies: bool) -> Done {
    let begun = Instant::now();
    let mut entry = house.entry(id).await?;
    while entry.outcome.is_none() && begun.elapsed() < ELSEWHERE {
        tokio::time::sleep(LOOK).await;
        entry = house.entry(id).await?;
    }
    let outcome = entry.outcome.as_deref();
    let Some(outcome) = outcome.and_then(|text| serde_json::from_str::<Value>(text).ok()) else {
        return shown(at, house, &entry);
    };
    if at.screen.json {
        at.screen.document(&outcome)?;
    } else {
        let summary = outcome["summary"].as_str().unwrap_or_default();
        at.screen.out(&format!(
            "{}  {}\n",
            entry.request.id,
            visible::line(summary)
        ))?;
    }
    Ok(if denies {
        Exit::Done
    } else {
        Exit::of_stored(&outcome)
    })
}

/// A decision that another process acts on.
fn shown(at: &Invocation, house: &House, entry: &Entry) -> Done {
    let item = Item::of(house, entry);
    if at.screen.json {
        at.screen.document(&item)?;
    } else {
        at.screen.out(&format!("{}  {}\n", item.id, item.status))?;
    }
    Ok(Exit::Done)
}

impl From<crate::args::ScopeWord> for Scope {
    fn from(word: crate::args::ScopeWord) -> Self {
        match word {
            crate::args::ScopeWord::Once => Self::Once,
            crate::args::ScopeWord::Session => Self::Session,
            crate::args::ScopeWord::Always => Self::Always,
        }
    }
}
