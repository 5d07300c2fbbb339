//! `ExecSession`: the agent's session for which `haft exec` runs a command: what the session read counts for the command, and what the command
//! reads counts for the session.

use std::sync::Arc;

use haft::untrusted::UntrustedSource;
use parking_lot::Mutex;

use crate::app::App;
use crate::hook::session_marks::SessionMarks;
use crate::problem::Problem;
use crate::run::RunHandle;

/// An agent's session, as a command in the jail knows it.
#[derive(Debug)]
pub struct ExecSession {
    marks: SessionMarks,
    /// What the notes hold of the run's sources.
    noted: Mutex<Arc<[UntrustedSource]>>,
}

impl ExecSession {
    /// Finds the session by the name that the hook gave `haft exec`.
    ///
    /// # Errors
    /// It is no such name.
    pub fn find(app: &App, name: &str) -> Result<Self, Problem> {
        if !SessionMarks::is_name(name) {
            let what = format!("`{name}` is not the name of an agent's session");
            return Err(Problem::usage(what).advise("--session is for the lines that hooks write"));
        }
        Ok(Self {
            marks: SessionMarks::named(app.home(), name),
            noted: Mutex::default(),
        })
    }

    /// Has the run judged as one that has read what the session read.
    ///
    /// # Errors
    /// The notes of the session cannot be read.
    pub fn recall(&self, run: &RunHandle) -> Result<(), Problem> {
        run.session().note_untrusted(self.marks.sources()?);
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
