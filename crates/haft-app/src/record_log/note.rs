//! Signed notes as c2sp.org/signed-note has them, with Ed25519: a text, and who signed it.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use sha2::{Digest, Sha256};

/// The type of Ed25519 signatures in key ids and verifier keys.
const ED25519_TYPE: u8 = 1;
/// What a signature line begins with.
const DASH: &str = "\u{2014} ";
/// Maximum number of signatures of a note that are read; the specification asks for at least 16.
const MAX_SIGNATURES: usize = 64;
/// Length of a key's id, in bytes.
const ID: usize = 4;

/// A public key with its name, by which notes are verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierKey {
    name: String,
    key: [u8; 32],
}

/// Why a text is not the verifier key of a log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid verifier key `{0}`: expected NAME+ID+KEY as `haft runs log-key` prints it")]
pub struct InvalidVerifierKey(String);

impl VerifierKey {
    pub(super) fn new(name: &str, key: [u8; 32]) -> Self {
        Self {
            name: name.to_owned(),
            key,
        }
    }

    /// Reads a key written as `NAME+ID+KEY`.
    ///
    /// # Errors
    /// The text is not that of an Ed25519 key, or the id is that of another key.
    pub fn parse(text: &str) -> Result<Self, InvalidVerifierKey> {
        Self::read(text.trim()).ok_or_else(|| InvalidVerifierKey(text.to_owned()))
    }

    fn read(text: &str) -> Option<Self> {
        let (name, rest) = text.split_once('+')?;
        let (id, key) = rest.split_once('+')?;
        let bytes = STANDARD.decode(key).ok()?;
        let (ED25519_TYPE, key) = bytes.split_first().map(|(kind, key)| (*kind, key))? else {
            return None;
        };
        let read = Self::new(name, key.try_into().ok()?);
        (is_name(name) && haft::text::hex(&read.id()) == id).then_some(read)
    }

    /// Returns the name, which is the origin of the log's checkpoints.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn id(&self) -> [u8; ID] {
        let mut hash = Sha256::new();
        hash.update(self.name.as_bytes());
        hash.update([b'\n', ED25519_TYPE]);
        hash.update(self.key);
        let hash = hash.finalize();
        [hash[0], hash[1], hash[2], hash[3]]
    }

    /// Returns the text of a note if this key has signed it. Signatures of other keys do not matter.
    pub(super) fn verify<'n>(&self, note: &'n str) -> Result<&'n str, NoteError> {
        let note = SignedNote::parse(note)?;
        let (id, mut is_signed) = (self.id(), false);
        for (name, signature) in &note.signatures {
            let Some(signature) = signature.strip_prefix(&id).filter(|_| *name == self.name) else {
                continue;
            };
            UnparsedPublicKey::new(&ED25519, self.key)
                .verify(note.text.as_bytes(), signature)
                .map_err(|_| NoteError::Forged)?;
            is_signed = true;
        }
        if is_signed {
            Ok(note.text)
        } else {
            Err(NoteError::Foreign)
        }
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = haft::text::hex(&self.id());
        let key = [&[ED25519_TYPE], &self.key[..]].concat();
        write!(f, "{}+{id}+{}", self.name, STANDARD.encode(key))
    }
}

/// Why a note does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoteError {
    #[error("it is not a signed note")]
    Malformed,
    #[error("it is signed by another key")]
    Foreign,
    #[error("its signature is wrong")]
    Forged,
}

/// A note's text and its signatures, each the key's name, its id and the signature itself.
struct SignedNote<'n> {
    text: &'n str,
    signatures: Vec<(&'n str, Vec<u8>)>,
}

impl<'n> SignedNote<'n> {
    fn parse(note: &'n str) -> Result<Self, NoteError> {
        let is_control = |c: char| c.is_ascii_control() && c != '\n' && c != '\u{7f}';
        let at = note.rfind("\n\n").ok_or(NoteError::Malformed)?;
        let (text, signatures) = (&note[..=at], &note[at + 2..]);
        let lines = signatures.strip_suffix('\n').ok_or(NoteError::Malformed)?;
        if note.contains(is_control) || lines.split('\n').count() > MAX_SIGNATURES {
            return Err(NoteError::Malformed);
        }
        let read = |line: &'n str| {
            let (name, signature) = line.strip_prefix(DASH)?.split_once(' ')?;
            let signature = STANDARD.decode(signature).ok()?;
            (is_name(name) && signature.len() > ID).then_some((name, signature))
        };
        let signatures = lines.split('\n').map(read).collect::<Option<_>>();
        let signatures = signatures.ok_or(NoteError::Malformed)?;
        Ok(Self { text, signatures })
    }
}

/// Whether a key may have this name.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control() || c == '+')
}

/// Signs a text, which must end with a newline, under the name.
pub(super) fn sign(text: &str, name: &str, pair: &Ed25519KeyPair) -> String {
    let id = verifier(name, pair).id();
    let signature = [&id[..], pair.sign(text.as_bytes()).as_ref()].concat();
    format!("{text}\n{DASH}{name} {}\n", STANDARD.encode(signature))
}

/// Returns the key that verifies what this pair signs under the name.
pub(super) fn verifier(name: &str, pair: &Ed25519KeyPair) -> VerifierKey {
    let mut key = [0; 32];
    key.copy_from_slice(pair.public_key().as_ref());
    VerifierKey::new(name, key)
}

#[cfg(test)]
mod tests;
