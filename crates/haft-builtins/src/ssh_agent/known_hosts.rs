//! `KnownHosts`: the servers' keys that the user has accepted (sshd(8)).

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha1::Sha1;

/// The port of SSH (IANA).
const SSH: u16 = 22;
/// Maximum size of a file, in bytes, and number of its lines; more are not read.
const MAX_FILE: u64 = 1 << 20;
const MAX_LINES: usize = 10_000;
/// Begins a line with a key that must not be accepted.
const REVOKED: &str = "@revoked";
/// Begins a name that is stored as a hash.
const HASHED: &str = "|1|";

/// The keys of servers.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownHosts(Vec<KnownHost>);

/// A line: the names of a server as written, and its key.
#[derive(Debug, Clone)]
struct KnownHost {
    names: String,
    kind: String,
    key: Vec<u8>,
    /// Whether the key must not be accepted.
    revoked: bool,
}

impl KnownHosts {
    /// Reads these files; those that do not exist have no lines.
    pub(super) fn read(files: &[PathBuf]) -> Self {
        let texts = files.iter().filter_map(|file| text_of(file));
        let mut lines = Vec::new();
        for text in texts {
            lines.extend(text.lines().filter_map(KnownHost::read));
        }
        lines.truncate(MAX_LINES);
        Self(lines)
    }

    /// Whether the user has accepted this key for the host.
    pub(super) fn has(&self, host: &str, port: u16, key: &[u8]) -> bool {
        let name = name_of(host, port);
        let mut of_key = self.0.iter().filter(|line| line.key == key).peekable();
        if of_key.peek().is_none() || self.0.iter().any(|line| line.revoked && line.key == key) {
            return false;
        }
        of_key.any(|line| line.names(&name))
    }

    /// Whether the user has accepted any key for the host.
    pub(super) fn knows(&self, host: &str, port: u16) -> bool {
        let name = name_of(host, port);
        self.0.iter().any(|line| !line.revoked && line.names(&name))
    }

    /// Whether a host that is none of these has this key, too.
    pub(super) fn is_of_others(&self, key: &[u8], hosts: &[(String, u16)]) -> bool {
        let names: Vec<String> = hosts
            .iter()
            .map(|(host, port)| name_of(host, *port))
            .collect();
        let of_key = self.0.iter().filter(|line| line.key == key);
        let mut written = of_key.flat_map(|line| line.names.split(','));
        written.any(|own| !names.iter().any(|name| is_name_of(own, name)))
    }

    /// Returns the file that commands get: the same keys, with the names as hashes. Whoever tries a name, or every address, finds out whether it is one of them.
    /// A key that was revoked for any host is revoked for all.
    pub(super) fn to_hashed(&self) -> Vec<u8> {
        let mut out = String::new();
        let is_revoked = |key: &[u8]| self.0.iter().any(|line| line.revoked && line.key == key);
        for line in &self.0 {
            let key = STANDARD.encode(&line.key);
            if line.revoked {
                let _ = writeln!(out, "{REVOKED} * {} {key}", line.kind);
            }
            if is_revoked(&line.key) {
                continue;
            }
            for name in line.names.split(',') {
                let hashed = if name.starts_with(HASHED) {
                    Some(name.to_owned())
                } else {
                    let plain = !name.is_empty() && !name.contains(['*', '?', '!']);
                    plain.then(|| hash(name)).flatten()
                };
                if let Some(name) = hashed {
                    let _ = writeln!(out, "{name} {} {key}", line.kind);
                }
            }
        }
        out.into_bytes()
    }
}

impl KnownHost {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let first = words.next()?;
        let (mark, names) = if first.starts_with('@') {
            (first, words.next()?)
        } else {
            ("", first)
        };
        let (kind, key) = (words.next()?, words.next()?);
        if names.starts_with('#') || !matches!(mark, "" | REVOKED) {
            return None;
        }
        Some(Self {
            names: names.to_owned(),
            kind: kind.to_owned(),
            key: STANDARD.decode(key).ok()?,
            revoked: mark == REVOKED,
        })
    }

    /// Whether the line names this host. Patterns count for nothing: no name of one host could be derived from them.
    fn names(&self, name: &str) -> bool {
        self.names.split(',').any(|own| is_name_of(own, name))
    }
}

