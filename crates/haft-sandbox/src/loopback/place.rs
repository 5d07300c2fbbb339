//! `JailPlace`: names a jail by its supervisor, so that no other process is taken for it.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::str::FromStr;

/// The field of `/proc/PID/stat` with the start time, counted from the one after the program's name (`proc_pid_stat(5)`).
const START_TIME: usize = 19;

/// Where a jail is: the ID of its supervisor, when that started, and the pid namespace in which the ID holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JailPlace {
    pid: u32,
    start: u64,
    namespace: u64,
}

impl JailPlace {
    /// Returns the place of this process; `None` if it has exited, or `/proc` is not mounted.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        Some(Self {
            pid,
            start: started(pid)?,
            namespace: own_namespace()?,
        })
    }

    /// Returns the place of this process, which is no jail, but is named like one.
    pub fn of_this_process() -> Option<Self> {
        Self::of(std::process::id())
    }

    pub(crate) fn pid(self) -> u32 {
        self.pid
    }

    /// Returns whether this process can reach the jail, which runs.
    pub fn is_alive(self) -> bool {
        own_namespace() == Some(self.namespace) && started(self.pid) == Some(self.start)
    }

    /// Returns whether this process could see it if it ran: otherwise it may run in another container.
    pub fn is_visible(self) -> bool {
        own_namespace() == Some(self.namespace)
    }
}

/// Returns when a process started, in ticks since the machine's start.
fn started(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name may contain spaces and parentheses.
    let (_, rest) = text.rsplit_once(") ")?;
    let mut fields = rest.split_ascii_whitespace();
    let is_dead = matches!(fields.clone().next(), Some("Z" | "X"));
    let start = fields.nth(START_TIME)?.parse().ok()?;
    (!is_dead).then_some(start)
}

fn own_namespace() -> Option<u64> {
    fs::metadata("/proc/self/ns/pid")
        .ok()
        .map(|meta| meta.ino())
}

impl fmt::Display for JailPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.pid, self.start, self.namespace)
    }
}

/// A text that is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the place of a jail")]
pub struct NoPlace;

impl FromStr for JailPlace {
    type Err = NoPlace;

    fn from_str(text: &str) -> Result<Self, NoPlace> {
        let mut numbers = text.split('-').map(|number| number.parse::<u64>().ok());
        let mut next = || numbers.next().flatten().ok_or(NoPlace);
        let place = Self {
            pid: u32::try_from(next()?).map_err(|_| NoPlace)?,
            start: next()?,
            namespace: next()?,
        };
        // Number 0 is no process, and 1 no jail.
        (place.pid > 1 && place.to_string() == text)
            .then_some(place)
            .ok_or(NoPlace)
    }
}

#[cfg(test)]
mod tests {
    use super::JailPlace;

    #[test]
    fn a_place_is_read_as_written_and_names_one_process() {
        let own = JailPlace::of(std::process::id()).unwrap();
        assert!(own.is_alive());
        assert_eq!(own.to_string().parse(), Ok(own));
        for (text, reads) in [
            ("2-3-4", true),
            ("1-3-4", false),
            ("0-3-4", false),
            ("2-3", false),
            ("2-3-4-5", false),
            ("02-3-4", false),
            ("+2-3-4", false),
            ("-2-3-4", false),
            ("4294967296-3-4", false),
            ("", false),
        ] {
            assert_eq!(text.parse::<JailPlace>().is_ok(), reads, "{text}");
        }
        let other = JailPlace {
            start: own.start + 1,
            ..own
        };
        assert!(!other.is_alive() && other.is_visible());
        let elsewhere = JailPlace {
            namespace: own.namespace + 1,
            ..own
        };
        assert!(!elsewhere.is_alive() && !elsewhere.is_visible());
    }
}
