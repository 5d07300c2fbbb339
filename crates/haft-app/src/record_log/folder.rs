//! The log's folder: leaves and checkpoint, opened by one process at a time, and extended only if they fit what was signed before.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{self, Path, PathBuf};
use std::time::Duration;

use haft::file_lock::FileLock;
use haft::plural::counted;
use haft::text::hex;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use sha2::{Digest as _, Sha256};

use crate::plain_file;
use crate::record_log::checkpoint::{self, Checkpoint};
use crate::record_log::file;
use crate::record_log::key::{self, SigningKeyError};
use crate::record_log::leaf::{MAX_LINE, RunLeaf};
use crate::record_log::note::{self, VerifierKey};
use crate::record_log::pending::PendingRuns;
use crate::record_log::seen::{SeenCheckpoint, SeenCheckpoints};
use crate::record_log::tree::{TreeEdge, leaf_hash};

/// The log's folder in the state folder.
const LOG: &str = "log";
/// A line for each leaf.
const LEAVES: &str = "leaves";
/// The last signed checkpoint.
const CHECKPOINT: &str = "checkpoint";
/// What saves reading all leaves: how many bytes they have, and the tree's edge.
const EDGE: &str = "edge";
/// Maximum size of the edge's file, in bytes: 64 nodes.
const MAX_EDGE: u64 = 4096;
/// How long to wait for another process that writes the log.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Where a state folder's log lies, and what belongs to it elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct LogPlace {
    /// haft's state folder.
    pub(super) home: PathBuf,
    /// The file of the key that signs; `None` if there is no place for one.
    pub(super) key: Option<PathBuf>,
    /// Where the last checkpoint is kept outside of the state folder.
    pub(super) seen: Option<SeenCheckpoints>,
}

impl LogPlace {
    /// Returns the place of the log of the state folder `home`; `data` is the user's folder of data, outside of it.
    pub(crate) fn new(home: &Path, key: Option<PathBuf>, data: Option<&Path>) -> Self {
        let real = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        let named = path::absolute(home).unwrap_or_else(|_| home.to_owned());
        Self {
            key: key.or_else(|| Some(data?.join("record.key"))),
            seen: data
                .map(|data| SeenCheckpoints::in_folder(data.join("checkpoints"), &named, &real)),
            home: real,
        }
    }

    pub(super) fn folder(&self) -> PathBuf {
        self.home.join(LOG)
    }

    pub(super) fn leaves(&self) -> PathBuf {
        self.folder().join(LEAVES)
    }

    pub(super) fn checkpoint(&self) -> PathBuf {
        self.folder().join(CHECKPOINT)
    }

    pub(super) fn pending(&self) -> PendingRuns {
        PendingRuns::in_log(&self.folder())
    }

    /// Reads the checkpoints that are kept outside of the state folder: of the logs that were where this one is, and of this log, which says
    /// that it is `origin`, where else it was.
    pub(super) fn seen(&self, origin: Option<&str>) -> io::Result<Vec<SeenCheckpoint>> {
        let Some(seen) = &self.seen else {
            return Ok(Vec::new());
        };
        let mut all = seen.read()?;
        if let Some(other) = origin.map_or(Ok(None), |origin| seen.of_log(origin))?
            && all.iter().all(|one| one.path != other.path)
        {
            all.push(other);
        }
        Ok(all)
    }

    /// Locks the log, which must exist, for its only writer.
    fn lock(&self) -> Result<FileLock, LogFault> {
        let lock = FileLock::exclusive_within(self.open_folder()?, LOCK_TIMEOUT)?;
        lock.ok_or(LogFault::Busy)
    }

    /// Locks the log, which must exist, for a reader.
    pub(super) fn lock_shared(&self) -> Result<FileLock, LogFault> {
        let lock = FileLock::shared_within(self.open_folder()?, LOCK_TIMEOUT)?;
        lock.ok_or(LogFault::Busy)
    }

    /// Returns the name of the log that is here, as its checkpoint says.
    fn origin(&self) -> Option<String> {
        let own = file::read(&self.checkpoint(), checkpoint::MAX_BYTES).ok()?;
        Some(checkpoint::unproved(&own?)?.origin)
    }

