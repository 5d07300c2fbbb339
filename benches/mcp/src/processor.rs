//! The processors: the client and the servers have one each, so that neither waits for the other.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use measure::fact;

/// The servers' processor, and the client's.
const SERVERS: &str = "0";
const CLIENT: &str = "1";

/// Pins this process, the client, to its processor with util-linux's `taskset`.
pub fn keep_client() {
    let own = std::process::id().to_string();
    let kept = Command::new("taskset")
        .args(["-cp", CLIENT, &own])
        .output()
        .expect("MISSING: taskset, of the package util-linux");
    assert!(kept.status.success(), "two processors are needed: {kept:?}");
    fact("client and servers", "on a processor each");
}

/// Returns a command that starts a server on its processor.
pub fn server(program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", SERVERS]).arg(program);
    command
}

/// Returns the processor ticks of a process and of all its living descendants.
pub fn ticks_below(root: u32) -> u64 {
    let processes: HashMap<u32, Process> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let id = entry.ok()?.file_name().to_str()?.parse().ok()?;
            Some((id, Process::read(id)?))
        })
        .collect();
    let is_below = |mut id: u32| {
        while id != root {
            match processes.get(&id) {
                Some(process) => id = process.parent,
                None => return false,
            }
        }
        true
    };
    let ours = processes.iter().filter(|(id, _)| is_below(**id));
    ours.map(|(_, process)| process.ticks).sum()
}

struct Process {
    parent: u32,
    ticks: u64,
}

impl Process {
    /// Reads `/proc/ID/stat` (proc(5)): after the name in brackets the parent is the second field, user and system time are
    /// the twelfth and the thirteenth.
    fn read(id: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |nth: usize| fields.get(nth)?.parse::<u64>().ok();
        Some(Self {
            parent: u32::try_from(number(1)?).ok()?,
            ticks: number(11)? + number(12)?,
        })
    }
}
