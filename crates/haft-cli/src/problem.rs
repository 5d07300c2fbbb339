//! `Problem`: an error for a person in three parts: what happened, where, what to do.

use std::fmt;
use std::path::Path;

use haft::audit::redact::Redactor;

use crate::exit::Exit;

/// A spot in a text somebody wrote: a settings file, a variable, an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The file as it should be shown, or the variable's or option's own text.
    pub(crate) source: String,
    /// Line and column from 1, and the line itself; `None` where the source is no file.
    pub(crate) spot: Option<Spot>,
}

/// Where in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spot {
    /// From 1.
    pub(crate) line: usize,
    /// From 1, in characters.
    pub(crate) column: usize,
    /// How many characters are meant; at least 1.
    pub(crate) width: usize,
    /// The line, without its end; empty where it is not to be shown.
    pub(crate) text: String,
}

impl Place {
    /// Somewhere that is not a file: `-c key=value`, a variable's name.
    pub(crate) fn named(source: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            spot: None,
        }
    }

    /// The bytes `range` of `text`, which was read from `source`.
    pub(crate) fn in_text(source: &str, text: &str, range: std::ops::Range<usize>) -> Self {
        let start = floor(text, range.start);
        let end = floor(text, range.end.max(range.start));
        let head = &text[..start];
        let begin = head.rfind('\n').map_or(0, |at| at + 1);
        let line_text = text[begin..].lines().next().unwrap_or_default();
        let here = text[start..end].lines().next().unwrap_or_default();
        Self {
            source: source.to_owned(),
            spot: Some(Spot {
                line: head.matches('\n').count() + 1,
                column: text[begin..start].chars().count() + 1,
                width: here.chars().count().max(1),
                text: line_text.to_owned(),
            }),
        }
    }

    /// The same without the line's text.
    pub(crate) fn without_quote(mut self) -> Self {
        if let Some(spot) = &mut self.spot {
            spot.text.clear();
        }
        self
    }

    /// The place of a file as a whole.
    pub(crate) fn file(path: &Path) -> Self {
        Self::named(path.display().to_string())
    }
}

/// The nearest character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.spot {
            Some(spot) => write!(f, "{}:{}:{}", self.source, spot.line, spot.column),
            None => f.write_str(&self.source),
        }
    }
}

/// What went wrong, for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem(Box<Parts>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Parts {
    what: String,
    place: Option<Place>,
    advice: Option<String>,
    exit: Exit,
}

impl Problem {
    /// Something that ends the command with this code.
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            what: what.into(),
            place: None,
            advice: None,
            exit,
        }))
    }

    /// Wrong usage: 2.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::new(Exit::Usage, what)
    }

    /// Wrong settings or policy: 5.
    pub(crate) fn settings(what: impl Into<String>) -> Self {
        Self::new(Exit::Settings, what)
    }

    /// Something this machine could not do: 1.
    pub(crate) fn failed(what: impl Into<String>) -> Self {
        Self::new(Exit::Failed, what)
    }

    /// Adds where.
    pub(crate) fn at(mut self, place: Place) -> Self {
        self.0.place = Some(place);
        self
    }

    /// Adds what to do.
    pub(crate) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.0.advice = Some(advice.into());
        self
    }

    /// The same without secrets.
    pub(crate) fn redacted(mut self, redactor: &Redactor) -> Self {
        self.0.what = redactor.redact(&self.0.what).into_owned();
        if let Some(advice) = &mut self.0.advice {
            *advice = redactor.redact(advice).into_owned();
        }
        self
    }

    /// The exit code.
    pub(crate) fn exit(&self) -> Exit {
        self.0.exit
    }

    /// What happened, alone.
    pub(crate) fn what(&self) -> &str {
        &self.0.what
    }

    /// Where.
    pub(crate) fn place(&self) -> Option<&Place> {
        self.0.place.as_ref()
    }

    /// What to do.
    pub(crate) fn advice(&self) -> Option<&str> {
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