    fn open_folder(&self) -> io::Result<File> {
        let folder = self.folder();
        if folder.symlink_metadata()?.is_dir() {
            return File::open(folder);
        }
        Err(file::named(
            &folder,
            &io::Error::other("it is not a folder"),
        ))
    }
}

/// Why the log cannot be extended.
#[derive(Debug, thiserror::Error)]
pub(super) enum LogFault {
    /// The key is missing or not safe.
    #[error(transparent)]
    Key(#[from] SigningKeyError),
    /// A file cannot be read or written.
    #[error("the record's log cannot be written: {0}")]
    Io(#[from] io::Error),
    /// Another process writes it.
    #[error("another process of haft writes the record's log")]
    Busy,
    /// What is there is not what was signed.
    #[error("the record's log was changed: {0}")]
    Changed(String),
}

impl LogFault {
    /// Returns what mends it.
    pub(super) fn advice(&self, place: &LogPlace) -> String {
        match self {
            Self::Key(error) => error.advice(),
            Self::Io(_) => "free disk space, or make `log` in the state folder writable".to_owned(),
            Self::Busy => "try again when it has ended".to_owned(),
            Self::Changed(_) => {
                let mut files = vec![place.folder()];
                let seen = place.seen(place.origin().as_deref()).unwrap_or_default();
                files.extend(seen.into_iter().map(|seen| seen.path));
                let files: Vec<String> = files
                    .iter()
                    .map(|file| file.display().to_string())
                    .collect();
                format!(
                    "`haft runs verify --log` says what does not fit; if you did it, begin a new log: move {} away",
                    files.join(" and ")
                )
            }
        }
    }
}

/// The log, open for its only writer.
pub(super) struct OpenLog<'p> {
    place: &'p LogPlace,
    pair: Ed25519KeyPair,
    origin: String,
    /// The file outside of the state folder for its checkpoints.
    seen: Option<PathBuf>,
    edge: TreeEdge,
    /// The size of the leaves that are signed, in bytes.
    bytes: u64,
    _lock: FileLock,
}

impl<'p> OpenLog<'p> {
    /// Opens the log, and makes it if there is none. What a killed process wrote after the last checkpoint is removed: the runs are still
    /// pending.
    pub(super) fn open(place: &'p LogPlace) -> Result<Self, LogFault> {
        plain_file::private_folder(&place.folder())?;
        let lock = place.lock()?;
        if place.leaves().symlink_metadata().is_err() {
            begin(place)?;
        }
        let pair = key::load(place.key.as_deref())?;
        let heads = Heads::read(place, &pair)?;
        let (edge, bytes) = if let Some(kept) = kept_edge(place, &heads)? {
            kept
        } else {
            // A process was killed here before.
            plain_file::sweep_drafts(&place.folder(), CHECKPOINT);
            place.seen.iter().for_each(SeenCheckpoints::sweep);
            recount(place, &heads)?
        };
        cut_tail(&place.leaves(), bytes)?;
        Ok(Self {
            place,
            pair,
            origin: heads.last.origin,
            seen: heads.seen,
            edge,
            bytes,
            _lock: lock,
        })
    }

    /// Returns the number of leaves.
    #[cfg(test)]
    pub(super) fn size(&self) -> u64 {
        self.edge.size()
    }

    /// Returns the key by which its checkpoints are verified.
    pub(super) fn verifier(&self) -> VerifierKey {
        note::verifier(&self.origin, &self.pair)
    }

    /// Adds leaves, and signs the checkpoint that holds them.
    pub(super) fn append(&mut self, leaves: &[RunLeaf]) -> Result<(), LogFault> {
        let lines: String = leaves.iter().map(|leaf| leaf.to_line() + "\n").collect();
        let path = self.place.leaves();
        if let Err(error) = file::append(&path, &lines) {
            // A full disk may have taken a part.
            let _ = cut_tail(&path, self.bytes);
            return Err(error.into());
        }
        for leaf in leaves {
            self.edge.push(leaf_hash(leaf.to_line().as_bytes()));
        }
        self.bytes += lines.len() as u64;
        let checkpoint = Checkpoint {
            origin: self.origin.clone(),
            size: self.edge.size(),
            root: self.edge.root(),
        };
        let note = checkpoint.sign(&self.pair);
        file::replace(&self.place.checkpoint(), &note)?;
        self.keep_edge()?;
        if let (Some(place), Some(path)) = (&self.place.seen, &self.seen)
            && let Err(error) = place.write(path, &note)
        {
            tracing::warn!(%error, "keep the record's checkpoint outside of the state folder");
        }
        Ok(())
    }

