//! Why the machine refuses a level of confinement: one cause for each failed step, and the steps that remove it.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::StartError;
use crate::strength::{MissingFeature, Strength};

/// The name of what most machines forbid that forbid anything.
const NAMESPACES: &str = "user namespaces";
/// Maximum number of bytes of a file in `/proc` that are read.
const MAX_BYTES: u64 = 8192;

/// What the machine says about user namespaces.
#[derive(Debug, Clone)]
struct UserNamespaceFacts {
    /// Their maximum number, `user.max_user_namespaces`.
    limit: Option<u64>,
    /// Whether `AppArmor` permits them only to programs with a profile, as Ubuntu 24.04 and later have it.
    by_profile: bool,
    /// Whether only root may create them, as older Debian has it.
    for_root: bool,
    /// Whether a filter of system calls is on this process, as in a container.
    filtered: bool,
    /// This program.
    program: PathBuf,
}

impl UserNamespaceFacts {
    fn now() -> Self {
        let number = |file: &str| {
            read(Path::new("/proc/sys").join(file).as_path())?
                .trim()
                .parse()
                .ok()
        };
        let status = read(Path::new("/proc/self/status")).unwrap_or_default();
        Self {
            limit: number("user/max_user_namespaces"),
            by_profile: number("kernel/apparmor_restrict_unprivileged_userns") == Some(1),
            for_root: number("kernel/unprivileged_userns_clone") == Some(0),
            filtered: status.lines().any(|line| line == "Seccomp:\t2"),
            program: std::env::current_exe().unwrap_or_else(|_| "/usr/bin/haft".into()),
        }
    }

    /// Says why this step of making the namespaces failed, and what allows it, one numbered step a line.
    fn refusal(&self, errno: i32) -> (String, String) {
        let persist = |setting: &str| {
            steps(&[
                &format!("sudo sysctl -w {setting}"),
                &format!(
                    "echo {setting} | sudo tee /etc/sysctl.d/60-haft.conf   # keeps it after a restart"
                ),
            ])
        };
        match errno {
            libc::ENOSPC => {
                let why = match self.limit {
                    Some(limit) => format!("their limit user.max_user_namespaces is {limit}"),
                    None => "their limit user.max_user_namespaces is reached".to_owned(),
                };
                (why, persist("user.max_user_namespaces=10000"))
            }
            libc::ENOSYS | libc::EINVAL if !self.filtered => (
                "this kernel has none".to_owned(),
                steps(&["use a kernel with CONFIG_USER_NS=y"]),
            ),
            libc::EPERM | libc::EACCES if self.by_profile => (
                "AppArmor permits them only to programs with a profile".to_owned(),
                steps(&[
                    &format!(
                        "printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile haft \"%s\" flags=(unconfined) {{ userns, }}\\n' \
                         '{}' | sudo tee /etc/apparmor.d/haft",
                        self.program.display()
                    ),
                    "sudo apparmor_parser -r /etc/apparmor.d/haft",
                ]),
            ),
            libc::EPERM | libc::EACCES if self.for_root => (
                "only root may create them (kernel.unprivileged_userns_clone is 0)".to_owned(),
                persist("kernel.unprivileged_userns_clone=1"),
            ),
            libc::EPERM | libc::EACCES | libc::ENOSYS if self.filtered => (
                "a filter of system calls forbids them, as in a container or in a command of haft"
                    .to_owned(),
                steps(&[
                    "start the container with --security-opt seccomp=unconfined, or with a profile that allows unshare, mount and pivot_root; a command of haft \
                     has no namespaces to give: what runs there needs sandbox.require = \"landlock+seccomp\"",
                ]),
            ),
            errno => (
                io::Error::from_raw_os_error(errno).to_string(),
                steps(&[
                    "allow this user to create them: `man 7 user_namespaces` names the settings",
                ]),
            ),
        }
    }
}

