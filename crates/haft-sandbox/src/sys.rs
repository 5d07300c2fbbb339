//! The few system calls that have no safe wrapper: all `unsafe` code of jails and of process trees is here.
#![expect(
    unsafe_code,
    reason = "system calls without a safe wrapper; each block says why it holds"
)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::process::Pid;
use rustix::thread::UnshareFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Moves this process into new namespaces.
pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: unsafe because CLONE_FILES and CLONE_FS break assumptions of other threads; neither is
    // ever passed, and the supervisor has one thread.
    unsafe { rustix::thread::unshare_unsafe(flags) }?;
    Ok(())
}

/// Forks; `None` in the child.
pub(crate) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: only the supervisor calls this, before it starts any thread, so the child's copy of
    // memory has no lock that another thread holds and may run any code.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Pid::from_raw(pid))
}

/// Closes every descriptor from `first` on.
pub(crate) fn close_from(first: u32) -> io::Result<()> {
    // SAFETY: called as the supervisor's first act, before any object in it owns a descriptor from
    // `first` on.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Marks every descriptor from `first` on as close-on-exec, including those that this process was started with.
pub(crate) fn keep_from_programs(first: u32) -> io::Result<()> {
    // SAFETY: it closes nothing; haft passes files to a program by its standard streams, which are below `first`.
    let done = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Adds attributes (`MOUNT_ATTR_*`) to a mount, and to those below it if `recursive`.
pub(crate) fn mount_setattr(mount: BorrowedFd<'_>, set: u64, recursive: bool) -> io::Result<()> {
    let attr = libc::mount_attr {
        attr_set: set,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let below = if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is an empty C string, the attributes outlive the call and their true size is
    // passed with them.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | below,
            &raw const attr,
            size_of::<libc::mount_attr>(),
        )
    };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Brings up the loopback of this network namespace.
pub(crate) fn loopback_up() -> io::Result<()> {
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        None,
    )?;
    // SAFETY: all-zero bytes are a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = (*from).cast_signed();
    }
    let up = libc::IFF_UP | libc::IFF_RUNNING;
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(up).unwrap_or_default();
    // SAFETY: SIOCSIFFLAGS reads an `ifreq`, which outlives the call.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Returns the bytes of System V shared memory in this IPC namespace, mapped or not.
pub(crate) fn segments() -> u64 {
    /// The kernel's `struct shm_info`.
    #[repr(C)]
    #[derive(Default)]
    struct ShmInfo {
        used: libc::c_int,
        total: libc::c_ulong,
        resident: libc::c_ulong,
        swapped: libc::c_ulong,
        attempts: libc::c_ulong,
        successes: libc::c_ulong,
    }
    const SHM_INFO: libc::c_int = 14;
    let mut found = ShmInfo::default();
    // SAFETY: SHM_INFO writes one `struct shm_info` to where the pointer leads, which outlives the call.
    let done = unsafe { libc::shmctl(0, SHM_INFO, (&raw mut found).cast()) };
    if done < 0 {
        return 0;
    }
    (found.resident + found.swapped).saturating_mul(rustix::param::page_size() as u64)
}

/// Returns the bytes of System V message queues in this IPC namespace.
pub(crate) fn queues() -> u64 {
    const MSG_INFO: libc::c_int = 12;
    /// What the kernel needs per message besides its text, and per queue.
    const MESSAGE: u64 = 64;
    const QUEUE: u64 = 512;
    // SAFETY: all-zero bytes are a valid `msginfo`.
    let mut found: libc::msginfo = unsafe { std::mem::zeroed() };
    // SAFETY: MSG_INFO writes one `struct msginfo` to where the pointer leads, which outlives the call.
    let done = unsafe { libc::msgctl(0, MSG_INFO, (&raw mut found).cast()) };
    if done < 0 {
        return 0;
    }
    let count = |number: libc::c_int| u64::from(number.unsigned_abs());
    let (queues, messages, bytes) = (found.msgpool, found.msgmap, found.msgtql);
    count(queues) * QUEUE + count(messages) * MESSAGE + count(bytes)
}

/// Returns the bytes of System V semaphores in this IPC namespace, which `processes` processes use.
pub(crate) fn semaphores(processes: u64) -> u64 {
    const SEM_INFO: libc::c_int = 19;
    /// Each semaphore occupies a cache line of its own.
    const SEMAPHORE: u64 = 64;
    /// The undo value that each process may have per semaphore, applied when the process exits.
    const UNDONE: u64 = 2;
    const SET: u64 = 512;
    // SAFETY: all-zero bytes are a valid `seminfo`.
    let mut found: libc::seminfo = unsafe { std::mem::zeroed() };
    // SAFETY: SEM_INFO writes one `struct seminfo` to where the pointer leads, which outlives the call.
    let done = unsafe { libc::semctl(0, 0, SEM_INFO, &raw mut found) };
    if done < 0 {
        return 0;
    }
    let count = |number: libc::c_int| u64::from(number.unsigned_abs());
    let each = SEMAPHORE + UNDONE.saturating_mul(processes);
    count(found.semusz) * SET + count(found.semaem).saturating_mul(each)
}

/// Returns whether `kernel.pid_max` is a setting of each pid namespace (Linux 6.14 and later). Decided by the
/// version alone: trying it on an older kernel would change the whole machine.
pub(crate) fn pid_max_is_of_a_namespace() -> bool {
    let name = rustix::system::uname();
    is_at_least(&name.release().to_string_lossy(), [6, 14])
}

fn is_at_least(release: &str, least: [u32; 2]) -> bool {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    let mut next = || numbers.next()?.parse::<u32>().ok();
    next()
        .zip(next())
        .is_some_and(|(major, minor)| [major, minor] >= least)
}

/// Lets signals that are ignored have their effect again: what runs in a jail is no job of whoever started haft in the background or below
/// `nohup`, and Ctrl-C on its terminal would do nothing.
pub(crate) fn ignore_no_signals() {
    // The standard library sets this one, and resets it for what it starts.
    let others = (1..=libc::SIGRTMAX()).filter(|signal| *signal != libc::SIGPIPE);
    for signal in others {
        // SAFETY: all-zero bytes are a valid action, and both outlive the calls; the default needs no handler.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let is_known = libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0;
            if is_known && action.sa_sigaction == libc::SIG_IGN {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}

/// Signals that a child of this process has exited.
#[derive(Debug)]
pub(crate) struct ChildSignals(OwnedFd);

impl ChildSignals {
    /// Blocks `SIGCHLD` and receives it here only; child processes inherit the blocked signal.
    pub(crate) fn open() -> io::Result<Self> {
        // SAFETY: all-zero bytes are a valid set, and it outlives the calls that fill and read it.
        let file = unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGCHLD);
            if libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) < 0 {
                return Err(io::Error::last_os_error());
            }
            libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: created above, and owned by nothing else.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(file) }))
    }

    /// Returns the descriptor, which is readable if a child has exited since the last [`Self::clear`].
    pub(crate) fn file(&self) -> &OwnedFd {
        &self.0
    }

    /// Forgets the children that have exited so far; to be called before they are reaped.
    pub(crate) fn clear(&self) {
        // At most one signal is pending at a time, so one read is enough.
        let _ = rustix::io::read(&self.0, &mut [0; size_of::<libc::signalfd_siginfo>()]);
    }
}

