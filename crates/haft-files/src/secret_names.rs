//! `SecretNames`: the files that hold secrets, as far as their names show.
//!
//! The list works like a `.gitignore`: the last entry that matches decides, `!` exempts a name, a final `/` matches a folder
//! and everything in it. Unlike there, an entry without a final `/` matches only files: a folder named `credentials` may hold source
//! code. Matching is case-insensitive. A copy counts as its original: an entry that matches
//! `.npmrc` matches `.npmrc~`.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::glob::{Glob, GlobToken};
use super::paths::segments;
use super::texts::LowercaseTexts;

mod causes;
mod copies;

pub use causes::{NamedSecrets, SecretCauses};

/// Maximum length of an entry, in bytes.
const MAX_ENTRY: usize = 200;

/// The built-in entries, which come first. They exclude examples, code, public keys and files that packages and tests bring.
pub const SECRET_NAMES: &[&str] = &[
    // Keys and certificates.
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.p8",
    "*.jks",
    "*.keystore",
    "*.ppk",
    "*.kdbx",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "!*.pub",
    "!*pub.pem",
    "!*public.pem",
    "!*public.key",
    "!cacert.pem",
    "!ca-bundle.pem",
    // Login credentials of programs.
    "credentials*",
    "*credentials.json",
    "client_secret*.json",
    "*service-account*.json",
    "*service_account*.json",
    "*serviceaccount*.json",
    "*firebase-adminsdk*.json",
    "secrets.json",
    "secrets.toml",
    "secrets.yaml",
    "secrets.yml",
    ".secrets",
    "!*.enc",
    ".npmrc",
    ".pypirc",
    ".netrc",
    "_netrc",
    ".git-credentials",
    ".htpasswd",
    ".pgpass",
    ".my.cnf",
    ".s3cfg",
    ".boto",
    ".dockercfg",
    ".docker/config.json",
    ".terraformrc",
    ".vault-token",
    "kubeconfig",
    "*.kubeconfig",
    ".kube/config",
    "*.tfstate",
    "*.tfstate.backup",
    "*.tfvars",
    "*.tfvars.json",
    // Agents read code all the time.
    "!*.c",
    "!*.cc",
    "!*.cpp",
    "!*.cs",
    "!*.dart",
    "!*.ex",
    "!*.exs",
    "!*.go",
    "!*.h",
    "!*.html",
    "!*.java",
    "!*.js",
    "!*.jsx",
    "!*.kt",
    "!*.md",
    "!*.mjs",
    "!*.mts",
    "!*.php",
    "!*.py",
    "!*.rb",
    "!*.rs",
    "!*.rst",
    "!*.scala",
    "!*.svelte",
    "!*.swift",
    "!*.ts",
    "!*.tsx",
    "!*.vue",
    // Environment variables of programs.
    ".env",
    ".env.*",
    ".env-*",
    ".env_*",
    ".envrc",
    "*.env",
    "!.env.d.ts",
    // Examples of any of these.
    "!*.example",
    "!*.sample",
    "!*.template",
    "!*.tmpl",
    "!*.dist",
    "!*.defaults",
    "!*.schema",
    "!*.example.*",
    "!*.sample.*",
    "!*.template.*",
    "!example.env",
    "!sample.env",
    "!template.env",
    // Folders that hold little besides secrets.
    ".ssh/",
    ".gnupg/",
    ".aws/",
    ".azure/",
    ".config/gcloud/",
    "!.ssh/known_hosts",
    "!.ssh/*.pub",
    // Third-party code and test data.
    "!.git/",
    "!node_modules/",
    "!site-packages/",
    "!dist-packages/",
    "!vendor/",
    "!fixtures/",
    "!__fixtures__/",
    "!testdata/",
    "!test_data/",
];

/// The names of files that may hold secrets. Clones share the list.
#[derive(Clone)]
pub struct SecretNames {
    entries: Arc<[SecretNamePattern]>,
    /// Every path that they cover has one of these.
    texts: Arc<LowercaseTexts>,
}

/// A parsed entry.
#[derive(Debug, Clone)]
struct SecretNamePattern {
    /// The text as written.
    text: Box<str>,
    /// Whether it marks names as secret, or exempts them.
    secret: bool,
    /// Whether it matches folders, with everything in them.
    folder: bool,
    /// Whether it starts at the workspace's root.
    anchored: bool,
    /// The name pattern of each segment: the literals between its stars.
    names: Box<[Box<[Box<str>]>]>,
}

/// Why a text is not a valid entry of the list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read the secret name {entry:?}: {problem}")]
pub struct SecretNameError {
    /// The entry as written.
    pub entry: String,
    /// What is wrong, and the form that works.
    pub problem: &'static str,
}

