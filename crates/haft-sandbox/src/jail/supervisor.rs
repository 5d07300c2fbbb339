//! The supervisor: this program executed again, single-threaded, told over a socket what to build.
//!
//! It makes the namespaces and forks their first process ([`super::inside`]), then does nothing but
//! wait: for that process to end, or for the host to shut the link (or die, which shuts it too). It
//! goes only when the tree is gone, so its end tells the host that nothing is left.

use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getgid, getuid, pidfd_open, pidfd_send_signal, waitpid,
};
use rustix::thread::UnshareFlags;

use super::plan::{Net, Plan, Role};
use super::{inside, script, sys};
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
}

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
                i32::from(held.landlock) | i32::from(held.counted) << 8,
                "",
            ),
            Self::Failed { step, errno } => (1, *errno, step.as_str()),
            Self::NoProgram { errno } => (2, *errno, ""),
            Self::Ended {
                code: Some(code), ..
            } => (3, *code, ""),
            Self::Ended { signal, .. } => (4, signal.unwrap_or_default(), ""),
        };
        let text = &text.as_bytes()[..text.len().min(4096)];
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
                counted: number >> 8 != 0,
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
            _ => Self::Ended {
                code: None,
                signal: Some(number),
            },
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
    if namespaces {
        enter_namespaces(plan.net)?;
    } else {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(io::Error::from)
            .map_err(step("adopt orphans"))?;
    }
    let (alive, mine) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map_err(io::Error::from)
        .map_err(step("make a pipe"))?;
    let Some(child) = sys::fork().map_err(step("fork"))? else {
        drop(mine);
        inside::run(plan, link, &alive)
    };
    drop(alive);
    if plan.role != Role::Command {
        script::let_go().map_err(step("let go of the socket"))?;
    }
    wait_for(child, link, namespaces).map_err(step("wait for the jail"))?;
    Ok(())
}

/// Namespaces of every kind (the network's but where the plan has the host's), with this user's own number inside as outside: files of the workspace keep
/// their owner, and no other number exists.
fn enter_namespaces(net: Net) -> Result<(), Fail> {
    let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
    if uid == 0 {
        // Groups give access too; root alone may drop them, and must before the namespace.
        sys::drop_groups();
    }
    sys::unshare(UnshareFlags::NEWUSER).map_err(step("user namespace"))?;
    let map = |name: &str, text: String| {
        std::fs::write(format!("/proc/self/{name}"), text).map_err(step(format!("write {name}")))
    };
    map("setgroups", "deny".into())?;
    map("uid_map", format!("{uid} {uid} 1"))?;
    map("gid_map", format!("{gid} {gid} 1"))?;
    let mut others = UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    if net != Net::Host {
        others |= UnshareFlags::NEWNET;
    }
    sys::unshare(others).map_err(step("mount, pid, ipc, uts, net and cgroup namespaces"))
}

/// Waits until the tree is gone, ending it when the host says so.
fn wait_for(child: Pid, link: &UnixStream, namespaces: bool) -> io::Result<()> {
    let watch: OwnedFd = pidfd_open(child, PidfdFlags::empty())?;
    loop {
        let mut fds = [
            PollFd::new(&watch, PollFlags::IN),
            PollFd::new(link, PollFlags::IN | PollFlags::RDHUP),
        ];
        match poll(&mut fds, None) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        let ended = !fds[0].revents().is_empty();
        if !ended {
            // The host says nothing after the plan: whatever comes is the end of the link.
            let _ = pidfd_send_signal(&watch, Signal::KILL);
        }
        while let Err(rustix::io::Errno::INTR) = waitpid(Some(child), WaitOptions::empty()) {}
        if !namespaces {
            end_orphans();
        }
        return Ok(());
    }
}

/// Without a pid namespace whatever the command started is left to this process, its adopter: ended one
/// by one until none is left.
fn end_orphans() {
    let me = std::process::id();
    for _ in 0..10_000 {
        let children = std::fs::read_to_string(format!("/proc/self/task/{me}/children"));
        let children = children.unwrap_or_default();
        let mut any = false;
        for child in children
            .split_ascii_whitespace()
            .filter_map(|word| word.parse().ok())
        {
            if let Some(child) = Pid::from_raw(child) {
                any = true;
                let _ = rustix::process::kill_process(child, Signal::KILL);
                let _ = waitpid(Some(child), WaitOptions::empty());
            }
        }
        if !any {
            return;
        }
    }
}
