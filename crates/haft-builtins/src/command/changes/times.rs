//! The times of files that a command only touched, or wrote again as they were: set when everything that it changed is applied.
//!
//! A time changes no content, so nobody is asked about it. But no rule is passed over: what may not be written to without asking keeps its
//! time.

use std::collections::HashSet;
use std::path::Path;

use haft::context::CallContext;
use haft::permission::{Permission, Verdict};
use haft::text::visible;

use crate::command::changes::data::TimesReport;
use crate::command::changes::effects::ChangeEffects;
use crate::command::changes::fate_table::Fate;
use crate::command::changes::pending::PendingChanges;
use crate::command::changes::{APPLY, Views};
use crate::command::linked_names::NamesOfChanges;

/// Number of files that are judged at once.
const JUDGED_AT_ONCE: usize = 1_000;

/// Who decided that what a command changed may be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecidedBy {
    /// The policy alone.
    Policy,
    /// The user.
    User,
}

impl Views {
    /// Sets the times that a command left, once; and notes what became of them.
    pub(super) fn set_times(&self, changes: &PendingChanges, by: DecidedBy, context: &CallContext) {
        let is_done = changes.with_note(|note| note.times.is_some());
        if is_done || changes.collected.only_touched().is_empty() {
            return;
        }
        let report = self.times(changes, by, context);
        changes.with_note(|note| note.times = Some(report));
    }

    fn times(&self, changes: &PendingChanges, by: DecidedBy, context: &CallContext) -> TimesReport {
        let touched = changes.collected.only_touched();
        if touched.is_cut() {
            return TimesReport::withheld("there are more than 50,000");
        }
        // A time says that the work is done: it must not say so of half of it.
        let is_all = changes.with_note(|note| {
            let mut fates = note.fates.iter();
            fates.all(|(_, fate)| *fate == Fate::Applied)
        });
        if !is_all {
            return TimesReport::withheld("not everything that the command changed was applied");
        }
        let names = NamesOfChanges::find(&self.workspace, touched.list(), &context.denials());
        if by == DecidedBy::Policy && (self.is_review_mode() || names.unknown().is_some()) {
            return TimesReport::withheld("settings or unknown names of files need an approval");
        }
        let allowed = self.allowed_times(changes, &names, context);
        let first = touched.list().paths().find(|path| !allowed.contains(path));
        let count = touched.list().len() - allowed.len();
        let note = first.map(|path| {
            let path = visible::path(&path.to_string_lossy());
            let others = match count {
                1 => String::new(),
                count => format!(" and {} more", count - 1),
            };
            format!("{path}{others}: only touched, and a rule or guard kept the time as it was")
        });
        let changer = context.changer(&self.workspace);
        let set = changes
            .collected
            .set_times(&changer, &|path| allowed.contains(path));
        TimesReport { set, note }
    }

    /// Returns the touched paths that the policy allows writing to without asking, by all of their names.
    fn allowed_times<'c>(
        &self,
        changes: &'c PendingChanges,
        names: &NamesOfChanges,
        context: &CallContext,
    ) -> HashSet<&'c Path> {
        let list = changes.collected.only_touched().list();
        let mut effects = ChangeEffects::new(&self.workspace, true, None)
            .with_repositories(&self.workspace, list.paths());
        let mut allowed = HashSet::with_capacity(list.len());
        for first in (0..list.len()).step_by(JUDGED_AT_ONCE) {
            let (mut owners, mut wanted) = (Vec::new(), Vec::<Permission>::new());
            let some = first..list.len().min(first + JUDGED_AT_ONCE);
            for (at, change) in some.filter_map(|at| Some((at, list.get(at)?))) {
                let by_name = names.names_of(change.path);
                let by_name = by_name.iter().map(|name| effects.by_name(&change, name));
                wanted.extend(by_name);
                wanted.push(effects.of(&change));
                owners.resize(wanted.len(), at);
                allowed.insert(list.path(at));
            }
            let judged = context.verdicts(APPLY, &wanted);
            for (at, verdict) in owners.into_iter().zip(judged) {
                if verdict.verdict != Verdict::Allow {
                    allowed.remove(list.path(at));
                }
            }
        }
        allowed
    }
}
