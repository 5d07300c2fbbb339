//! The supervisor: this program executed again, single-threaded, told over a socket what to build.
//!
//! It makes the namespaces and forks their first process ([`super::inside`]), then does nothing but
//! wait: for that process to end, or for the host to shut the link (or die, which shuts it too). It
//! goes only when the tree is gone, so its end tells the host that nothing is left.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::pipe::PipeFlags;
use rustix::process::getuid;
use rustix::thread::UnshareFlags;

use super::plan::{Net, Plan, Role};
use super::report::{Fail, Report, receive_file, step, tell};
use super::shared::{Around, Pipes, open_proc};
use super::spare::AHEAD;
use super::sys::leave;
use super::users::{self, Users};
use super::waiting::First;
use super::watch::GuardWatch;
use super::{inside, script, sys};
use crate::memory::sockets::Sockets;
use crate::memory::watch::{Root, Watch};
use crate::strength::Strength;

/// Runs one jail and never returns.
pub(crate) fn run() -> ! {
    let Ok(link) = take_link() else { leave(125) };
    let ahead = is_ahead().then(namespaces_ahead);
    let plan = read_plan(&link).and_then(|plan| {
        take_input(&plan, &link).map_err(step("take the input"))?;
        Ok(plan)
    });
    let done = plan.and_then(|plan| supervise(&plan, &link, ahead));
    if let Err(Fail { step, errno }) = done {
        tell(&link, &Report::Failed { step, errno });
        leave(125)
    }
    leave(0)
}

/// The socket comes as standard input, so that no descriptor has to be inherited; what else came along
/// by a host's mistake is closed.
fn take_link() -> io::Result<UnixStream> {
    sys::close_from(3)?;
    let link = rustix::io::fcntl_dupfd_cloexec(io::stdin().as_fd(), 3)?;
    let null = std::fs::File::open("/dev/null")?;
    sys::replace(null.as_fd(), 0)?;
    Ok(link.into())
}

/// The command's standard input, which comes behind the plan; the command inherits it from here.
fn take_input(plan: &Plan, link: &UnixStream) -> io::Result<()> {
    if !plan.converses {
        return Ok(());
    }
    let input = receive_file(link)?;
    sys::replace(input.as_fd(), 0)
}