    /// Writes the edge. It is checked against the checkpoint when it is read, so it need not be on disk now.
    fn keep_edge(&self) -> io::Result<()> {
        let path = self.place.folder().join(EDGE);
        let draft = path.with_extension("new");
        let mut options = OpenOptions::new();
        let mut out = file::open(&draft, options.write(true).create(true).truncate(true))?;
        out.write_all(format!("{}\n{}", self.bytes, self.edge.to_text()).as_bytes())?;
        fs::rename(&draft, &path)
    }
}

/// Makes an empty log. Its leaves come last: as long as there is no such file, there is no log.
fn begin(place: &LogPlace) -> Result<(), LogFault> {
    let own = file::read(&place.checkpoint(), checkpoint::MAX_BYTES)?;
    let origin_there = place.origin();
    let seen = place.seen(origin_there.as_deref())?.into_iter();
    for note in seen.map(|seen| seen.note).chain(own) {
        let size = checkpoint::unproved(&note).map_or(0, |head| head.size);
        // A process that was killed here leaves the checkpoint of an empty log.
        if size > 0 {
            let runs = counted(usize::try_from(size).unwrap_or(usize::MAX), "run");
            return Err(LogFault::Changed(format!(
                "it had {runs}, and its leaves are gone"
            )));
        }
    }
    let pair = key::load_or_make(place.key.as_deref())?;
    let empty = TreeEdge::default();
    let checkpoint = Checkpoint {
        origin: origin(place, &pair),
        size: 0,
        root: empty.root(),
    };
    place.pending().note_all(&place.home)?;
    file::replace(&place.checkpoint(), &checkpoint.sign(&pair))?;
    file::append(&place.leaves(), "")?;
    Ok(())
}

/// Returns the name of a log that begins here. One that is begun anew in its place has the same, so that older checkpoints are seen not to
/// fit it.
fn origin(place: &LogPlace, pair: &Ed25519KeyPair) -> String {
    let mut hash = Sha256::new();
    hash.update(pair.public_key());
    hash.update(place.home.as_os_str().as_encoded_bytes());
    let hash = hash.finalize();
    format!("haft-record/{}", hex(hash.get(..16).unwrap_or_default()))
}

/// The signed checkpoints: the log's own, and those outside of the state folder.
struct Heads {
    /// The one of most leaves.
    last: Checkpoint,
    /// The others that differ: a process was killed, or its machine lost power, between two.
    before: Vec<Checkpoint>,
    /// The file outside of the state folder that holds the last one, or will.
    seen: Option<PathBuf>,
}

impl Heads {
    fn read(place: &LogPlace, pair: &Ed25519KeyPair) -> Result<Self, LogFault> {
        let mut heads = Vec::new();
        let open = |name: &str, note: &str| {
            let origin = checkpoint::unproved(note).map(|head| head.origin);
            Checkpoint::open(note, &note::verifier(&origin.unwrap_or_default(), pair))
                .map_err(|why| LogFault::Changed(format!("{name}: {why}")))
        };
        if let Some(own) = file::read(&place.checkpoint(), checkpoint::MAX_BYTES)? {
            heads.push(open("its checkpoint", &own)?);
        }
        // The search for the other places where the log was takes a look at each log of this user.
        let own = heads.first().map(|head| head.origin.clone());
        let moved = own.filter(|own| *own != origin(place, pair));
        let mut file = None;
        for seen in place.seen(moved.as_deref())? {
            let head = open("its last checkpoint elsewhere", &seen.note)?;
            let is_most = |(size, _): &(u64, PathBuf)| *size < head.size;
            if file.as_ref().is_none_or(is_most) {
                file = Some((head.size, seen.path));
            }
            heads.push(head);
        }
        let Some(last) = heads.iter().max_by_key(|head| head.size).cloned() else {
            return Err(LogFault::Changed("its checkpoint is missing".to_owned()));
        };
        if let Some(other) = heads.iter().find(|head| head.origin != last.origin) {
            let why = format!("it is {}, and was {}", other.origin, last.origin);
            return Err(LogFault::Changed(why));
        }
        heads.retain(|head| *head != last);
        let unseen = || Some(place.seen.as_ref()?.path().to_owned());
        Ok(Self {
            last,
            before: heads,
            seen: file.map(|(_, path)| path).or_else(unseen),
        })
    }
}

/// Returns the edge as it was kept, if it is that of the last checkpoint.
fn kept_edge(place: &LogPlace, heads: &Heads) -> Result<Option<(TreeEdge, u64)>, LogFault> {
    let Ok(Some(text)) = file::read(&place.folder().join(EDGE), MAX_EDGE) else {
        return Ok(None);
    };
    let read = text
        .split_once('\n')
        .and_then(|(bytes, edge)| Some((TreeEdge::of_text(edge)?, bytes.parse::<u64>().ok()?)));
    let found = fs::symlink_metadata(place.leaves())?.len();
    let fits = |(edge, bytes): &(TreeEdge, u64)| {
        let is_last = edge.size() == heads.last.size && edge.root() == heads.last.root;
        is_last && heads.before.is_empty() && *bytes == found
    };
    Ok(read.filter(fits))
}

/// Counts all leaves anew, up to the last checkpoint, and checks that all checkpoints fit them.
fn recount(place: &LogPlace, heads: &Heads) -> Result<(TreeEdge, u64), LogFault> {
    let mut leaves = LeafReader::open(&place.leaves())?;
    let (mut edge, mut bytes) = (TreeEdge::default(), 0);
    loop {
        for head in heads.before.iter().chain([&heads.last]) {
            if head.size == edge.size() && head.root != edge.root() {
                let why = format!(
                    "its first {} leaves are not those that were signed",
                    head.size
                );
                return Err(LogFault::Changed(why));
            }
        }
        if edge.size() == heads.last.size {
            return Ok((edge, bytes));
        }
        let Some(line) = leaves.next()? else {
            let (size, signed) = (edge.size(), heads.last.size);
            return Err(LogFault::Changed(format!(
                "it was cut: {size} of {signed} leaves are left"
            )));
        };
        edge.push(leaf_hash(line));
        bytes += line.len() as u64 + 1;
    }
}

/// Removes what follows the first `bytes`.
fn cut_tail(leaves: &Path, bytes: u64) -> io::Result<()> {
    let mut file = file::open(leaves, OpenOptions::new().read(true).write(true))?;
    if file.metadata()?.len() > bytes {
        file.set_len(bytes)?;
        file.sync_data()?;
    }
    // A leaf that follows half a line would be another one.
    if bytes > 0 && file::last_byte(&mut file)? != Some(b'\n') {
        return Err(file::named(
            leaves,
            &io::Error::other("its last line is cut"),
        ));
    }
    Ok(())
}

/// Reads leaves one by one.
pub(super) struct LeafReader {
    lines: BufReader<io::Take<File>>,
    line: Vec<u8>,
}

impl LeafReader {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = file::open(path, OpenOptions::new().read(true))?;
        let bytes = file.metadata()?.len();
        Ok(Self {
            lines: BufReader::with_capacity(64 << 10, file.take(bytes)),
            line: Vec::new(),
        })
    }

    /// Returns the next leaf without its newline; `None` at the end, or where a line is cut.
    pub(super) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.line.clear();
        let most = MAX_LINE as u64 + 1;
        (&mut self.lines)
            .take(most)
            .read_until(b'\n', &mut self.line)?;
        if self.line.len() as u64 == most && !self.line.ends_with(b"\n") {
            // No such line was written; as a leaf of its own it fits no tree.
            return Ok(Some(&self.line));
        }
        Ok(self.line.strip_suffix(b"\n"))
    }
}

/// Reads the log's checkpoint, if there is one.
pub(super) fn head(place: &LogPlace) -> io::Result<Option<String>> {
    file::read(&place.checkpoint(), checkpoint::MAX_BYTES)
}

#[cfg(test)]
mod tests;
