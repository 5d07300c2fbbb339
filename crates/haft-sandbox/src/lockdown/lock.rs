//! Takes the locks of a script, one after another, from a list that the host wrote.
//!
//! Between the fork and the last lock nothing else runs: no allocation, no library, only system calls whose
//! arguments are all in the list. `code/locks.rs` writes the list and documents each step.

use core::ffi::{CStr, c_int};

/// The descriptor of a child's end of the bridge.
pub(crate) const BRIDGE: c_int = 3;
/// The descriptor of the mounts that were created for it.
const MOUNTS: c_int = 4;
/// A path in the list that denotes the script's own folder.
pub(crate) const FOLDER: &CStr = c"@";

/// The action of a step in the list; the payload holds its numbers first, then its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum LockStep {
    /// `flags`: moves into new namespaces.
    Unshare = 1,
    /// path, options: mounts an empty file system without programs or devices.
    Tmpfs,
    /// path, text: writes the text if the kernel allows it.
    Write,
    /// empty folder, path: hides what is at the path.
    Cover,
    /// `resource, most`: sets a limit.
    Limit,
    /// Drops every capability and the ways to regain one.
    Capabilities,
    /// `option, argument`: calls `prctl`.
    Prctl,
    /// `files, network, scope, size`: opens the Landlock rule set.
    Rules,
    /// `access`, path: adds a rule.
    Grant,
    /// Enforces the rule set.
    Restrict,
    /// path: hands a descriptor of the folder to the host, as the datagram `F`.
    Folder,
    /// path: changes to this folder.
    Enter,
    /// Detaches from every terminal and process group.
    Session,
    /// The program: installs the system call filter.
    Filter,
    /// Enters the mounts that were created for it.
    Join,
}

const STEPS: [LockStep; 15] = [
    LockStep::Unshare,
    LockStep::Tmpfs,
    LockStep::Write,
    LockStep::Cover,
    LockStep::Limit,
    LockStep::Capabilities,
    LockStep::Prctl,
    LockStep::Rules,
    LockStep::Grant,
    LockStep::Restrict,
    LockStep::Folder,
    LockStep::Enter,
    LockStep::Session,
    LockStep::Filter,
    LockStep::Join,
];

/// The step that failed (its position in the list, from 1) and the system's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LockFailure {
    /// 0 = before the list.
    pub(crate) step: u16,
    /// As `errno`.
    pub(crate) errno: u16,
}

const EPERM: u16 = 1;
const EINVAL: u16 = 22;

#[cfg(target_arch = "x86_64")]
pub(crate) mod calls {
    pub(super) const WRITE: usize = 1;
    pub(super) const CLOSE: usize = 3;
    pub(super) const SENDMSG: usize = 46;
    pub(super) const CHDIR: usize = 80;
    pub(super) const SETSID: usize = 112;
    pub(super) const CAPSET: usize = 126;
    pub(super) const PRCTL: usize = 157;
    pub(super) const MOUNT: usize = 165;
    pub(super) const OPENAT: usize = 257;
    pub(crate) const UNSHARE: usize = 272;
    pub(super) const DUP3: usize = 292;
    pub(super) const PRLIMIT64: usize = 302;
    pub(crate) const SETNS: usize = 308;
    pub(super) const SECCOMP: usize = 317;
}

#[cfg(target_arch = "aarch64")]
pub(crate) mod calls {
    pub(super) const WRITE: usize = 64;
    pub(super) const CLOSE: usize = 57;
    pub(super) const SENDMSG: usize = 211;
    pub(super) const CHDIR: usize = 49;
    pub(super) const SETSID: usize = 157;
    pub(super) const CAPSET: usize = 91;
    pub(super) const PRCTL: usize = 167;
    pub(super) const MOUNT: usize = 40;
    pub(super) const OPENAT: usize = 56;
    pub(crate) const UNSHARE: usize = 97;
    pub(super) const DUP3: usize = 24;
    pub(super) const PRLIMIT64: usize = 261;
    pub(crate) const SETNS: usize = 268;
    pub(super) const SECCOMP: usize = 277;
}

