//! Settles the changes of an ended command: applies the allowed ones and asks the user about the others.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft::ErrorKind;
use haft::approval::ApprovalId;
use haft::change::collect::{CollectedChanges, DroppedEntry};
use haft::change::{EntryState, PathText};
use haft::context::CallContext;
use haft::error::ToolError;
use haft::permission::Verdict;
use haft::policy::EffectVerdict;
use haft::result::{Outcome, Status, ToolResult};
use haft::workspace::GitFolders;

use crate::command::changes::apply::{ApplyChangesInput, ChangeSelection};
use crate::command::changes::change_outcomes::ChangeOutcomes;
use crate::command::changes::data::UnappliedChange;
use crate::command::changes::explain::explain;
use crate::command::changes::fate_table::{Fate, FateTable};
use crate::command::changes::ignored_set::{CountReason, IgnoredSet, IgnoredSummary};
use crate::command::changes::note::{CommandNote, CommandReport};
use crate::command::changes::pending::{PendingChanges, repository_of};
use crate::command::changes::times::DecidedBy;
use crate::command::changes::unread::repositories_with_hidden_files;
use crate::command::changes::unsaved::UnsavedContents;
use crate::command::changes::{APPLY, OpenView, Views, failed};
use crate::command::linked_names::NamesOfChanges;
use crate::work::blocking;

/// A command that has ended.
pub(crate) struct EndedCommand {
    /// The command line as shown to the user.
    pub(crate) command: String,
    /// The result, without the changes.
    pub(crate) result: ToolResult,
    /// True if the user or a rule approved the command before it ran.
    pub(crate) approved: bool,
    /// Why rules that seem to allow it do not, for the user.
    pub(crate) uncovered: Option<String>,
}

impl EndedCommand {
    /// Says in the result that what a command did to the repository is not applied.
    fn without(mut self, unjoined: &[UnappliedChange]) -> Self {
        if let Some(last) = unjoined.last()
            && self.result.error.is_none()
        {
            let why = format!("{}: {}", last.path, last.why);
            self.result.error = Some(ToolError::denied(why));
        }
        self
    }
}

/// Decides about the changes of a command and applies them.
pub(crate) async fn settle(
    views: &Arc<Views>,
    view: OpenView,
    ended: EndedCommand,
    context: &CallContext,
) -> Result<ToolResult, ToolError> {
    let kept = match collect(views, view, ended, context).await? {
        ChangeCollection::Nothing(result) => return Ok(*result),
        ChangeCollection::Some(kept) => kept,
    };
    judge(views, &kept, context).await?;
    let _open = views.keep_open(&kept.name(), &kept);
    if kept.has_any(&Fate::Allowed) {
        let outcome = call(&kept, ChangeSelection::Allowed, context).await;
        let why = refusal(&outcome);
        kept.decide(&Fate::Allowed, |_| Fate::Refused(why.clone()));
    }
    if !kept.has_any(&Fate::Asked) {
        set_times(views, &kept, context).await?;
        return kept.result(context).await;
    }
    explain(views, &kept).await;
    let saved = Arc::clone(&kept);
    let saved = blocking(move |_| saved.save().map_err(|error| failed("keep", error))).await;
    if let Err(error) = saved {
        // Changes that cannot be saved cannot be asked about. The command's output is still returned.
        kept.decide(&Fate::Asked, |_| Fate::Failed(error.message().to_owned()));
        return kept.result(context).await;
    }
    ask(views, &kept, context).await
}

/// Sets the times of what the command only touched. Nobody was asked.
async fn set_times(
    views: &Arc<Views>,
    changes: &Arc<PendingChanges>,
    context: &CallContext,
) -> Result<(), ToolError> {
    if changes.collected.only_touched().is_empty() {
        return Ok(());
    }
    let (views, changes, context) = (Arc::clone(views), Arc::clone(changes), context.clone());
    blocking(move |_| {
        views.set_times(&changes, DecidedBy::Policy, &context);
        Ok(())
    })
    .await
}

