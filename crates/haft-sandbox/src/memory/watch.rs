//! Sums the memory of a tree of processes, as often as what is left of its limit calls for.
//!
//! A look costs little while the tree is far below its limit: what each process has resident is an upper
//! bound of its share. Only where that is too much are the shares themselves added up, which the kernel
//! finds by walking through page tables.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{Dir, Mode, OFlags, openat};
use rustix::process::Pid;

use super::sockets::Sockets;
use crate::jail::sys;

/// The fastest that one processor fills memory, in bytes a second.
const FASTEST: u64 = 2 << 30;
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_millis(500);
/// A look may take this share of the time: one part in so many.
const SHARE: u32 = 20;
/// Most bytes that are read of a process's state.
const STATE: u64 = 64 << 10;
/// The kernel has no more processes than this (`PID_MAX_LIMIT`).
const PROCESSES: usize = 1 << 22;
/// Most bytes of a list of them.
const NUMBERS: u64 = 8 * PROCESSES as u64;
/// What each thread has in the kernel for its stack alone (`THREAD_SIZE`).
const STACK: u64 = 16 << 10;
/// What a file in `/tmp` takes for its name and its number alone.
const NAMED_FILE: u64 = 1 << 10;
/// What maps a process's memory is memory.
const TABLES: &str = "VmPTE:";

/// Looks at one tree.
#[derive(Debug)]
pub(crate) struct Watch {
    /// The `/proc` in which the tree's processes have the numbers that this process sees.
    proc: OwnedFd,
    first: Pid,
    limit: u64,
    /// The root before the tree made one of its own, with a `/tmp` and an IPC namespace.
    outside: Option<Root>,
    /// Where the network namespace is the tree's own.
    sockets: Option<Sockets>,
    took: Duration,
    used: u64,
}

/// A root folder, known by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Root(u64, u64);

impl Root {
    /// This process's root as it is now.
    pub(crate) fn now() -> io::Result<Self> {
        let stat = rustix::fs::stat("/")?;
        Ok(Self(stat.st_dev, stat.st_ino))
    }
}

/// What a process has, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Memory {
    anonymous: u64,
    shared: u64,
}

impl Watch {
    /// Watches a process and everything below it; at most `limit` bytes. Where the tree makes a root of
    /// its own, `outside` is the one before.
    pub(crate) fn new(proc: OwnedFd, first: Pid, limit: u64, outside: Option<Root>) -> Self {
        Self {
            proc,
            first,
            limit,
            outside,
            sockets: None,
            took: Duration::ZERO,
            used: 0,
        }
    }

    /// The same of a tree with a network of its own, whose sockets count, too.
    pub(crate) fn with_sockets(mut self, sockets: Option<Sockets>) -> Self {
        self.sockets = sockets;
        self
    }

    /// Whether trees can be looked at through this `/proc`.
    pub(crate) fn works(proc: &OwnedFd) -> bool {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let files = ["status", "smaps_rollup"].map(|name| format!("{own}/{name}"));
        let children = format!("{own}/task/{own}/children");
        files
            .iter()
            .chain([&children])
            .all(|path| open(proc, path).is_some())
    }

    /// How long until the next look: less, the nearer the tree may come to its limit.
    pub(crate) fn pause(&self) -> Duration {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let fastest = FASTEST.saturating_mul(cores as u64);
        let left = self.limit.saturating_sub(self.used);
        let until = Duration::from_millis(left.saturating_mul(1000) / fastest);
        // However long a tree makes them last, looks come no further apart.
        until
            .clamp(SHORTEST, LONGEST)
            .max((self.took * SHARE).min(LONGEST))
    }

    /// What the tree has, where that is more than it may.
    pub(crate) fn exceeded(&mut self) -> Option<u64> {
        let begun = Instant::now();
        let (processes, threads) = self.tree();
        let stored = self.stored(processes.len() as u64);
        let stacks = threads * STACK;
        let resident = self.sum(&processes, resident);
        self.used = resident.anonymous + resident.shared + stored + stacks;
        if self.used > self.limit {
            let shares = self.sum(&processes, share);
            // What is stored in `/tmp` or as shared memory is there whether it is mapped or not.
            self.used = shares.anonymous + shares.shared + stored + stacks;
            if self.used > self.limit && stored > 0 && shares.shared > 0 {
                let unnamed: u64 = processes.iter().map(|pid| self.unnamed(*pid)).sum();
                self.used = shares.anonymous + stored + unnamed.min(shares.shared) + stacks;
            }
        }
        self.took = begun.elapsed();
        (self.used > self.limit).then_some(self.used)
    }