// Numbers that are the same on all architectures.
const CLOSE_RANGE: usize = 436;
const LANDLOCK_CREATE: usize = 444;
const LANDLOCK_RULE: usize = 445;
const LANDLOCK_RESTRICT: usize = 446;

/// Makes one system call; memory that pointer arguments refer to must outlive it.
pub(crate) fn call(number: usize, [a, b, c, d, e]: [usize; 5]) -> Result<usize, u16> {
    let done: isize;
    // SAFETY: only this file calls it, with numbers and with pointers to live values of the size that the call
    // expects; none of the calls writes to memory except `prlimit64`, to a value of its own.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!("syscall", inlateout("rax") number => done, in("rdi") a, in("rsi") b,
            in("rdx") c, in("r10") d, in("r8") e, in("r9") 0, lateout("rcx") _, lateout("r11") _,
            options(nostack));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!("svc 0", in("x8") number, inlateout("x0") a => done, in("x1") b,
            in("x2") c, in("x3") d, in("x4") e, in("x5") 0, options(nostack));
    }
    if done < 0 {
        // The kernel's errors are -1 to -4095.
        Err(done.unsigned_abs() as u16)
    } else {
        Ok(done.unsigned_abs())
    }
}

fn at(text: &CStr) -> usize {
    text.as_ptr().expose_provenance()
}

/// Moves the bridge to its descriptor, and the mounts if there are any (0 or more), and closes all descriptors
/// above.
pub(crate) fn settle(bridge: c_int, mounts: c_int) -> Result<(), LockFailure> {
    let put = |file: c_int, place: c_int| {
        if file == place {
            Ok(0)
        } else {
            call(calls::DUP3, [file as usize, place as usize, 0, 0, 0])
        }
    };
    // Neither has the other's target number: both come from a process in which those numbers are in use.
    let moved = put(bridge, BRIDGE).and_then(|_| match mounts {
        0.. => put(mounts, MOUNTS).map(|_| MOUNTS),
        _ => Ok(BRIDGE),
    });
    let closed = moved.and_then(|last| {
        let first = last as usize + 1;
        call(CLOSE_RANGE, [first, u32::MAX as usize, 0, 0, 0])
    });
    closed
        .map(drop)
        .map_err(|errno| LockFailure { step: 0, errno })
}

/// The payload of one step.
struct Payload<'a> {
    bytes: &'a [u8],
    folder: &'a CStr,
}

impl<'a> Payload<'a> {
    fn number(&mut self) -> Result<usize, u16> {
        let (number, rest) = self.bytes.split_first_chunk::<8>().ok_or(EINVAL)?;
        self.bytes = rest;
        Ok(u64::from_ne_bytes(*number) as usize)
    }

    fn text(&mut self) -> Result<&'a CStr, u16> {
        let text = CStr::from_bytes_until_nul(self.bytes).map_err(|_| EINVAL)?;
        self.bytes = self.bytes.get(text.count_bytes() + 1..).unwrap_or_default();
        Ok(text)
    }

    /// Returns a path; the script's own folder for `FOLDER`.
    fn path(&mut self) -> Result<&'a CStr, u16> {
        let path = self.text()?;
        Ok(if path == FOLDER { self.folder } else { path })
    }
}

/// Takes every lock in the list, in order, and stops at the first one that fails.
pub(crate) fn take(list: &[u8], folder: &CStr) -> Result<(), LockFailure> {
    let mut rest = list;
    let mut rules = usize::MAX;
    let mut step = 0;
    while !rest.is_empty() {
        step += 1;
        let fail = |errno| LockFailure { step, errno };
        let (kind, tail) = rest.split_first_chunk::<8>().ok_or(fail(EINVAL))?;
        let (length, tail) = tail.split_first_chunk::<8>().ok_or(fail(EINVAL))?;
        let length = u64::from_ne_bytes(*length) as usize;
        let (bytes, tail) = tail.split_at_checked(length).ok_or(fail(EINVAL))?;
        let kind = (u64::from_ne_bytes(*kind) as usize).wrapping_sub(1);
        let kind = *STEPS.get(kind).ok_or(fail(EINVAL))?;
        one(kind, Payload { bytes, folder }, &mut rules).map_err(fail)?;
        rest = tail;
    }
    Ok(())
}

