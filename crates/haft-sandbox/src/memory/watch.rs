//! Sums the memory of a process tree, the more often the closer the tree is to its limit.
//!
//! A check costs little while the tree is far below its limit: the resident memory of each process is an upper
//! bound of its share. Only if that sum is too high are the shares themselves added up, which the kernel
//! computes by walking page tables.

use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{Dir, Mode, OFlags, openat};
use rustix::process::Pid;

use super::sockets::SocketMemory;
use super::{netlink, proc_file as open};
use crate::sys;

/// The fastest rate at which one processor fills memory, in bytes per second.
const FASTEST: u64 = 2 << 30;
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_millis(500);
/// The share of the time that checks may take: one part in this many.
const SHARE: u32 = 20;
/// The part of a group's limit that may be held where no group counts it, in addition.
const BESIDE: u64 = 8;
/// Maximum number of bytes read of a process's status.
const STATE: u64 = 64 << 10;
/// Maximum number of processes that the kernel allows (`PID_MAX_LIMIT`).
const PROCESSES: usize = 1 << 22;
/// Maximum number of bytes of a list of processes.
const NUMBERS: u64 = 8 * PROCESSES as u64;
/// The size of each thread's kernel stack (`THREAD_SIZE`).
const STACK: u64 = 16 << 10;
/// The memory that a file in `/tmp` takes for its name and inode alone.
const NAMED_FILE: u64 = 1 << 10;
/// What the kernel keeps of an open file that is no socket: a timer, a counter, a watch. A process has this many without counting.
const OPEN_FILE: u64 = 512;
const FEW_FILES: u64 = 256;
/// The room for open files that a process has needed at most.
const FILES: &str = "FDSize:";
/// Page tables are memory too.
const TABLES: &str = "VmPTE:";

/// Watches one tree.
#[derive(Debug)]
pub(crate) struct MemoryWatch {
    /// The `/proc` in which the tree's processes have the IDs that this process sees.
    proc: OwnedFd,
    first: Pid,
    limit: u64,
    /// The root before the tree created its own, with a `/tmp` and an IPC namespace.
    outside: Option<RootIdentity>,
    /// Whether the network namespace is the tree's own.
    own_network: bool,
    /// Present if the kernel describes the sockets in it.
    sockets: Option<SocketMemory>,
    /// Whether a control group limits everything else than what no group counts.
    grouped: bool,
    took: Duration,
    used: u64,
}

/// A root folder, identified by device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RootIdentity(u64, u64);

impl RootIdentity {
    /// Returns this process's current root.
    pub(crate) fn now() -> io::Result<Self> {
        let stat = rustix::fs::stat("/")?;
        Ok(Self(stat.st_dev, stat.st_ino))
    }
}

/// The memory of a process, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ProcessMemory {
    anonymous: u64,
    shared: u64,
}

impl MemoryWatch {
    /// Watches a process and everything below it, with a limit of `limit` bytes. If the tree creates its own
    /// root, `outside` is the one before.
    pub(crate) fn new(
        proc: OwnedFd,
        first: Pid,
        limit: u64,
        outside: Option<RootIdentity>,
    ) -> Self {
        Self {
            proc,
            first,
            limit,
            outside,
            own_network: false,
            sockets: None,
            grouped: false,
            took: Duration::ZERO,
            used: 0,
        }
    }

    /// Also counts the sockets in this process's network namespace, which is the tree's own.
    pub(crate) fn with_sockets(mut self) -> Self {
        self.own_network = true;
        self.sockets = SocketMemory::open().ok();
        self
    }

    /// Watches what no control group counts of a tree in a group with this limit: the netlink sockets in this process's network
    /// namespace, which is the tree's own. They may hold one part in [`BESIDE`] of the limit.
    pub(crate) fn beside_group(proc: OwnedFd, first: Pid, limit: u64) -> Self {
        let watch = Self::new(proc, first, limit / BESIDE, None);
        Self {
            own_network: true,
            grouped: true,
            ..watch
        }
    }

    /// Returns whether trees can be watched through this `/proc`.
    pub(crate) fn works(proc: &OwnedFd) -> bool {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let files = ["status", "smaps_rollup"].map(|name| format!("{own}/{name}"));
        let children = format!("{own}/task/{own}/children");
        files
            .iter()
            .chain([&children])
            .all(|path| open(proc, path).is_some())
    }

