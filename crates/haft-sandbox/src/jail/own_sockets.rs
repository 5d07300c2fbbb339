//! Plans the sockets of the host's own program that a command sees.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path};

use super::depth;
use super::plan::{BindMode, RootEntry, SupervisorPlan};
use super::wrong;
use crate::StartError;
use crate::command::Mounts;
use crate::strength::Strength;

/// Folders in which no socket is shown, besides those that a jail shows of the host: a jail has its own.
const MADE: [&str; 4] = ["/proc", "/sys", "/dev", "/etc"];

/// Adds the sockets to the plan. Without a root of its own, a command reaches no socket file.
pub(super) fn show(plan: &mut SupervisorPlan, mounts: &Mounts) -> Result<(), StartError> {
    if plan.strength() <= Strength::LandlockSeccomp {
        return Ok(());
    }
    for (source, target) in &mounts.sockets {
        let is_socket =
            fs::symlink_metadata(source).is_ok_and(|about| about.file_type().is_socket());
        if !is_socket {
            return Err(wrong(source, "is not a socket"));
        }
        if let Some(why) = refusal(plan, target) {
            return Err(wrong(target, why));
        }
        plan.entries.push(RootEntry::Bind {
            source: source.clone(),
            target: target.clone(),
            kind: BindMode::Data,
        });
    }
    plan.entries.sort_by_key(depth);
    Ok(())
}

/// Says why no socket can be shown at a path: nothing can be placed in what a jail shows of the host.
fn refusal(plan: &SupervisorPlan, target: &Path) -> Option<&'static str> {
    let mut parts = target.components();
    let is_plain = parts.next() == Some(Component::RootDir)
        && parts.clone().next().is_some()
        && parts.all(|part| matches!(part, Component::Normal(_)));
    if !is_plain {
        return Some("is not the path of a socket");
    }
    let is_filled = |entry: &RootEntry| match entry {
        RootEntry::Tmpfs { .. } | RootEntry::Dir { .. } | RootEntry::PrivateDir { .. } => {
            target == entry.target()
        }
        entry => target.starts_with(entry.target()),
    };
    let system = crate::places::SYSTEM.iter().chain(&MADE);
    let is_systems = system.into_iter().any(|folder| target.starts_with(folder));
    (is_systems || plan.entries.iter().any(is_filled))
        .then_some("lies in a folder that commands see as it is on the host")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::plan::{BindMode, RootEntry, SupervisorPlan};
    use super::refusal;

    #[test]
    fn a_socket_is_shown_where_a_jail_shows_nothing_of_the_host() {
        let plan = SupervisorPlan {
            entries: vec![
                RootEntry::Tmpfs {
                    target: "/tmp".into(),
                    megabytes: 1,
                },
                RootEntry::Bind {
                    source: "/w".into(),
                    target: "/w".into(),
                    kind: BindMode::ReadWrite,
                },
            ],
            ..SupervisorPlan::default()
        };
        for (target, shown) in [
            ("/run/haft/x", true),
            ("/run/postgresql/.s.PGSQL.5432", true),
            ("/var/lib/mysql/mysql.sock", true),
            ("/tmp/mongodb.sock", true),
            ("/home/ann/app/dev.sock", true),
            ("/w/dev.sock", false),
            ("/tmp", false),
            ("/usr/x.sock", false),
            ("/etc/x.sock", false),
            ("/proc/x.sock", false),
            ("/", false),
            ("run/x", false),
            ("/run/../x", false),
        ] {
            assert_eq!(
                refusal(&plan, Path::new(target)).is_none(),
                shown,
                "{target}"
            );
        }
    }
}