impl Default for SecretNames {
    fn default() -> Self {
        let entries = SECRET_NAMES.iter().filter_map(|text| read(text).ok());
        Self::of(entries.collect())
    }
}

impl fmt::Debug for SecretNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries()).finish()
    }
}

impl SecretNames {
    /// Returns the list with more entries, which override those before them.
    ///
    /// # Errors
    /// [`SecretNameError`] names the first entry that cannot be parsed.
    ///
    /// ```
    /// use haft_files::secret_names::SecretNames;
    ///
    /// let names = SecretNames::default().with(["tokens/", "!public.key"])?;
    /// assert!(names.covers("config/.env.local") && names.covers("tokens/a.txt"));
    /// assert!(!names.covers(".env.example") && !names.covers("src/credentials.rs"));
    /// # Ok::<(), haft_files::secret_names::SecretNameError>(())
    /// ```
    pub fn with<'t>(
        &self,
        more: impl IntoIterator<Item = &'t str>,
    ) -> Result<Self, SecretNameError> {
        let mut entries = self.entries.to_vec();
        for text in more {
            entries.push(read(text)?);
        }
        Ok(Self::of(entries))
    }

    fn of(entries: Vec<SecretNamePattern>) -> Self {
        let texts = Arc::new(LowercaseTexts::new(
            entries.iter().flat_map(SecretNamePattern::texts),
        ));
        let entries = entries.into();
        Self { entries, texts }
    }

    /// Returns every entry as written, in order.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| &*entry.text)
    }

    /// Returns the entries after the built-in ones, in order, and whether each marks names as secret or exempts them.
    pub fn added(&self) -> impl Iterator<Item = (&str, bool)> {
        let added = self.entries.iter().skip(SECRET_NAMES.len());
        added.map(|entry| (&*entry.text, entry.secret))
    }

    /// Whether the name of a file at this path, in the form of a [`PathClaim`](haft_types::permission::PathClaim), marks it as secret.
    pub fn covers(&self, path: &str) -> bool {
        // A walk asks about every entry of a workspace.
        if !self.texts.are_in(path) {
            return false;
        }
        let parts = SegmentNames::all(path);
        let Some((_, folders)) = parts.split_last() else {
            return false;
        };
        decides(&self.entries, |entry| entry.fits_file(&parts, folders))
    }

    /// Whether everything in this folder is secret.
    pub fn covers_folder(&self, path: &str) -> bool {
        let parts = SegmentNames::all(path);
        decides(&self.entries, |entry| entry.folder && entry.holds(&parts))
    }

    /// Whether a path may be secret because of a part with this name.
    pub fn concern(&self, part: &str) -> bool {
        let parts = SegmentNames::all(part);
        let each = self.entries.iter().filter(|entry| entry.secret);
        let mut names = each.flat_map(|entry| entry.names.iter());
        names.any(|name| parts.iter().any(|part| part.fits(name)))
    }

    /// Returns texts of which every part of a path has one that may make it secret.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        self.entries.iter().flat_map(SecretNamePattern::texts)
    }

    /// Whether a secret may lie below this folder.
    pub fn may_lie_below(&self, path: &str) -> bool {
        let parts = SegmentNames::all(path);
        for entry in self.entries.iter().rev() {
            if entry.secret {
                return true;
            }
            if entry.folder && entry.holds(&parts) {
                return false;
            }
        }
        false
    }

    /// Returns the entry that a name with wildcards, in lower case, could match. A pattern for one extension (`*.rs`) could match an entry
    /// without wildcards or one for that extension; other secrets that it covers still need approval.
    pub fn matching_entry<'a>(&'a self, wild: &'a Glob) -> Option<&'a str> {
        let extension = wild.extension();
        if let Some(extension) = extension {
            if copies::is_ending(extension) {
                return Some("a copy of a file");
            }
            let named = [format!("x{extension}"), extension.to_owned()];
            if named.iter().any(|name| self.covers(name)) {
                return Some(extension);
            }
        }
        let means = |name: &[Box<str>]| {
            (extension.is_none() || name.len() == 1) && wild.overlaps(&as_glob(name))
        };
        let secret = self.entries.iter().filter(|entry| entry.secret);
        let mut met = secret.filter(|entry| entry.names.iter().any(|name| means(name)));
        met.next().map(|entry| &*entry.text)
    }
}

/// A segment of a path, with the names that it may be a copy of.
struct SegmentNames<'p> {
    name: &'p str,
    originals: Vec<Cow<'p, str>>,
}

impl<'p> SegmentNames<'p> {
    fn all(path: &'p str) -> Vec<Self> {
        let part = |name: &'p str| Self {
            name,
            originals: copies::originals(name),
        };
        segments(path).into_iter().map(part).collect()
    }

    /// Whether its name, or one that it may be a copy of, matches this name of an entry.
    fn fits(&self, name: &[Box<str>]) -> bool {
        let mut originals = self.originals.iter();
        fits(name, self.name.as_bytes()) || originals.any(|each| fits(name, each.as_bytes()))
    }
}

