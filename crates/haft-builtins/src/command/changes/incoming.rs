//! Judges the files that commits and indexes bring into repositories, like writes and removals in the work tree.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haft::change::PathText;
use haft::context::CallContext;
use haft::permission::{Permission, Verdict};
use haft::policy::EffectVerdict;
use haft::text::visible;

use crate::command::changes::apply::ChangeSelection;
use crate::command::changes::effects::ChangeEffects;
use crate::command::changes::incoming_name::IncomingName;
use crate::command::changes::opened_side::sides;
use crate::command::changes::pending::PendingChanges;
use crate::command::changes::{APPLY, Views};
use crate::command::linked_names::NamesOfChanges;
use crate::command::meaning::{Incoming, IncomingFile, incoming};
use crate::lexical::target_of_link;

/// Maximum number of files that a request states for what repositories get. Each is judged.
const MAX_STATED: usize = 1_000;
/// Number of permissions that are judged at once.
const JUDGED_AT_ONCE: usize = 1_000;

/// What is found about the repositories of a change set.
#[derive(Default)]
struct JudgedIncoming {
    /// The verdict on each changed path that brings something.
    verdicts: BTreeMap<PathBuf, EffectVerdict>,
    names: Vec<IncomingName>,
    unknown: Vec<String>,
}

impl JudgedIncoming {
    fn ask(&mut self, carrier: &Path, why: String) {
        let verdict = EffectVerdict::new(Verdict::Ask, String::new());
        self.raise(carrier, verdict);
        if !self.unknown.contains(&why) {
            self.unknown.push(why);
        }
    }

    fn raise(&mut self, carrier: &Path, verdict: EffectVerdict) {
        let held = self.verdicts.entry(carrier.to_owned());
        let held = held.or_insert_with(|| verdict.clone());
        if verdict.verdict > held.verdict {
            *held = verdict;
        }
    }
}

impl Views {
    /// Returns the policy's verdicts on what commits and indexes bring into repositories, each with the number of the change that
    /// brings it. Notes what a request states.
    pub(super) fn judge_incoming(
        &self,
        changes: &PendingChanges,
        names: &NamesOfChanges,
        context: &CallContext,
    ) -> Vec<(usize, EffectVerdict)> {
        let mut judged = JudgedIncoming::default();
        let sides = sides(&self.workspace, &changes.collected);
        incoming(&sides, &mut |found| {
            for doubt in &found.doubts {
                judged.ask(&doubt.carrier, doubt.why.clone());
            }
            self.judge_files(found, names, context, &mut judged);
        });
        drop(sides);
        let JudgedIncoming {
            verdicts,
            names,
            unknown,
        } = judged;
        changes.with_note(|note| {
            note.incoming = names;
            note.incoming_unknown = unknown;
        });
        let list = &changes.collected.changes;
        // What is asked about may be a folder above a change. Nothing is left out.
        let number = |path: &Path| {
            let below = || list.paths().position(|other| other.starts_with(path));
            list.position(path).or_else(below)
        };
        let each = verdicts.into_iter();
        each.map(|(path, verdict)| (number(&path).unwrap_or(0), verdict))
            .collect()
    }

    fn judge_files(
        &self,
        found: &Incoming<'_>,
        names: &NamesOfChanges,
        context: &CallContext,
        judged: &mut JudgedIncoming,
    ) {
        let mut named: Vec<(&IncomingFile, &Path, IncomingName)> = Vec::new();
        for file in &found.files {
            if file.paths.is_empty() && !found.is_known(file, None) {
                let shown = file.name_in_git();
                let why =
                    format!("git stores the file {shown}, which lies outside of the workspace");
                judged.ask(&file.carrier, why);
            }
            for path in &file.paths {
                let further = names.names_of(path);
                let all = std::iter::once(path.clone()).chain(further);
                named.extend(all.map(|name| (file, &**path, self.incoming_name(file, name))));
            }
        }
        let places = named.iter().map(|(.., name)| &*name.path.0);
        let effects = ChangeEffects::new(&self.workspace, false, None);
        let effects = effects.with_repositories(&self.workspace, places);
        for some in named.chunks(JUDGED_AT_ONCE) {
            let each = some.iter().map(|(.., name)| name.permission(&effects));
            let apply = Permission::apply(String::new());
            let all: Vec<Permission> = std::iter::once(apply).chain(each).collect();
            let verdicts = context.verdicts(APPLY, &all).into_iter().skip(1);
            for ((file, place, name), verdict) in some.iter().zip(verdicts) {
                if verdict.verdict != Verdict::Allow && !found.is_known(file, Some(place)) {
                    judged.add(file, name.clone(), verdict);
                }
            }
        }
    }

    fn incoming_name(&self, file: &IncomingFile, path: PathBuf) -> IncomingName {
        let link = file.link.as_ref();
        let root = self.workspace.root();
        IncomingName {
            link: link.and_then(|text| target_of_link(root, &path, text)),
            carrier: PathText(file.carrier.clone()),
            path: PathText(path),
            is_removed: file.is_removed,
        }
    }

    /// Returns what applying changes that are asked about does by what repositories get.
    pub(super) fn incoming_permissions(
        &self,
        changes: &PendingChanges,
        part: ChangeSelection,
    ) -> Vec<Permission> {
        if part != ChangeSelection::Asked {
            return Vec::new();
        }
        let (names, unknown) =
            changes.with_note(|note| (note.incoming.clone(), note.incoming_unknown.clone()));
        let places = names.iter().map(|name| &*name.path.0);
        let effects = ChangeEffects::new(&self.workspace, false, None);
        let effects = effects.with_repositories(&self.workspace, places);
        let asked = names
            .iter()
            .filter(|name| changes.has_fate(&name.carrier.0, &super::fate_table::Fate::Asked));
        let asked = asked.map(|name| name.permission(&effects));
        let unknown = unknown.iter().map(|why| Permission::unknown_names(why));
        asked.chain(unknown).collect()
    }
}

impl JudgedIncoming {
    /// Adds a file that the policy does not allow changing.
    fn add(&mut self, file: &IncomingFile, name: IncomingName, mut verdict: EffectVerdict) {
        let shown = visible::path(&name.path.0.to_string_lossy());
        let does = if file.is_removed {
            "removes"
        } else {
            "changes"
        };
        let why = format!("what git stores by it {does} {shown}: {}", verdict.reason);
        if verdict.verdict == Verdict::Deny && file.is_fetched {
            // Others made it. It is in no branch of the user's, and no file of theirs changes.
            let why = format!("what was fetched {does} {shown}, which a rule denies");
            return self.ask(&file.carrier, why);
        }
        if verdict.verdict == Verdict::Ask {
            if self.names.len() < MAX_STATED {
                self.names.push(name);
            } else {
                let why = format!("more than {MAX_STATED} files that git stores need approval");
                self.unknown.retain(|held| *held != why);
                self.unknown.push(why);
            }
        }
        verdict.reason = why;
        verdict.guarded = true;
        self.raise(&file.carrier, verdict);
    }
}
