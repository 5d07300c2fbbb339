//! The supervisor: this program executed again, single-threaded, told over a socket what to build.
//!
//! It makes the namespaces and forks their first process ([`super::inside`]), then does nothing but
//! wait: for that process to end, or for the host to shut the link (or die, which shuts it too). It
//! goes only when the tree is gone, so its end tells the host that nothing is left.

use std::ffi::OsStr;
use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::pipe::PipeFlags;
use rustix::process::getuid;
use rustix::thread::UnshareFlags;

use super::plan::{Net, Plan, Role};
use super::users::{self, Users};
use super::waiting::First;
use super::watch::GuardWatch;
use super::{inside, script, sys};
use crate::guard_event::GuardEvent;
use crate::memory::sockets::Sockets;
use crate::memory::watch::{Root, Watch};
use crate::strength::Strength;

/// A step that failed; nothing of the command has run.
#[derive(Debug)]
pub(crate) struct Fail {
    pub(crate) step: String,
    pub(crate) errno: i32,
}

/// Names the step that an error belongs to.
pub(crate) fn step(step: impl Into<String>) -> impl FnOnce(io::Error) -> Fail {
    let step = step.into();
    move |error| Fail {
        step,
        errno: error.raw_os_error().unwrap_or(libc::EINVAL),
    }
}

/// What of the optional parts holds a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// The Landlock ABI; 0 = none.
    pub(crate) landlock: u8,
    /// Whether the pid namespace counts its processes.
    pub(crate) counted: bool,
    /// Whether the memory of its tree can be looked at.
    pub(crate) watched: bool,
    /// Whether its tree is in the control group that the plan names.
    pub(crate) grouped: bool,
}

/// What the supervisor found outside the jail.
#[derive(Debug, Clone, Copy)]
pub(super) struct Around {
    pub(super) users: Users,
    /// Whether the memory of a tree can be looked at.
    pub(super) watched: bool,
    /// Whether the tree is in its control group.
    pub(super) grouped: bool,
}

/// The process inside's ends of its pipes with the supervisor.
#[derive(Debug)]
pub(super) struct Pipes {
    /// Ends when the supervisor does.
    pub(super) alive: OwnedFd,
    /// Takes a byte when the jail has been built.
    pub(super) built: OwnedFd,
}

/// What the supervisor and the process inside say to the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    /// The command was executed.
    Ready(Held),
    /// The jail could not be made.
    Failed { step: String, errno: i32 },
    /// The program could not be executed.
    NoProgram { errno: i32 },
    /// How the command ended.
    Ended {
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// The tree was ended: it had so much memory, in MiB.
    TooMuch { mib: i32 },
    /// Something happened to a guarded path.
    Guard(GuardEvent),
}

/// Most bytes of a report's text: a path fits.
const MOST_TEXT: usize = 4096;

impl Report {
    /// How long a report is before its text.
    pub(crate) const HEAD: usize = 7;

    /// How long the text after this head is.
    pub(crate) fn text_length(head: &[u8]) -> usize {
        head.get(5..Self::HEAD)
            .and_then(|length| length.try_into().ok())
            .map_or(0, |length| usize::from(u16::from_ne_bytes(length)))
    }

