//! The supervisor: this program executed again, single-threaded; a plan that comes over a socket tells it what to build.
//!
//! It creates the namespaces and forks their first process ([`super::inside`]), then only waits: for that
//! process to exit, or for the host to close the link (or to die, which closes it too). It exits only when
//! the whole tree is gone, so its exit tells the host that no process is left. If it was started ahead, both processes wait for the plan.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::process::{Pid, Signal, WaitOptions, getuid, kill_process, waitpid};
use rustix::thread::UnshareFlags;

use super::plan::{JailNetwork, ProgramRole, SupervisorPlan};
use super::shared::{SupervisorFindings, open_proc};
use super::spare::AHEAD;
use super::users::{self, UserMapping};
use super::waiting::InitProcess;
use super::watch::GuardWatch;
use super::{frames, inside, script};
use crate::memory::watch::{MemoryWatch, RootIdentity};
use crate::report::{JailReport, SetupFailure, step, tell};
use crate::strength::Strength;
use crate::sys;
use crate::sys::leave;

/// Runs one jail and never returns.
pub(crate) fn run() -> ! {
    let Ok(link) = take_link() else { leave(125) };
    let done = if is_ahead() {
        run_ahead(&link)
    } else {
        run_planned(&link)
    };
    if let Err(SetupFailure { step, errno }) = done {
        tell(&link, &JailReport::Failed { step, errno });
        leave(125)
    }
    leave(0)
}

/// Takes the socket from standard input, where it comes so that no descriptor has to be inherited. What else came from the host is dropped:
/// descriptors, which it leaked by mistake, and the signals that it ignores.
pub(super) fn take_link() -> io::Result<UnixStream> {
    sys::close_from(3)?;
    sys::ignore_no_signals();
    let link = rustix::io::fcntl_dupfd_cloexec(io::stdin().as_fd(), 3)?;
    let null = std::fs::File::open("/dev/null")?;
    sys::replace(null.as_fd(), 0)?;
    Ok(link.into())
}

/// Returns whether it was started before there was a command for it.
fn is_ahead() -> bool {
    std::env::args_os().nth(1).is_some_and(|word| word == AHEAD)
}

/// Builds and watches the jail of the plan that comes first.
fn run_planned(link: &UnixStream) -> Result<(), SetupFailure> {
    let plan = frames::decode(&frames::read(link)?)?;
    frames::take_input(&plan, link)?;
    let host = HostSide::find(&plan.group)?;
    let users = if plan.strength() > Strength::LandlockSeccomp {
        enter_namespaces(&plan, &host.proc)?
    } else {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(io::Error::from)
            .map_err(step("adopt orphans"))?;
        UserMapping::Own
    };
    let around = host.findings(users);
    let (tie, theirs) = tie()?;
    let Some(child) = sys::fork().map_err(step("fork"))? else {
        drop(tie);
        inside::run(&plan, around, link, &theirs)
    };
    drop(theirs);
    if plan.role != ProgramRole::Command {
        script::let_go().map_err(step("let go of the socket"))?;
    }
    let first = StartedInit { child, tie };
    first.watch(&plan, link, host)
}

/// Creates the namespaces and the first process of a jail whose plan comes later. What comes first is the part of it that is the same
/// for all commands. The first process waits for the plan and passes it on.
fn run_ahead(link: &UnixStream) -> Result<(), SetupFailure> {
    let part = frames::decode(&frames::read(link)?)?;
    let host = HostSide::find(&part.group)?;
    if !part.group.as_os_str().is_empty() && !host.grouped {
        // No supervisor is ready then; the next command's own falls back to watching.
        leave(125)
    }
    let around = host.findings(namespaces_ahead(&host.proc)?);
    let (tie, theirs) = tie()?;
    let Some(child) = sys::fork().map_err(step("fork"))? else {
        drop(tie);
        inside::run_ahead(&part, around, link, &theirs)
    };
    drop(theirs);
    let Ok(plan) = frames::read(&tie).and_then(|frame| frames::decode(&frame)) else {
        // The host has closed the link, or the first process has failed and told the host why.
        end(child);
        leave(125)
    };
    let first = StartedInit { child, tie };
    first.watch(&plan, link, host)
}

/// Ends the first process of a jail in which nothing runs yet.
fn end(child: Pid) {
    let _ = kill_process(child, Signal::KILL);
    let _ = waitpid(Some(child), WaitOptions::empty());
}

