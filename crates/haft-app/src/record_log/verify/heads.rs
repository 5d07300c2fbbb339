//! The checkpoints that a log must fit: its own, the one outside of the state folder, those at the anchor and those that were given.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::path::Path;

use crate::record_log::checkpoint::{self, Checkpoint};
use crate::record_log::folder::LogFault;
use crate::record_log::note::{self, VerifierKey};
use crate::record_log::verify::{CheckpointResult, FindingKind, LogChecks, LogReport};
use crate::record_log::{LogSettings, file, folder, key};

/// Maximum size of a file of checkpoints, in bytes: a few hundred thousand of them.
const MAX_FILE: u64 = 128 << 20;

/// A checkpoint that the key has signed.
#[derive(Debug)]
pub(super) struct SignedHead {
    pub(super) head: Checkpoint,
    /// Its place in the report.
    pub(super) result: usize,
}

/// The checkpoints, and how much of the leaves to read.
#[derive(Debug)]
pub(super) struct SignedHeads {
    /// Smallest first.
    pub(super) heads: Vec<SignedHead>,
    /// The number of leaves that count: those that the last checkpoint has signed.
    pub(super) size: u64,
    /// The size of the file of leaves, in bytes, when the checkpoint was read.
    pub(super) bytes: u64,
}

/// What a file of checkpoints is to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeadSource {
    /// Its own one, or one that is known to be of it.
    Own,
    /// A file in which other logs may stand, too.
    Shared,
}

impl SignedHeads {
    /// Reads the checkpoints, and reports those that are not signed.
    pub(super) fn collect(
        settings: &LogSettings,
        checks: &LogChecks,
        report: &mut LogReport,
    ) -> io::Result<Self> {
        let place = &settings.place;
        let (lock, bytes) = match place.lock_shared() {
            Ok(lock) => {
                let leaves = place.leaves().symlink_metadata();
                (Some(lock), leaves.map_or(0, |meta| meta.len()))
            }
            Err(LogFault::Io(error)) if error.kind() == io::ErrorKind::NotFound => (None, 0),
            Err(fault) => return Err(io::Error::other(fault.to_string())),
        };
        let own = readable(folder::head(place), report).flatten();
        let origin = own.as_deref().and_then(checkpoint::unproved);
        let seen = place.seen(origin.map(|head| head.origin).as_deref());
        let seen = readable(seen, report).unwrap_or_default();
        drop(lock);
        let notes = || own.iter().chain(seen.iter().map(|seen| &seen.note));
        let unproved = notes().find_map(|note| checkpoint::unproved(note));
        let sizes = notes().filter_map(|note| Some(checkpoint::unproved(note)?.size));
        let size = sizes.max().unwrap_or(0);
        report.size = size;
        report.origin = unproved.map(|head| head.origin);
        let key = verifier(settings, checks, report);
        report.key = key.as_ref().map(ToString::to_string);
        let mut all = HeadCollector {
            key,
            report,
            heads: Vec::new(),
        };
        match own {
            Some(note) => all.add(&place.checkpoint(), &note, HeadSource::Own),
            None if bytes > 0 => all
                .report
                .fault(FindingKind::Signature, "the log has no checkpoint"),
            None => {}
        }
        for seen in seen {
            all.add(&seen.path, &seen.note, HeadSource::Own);
        }
        if let Some(path) = settings.anchor.as_ref().and_then(|anchor| anchor.file())
            && path.symlink_metadata().is_ok()
        {
            all.add_file(path, HeadSource::Shared);
        }
        for path in &checks.checkpoints {
            let before = all.report.checkpoints.len();
            let faults = all.report.faults.len();
            all.add_file(path, HeadSource::Shared);
            if all.report.checkpoints.len() == before && all.report.faults.len() == faults {
                let why = format!("{} holds no checkpoint of this log", path.display());
                all.report.fault(FindingKind::Signature, why);
            }
        }
        let mut heads = all.heads;
        heads.sort_by_key(|signed| signed.head.size);
        Ok(Self { heads, size, bytes })
    }
}

fn readable<T>(read: io::Result<T>, report: &mut LogReport) -> Option<T> {
    let why = |error: io::Error| format!("a checkpoint cannot be read: {error}");
    read.map_err(|error| report.fault(FindingKind::Signature, why(error)))
        .ok()
}

/// Returns the key that was given, or else that of this machine.
fn verifier(
    settings: &LogSettings,
    checks: &LogChecks,
    report: &mut LogReport,
) -> Option<VerifierKey> {
    let origin = report.origin.clone()?;
    if let Some(key) = &checks.key {
        if key.name() != origin {
            let why = format!("the key is of the log {}, and this is {origin}", key.name());
            report.fault(FindingKind::Signature, why);
        }
        return Some(key.clone());
    }
    match key::load(settings.place.key.as_deref()) {
        Ok(pair) => Some(note::verifier(&origin, &pair)),
        Err(error) => {
            let why = format!("no signature was verified: {error}; give the key with --key");
            report.fault(FindingKind::Signature, why);
            None
        }
    }
}

/// Collects checkpoints that the key has signed.
struct HeadCollector<'r> {
    key: Option<VerifierKey>,
    report: &'r mut LogReport,
    heads: Vec<SignedHead>,
}

impl HeadCollector<'_> {
    fn add_file(&mut self, path: &Path, source: HeadSource) {
        match read(path) {
            Ok(text) => self.add(path, &text, source),
            Err(error) => self.report.fault(FindingKind::Signature, error.to_string()),
        }
    }

    fn add(&mut self, path: &Path, text: &str, source: HeadSource) {
        let (origin, path) = (self.report.origin.clone(), path.display().to_string());
        for note in checkpoint::each(text) {
            let unproved = checkpoint::unproved(&note);
            let is_foreign = unproved
                .as_ref()
                .is_none_or(|head| Some(&head.origin) != origin.as_ref());
            if is_foreign && source == HeadSource::Shared {
                continue;
            }
            let Some(key) = &self.key else { continue };
            let opened = Checkpoint::open(&note, key);
            let result = self.report.checkpoints.len();
            self.report.checkpoints.push(CheckpointResult {
                source: path.clone(),
                size: unproved.map_or(0, |head| head.size),
                ok: opened.is_ok(),
            });
            match opened {
                Ok(head) => self.heads.push(SignedHead { head, result }),
                Err(why) => {
                    let why = format!("the checkpoint in {path} does not count: {why}");
                    self.report.fault(FindingKind::Signature, why);
                }
            }
        }
    }
}

/// Reads a file of checkpoints that a user has named, which may be a link.
fn read(path: &Path) -> io::Result<String> {
    let real = path
        .canonicalize()
        .map_err(|error| file::named(path, &error))?;
    let mut text = Vec::new();
    let opened = file::open(&real, OpenOptions::new().read(true))?;
    opened
        .take(MAX_FILE + 1)
        .read_to_end(&mut text)
        .map_err(|error| file::named(path, &error))?;
    if text.len() as u64 > MAX_FILE {
        return Err(file::named(
            path,
            &io::Error::other(format!("over {MAX_FILE} bytes")),
        ));
    }
    // What is damaged is a part of its own, and the rest still counts.
    Ok(String::from_utf8_lossy(&text).into_owned())
}
