//! The files of `/proc` and `/sys` by which programs learn what machine they are on, made up for jails.
//!
//! They name the processors and the memory that a command may use, and settings of the kernel that any process can find out or that
//! belong to its own namespaces. What only the host's files tell (its disks, devices, load, boot, other users) is in none of them.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use rustix::system::sysinfo;
use rustix::thread::{CpuSet, sched_getaffinity};

use super::plan::RootEntry;
use crate::command::ProcessLimits;

/// Lines of a processor in `/proc/cpuinfo` that are shown: what its own instructions tell, too. Not the microcode's version, which
/// says what the host was patched for, and no serial number.
const SHOWN: &[&str] = &[
    "processor",
    "vendor_id",
    "cpu family",
    "model",
    "model name",
    "stepping",
    "cache size",
    "physical id",
    "siblings",
    "core id",
    "cpu cores",
    "fpu",
    "cpuid level",
    "flags",
    "bogomips",
    "clflush size",
    "cache_alignment",
    "address sizes",
    "BogoMIPS",
    "Features",
    "CPU implementer",
    "CPU architecture",
    "CPU variant",
    "CPU part",
    "CPU revision",
];
/// Settings of the kernel that programs read, and that say nothing about this machine but its limits.
const SETTINGS: &[&str] = &[
    "crypto/fips_enabled",
    "fs/file-max",
    "fs/inotify/max_user_instances",
    "fs/inotify/max_user_watches",
    "fs/pipe-max-size",
    "kernel/cap_last_cap",
    "kernel/ngroups_max",
    "kernel/osrelease",
    "kernel/ostype",
    "kernel/pid_max",
    "net/core/somaxconn",
    "vm/max_map_count",
    "vm/overcommit_memory",
];
/// Files of `/proc` that are the same on every machine without disks, swap or load.
const SAME: &[(&str, &str)] = &[
    ("cmdline", "\n"),
    ("diskstats", ""),
    ("loadavg", "0.00 0.00 0.00 1/1 1\n"),
    ("partitions", "major minor  #blocks  name\n\n"),
    (
        "swaps",
        "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n",
    ),
    (
        "vmstat",
        "nr_free_pages 0\npgpgin 0\npgpgout 0\npswpin 0\npswpout 0\npgfault 0\npgmajfault 0\noom_kill 0\n",
    ),
];
/// More processors are left out of the files: what a start writes stays small.
const MOST_PROCESSORS: usize = 128;
/// Maximum number of bytes that are read of a file of the host's.
const LONGEST: u64 = 4 << 20;
/// The greatest limit of a control group of version 1 (`PAGE_COUNTER_MAX` in bytes).
const NO_LIMIT: u64 = 0x7FFF_FFFF_FFFF_F000;
/// The kernel's unit of time in `/proc/stat` is a hundredth of a second (`USER_HZ`).
const TICKS: u64 = 100;

/// Returns the files that are the same for every command of this process.
pub(super) fn fixed() -> Vec<RootEntry> {
    let numbers = processors();
    let mut files = vec![proc("cpuinfo", cpuinfo(&read("/proc/cpuinfo"), &numbers))];
    files.extend(
        SAME.iter()
            .map(|(name, text)| proc(name, (*text).to_owned())),
    );
    for name in SETTINGS {
        let text = read(&format!("/proc/sys/{name}"));
        if !text.is_empty() {
            files.push(proc(&format!("sys/{name}"), text));
        }
    }
    files.extend(processor_folder(&numbers));
    files
}

/// Returns the files that tell a command's limits.
pub(super) fn of_limits(limits: &ProcessLimits) -> Vec<RootEntry> {
    let now = sysinfo();
    let machine = (now.totalram as u64).saturating_mul(now.mem_unit.into());
    let most = limits.memory_mb.map(|mib| mib.saturating_mul(1 << 20));
    let total = most.map_or(machine, |most| most.min(machine)) >> 10;
    let mut files = groups(most, limits.pids);
    files.push(proc("meminfo", meminfo(total)));
    files
}

/// Returns the files that tell the moment of a command's start.
pub(super) fn of_start() -> [RootEntry; 2] {
    let uptime = u64::try_from(sysinfo().uptime).unwrap_or(0);
    [
        proc("stat", stat(&processors(), uptime, &BOOT)),
        proc("uptime", format!("{uptime}.00 {uptime}.00\n")),
    ]
}

