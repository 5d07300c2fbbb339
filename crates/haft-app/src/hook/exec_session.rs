//! `ExecSession`: the agent's session for which `haft exec` runs a command: what the session read counts for the command, and what the command
//! reads counts for the session; what a user allows for the session holds in all its commands. Where the agent's own shell would keep them,
//! variables and functions hold for the next command, too.

use std::sync::Arc;

use haft::call::ToolCall;
use haft::result::{Outcome, Status};
use haft::session::RunGroup;
use haft::shell_report::ShellReport;
use haft::untrusted::UntrustedSource;
use haft_builtins::command::is_standing_note;
use parking_lot::Mutex;

use crate::app::App;
use crate::hook::session_marks::SessionMarks;
use crate::hook::shell_state::ShellState;
use crate::hook::shell_state::given::GivenState;
use crate::hook::shell_state::stored::StoredState;
use crate::hook::unfollowed::is_unfollowed;
use crate::problem::Problem;
use crate::run::{RunHandle, RunOptions};
use crate::session_group;
use crate::session_group::identity::SessionIdentity;

/// An agent's session, as a command in the jail knows it.
#[derive(Debug)]
pub struct ExecSession {
    identity: SessionIdentity,
    group: Option<Arc<RunGroup>>,
    marks: SessionMarks,
    /// What the notes hold of the run's sources.
    noted: Mutex<Arc<[UntrustedSource]>>,
    shell: Option<SessionShell>,
}

/// What the session's shell holds, for one command.
#[derive(Debug)]
struct SessionShell {
    stored: StoredState,
    given: Mutex<GivenState>,
    report: Arc<ShellReport>,
}

impl ExecSession {
    /// Finds the session by the name that the hook gave `haft exec`. `keeps_shell` is whether variables and functions hold for its next
    /// command.
    ///
    /// # Errors
    /// No session has this name: no hook of haft has made it up.
    pub fn find(app: &App, name: &str, keeps_shell: bool) -> Result<Self, Problem> {
        let identity = SessionIdentity::find(app.home(), name).ok_or_else(|| {
            let what = format!("`{name}` is not the name of an agent's session");
            Problem::usage(what).advise("--session is for the lines that hooks write")
        })?;
        Ok(Self {
            identity,
            group: session_group::named(app.home(), name),
            marks: SessionMarks::named(app.home(), name),
            noted: Mutex::default(),
            shell: keeps_shell.then(|| SessionShell {
                stored: StoredState::named(app.home(), name),
                given: Mutex::default(),
                report: Arc::default(),
            }),
        })
    }

    /// Returns the options of a run for one command of the session.
    pub fn options(&self) -> RunOptions {
        RunOptions {
            client: Some(self.identity.client()),
            group: self.group.clone(),
            ..RunOptions::new("call")
        }
    }

    /// Returns what its shell holds; `None` if nothing holds for the next command.
    pub(super) fn shell_state(&self) -> Result<Option<ShellState>, Problem> {
        let state = self.shell.as_ref().map(|shell| shell.stored.read());
        state.transpose()
    }

    /// Returns the call of a command of the session, with what its shell holds.
    ///
    /// # Errors
    /// That cannot be read.
    pub fn call(
        &self,
        app: &App,
        words: &[String],
        folder: &str,
        background: bool,
    ) -> Result<ToolCall, Problem> {
        let (Some(shell), [line]) = (&self.shell, words) else {
            return Ok(app.exec_call(words, folder, background));
        };
        let given = GivenState::of(&shell.stored.read()?, line);
        let call = app.exec_call_with(given.line(line), folder, background, &given.env);
        *shell.given.lock() = given;
        Ok(call)
    }

    /// Returns where the shell of the command reports what it holds in the end, if the session keeps that.
    pub fn shell_report(&self) -> Option<Arc<ShellReport>> {
        Some(Arc::clone(&self.shell.as_ref()?.report))
    }

    /// Keeps what the shell of an ended command held for the session's next one. Returns the line that says what is not kept.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep_shell(&self, outcome: &Outcome) -> Result<Option<String>, Problem> {
        let Some(shell) = &self.shell else {
            return Ok(None);
        };
        // The same line made again returns the outcome, as long as it is the same call: with the same variables.
        let is_over = matches!(outcome.status, Status::Ok | Status::Error);
        if !is_over {
            return Ok(None);
        }
        let given = shell.given.lock().clone();
        shell.stored.take_up(&shell.report, &given)
    }

    /// Returns the line that says in which folder the agent's shell still is, if it does not follow a `cd` of the command that has run.
    pub fn unfollowed_folder(&self, words: &[String], outcome: &Outcome) -> Option<&'static str> {
        let [line] = words else { return None };
        let has_run = matches!(outcome.status, Status::Ok | Status::Error);
        let says = "your shell is still in the folder in which this line started: it follows a `cd FOLDER` only in a line of plain commands \
            joined by && or by ;. To work elsewhere, change the folder by a line of its own";
        (has_run && is_unfollowed(line)).then_some(says)
    }

    /// Takes out of an outcome what outcomes of the session have said already and holds for all its commands.
    pub fn without_known_notes(&self, mut outcome: Outcome) -> Outcome {
        let is_new = |note: &String| !is_standing_note(note) || self.marks.is_first(note);
        outcome.notes.retain(is_new);
        outcome
    }

    /// Has the run judged as one that has read what the session read.
    ///
    /// # Errors
    /// The notes of the session cannot be read.
    pub fn recall(&self, run: &RunHandle) -> Result<(), Problem> {
        self.marks.recall(run.session())?;
        *self.noted.lock() = run.session().untrusted();
        Ok(())
    }

    /// Notes for the session what the run has read by now.
    ///
    /// # Errors
    /// The notes cannot be written.
    pub fn note(&self, run: &RunHandle) -> Result<(), Problem> {
        let now = run.session().untrusted();
        let mut noted = self.noted.lock();
        if noted.len() == now.len() {
            return Ok(());
        }
        self.marks.note_read(&now)?;
        *noted = now;
        Ok(())
    }
}
