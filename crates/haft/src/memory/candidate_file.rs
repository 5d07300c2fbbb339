//! `archive/memory.jsonl`: the memories that a run proposed, one per line, beside the run's record.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use serde::Serialize;

use crate::audit::runs;
use crate::call::RunId;
use crate::clock;
use crate::memory::MemoryRecord;
use crate::memory::record::digest;

/// The file's path below a run's folder.
pub const FILE: &str = "archive/memory.jsonl";

/// Maximum size of one run's file, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The version of the line's format.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct CandidateLine<'a> {
    v: u32,
    ts: &'a str,
    /// SHA-256 of `content`, in hex.
    digest: String,
    #[serde(flatten)]
    record: &'a MemoryRecord,
}

/// Appends a record's line to its run's file, synced to disk when it returns. Blocks.
///
/// A line is one JSON object: `v` (1), `ts`, `digest` (SHA-256 of `content`), and the members of [`MemoryRecord`].
///
/// # Errors
/// The file cannot be opened or written, or is not a regular file.
pub fn append(home: &Path, run: &RunId, record: &MemoryRecord) -> io::Result<()> {
    let dir = runs::run_dir(home, run.as_str()).map_err(io::Error::other)?;
    let path = dir.join(FILE);
    let ts = clock::rfc3339(clock::now());
    let line = CandidateLine {
        v: VERSION,
        ts: &ts,
        digest: digest(&record.content),
        record,
    };
    let mut bytes = serde_json::to_vec(&line)?;
    bytes.push(b'\n');
    // Open the file itself, never the target of a link in its place.
    let no_follow = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(no_follow.bits().cast_signed())
        .open(&path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("archive/memory.jsonl is not a file"));
    }
    if found.len().saturating_add(bytes.len() as u64) > MAX_FILE_BYTES {
        return Err(io::Error::other("archive/memory.jsonl is full"));
    }
    file.write_all(&bytes)?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{MemoryId, MemoryState, Provenance, Shelf};

    fn record() -> MemoryRecord {
        MemoryRecord {
            id: MemoryId::new("mem-1"),
            shelf: Shelf::project("/w"),
            path: None,
            content: "a\nb".into(),
            tags: vec!["t".into()],
            state: MemoryState::Candidate,
            provenance: Provenance {
                run: Some(RunId::new("r1")),
                call: None,
                agent: Some("call".into()),
                author: "model".into(),
            },
            created: "2026-01-01T00:00:00.000Z".into(),
            updated: "2026-01-01T00:00:00.000Z".into(),
            expires: None,
            revision: 1,
            replaces: None,
            deletes: false,
            decided_by: None,
        }
    }

    #[test]
    fn each_proposal_is_a_line_with_digest_and_origin() {
        let home = tempfile::tempdir().unwrap();
        let archive = home.path().join("runs/r1/archive");
        std::fs::create_dir_all(&archive).unwrap();
        let run = RunId::new("r1");
        append(home.path(), &run, &record()).unwrap();
        append(home.path(), &run, &record()).unwrap();
        let text = std::fs::read_to_string(archive.join("memory.jsonl")).unwrap();
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2);
        let expect = serde_json::json!({
            "v": 1, "ts": lines[0]["ts"], "id": "mem-1", "scope": "project", "key": "/w",
            "content": "a\nb", "tags": ["t"], "state": "candidate", "run": "r1", "agent": "call",
            "author": "model", "created": "2026-01-01T00:00:00.000Z",
            "updated": "2026-01-01T00:00:00.000Z", "revision": 1, "digest": digest("a\nb"),
        });
        assert_eq!(lines[0], expect);
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let archive = home.path().join("runs/r1/archive");
        std::fs::create_dir_all(&archive).unwrap();
        let other = home.path().join("other");
        std::fs::write(&other, "").unwrap();
        std::os::unix::fs::symlink(&other, archive.join("memory.jsonl")).unwrap();
        append(home.path(), &RunId::new("r1"), &record()).unwrap_err();
        assert_eq!(std::fs::read_to_string(other).unwrap(), "");
        append(home.path(), &RunId::new("../r1"), &record()).unwrap_err();
        append(home.path(), &RunId::new("gone"), &record()).unwrap_err();
    }
}