/// Resumes the decision about a command that ended in an earlier call with the same arguments.
pub(crate) async fn resume_decision(
    views: &Arc<Views>,
    view: OpenView,
    context: &CallContext,
) -> Result<ToolResult, ToolError> {
    let (at, run) = (Arc::clone(views), context.run().clone());
    let kept = blocking(move |_| PendingChanges::load(&at, &run, view)).await?;
    let kept = Arc::new(kept);
    let _open = views.keep_open(&kept.name(), &kept);
    ask(views, &kept, context).await
}

fn dropped(one: &DroppedEntry) -> UnappliedChange {
    UnappliedChange {
        path: one.path.to_string_lossy().into_owned(),
        why: one.why.to_owned(),
        kept: None,
    }
}

/// The changes found in a view.
enum ChangeCollection {
    /// No changes: the result is final.
    Nothing(Box<ToolResult>),
    Some(Arc<PendingChanges>),
}

async fn collect(
    views: &Arc<Views>,
    view: OpenView,
    ended: EndedCommand,
    context: &CallContext,
) -> Result<ChangeCollection, ToolError> {
    let (views, run, call) = (
        Arc::clone(views),
        context.run().clone(),
        context.call_id().clone(),
    );
    blocking(move |_| {
        let upper = view.layers().upper;
        let joined = view.join_repository(&views.workspace);
        let unjoined = joined.map_err(|error| failed("read", error))?;
        let ended = ended.without(&unjoined);
        let collected = match CollectedChanges::collect(&views.workspace, &upper, view.since) {
            Ok(collected) => collected,
            Err(error) => {
                let failure = ToolError::failed(format!(
                    "nothing that the command changed was applied: {error}"
                ));
                return Ok(ChangeCollection::Nothing(Box::new(
                    ended.result.with_error(failure),
                )));
            }
        };
        if leaves_nothing(&collected) && unjoined.is_empty() {
            return Ok(ChangeCollection::Nothing(Box::new(ended.result)));
        }
        let note = CommandNote {
            v: 1,
            room: views.options.log.room(&run),
            run,
            call,
            command: ended.command,
            since: view.since,
            approved: ended.approved,
            uncovered: ended.uncovered,
            said: CommandReport::of(ended.result)?,
            fates: FateTable::new(Arc::clone(&collected.changes), []),
            git: collected.git_states().clone(),
            names: BTreeMap::new(),
            names_unknown: None,
            incoming: Vec::new(),
            incoming_unknown: Vec::new(),
            ignored: IgnoredSummary::default(),
            applied: Vec::new(),
            more_applied: 0,
            meanings: Vec::new(),
            times: None,
            dropped: unjoined
                .into_iter()
                .chain(collected.dropped.iter().map(dropped))
                .collect(),
            repository: repository_of(&views.workspace),
        };
        Ok(ChangeCollection::Some(Arc::new(PendingChanges::new(
            view, collected, note,
        ))))
    })
    .await
}

/// Returns whether a command left everything as it was.
fn leaves_nothing(collected: &CollectedChanges) -> bool {
    collected.changes.is_empty()
        && collected.dropped.is_empty()
        && collected.only_touched().is_empty()
}