fn one(step: LockStep, mut payload: Payload<'_>, rules: &mut usize) -> Result<(), u16> {
    match step {
        LockStep::Unshare => call(calls::UNSHARE, [payload.number()?, 0, 0, 0, 0]),
        LockStep::Tmpfs => {
            let (path, options) = (payload.path()?, payload.text()?);
            mount(c"tmpfs", path, NO_PROGRAMS, at(options))
        }
        LockStep::Write => {
            let (path, text) = (payload.path()?, payload.text()?);
            // Not all kernels have the setting; what it limits is also limited in other ways.
            let _ = write(path, text);
            Ok(0)
        }
        LockStep::Cover => {
            const BIND: usize = 4096;
            let (empty, path) = (payload.path()?, payload.path()?);
            mount(empty, path, BIND, 0)
        }
        LockStep::Limit => limit(payload.number()?, payload.number()?),
        LockStep::Capabilities => capabilities(),
        LockStep::Prctl => {
            let (option, argument) = (payload.number()?, payload.number()?);
            call(calls::PRCTL, [option, argument, 0, 0, 0])
        }
        LockStep::Rules => {
            let handled = [payload.number()?, payload.number()?, payload.number()?];
            let size = payload.number()?;
            if size > size_of_val(&handled) {
                return Err(EINVAL);
            }
            *rules = call(
                LANDLOCK_CREATE,
                [handled.as_ptr().expose_provenance(), size, 0, 0, 0],
            )?;
            Ok(0)
        }
        LockStep::Grant => grant(*rules, payload.number()?, payload.path()?),
        LockStep::Restrict => {
            call(LANDLOCK_RESTRICT, [*rules, 0, 0, 0, 0])?;
            call(calls::CLOSE, [*rules, 0, 0, 0, 0])
        }
        LockStep::Folder => hand_over(payload.path()?),
        LockStep::Enter => call(calls::CHDIR, [at(payload.path()?), 0, 0, 0, 0]),
        LockStep::Session => call(calls::SETSID, [0; 5]),
        LockStep::Filter => filter(payload.bytes),
        LockStep::Join => {
            const NEW_MOUNTS: usize = 0x2_0000;
            call(calls::SETNS, [MOUNTS as usize, NEW_MOUNTS, 0, 0, 0])?;
            call(calls::CLOSE, [MOUNTS as usize, 0, 0, 0, 0])
        }
    }
    .map(drop)
}

/// `nosuid,nodev,noexec`.
const NO_PROGRAMS: usize = 2 | 4 | 8;

fn mount(source: &CStr, path: &CStr, flags: usize, options: usize) -> Result<usize, u16> {
    // For a new file system, its type equals its source name.
    let arguments = [at(source), at(path), at(source), flags, options];
    call(calls::MOUNT, arguments)
}

const CWD: usize = -100_isize as usize;
const O_CLOEXEC: usize = 0o2_000_000;
#[cfg(target_arch = "x86_64")]
const O_DIRECTORY: usize = 0o200_000;
#[cfg(target_arch = "aarch64")]
const O_DIRECTORY: usize = 0o40_000;

fn open(path: &CStr, flags: usize) -> Result<usize, u16> {
    call(calls::OPENAT, [CWD, at(path), flags | O_CLOEXEC, 0, 0])
}

fn write(path: &CStr, text: &CStr) -> Result<usize, u16> {
    const WRITE_ONLY: usize = 1;
    let file = open(path, WRITE_ONLY)?;
    let arguments = [file, at(text), text.count_bytes(), 0, 0];
    let done = call(calls::WRITE, arguments);
    call(calls::CLOSE, [file, 0, 0, 0, 0])?;
    done
}