/// Whether a name as written, or its hash, is this one.
fn is_name_of(written: &str, name: &str) -> bool {
    match written.strip_prefix(HASHED) {
        Some(hashed) => is_hash_of(hashed, name).unwrap_or(false),
        None => written.eq_ignore_ascii_case(name),
    }
}

/// Returns the name under which a host at this port is written.
fn name_of(host: &str, port: u16) -> String {
    let host = host.trim_matches(['[', ']']).to_lowercase();
    if port == SSH {
        host
    } else {
        format!("[{host}]:{port}")
    }
}

fn is_hash_of(hashed: &str, name: &str) -> Option<bool> {
    let (salt, digest) = hashed.split_once('|')?;
    let salt = STANDARD.decode(salt).ok()?;
    let mut mac = Hmac::<Sha1>::new_from_slice(&salt).ok()?;
    mac.update(name.as_bytes());
    Some(mac.verify_slice(&STANDARD.decode(digest).ok()?).is_ok())
}

/// Hashes a name with a new salt.
fn hash(name: &str) -> Option<String> {
    let mut salt = [0; 20];
    getrandom::fill(&mut salt).ok()?;
    let mut mac = Hmac::<Sha1>::new_from_slice(&salt).ok()?;
    mac.update(name.to_lowercase().as_bytes());
    let digest = STANDARD.encode(mac.finalize().into_bytes());
    Some(format!("{HASHED}{}|{digest}", STANDARD.encode(salt)))
}

fn text_of(path: &Path) -> Option<String> {
    let file = File::open(path)
        .ok()
        .filter(|file| file.metadata().is_ok_and(|about| about.is_file()))?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{KnownHosts, STANDARD};
    use base64::Engine;

    /// The line of `gitlab.example.com` as `ssh-keygen -H` writes it is in the test itself, from the same code: `ssh` reads it in the
    /// test with a real server.
    #[test]
    fn a_key_is_known_for_the_hosts_that_its_lines_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("known_hosts");
        let key = |text: &str| STANDARD.encode(text);
        let text = format!(
            "# a comment\nexample.com,192.0.2.1 ssh-ed25519 {one} me@here\n[example.com]:2222 ssh-rsa {two}\n\
             *.example.org ssh-ed25519 {one}\n@cert-authority example.net ssh-ed25519 {one}\n@revoked * ssh-ed25519 {three}\n\
             example.edu ssh-ed25519 {three}\nbroken\nx ssh-ed25519 !!!\n",
            one = key("one"),
            two = key("two"),
            three = key("three"),
        );
        fs::write(&file, text).unwrap();
        let known = KnownHosts::read(&[
            folder.path().join("absent"),
            folder.path().to_owned(),
            file.clone(),
        ]);
        let hashed_file = folder.path().join("hashed");
        fs::write(&hashed_file, known.to_hashed()).unwrap();
        let text = fs::read_to_string(&hashed_file).unwrap();
        assert!(!text.contains("example"), "{text}");
        let revoked = format!("@revoked * ssh-ed25519 {}", key("three"));
        let with_key = text.lines().filter(|line| line.contains(&key("three")));
        assert_eq!(with_key.collect::<Vec<_>>(), [revoked]);
        let hashed = KnownHosts::read(&[hashed_file]);
        let all = |names: &[&str]| -> Vec<(String, u16)> {
            names.iter().map(|name| ((*name).to_owned(), 22)).collect()
        };
        let both = all(&["example.com", "192.0.2.1"]);
        // A pattern may stand for any host; the file that commands get has none.
        assert!(known.is_of_others(b"one", &both) && !hashed.is_of_others(b"one", &both));
        assert!(hashed.is_of_others(b"one", &all(&["example.com"])));
        for known in [&known, &hashed] {
            assert!(known.knows("192.0.2.1", 22) && !known.knows("192.0.2.1", 2222));
            for (host, port, key, expect) in [
                ("example.com", 22, "one", true),
                ("EXAMPLE.com", 22, "one", true),
                ("192.0.2.1", 22, "one", true),
                ("example.com", 2222, "two", true),
                ("example.com", 22, "two", false),
                ("example.com", 2222, "one", false),
                ("a.example.org", 22, "one", false),
                ("example.net", 22, "one", false),
                ("example.com.evil.net", 22, "one", false),
                ("other.com", 22, "one", false),
            ] {
                assert_eq!(
                    known.has(host, port, key.as_bytes()),
                    expect,
                    "{host}:{port} {key}"
                );
            }
        }
        assert!(!known.has("example.edu", 22, b"three"));
    }
}
