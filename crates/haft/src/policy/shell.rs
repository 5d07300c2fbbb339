//! A command line taken apart: every simple command it runs, wherever it stands, and every file its redirections name.
//!
//! The reader knows a small language exactly; docs/reference/shell-rules.md lists it. Everything else is unread.

use std::rc::Rc;

use super::builtin::{runs_quoted, unsettles};
use super::words::LONGEST_LINE;

mod arithmetic;
mod compound;
mod condition;
mod escapes;
mod extent;
mod grammar;
mod lexer;
mod parameter;
mod remembered;
mod tree;
mod variables;
mod word;

use variables::Variables;

pub(crate) use remembered::remember;
pub(crate) use word::Open;

/// Deepest nesting that is followed, of groups, substitutions and compound commands together: clause 16 of the shell rules.
const DEEPEST: usize = 16;

/// Most different commands and targets of one line; a person could not judge more of them.
const MOST_PARTS: usize = 128;

/// Most text within substitutions that is read again, in bytes; nesting repeats it.
const MOST_INNER: usize = 4 * LONGEST_LINE;

/// Why a line is not taken apart: it is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unread {
    #[error("the command line is longer than 10,000 characters")]
    TooLong,
    #[error("the command line is nested deeper than 16")]
    TooDeep,
    #[error("the command line has too many parts to be judged one by one")]
    TooMany,
    #[error("the command line cannot be read: {0}")]
    Syntax(&'static str),
    #[error("two readings of the command line differ")]
    Doubtful,
}

/// One word of a command, with quotes undone; what is only known at run time stands as it is written, `$()` for a substitution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) open: Open,
}

/// A word of a command: one of a line, or one that is given as it is.
pub(crate) trait AsWord {
    /// The word, as `Word::text`.
    fn text(&self) -> &str;
    /// What of it is only known at run time.
    fn open(&self) -> Open;
    /// Is all of it known?
    fn is_known(&self) -> bool {
        self.open().is_nothing()
    }
}

impl AsWord for Word {
    fn text(&self) -> &str {
        &self.text
    }

    fn open(&self) -> Open {
        self.open
    }
}

impl AsWord for String {
    fn text(&self) -> &str {
        self
    }

    fn open(&self) -> Open {
        Open::NOTHING
    }
}

/// One simple command. Its substitutions are commands of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Simple {
    /// Variables set before it, or by it alone where it has no words.
    pub(crate) assigned: Vec<String>,
    pub(crate) words: Vec<Word>,
    /// As it is written, without redirections and without what its substitutions run.
    pub(crate) shown: String,
}

impl Simple {
    /// Its words, where all of them are known and nothing is set before it.
    pub(crate) fn argv(&self) -> Option<Vec<String>> {
        let known = self.assigned.is_empty()
            && !self.words.is_empty()
            && self.words.iter().all(AsWord::is_known);
        known.then(|| self.words.iter().map(|word| word.text.clone()).collect())
    }
}

/// What a line runs, writes and reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) parts: Vec<Simple>,
    /// Files that redirections open for writing.
    pub(crate) writes: Vec<Word>,
    /// Files that redirections open for reading alone.
    pub(crate) reads: Vec<Word>,
}

/// Takes a line apart, once a judgement. Its cost is bounded: the length and the nesting are, and what the grammar may spend.
pub(crate) fn take_apart(line: &str) -> Result<Rc<Line>, Unread> {
    remembered::once(line, || read(line))
}

fn read(line: &str) -> Result<Line, Unread> {
    if line.len() > LONGEST_LINE && line.chars().count() > LONGEST_LINE {
        return Err(Unread::TooLong);
    }
    if line.contains('\0') {
        return Err(Unread::Syntax("it holds a NUL"));
    }
    let mut found = Line::default();
    let mut inner = vec![Inner {
        text: line.to_owned(),
        depth: 0,
    }];
    let mut variables = Variables::default();
    let (mut at, mut read) = (0, 0);
    while let Some(next) = inner.get_mut(at) {
        let Inner { text, depth } = std::mem::take(next);
        at += 1;
        read += text.len();
        if read > line.len() + MOST_INNER {
            return Err(Unread::TooDeep);
        }
        let one = grammar::read(&text, depth)?;
        if one.structured {
            tree::agrees(&text, &one)?;
        }
        inner.extend(one.inner);
        variables.add(&one.variables);
        add(&mut found.parts, one.parts);
        add(&mut found.writes, one.writes);
        add(&mut found.reads, one.reads);
        if found.parts.len() + found.writes.len() + found.reads.len() > MOST_PARTS {
            return Err(Unread::TooMany);
        }
    }
    variables.check()?;
    if found.parts.iter().any(|part| runs_quoted(&part.words)) {
        return Err(Unread::Syntax(
            "a builtin may run what stands quoted among its words",
        ));
    }
    if variables.are_computed() && found.parts.iter().any(|part| unsettles(&part.words)) {
        return Err(Unread::Syntax(
            "arithmetic uses a variable that a builtin may set",
        ));
    }
    Ok(found)
}

/// Adds what is not there yet: what a line does twice is judged once.
fn add<T: PartialEq>(to: &mut Vec<T>, more: Vec<T>) {
    for one in more {
        if !to.contains(&one) {
            to.push(one);
        }
    }
}

/// Text that a shell reads as commands within other text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Inner {
    text: String,
    depth: usize,
}
