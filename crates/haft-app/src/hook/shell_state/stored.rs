//! `StoredState`: a session's shell state on disk, where each command of the session finds it: every command is a process of its own.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use haft::shell_report::ShellReport;

use crate::hook::shell_state::ShellState;
use crate::hook::shell_state::given::GivenState;
use crate::hook::shell_state::report::ParsedReport;
use crate::hook::shell_state::{MAX_FUNCTIONS, MAX_VARIABLES};
use crate::plain_file;
use crate::problem::Problem;
use crate::session_group;

/// Maximum size of the file, in bytes: JSON may write six for one.
const MAX_BYTES: u64 = 8 * (MAX_VARIABLES + MAX_FUNCTIONS) as u64;

/// What the agent reads where a shell did not report as haft has it report.
const NO_REPORT: &str = "not kept for the next command: the variables and functions that this line set, which are too long or could not be read";

/// The shell state of a session, on disk.
#[derive(Debug)]
pub(crate) struct StoredState {
    path: PathBuf,
}

impl StoredState {
    /// The state of the session with this name, as the hook gave it to the command.
    pub(crate) fn named(home: &Path, name: &str) -> Self {
        Self {
            path: session_group::file(home, name, "shell"),
        }
    }

    /// Reads the state.
    ///
    /// # Errors
    /// The file is there and cannot be read: a command must not run as though nothing was set.
    pub(crate) fn read(&self) -> Result<ShellState, Problem> {
        let text = match plain_file::read(&self.path, MAX_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(ShellState::default()),
            Err(error) => return Err(self.unreadable(&error)),
        };
        serde_json::from_str(&text).map_err(|error| self.unreadable(&error.into()))
    }

    /// Takes up what the shell of a line reported, and returns the line that says what is not kept.
    ///
    /// # Errors
    /// The state cannot be read or written.
    pub(crate) fn take_up(
        &self,
        report: &ShellReport,
        given: &GivenState,
    ) -> Result<Option<String>, Problem> {
        let Some(bytes) = report.take() else {
            return Ok(None);
        };
        let Some(parsed) = ParsedReport::parse(&bytes) else {
            return Ok(ParsedReport::is_begun(&bytes).then(|| NO_REPORT.to_owned()));
        };
        let folder = self.path.parent().unwrap_or(Path::new("."));
        plain_file::private_folder(folder).map_err(|error| self.unwritable(&error))?;
        // Commands that the agent runs at the same time each add what they changed.
        let _lock = plain_file::lock_folder(folder).map_err(|error| self.unwritable(&error))?;
        let before = self.read()?;
        let change = parsed.change(before.clone(), given);
        if change.state != before {
            self.write(&change.state)
                .map_err(|error| self.unwritable(&error))?;
        }
        Ok(change.notice())
    }

    fn write(&self, state: &ShellState) -> io::Result<()> {
        if state.is_empty() {
            return std::fs::remove_file(&self.path);
        }
        plain_file::write_private(&self.path, &serde_json::to_string(state)?)
    }

    fn unreadable(&self, error: &io::Error) -> Problem {
        let path = self.path.display();
        Problem::failed(format!(
            "cannot read the variables of the agent's session in {path}: {error}"
        ))
        .advise(
            "remove that file: the session's commands then start without variables of earlier ones",
        )
    }

    fn unwritable(&self, error: &io::Error) -> Problem {
        let path = self.path.display();
        Problem::failed(format!(
            "cannot keep the variables of the agent's session in {path}: {error}"
        ))
        .advise("make the state folder writable; if it keeps failing, run `haft doctor`")
    }
}
