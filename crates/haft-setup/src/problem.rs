//! `Problem`: an error for the user in three parts: what happened, where, and what to do; with its kind.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use haft::audit::redact::Redactor;
use haft::audit::runs::{InvalidRunId, RunsError};

/// A place in a text that the user wrote: a settings file, a variable, an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLocation {
    /// The file as it is displayed, or the text of the variable or option.
    pub source: Arc<str>,
    /// The position; `None` if the source is not a file.
    pub spot: Option<SourcePosition>,
}

/// A position in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePosition {
    /// Line number, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// Number of characters that it covers; at least 1.
    pub width: usize,
    /// The line, without its line break; empty if it must not be shown. Places in one line share it.
    pub text: Arc<str>,
}

impl SourceLocation {
    /// Returns a place that is not in a file: `-c key=value`, a variable's name.
    pub fn named(source: impl AsRef<str>) -> Self {
        Self {
            source: source.as_ref().into(),
            spot: None,
        }
    }

    /// Returns the place of a file as a whole.
    pub fn file(path: &Path) -> Self {
        Self::named(path.display().to_string())
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.spot {
            Some(spot) => write!(f, "{}:{}:{}", self.source, spot.line, spot.column),
            None => f.write_str(&self.source),
        }
    }
}

/// The kind of a problem, from which a command derives its exit code and a server its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The request is wrong or impossible: an unknown name, malformed arguments, a request that is already decided.
    Usage,
    /// The settings or the policy are wrong.
    Settings,
    /// A rule, a guard or the user denies it, or the decision did not come in time.
    Denied,
    /// This machine failed to do it: a file, a database or a process.
    Failed,
}

/// An error of the application.
///
/// ```
/// use haft_setup::problem::{Problem, ProblemKind};
///
/// let problem = Problem::usage("no tool `raed_file`").advise("did you mean `read_file`?");
/// assert_eq!(problem.kind(), ProblemKind::Usage);
/// assert_eq!(problem.to_string(), "no tool `raed_file`");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem(Box<ProblemParts>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct ProblemParts {
    what: String,
    place: Option<SourceLocation>,
    advice: Option<String>,
    kind: ProblemKind,
}

impl Problem {
    /// Returns a problem of this kind.
    pub fn new(kind: ProblemKind, what: impl Into<String>) -> Self {
        Self(Box::new(ProblemParts {
            what: what.into(),
            place: None,
            advice: None,
            kind,
        }))
    }

    /// Returns a problem with the usage.
    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(ProblemKind::Usage, what)
    }

    fn no_such_run(error: &impl fmt::Display) -> Self {
        Self::usage(error.to_string()).advise("`haft runs list` shows them")
    }

    /// Returns a problem with the settings or the policy.
    pub fn settings(what: impl Into<String>) -> Self {
        Self::new(ProblemKind::Settings, what)
    }

    /// Returns a problem with something that this machine could not do.
    pub fn failed(what: impl Into<String>) -> Self {
        Self::new(ProblemKind::Failed, what)
    }

    /// Adds where it happened.
    pub fn at(mut self, place: SourceLocation) -> Self {
        self.0.place = Some(place);
        self
    }

    /// Adds what to do about it.
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.0.advice = Some(advice.into());
        self
    }

    /// Redacts secrets.
    pub fn redacted(mut self, redactor: &Redactor) -> Self {
        self.0.what = redactor.redact(&self.0.what).into_owned();
        if let Some(advice) = &mut self.0.advice {
            *advice = redactor.redact(advice).into_owned();
        }
        self
    }

    /// Returns its kind, from which the exit code follows.
    pub fn kind(&self) -> ProblemKind {
        self.0.kind
    }

    /// Returns what happened, without place and advice.
    pub fn what(&self) -> &str {
        &self.0.what
    }

    /// Returns where it is: in a file, with the position, or in a variable or an option.
    pub fn place(&self) -> Option<&SourceLocation> {
        self.0.place.as_ref()
    }

    /// Returns what to do about it.
    pub fn advice(&self) -> Option<&str> {
        self.0.advice.as_deref()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.what)?;
        if let Some(place) = &self.0.place {
            write!(f, " ({place})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}

/// The record of a run that was named cannot be read.
impl From<RunsError> for Problem {
    fn from(error: RunsError) -> Self {
        match error {
            RunsError::BadId(id) => id.into(),
            RunsError::NotFound(_) => Self::no_such_run(&error),
            RunsError::Io { .. } => Self::failed(error.to_string()),
        }
    }
}

impl From<InvalidRunId> for Problem {
    fn from(error: InvalidRunId) -> Self {
        Self::no_such_run(&error)
    }
}