    /// Returns how long to wait before the next check: the closer the tree may be to its limit, the shorter.
    pub(crate) fn pause(&self) -> Duration {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let fastest = FASTEST.saturating_mul(cores as u64);
        let left = self.limit.saturating_sub(self.used);
        let until = Duration::from_millis(left.saturating_mul(1000) / fastest);
        // However long a tree makes the checks take, the pauses get no longer than this.
        until
            .clamp(SHORTEST, LONGEST)
            .max((self.took * SHARE).min(LONGEST))
    }

    /// Returns the memory of the tree if it exceeds the limit.
    pub(crate) fn exceeded(&mut self) -> Option<u64> {
        let begun = Instant::now();
        self.used = if self.grouped {
            netlink::held(&self.proc)
        } else {
            self.of_tree()
        };
        self.took = begun.elapsed();
        (self.used > self.limit).then_some(self.used)
    }

    /// Returns the memory of the whole tree: exactly if it may exceed the limit, else at most so much.
    fn of_tree(&self) -> u64 {
        let (processes, threads) = self.tree();
        let stored = self.stored(processes.len() as u64);
        let stacks = threads * STACK;
        let resident = self.sum(&processes, resident);
        let mut used = resident.anonymous + resident.shared + stored + stacks;
        if used > self.limit {
            let shares = self.sum(&processes, share);
            // Data stored in `/tmp` or as shared memory takes space whether it is mapped or not.
            used = shares.anonymous + shares.shared + stored + stacks;
            if used > self.limit && stored > 0 && shares.shared > 0 {
                let unnamed: u64 = processes.iter().map(|pid| self.unnamed(*pid)).sum();
                used = shares.anonymous + stored + unnamed.min(shares.shared) + stacks;
            }
        }
        used
    }

    fn sum(&self, processes: &[u32], of: fn(&OwnedFd, u32) -> ProcessMemory) -> ProcessMemory {
        let mut sum = ProcessMemory::default();
        for pid in processes {
            let one = of(&self.proc, *pid);
            sum.anonymous += one.anonymous;
            sum.shared += one.shared;
        }
        sum
    }

    /// Returns the processes, including the first one, and the number of their threads.
    fn tree(&self) -> (Vec<u32>, u64) {
        let mut count = 0;
        let mut all = vec![self.first.as_raw_nonzero().get().cast_unsigned()];
        let mut at = 0;
        while let Some(pid) = all.get(at).copied().filter(|_| all.len() < PROCESSES) {
            at += 1;
            for thread in threads(&self.proc, pid) {
                count += 1;
                let path = format!("{pid}/task/{thread}/children");
                let children = text(&self.proc, &path, NUMBERS);
                let numbers = children.split_ascii_whitespace();
                all.extend(numbers.filter_map(|word| word.parse::<u32>().ok()));
            }
        }
        (all, count)
    }

    /// Returns the bytes stored in the tree's `/tmp`, System V objects and sockets.
    fn stored(&self, processes: u64) -> u64 {
        // Until the tree has its own root, `/tmp` is the host's.
        if self.outside.is_none() || self.outside == RootIdentity::now().ok() {
            return 0;
        }
        let files = rustix::fs::statvfs("/tmp").map_or(0, |stat| {
            let used = stat.f_blocks - stat.f_bfree.min(stat.f_blocks);
            let named = stat.f_files - stat.f_ffree.min(stat.f_files);
            used.saturating_mul(stat.f_frsize) + named.saturating_mul(NAMED_FILE)
        });
        let mut sockets = self.sockets.as_ref().map_or(0, SocketMemory::held);
        if self.own_network {
            sockets += netlink::held(&self.proc);
        }
        let objects = sys::segments() + sys::queues() + sys::semaphores(processes);
        files + objects + sockets
    }

    /// Returns a process's share of shared memory that has no name: only the mapping keeps it.
    fn unnamed(&self, pid: u32) -> u64 {
        let Some(file) = open(&self.proc, &format!("{pid}/smaps")) else {
            return 0;
        };
        let (mut sum, mut counts) = (0, false);
        for line in BufReader::new(file).lines().map_while(Result::ok) {
            if let Some(size) = line.strip_prefix("Pss:") {
                sum += if counts { kilobytes(size) } else { 0 };
            } else if line
                .starts_with(|first: char| first.is_ascii_digit() || first.is_ascii_lowercase())
            {
                counts = line.contains(" /dev/zero (deleted)") || line.contains(" /memfd:");
            }
        }
        sum
    }
}

