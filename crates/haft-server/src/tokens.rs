//! `TokenFile`: the call token and the operator's token, each in a file that only its owner can read.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use haft_app::home::Home;
use haft_app::plain_file;
use haft_app::problem::{Problem, SourceLocation};

/// 256 bits from the operating system's randomness.
const TOKEN_BYTES: usize = 32;

/// A token and the file that stores it.
#[derive(Debug)]
pub(crate) struct TokenFile {
    pub(crate) path: PathBuf,
    secret: Secret,
    /// Whether an old token was replaced because others could have read it.
    pub(crate) replaced: bool,
}

struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

impl TokenFile {
    /// Opens or creates the call token, which may list and call.
    pub(crate) fn call(home: &Home) -> Result<Self, Problem> {
        Self::open(home.join("token"))
    }

    /// Opens or creates the operator's token, which may also read other runs and decide.
    pub(crate) fn operator(home: &Home) -> Result<Self, Problem> {
        Self::open(home.join("operator-token"))
    }

    /// Returns the token itself.
    pub(crate) fn secret(&self) -> &str {
        &self.secret.0
    }

    fn open(path: PathBuf) -> Result<Self, Problem> {
        let to_problem = |e: std::io::Error| {
            Problem::settings(format!("cannot store a token: {e}"))
                .at(SourceLocation::file(&path))
                .advise("haft must own the file and its folder; move the file away")
        };
        let mut replaced = false;
        if path.symlink_metadata().is_ok() {
            if let Some(token) = read_private_token(&path).map_err(to_problem)? {
                return Ok(Self {
                    secret: Secret(token),
                    path,
                    replaced,
                });
            }
            replaced = true;
            fs::remove_file(&path).map_err(to_problem)?;
        }
        let token = plain_file::random_hex(TOKEN_BYTES).map_err(to_problem)?;
        match place(&path, &token) {
            Ok(()) => {}
            // Another haft process was faster: its token counts.
            Err(e) if e.kind() == ErrorKind::AlreadyExists => return Self::open(path),
            Err(e) => return Err(to_problem(e)),
        }
        Ok(Self {
            secret: Secret(token),
            path,
            replaced,
        })
    }
}

/// Returns the token in a file that no other user can have read or written; `None` for any other file.
fn read_private_token(path: &Path) -> std::io::Result<Option<String>> {
    let meta = path.symlink_metadata()?;
    let private = meta.is_file() && meta.mode().trailing_zeros() >= 6;
    let ours = meta.uid() == rustix::process::geteuid().as_raw();
    if !private || !ours {
        return Ok(None);
    }
    let text = plain_file::read(path, 4096)?;
    let token = text.trim();
    let long_enough = token.len() >= TOKEN_BYTES && token.bytes().all(|b| b.is_ascii_graphic());
    Ok(long_enough.then(|| token.to_owned()))
}

/// Creates the file with its whole content, unless it exists.
fn place(path: &Path, token: &str) -> std::io::Result<()> {
    let draft = path.with_extension(format!("new-{}", plain_file::random_hex(8)?));
    plain_file::create_private(&draft, token)?;
    let linked = fs::hard_link(&draft, path);
    fs::remove_file(&draft)?;
    linked
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::TokenFile;

    #[test]
    fn a_token_is_made_once_and_thrown_away_when_others_could_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let first = TokenFile::open(path.clone()).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(first.secret().len(), 64);
        let again = TokenFile::open(path.clone()).unwrap();
        assert_eq!(again.secret(), first.secret());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let fresh = TokenFile::open(path.clone()).unwrap();
        assert!(fresh.replaced && fresh.secret() != first.secret());
        std::fs::write(&path, "short").unwrap();
        assert!(TokenFile::open(path).unwrap().replaced);
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }
}
