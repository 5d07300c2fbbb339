//! The part of a root that is the same for all commands: a jail that is started ahead builds it before there is a command.

use std::os::unix::ffi::OsStrExt;

use super::plan::{RootEntry, SupervisorPlan};
use super::system::SystemList;
use super::{depth, machine_files, terminals};
use crate::command::{CommandSpec, ProcessLimits};
use crate::strength::Strength;

/// Where the private folder of a command is.
pub(super) const SCRATCH: &str = "/tmp";

/// Returns the plan of what is prepared for a command with these limits, at this level.
pub(super) fn part(
    system: &SystemList,
    limits: &ProcessLimits,
    strength: Strength,
) -> SupervisorPlan {
    let mut entries = system.entries.clone();
    entries.extend(of_all(limits));
    // Written again at the start.
    entries.extend(machine_files::of_start());
    entries.sort_by_key(depth);
    let mut part = SupervisorPlan {
        entries,
        ..SupervisorPlan::default()
    };
    part.set_strength(strength);
    part
}

/// Returns what all commands with these limits have besides the system's entries.
fn of_all(limits: &ProcessLimits) -> Vec<RootEntry> {
    let mut entries = terminals::entries();
    entries.push(RootEntry::Tmpfs {
        target: SCRATCH.into(),
        megabytes: limits.tmp_mb,
    });
    entries.extend(machine_files::of_limits(limits));
    entries
}

/// Completes a command's entries by those of all commands, unless they were prepared for such limits, none of them would have to come
/// after one of the command's, and none is replaced by one of a toolchain. What tells the limits is added if it was prepared for others.
pub(super) fn complete(
    plan: &mut SupervisorPlan,
    system: &SystemList,
    spec: &CommandSpec,
    prepared_for: Option<ProcessLimits>,
) {
    let toolchains = spec.mounts.toolchains.as_deref();
    let replaced = |entry: &RootEntry| toolchains.is_some_and(|all| all.shows(entry.target()));
    let own = &plan.entries;
    let late =
        |entry: &RootEntry| replaced(entry) || own.iter().any(|other| is_below(entry, other));
    let same_size = |limits: ProcessLimits| limits.tmp_mb == spec.limits.tmp_mb;
    plan.prepared = prepared_for.is_some_and(same_size) && !system.entries.iter().any(late);
    let mut first = Vec::new();
    if !plan.prepared {
        let entries = system.entries.iter().filter(|entry| !replaced(entry));
        first.extend(entries.cloned());
        first.extend(of_all(&spec.limits));
    } else if prepared_for != Some(spec.limits) {
        first.extend(machine_files::of_limits(&spec.limits));
    }
    first.extend(machine_files::of_start());
    plan.entries.splice(..0, first);
    plan.entries.sort_by_key(depth);
}

/// Returns whether the target of one lies below that of the other, compared by bytes: there are thousands of pairs.
fn is_below(entry: &RootEntry, other: &RootEntry) -> bool {
    let [entry, other] = [entry, other].map(|entry| entry.target().as_os_str().as_bytes());
    let rest = entry.strip_prefix(other);
    rest.is_some_and(|rest| rest.first() == Some(&b'/'))
}

#[cfg(test)]
mod tests {
    use crate::command::{CommandSpec, ProcessLimits};

    use super::super::plan::{RootEntry, SupervisorPlan};
    use super::super::system::SystemList;
    use super::{complete, of_all};

    /// The files that tell the moment of the start.
    const OF_START: usize = 2;

    fn folder(target: &str) -> RootEntry {
        RootEntry::Dir {
            target: target.into(),
        }
    }

    #[test]
    fn a_prepared_root_is_used_unless_one_of_its_entries_comes_later() {
        for (own, prepared) in [
            (&["/w", "/usr/src/app"][..], true),
            (&["/opt"], false),
            (&["/opt/tool"], true),
            (&["/op"], true),
            (&["/tmp/w"], true),
        ] {
            let (plan, spec) = completed(own, |_| {});
            assert_eq!(plan.prepared, prepared, "{own:?}");
            let common = 2 + of_all(&spec.limits).len();
            let expect = own.len() + OF_START + if prepared { 0 } else { common };
            assert_eq!(plan.entries.len(), expect, "{own:?}");
            assert!(plan.entries.is_sorted_by_key(super::depth));
        }
    }

    #[test]
    fn a_prepared_root_is_used_for_other_limits_but_not_for_another_size_of_the_private_folder() {
        let (plan, _) = completed(&["/w"], |limits| limits.memory_mb = Some(7));
        let tells = |entry: &RootEntry| entry.target().ends_with("memory.max");
        assert!(plan.prepared && plan.entries.iter().any(tells));
        let (plan, _) = completed(&["/w"], |limits| limits.tmp_mb += 1);
        assert!(!plan.prepared);
    }

    /// Returns the plan for a command with entries of its own, and these limits; the root was prepared for the usual ones.
    fn completed(
        own: &[&str],
        limit: impl FnOnce(&mut ProcessLimits),
    ) -> (SupervisorPlan, CommandSpec) {
        let mut system = SystemList::default();
        system.entries = vec![folder("/usr"), folder("/opt/tool")];
        let mut plan = SupervisorPlan {
            entries: own.iter().map(|path| folder(path)).collect(),
            ..SupervisorPlan::default()
        };
        let mut spec = CommandSpec::line("true", "/w");
        let prepared_for = spec.limits;
        limit(&mut spec.limits);
        complete(&mut plan, &system, &spec, Some(prepared_for));
        (plan, spec)
    }
}