/// Watches a pidfd for the exit of its process.
pub(crate) fn watch(pidfd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    watch_for(pidfd, Interest::READABLE)
}

/// Registers a descriptor with the tokio runtime around the call.
pub(crate) fn watch_for<T: AsFd + AsRawFd>(file: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    // SAFETY: the descriptor is owned or borrowed by the value that is registered, so it is open, and
    // the same, for as long as that lives.
    let watched = unsafe { AsyncFd::register_with_interest(file, interest) };
    watched.map_err(io::Error::from)
}

/// Drops the supplementary groups, if that is permitted.
pub(crate) fn drop_groups() {
    // SAFETY: no groups are read from the null pointer, as their number is 0.
    let _ = unsafe { libc::setgroups(0, std::ptr::null()) };
}

/// Replaces a standard stream (0, 1 or 2) with another file.
pub(crate) fn replace(file: BorrowedFd<'_>, stream: i32) -> io::Result<()> {
    // SAFETY: nothing in this crate owns one of the first three descriptors.
    let done = unsafe { libc::dup2(file.as_raw_fd(), stream.clamp(0, 2)) };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Sends a datagram on a socket given by its descriptor number alone.
pub(crate) fn send_on(socket: i32, bytes: &[u8]) -> io::Result<()> {
    let flags = libc::MSG_NOSIGNAL;
    // SAFETY: the bytes outlive the call; a wrong number is an error of the call.
    let done = unsafe { libc::send(socket, bytes.as_ptr().cast(), bytes.len(), flags) };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Stops tracing a child that made this process its tracer (`PTRACE_TRACEME`) and has stopped; it continues with the signal for which it
/// stopped. A trap is not passed on: the kernel raises one for the tracer whenever such a child executes a program.
pub(crate) fn trace_no_more(child: Pid, signal: i32) {
    let signal = if signal == libc::SIGTRAP { 0 } else { signal };
    // SAFETY: takes numbers only. The child, if it is one of this process and has stopped, continues.
    unsafe { libc::ptrace(libc::PTRACE_DETACH, child.as_raw_nonzero().get(), 0, signal) };
}

/// Exits this process, which has no `main` to return to.
#[expect(clippy::exit, reason = "the process has no main to return to")]
pub(crate) fn leave(code: i32) -> ! {
    std::process::exit(code)
}

#[cfg(test)]
mod tests {
    use super::is_at_least;

    #[test]
    fn versions_are_compared_by_number() {
        for (release, expect) in [
            ("6.14.0", true),
            ("6.14-rc1", true),
            ("6.13.12-generic", false),
            ("6.9.0", false),
            ("10.0.1", true),
            ("5.15.0-91-generic", false),
            ("", false),
            ("6", false),
        ] {
            assert_eq!(is_at_least(release, [6, 14]), expect, "{release}");
        }
    }
}
