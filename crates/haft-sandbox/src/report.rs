//! The reports of a jail's processes to the host, as bytes on the link: the step that failed, what confines a command, how it exited.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use tokio::io::Interest;

use crate::guard_event::GuardEvent;
use crate::outlet::MAX_OUTLET_PORTS;

/// A step that failed; nothing of the command has run.
#[derive(Debug)]
pub(crate) struct SetupFailure {
    pub(crate) step: String,
    pub(crate) errno: i32,
}

/// Adds the name of the step to an error.
pub(crate) fn step(step: impl Into<String>) -> impl FnOnce(io::Error) -> SetupFailure {
    let step = step.into();
    move |error| SetupFailure {
        step,
        errno: error.raw_os_error().unwrap_or(libc::EINVAL),
    }
}

/// Which of the optional mechanisms confine a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ActiveMechanisms {
    /// The Landlock ABI; 0 = none.
    pub(crate) landlock: u8,
    /// Whether the pid namespace limits the number of its processes.
    pub(crate) counted: bool,
    /// Whether the memory of its tree can be watched.
    pub(crate) watched: bool,
    /// Whether its tree is in the control group that the plan names.
    pub(crate) grouped: bool,
}

/// A report of the supervisor or of the process inside to the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JailReport {
    /// The command was executed.
    Ready(ActiveMechanisms),
    /// The jail could not be set up.
    Failed { step: String, errno: i32 },
    /// The program could not be executed.
    NoProgram { errno: i32 },
    /// The command exited.
    Ended {
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// The tree was killed because it used this much memory, in MiB.
    TooMuch { mib: i32 },
    /// Something happened to a guarded path.
    Guard(GuardEvent),
    /// The command left processes of these programs.
    LeftRunning(Vec<PathBuf>),
    /// The command left these files in its HOME.
    LeftFiles(Vec<PathBuf>),
    /// Descriptors came with this report; another follows.
    Handed,
    /// The jail waits for its plan; another report follows once it has one.
    Prepared,
}

/// Maximum number of bytes of a report's text: enough for a path.
const MOST_TEXT: usize = 4096;

impl JailReport {
    /// The length of a report before its text.
    pub(crate) const HEAD: usize = 7;

    /// Returns the length of the text that follows this head.
    pub(crate) fn text_length(head: &[u8]) -> usize {
        head.get(5..Self::HEAD)
            .and_then(|length| length.try_into().ok())
            .map_or(0, |length| usize::from(u16::from_ne_bytes(length)))
    }

    /// Encodes the report: kind, a number, length of the text, text.
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
            Self::Handed => (7, 0, OsStr::new("")),
            Self::LeftRunning(names) => (8, 0, &*joined(names)),
            Self::LeftFiles(paths) => (9, 0, &*joined(paths)),
            Self::Prepared => (10, 0, OsStr::new("")),
        };
        let text = &text.as_bytes()[..text.len().min(MOST_TEXT)];
        let mut bytes = vec![kind];
        bytes.extend(number.to_ne_bytes());
        bytes.extend(u16::try_from(text.len()).unwrap_or_default().to_ne_bytes());
        bytes.extend(text);
        bytes
    }

    /// Decodes the report at the start of `bytes` and returns it with its length; `None` until it is complete.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(Self, usize)> {
        let (head, rest) = bytes.split_at_checked(Self::HEAD)?;
        let number = i32::from_ne_bytes(head[1..5].try_into().ok()?);
        let length = Self::text_length(head);
        let text = rest.get(..length)?;
        let report = match head[0] {
            0 => Self::Ready(ActiveMechanisms {
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
            7 => Self::Handed,
            8 => Self::LeftRunning(split(text)),
            9 => Self::LeftFiles(split(text)),
            10 => Self::Prepared,
            _ => return None,
        };
        Some((report, Self::HEAD + length))
    }
}

/// Joins names by NUL, which none holds.
fn joined(names: &[PathBuf]) -> OsString {
    let names: Vec<_> = names.iter().map(|name| name.as_os_str()).collect();
    names.join(OsStr::new("\0"))
}

/// Splits names that [`joined`] joined.
fn split(text: &[u8]) -> Vec<PathBuf> {
    let names = text
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    names.map(|name| OsStr::from_bytes(name).into()).collect()
}

/// Sends a report to the host; if the host no longer listens, it does not need it.
pub(crate) fn tell(mut link: &UnixStream, report: &JailReport) {
    let _ = link.write_all(&report.encode());
}

/// Maximum number of ports of a jail's loopback at which the host listens from the start.
pub const MAX_START_PORTS: usize = 32;

/// Maximum number of descriptors that come with a report: an outlet's listeners at its ports, those for names, and its own; those of a
/// shared loopback by two protocols, and its link; and a terminal. The kernel takes at most 253 (`SCM_MAX_FD`).
const MOST_FILES: usize = MAX_OUTLET_PORTS + 2 * MAX_START_PORTS + 5;

/// Sends descriptors to the host, for it to keep, if there are any.
///
/// The kernel counts descriptors on their way for all processes of a user together, and refuses to send more to a process whose own limit of
/// open files is below that (`ETOOMANYREFS`, unix(7)). A command may have as many on their way as its limit allows, so this is sent
/// under the highest limit that there is, before the command's own limits are set.
pub(crate) fn hand_over(link: &UnixStream, files: &[OwnedFd]) -> io::Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    let limit = getrlimit(Resource::Nofile);
    let highest = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, highest)?;
    // One small frame on a socket on which nothing else is queued: it is sent whole or not at all.
    let sent = send_files(link, &JailReport::Handed.encode(), files);
    setrlimit(Resource::Nofile, limit)?;
    sent.map(drop)
}

/// Sends bytes, with descriptors attached to the first of them.
pub(crate) fn send_files(link: impl AsFd, bytes: &[u8], files: &[OwnedFd]) -> io::Result<usize> {
    let files: Vec<BorrowedFd<'_>> = files.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&files));
    let sent = sendmsg(
        link,
        &[IoSlice::new(bytes)],
        &mut control,
        SendFlags::NOSIGNAL,
    );
    Ok(sent?)
}

/// Fills `bytes`, and keeps the descriptors that come with them.
pub(crate) async fn receive(
    link: &tokio::net::UnixStream,
    mut bytes: &mut [u8],
    files: &mut Vec<OwnedFd>,
) -> io::Result<()> {
    while !bytes.is_empty() {
        let read = || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let into = &mut [IoSliceMut::new(bytes)];
            let got = recvmsg(link, into, &mut control, RecvFlags::CMSG_CLOEXEC)?;
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(more) = message {
                    files.extend(more);
                }
            }
            Ok(got.bytes)
        };
        let count = link.async_io(Interest::READABLE, read).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes = &mut bytes[count..];
    }
    Ok(())
}

/// Receives one byte and the descriptor that comes with it.
pub(crate) fn receive_file(link: &UnixStream) -> io::Result<OwnedFd> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let into = &mut [IoSliceMut::new(&mut byte)];
    recvmsg(link, into, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let file = files.flatten().next();
    file.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}
