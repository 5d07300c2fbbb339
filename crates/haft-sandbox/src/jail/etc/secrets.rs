//! Looks for what may be secret in a folder of settings: by names, rights, and content.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::only_changed_by;
use crate::places::is_system;

/// Maximum number of entries of a folder that is shown.
const MOST_ENTRIES: usize = 512;
/// Maximum number of bytes of all its files, and of one.
const MOST_BYTES: u64 = 4 << 20;
/// Maximum depth of folders.
const DEEPEST: usize = 8;

/// Words of the names of files that hold secrets, and how such words begin.
const NAMES: &[&str] = &[
    "auth", "htpasswd", "keytab", "netrc", "pgpass", "private", "shadow", "token", "tokens",
];
const BEGINNINGS: &[&str] = &["cred", "passw", "secret"];
/// Endings of such names.
const ENDINGS: &[&str] = &[
    ".env",
    ".gpg",
    ".jks",
    ".kdbx",
    ".key",
    ".keystore",
    ".p12",
    ".pem",
    ".pfx",
];
/// Words of settings whose values are secrets.
const WORDS: &[&str] = &[
    "api_key",
    "api-key",
    "apikey",
    "access_key",
    "accesskey",
    "credential",
    "passphrase",
    "passwd",
    "password",
    "private_key",
    "privatekey",
    "pwd",
    "secret",
    "token",
];
/// How comments begin.
const COMMENTS: &[&str] = &["#", ";", "//", "!", "--", "\"", "%", "dnl", "*", "/*"];

/// Returns an error, as the rest of a sentence about the folder, if something in it may be secret.
pub(super) fn check(folder: &Path, owner: u32) -> Result<(), String> {
    let meta = fs::symlink_metadata(folder).map_err(|error| error.to_string())?;
    let mut walk = Walk {
        root: folder,
        device: meta.dev(),
        owner,
        entries: MOST_ENTRIES,
        bytes: MOST_BYTES,
    };
    if !only_changed_by(&meta, owner) || meta.mode() & 0o005 != 0o005 {
        return Err("belongs to another user than root, or is not for everybody".into());
    }
    walk.folder(folder, 0)
}

struct Walk<'a> {
    root: &'a Path,
    device: u64,
    owner: u32,
    entries: usize,
    bytes: u64,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, depth: usize) -> Result<(), String> {
        let list = fs::read_dir(folder).map_err(|error| self.about(folder, &error.to_string()))?;
        for entry in list {
            let path = entry
                .map_err(|error| self.about(folder, &error.to_string()))?
                .path();
            self.entries = self
                .entries
                .checked_sub(1)
                .ok_or("has too many files to look at")?;
            let meta = fs::symlink_metadata(&path)
                .map_err(|error| self.about(&path, &error.to_string()))?;
            if meta.is_symlink() {
                self.link(&path)?;
                continue;
            }
            if !only_changed_by(&meta, self.owner) || meta.dev() != self.device {
                return Err(self.about(&path, "belongs to another user or is mounted there"));
            }
            let everybody = if meta.is_dir() { 0o005 } else { 0o004 };
            if meta.mode() & everybody != everybody {
                return Err(self.about(&path, "is not for everybody"));
            }
            if meta.is_dir() && depth < DEEPEST {
                self.folder(&path, depth + 1)?;
            } else if meta.is_file() {
                self.file(&path, meta.len())?;
            } else {
                return Err(self.about(&path, "is not a file"));
            }
        }
        Ok(())
    }

    /// A link must stay in the folder or lead to the system's folders of programs.
    fn link(&self, path: &Path) -> Result<(), String> {
        let Ok(real) = path.canonicalize() else {
            // It leads nowhere outside either, or nowhere that this user may look.
            return Err(self.about(path, "is a link that leads nowhere"));
        };
        if real.starts_with(self.root) || is_system(&real) {
            return Ok(());
        }
        Err(self.about(path, "is a link that leads out"))
    }

    fn file(&mut self, path: &Path, length: u64) -> Result<(), String> {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_lowercase();
        let is_secret = |word: &str| {
            NAMES.contains(&word) || BEGINNINGS.iter().any(|part| word.starts_with(part))
        };
        let mut words = name.split(['.', '-', '_']);
        let named = words.any(is_secret) || ENDINGS.iter().any(|end| name.ends_with(end));
        if named {
            return Err(self.about(path, "has the name of a secret"));
        }
        self.bytes = self
            .bytes
            .checked_sub(length)
            .ok_or("is too large to look at")?;
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
        read.map_err(|error| self.about(path, &error.to_string()))?;
        match secret_line(&String::from_utf8_lossy(&bytes)) {
            Some(line) => Err(self.about(path, &format!("may hold a secret in line {line}"))),
            None => Ok(()),
        }
    }

    fn about(&self, path: &Path, what: &str) -> String {
        let path = path.strip_prefix(self.root).unwrap_or(path);
        format!("is left out: {} {what}", path.display())
    }
}

/// Returns the number of the first line that looks like a secret.
fn secret_line(text: &str) -> Option<usize> {
    let mut commented = false;
    for (number, line) in text.lines().enumerate() {
        let (shown, still) = without_comments(line, commented);
        commented = still;
        if is_secret(&shown.to_lowercase()) {
            return Some(number + 1);
        }
    }
    None
}

/// Removes XML comments from a line; returns whether one goes on.
fn without_comments(line: &str, mut commented: bool) -> (String, bool) {
    let (mut shown, mut rest) = (String::new(), line);
    loop {
        let mark = if commented { "-->" } else { "<!--" };
        let Some((before, after)) = rest.split_once(mark) else {
            shown.push_str(if commented { "" } else { rest });
            return (shown, commented);
        };
        shown.push_str(if commented { "" } else { before });
        commented = !commented;
        rest = after;
    }
}

/// Of a line in lower case.
fn is_secret(line: &str) -> bool {
    if line.contains("private key-----") {
        return true;
    }
    let line = line.trim();
    if COMMENTS.iter().any(|mark| line.starts_with(mark)) {
        return false;
    }
    let line = &format!(" {line}");
    let assigned = WORDS.iter().any(|word| {
        let mut after = line
            .match_indices(word)
            .map(|(at, _)| &line[at + word.len()..]);
        after.any(is_assigned)
    });
    assigned || has_login(line)
}

/// What follows the word ends its name and gives it a value.
fn is_assigned(after: &str) -> bool {
    let value = after.trim_start_matches(['"', '\'', ']', ')', ' ', '\t']);
    let Some(value) = value.strip_prefix([':', '=', '>']) else {
        return false;
    };
    let value = value.trim_start_matches([':', '=', '>', ' ', '\t', '"', '\'']);
    !value.is_empty() && !value.starts_with(['<', ',', ';', '}'])
}

/// An address with a user and a password: `scheme://user:password@host`.
fn has_login(line: &str) -> bool {
    line.match_indices("://").any(|(at, mark)| {
        let host = line[at + mark.len()..]
            .split(['/', ' ', '"', '\'', '<'])
            .next()
            .unwrap_or_default();
        host.split_once('@')
            .is_some_and(|(login, _)| login.contains(':'))
    })
}