    /// One line of bytes: kind, a number, length of the text, text.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (kind, number, text) = match self {
            Self::Ready(held) => (
                0,
                i32::from(held.landlock)
                    | i32::from(held.counted) << 8
                    | i32::from(held.watched) << 9
                    | i32::from(held.grouped) << 10,
                OsStr::new(""),
            ),
            Self::Failed { step, errno } => (1, *errno, OsStr::new(step)),
            Self::NoProgram { errno } => (2, *errno, OsStr::new("")),
            Self::Ended {
                code: Some(code), ..
            } => (3, *code, OsStr::new("")),
            Self::Ended { signal, .. } => (4, signal.unwrap_or_default(), OsStr::new("")),
            Self::TooMuch { mib } => (5, *mib, OsStr::new("")),
            Self::Guard(event) => {
                let (kind, number, path) = event.parts();
                (6, kind | number << 4, path.as_os_str())
            }
        };
        let text = &text.as_bytes()[..text.len().min(MOST_TEXT)];
        let mut bytes = vec![kind];
        bytes.extend(number.to_ne_bytes());
        bytes.extend(u16::try_from(text.len()).unwrap_or_default().to_ne_bytes());
        bytes.extend(text);
        bytes
    }

    /// The report at the start of `bytes`, and how long it is; `None` until it is whole.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(Self, usize)> {
        let (head, rest) = bytes.split_at_checked(Self::HEAD)?;
        let number = i32::from_ne_bytes(head[1..5].try_into().ok()?);
        let length = Self::text_length(head);
        let text = rest.get(..length)?;
        let report = match head[0] {
            0 => Self::Ready(Held {
                landlock: u8::try_from(number & 0xFF).unwrap_or_default(),
                counted: number >> 8 & 1 != 0,
                watched: number >> 9 & 1 != 0,
                grouped: number >> 10 & 1 != 0,
            }),
            1 => {
                let step = String::from_utf8_lossy(text).into_owned();
                Self::Failed {
                    step,
                    errno: number,
                }
            }
            2 => Self::NoProgram { errno: number },
            3 => Self::Ended {
                code: Some(number),
                signal: None,
            },
            4 => Self::Ended {
                code: None,
                signal: Some(number),
            },
            5 => Self::TooMuch { mib: number },
            6 => Self::Guard(GuardEvent::of_parts(
                number & 15,
                number >> 4,
                OsStr::from_bytes(text).into(),
            )?),
            _ => return None,
        };
        Some((report, Self::HEAD + length))
    }
}

/// Runs one jail and never returns.
pub(crate) fn run() -> ! {
    let Ok(link) = take_link() else { leave(125) };
    let done = read_plan(&link).and_then(|plan| supervise(&plan, &link));
    if let Err(Fail { step, errno }) = done {
        tell(&link, &Report::Failed { step, errno });
        leave(125)
    }
    leave(0)
}

#[expect(clippy::exit, reason = "the supervisor has no main to return to")]
pub(crate) fn leave(code: i32) -> ! {
    std::process::exit(code)
}

/// Says something to the host; where nobody listens any more, nobody needs it.
pub(crate) fn tell(mut link: &UnixStream, report: &Report) {
    let _ = link.write_all(&report.encode());
}

/// Says something to the host with a descriptor for it to keep, where there is one.
pub(crate) fn hand(link: &UnixStream, report: &Report, file: Option<OwnedFd>) {
    let Some(file) = file else {
        return tell(link, report);
    };
    let files = [file.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&files));
    let bytes = report.encode();
    // One small frame on a socket that nothing else is waiting on: it goes out whole or not at all.
    let _ = sendmsg(
        link,
        &[IoSlice::new(&bytes)],
        &mut control,
        SendFlags::NOSIGNAL,
    );
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

fn supervise(plan: &Plan, link: &UnixStream) -> Result<(), Fail> {
    let namespaces = plan.strength() > Strength::LandlockSeccomp;
    // Before the namespaces: the host's, in which the tree has the numbers that this process sees.
    let proc = open_proc()?;
    let watched = Watch::works(&proc);
    let grouped = join(&plan.group);
    let outside = Root::now().map_err(step("see the root"))?;
    let mut users = Users::Own;
    if namespaces {
        users = enter_namespaces(plan, &proc)?;
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
    if getuid().is_root() {
        // Groups give access too; root alone may drop them, and must before the namespace.
        sys::drop_groups();
    }
    let wanted = match plan.role {
        Role::Command => Users::Own,
        Role::Zygote | Role::Fresh => Users::of_interpreters(),
    };
    let users = users::enter(proc, wanted)?;
    let mut others = UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    if plan.net != Net::Host {
        others |= UnshareFlags::NEWNET;
    }
    sys::unshare(others).map_err(step("mount, pid, ipc, uts, net and cgroup namespaces"))?;
    Ok(users)
}

/// The `/proc` that is there now, as a handle.
pub(crate) fn open_proc() -> Result<OwnedFd, Fail> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let proc = rustix::fs::open("/proc", flags, Mode::empty());
    proc.map_err(io::Error::from).map_err(step("open /proc"))
}