/// What this process found before it entered namespaces.
struct HostSide {
    /// The `/proc` in which the processes of the tree have the IDs that this process sees.
    proc: OwnedFd,
    /// Whether the memory of a tree can be watched.
    watched: bool,
    /// Whether this process, and so the tree, is in the control group.
    grouped: bool,
    root: RootIdentity,
}

impl HostSide {
    /// Joins the control group, if one is named.
    fn find(group: &Path) -> Result<Self, SetupFailure> {
        let proc = open_proc()?;
        Ok(Self {
            watched: MemoryWatch::works(&proc),
            grouped: join(group),
            root: RootIdentity::now().map_err(step("see the root"))?,
            proc,
        })
    }

    fn findings(&self, users: UserMapping) -> SupervisorFindings {
        SupervisorFindings {
            users,
            watched: self.watched,
            grouped: self.grouped,
        }
    }
}

/// The first process of a jail, and the socket that ties it to this process.
struct StartedInit {
    child: Pid,
    tie: UnixStream,
}

impl StartedInit {
    /// Watches the jail until it has ended, and tells the host what happened to it.
    fn watch(
        self,
        plan: &SupervisorPlan,
        link: &UnixStream,
        host: HostSide,
    ) -> Result<(), SetupFailure> {
        let watching = step("watch the jail");
        let building = self.tie.set_nonblocking(true);
        let building = building.and_then(|()| self.tie.try_clone());
        let building = OwnedFd::from(building.map_err(watching)?);
        let own_proc = host.proc.try_clone().map_err(step("open /proc"))?;
        let guards = plan.watched.as_ref();
        let mut guards = guards.map(|names| GuardWatch::new(plan, names, own_proc, building));
        let watch = memory_watch(plan, host, self.child);
        let first = InitProcess {
            child: self.child,
            adopts: plan.strength() <= Strength::LandlockSeccomp,
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
}

/// Returns the two ends of a socket that ties the first process to this one: it dies when this process does, and it tells what it has done.
fn tie() -> Result<(UnixStream, UnixStream), SetupFailure> {
    UnixStream::pair().map_err(step("make a socket"))
}

/// Returns the watch over the tree's memory, or over the part of it that its control group does not count.
fn memory_watch(plan: &SupervisorPlan, host: HostSide, child: Pid) -> Option<MemoryWatch> {
    let HostSide {
        proc,
        watched,
        grouped,
        root,
    } = host;
    if plan.watch == 0 {
        return None;
    }
    let namespaces = plan.strength() > Strength::LandlockSeccomp;
    let own_network = namespaces && plan.net != JailNetwork::Host;
    if grouped {
        return own_network.then(|| MemoryWatch::beside_group(proc, child, plan.watch));
    }
    if !watched {
        return None;
    }
    // Without a pid namespace, orphans of the tree become children of this process.
    let first = if namespaces {
        child
    } else {
        rustix::process::getpid()
    };
    let outside = namespaces.then_some(root);
    let watch = MemoryWatch::new(proc, first, plan.watch, outside);
    Some(if own_network {
        watch.with_sockets()
    } else {
        watch
    })
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
    sys::unshare(others).map_err(step(NAMESPACES))?;
    let _ = rustix::system::sethostname(HOST_NAME);
    // A script has no socket to use the loopback with.
    if plan.net != JailNetwork::Host && plan.role == ProgramRole::Command {
        sys::loopback_up().map_err(step(LOOPBACK))?;
    }
    Ok(users)
}

/// Enters the namespaces of a command with its own network. The mounts are copied as they are now: the host does not use them if they have
/// changed when there is a command.
fn namespaces_ahead(proc: &OwnedFd) -> Result<UserMapping, SetupFailure> {
    drop_groups();
    let users = users::enter(proc, UserMapping::Command)?;
    sys::unshare(OWN_OBJECTS | OWN_MOUNTS | UnshareFlags::NEWNET).map_err(step(NAMESPACES))?;
    let _ = rustix::system::sethostname(HOST_NAME);
    sys::loopback_up().map_err(step(LOOPBACK))?;
    Ok(users)
}

const NAMESPACES: &str = "mount, pid, ipc, uts, net and cgroup namespaces";
const LOOPBACK: &str = "turn the loopback on";
/// The name of the machine in a jail.
const HOST_NAME: &[u8] = b"jail";

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
