//! The key that signs checkpoints: a file outside of the state folder that no other user reads, made at the first use.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_sandbox::check_owner;
use ring::signature::Ed25519KeyPair;
use rustix::process::geteuid;

use crate::plain_file;
use crate::record_log::file;

/// The first line of a key file.
const HEADER: &str = "haft record key 1";
/// Length of an Ed25519 seed, in bytes.
const SEED: usize = 32;
/// Maximum size of a key file, in bytes.
const MAX_BYTES: u64 = 4096;

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub(super) enum SigningKeyError {
    /// Neither a setting nor a home folder names a file.
    #[error("there is no place for the key of the record's log: set record.key")]
    Nowhere,
    /// There is no file.
    #[error("the key of the record's log is missing: {}", .0.display())]
    Missing(PathBuf),
    /// Others may read or change the file.
    #[error("the key of the record's log is not safe: {} {}", .0.display(), .1)]
    Unsafe(PathBuf, String),
    /// The file cannot be read or made, or holds no key.
    #[error("the key of the record's log cannot be used: {0}")]
    Unusable(String),
}

impl SigningKeyError {
    /// Returns what mends it.
    pub(super) fn advice(&self) -> String {
        match self {
            Self::Nowhere => "write record.key = \"/PATH\" into the user's settings".to_owned(),
            Self::Missing(path) => format!(
                "restore {} from a copy; or begin a new log: move `log` in the state folder away",
                path.display()
            ),
            Self::Unsafe(path, _) => format!(
                "it may have been read: move it and `log` in the state folder away for a new key and log, or `chmod 600 {}`",
                path.display()
            ),
            Self::Unusable(_) => {
                "make it readable for haft alone (mode 0600), or name another with record.key"
                    .to_owned()
            }
        }
    }
}

/// Reads the key.
pub(super) fn load(path: Option<&Path>) -> Result<Ed25519KeyPair, SigningKeyError> {
    let path = path.ok_or(SigningKeyError::Nowhere)?;
    let real = match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(SigningKeyError::Missing(path.to_owned()));
        }
        found => found.map_err(|error| unusable(path, &error))?,
    };
    check(&real).map_err(|why| SigningKeyError::Unsafe(path.to_owned(), why))?;
    let text = file::read(&real, MAX_BYTES)
        .map_err(|error| SigningKeyError::Unusable(error.to_string()))?;
    let text = text.ok_or_else(|| SigningKeyError::Missing(path.to_owned()))?;
    parse(&text).ok_or_else(|| {
        let why = io::Error::other("it is not a key that haft has made");
        unusable(path, &why)
    })
}

/// Reads the key, and makes it if there is none.
pub(super) fn load_or_make(path: Option<&Path>) -> Result<Ed25519KeyPair, SigningKeyError> {
    match load(path) {
        Err(SigningKeyError::Missing(path)) => {
            make(&path).map_err(|error| unusable(&path, &error))?;
            load(Some(&path))
        }
        loaded => loaded,
    }
}

/// Nobody else may change the file, and nobody else but the members of a group that root gave it to may read it.
fn check(real: &Path) -> Result<(), String> {
    check_owner(real)?;
    let meta = fs::metadata(real).map_err(|error| error.to_string())?;
    let is_own = meta.uid() == geteuid().as_raw();
    let readers = if is_own { 0o077 } else { 0o007 };
    let mode = meta.mode() & 0o777;
    if mode & readers != 0 {
        return Err(format!("may be read by other users (mode {mode:03o})"));
    }
    Ok(())
}

/// Makes a key file, whole at once; one that another process makes meanwhile stays.
fn make(path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    plain_file::private_folder(folder)?;
    let mut seed = [0; SEED];
    getrandom::fill(&mut seed).map_err(io::Error::other)?;
    let draft = folder.join(format!(".record.key.{}", plain_file::random_hex(8)?));
    plain_file::create_private(&draft, &format!("{HEADER}\n{}\n", STANDARD.encode(seed)))?;
    let linked = fs::hard_link(&draft, path);
    let removed = fs::remove_file(&draft);
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => removed,
        linked => linked.and(removed),
    }
}

fn parse(text: &str) -> Option<Ed25519KeyPair> {
    let seed = text
        .strip_prefix(HEADER)?
        .strip_prefix('\n')?
        .strip_suffix('\n')?;
    let seed = STANDARD.decode(seed).ok()?;
    Ed25519KeyPair::from_seed_unchecked(&seed).ok()
}

fn unusable(path: &Path, error: &io::Error) -> SigningKeyError {
    SigningKeyError::Unusable(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use ring::signature::KeyPair as _;

    use super::*;

    /// Changes the key file.
    type Change = fn(&Path);

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "one table")]
    fn a_key_that_others_read_or_change_or_that_is_none_is_refused() {
        let rows: [(&str, &str, Change); 12] = [
            ("as made", "", |_| ()),
            ("of a link to it", "", |key| {
                let other = key.with_extension("real");
                fs::rename(key, &other).unwrap();
                symlink(other, key).unwrap();
            }),
            ("missing", "is missing", |key| fs::remove_file(key).unwrap()),
            ("a link to nothing", "is missing", |key| {
                fs::remove_file(key).unwrap();
                symlink("nothing", key).unwrap();
            }),
            ("readable by all", "may be read by other users", |key| {
                mode(key, 0o644);
            }),
            (
                "readable by the group",
                "may be read by other users",
                |key| mode(key, 0o640),
            ),
            ("writable by all", "may be changed", |key| mode(key, 0o606)),
            ("in a folder that all can write", "may be changed", |key| {
                mode(key.parent().unwrap(), 0o777);
            }),
            ("a folder", "not a regular file", |key| {
                fs::remove_file(key).unwrap();
                fs::create_dir(key).unwrap();
                mode(key, 0o700);
            }),
            ("empty", "not a key", |key| fs::write(key, "").unwrap()),
            ("cut", "not a key", |key| {
                let text = fs::read_to_string(key).unwrap();
                fs::write(key, &text[..text.len() - 4]).unwrap();
            }),
            ("endless", "over 4096 bytes", |key| {
                fs::write(key, "k".repeat(5000)).unwrap();
            }),
        ];
        for (name, expect, change) in rows {
            let folder = tempfile::tempdir().unwrap();
            let key = folder
                .path()
                .canonicalize()
                .unwrap()
                .join("data/record.key");
            let made = load_or_make(Some(&key)).unwrap();
            change(&key);
            match (expect, load(Some(&key))) {
                ("", Ok(found)) => {
                    assert_eq!(
                        found.public_key().as_ref(),
                        made.public_key().as_ref(),
                        "{name}"
                    );
                }
                (part, Err(error)) if !part.is_empty() => {
                    assert!(error.to_string().contains(part), "{name}: {error}");
                    assert!(!error.advice().is_empty());
                }
                (_, found) => panic!("{name}: {found:?}"),
            }
        }
        assert!(matches!(load(None), Err(SigningKeyError::Nowhere)));
    }

    #[test]
    fn many_that_make_the_key_at_once_have_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let key = folder
            .path()
            .canonicalize()
            .unwrap()
            .join("data/record.key");
        let made: Vec<Vec<u8>> = std::thread::scope(|threads| {
            let make = || {
                load_or_make(Some(&key))
                    .unwrap()
                    .public_key()
                    .as_ref()
                    .to_vec()
            };
            let all: Vec<_> = (0..8).map(|_| threads.spawn(make)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(made.windows(2).all(|pair| pair[0] == pair[1]));
        assert_eq!(fs::read_dir(key.parent().unwrap()).unwrap().count(), 1);
    }
}
