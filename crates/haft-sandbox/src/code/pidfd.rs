//! Queries about a process by its pidfd.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;

/// Returns the host's process ID of a process that is not gone.
pub(super) fn number(pidfd: &OwnedFd) -> Option<Pid> {
    let path = format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd());
    let text = std::fs::read_to_string(path).ok()?;
    let number = text.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    Pid::from_raw(number.trim().parse().ok().filter(|number| *number > 0)?)
}

/// Returns whether a process is gone, after waiting at most `seconds` seconds.
pub(super) fn gone(pidfd: &OwnedFd, seconds: i64) -> bool {
    let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
    let limit = Timespec {
        tv_sec: seconds,
        tv_nsec: 0,
    };
    matches!(poll(&mut fds, Some(&limit)), Ok(1..))
}
