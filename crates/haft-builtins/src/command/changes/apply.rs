//! `apply_changes`: the internal tool that applies a command's changes; the policy judges it like every call.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::approval::preview::{Aspect, FileChange};
use haft::call::RunId;
use haft::change::Changer;
use haft::change::collect::ViewChange;
use haft::context::CallContext;
use haft::error::ToolError;
use haft::permission::{Condition, Effect, Permission, Verdict};
use haft::policy::{EffectVerdict, protected_from_commands};
use haft::result::{Failure, ToolResult};
use haft::spec::{CallPhrases, Risk, ToolSpec};
use haft::text::visible;
use haft::tool::{Depth, Intent, TypedTool};
use haft::workspace::{Workspace, WorkspaceError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use crate::command::changes::effects::ChangeEffects;
use crate::command::changes::fate_table::Fate;
use crate::command::changes::ignored_set::{IgnoredSet, Matter};
use crate::command::changes::note;
use crate::command::changes::pending::{PendingChanges, view_missing, without_applying};
use crate::command::changes::times::DecidedBy;
use crate::command::changes::unsaved::UnsavedContents;
use crate::command::changes::{ChangeMode, Views};
use crate::command::{COMMANDS, RunData};
use crate::describe::{builtin, writes};
use crate::work::blocking;

/// Number of changes judged at once: the permissions of all would take much memory.
const JUDGED_AT_ONCE: usize = 1_000;

/// Maximum time for applying a command's changes.
const MAX_APPLY_TIME: Duration = Duration::from_secs(120);
/// Time for which applying goes on after its call has ended: half of a small change set helps nobody.
const MAX_TIME_ALONE: Duration = Duration::from_secs(2);

/// What `apply_changes` takes. Only `run_command` writes it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApplyChangesInput {
    /// The command, for the person who decides.
    pub(crate) command: String,
    /// Its run.
    pub(crate) run: String,
    /// The command's view.
    pub(crate) view: String,
    /// Which of its changes.
    pub(crate) part: ChangeSelection,
    /// The SHA-256 over these changes.
    pub(crate) sha256: String,
    /// Where the command connected to, and what was refused, for the person who decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) network: Vec<String>,
}

/// Some of a command's changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChangeSelection {
    /// Those that are allowed.
    Allowed,
    /// Those that a person decides about.
    Asked,
}

impl ChangeSelection {
    pub(super) fn fate(self) -> Fate {
        match self {
            Self::Allowed => Fate::Allowed,
            Self::Asked => Fate::Asked,
        }
    }
}

/// The tool `apply_changes`.
#[derive(Debug)]
pub(crate) struct ApplyChanges(pub(crate) Arc<Views>);

impl ApplyChanges {
    /// Returns the changes that this process is deciding, or loads them from disk.
    fn find_or_load(&self, input: &ApplyChangesInput) -> Result<Arc<PendingChanges>, ToolError> {
        if let Some(changes) = self.0.opened(&input.view) {
            return Ok(changes);
        }
        let run = RunId::new(input.run.clone());
        Ok(Arc::new(PendingChanges::look(&self.0, &run, &input.view)?))
    }

    /// Returns the files that this part of the changes would change.
    fn preview(&self, kept: &PendingChanges, part: ChangeSelection) -> Vec<FileChange> {
        let fate = part.fate();
        let selected = |path: &Path| kept.has_fate(path, &fate);
        let first = |path: &Path| protected_from_commands(&path.to_string_lossy()).is_some();
        let covered: HashSet<PathBuf> = kept.with_note(|note| {
            let covers = note.meanings.iter().flat_map(|meaning| &meaning.covers);
            covers.map(PathBuf::from).collect()
        });
        let ignored = kept.with_note(|note| note.ignored.clone());
        // What git keeps for itself or ignores must not take the room of files that somebody reads.
        let last = |path: &Path| covered.contains(path) || ignored.holds(path);
        let mut files = kept
            .collected
            .preview(&self.0.workspace, &selected, &first, &last);
        // Executable files that git ignores are counted.
        files.retain(|file| file.aspect != Aspect::Mode || !ignored.holds(Path::new(&file.path)));
        files
    }
}