impl SecretNamePattern {
    /// Returns a text for each of its names, if it marks secrets. What matches the name, also as the original of a copy, has the text:
    /// it holds no dot, and only there are copies' names put together.
    fn texts(&self) -> impl Iterator<Item = String> {
        let names = self.names.iter().filter(|_| self.secret);
        names.map(|name| {
            let texts = name.iter().flat_map(|piece| piece.split('.'));
            let longest = texts.max_by_key(|text| text.len());
            longest.unwrap_or_default().to_owned()
        })
    }

    /// Whether it matches a file at a path of these segments, in these folders.
    fn fits_file(&self, parts: &[SegmentNames<'_>], folders: &[SegmentNames<'_>]) -> bool {
        if self.folder {
            self.holds(folders)
        } else {
            self.fits_end(parts)
        }
    }

    /// Whether a path of these segments ends in it.
    fn fits_end(&self, parts: &[SegmentNames<'_>]) -> bool {
        let Some(at) = parts.len().checked_sub(self.names.len()) else {
            return false;
        };
        (at == 0 || !self.anchored) && self.fits(&parts[at..])
    }

    /// Whether it matches one of these nested folders.
    fn holds(&self, folders: &[SegmentNames<'_>]) -> bool {
        let mut windows = folders.windows(self.names.len());
        if self.anchored {
            return windows.next().is_some_and(|first| self.fits(first));
        }
        windows.any(|window| self.fits(window))
    }

    fn fits(&self, parts: &[SegmentNames<'_>]) -> bool {
        let mut each = self.names.iter().zip(parts);
        each.all(|(name, part)| part.fits(name))
    }
}

/// Whether the last of the entries that match marks names as secret.
fn decides(entries: &[SecretNamePattern], matches: impl Fn(&SecretNamePattern) -> bool) -> bool {
    let last = entries.iter().rev().find(|entry| matches(entry));
    last.is_some_and(|entry| entry.secret)
}

/// Converts a name of an entry to a pattern in lower case.
fn as_glob(name: &[Box<str>]) -> Glob {
    let small = name.join("*").to_lowercase();
    let piece = |c| {
        if c == '*' {
            GlobToken::Star
        } else {
            GlobToken::Literal(c)
        }
    };
    Glob::from_pieces(small.chars().map(piece))
}

/// Whether a name contains these literals in order, the first at its start and the last at its end.
fn fits(pieces: &[Box<str>], name: &[u8]) -> bool {
    let Some((first, rest)) = pieces.split_first() else {
        return false;
    };
    let Some((last, middle)) = rest.split_last() else {
        return name.eq_ignore_ascii_case(first.as_bytes());
    };
    let Some(inner) = name.len().checked_sub(last.len()) else {
        return false;
    };
    let (body, end) = name.split_at(inner);
    let Some((start, mut body)) = body.split_at_checked(first.len()) else {
        return false;
    };
    if !start.eq_ignore_ascii_case(first.as_bytes()) || !end.eq_ignore_ascii_case(last.as_bytes()) {
        return false;
    }
    for piece in middle {
        let found = body
            .windows(piece.len().max(1))
            .position(|window| window.eq_ignore_ascii_case(piece.as_bytes()));
        let Some(at) = found else {
            return piece.is_empty();
        };
        body = &body[at + piece.len()..];
    }
    true
}

fn read(text: &str) -> Result<SecretNamePattern, SecretNameError> {
    let fail = |problem| {
        Err(SecretNameError {
            entry: text.chars().take(MAX_ENTRY).collect(),
            problem,
        })
    };
    if text.len() > MAX_ENTRY {
        return fail("it has more than 200 bytes");
    }
    let (rest, secret) = match text.strip_prefix('!') {
        Some(rest) => (rest, false),
        None => (text, true),
    };
    let (rest, anchored) = match rest.strip_prefix('/') {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let (rest, folder) = match rest.strip_suffix('/') {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    if rest.trim() != rest || rest.chars().any(char::is_control) {
        return fail("it begins or ends with a space, or contains a control character");
    }
    let mut names: Vec<Box<[Box<str>]>> = Vec::new();
    for part in rest.split('/') {
        if part.is_empty() || part == "." || part == ".." || part == "**" {
            return fail("write a name such as `.env.*`, `tokens/` or `deploy/*.json`");
        }
        if part.chars().all(|c| c == '*') {
            return fail("a lone `*` matches every file");
        }
        names.push(part.split('*').map(Into::into).collect());
    }
    Ok(SecretNamePattern {
        text: text.into(),
        secret,
        folder,
        anchored,
        names: names.into(),
    })
}

#[cfg(test)]
mod tests;
