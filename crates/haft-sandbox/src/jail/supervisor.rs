//! The supervisor: this program executed again, single-threaded; a plan that comes over a socket tells it what to build.
//!
//! It creates the namespaces and forks their first process ([`super::inside`]), then only waits: for that
//! process to exit, or for the host to close the link (or to die, which closes it too). It exits only when
//! the whole tree is gone, so its exit tells the host that no process is left.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::pipe::PipeFlags;
use rustix::process::{Pid, getuid};
use rustix::thread::UnshareFlags;

use super::plan::{JailNetwork, ProgramRole, SupervisorPlan};
use super::shared::{Pipes, SupervisorFindings, open_proc};
use super::spare::AHEAD;
use super::users::{self, UserMapping};
use super::waiting::InitProcess;
use super::watch::GuardWatch;
use super::{inside, root, script};
use crate::memory::watch::{MemoryWatch, RootIdentity};
use crate::report::{JailReport, SetupFailure, receive_file, step, tell};
use crate::strength::Strength;
use crate::sys;
use crate::sys::leave;

/// Runs one jail and never returns.
pub(crate) fn run() -> ! {
    let Ok(link) = take_link() else { leave(125) };
    let ahead = is_ahead().then(|| prepare(&link));
    let plan = read_plan(&link).and_then(|plan| {
        take_input(&plan, &link).map_err(step("take the input"))?;
        Ok(plan)
    });
    let done = plan.and_then(|plan| supervise(&plan, &link, ahead));
    if let Err(SetupFailure { step, errno }) = done {
        tell(&link, &JailReport::Failed { step, errno });
        leave(125)
    }
    leave(0)
}

/// Takes the socket from standard input, where it comes so that no descriptor has to be inherited; closes all other
/// descriptors, which a host leaked by mistake.
pub(super) fn take_link() -> io::Result<UnixStream> {
    sys::close_from(3)?;
    let link = rustix::io::fcntl_dupfd_cloexec(io::stdin().as_fd(), 3)?;
    let null = std::fs::File::open("/dev/null")?;
    sys::replace(null.as_fd(), 0)?;
    Ok(link.into())
}

/// Takes the command's standard input, which follows the plan; the command inherits it from here.
fn take_input(plan: &SupervisorPlan, link: &UnixStream) -> io::Result<()> {
    if !plan.converses {
        return Ok(());
    }
    let input = receive_file(link)?;
    sys::replace(input.as_fd(), 0)
}