/// Sets both limits; a value above the hard limit is lowered to it.
fn limit(resource: usize, most: usize) -> Result<usize, u16> {
    let mut old = [0_u64; 2];
    let seen = old.as_mut_ptr().expose_provenance();
    call(calls::PRLIMIT64, [0, resource, 0, seen, 0])?;
    let hard = old[1];
    let new = [(most as u64).min(hard); 2];
    call(
        calls::PRLIMIT64,
        [0, resource, new.as_ptr().expose_provenance(), 0, 0],
    )
}

fn capabilities() -> Result<usize, u16> {
    const DROP_BOUND: usize = 24;
    const AMBIENT: [usize; 2] = [47, 4];
    const VERSION_3: u32 = 0x2008_0522;
    call(calls::PRCTL, [AMBIENT[0], AMBIENT[1], 0, 0, 0])?;
    for number in 0..64 {
        match call(calls::PRCTL, [DROP_BOUND, number, 0, 0, 0]) {
            Ok(_) => {}
            // Above the kernel's last capability; or no right to drop what the process does not have anyway.
            Err(EINVAL | EPERM) => break,
            Err(errno) => return Err(errno),
        }
    }
    let (head, none) = ([VERSION_3, 0], [0_u32; 6]);
    let arguments = [
        head.as_ptr().expose_provenance(),
        none.as_ptr().expose_provenance(),
        0,
        0,
        0,
    ];
    call(calls::CAPSET, arguments)
}

fn grant(rules: usize, access: usize, path: &CStr) -> Result<usize, u16> {
    #[repr(C, packed)]
    struct PathBeneathRule {
        access: u64,
        parent: i32,
    }
    const PATH_BENEATH: usize = 1;
    const O_PATH: usize = 0o10_000_000;
    let file = open(path, O_PATH)?;
    let rule = PathBeneathRule {
        access: access as u64,
        parent: file as i32,
    };
    let arguments = [
        rules,
        PATH_BENEATH,
        (&raw const rule).expose_provenance(),
        0,
        0,
    ];
    let done = call(LANDLOCK_RULE, arguments);
    call(calls::CLOSE, [file, 0, 0, 0, 0])?;
    done
}

/// Sends the host a descriptor of a folder, with one byte.
fn hand_over(path: &CStr) -> Result<usize, u16> {
    const NO_SIGNAL: usize = 0x4000;
    const SOCKET: u32 = 1;
    const RIGHTS: u32 = 1;
    #[repr(C)]
    struct ControlMessage {
        length: usize,
        level: u32,
        kind: u32,
        file: u64,
    }
    let file = open(path, O_DIRECTORY)?;
    let control = ControlMessage {
        length: 20,
        level: SOCKET,
        kind: RIGHTS,
        file: (file as u32).into(),
    };
    let byte = *b"F";
    let part = [byte.as_ptr().expose_provenance(), 1];
    let message = [
        0,
        0,
        part.as_ptr().expose_provenance(),
        1,
        (&raw const control).expose_provenance(),
        size_of::<ControlMessage>(),
        0,
    ];
    let arguments = [
        BRIDGE as usize,
        message.as_ptr().expose_provenance(),
        NO_SIGNAL,
        0,
        0,
    ];
    let done = call(calls::SENDMSG, arguments);
    call(calls::CLOSE, [file, 0, 0, 0, 0])?;
    done
}

fn filter(program: &[u8]) -> Result<usize, u16> {
    const SET_FILTER: usize = 1;
    #[repr(C)]
    struct SockFprog {
        length: u16,
        lines: usize,
    }
    let program = SockFprog {
        length: u16::try_from(program.len() / 8).map_err(|_| EINVAL)?,
        lines: program.as_ptr().expose_provenance(),
    };
    let arguments = [
        SET_FILTER,
        0,
        (&raw const program).expose_provenance(),
        0,
        0,
    ];
    call(calls::SECCOMP, arguments)
}
