//! `Checkpoint`: the size and root of a log at one time, as c2sp.org/tlog-checkpoint writes them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::Ed25519KeyPair;

use crate::record_log::note::{self, NoteError, VerifierKey};
use crate::record_log::tree::TreeHash;

/// Maximum size of one checkpoint with its signatures, in bytes.
pub(super) const MAX_BYTES: u64 = 16 << 10;

/// A log's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Checkpoint {
    /// The log's name.
    pub(super) origin: String,
    /// The number of leaves.
    pub(super) size: u64,
    pub(super) root: TreeHash,
}

impl Checkpoint {
    /// Returns the checkpoint as a note that the pair has signed, under the origin's name.
    pub(super) fn sign(&self, pair: &Ed25519KeyPair) -> String {
        let Self { origin, size, root } = self;
        let text = format!("{origin}\n{size}\n{}\n", STANDARD.encode(root));
        note::sign(&text, origin, pair)
    }

    /// Reads a checkpoint that the key has signed.
    pub(super) fn open(note: &str, key: &VerifierKey) -> Result<Self, NoteError> {
        let text = key.verify(note)?;
        let checkpoint = Self::parse(text).ok_or(NoteError::Malformed)?;
        // One key may sign for other logs under their names.
        if checkpoint.origin == key.name() {
            Ok(checkpoint)
        } else {
            Err(NoteError::Foreign)
        }
    }

    /// Reads the text of a note. Lines after the third are extensions that say nothing about the tree.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        let (origin, size, root) = (lines.next()?, lines.next()?, lines.next()?);
        let number: u64 = size.parse().ok()?;
        let is_whole = !origin.is_empty() && number.to_string() == size;
        let extensions_are_whole = lines.all(|line| !line.is_empty());
        (is_whole && extensions_are_whole).then_some(Self {
            origin: origin.to_owned(),
            size: number,
            root: STANDARD.decode(root).ok()?.try_into().ok()?,
        })
    }
}

/// Returns what a note says that nobody need have signed.
pub(super) fn unproved(note: &str) -> Option<Checkpoint> {
    let (text, _) = note.rsplit_once("\n\n")?;
    Checkpoint::parse(&format!("{text}\n"))
}

/// Splits a file of checkpoints that were appended one after another. What is no signed note, as a power cut may leave it, is a part of its
/// own.
pub(super) fn each(text: &str) -> Vec<String> {
    let (mut notes, mut note) = (Vec::new(), String::new());
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let is_signature = |line: &&str| line.starts_with('\u{2014}');
        let before_signature = lines.peek().is_some_and(is_signature);
        let is_blank = line.trim().is_empty();
        if !is_blank || before_signature {
            note.push_str(line);
        }
        let ends = is_blank || is_signature(&line);
        if ends && !before_signature && !note.is_empty() {
            notes.push(std::mem::take(&mut note));
        }
    }
    if !note.is_empty() {
        notes.push(note);
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> Ed25519KeyPair {
        Ed25519KeyPair::from_seed_unchecked(&[1; 32]).unwrap()
    }

    fn checkpoint(size: u64) -> Checkpoint {
        Checkpoint {
            origin: "haft-record/1".to_owned(),
            size,
            root: [7; 32],
        }
    }

    #[test]
    fn a_checkpoint_is_read_only_as_the_specification_writes_it() {
        let root = STANDARD.encode([7; 32]);
        let rows = [
            (format!("haft-record/1\n20852163\n{root}\n"), true),
            (format!("haft-record/1\n0\n{root}\n"), true),
            (format!("haft-record/1\n3\n{root}\nan extension\n"), true),
            (format!("haft-record/1\n3\n{root}\n\n"), false),
            (format!("haft-record/1\n3\n{root}"), false),
            (format!("\n3\n{root}\n"), false),
            (format!("haft-record/1\n03\n{root}\n"), false),
            (format!("haft-record/1\n+3\n{root}\n"), false),
            (
                format!("haft-record/1\n18446744073709551616\n{root}\n"),
                false,
            ),
            ("haft-record/1\n3\nAAAA\n".to_owned(), false),
            ("haft-record/1\n3\n".to_owned(), false),
            (String::new(), false),
        ];
        for (text, expect) in rows {
            assert_eq!(Checkpoint::parse(&text).is_some(), expect, "{text:?}");
        }
    }

    #[test]
    fn a_checkpoint_of_another_log_or_key_does_not_open() {
        let note = checkpoint(3).sign(&pair());
        let key = note::verifier("haft-record/1", &pair());
        assert_eq!(Checkpoint::open(&note, &key), Ok(checkpoint(3)));
        let elsewhere = Checkpoint {
            origin: "haft-record/2".to_owned(),
            ..checkpoint(3)
        };
        assert_eq!(
            Checkpoint::open(&elsewhere.sign(&pair()), &key),
            Err(NoteError::Foreign)
        );
        // Signed under this name, but of another log.
        let text = format!("haft-record/2\n3\n{}\n", STANDARD.encode([7; 32]));
        let note = note::sign(&text, "haft-record/1", &pair());
        assert_eq!(Checkpoint::open(&note, &key), Err(NoteError::Foreign));
        assert_eq!(unproved(&note).unwrap().origin, "haft-record/2");
    }

    #[test]
    fn appended_checkpoints_are_told_apart_also_after_a_torn_one() {
        let notes: Vec<String> = (1..4).map(|size| checkpoint(size).sign(&pair())).collect();
        assert_eq!(each(&notes.concat()), notes);
        assert_eq!(each(&notes.join("\n")), notes);
        assert_eq!(each(""), Vec::<String>::new());
        let key = note::verifier("haft-record/1", &pair());
        for end in (1..notes[0].len()).filter(|end| notes[0].is_char_boundary(*end)) {
            let separator = if notes[0][..end].ends_with('\n') {
                "\n"
            } else {
                "\n\n"
            };
            let torn = format!("{}{separator}{}", &notes[0][..end], notes[1]);
            let parts = each(&torn);
            assert_eq!(parts.len(), 2, "{end}: {parts:?}");
            assert_eq!(
                Checkpoint::open(&parts[1], &key),
                Ok(checkpoint(2)),
                "{end}"
            );
        }
    }
}
