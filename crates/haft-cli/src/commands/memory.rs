//! `haft memory`: shows what agents wrote to memory, and takes the user's decisions about it.

use std::fmt::Write as _;

use haft::memory::{
    CandidateDecision, MAX_LISTED, MemoryAccess, MemoryError, MemoryFilter, MemoryHit, MemoryId,
    MemoryQuery, MemoryRecord, MemoryState, PendingCandidate,
};
use serde_json::json;

use crate::args::MemoryAction;
use crate::commands::ExitResult;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::list::{TextTable, Truncation};
use crate::screen::{DIM, styled, visible};
use haft_app::app::App;
use haft_app::problem::Problem;
use haft_app::remember;
use haft_app::view::{prefix, when};

mod change;

/// Maximum number of memories that a search shows.
const FOUND: u32 = 50;

/// Lists, shows, searches or decides.
pub(crate) async fn run(at: &Invocation, app: &App, action: Option<&MemoryAction>) -> ExitResult {
    match action {
        None | Some(MemoryAction::List) => list(at, app).await,
        Some(MemoryAction::Candidates) => list_candidates(at, app).await,
        Some(MemoryAction::Show { id }) => show(at, app, find(app, id).await?).await,
        Some(MemoryAction::Accept { id }) => decide(at, app, &find(app, id).await?, true).await,
        Some(MemoryAction::Reject { id }) => decide(at, app, &find(app, id).await?, false).await,
        Some(MemoryAction::Search { query }) => search(at, app, query).await,
        Some(MemoryAction::Add { text, scope, tags }) => {
            change::add(at, app, text, scope, tags).await
        }
        Some(MemoryAction::Edit { id, text, tags }) => {
            let id = find(app, id).await?;
            change::edit(at, app, &id, text.as_deref(), tags).await
        }
        Some(MemoryAction::Remove { id }) => change::remove(at, app, &find(app, id).await?).await,
    }
}

/// Returns the memory with this id, or the only one whose id begins with it.
async fn find(app: &App, typed: &str) -> Result<MemoryId, Problem> {
    let id = MemoryId::new(typed);
    let asker = asker(app);
    let known = app.memory().get(&asker, &id).await;
    if known.map_err(|e| to_problem(&e))?.is_some() {
        return Ok(id);
    }
    let filter = MemoryFilter {
        limit: MAX_LISTED,
        ..MemoryFilter::default()
    };
    let records = app.memory().list(&asker, &filter).await;
    let records = records.map_err(|e| to_problem(&e))?;
    let candidates = candidates(app).await?.into_iter();
    let others = candidates.filter(|candidate| candidate.principal != asker.principal);
    let records = records
        .into_iter()
        .chain(others.map(|candidate| candidate.record));
    let ids = records.map(|record| record.id.to_string());
    prefix::find("memories", typed, ids).map(MemoryId::new)
}

fn asker(app: &App) -> MemoryAccess {
    MemoryAccess::now(app.principal())
}

/// Returns the candidates of this tenant, which the operator reviews.
async fn candidates(app: &App) -> Result<Vec<PendingCandidate>, Problem> {
    let found = app.memory().candidates(&asker(app)).await;
    found.map_err(|e| to_problem(&e))
}

/// Lists the candidates of this tenant; those of other principals begin with whose memory they would enter.
async fn list_candidates(at: &Invocation, app: &App) -> ExitResult {
    let found = candidates(app).await?;
    if at.screen.json {
        at.screen.document(&found)?;
        return Ok(Exit::Done);
    }
    let shown = found.into_iter().map(|candidate| {
        let (mut record, owner) = (candidate.record, candidate.principal);
        if owner != *app.principal() {
            record.content = format!("[for {}] {}", owner.subject, record.content);
        }
        record
    });
    let shown: Vec<_> = shown.collect();
    at.screen.out(&table(shown.iter()))?;
    if shown.is_empty() {
        at.screen
            .say(&styled(DIM, "there are no memory candidates"));
    }
    Ok(Exit::Done)
}

async fn list(at: &Invocation, app: &App) -> ExitResult {
    let filter = MemoryFilter {
        state: Some(MemoryState::Accepted),
        limit: MAX_LISTED,
        ..MemoryFilter::default()
    };
    let records = app.memory().list(&asker(app), &filter).await;
    let mut records = records.map_err(|e| to_problem(&e))?;
    // A deletion that was carried out is a decision of the queue, not a memory.
    records.retain(|record| !record.deletes);
    if at.screen.json {
        at.screen.document(&records)?;
    } else {
        at.screen.out(&table(records.iter()))?;
        if records.is_empty() {
            at.screen.say(&styled(DIM, "there are no memories"));
        }
    }
    Ok(Exit::Done)
}

