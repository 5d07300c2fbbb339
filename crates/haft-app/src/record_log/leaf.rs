//! `RunLeaf`: how a finished run stands in the log, as one canonical line.

use haft::audit::index::ClosedEvent;
use haft::audit::runs::run_dir;
use std::path::Path;

/// What a line begins with: the format and its version.
const FORMAT: &str = "haft-run/1";
/// Maximum length of a line, in bytes: a run's id has at most 128.
pub(super) const MAX_LINE: usize = 512;
/// Length of a hash in hex.
const HASH: usize = 64;

/// A finished run: its id, when its record was closed, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunLeaf {
    pub(super) run: String,
    /// RFC 3339, UTC, as the record's last line has it.
    pub(super) ended: String,
    pub(super) closed: ClosedEvent,
}

impl RunLeaf {
    /// Returns the leaf's line, without a newline: `haft-run/1 RUN ENDED COUNT CALLS HEAD SEAL`.
    pub(super) fn to_line(&self) -> String {
        let Self { run, ended, closed } = self;
        let ClosedEvent {
            count,
            head,
            calls,
            seal,
        } = closed;
        format!("{FORMAT} {run} {ended} {count} {calls} {head} {seal}")
    }

    /// Reads a line; `None` if it is not exactly what [`to_line`](Self::to_line) writes.
    pub(super) fn of_line(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(' ').collect();
        let [FORMAT, run, ended, count, calls, head, seal] = fields[..] else {
            return None;
        };
        run_dir(Path::new("/"), run).ok()?;
        ended.parse::<jiff::Timestamp>().ok()?;
        let leaf = Self {
            run: run.to_owned(),
            ended: ended.to_owned(),
            closed: ClosedEvent {
                count: count.parse().ok()?,
                head: hash(head)?,
                calls: calls.parse().ok()?,
                seal: hash(seal)?,
            },
        };
        // One run has one line: no sign, no leading zero, no other space.
        (leaf.to_line() == line && line.len() <= MAX_LINE).then_some(leaf)
    }
}

fn hash(text: &str) -> Option<String> {
    let plain = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    (text.len() == HASH && text.bytes().all(plain)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_only_as_it_is_written() {
        let leaf = RunLeaf {
            run: "20261128-193144-3b11aaed".to_owned(),
            ended: "2026-11-28T19:31:45.001Z".to_owned(),
            closed: ClosedEvent {
                count: 17,
                head: "a".repeat(64),
                calls: 3,
                seal: "0".repeat(64),
            },
        };
        let line = leaf.to_line();
        assert_eq!(RunLeaf::of_line(&line), Some(leaf));
        for end in 0..line.len() {
            assert_eq!(RunLeaf::of_line(&line[..end]), None, "{end}");
        }
        for (from, to) in [
            ("haft-run/1", "haft-run/2"),
            (" 17 ", " 017 "),
            (" 17 ", " +17 "),
            (" 17 ", "  17 "),
            (" 17 ", " 18446744073709551616 "),
            ("20261128-193144", "../20261128"),
            ("2026-11-28T", "2026-13-28T"),
            ("aaaaa", "AAAAA"),
            ("00000", "0000"),
        ] {
            let other = line.replacen(from, to, 1);
            assert_ne!(other, line);
            assert_eq!(RunLeaf::of_line(&other), None, "{other}");
        }
        assert_eq!(RunLeaf::of_line(&format!("{line} ")), None);
    }
}