fn read_plan(mut link: &UnixStream) -> Result<Plan, Fail> {
    let mut length = [0; 4];
    let mut read = || -> io::Result<Vec<u8>> {
        link.read_exact(&mut length)?;
        let length = u64::from(u32::from_ne_bytes(length));
        let mut bytes = Vec::new();
        link.take(length).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(step("read the plan"))?;
    Plan::decode(&bytes).ok_or(Fail {
        step: "understand the plan".into(),
        errno: libc::EBADMSG,
    })
}

/// Whether it was started before there was a command for it.
fn is_ahead() -> bool {
    std::env::args_os().nth(1).is_some_and(|word| word == AHEAD)
}

/// `ahead` are the namespaces that were made before the plan came.
fn supervise(
    plan: &Plan,
    link: &UnixStream,
    ahead: Option<Result<Users, Fail>>,
) -> Result<(), Fail> {
    let namespaces = plan.strength() > Strength::LandlockSeccomp;
    // Before the namespaces: the host's, in which the tree has the numbers that this process sees.
    let proc = open_proc()?;
    let watched = Watch::works(&proc);
    let grouped = join(&plan.group);
    let outside = Root::now().map_err(step("see the root"))?;
    let mut users = Users::Own;
    if namespaces {
        users = match ahead {
            Some(made) => namespaces_behind(made?)?,
            None => enter_namespaces(plan, &proc)?,
        };
    } else {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(io::Error::from)
            .map_err(step("adopt orphans"))?;
    }
    let (alive, mine) = pipe(PipeFlags::CLOEXEC)?;
    let (building, built) = pipe(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let Some(child) = sys::fork().map_err(step("fork"))? else {
        drop((mine, building));
        let around = Around {
            users,
            watched,
            grouped,
        };
        inside::run(plan, around, link, &Pipes { alive, built })
    };
    drop((alive, built));
    if plan.role != Role::Command {
        script::let_go().map_err(step("let go of the socket"))?;
    }
    let own_proc = proc.try_clone().map_err(step("open /proc"))?;
    let guards = plan.watched.as_ref();
    let guards = guards.map(|names| GuardWatch::new(plan, names, own_proc, building));
    let watch = (plan.watch > 0 && watched && !grouped).then(|| {
        let own_network = namespaces && plan.net != Net::Host;
        let sockets = own_network.then(Sockets::open).and_then(io::Result::ok);
        // Without a pid namespace whoever loses its parent becomes this process's child.
        let first = if namespaces {
            child
        } else {
            rustix::process::getpid()
        };
        let outside = namespaces.then_some(outside);
        Watch::new(proc, first, plan.watch, outside).with_sockets(sockets)
    });
    let first = First {
        child,
        adopts: !namespaces,
    };
    let mut guards = guards;
    let done = first.wait(link, watch, guards.as_mut());
    for event in guards.map(GuardWatch::finish).unwrap_or_default() {
        tell(link, &Report::Guard(event));
    }
    let done = done.map_err(step("wait for the jail"))?;
    if let Some(bytes) = done {
        let mib = i32::try_from(bytes >> 20).unwrap_or(i32::MAX);
        tell(link, &Report::TooMuch { mib });
    }
    Ok(())
}

fn pipe(flags: PipeFlags) -> Result<(OwnedFd, OwnedFd), Fail> {
    let made = rustix::pipe::pipe_with(flags).map_err(io::Error::from);
    made.map_err(step("make a pipe"))
}

/// Writes this process into the control group of the tree. It does so itself because the kernel then need not wait until no process
/// forks or ends, which takes it up to a few hundredths of a second (`cgroup_procs_write_start`, Linux 5.5).
fn join(group: &Path) -> bool {
    !group.as_os_str().is_empty() && std::fs::write(group, "0").is_ok()
}

/// Namespaces of every kind (the network's but where the plan has the host's), with this user's own number inside as outside: files of the workspace keep
/// their owner, and no other number exists.
fn enter_namespaces(plan: &Plan, proc: &OwnedFd) -> Result<Users, Fail> {
    drop_groups();
    let wanted = match plan.role {
        Role::Command => Users::Own,
        Role::Zygote | Role::Fresh => Users::of_interpreters(),
    };
    let users = users::enter(proc, wanted)?;
    let mut others = OWN_OBJECTS | OWN_MOUNTS;
    if plan.net != Net::Host {
        others |= UnshareFlags::NEWNET;
    }
    sys::unshare(others).map_err(step("mount, pid, ipc, uts, net and cgroup namespaces"))?;
    Ok(users)
}

/// The namespaces of a command with a network of its own that are the same whenever they are made: in them is nothing of the
/// host's.
fn namespaces_ahead() -> Result<Users, Fail> {
    drop_groups();
    let users = users::enter(&open_proc()?, Users::Own)?;
    sys::unshare(OWN_OBJECTS | UnshareFlags::NEWNET)
        .map_err(step("pid, ipc, uts and net namespaces"))?;
    Ok(users)
}

/// The others: mounts as they are now, and the control group that the command has been put into.
fn namespaces_behind(users: Users) -> Result<Users, Fail> {
    sys::unshare(OWN_MOUNTS).map_err(step("mount and cgroup namespaces"))?;
    Ok(users)
}

/// Groups give access too; root alone may drop them, and must before the namespace.
fn drop_groups() {
    if getuid().is_root() {
        sys::drop_groups();
    }
}

/// Namespaces that are empty when they are made.
const OWN_OBJECTS: UnshareFlags = UnshareFlags::NEWPID
    .union(UnshareFlags::NEWIPC)
    .union(UnshareFlags::NEWUTS);
/// Namespaces that show what there is when they are made.
const OWN_MOUNTS: UnshareFlags = UnshareFlags::NEWNS.union(UnshareFlags::NEWCGROUP);