impl TypedTool for ApplyChanges {
    const NAME: &'static str = super::APPLY;
    const DESCRIPTION: &'static str = "Apply what a command changed on its copy of the workspace.";
    type Input = ApplyChangesInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        ToolSpec {
            phrases: CallPhrases {
                waits: "has run on a copy of the workspace; what it changed waits for the user's approval",
                undone: "the command has run, and its changes were not applied",
                in_doubt: "the command has run, and some of its changes may be in the workspace",
            },
            ..writes(builtin::<RunData>(spec, COMMANDS), Risk::Safe)
        }
    }

    fn workspace(&self) -> Option<&Workspace> {
        Some(&self.0.workspace)
    }

    fn intent(&self, input: &Self::Input, depth: Depth) -> Result<Intent, ToolError> {
        let mut permissions = Vec::new();
        let mut intent = self.intent_in_parts(input, depth, &mut |one| permissions.push(one))?;
        intent.permissions = permissions;
        Ok(intent)
    }

    fn intent_in_parts(
        &self,
        input: &Self::Input,
        depth: Depth,
        each: &mut dyn FnMut(Permission),
    ) -> Result<Intent, ToolError> {
        // Only the run itself can tell for sure whether the files are still as shown. If this request failed now, an approval could
        // never be carried out.
        let kept = self.find_or_load(input)?;
        self.0.permissions(&kept, input.part).for_each(each);
        // The permissions name each path, and another run of the same command has another view. A permanent or session grant
        // therefore covers only that command.
        Ok(Intent::call_only()
            .with_stated(&["run", "view", "part", "sha256", "network"])
            .with_conditions(depth, || {
                let uncovered = kept.with_note(|note| note.uncovered.clone());
                let stated = uncovered.map(|why| Condition::new("no rule covers", why));
                stated.into_iter().collect()
            })
            .with_preview(depth, || self.preview(&kept, input.part))
            .with_meanings(depth, || match input.part {
                ChangeSelection::Asked => kept.with_note(|note| note.meanings.clone()),
                ChangeSelection::Allowed => Vec::new(),
            }))
    }

    fn without_running(&self, input: &Self::Input, why: &Failure) -> Option<ToolResult> {
        let run = RunId::new(input.run.clone());
        let folder = self.0.folder(&run, &input.view).ok()?;
        let note = note::read(&folder).ok()?;
        without_applying(note, &input.part.fate(), why).ok()
    }

    async fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let here = self.0.opened(&input.view);
        let views = Arc::clone(&self.0);
        let (resumed, run) = (here.is_none(), RunId::new(input.run.clone()));
        let context = context.clone();
        blocking(move |stop| {
            let kept = if let Some(kept) = here {
                kept
            } else {
                let view = views
                    .reopen(&run, &input.view)
                    .map_err(|error| view_missing(&error))?;
                Arc::new(PendingChanges::load(&views, &run, view)?)
            };
            check(&kept, &input)?;
            cleared(&views, &kept, &input, &context)?;
            let (run, call) = kept.with_note(|note| (note.run.clone(), note.call.clone()));
            let changer = context.changer_of(&views.workspace, &run, &call);
            let fate = input.part.fate();
            let asked = kept.numbers_of(&fate);
            let limit = ApplyLimit::new(stop);
            kept.apply(&views.workspace, &changer, &fate, &limit);
            if input.part == ChangeSelection::Allowed {
                return kept.applied();
            }
            views.set_times(&kept, DecidedBy::User, &context);
            // This thread may block, and its work finishes even if the call is dropped.
            let result = Handle::current().block_on(kept.result_of_applying(&asked, &context))?;
            if resumed {
                kept.keep(false);
            }
            Ok(result)
        })
        .await
    }
}

