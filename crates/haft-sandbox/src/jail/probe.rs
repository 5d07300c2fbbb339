//! Finds what the machine provides: sets up each level around a child that does nothing.

use std::ffi::OsString;

use super::report::Held;
use super::{Level, Machine, is_entered, set_up};
use crate::command::CommandSpec;
use crate::memory::MemoryBound;
use crate::memory::cgroup::Groups;
use crate::strength::{Missing, Probe, Strength};
use crate::{Config, StartError};

/// The Landlock ABI that controls truncation; without it, a command in the host's root could empty every file
/// that its user may write.
const TRUNCATE: u32 = 3;

/// Finds the strongest level that actually works, by setting up each one around a child that does nothing.
pub(crate) async fn probe(config: &Config, machine: &Machine) -> Probe {
    let entered = is_entered() || config.supervisor.is_some();
    let mut probe = Probe {
        strength: Strength::None,
        landlock_abi: 0,
        memory: MemoryBound::Process,
        pids: "nothing",
        missing: Vec::new(),
        level: Strength::None,
        entered,
    };
    if !entered {
        return probe;
    }
    let most = config.at_most.unwrap_or(Strength::Full);
    let groups = machine.groups.as_ref();
    for strength in [Strength::Full, Strength::NoProc, Strength::LandlockSeccomp] {
        if strength > most {
            probe.missing.push(not_wanted(strength));
            continue;
        }
        let spec = CommandSpec::argv(Vec::<OsString>::new(), "/");
        let level = Level {
            strength,
            landlock: 0,
            memory: groups.map_or(MemoryBound::Process, Groups::bound),
        };
        match set_up(config, machine, level, &spec, None).await {
            Ok((_, held)) => {
                probe.landlock_abi = u32::from(held.landlock);
                (probe.strength, probe.level) = (strength, strength);
                let bare = strength == Strength::LandlockSeccomp;
                if probe.landlock_abi < if bare { TRUNCATE } else { 1 } {
                    probe.missing.push(no_landlock(bare));
                    probe.strength = if bare {
                        Strength::None
                    } else {
                        strength.min(Strength::NoProc)
                    };
                }
                probe.memory = match groups {
                    Some(groups) if held.grouped => groups.bound(),
                    _ if held.watched => MemoryBound::Watched,
                    _ => MemoryBound::Process,
                };
                if probe.memory == MemoryBound::Process {
                    probe.missing.push(no_memory());
                }
                probe.pids = pids(held);
                if probe.pids == "nothing" {
                    probe.missing.push(no_count());
                }
                break;
            }
            Err(error) => probe.missing.push(missing(strength, &error)),
        }
    }
    probe
}

/// Returns what limits the number of processes; the kernel never applies the resource limit to root.
fn pids(held: Held) -> &'static str {
    match held.counted {
        true => "pid_max",
        false if rustix::process::getuid().is_root() => "nothing",
        false => "rlimit (per user)",
    }
}

fn no_memory() -> Missing {
    Missing {
        what: "a limit on the memory of all processes together".into(),
        why: "no control group can be made here, and /proc does not say what a tree has".into(),
        fix: "delegate a control group with `memory`, or mount /proc with the numbers of processes"
            .into(),
    }
}

fn no_count() -> Missing {
    Missing {
        what: "a limit on processes".into(),
        why: "for root the kernel has none without a cgroup before Linux 6.14".into(),
        fix: "run as another user, or on Linux 6.14 or later".into(),
    }
}

fn not_wanted(strength: Strength) -> Missing {
    Missing {
        what: strength.to_string(),
        why: "the configuration asks for less".into(),
        fix: "raise `at_most`".into(),
    }
}

fn no_landlock(bare: bool) -> Missing {
    let (least, why) = if bare {
        let why = "without namespaces it must decide about cutting files off, too";
        ("6.2", why)
    } else {
        ("5.13", "the kernel has none or does not enable it")
    };
    Missing {
        what: "Landlock".into(),
        why: why.into(),
        fix: format!("use Linux {least} or later with `landlock` in the `lsm=` boot parameter"),
    }
}

/// Explains how to allow user namespaces: on Ubuntu 24.04 and later by a profile for this program alone.
fn allow_namespaces() -> String {
    let program = std::env::current_exe().unwrap_or_else(|_| "/usr/bin/haft".into());
    let program = program.display();
    format!(
        "allow them. Ubuntu 24.04 and later: write the lines `abi <abi/4.0>,`, `include <tunables/global>` and \
         `profile haft \"{program}\" flags=(unconfined) {{ userns, }}` to /etc/apparmor.d/haft and run \
         `apparmor_parser -r /etc/apparmor.d/haft`. Elsewhere: `sysctl -w user.max_user_namespaces=10000`. In a container: \
         `--security-opt seccomp=unconfined`"
    )
}

/// Explains what a level's failure means and how to fix it.
fn missing(strength: Strength, error: &StartError) -> Missing {
    let why = error.to_string();
    let (what, fix) = if why.contains("/proc") && strength == Strength::Full {
        (
            "a fresh /proc",
            "in a container run it with an unmasked /proc (`--security-opt systempaths=unconfined`)",
        )
    } else if why.contains("namespace") || why.contains("uid_map") || why.contains("bind") {
        return Missing {
            what: "user namespaces".into(),
            why,
            fix: allow_namespaces(),
        };
    } else if strength == Strength::LandlockSeccomp {
        (
            "Landlock and seccomp",
            "use Linux 5.13 or later with both enabled",
        )
    } else {
        ("the jail", "see the step that failed")
    };
    Missing {
        what: what.into(),
        why,
        fix: fix.into(),
    }
}
