//! The terminals of a jail: an instance of devpts that only its processes see, and the terminal that a command itself runs on.
//!
//! No terminal of the host is in reach: the first process of a jail has left the host's session, so `/dev/tty` is whichever of
//! the jail's own terminals a program has made its own. The command's terminal is one of them, too. The first process
//! opens it, hands its outer end to the host and keeps none of it.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::mount::{MountFlags, mount};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{ioctl_tiocsctty, setsid};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::tcsetwinsize;

use super::plan::{BindMode, LandlockGrant, RootEntry, SupervisorPlan};
use crate::spawn::ResolvedCommand;
use crate::sys::{self, leave};
use crate::terminal::TerminalSize;

const FOLDER: &str = "/dev/pts";
/// The device that stands for the terminal of the process that opens it.
const OWN: &str = "/dev/tty";
/// Maximum number of terminals in a jail, out of those of the whole machine (`kernel.pty.max`, 4,096, of which 1,024 are the host's alone).
const OPTIONS: &std::ffi::CStr = c"newinstance,ptmxmode=0666,mode=0620,max=64";

/// Grants a command the terminals of its jail.
pub(super) fn grant(plan: &mut SupervisorPlan) {
    plan.grants.push((FOLDER.into(), LandlockGrant::Device));
    if let Some(device) = own_device() {
        let target = device.target().to_owned();
        plan.grants.push((target, LandlockGrant::Device));
    }
}

/// Returns the entries of a root with terminals.
pub(super) fn entries() -> Vec<RootEntry> {
    let terminals = RootEntry::Terminals {
        target: FOLDER.into(),
    };
    let make = RootEntry::Link {
        target: "/dev/ptmx".into(),
        to: "pts/ptmx".into(),
    };
    [terminals, make].into_iter().chain(own_device()).collect()
}

/// Returns the host's device that stands for a process's own terminal.
fn own_device() -> Option<RootEntry> {
    let own = RootEntry::Bind {
        source: OWN.into(),
        target: OWN.into(),
        kind: BindMode::Device,
    };
    Path::new(OWN).exists().then_some(own)
}

/// Mounts an instance of devpts, in which only this jail opens terminals.
pub(super) fn place(target: &Path) -> io::Result<()> {
    std::fs::create_dir_all(target)?;
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    Ok(mount("devpts", target, "devpts", flags, Some(OPTIONS))?)
}

/// The terminal that a command runs on.
#[derive(Debug)]
pub(super) struct OwnTerminal {
    master: OwnedFd,
    slave: OwnedFd,
}

impl OwnTerminal {
    /// Opens a terminal of the jail. It becomes no process's own by that.
    pub(super) fn open(size: TerminalSize) -> io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags)?;
        unlockpt(&master)?;
        let slave = ioctl_tiocgptpeer(&master, flags)?;
        tcsetwinsize(&slave, size.window())?;
        Ok(Self { master, slave })
    }

    /// Starts a program as the leader of a session whose terminal this is; returns its number. Until the jail ends, the terminal
    /// stays open, also if the program closes it.
    pub(super) fn start(&self, start: &ResolvedCommand<'_>) -> io::Result<u32> {
        // Closed when the program is executed; else it carries the error.
        let (failure, report) = pipe_with(PipeFlags::CLOEXEC)?;
        let Some(child) = sys::fork()? else {
            let error = self
                .enter()
                .map_or_else(|error| error, |()| start.replace());
            let number = error.raw_os_error().unwrap_or(libc::ENOENT);
            let _ = std::fs::File::from(report).write_all(&number.to_ne_bytes());
            leave(127)
        };
        drop(report);
        let mut number = Vec::new();
        std::fs::File::from(failure).read_to_end(&mut number)?;
        match <[u8; 4]>::try_from(number.as_slice()) {
            Ok(number) => Err(io::Error::from_raw_os_error(i32::from_ne_bytes(number))),
            Err(_) => Ok(child.as_raw_nonzero().get().cast_unsigned()),
        }
    }

    /// Returns another descriptor of the outer end, for the host.
    pub(super) fn outer(&self) -> io::Result<OwnedFd> {
        self.master.try_clone()
    }

    /// In the child: a session of its own on this terminal, which is also its standard input, output and error.
    fn enter(&self) -> io::Result<()> {
        setsid()?;
        ioctl_tiocsctty(&self.slave)?;
        (0..=2).try_for_each(|stream| sys::replace(self.slave.as_fd(), stream))
    }
}