/// How long a command's changes may be applied.
struct ApplyLimit<'s> {
    began: Instant,
    /// Whether the call has ended: its deadline is over, it was cancelled, or haft ends.
    has_ended: &'s (dyn Fn() -> bool + Sync),
}

impl<'s> ApplyLimit<'s> {
    fn new(has_ended: &'s (dyn Fn() -> bool + Sync)) -> Self {
        let began = Instant::now();
        Self { began, has_ended }
    }

    /// Fails if no further change may be applied.
    fn check(&self) -> Result<(), WorkspaceError> {
        let time = self.began.elapsed();
        if time > MAX_APPLY_TIME {
            return Err(WorkspaceError::Stopped(
                "applying took longer than 120 seconds",
            ));
        }
        if time > MAX_TIME_ALONE && (self.has_ended)() {
            return Err(WorkspaceError::Stopped(
                "the call ended while it was applied",
            ));
        }
        Ok(())
    }
}

/// Fails if these are not the changes that the input names.
fn check(changes: &PendingChanges, input: &ApplyChangesInput) -> Result<(), ToolError> {
    if changes.sha256(&input.part.fate()) == input.sha256 {
        return Ok(());
    }
    Err(ToolError::conflict(
        "the command's changes, or the files that they change, differ from what was shown",
    )
    .with_advice(
        "this decision applied nothing: read the files as they are now, and run the command again",
    )
    .for_operator(format!(
        "`haft runs diff {}` shows what an earlier haft process had applied, if it was killed midway",
        input.run
    )))
}

/// Fails if applying these changes needs more than was judged.
fn cleared(
    views: &Views,
    changes: &PendingChanges,
    input: &ApplyChangesInput,
    context: &CallContext,
) -> Result<(), ToolError> {
    let wanted = views.permissions(changes, input.part);
    if context.judgement().covers(wanted) {
        return Ok(());
    }
    Err(
        ToolError::conflict("applying these changes would not do what was approved")
            .with_advice("this decision applied nothing: run the command again"),
    )
}