fn read_plan(mut link: &UnixStream) -> Result<SupervisorPlan, SetupFailure> {
    let mut length = [0; 4];
    let mut read = || -> io::Result<Vec<u8>> {
        link.read_exact(&mut length)?;
        let length = u64::from(u32::from_ne_bytes(length));
        let mut bytes = Vec::new();
        link.take(length).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(step("read the plan"))?;
    SupervisorPlan::decode(&bytes).ok_or(SetupFailure {
        step: "understand the plan".into(),
        errno: libc::EBADMSG,
    })
}

/// Returns whether it was started before there was a command for it.
fn is_ahead() -> bool {
    std::env::args_os().nth(1).is_some_and(|word| word == AHEAD)
}

/// Creates namespaces, and builds in them the part of the root that the host sends first.
fn prepare(link: &UnixStream) -> Result<UserMapping, SetupFailure> {
    let users = namespaces_ahead()?;
    root::prepare(&read_plan(link)?)?;
    Ok(users)
}

/// Builds and watches the jail; `ahead` says what was made before the plan arrived.
fn supervise(
    plan: &SupervisorPlan,
    link: &UnixStream,
    ahead: Option<Result<UserMapping, SetupFailure>>,
) -> Result<(), SetupFailure> {
    let namespaces = plan.strength() > Strength::LandlockSeccomp;
    // Opened before the namespaces: in the host's `/proc` the processes of the tree have the IDs that this process sees.
    let proc = open_proc()?;
    let watched = MemoryWatch::works(&proc);
    let grouped = join(&plan.group);
    let outside = RootIdentity::now().map_err(step("see the root"))?;
    let mut users = UserMapping::Own;
    if namespaces {
        users = match ahead {
            Some(made) => {
                let users = made?;
                sys::unshare(UnshareFlags::NEWCGROUP).map_err(step("control group namespace"))?;
                if !plan.prepared {
                    root::forget_prepared()?;
                }
                users
            }
            None => enter_namespaces(plan, &proc)?,
        };
    } else {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(io::Error::from)
            .map_err(step("adopt orphans"))?;
    }
    let (alive, mine) = pipe(PipeFlags::CLOEXEC)?;
    let (building, built) = pipe(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let around = SupervisorFindings {
        users,
        watched,
        grouped,
    };
    let Some(child) = sys::fork().map_err(step("fork"))? else {
        drop((mine, building));
        inside::run(plan, around, link, &Pipes { alive, built })
    };
    drop((alive, built));
    if plan.role != ProgramRole::Command {
        script::let_go().map_err(step("let go of the socket"))?;
    }
    let own_proc = proc.try_clone().map_err(step("open /proc"))?;
    let guards = plan.watched.as_ref();
    let mut guards = guards.map(|names| GuardWatch::new(plan, names, own_proc, building));
    let watch = memory_watch(plan, around, proc, child, outside);
    let first = InitProcess {
        child,
        adopts: !namespaces,
    };
    let done = first.wait(link, watch, guards.as_mut());
    for event in guards.map(GuardWatch::finish).unwrap_or_default() {
        tell(link, &JailReport::Guard(event));
    }
    if let Some(bytes) = done.map_err(step("wait for the jail"))? {
        let mib = i32::try_from(bytes >> 20).unwrap_or(i32::MAX);
        tell(link, &JailReport::TooMuch { mib });
    }
    Ok(())
}

/// Returns the watch over the tree's memory, or over the part of it that its control group does not count.
fn memory_watch(
    plan: &SupervisorPlan,
    around: SupervisorFindings,
    proc: OwnedFd,
    child: Pid,
    outside: RootIdentity,
) -> Option<MemoryWatch> {
    if plan.watch == 0 {
        return None;
    }
    let namespaces = plan.strength() > Strength::LandlockSeccomp;
    let own_network = namespaces && plan.net != JailNetwork::Host;
    if around.grouped {
        return own_network.then(|| MemoryWatch::beside_group(proc, child, plan.watch));
    }
    if !around.watched {
        return None;
    }
    // Without a pid namespace, orphans of the tree become children of this process.
    let first = if namespaces {
        child
    } else {
        rustix::process::getpid()
    };
    let outside = namespaces.then_some(outside);
    let watch = MemoryWatch::new(proc, first, plan.watch, outside);
    Some(if own_network {
        watch.with_sockets()
    } else {
        watch
    })
}

fn pipe(flags: PipeFlags) -> Result<(OwnedFd, OwnedFd), SetupFailure> {
    let made = rustix::pipe::pipe_with(flags).map_err(io::Error::from);
    made.map_err(step("make a pipe"))
}

/// Moves this process into the control group of the tree. The process moves itself because the kernel then need not wait until no
/// process forks or exits, which takes up to a few hundredths of a second (`cgroup_procs_write_start`, Linux 5.5).
fn join(group: &Path) -> bool {
    !group.as_os_str().is_empty() && std::fs::write(group, "0").is_ok()
}

/// Enters namespaces of every kind (except the network's if the plan uses the host's). The user's own ID is the same inside and
/// outside (root is an ordinary user in a command), so files of the workspace keep their owner, and no other ID exists.
fn enter_namespaces(plan: &SupervisorPlan, proc: &OwnedFd) -> Result<UserMapping, SetupFailure> {
    drop_groups();
    let wanted = match plan.role {
        ProgramRole::Command => UserMapping::Command,
        ProgramRole::Zygote | ProgramRole::Fresh => UserMapping::of_interpreters(),
    };
    let users = users::enter(proc, wanted)?;
    let mut others = OWN_OBJECTS | OWN_MOUNTS;
    if plan.net != JailNetwork::Host {
        others |= UnshareFlags::NEWNET;
    }
    sys::unshare(others).map_err(step("mount, pid, ipc, uts, net and cgroup namespaces"))?;
    Ok(users)
}

/// Enters the namespaces of a command with its own network, except that of the control group, which the command has not been put into.
/// The mounts are copied as they are now: the host does not use them if they have changed when there is a command.
fn namespaces_ahead() -> Result<UserMapping, SetupFailure> {
    drop_groups();
    let users = users::enter(&open_proc()?, UserMapping::Command)?;
    sys::unshare(OWN_OBJECTS | UnshareFlags::NEWNET | UnshareFlags::NEWNS)
        .map_err(step("mount, pid, ipc, uts and net namespaces"))?;
    sys::loopback_up().map_err(step("turn the loopback on"))?;
    Ok(users)
}

/// Drops the supplementary groups, which grant access too; only root may drop them, and only before the user namespace.
fn drop_groups() {
    if getuid().is_root() {
        sys::drop_groups();
    }
}

/// Namespaces that are empty when created.
const OWN_OBJECTS: UnshareFlags = UnshareFlags::NEWPID
    .union(UnshareFlags::NEWIPC)
    .union(UnshareFlags::NEWUTS);
/// Namespaces that start with the current state of the host.
const OWN_MOUNTS: UnshareFlags = UnshareFlags::NEWNS.union(UnshareFlags::NEWCGROUP);
