//! The locks that the command cannot remove: Landlock, resource limits, capabilities, seccomp.

use std::io;

use haft_types::beneath::open_without_links;
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fs::{FileType, OFlags, fstat};
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    configure_capability_in_ambient_set, remove_capability_from_bounding_set, set_capabilities,
    set_capabilities_secure_bits, set_no_new_privs,
};

use super::plan::{KernelLimits, LandlockGrant, SupervisorPlan};
use crate::report::{SetupFailure, step};

/// The newest Landlock ABI that this code knows; a kernel with an older one enforces what it has, and the probe
/// reports which.
const ABI_KNOWN: ABI = ABI::V7;

/// Returns the accesses of a grant; the right to move between folders comes with the right to write.
fn access(grant: LandlockGrant, folder: bool) -> BitFlags<AccessFs> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let access = match grant {
        LandlockGrant::List => AccessFs::ReadDir.into(),
        LandlockGrant::Read => read,
        LandlockGrant::Execute => read | AccessFs::Execute,
        LandlockGrant::Write => {
            AccessFs::from_all(ABI_KNOWN)
                & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
        }
        LandlockGrant::Device => AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev,
        LandlockGrant::Script => {
            AccessFs::from_all(ABI_KNOWN)
                & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
                & !(AccessFs::MakeSock | AccessFs::Execute)
        }
    };
    if folder {
        access
    } else {
        access & AccessFs::from_file(ABI_KNOWN)
    }
}

/// Grants what the plan lists and nothing else; returns the enforced ABI, 0 if there is none.
pub(crate) fn landlock(plan: &SupervisorPlan) -> Result<u8, SetupFailure> {
    let failed = |error: &dyn std::fmt::Display| SetupFailure {
        step: format!("landlock: {error}"),
        errno: libc::EINVAL,
    };
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI_KNOWN))
        .and_then(|rules| rules.scope(Scope::AbstractUnixSocket | Scope::Signal))
        .and_then(Ruleset::create)
        .map_err(|error| failed(&error))?;
    for (path, grant) in &plan.grants {
        let file = match open_without_links(path, OFlags::PATH) {
            Ok(file) => file,
            // The list serves every machine: a path that does not exist here needs no grant.
            Err(rustix::io::Errno::NOENT) => continue,
            Err(errno) => return Err(step(format!("grant {}", path.display()))(errno.into())),
        };
        let stat = fstat(&file).map_err(|errno| step("grant")(errno.into()))?;
        let folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        rules = rules
            .add_rule(PathBeneath::new(file, access(*grant, folder)))
            .map_err(|error| failed(&error))?;
    }
    let status = rules.restrict_self().map_err(|error| failed(&error))?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) => Ok(0),
        (_, LandlockStatus::Available { effective_abi, .. }) => Ok(effective_abi as u8),
        _ => Ok(0),
    }
}

/// With 0 the kernel would still start the machine's core dump handler, outside the jail, for a process that
/// crashes; with 1 it does not, and no core file is that small.
pub(crate) const NO_CORE: u64 = 1;

/// Sets the limits; a limit above the user's hard limit is lowered to it.
pub(crate) fn limits(caps: &KernelLimits) -> io::Result<()> {
    let KernelLimits {
        data,
        pids,
        file,
        cpu,
        open_files,
    } = *caps;
    for (resource, value) in [
        (Resource::Core, NO_CORE),
        (Resource::Data, data),
        (Resource::Fsize, file),
        (Resource::Cpu, cpu),
        (Resource::Nofile, open_files),
        (Resource::Nproc, pids),
    ] {
        if value == u64::MAX {
            continue;
        }
        let most = rustix::process::getrlimit(resource)
            .maximum
            .unwrap_or(u64::MAX);
        let value = Some(value.min(most));
        setrlimit(
            resource,
            Rlimit {
                current: value,
                maximum: value,
            },
        )?;
    }
    for resource in SHARED {
        let now = rustix::process::getrlimit(resource);
        // Of what the user's other programs may use: where that is less than the hard limit, a share of that could be more.
        let most = [now.current, now.maximum].into_iter().flatten().min();
        let share = most.map(|most| most / SHARE);
        setrlimit(
            resource,
            Rlimit {
                current: share,
                maximum: share,
            },
        )?;
    }
    Ok(())
}

/// What the kernel limits for all processes of a user together: queued signals and timers, message queues, shared memory that is locked.
const SHARED: [Resource; 3] = [Resource::Sigpending, Resource::Msgqueue, Resource::Memlock];
/// A command may use up one part of this many, so that the user's other programs have the rest.
const SHARE: u64 = 4;

/// Drops every capability, and every way to regain one.
pub(crate) fn capabilities() -> io::Result<()> {
    let _ = clear_ambient_capability_set();
    give_up(CapabilitySet::empty())?;
    set_no_new_privs(true)?;
    // No process inside may inspect the process that holds the jail together.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// The capabilities to create mounts for scripts: for namespaces, mounts, and the way back to its own.
pub(crate) const MAKES_MOUNTS: CapabilitySet =
    CapabilitySet::SYS_ADMIN.union(CapabilitySet::SYS_CHROOT);
/// The capabilities to create locked children, and to drop the rest.
pub(crate) const MAKES_CHILDREN: CapabilitySet = MAKES_MOUNTS.union(CapabilitySet::SETPCAP);

/// Drops every capability except these, which an executed program keeps too.
pub(crate) fn keep(kept: CapabilitySet) -> io::Result<()> {
    // `SETPCAP` is needed until the others are dropped.
    let all = kept | CapabilitySet::SETPCAP;
    let sets = CapabilitySets {
        effective: all,
        permitted: all,
        inheritable: kept,
    };
    set_capabilities(None, sets)?;
    for one in kept.iter() {
        configure_capability_in_ambient_set(one, true)?;
    }
    give_up(kept)?;
    set_no_new_privs(true)?;
    Ok(())
}

/// Drops everything except `kept` from what an executed program could have, and locks that.
fn give_up(kept: CapabilitySet) -> io::Result<()> {
    for number in 0..64 {
        let one = CapabilitySet::from_bits_retain(1 << number);
        if kept.contains(one) {
            continue;
        }
        match remove_capability_from_bounding_set(one) {
            Ok(()) => {}
            // Numbers above the kernel's last capability; or, without namespaces, no right to drop what the
            // process does not have anyway.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::PERM) => break,
            Err(errno) => return Err(errno.into()),
        }
    }
    let secure = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    match set_capabilities_secure_bits(secure) {
        Ok(()) | Err(rustix::io::Errno::PERM) => {}
        Err(errno) => return Err(errno.into()),
    }
    set_capabilities(
        None,
        CapabilitySets {
            effective: kept,
            permitted: kept,
            inheritable: kept,
        },
    )?;
    Ok(())
}

/// Installs the filters, last: they forbid much of the above.
pub(crate) fn seccomp(plan: &SupervisorPlan) -> Result<(), SetupFailure> {
    for filter in &plan.filters {
        seccompiler::apply_filter(filter).map_err(|error| SetupFailure {
            step: format!("seccomp: {error}"),
            errno: io::Error::last_os_error()
                .raw_os_error()
                .unwrap_or(libc::EINVAL),
        })?;
    }
    Ok(())
}