impl Views {
    /// Returns what applying a part of the changes would do: first that anything is applied at all, then each change.
    pub(super) fn permissions<'a>(
        &'a self,
        changes: &'a PendingChanges,
        part: ChangeSelection,
    ) -> impl Iterator<Item = Permission> + use<'a> {
        let mut effects = self.effects(changes, part);
        let (names, names_unknown) =
            changes.with_note(|note| (note.names.clone(), note.names_unknown.clone()));
        // Of effects that weigh the same, the first gives the request's reason.
        let ignored = changes.with_note(|note| note.ignored.clone());
        let ordered = Matter::ALL.into_iter().flat_map(move |matter| {
            let ignored = ignored.clone();
            let each = changes.changes_of(part.fate());
            each.filter(move |change| ignored.matter(change.path) == matter)
        });
        let each = ordered.flat_map(move |change| {
            let names = names.get(change.path).into_iter().flatten();
            let by_name: Vec<Permission> = names
                .map(|name| effects.by_name(&change, &name.0))
                .collect();
            let replaced = effects.of_replaced(&change);
            std::iter::once(effects.of(&change))
                .chain(replaced)
                .chain(by_name)
        });
        let unknown = names_unknown.filter(|_| part == ChangeSelection::Asked);
        let unknown = unknown.map(|why| Permission::unknown_names(&why));
        std::iter::once(self.apply_permission(changes))
            .chain(each)
            .chain(unknown)
            .chain(self.incoming_permissions(changes, part))
    }

    /// Returns what derives the permission of each change.
    fn effects<'a>(
        &'a self,
        changes: &'a PendingChanges,
        part: ChangeSelection,
    ) -> ChangeEffects<'a> {
        let (approved, names) = changes.with_note(|note| (note.approved, note.names.clone()));
        // Changes that were asked about remain so, even if a change applied earlier makes git ignore them.
        let ignored =
            (part == ChangeSelection::Allowed && !approved).then(|| self.ignored(changes));
        let paths = changes.collected.changes.paths();
        let paths = paths.chain(names.values().flatten().map(|name| &*name.0));
        ChangeEffects::new(&self.workspace, approved, ignored.flatten())
            .with_toolchains(&self.options.toolchains)
            .with_unsaved(&changes.collected.changes, self.unsaved(changes))
            .with_repositories(&self.workspace, paths)
    }

    /// Returns what cannot be undone of the changes.
    pub(super) fn unsaved(&self, changes: &PendingChanges) -> UnsavedContents {
        let room = changes.with_note(|note| note.room);
        UnsavedContents::find(&changes.collected.changes, room, &self.workspace)
    }

    /// Returns what git ignores, as far as settings treat it differently.
    pub(super) fn ignored(&self, changes: &PendingChanges) -> Option<IgnoredSet<'_>> {
        let set = IgnoredSet::of(&self.workspace, &self.options.ignored)?;
        Some(set.with_new_caches(&changes.collected))
    }

    /// Returns the permission to apply any of the changes at all.
    fn apply_permission(&self, changes: &PendingChanges) -> Permission {
        let (command, unknown) =
            changes.with_note(|note| (note.command.clone(), note.names_unknown.is_some()));
        let mut apply = Permission::apply(command);
        if let Effect::Apply { ignored, .. } = &mut apply.effect {
            *ignored = changes.with_note(|note| note.ignored.folders());
        }
        if self.options.mode == ChangeMode::Review || unknown {
            // No profile allows this.
            apply.risk = Risk::Critical;
        }
        apply
    }

    /// Returns the policy's verdict on each change by itself, by its own path, with a reason if it is refused.
    pub(super) fn verdicts(
        &self,
        changes: &PendingChanges,
        context: &CallContext,
    ) -> Vec<EffectVerdict> {
        let mut effects = self.effects(changes, ChangeSelection::Allowed);
        let apply = self.apply_permission(changes);
        let all = &changes.collected.changes;
        let mut verdicts = Vec::with_capacity(all.len());
        for first in (0..all.len()).step_by(JUDGED_AT_ONCE) {
            let some = (first..all.len()).take(JUDGED_AT_ONCE);
            let some: Vec<ViewChange<'_>> = some.filter_map(|at| all.get(at)).collect();
            let each: Vec<Permission> = some.iter().map(|change| effects.of(change)).collect();
            let replaced = some.iter().enumerate();
            let replaced =
                replaced.filter_map(|(at, change)| Some((at, effects.of_replaced(change)?)));
            let (owners, removed): (Vec<usize>, Vec<Permission>) = replaced.unzip();
            let all: Vec<Permission> = std::iter::once(apply.clone())
                .chain(each)
                .chain(removed)
                .collect();
            // The first verdict is about applying anything at all.
            let judged = context.verdicts(super::APPLY, &all).into_iter();
            let mut judged = judged
                .zip(&all)
                .skip(1)
                .map(|(verdict, permission)| guarded_verdict(verdict, permission));
            let mut of_each: Vec<EffectVerdict> = judged.by_ref().take(some.len()).collect();
            for (at, verdict) in owners.into_iter().zip(judged) {
                if let Some(held) = of_each
                    .get_mut(at)
                    .filter(|held| held.verdict < verdict.verdict)
                {
                    *held = verdict;
                }
            }
            verdicts.extend(of_each);
        }
        verdicts
    }

    /// Returns the policy's verdicts on changes by further names of their paths, each given by the change's number and the name.
    pub(super) fn verdicts_by_name(
        &self,
        changes: &PendingChanges,
        named: &[(usize, PathBuf)],
        context: &CallContext,
    ) -> Vec<EffectVerdict> {
        let names = named.iter().map(|(_, name)| &**name);
        let effects = ChangeEffects::new(&self.workspace, false, None);
        let effects = effects.with_repositories(&self.workspace, names);
        let each = named.iter();
        let list = &changes.collected.changes;
        let each = each.filter_map(|(at, name)| Some(effects.by_name(&list.get(*at)?, name)));
        let apply = Permission::apply(changes.with_note(|note| note.command.clone()));
        let all: Vec<Permission> = std::iter::once(apply).chain(each).collect();
        let judged = context.verdicts(super::APPLY, &all).into_iter().skip(1);
        let guarded = |verdict| EffectVerdict {
            guarded: true,
            ..verdict
        };
        judged.map(guarded).collect()
    }

    pub(super) fn is_review_mode(&self) -> bool {
        self.options.mode == ChangeMode::Review
    }
}

