//! Starts a zygote under a command's locks, and creates the mounts of its children for it.
//!
//! The root was built in one user namespace; the zygote runs in another one below it, so nothing in the
//! root can be mounted again, moved or removed. The zygote has no system call to mount anything: each child gets
//! a mount namespace from this process, which reads only the request for one more.

use std::fs::File;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::fs::{Mode, OFlags, openat};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recv, sendmsg, socketpair,
};
use rustix::process::{DumpableBehavior, Signal, set_dumpable_behavior};
use rustix::process::{set_parent_process_death_signal, setsid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use super::plan::SupervisorPlan;
use super::shared::{die_with, environment};
use super::users::{self, UserMapping};
use super::{lock, script};
use crate::lockdown::lock::take;
use crate::report::{self, SetupFailure};
use crate::spawn::ResolvedCommand;
use crate::strength::Strength;
use crate::sys;
use crate::sys::leave;

/// The number of mount namespaces that are ready before they are requested.
const AHEAD: usize = 2;

/// Creates mount namespaces for a zygote's children.
pub(super) struct MountHost {
    link: OwnedFd,
    /// This process's own mount namespace.
    base: OwnedFd,
    proc: OwnedFd,
}

/// The process that the plan starts.
pub(super) struct PlanProcess {
    pub(super) number: u32,
    /// Creates mounts for a zygote's children.
    pub(super) mounts: Option<MountHost>,
}

/// Starts the zygote; `proc` is the `/proc` of this process's old root.
pub(super) fn start(
    plan: &SupervisorPlan,
    users: UserMapping,
    tie: &UnixStream,
    proc: OwnedFd,
) -> io::Result<PlanProcess> {
    let mut mounts = None;
    let mut theirs = None;
    if plan.strength() > Strength::LandlockSeccomp {
        nest(users, tie, &proc)?;
        let flags = SocketFlags::CLOEXEC;
        let (ours, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        let base = own_mounts(&proc)?;
        theirs = Some(other);
        mounts = Some(MountHost {
            link: ours,
            base,
            proc,
        });
    }
    let Some(child) = sys::fork()? else {
        drop(mounts);
        leave(locked(plan, theirs.as_ref()))
    };
    script::let_go()?;
    if mounts.is_some() {
        lock::keep(lock::MAKES_MOUNTS)?;
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    } else {
        lock::capabilities()?;
    }
    Ok(PlanProcess {
        number: child.as_raw_nonzero().get().cast_unsigned(),
        mounts,
    })
}

/// Enters a user namespace below this one, with its own mount and pid namespaces: everything mounted so far is
/// locked in it. If this process is root, it becomes nobody there.
fn nest(users: UserMapping, tie: &UnixStream, proc: &OwnedFd) -> io::Result<()> {
    let failed = |SetupFailure { errno, .. }| io::Error::from_raw_os_error(errno);
    if users::enter(proc, users).map_err(failed)? == UserMapping::RootAndNobody {
        users::become_nobody()?;
    }
    sys::unshare(UnshareFlags::NEWNS | UnshareFlags::NEWPID)?;
    // The change of credentials may have reset it.
    die_with(tie)
}

/// In the child: takes the locks and executes the interpreter. Reports errors to the host over its control
/// socket, the standard output.
fn locked(plan: &SupervisorPlan, mounts: Option<&OwnedFd>) -> i32 {
    let why = if let Err(SetupFailure { step, errno }) = take_locks(plan, mounts) {
        format!("{step}: {}", io::Error::from_raw_os_error(errno))
    } else {
        let env = environment(plan);
        let program = plan.argv.first().cloned().unwrap_or_default();
        let start = ResolvedCommand {
            program: program.as_ref(),
            argv: &plan.argv,
            env: &env,
            cwd: &plan.cwd,
        };
        start.replace().to_string()
    };
    let _ = sys::send_on(1, format!("E{why}").as_bytes());
    126
}

fn take_locks(plan: &SupervisorPlan, mounts: Option<&OwnedFd>) -> Result<(), SetupFailure> {
    let failed = report::step;
    let own = |errno: rustix::io::Errno| io::Error::from(errno);
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(own)
        .map_err(failed("die with the jail"))?;
    setsid().map_err(own).map_err(failed("start a session"))?;
    let input = match mounts {
        Some(link) => sys::replace(link.as_fd(), 0),
        None => File::open("/dev/null").and_then(|null| sys::replace(null.as_fd(), 0)),
    };
    input.map_err(failed("hand over the socket for mounts"))?;
    lock::landlock(plan)?;
    lock::limits(&plan.caps).map_err(failed("limit resources"))?;
    let dropped = match mounts {
        Some(_) => lock::keep(lock::MAKES_CHILDREN),
        None => lock::capabilities(),
    };
    dropped.map_err(failed("drop capabilities"))?;
    lock::seccomp(plan)
}

fn own_mounts(proc: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(openat(proc, "self/ns/mnt", flags, Mode::empty())?)
}

impl MountHost {
    /// Serves the zygote until it is gone; `list` says what to mount.
    pub(super) fn serve(&self, list: &[u8]) {
        for _ in 0..AHEAD {
            if self.one_more(list).is_err() {
                return;
            }
        }
        let mut byte = [0];
        while let Ok((_, 1..)) = recv(&self.link, &mut byte, RecvFlags::empty()) {
            if self.one_more(list).is_err() {
                return;
            }
        }
    }

    /// Sends the zygote a namespace, or the reason why there is none.
    fn one_more(&self, list: &[u8]) -> io::Result<()> {
        let made = self.make(list);
        let back = move_into_link_name_space(self.base.as_fd(), Some(LinkNameSpaceType::Mount));
        match made.and_then(|made| Ok(back.map(|()| made)?)) {
            Ok(made) => self.send(b"m", Some(&made)),
            Err(error) => self.send(format!("make mounts: {error}").as_bytes(), None),
        }
    }

    fn make(&self, list: &[u8]) -> io::Result<OwnedFd> {
        sys::unshare(UnshareFlags::NEWNS)?;
        let made = own_mounts(&self.proc)?;
        take(list, c"").map_err(|fault| io::Error::from_raw_os_error(fault.errno.into()))?;
        Ok(made)
    }

    fn send(&self, bytes: &[u8], file: Option<&OwnedFd>) -> io::Result<()> {
        let files: Vec<_> = file.into_iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(&files));
        }
        let part = [IoSlice::new(bytes)];
        sendmsg(&self.link, &part, &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }
}
