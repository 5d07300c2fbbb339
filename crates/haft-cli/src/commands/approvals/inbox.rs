//! `haft approvals` at a terminal: shows pending requests one after another, to be decided; new ones as they arrive.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use haft::approval::inbox::{RequestStatus, StoredApproval};
use haft::approval::{ApprovalId, ApproverReply, Choice, Decision};
use haft::result::{Outcome, PartMark};
use haft_app::app::App;
use haft_app::decide::DecisionError;
use haft_app::problem::Problem;
use haft_app::requests::{visit, with_status};
use haft_app::running::watched::WatchGuard;
use haft_app::view::approvals::ApprovalListItem;
use haft_app::view::{rule, when};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinSet;

use super::settle::{self, DecisionEffect};
use super::{FROM, in_words};
use crate::commands::ExitResult;
use crate::commands::call::excerpt;
use crate::commands::signals::Signals;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::{self, BOLD, DIM, styled, visible};
use crate::terminal::choice::{InboxMove, PromptKind};
use crate::terminal::prompt::{ApprovalPrompt, UserReply};
use crate::terminal::stdin::StdinRouter;

/// Maximum number of requests listed.
const LISTED: usize = 20;

/// How long to wait for the outcome of a decision before showing the next request.
const GLANCE: Duration = Duration::from_millis(300);

/// Returns one line about how a call ended.
fn reason(outcome: &Outcome) -> String {
    let error = outcome.error.as_ref().map(|error| error.message.clone());
    error.unwrap_or_else(|| outcome.summary.clone())
}

/// Returns the lines that stand below the line of a call that ran: what its tool gave, and the notes.
fn lines_below(outcome: &Outcome) -> Vec<String> {
    let whole = format!("haft runs show {} {}", outcome.run, outcome.call);
    let lines = excerpt::lines(&outcome.render(), |mark| mark != PartMark::Status, &whole);
    lines.into_iter().map(|(_, line)| line).collect()
}

/// Shows requests and takes decisions until the user leaves.
pub(super) async fn run(at: &Invocation, app: &App) -> ExitResult {
    let mut inbox = InboxLoop {
        at,
        app,
        changes: app.executor().inbox().changes(),
        known: HashSet::new(),
        skipped: Vec::new(),
        lists: true,
        folders: HashMap::new(),
        followed: JoinSet::new(),
    };
    let mut signals = Signals::heard()?;
    // A user who watches the inbox needs no desktop notices. If that cannot be recorded, there are notices.
    let _watching = WatchGuard::begin(&app.site().home).ok();
    let mut exit = inbox
        .decide_all(&mut Arc::new(StdinRouter::default()).lines(), &mut signals)
        .await;
    if matches!(exit, Ok(Exit::Done)) {
        exit = Ok(inbox.finish(&mut signals).await);
    }
    inbox.followed.shutdown().await;
    for folder in inbox.folders.into_values().flatten() {
        folder.app.shut_down().await;
    }
    exit
}

/// The state of the inbox.
struct InboxLoop<'a> {
    at: &'a Invocation,
    app: &'a App,
    changes: broadcast::Receiver<ApprovalId>,
    /// Requests that were shown or counted: all others are new.
    known: HashSet<ApprovalId>,
    /// Requests that the user skipped, in that order.
    skipped: Vec<ApprovalId>,
    /// Whether to show the list before the next request.
    lists: bool,
    /// Other folders whose requests were shown, each with its application unless that could not be built.
    folders: HashMap<String, Option<Folder>>,
    /// Decisions being acted on.
    followed: JoinSet<ActedDecision>,
}

/// The application of another folder.
#[derive(Clone)]
struct Folder {
    at: Invocation,
    app: App,
}

/// A decision that was acted on.
struct ActedDecision {
    id: ApprovalId,
    denied: bool,
    what: Result<DecisionEffect, Problem>,
}

/// The reason why a request leaves the screen.
enum LeaveReason {
    Reply(UserReply),
    /// It was decided elsewhere, or can no longer be decided.
    Over(Box<StoredApproval>),
    Signal,
}