impl PendingChanges {
    /// Returns the SHA-256 over the changes with this fate.
    pub(super) fn sha256(&self, fate: &Fate) -> String {
        self.collected.sha256(&|path| self.has_fate(path, fate))
    }

    /// Applies the changes with this fate; each has a new fate afterwards.
    fn apply(&self, workspace: &Workspace, changer: &Changer, fate: &Fate, limit: &ApplyLimit<'_>) {
        let selected = |path: &Path| self.has_fate(path, fate);
        let left_out = self.collected.left_out(&selected);
        if let Some((path, why)) = left_out.first()
            && *fate == Fate::Asked
        {
            // Changes that the user approved are applied as shown or not at all.
            let why = format!("{}: {why}", visible::path(&path.to_string_lossy()));
            return self.decide(fate, |_| Fate::Conflict(why.clone()));
        }
        for (path, why) in left_out {
            let refused = Fate::Refused(why.to_owned());
            self.with_note(|note| note.fates.set(path, refused));
        }
        if let Err(error) = self.begin() {
            let why = format!("note that it is applied: {error}");
            return self.decide(fate, |_| Fate::Failed(why.clone()));
        }
        let go_on = || limit.check();
        match self
            .collected
            .apply_within(workspace, changer, &selected, &go_on)
        {
            Ok(()) => {
                self.add_applied(fate, |_| true);
                self.decide(fate, |_| Fate::Applied);
            }
            Err(error) => self.after_failure(workspace, fate, &error),
        }
    }

    /// After a failure, checks each change to find out which ones were applied.
    fn after_failure(&self, workspace: &Workspace, fate: &Fate, error: &WorkspaceError) {
        let selected = |path: &Path| self.has_fate(path, fate);
        let made = self.collected.applied(workspace, &selected).into_iter();
        let made: HashSet<&Path> = made.collect();
        let started = self.collected.begun(workspace, &selected).into_iter();
        let started: HashMap<&Path, &str> = started.collect();
        if self.collected.is_touched() && (!made.is_empty() || !started.is_empty()) {
            self.keep_files();
        }
        self.add_applied(fate, |path| made.contains(path));
        self.decide(fate, |path| {
            if made.contains(path) {
                Fate::Applied
            } else if let Some(what) = started.get(path) {
                Fate::Failed(format!("{what}: {error}"))
            } else {
                failed_fate(error)
            }
        });
    }
}

/// Returns the verdict on an effect, with its reason only if it is refused.
fn guarded_verdict(mut verdict: EffectVerdict, permission: &Permission) -> EffectVerdict {
    verdict.guarded |= permission.risk == Risk::Critical || leads_out(permission);
    if verdict.verdict != Verdict::Deny {
        // Only a refusal states it.
        verdict.reason = String::new();
    }
    verdict
}

/// Whether a new link leads out of the workspace, or by ways that its text does not tell.
fn leads_out(permission: &Permission) -> bool {
    let claim = permission.effect.changed_path();
    let target = claim.and_then(|claim| claim.target.as_deref());
    target.is_some_and(|target| target.starts_with('/'))
}

fn failed_fate(error: &WorkspaceError) -> Fate {
    match error {
        WorkspaceError::Changed(_) | WorkspaceError::GitAtWork(_) => {
            Fate::Conflict(error.to_string())
        }
        _ => Fate::Failed(error.to_string()),
    }
}
