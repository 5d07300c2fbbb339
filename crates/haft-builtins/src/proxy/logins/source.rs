//! `SourceProgram`: the program of the host that prints a credential: started for one command, outside of the jail, never by a shell.

use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use haft_sandbox::{HostProgram, Places};

use super::{Credential, HTTPS, LoginForm};

/// Maximum size of what a program prints, in bytes.
const MAX_PRINTED: usize = 16 << 10;
/// Variables that keep programs from asking a user: nobody would see their windows.
const QUIET: [(&str, &str); 5] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    ("SSH_ASKPASS", ""),
    ("GCM_INTERACTIVE", "never"),
    ("GH_PROMPT_DISABLED", "1"),
];

/// A program of this machine, with its arguments and variables.
#[derive(Clone)]
pub struct SourceProgram {
    /// Where it lies, or why it is not started.
    pub path: Result<PathBuf, String>,
    /// Its name and its arguments.
    pub argv: Vec<String>,
    /// What a user is shown of them. Requests are recorded, and words that the user wrote may hold anything.
    pub shown: String,
    /// Its variables: the user's own.
    pub variables: Vec<(String, String)>,
    /// What it does not find: what tools may change.
    pub places: Places,
}

impl fmt::Debug for SourceProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceProgram")
            .field("shown", &self.shown)
            .finish_non_exhaustive()
    }
}

impl SourceProgram {
    /// Returns what it prints. The error says why it printed nothing, to follow its words; it never holds what was printed.
    pub(super) async fn ask(
        &self,
        credential: &Credential,
        path: &str,
        limit: Duration,
    ) -> Result<Vec<u8>, String> {
        let (program, question) = (self.clone(), question(credential, path));
        let at = self.path.clone()?;
        let asked = tokio::task::spawn_blocking(move || program.run(&at, question, limit));
        match asked.await {
            Ok(Ok(printed)) if printed.len() >= MAX_PRINTED => {
                Err(format!("printed {MAX_PRINTED} bytes or more"))
            }
            Ok(Ok(printed)) => Ok(printed),
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::TimedOut => Err(format!(
                "did not end within {} s: it may be waiting for an answer; run it once in a terminal",
                limit.as_secs()
            )),
            Ok(Err(error)) => Err(format!(
                "gave no credential: {error}; run it once in a terminal to log in (started by haft, it finds no file that commands may change)"
            )),
            Err(_) => Err("could not be started".to_owned()),
        }
    }

    /// Runs it in the root folder: no settings of the workspace are its own.
    fn run(&self, at: &Path, question: Vec<u8>, limit: Duration) -> std::io::Result<Vec<u8>> {
        let name = self.argv.first().map_or("", String::as_str);
        let own = self.variables.iter();
        let own = own.map(|(name, value)| (name.as_str(), value.as_str()));
        HostProgram::new(at, name)
            .with_arguments(self.argv.iter().skip(1))
            .with_variables(own.chain(QUIET))
            .with_question(question, &self.places)
            .output(limit, MAX_PRINTED)
    }
}

/// Returns what the program reads: git's question for a login (git-credential(1)), or nothing.
fn question(credential: &Credential, path: &str) -> Vec<u8> {
    if !matches!(credential.form, LoginForm::Git) {
        return Vec::new();
    }
    let port = match credential.port {
        HTTPS => String::new(),
        other => format!(":{other}"),
    };
    let host = &credential.host;
    let mut question = format!("protocol=https\nhost={host}{port}\n");
    if let Some(repository) = repository(path) {
        let _ = writeln!(question, "path={repository}");
    }
    question.push('\n');
    question.into_bytes()
}

/// Returns the repository that a request is for, if its path is one of git's or git-lfs's and plain.
pub(super) fn repository(path: &str) -> Option<&str> {
    let path = path.split('?').next()?.strip_prefix('/')?;
    let ends = ["/info/refs", "/git-upload-pack", "/git-receive-pack"];
    let mut ends = ends.iter();
    let repository = ends.find_map(|end| path.strip_suffix(end));
    let repository = repository.or_else(|| Some(path.split_once("/info/lfs/")?.0))?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    repository.bytes().all(plain).then_some(repository)
}

#[cfg(test)]
mod tests {
    use super::repository;

    #[test]
    fn git_is_told_the_repository_of_a_plain_path() {
        for (path, expect) in [
            (
                "/ann/x.git/info/refs?service=git-receive-pack",
                Some("ann/x.git"),
            ),
            ("/ann/x/git-receive-pack", Some("ann/x")),
            ("/ann/x.git/info/lfs/objects/batch", Some("ann/x.git")),
            ("/ann/x.git", None),
            ("/a%0apassword=x/info/refs", None),
            ("/a\nhost=x/info/refs", None),
        ] {
            assert_eq!(repository(path), expect, "{path}");
        }
    }
}
