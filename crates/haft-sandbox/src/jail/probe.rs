//! Finds what the machine provides: sets up each level around a child that does nothing.

use std::ffi::OsString;

use super::cause::missing;
use super::{JailLevel, Machine, is_entered, set_up};
use crate::Config;
use crate::command::CommandSpec;
use crate::memory::MemoryBound;
use crate::memory::cgroup::ControlGroups;
use crate::report::ActiveMechanisms;
use crate::strength::{MissingFeature, PID_MAX, Probe, Strength};

/// The Landlock ABI that controls truncation; without it, a command in the host's root could empty every file
/// that its user may write.
const TRUNCATE: u32 = 3;

/// Finds the strongest level that actually works, by setting up each one around a child that does nothing.
pub(crate) async fn probe(config: &Config, machine: &Machine) -> Probe {
    let entered = can_enter(config);
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
        let level = JailLevel {
            strength,
            landlock: 0,
            memory: groups.map_or(MemoryBound::Process, ControlGroups::bound),
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
            Err(error) => note(&mut probe.missing, missing(strength, &error)),
        }
    }
    probe
}

/// Whether there is a program that becomes a supervisor.
pub(crate) fn can_enter(config: &Config) -> bool {
    is_entered() || config.supervisor.is_some()
}

/// Adds what is missing, once: a weaker level fails for the same reason.
fn note(known: &mut Vec<MissingFeature>, missing: MissingFeature) {
    if known.iter().all(|one| one.what != missing.what) {
        known.push(missing);
    }
}

/// Returns what limits the number of processes; the kernel never applies the resource limit to root.
fn pids(held: ActiveMechanisms) -> &'static str {
    match held.counted {
        true => PID_MAX,
        false if rustix::process::getuid().is_root() => "nothing",
        false => "rlimit (per user)",
    }
}

fn no_memory() -> MissingFeature {
    MissingFeature {
        what: "a limit on the memory of all processes together".into(),
        why: "no control group can be made here, and /proc does not say what a tree has: only the private memory of each process is limited".into(),
        fix: "delegate a control group with `memory`, or mount /proc with the numbers of processes"
            .into(),
        decides: false,
    }
}

fn no_count() -> MissingFeature {
    MissingFeature {
        what: "a limit on processes".into(),
        why: "for root the kernel has none without a cgroup before Linux 6.14".into(),
        fix: "run as another user, or on Linux 6.14 or later".into(),
        decides: false,
    }
}

fn not_wanted(strength: Strength) -> MissingFeature {
    MissingFeature {
        what: strength.to_string(),
        why: "the configuration asks for less".into(),
        fix: "raise `at_most`".into(),
        decides: true,
    }
}

fn no_landlock(bare: bool) -> MissingFeature {
    let (least, why) = if bare {
        let why = "without namespaces it must decide about cutting files off, too";
        ("6.2", why)
    } else {
        ("5.13", "the kernel has none or does not enable it")
    };
    MissingFeature {
        what: "Landlock".into(),
        why: why.into(),
        fix: format!("use Linux {least} or later with `landlock` in the `lsm=` boot parameter"),
        decides: true,
    }
}