fn threads(proc: &OwnedFd, pid: u32) -> Vec<String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(proc, format!("{pid}/task"), flags, Mode::empty());
    let entries = folder.and_then(Dir::read_from);
    let names = entries.into_iter().flatten().flatten();
    names
        .filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned))
        .filter(|name| !name.starts_with('.'))
        .collect()
}

fn text(proc: &OwnedFd, path: &str, most: u64) -> String {
    let mut text = String::new();
    if let Some(file) = open(proc, path) {
        let _ = file.take(most).read_to_string(&mut text);
    }
    text
}

/// Returns what is resident or swapped out, however many processes share it.
fn resident(proc: &OwnedFd, pid: u32) -> ProcessMemory {
    let status = text(proc, &format!("{pid}/status"), STATE);
    let mut memory = of_lines(&status, &["RssAnon:", "VmSwap:", TABLES], "RssShmem:");
    memory.anonymous += of_files(&status);
    memory
}

/// Returns what the kernel keeps of a process's open files, if they are many.
fn of_files(status: &str) -> u64 {
    let room = status.lines().find_map(|line| line.strip_prefix(FILES));
    let room = room.and_then(|room| room.trim().parse::<u64>().ok());
    room.unwrap_or(0)
        .saturating_sub(FEW_FILES)
        .saturating_mul(OPEN_FILE)
}

/// Returns the process's share of that; all of it if the kernel does not report shares.
fn share(proc: &OwnedFd, pid: u32) -> ProcessMemory {
    let told = text(proc, &format!("{pid}/smaps_rollup"), STATE);
    if !told.contains("Pss_Anon:") {
        return resident(proc, pid);
    }
    let mut memory = of_lines(&told, &["Pss_Anon:", "SwapPss:"], "Pss_Shmem:");
    let status = text(proc, &format!("{pid}/status"), STATE);
    memory.anonymous += of_lines(&status, &[TABLES], "-").anonymous + of_files(&status);
    memory
}

fn of_lines(text: &str, anonymous: &[&str], shared: &str) -> ProcessMemory {
    let mut memory = ProcessMemory::default();
    for line in text.lines() {
        let size = |name: &str| line.strip_prefix(name).map_or(0, kilobytes);
        memory.anonymous += anonymous.iter().map(|name| size(name)).sum::<u64>();
        memory.shared += size(shared);
    }
    memory
}

/// Parses the bytes of `   123 kB`.
fn kilobytes(text: &str) -> u64 {
    let number = text.split_ascii_whitespace().next();
    number
        .and_then(|number| number.parse::<u64>().ok())
        .unwrap_or(0)
        << 10
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use rustix::process::getpid;

    use super::{LONGEST, MemoryWatch, ProcessMemory, RootIdentity, SHARE, of_files, of_lines};

    #[test]
    fn aj11_a_tree_that_takes_long_to_look_at_is_looked_at_as_often() {
        let proc = File::open("/proc").unwrap().into();
        let mut watch = MemoryWatch::new(proc, getpid(), 1 << 40, None);
        watch.took = LONGEST * SHARE;
        assert_eq!(watch.pause(), LONGEST);
    }

    #[test]
    fn aj6_the_hosts_tmp_is_not_the_trees() {
        let stored = |outside| {
            let proc = File::open("/proc").unwrap().into();
            MemoryWatch::new(proc, getpid(), 0, outside).stored(1)
        };
        // As on a busy machine: the command's root is not built yet.
        assert_eq!(stored(Some(RootIdentity::now().unwrap())), 0);
        assert_eq!(stored(None), 0);
        assert!(stored(Some(RootIdentity(0, 0))) > 0);
    }

    #[test]
    fn a_process_state_is_read_in_bytes() {
        let status =
            "Name:\ta\nRssAnon:\t     100 kB\nRssFile:\t 7 kB\nRssShmem:\t 20 kB\nVmSwap:\t 1 kB\n";
        let memory = of_lines(status, &["RssAnon:", "VmSwap:"], "RssShmem:");
        let expect = ProcessMemory {
            anonymous: 101 << 10,
            shared: 20 << 10,
        };
        assert_eq!(memory, expect);
        for (files, expect) in [(64, 0), (256, 0), (4096, 3840 * 512)] {
            assert_eq!(of_files(&format!("FDSize:\t{files}\n")), expect);
        }
        assert_eq!(
            of_lines("RssAnon: x\n\n", &["RssAnon:"], "y"),
            ProcessMemory::default()
        );
    }
}
