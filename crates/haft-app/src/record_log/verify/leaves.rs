//! The leaves of a log: whether they are those that were signed, and whether each run's record is the one that its leaf holds.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft::audit::index::ClosedEvent;
use haft::audit::runs::{self, run_dir};
use haft::audit::verify as record;
use jiff::Timestamp;

use crate::record_log::LogPlace;
use crate::record_log::folder::LeafReader;
use crate::record_log::leaf::RunLeaf;
use crate::record_log::tree::{TreeEdge, TreeHash, leaf_hash};
use crate::record_log::verify::heads::{SignedHead, SignedHeads};
use crate::record_log::verify::{FindingKind, LogFinding, LogReport};

/// What the records and the index say of the finished runs.
pub(super) struct LeafChecks<'p> {
    place: &'p LogPlace,
    /// How the index says that runs were closed; nothing if it is not this machine's alone.
    closed: HashMap<String, ClosedEvent>,
    /// Finished runs without a leaf, as far as leaves were read.
    unlogged: HashSet<String>,
    /// The hash of each run's leaf.
    logged: HashMap<String, TreeHash>,
    kept_since: Option<Timestamp>,
}

impl<'p> LeafChecks<'p> {
    /// Lists the finished runs that have a folder here.
    pub(super) fn new(
        place: &'p LogPlace,
        closed: HashMap<String, ClosedEvent>,
        kept_since: Option<Timestamp>,
    ) -> io::Result<Self> {
        let mut unlogged = HashSet::new();
        let folders = match fs::read_dir(place.home.join("runs")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            folders => Some(folders?),
        };
        for folder in folders.into_iter().flatten() {
            let name = folder?.file_name();
            let Some(run) = name.to_str() else { continue };
            let Ok(dir) = run_dir(&place.home, run) else {
                continue;
            };
            // The index may know the end of a run whose record was cut.
            if closed.contains_key(run) || matches!(runs::closed(&dir), Ok(Some(_))) {
                unlogged.insert(run.to_owned());
            }
        }
        Ok(Self {
            place,
            closed,
            unlogged,
            logged: HashMap::new(),
            kept_since,
        })
    }

    /// Reads all leaves, and returns the finished runs that have none.
    pub(super) fn check(
        mut self,
        heads: SignedHeads,
        report: &mut LogReport,
    ) -> io::Result<Vec<String>> {
        let mut tree = TreeCheck {
            edge: TreeEdge::default(),
            heads: heads.heads,
            next: 0,
            last_good: 0,
        };
        if heads.bytes > 0 {
            let mut leaves = LeafReader::open(&self.place.leaves())?;
            loop {
                tree.compare(report);
                if tree.edge.size() == heads.size {
                    report.root = Some(STANDARD.encode(tree.edge.root()));
                }
                let Some(line) = leaves.next()? else { break };
                let (number, hash) = (tree.edge.size(), leaf_hash(line));
                tree.edge.push(hash);
                // What a killed process wrote after the checkpoint is no part of the log.
                if number < heads.size {
                    let line = String::from_utf8_lossy(line).into_owned();
                    self.leaf(number, &line, hash, report);
                }
            }
        } else {
            tree.compare(report);
        }
        tree.finish(report);
        let mut missing: Vec<String> = self.unlogged.into_iter().collect();
        missing.sort_unstable();
        Ok(missing)
    }

    /// Compares a leaf with the record and the index.
    fn leaf(&mut self, number: u64, line: &str, hash: TreeHash, report: &mut LogReport) {
        let finding = |kind, run: Option<&str>, problem: String| LogFinding {
            kind,
            run: run.map(str::to_owned),
            leaf: Some(number),
            problem,
        };
        let Some(leaf) = RunLeaf::of_line(line) else {
            let problem = format!("leaf {number} is not the line of a run");
            report.find(finding(FindingKind::Rewritten, None, problem));
            return;
        };
        let run = leaf.run.as_str();
        self.unlogged.remove(run);
        match self.logged.insert(run.to_owned(), hash) {
            // A process was killed before it had removed its note.
            Some(first) if first == hash => return,
            Some(_) => {
                let problem = "it has two leaves that differ".to_owned();
                report.find(finding(FindingKind::Changed, Some(run), problem));
                return;
            }
            None => {}
        }
        match self.record(&leaf) {
            Ok(RecordState::Sound) => report.runs += 1,
            Ok(RecordState::Retired) => report.retired += 1,
            Err((kind, problem)) => report.find(finding(kind, Some(run), problem)),
        }
    }

    fn record(&self, leaf: &RunLeaf) -> Result<RecordState, (FindingKind, String)> {
        let changed = |problem: String| (FindingKind::Changed, problem);
        let dir = run_dir(&self.place.home, &leaf.run).map_err(|e| changed(e.to_string()))?;
        if !is_there(&dir) {
            let is_old = |since: &Timestamp| {
                leaf.ended
                    .parse::<Timestamp>()
                    .is_ok_and(|end| end < *since)
            };
            if self.kept_since.as_ref().is_some_and(is_old) {
                return Ok(RecordState::Retired);
            }
            let problem = format!(
                "its record is gone; it ended at {} with {} lines",
                leaf.ended,
                leaf.closed.count + 1
            );
            return Err((FindingKind::Removed, problem));
        }
        let verified = record::verify(&dir, Some(&leaf.closed));
        let verified =
            verified.map_err(|error| changed(format!("its record cannot be read: {error}")))?;
        if let Some(problem) = verified.problem {
            let line = verified.first_bad.unwrap_or_default();
            return Err(changed(format!("line {line} of its record: {problem}")));
        }
        match self.closed.get(&leaf.run) {
            Some(closed) if *closed != leaf.closed => {
                Err(changed("the database holds another end of it".to_owned()))
            }
            _ => Ok(RecordState::Sound),
        }
    }
}

/// What has become of a record that is no fault.
enum RecordState {
    /// It is the one that the log holds.
    Sound,
    /// It may have been deleted, and is gone.
    Retired,
}

fn is_there(dir: &Path) -> bool {
    dir.symlink_metadata().is_ok()
}

/// Compares the tree, as it grows, with the checkpoints.
struct TreeCheck {
    edge: TreeEdge,
    /// Smallest first.
    heads: Vec<SignedHead>,
    next: usize,
    /// The size of the largest checkpoint that fits.
    last_good: u64,
}

impl TreeCheck {
    /// Compares the tree with the checkpoints of its present size.
    fn compare(&mut self, report: &mut LogReport) {
        let size = self.edge.size();
        while let Some(signed) = self
            .heads
            .get(self.next)
            .filter(|signed| signed.head.size == size)
        {
            self.next += 1;
            if signed.head.root == self.edge.root() {
                self.last_good = size;
                continue;
            }
            let result = &mut report.checkpoints[signed.result];
            result.ok = false;
            let (source, first) = (result.source.clone(), self.last_good);
            report.fault(
                FindingKind::Rewritten,
                format!("not all leaves from {first} to {} are those that the checkpoint in {source} has signed", size.saturating_sub(1)),
            );
        }
    }

    /// Reports the checkpoints of more leaves than there are.
    fn finish(self, report: &mut LogReport) {
        let size = self.edge.size();
        for signed in &self.heads[self.next..] {
            let result = &mut report.checkpoints[signed.result];
            result.ok = false;
            let (source, signed) = (result.source.clone(), signed.head.size);
            report.fault(
                FindingKind::Truncated,
                format!("{size} leaves are left of the {signed} that the checkpoint in {source} has signed"),
            );
        }
    }
}