fn file(target: String, text: String) -> RootEntry {
    RootEntry::File {
        target: target.into(),
        bytes: text.into_bytes(),
    }
}

fn proc(name: &str, text: String) -> RootEntry {
    file(format!("/proc/{name}"), text)
}

fn read(path: &str) -> String {
    use std::io::Read;
    let mut text = String::new();
    if let Ok(file) = fs::File::open(Path::new(path)) {
        let _ = file.take(LONGEST).read_to_string(&mut text);
    }
    text
}

/// Returns the numbers of the processors on which this process, and so every command, may run.
fn processors() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    let numbers = (0..CpuSet::MAX_CPU).filter(|number| allowed.is_set(*number));
    let numbers: Vec<_> = numbers.take(MOST_PROCESSORS).collect();
    if numbers.is_empty() { vec![0] } else { numbers }
}

/// Returns the shown lines of these processors; of one that the host does not describe, its number.
fn cpuinfo(host: &str, numbers: &[usize]) -> String {
    let key = |line: &str| line.split_once(':').map(|(key, _)| key.trim().to_owned());
    let number = |block: &&str| -> Option<usize> {
        let line = block
            .lines()
            .find(|line| key(line).as_deref() == Some("processor"))?;
        line.split_once(':')?.1.trim().parse().ok()
    };
    let mut text = String::new();
    for wanted in numbers {
        let block = host
            .split("\n\n")
            .find(|block| number(block) == Some(*wanted));
        match block {
            Some(block) => {
                let shown = |line: &&str| key(line).is_some_and(|key| SHOWN.contains(&&*key));
                for line in block.lines().filter(shown) {
                    let _ = writeln!(text, "{line}");
                }
            }
            None => {
                let _ = writeln!(text, "processor\t: {wanted}");
            }
        }
        text.push('\n');
    }
    text
}

/// The line of `/proc/stat` that tells when the machine started, to which the times of processes are relative.
static BOOT: LazyLock<String> = LazyLock::new(|| {
    let text = read("/proc/stat");
    let line = text.lines().find(|line| line.starts_with("btime "));
    line.unwrap_or("btime 0").to_owned()
});

/// As of a machine whose processors have been idle.
fn stat(numbers: &[usize], uptime: u64, boot: &str) -> String {
    let idle = uptime.saturating_mul(TICKS);
    let all = idle.saturating_mul(numbers.len() as u64);
    let mut text = format!("cpu  0 0 0 {all} 0 0 0 0 0 0\n");
    for number in numbers {
        let _ = writeln!(text, "cpu{number} 0 0 0 {idle} 0 0 0 0 0 0");
    }
    let _ = write!(
        text,
        "intr 0\nctxt 0\n{boot}\nprocesses 1\nprocs_running 1\nprocs_blocked 0\nsoftirq 0\n"
    );
    text
}

/// As of a machine with this many KiB of memory, none of which is used.
fn meminfo(total: u64) -> String {
    let mut text = String::new();
    let of_total = ["MemTotal", "MemFree", "MemAvailable", "CommitLimit"];
    let nothing = [
        "Buffers",
        "Cached",
        "SwapCached",
        "Active",
        "Inactive",
        "SwapTotal",
        "SwapFree",
        "Dirty",
        "Writeback",
        "AnonPages",
        "Mapped",
        "Shmem",
        "KReclaimable",
        "Slab",
        "SReclaimable",
        "SUnreclaim",
        "KernelStack",
        "PageTables",
        "Committed_AS",
    ];
    let sizes = of_total.map(|name| (name, total)).into_iter();
    for (name, size) in sizes.chain(nothing.map(|name| (name, 0))) {
        let name = format!("{name}:");
        let _ = writeln!(text, "{name:<16}{size:>8} kB");
    }
    text.push_str(
        "HugePages_Total:       0\nHugePages_Free:        0\nHugepagesize:       2048 kB\n",
    );
    text
}