impl InboxLoop<'_> {
    async fn decide_all(
        &mut self,
        lines: &mut Receiver<String>,
        signals: &mut Signals,
    ) -> ExitResult {
        loop {
            let pending = self.pending().await?;
            if std::mem::take(&mut self.lists) && pending.len() > 1 {
                self.list().await?;
            }
            let nth = pending.iter().position(|id| !self.skipped.contains(id));
            let Some(nth) = nth else {
                match self.idle(&pending, lines, signals).await {
                    Some(exit) => return Ok(exit),
                    None => continue,
                }
            };
            let place = format!("{} of {}", nth + 1, pending.len());
            let Some(entry) = self.open(&pending[nth]).await else {
                // It has just been settled: the next search does not find it.
                self.skipped.push(pending[nth].clone());
                continue;
            };
            match self.show(&entry, &place, lines, signals).await {
                LeaveReason::Signal => return Ok(Exit::Interrupted),
                LeaveReason::Over(entry) => self.say_over(&entry),
                LeaveReason::Reply(UserReply::Go(InboxMove::Next)) => {
                    self.skipped.push(pending[nth].clone());
                }
                LeaveReason::Reply(UserReply::Go(InboxMove::Back)) => self.back(&pending),
                LeaveReason::Reply(UserReply::Go(InboxMove::List)) => self.lists = true,
                LeaveReason::Reply(UserReply::Answer(ApproverReply::Decided(decision))) => {
                    self.decide(&entry, decision).await;
                }
                LeaveReason::Reply(UserReply::Go(InboxMove::Quit) | UserReply::Answer(_)) => {
                    return Ok(Exit::Done);
                }
            }
        }
    }

    /// Returns the ids of the pending requests, oldest first.
    async fn pending(&mut self) -> Result<Vec<ApprovalId>, Problem> {
        let mut pending = Vec::new();
        let keep = |entry: StoredApproval| {
            if entry.is_open() {
                pending.push(entry.request.id);
            }
        };
        visit(self.app, with_status(RequestStatus::Pending), keep).await?;
        self.known.extend(pending.iter().cloned());
        Ok(pending)
    }

    /// Returns a request if it can still be decided.
    async fn open(&self, id: &ApprovalId) -> Option<StoredApproval> {
        let entry = self.app.entry(id).await.ok()?;
        entry.is_open().then_some(entry)
    }

    /// Prints the pending requests, one per line.
    async fn list(&self) -> Result<(), Problem> {
        let (mut lines, mut count) = (Vec::new(), 0);
        let keep = |entry: StoredApproval| {
            count += usize::from(entry.is_open());
            if entry.is_open() && count <= LISTED {
                lines.push(format!("{count:>3}  {}", self.in_a_line(&entry)));
            }
        };
        visit(self.app, with_status(RequestStatus::Pending), keep).await?;
        self.at
            .screen
            .err(&styled(BOLD, &format!("{count} pending")));
        for line in &lines {
            self.at
                .screen
                .err(&visible::clipped(line, screen::columns()));
        }
        if count > LISTED {
            let more = format!("  …  {} more", count - LISTED);
            self.at.screen.err(&styled(DIM, &more));
        }
        Ok(())
    }

    fn in_a_line(&self, entry: &StoredApproval) -> String {
        let item = ApprovalListItem::of(self.app, entry);
        let what = visible::line(&item.fact.sentence());
        let tool = visible::line(&item.tool);
        format!(
            "{tool} · {} · {} · {what}",
            item.risk,
            when::ago(&item.created)
        )
    }

    /// Shows a request until the user replies, or it is decided elsewhere.
    async fn show(
        &mut self,
        entry: &StoredApproval,
        place: &str,
        lines: &mut Receiver<String>,
        signals: &mut Signals,
    ) -> LeaveReason {
        let request = &entry.request;
        let prompt = self.prompt(entry);
        self.head(entry, place).await;
        let put = prompt.put(request, lines);
        tokio::pin!(put);
        loop {
            tokio::select! {
                reply = &mut put => return LeaveReason::Reply(reply),
                changed = self.changes.recv() => match changed {
                    Ok(id) if id != request.id => self.announce(id).await,
                    Err(RecvError::Closed) => return LeaveReason::Reply(UserReply::Answer(ApproverReply::Nobody)),
                    _ => match self.app.entry(&request.id).await {
                        Ok(now) if !now.is_open() => return LeaveReason::Over(Box::new(now)),
                        _ => {}
                    },
                },
                Some(followed) = self.followed.join_next() => {
                    if let Ok(followed) = followed {
                        self.print(followed);
                    }
                }
                _ = signals.next() => return LeaveReason::Signal,
            }
        }
    }

    /// Prints the position of the request, and where it comes from.
    async fn head(&self, entry: &StoredApproval, place: &str) {
        let item = ApprovalListItem::of(self.app, entry);
        let mut facts = vec![
            styled(BOLD, place),
            when::ago(&item.created),
            visible::line(&item.run),
        ];
        facts.extend(super::deadline(&item));
        if settle::is_elsewhere(self.app, entry) {
            facts.push(visible::line(&entry.request.workspace));
        }
        self.at.screen.err("");
        self.at.screen.err(&facts.join(" · "));
        for line in rule::past(self.app, entry).await {
            let line = self.app.redactor().redact(&line);
            self.at.screen.err(&visible::line(&line));
        }
    }

    /// Returns the prompt for a request, with the rules of the request's own folder.
    fn prompt(&mut self, entry: &StoredApproval) -> ApprovalPrompt {
        let folder = self.folder(entry);
        let app = folder.as_ref().map_or(self.app, |folder| &folder.app);
        ApprovalPrompt {
            screen: self.at.screen,
            place: PromptKind::Inbox,
            by: self.app.principal().subject.to_string().into(),
            from: FROM,
            rules: app.rule_check(),
            redactor: app.redactor().clone(),
        }
    }

    /// Returns the application of a request's folder if it is a different one. Prints a problem with it only once.
    fn folder(&mut self, entry: &StoredApproval) -> Option<Folder> {
        if !settle::is_elsewhere(self.app, entry) {
            return None;
        }
        let workspace = &entry.request.workspace;
        if let Some(known) = self.folders.get(workspace) {
            return known.clone();
        }
        let folder = match self.build(workspace) {
            Ok(folder) => Some(folder),
            Err(problem) => {
                self.print_problem(problem);
                None
            }
        };
        self.folders.insert(workspace.clone(), folder.clone());
        folder
    }

    fn build(&self, workspace: &str) -> Result<Folder, Problem> {
        let at = settle::in_folder(self.at, workspace)?;
        // The inbox reads the lines of this terminal: do not ask here whether the folder is trusted.
        let settings = at.settings_unasked()?;
        let app = App::build(&at.site, &settings, at.host(false))?;
        Ok(Folder { at, app })
    }

    /// Applies a decision, and starts what it allows.
    async fn decide(&mut self, entry: &StoredApproval, decision: Decision) {
        let denied = matches!(decision.choice, Choice::Deny { .. });
        let folder = self.folder(entry);
        if !denied && folder.is_none() && settle::is_elsewhere(self.app, entry) {
            let workspace = &entry.request.workspace;
            let problem = Problem::usage(format!("the call cannot run in {workspace} now"));
            return self.print_problem(problem.advise("nothing was decided; deny it, or skip it"));
        }
        let (at, app) = match folder {
            Some(folder) => (folder.at, folder.app),
            None => (self.at.clone(), self.app.clone()),
        };
        let id = entry.request.id.clone();
        let decided = match app.decide(&id, decision).await {
            Ok(decided) => decided,
            Err(refused) => return self.print_problem(DecisionError::problem(refused)),
        };
        self.say_over(&decided);
        self.followed.spawn(async move {
            let what = settle::follow(&at, &app, decided).await;
            ActedDecision { id, denied, what }
        });
        if let Ok(Some(Ok(ended))) = tokio::time::timeout(GLANCE, self.followed.join_next()).await {
            self.print(ended);
        }
    }

    /// Waits when every request is decided or skipped: for a new one, or for the user's input. Returns the exit if the user leaves.
    async fn idle(
        &mut self,
        pending: &[ApprovalId],
        lines: &mut Receiver<String>,
        signals: &mut Signals,
    ) -> Option<Exit> {
        let count = pending.len();
        self.say(&if count == 0 {
            "no request is pending; new ones appear here · q quit".to_owned()
        } else {
            format!("all {count} skipped; new ones appear here · Enter shows them again · q quit")
        });
        loop {
            tokio::select! {
                line = lines.recv() => match line.as_deref().map(str::trim) {
                    None | Some("q" | "quit") => return Some(Exit::Done),
                    Some("k") if count > 0 => {
                        self.back(pending);
                        return None;
                    }
                    Some(_) if count > 0 => {
                        self.skipped.clear();
                        self.lists = true;
                        return None;
                    }
                    Some(_) => {}
                },
                changed = self.changes.recv() => match changed {
                    Ok(id) => if !self.skipped.contains(&id) && self.open(&id).await.is_some() {
                        return None;
                    },
                    Err(RecvError::Lagged(_)) => return None,
                    Err(RecvError::Closed) => return Some(Exit::Done),
                },
                Some(followed) = self.followed.join_next() => {
                    if let Ok(followed) = followed {
                        self.print(followed);
                    }
                }
                _ = signals.next() => return Some(Exit::Interrupted),
            }
        }
    }

    /// Waits for approved calls that run here. A signal ends the wait; [`run`] then stops them.
    async fn finish(&mut self, signals: &mut Signals) -> Exit {
        if !self.followed.is_empty() {
            self.say("waiting for approved calls to end · Ctrl-C stops them");
        }
        loop {
            tokio::select! {
                ended = self.followed.join_next() => match ended {
                    Some(Ok(followed)) => self.print(followed),
                    Some(Err(_)) => {}
                    None => return Exit::Done,
                },
                _ = signals.next() => return Exit::Interrupted,
            }
        }
    }

    /// Goes back to the last skipped request that is still pending.
    fn back(&mut self, pending: &[ApprovalId]) {
        while let Some(last) = self.skipped.pop() {
            if pending.contains(&last) {
                return;
            }
        }
        self.say("this is the first one");
    }

    /// Announces a new request.
    async fn announce(&mut self, id: ApprovalId) {
        let Some(entry) = self.open(&id).await else {
            return;
        };
        if self.known.insert(id) {
            self.say(&format!("one more is pending: {}", self.in_a_line(&entry)));
        }
    }

    /// Prints how a request left the inbox.
    fn say_over(&self, entry: &StoredApproval) {
        let words = in_words(entry);
        let words = self.app.redactor().redact(&words);
        self.say(&format!("{} {words}", entry.request.id));
    }

    /// Prints the result of a decision.
    fn print(&self, followed: ActedDecision) {
        let ActedDecision { id, denied, what } = followed;
        let mut below = Vec::new();
        let (status, summary) = match what {
            Err(problem) => return self.print_problem(problem),
            // The denial was already printed.
            Ok(_) if denied => return,
            Ok(DecisionEffect::Ran(outcome)) => {
                below = lines_below(&outcome);
                (outcome.status.as_str().to_owned(), reason(&outcome))
            }
            Ok(DecisionEffect::Ended { outcome, .. }) => {
                let ended = super::read_stored(&outcome);
                below = ended.as_ref().map(lines_below).unwrap_or_default();
                let status = outcome["status"].as_str().unwrap_or_default().to_owned();
                (status, ended.as_ref().map(reason).unwrap_or_default())
            }
            Ok(DecisionEffect::Decided(entry)) => (entry.status.to_string(), String::new()),
        };
        let summary = self.app.redactor().redact(&summary);
        let line = format!("{id} {status}  {}", visible::line(&summary));
        self.at.screen.err(line.trim_end());
        for line in below {
            let line = self.app.redactor().redact(&line);
            self.at.screen.err(&styled(DIM, &format!("  {line}")));
        }
    }

    fn print_problem(&self, problem: Problem) {
        self.at
            .screen
            .problem(&problem.redacted(self.app.redactor()));
    }

    fn say(&self, line: &str) {
        self.at.screen.err(&styled(DIM, line));
    }
}