    fn sum(&self, processes: &[u32], of: fn(&OwnedFd, u32) -> Memory) -> Memory {
        let mut sum = Memory::default();
        for pid in processes {
            let one = of(&self.proc, *pid);
            sum.anonymous += one.anonymous;
            sum.shared += one.shared;
        }
        sum
    }

    /// The processes, the first one among them, and how many threads they have.
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

    /// What lies in the tree's `/tmp`, in its objects of System V and in its sockets.
    fn stored(&self, processes: u64) -> u64 {
        // Until the tree has its own root, `/tmp` is the host's.
        if self.outside.is_none() || self.outside == Root::now().ok() {
            return 0;
        }
        let files = rustix::fs::statvfs("/tmp").map_or(0, |stat| {
            let used = stat.f_blocks - stat.f_bfree.min(stat.f_blocks);
            let named = stat.f_files - stat.f_ffree.min(stat.f_files);
            used.saturating_mul(stat.f_frsize) + named.saturating_mul(NAMED_FILE)
        });
        let sockets = self.sockets.as_ref().map_or(0, Sockets::held);
        let objects = sys::segments() + sys::queues() + sys::semaphores(processes);
        files + objects + sockets
    }

    /// A process's share of memory that is shared and has no name: nothing stores it but the mapping.
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

fn open(proc: &OwnedFd, path: &str) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    openat(proc, path, flags, Mode::empty())
        .ok()
        .map(File::from)
}

fn text(proc: &OwnedFd, path: &str, most: u64) -> String {
    let mut text = String::new();
    if let Some(file) = open(proc, path) {
        let _ = file.take(most).read_to_string(&mut text);
    }
    text
}

/// What is resident or swapped out, whoever shares it.
fn resident(proc: &OwnedFd, pid: u32) -> Memory {
    of_lines(
        &text(proc, &format!("{pid}/status"), STATE),
        &["RssAnon:", "VmSwap:", TABLES],
        "RssShmem:",
    )
}

/// The same divided among those who share it; where that is not told, whole.
fn share(proc: &OwnedFd, pid: u32) -> Memory {
    let told = text(proc, &format!("{pid}/smaps_rollup"), STATE);
    if !told.contains("Pss_Anon:") {
        return resident(proc, pid);
    }
    let mut memory = of_lines(&told, &["Pss_Anon:", "SwapPss:"], "Pss_Shmem:");
    let status = text(proc, &format!("{pid}/status"), STATE);
    memory.anonymous += of_lines(&status, &[TABLES], "-").anonymous;
    memory
}

fn of_lines(text: &str, anonymous: &[&str], shared: &str) -> Memory {
    let mut memory = Memory::default();
    for line in text.lines() {
        let size = |name: &str| line.strip_prefix(name).map_or(0, kilobytes);
        memory.anonymous += anonymous.iter().map(|name| size(name)).sum::<u64>();
        memory.shared += size(shared);
    }
    memory
}

/// The bytes of `   123 kB`.
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

    use super::{LONGEST, Memory, Root, SHARE, Watch, of_lines};

    #[test]
    fn aj11_a_tree_that_takes_long_to_look_at_is_looked_at_as_often() {
        let proc = File::open("/proc").unwrap().into();
        let mut watch = Watch::new(proc, getpid(), 1 << 40, None);
        watch.took = LONGEST * SHARE;
        assert_eq!(watch.pause(), LONGEST);
    }

    #[test]
    fn aj6_the_hosts_tmp_is_not_the_trees() {
        let stored = |outside| {
            let proc = File::open("/proc").unwrap().into();
            Watch::new(proc, getpid(), 0, outside).stored(1)
        };
        // A command on a busy machine: its root is not built yet.
        assert_eq!(stored(Some(Root::now().unwrap())), 0);
        assert_eq!(stored(None), 0);
        assert!(stored(Some(Root(0, 0))) > 0);
    }

    #[test]
    fn a_process_state_is_read_in_bytes() {
        let status =
            "Name:\ta\nRssAnon:\t     100 kB\nRssFile:\t 7 kB\nRssShmem:\t 20 kB\nVmSwap:\t 1 kB\n";
        let memory = of_lines(status, &["RssAnon:", "VmSwap:"], "RssShmem:");
        let expect = Memory {
            anonymous: 101 << 10,
            shared: 20 << 10,
        };
        assert_eq!(memory, expect);
        assert_eq!(
            of_lines("RssAnon: x\n\n", &["RssAnon:"], "y"),
            Memory::default()
        );
    }
}