/// Returns the files of `/sys/devices/system/cpu`.
fn processor_folder(numbers: &[usize]) -> Vec<RootEntry> {
    let folder = "/sys/devices/system/cpu";
    let list = ranges(numbers);
    let mut files: Vec<_> = ["online", "possible", "present"]
        .map(|name| file(format!("{folder}/{name}"), list.clone()))
        .into();
    for number in numbers {
        let core = format!("{folder}/cpu{number}/topology");
        for (name, text) in [
            ("core_id", format!("{number}\n")),
            ("physical_package_id", "0\n".to_owned()),
            ("thread_siblings", mask(&[*number])),
            ("core_siblings", mask(numbers)),
        ] {
            files.push(file(format!("{core}/{name}"), text));
        }
    }
    files
}

/// Writes a set of numbers as the kernel does: bits in words of eight digits, the highest first.
fn mask(numbers: &[usize]) -> String {
    let last = numbers.iter().max().copied().unwrap_or(0);
    let mut words = vec![0_u32; last / 32 + 1];
    for number in numbers {
        words[number / 32] |= 1 << (number % 32);
    }
    let words: Vec<_> = words
        .iter()
        .rev()
        .map(|word| format!("{word:08x}"))
        .collect();
    words.join(",") + "\n"
}

/// Writes numbers as the kernel does: `0-3,6`.
fn ranges(numbers: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let run = |(first, last): (usize, usize)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    };
    let list: Vec<_> = runs.into_iter().map(run).collect();
    list.join(",") + "\n"
}

/// Returns the files of a control group of both versions, with the limits that hold however they are enforced.
fn groups(memory: Option<u64>, pids: Option<u32>) -> Vec<RootEntry> {
    let or_max = |number: Option<u64>| {
        number.map_or_else(|| "max\n".to_owned(), |number| format!("{number}\n"))
    };
    let mut files = vec![
        ("cgroup.controllers", "cpu memory pids\n".to_owned()),
        ("cpu.max", "max 100000\n".to_owned()),
        ("memory.current", "0\n".to_owned()),
        ("memory.high", "max\n".to_owned()),
        ("memory.max", or_max(memory)),
        ("pids.max", or_max(pids.map(u64::from))),
    ];
    if let Some(memory) = memory {
        files.push(("memory/memory.limit_in_bytes", format!("{memory}\n")));
        files.push(("memory/memory.soft_limit_in_bytes", format!("{NO_LIMIT}\n")));
        files.push(("memory/memory.usage_in_bytes", "0\n".to_owned()));
    }
    let path = |(name, text): (&str, String)| file(format!("/sys/fs/cgroup/{name}"), text);
    files.into_iter().map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::{cpuinfo, mask, meminfo, ranges, stat};

    #[test]
    fn cpuinfo_shows_the_processors_that_may_be_used_and_no_serial_number() {
        let host = "processor\t: 0\nmodel name\t: A\nmicrocode\t: 0x1\nSerial\t\t: 7\n\n\
                    processor\t: 1\nmodel name\t: B\ncpu MHz\t\t: 1234.5\nflags\t\t: fpu sse\n\nSerial\t: 9\n";
        for (numbers, expect) in [
            (
                &[1][..],
                "processor\t: 1\nmodel name\t: B\nflags\t\t: fpu sse\n\n",
            ),
            (
                &[0, 5],
                "processor\t: 0\nmodel name\t: A\n\nprocessor\t: 5\n\n",
            ),
        ] {
            assert_eq!(cpuinfo(host, numbers), expect);
        }
        assert_eq!(cpuinfo("", &[0]), "processor\t: 0\n\n");
    }

    #[test]
    fn processors_are_listed_as_the_kernel_does() {
        for (numbers, list, bits) in [
            (&[0][..], "0\n", "00000001\n"),
            (&[0, 1, 2, 3], "0-3\n", "0000000f\n"),
            (&[0, 2, 3, 33], "0,2-3,33\n", "00000002,0000000d\n"),
        ] {
            assert_eq!((&*ranges(numbers), &*mask(numbers)), (list, bits));
        }
    }

    #[test]
    fn memory_and_time_are_what_a_command_has() {
        let text = meminfo(4 << 20);
        assert!(
            text.starts_with("MemTotal:        4194304 kB\nMemFree:         4194304 kB\n"),
            "{text}"
        );
        let text = stat(&[0, 3], 2, "btime 7");
        assert!(
            text.starts_with("cpu  0 0 0 400 0 0 0 0 0 0\ncpu0 0 0 0 200 "),
            "{text}"
        );
        assert!(
            text.contains("\ncpu3 0 0 0 200 ") && text.contains("\nbtime 7\n"),
            "{text}"
        );
    }
}
