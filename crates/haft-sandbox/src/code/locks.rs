//! Writes the list of a script's locks, in the order in which they are taken.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::StartError;
use crate::filter::command::SCRIPT_NAMESPACES;
use crate::filter::{Isolation, script};
use crate::jail::NO_CORE;
use crate::lockdown::lock::{FOLDER, LockStep};
use crate::strength::Strength;
use crate::sys::pid_max_is_of_a_namespace;

/// Without `/dev/zero`: mapping it would create shared memory without a file.
pub(super) const DEVICES: [&str; 3] = ["/dev/null", "/dev/urandom", "/dev/random"];
/// The script's folder if it has a root of its own.
pub(super) const WORKSPACE: &str = "/workspace";
/// An empty folder of its root.
pub(super) const NOTHING: &str = "/.nothing";
/// The options of its `/tmp` and of its folder: size and number of files are limited, so that neither fills the machine's memory.
const QUOTA: &str = "mode=0700,size=64m,nr_inodes=8k";
/// Maximum number of threads per script.
const THREADS: u64 = 64;
/// Maximum number of threads of all scripts of one zygote together, if they are counted per user.
const TOGETHER: u64 = 1024;
/// The same if the user's other processes count too.
const TOGETHER_ON_HOST: u64 = 4096;
/// The kernel uses process IDs below this only once (its `RESERVED_PIDS`).
const RESERVED: u64 = 300;
const MIB: u64 = 1 << 20;

const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const EXECUTE: u64 = 1;
/// Everything that a script may do in its own folder: all except programs, devices and sockets.
const CHANGE: u64 = (1 << 1)
    | READ_FILE
    | READ_DIR
    | (1 << 4)
    | (1 << 5)
    | (1 << 7)
    | (1 << 8)
    | (1 << 10)
    | (1 << 12)
    | (1 << 13)
    | (1 << 14);

/// What a list of locks is built from.
#[derive(Debug)]
pub(super) struct LockConfig<'a> {
    pub(super) level: Strength,
    /// The Landlock ABI; 0 = there is none.
    pub(super) landlock: u32,
    pub(super) memory_mb: u64,
    /// Folders and files that may be read.
    pub(super) readable: &'a [PathBuf],
    /// Our own files, for an interpreter that reads them under the locks.
    pub(super) own: Option<&'a Path>,
    /// Files that may be executed, for an interpreter that starts under the locks.
    pub(super) programs: &'a [PathBuf],
}

/// Returns the mounts of a script, for the process that has the right to create them: an empty `/tmp` and folder, no `/proc`.
pub(super) fn mounts() -> Vec<u8> {
    let mut list = LockList::default();
    list.mounts();
    list.0
}