async fn search(at: &Invocation, app: &App, text: &str) -> ExitResult {
    let query = MemoryQuery {
        text: text.to_owned(),
        shelves: Vec::new(),
        run: None,
        limit: FOUND,
    };
    let hits = app.memory().search(&asker(app), &query).await;
    let hits: Vec<MemoryHit> = hits.map_err(|e| to_problem(&e))?;
    if at.screen.json {
        at.screen.document(&hits)?;
    } else {
        at.screen.out(&table(hits.iter().map(|hit| &hit.record)))?;
        if hits.is_empty() {
            at.screen.say(&styled(DIM, "no memory matches"));
        }
    }
    Ok(Exit::Done)
}

fn table<'a>(records: impl Iterator<Item = &'a MemoryRecord>) -> String {
    let columns = [
        ("ID", Truncation::Never),
        ("SCOPE", Truncation::Never),
        ("KEY", Truncation::Middle),
        ("CHANGED", Truncation::Never),
        ("WHAT", Truncation::End),
    ];
    let mut list = TextTable::new(&columns);
    for record in records {
        let what = what(record);
        list.row([
            record.id.as_str(),
            record.shelf.scope.as_str(),
            &record.shelf.key,
            &when::ago(&record.updated),
            &what,
        ]);
    }
    list.render()
}

/// Describes a memory in one line: the file that it creates, changes or deletes, or its text.
fn what(record: &MemoryRecord) -> String {
    match (&record.path, record.deletes, &record.replaces) {
        (Some(path), true, _) => format!("deletes {path}"),
        (Some(path), false, Some(_)) => format!("changes {path}: {}", record.content),
        (Some(path), false, None) => format!("{path}: {}", record.content),
        (None, ..) => record.content.clone(),
    }
}

async fn show(at: &Invocation, app: &App, id: MemoryId) -> ExitResult {
    let mut asker = asker(app);
    let record = app.memory().get(&asker, &id).await;
    let mut record = record.map_err(|e| to_problem(&e))?;
    if record.is_none() {
        let of_id = |candidate: &PendingCandidate| candidate.record.id == id;
        if let Some(found) = candidates(app).await?.into_iter().find(of_id) {
            asker.principal = found.principal;
            record = Some(found.record);
        }
    }
    let record = record.ok_or_else(|| to_problem(&MemoryError::NotFound(id.clone())))?;
    let history = app.memory().history(&asker, &id).await;
    let history = history.map_err(|e| to_problem(&e))?;
    if at.screen.json {
        at.screen
            .document(&json!({"memory": record, "history": history}))?;
        return Ok(Exit::Done);
    }
    let from = &record.provenance;
    let mut facts = vec![
        ("id", record.id.to_string()),
        ("state", record.state.as_str().to_owned()),
        (
            "scope",
            format!("{} {}", record.shelf.scope.as_str(), record.shelf.key),
        ),
        ("changed", when::date(&record.updated)),
        ("author", from.author.clone()),
    ];
    facts.extend(record.path.clone().map(|path| ("file", path)));
    facts.extend(from.run.as_ref().map(|run| ("run", run.to_string())));
    let until = record.expires.as_deref().map(when::date);
    facts.extend(until.map(|until| ("expires", until)));
    facts.extend(record.decided_by.clone().map(|by| ("decided by", by)));
    if !record.tags.is_empty() {
        facts.push(("tags", record.tags.join(", ")));
    }
    if record.deletes {
        facts.push(("asks", "that the file be deleted".to_owned()));
    }
    let mut out = String::new();
    for (name, value) in facts {
        let name = styled(DIM, &format!("{name:<10}"));
        let _ = writeln!(out, "{name} {}", visible::line(&value));
    }
    let _ = writeln!(out, "\n{}", visible::block(&record.content));
    at.screen.out(&out)?;
    Ok(Exit::Done)
}

async fn decide(at: &Invocation, app: &App, id: &MemoryId, accept: bool) -> ExitResult {
    let decision = CandidateDecision {
        accept,
        by: app.principal().subject.to_string(),
    };
    let decided = remember::decide(app, id, &decision).await;
    let record = decided.map_err(|e| to_problem(&e))?;
    if at.screen.json {
        at.screen.document(&record)?;
    } else {
        let word = record.state.as_str();
        at.screen
            .say(&format!("{word} {}", visible::line(record.id.as_str())));
    }
    Ok(Exit::Done)
}

fn to_problem(error: &MemoryError) -> Problem {
    let what = error.to_string();
    match error {
        MemoryError::NotFound(_) => Problem::usage(what)
            .advise("`haft memory list` and `haft memory candidates` show what there is"),
        MemoryError::Decided(..) => Problem::usage(what).advise("a decision is final"),
        MemoryError::Changed(_) | MemoryError::Exists(_) => Problem::usage(what)
            .advise("the file has changed since the candidate was written: reject the candidate"),
        MemoryError::NoWords => {
            Problem::usage(what).advise("name at least one word, at most 1,000 characters")
        }
        MemoryError::Invalid(_) => Problem::usage(what),
        MemoryError::Full(..) | MemoryError::Store(_) => {
            Problem::failed(what).advise("`haft doctor` says what is wrong with the state folder")
        }
    }
}