/// Determines the fate of each change.
async fn judge(
    views: &Arc<Views>,
    changes: &Arc<PendingChanges>,
    context: &CallContext,
) -> Result<(), ToolError> {
    let mut verdicts = views.verdicts(changes, context);
    let (at, kept, denials) = (Arc::clone(views), Arc::clone(changes), context.denials());
    let names = blocking(move |_| {
        let all = &kept.collected.changes;
        Ok(NamesOfChanges::find(&at.workspace, all, &denials))
    });
    let names = Arc::new(names.await?);
    add_names(views, changes, &names, &mut verdicts, context);
    add_incoming(views, changes, &names, &mut verdicts, context).await?;
    let unknown = names.unknown().map(str::to_owned);
    let asks_about_all = views.is_review_mode() || unknown.is_some();
    changes.with_note(|note| note.names_unknown = unknown);
    let guarded = |(at, verdict): (usize, &EffectVerdict)| {
        (verdict.guarded && verdict.verdict != Verdict::Allow).then_some(at)
    };
    let guarded: HashSet<usize> = verdicts.iter().enumerate().filter_map(guarded).collect();
    let mut fates = ChangeOutcomes::new(
        &changes.collected.changes,
        verdicts.into_iter(),
        asks_about_all,
    );
    let upper = changes.upper().unwrap_or_default();
    for (repository, why) in repositories_with_hidden_files(
        &upper,
        &changes.collected,
        &views.workspace,
        &context.denials(),
    ) {
        fates.refuse_below(&repository, &why);
    }
    let mut ignored = views.ignored(changes);
    if fates.has_asked()
        && let Some(ignored) = &mut ignored
    {
        fates.ask_about(|change| ignored.top(change).is_some());
    }
    let paths = changes.collected.changes.paths();
    let mut repositories = GitFolders::find(&views.workspace, paths);
    let fates = fates.decide_jointly(views.options.on_partial, |path| repositories.unit(path));
    changes.with_note(|note| note.fates = fates);
    if let Some(ignored) = &mut ignored {
        let unsaved = views.unsaved(changes);
        let reasons = Reasons { guarded, unsaved };
        summarize(views, changes, ignored, &reasons);
    }
    Ok(())
}

/// Why changes are asked about for more than being ignored.
struct Reasons {
    /// The numbers of those for which a rule or guard is the reason.
    guarded: HashSet<usize>,
    unsaved: UnsavedContents,
}

/// Notes what the user decides about of that which git ignores.
fn summarize(
    views: &Views,
    changes: &PendingChanges,
    ignored: &mut IgnoredSet<'_>,
    reasons: &Reasons,
) {
    let all = &changes.collected.changes;
    let mut summary = IgnoredSummary::default();
    for at in changes.numbers_of(&Fate::Asked) {
        if let Some(change) = all.get(at) {
            let reason = if reasons.guarded.contains(&at) {
                CountReason::Guarded
            } else if reasons.unsaved.holds(at) {
                CountReason::Unsaved
            } else {
                CountReason::Ignored
            };
            ignored.count(&change, reason, &mut summary);
        }
    }
    let is_folder = |path: &Path| match all.position(path).and_then(|at| all.get(at)) {
        Some(change) => [change.after, change.before]
            .iter()
            .flatten()
            .any(|state| matches!(state, EntryState::Folder { .. })),
        // It did not change itself.
        None => views.workspace.root().join(path).is_dir(),
    };
    let summary = summary.with_folders(is_folder);
    changes.with_note(|note| note.ignored = summary);
}

/// Judges the further names of changed files; each change gets the strictest verdict of all its names. Notes the names that the
/// policy does not allow changing, so that a request states them.
fn add_names(
    views: &Views,
    changes: &PendingChanges,
    names: &NamesOfChanges,
    verdicts: &mut [EffectVerdict],
    context: &CallContext,
) {
    let each = changes.collected.changes.iter().enumerate();
    let named: Vec<(usize, PathBuf)> = each
        .flat_map(|(at, change)| {
            let names = names.names_of(change.path).into_iter();
            names.map(move |name| (at, name))
        })
        .collect();
    let by_name = views.verdicts_by_name(changes, &named, context);
    for ((at, name), verdict) in named.into_iter().zip(by_name) {
        if verdict.verdict == Verdict::Allow {
            continue;
        }
        let path = PathText::from(changes.collected.changes.path(at));
        changes.with_note(|note| note.names.entry(path).or_default().push(PathText(name)));
        if verdict.verdict > verdicts[at].verdict {
            verdicts[at] = verdict;
        } else {
            verdicts[at].guarded = true;
        }
    }
}