fn read(file: &Path) -> Option<String> {
    let mut text = String::new();
    let file = fs::File::open(file).ok()?;
    file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Numbers the steps, one a line.
fn steps(steps: &[&str]) -> String {
    let each = steps.iter().enumerate();
    let lines: Vec<String> = each
        .map(|(at, step)| format!("{}. {step}", at + 1))
        .collect();
    lines.join("\n")
}

/// Says what the failure to set up a level means, and how to get that level.
pub(super) fn missing(strength: Strength, error: &StartError) -> MissingFeature {
    explain(strength, error, &UserNamespaceFacts::now())
}

fn explain(strength: Strength, error: &StartError, host: &UserNamespaceFacts) -> MissingFeature {
    let StartError::Jail { step, source } = error else {
        return of_level(strength, error);
    };
    let errno = source.raw_os_error().unwrap_or_default();
    // A machine that forbids them may let the first step pass and refuse what only their owner may do.
    let makes_namespaces = [
        "namespace",
        "setgroups",
        "uid_map",
        "gid_map",
        "bind",
        "leave the host's mounts",
        "make a root",
    ];
    if step == "open /proc" {
        return decisive(
            "/proc",
            "it is not mounted".to_owned(),
            steps(&["sudo mount -t proc proc /proc"]),
        );
    }
    if makes_namespaces.iter().any(|part| step.contains(part)) {
        let (why, fix) = host.refusal(errno);
        return decisive(NAMESPACES, why, fix);
    }
    if step.contains("/proc") && strength == Strength::Full {
        let fix = steps(&["in a container, unmask /proc: --security-opt systempaths=unconfined"]);
        return decisive("a fresh /proc", format!("{step}: {source}"), fix);
    }
    of_level(strength, error)
}

/// The level failed in a step that no setting of the machine explains.
fn of_level(strength: Strength, error: &StartError) -> MissingFeature {
    if strength == Strength::LandlockSeccomp {
        let fix = steps(&["use Linux 5.13 or later with both enabled"]);
        return decisive("Landlock and seccomp", error.to_string(), fix);
    }
    decisive(
        "namespaces",
        error.to_string(),
        steps(&["see the step that failed"]),
    )
}

fn decisive(what: &str, why: String, fix: String) -> MissingFeature {
    MissingFeature {
        what: what.into(),
        why,
        fix,
        decides: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The machine that a row describes, the failed step, and what is said about it.
    struct Row {
        host: fn(&mut UserNamespaceFacts),
        step: &'static str,
        errno: i32,
        what: &'static str,
        why: &'static str,
        fix: &'static str,
    }

    const PLAIN: fn(&mut UserNamespaceFacts) = |_| {};

    #[test]
    #[expect(clippy::too_many_lines, reason = "one table")]
    fn each_refusal_of_a_machine_has_its_cause_and_its_recipe() {
        let rows = [
            Row {
                host: |host| host.limit = Some(0),
                step: "user namespace",
                errno: libc::ENOSPC,
                what: NAMESPACES,
                why: "user.max_user_namespaces is 0",
                fix: "1. sudo sysctl -w user.max_user_namespaces=10000\n2. echo",
            },
            Row {
                host: PLAIN,
                step: "mount, pid, ipc, uts, net and cgroup namespaces",
                errno: libc::ENOSPC,
                what: NAMESPACES,
                why: "limit",
                fix: "sysctl",
            },
            Row {
                host: |host| host.by_profile = true,
                step: "user namespace",
                errno: libc::EPERM,
                what: NAMESPACES,
                why: "AppArmor",
                fix: "profile haft",
            },
            Row {
                host: |host| host.by_profile = true,
                step: "write uid_map",
                errno: libc::EACCES,
                what: NAMESPACES,
                why: "AppArmor",
                fix: "'/opt/haft' | sudo tee",
            },
            Row {
                host: |host| host.by_profile = true,
                step: "leave the host's mounts",
                errno: libc::EACCES,
                what: NAMESPACES,
                why: "AppArmor",
                fix: "2. sudo apparmor_parser -r",
            },
            Row {
                host: |host| host.for_root = true,
                step: "user namespace",
                errno: libc::EPERM,
                what: NAMESPACES,
                why: "unprivileged_userns_clone is 0",
                fix: "kernel.unprivileged_userns_clone=1",
            },
            Row {
                host: |host| host.filtered = true,
                step: "user namespace",
                errno: libc::EPERM,
                what: NAMESPACES,
                why: "filter of system calls",
                fix: "seccomp=unconfined",
            },
            Row {
                host: |host| host.filtered = true,
                step: "user namespace",
                errno: libc::ENOSYS,
                what: NAMESPACES,
                why: "filter of system calls",
                fix: "seccomp=unconfined",
            },
            Row {
                host: PLAIN,
                step: "user namespace",
                errno: libc::ENOSYS,
                what: NAMESPACES,
                why: "this kernel has none",
                fix: "CONFIG_USER_NS",
            },
            Row {
                host: PLAIN,
                step: "user namespace",
                errno: libc::EPERM,
                what: NAMESPACES,
                why: "not permitted",
                fix: "man 7 user_namespaces",
            },
            Row {
                host: PLAIN,
                step: "open /proc",
                errno: libc::ENOENT,
                what: "/proc",
                why: "not mounted",
                fix: "mount -t proc",
            },
            Row {
                host: |host| host.filtered = true,
                step: "mount /proc",
                errno: libc::EPERM,
                what: "a fresh /proc",
                why: "mount /proc",
                fix: "systempaths=unconfined",
            },
            Row {
                host: PLAIN,
                step: "limit resources",
                errno: libc::EPERM,
                what: "namespaces",
                why: "limit resources",
                fix: "the step that failed",
            },
        ];
        for row in rows {
            let mut host = UserNamespaceFacts {
                limit: None,
                by_profile: false,
                for_root: false,
                filtered: false,
                program: "/opt/haft".into(),
            };
            (row.host)(&mut host);
            let error = StartError::Jail {
                step: row.step.to_owned(),
                source: io::Error::from_raw_os_error(row.errno),
            };
            let missing = explain(Strength::Full, &error, &host);
            assert_eq!(missing.what, row.what, "{missing}");
            assert!(missing.why.contains(row.why), "{missing}");
            assert!(missing.fix.contains(row.fix), "{missing}");
            assert!(
                missing.decides && !missing.why.contains("space left"),
                "{missing}"
            );
        }
    }
}