impl LockConfig<'_> {
    /// Returns all locks of a child, in the order in which it takes them.
    pub(super) fn list(&self) -> Result<Vec<u8>, StartError> {
        let mut list = LockList::default();
        list.add(LockStep::Session, &[], &[]);
        list.prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if self.level > Strength::LandlockSeccomp {
            self.namespaces(&mut list);
        }
        list.add(LockStep::Folder, &[], &[self.folder().as_bytes()]);
        self.limits(&mut list);
        list.add(LockStep::Capabilities, &[], &[]);
        list.prctl(libc::PR_SET_NO_NEW_PRIVS, 1);
        list.prctl(libc::PR_SET_DUMPABLE, 0);
        if self.landlock > 0 {
            self.rules(&mut list);
        }
        list.add(LockStep::Enter, &[], &[self.folder().as_bytes()]);
        let around = Isolation::of(self.level > Strength::LandlockSeccomp, self.landlock);
        let filter = script::allow(around, self.starts());
        let filter = filter.map_err(|_| StartError::no_filter())?;
        let mut lines = Vec::new();
        for line in filter {
            lines.extend(line.code.to_ne_bytes());
            lines.extend([line.jt, line.jf]);
            lines.extend(line.k.to_ne_bytes());
        }
        list.payload(LockStep::Filter, &lines);
        Ok(list.0)
    }

    /// Returns whether an interpreter is executed under the locks.
    fn starts(&self) -> bool {
        !self.programs.is_empty()
    }

    fn folder(&self) -> &'static OsStr {
        if self.level > Strength::LandlockSeccomp {
            OsStr::new(WORKSPACE)
        } else {
            OsStr::from_bytes(FOLDER.to_bytes())
        }
    }

    /// Adds namespaces and file systems of its own.
    fn namespaces(&self, list: &mut LockList) {
        if self.level == Strength::Full && pid_max_is_of_a_namespace() {
            // The settings belong to the writing process's namespace, whichever `/proc` is used.
            let last = RESERVED.to_string();
            let most = (RESERVED + THREADS).to_string();
            for (name, value) in [("ns_last_pid", last), ("pid_max", most)] {
                let path = format!("/proc/sys/kernel/{name}");
                list.add(LockStep::Write, &[], &[path.as_bytes(), value.as_bytes()]);
            }
        }
        // No network namespace of its own: the zygote's is empty, its loopback is off, and neither the filter nor
        // Landlock lets a script have a socket with an address. The kernel destroys network namespaces one after
        // another, more slowly than scripts come and go.
        let mut flags = SCRIPT_NAMESPACES;
        if self.starts() {
            flags |= libc::CLONE_NEWNS;
        }
        list.add(LockStep::Unshare, &[u64::from(flags.cast_unsigned())], &[]);
        if self.starts() {
            list.mounts();
        } else {
            list.add(LockStep::Join, &[], &[]);
        }
    }

    fn limits(&self, list: &mut LockList) {
        if self.level < Strength::Full {
            // The only limit if the namespace's own number cannot be set; the kernel does not apply it to root, whose
            // threads are then limited only by memory.
            let most = if self.level == Strength::NoProc {
                TOGETHER
            } else {
                TOGETHER_ON_HOST
            };
            list.add(LockStep::Limit, &[u64::from(libc::RLIMIT_NPROC), most], &[]);
        }
        for (resource, most) in [
            (libc::RLIMIT_CORE, NO_CORE),
            (libc::RLIMIT_AS, self.memory_mb.saturating_mul(MIB)),
            (libc::RLIMIT_FSIZE, 64 * MIB),
            (libc::RLIMIT_NOFILE, 64),
            (libc::RLIMIT_CPU, 301),
            (libc::RLIMIT_MEMLOCK, 0),
            (libc::RLIMIT_MSGQUEUE, 0),
            (libc::RLIMIT_SIGPENDING, 1024),
        ] {
            list.add(LockStep::Limit, &[u64::from(resource), most], &[]);
        }
    }

    /// Adds the Landlock rules: named files may be read, its own folders changed; no port, and no socket or process of
    /// others if the kernel can forbid it.
    fn rules(&self, list: &mut LockList) {
        let (bits, size) = match self.landlock {
            1 => (13, 8),
            2 => (14, 8),
            3 => (15, 8),
            4 => (15, 16),
            5 => (16, 16),
            _ => (16, 24),
        };
        let handled = (1 << bits) - 1;
        list.add(LockStep::Rules, &[handled, 3, 3, size], &[]);
        let mut grant = |access: u64, path: &OsStr| {
            list.add(LockStep::Grant, &[access & handled], &[path.as_bytes()]);
        };
        for path in self.readable.iter().map(PathBuf::as_path).chain(self.own) {
            // Our own folder may exist only inside.
            let folder = path.is_dir() || self.own == Some(path);
            let folder = if folder { READ_DIR } else { 0 };
            grant(READ_FILE | folder, path.as_os_str());
        }
        for path in self.programs {
            grant(READ_FILE | EXECUTE, path.as_os_str());
        }
        for device in DEVICES {
            let write = if device == "/dev/null" { 1 << 1 } else { 0 };
            if Path::new(device).exists() {
                grant(READ_FILE | write, OsStr::new(device));
            }
        }
        grant(CHANGE, self.folder());
        if self.level > Strength::LandlockSeccomp {
            grant(CHANGE, OsStr::new("/tmp"));
        }
        list.add(LockStep::Restrict, &[], &[]);
    }
}

/// The encoded steps, one after another: kind, length, payload.
#[derive(Debug, Default)]
struct LockList(Vec<u8>);

impl LockList {
    fn add(&mut self, step: LockStep, numbers: &[u64], texts: &[&[u8]]) {
        let mut payload: Vec<u8> = numbers.iter().flat_map(|one| one.to_ne_bytes()).collect();
        for text in texts {
            payload.extend(*text);
            payload.push(0);
        }
        self.payload(step, &payload);
    }

    fn payload(&mut self, step: LockStep, payload: &[u8]) {
        self.0.extend((step as u64).to_ne_bytes());
        self.0.extend((payload.len() as u64).to_ne_bytes());
        self.0.extend(payload);
    }

    fn mounts(&mut self) {
        for path in ["/tmp", WORKSPACE] {
            self.add(LockStep::Tmpfs, &[], &[path.as_bytes(), QUOTA.as_bytes()]);
        }
        self.add(LockStep::Cover, &[], &[NOTHING.as_bytes(), b"/proc"]);
    }

    fn prctl(&mut self, option: i32, argument: i32) {
        let numbers = [option, argument].map(|one| u64::from(one.cast_unsigned()));
        self.add(LockStep::Prctl, &numbers, &[]);
    }
}