/// Judges what commits and indexes bring into repositories; the change that brings it gets the strictest verdict.
async fn add_incoming(
    views: &Arc<Views>,
    changes: &Arc<PendingChanges>,
    names: &Arc<NamesOfChanges>,
    verdicts: &mut [EffectVerdict],
    context: &CallContext,
) -> Result<(), ToolError> {
    let (at, kept, names) = (Arc::clone(views), Arc::clone(changes), Arc::clone(names));
    let context = context.clone();
    let incoming = blocking(move |_| Ok(at.judge_incoming(&kept, &names, &context)));
    for (at, verdict) in incoming.await? {
        if verdict.verdict > verdicts[at].verdict {
            verdicts[at] = verdict;
        }
    }
    Ok(())
}

/// Asks the user about the remaining changes and returns the result for all of them.
async fn ask(
    views: &Arc<Views>,
    changes: &Arc<PendingChanges>,
    context: &CallContext,
) -> Result<ToolResult, ToolError> {
    let outcome = call(changes, ChangeSelection::Asked, context).await;
    if outcome.status == Status::Suspended
        && let Some(approval) = &outcome.approval
    {
        let notice = format!(
            "The command has ended. The changes on its copy need approval (approval {approval}) and are not in the workspace yet. Call again with the same arguments to get the result once it is decided."
        );
        let waits = ToolError::suspended(ApprovalId::new(approval.clone()), notice);
        return Err(waits.for_operator(outcome.operator.unwrap_or_default()));
    }
    changes.keep(false);
    if changes.has_any(&Fate::Asked) {
        if outcome.data.is_some() {
            // Another process applied the changes.
            return Ok(again(outcome));
        }
        let why = refusal(&outcome);
        let kind = outcome.error.as_ref().map(|error| error.kind);
        changes.decide(&Fate::Asked, |_| match kind {
            Some(ErrorKind::Conflict) => Fate::Conflict(why.clone()),
            Some(ErrorKind::Failed | ErrorKind::Unavailable) => Fate::Failed(why.clone()),
            _ => Fate::Refused(why.clone()),
        });
    }
    // Unless they are set with what was approved.
    set_times(views, changes, context).await?;
    changes.result(context).await
}

async fn call(changes: &PendingChanges, part: ChangeSelection, context: &CallContext) -> Outcome {
    let (command, run) = changes.with_note(|note| (note.command.clone(), note.run.to_string()));
    let input = ApplyChangesInput {
        command,
        run,
        view: changes.name(),
        part,
        sha256: changes.sha256(&part.fate()),
        network: changes.with_note(|note| note.said.network()),
    };
    // Plain data: serialization does not fail.
    let arguments = serde_json::to_string(&input).unwrap_or_default();
    context.call_internal(APPLY, arguments).await
}

/// Returns why a call applied nothing.
fn refusal(outcome: &Outcome) -> String {
    match &outcome.error {
        Some(error) if matches!(outcome.status, Status::Cancelled | Status::Timeout) => format!(
            "{}: it may have been applied, `haft runs diff {}` shows what was",
            error.message, outcome.run
        ),
        Some(error) => error.message.clone(),
        // The user answered in place of the tool.
        None => format!("{}: {}", outcome.summary, outcome.text()),
    }
}

/// Returns the result of the call that another process made.
fn again(outcome: Outcome) -> ToolResult {
    let outcome = outcome.into_outer();
    let error = outcome.error.map(|error| {
        let tool_error = ToolError::new(error.kind, error.message);
        match error.advice {
            Some(advice) => tool_error.with_advice(advice),
            None => tool_error,
        }
    });
    ToolResult {
        content: outcome.content,
        data_is_for_programs: outcome.data_is_for_programs,
        notes: outcome.notes,
        artifacts: outcome.artifacts,
        data: outcome.data,
        error,
        outer_error: None,
        summary: Some(outcome.summary),
        strength: outcome.strength,
        original: outcome.original,
    }
}
