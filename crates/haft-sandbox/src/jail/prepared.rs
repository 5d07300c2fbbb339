//! The part of a root that is the same for all commands: a spare supervisor builds it before there is a command.

use std::os::unix::ffi::OsStrExt;

use super::plan::{RootEntry, SupervisorPlan};
use super::system::SystemList;
use super::{depth, machine_files, terminals};
use crate::command::{CommandSpec, ProcessLimits};

/// Returns the plan, encoded, of what a spare supervisor prepares for a command with these limits.
pub(super) fn part(system: &SystemList, limits: &ProcessLimits) -> Vec<u8> {
    let mut entries = system.entries.clone();
    entries.extend(machine_files::of_limits(limits));
    entries.extend(terminals::devices());
    entries.sort_by_key(depth);
    SupervisorPlan {
        entries,
        ..SupervisorPlan::default()
    }
    .encode()
}

/// Completes a command's entries by those of the system, unless the supervisor has prepared them and none of them would have to come
/// after one of the command's, or is replaced by one of a toolchain. What tells the limits is added if it was prepared for others.
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
    plan.prepared = prepared_for.is_some() && !system.entries.iter().any(late);
    if !plan.prepared || prepared_for != Some(spec.limits) {
        plan.entries.extend(machine_files::of_limits(&spec.limits));
    }
    if !plan.prepared {
        let entries = system.entries.iter().filter(|entry| !replaced(entry));
        let entries: Vec<_> = entries.cloned().collect();
        plan.entries.splice(..0, entries);
        plan.entries.extend(terminals::devices());
    }
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
    use crate::command::CommandSpec;

    use super::super::plan::{RootEntry, SupervisorPlan};
    use super::super::system::SystemList;
    use super::super::terminals;
    use super::complete;

    /// The files that tell the limits.
    const LIMITS: usize = 10;

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
        ] {
            let mut system = SystemList::default();
            system.entries = vec![folder("/usr"), folder("/opt/tool")];
            let mut plan = SupervisorPlan {
                entries: own.iter().map(|path| folder(path)).collect(),
                ..SupervisorPlan::default()
            };
            let spec = CommandSpec::line("true", "/w");
            complete(&mut plan, &system, &spec, Some(spec.limits));
            assert_eq!(plan.prepared, prepared, "{own:?}");
            let common = 2 + LIMITS + terminals::devices().len();
            let expect = own.len() + if prepared { 0 } else { common };
            assert_eq!(plan.entries.len(), expect, "{own:?}");
            assert!(plan.entries.is_sorted_by_key(super::depth));
        }
    }
}
