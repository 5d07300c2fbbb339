//! A command line taken apart: every simple command it runs, wherever it stands, and every file its redirections name.
//!
//! The reader knows a small language exactly; docs/reference/shell-rules.md lists it. Everything else is unread.

use crate::builtin::{alters_shell, runs_quoted};
use crate::command::SimpleCommand;
use crate::each::Loop;
use crate::error::{LONGEST_LINE, ParseError, is_too_long};
use crate::parser::{self, TextParts};
#[cfg(feature = "grammar")]
use crate::tree;
use crate::variables::Variables;
use crate::walk::Inner;
use crate::word::Word;

/// Most different commands and targets of one line; a person could not judge more of them.
pub const MOST_PARTS: usize = 128;

/// Most text within substitutions that is read again, in bytes; nesting repeats it.
const MOST_INNER: usize = 4 * LONGEST_LINE;

/// What a line runs, writes and reads. What it does twice is there once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// Every simple command that the shell may start, wherever it is in the line.
    pub commands: Vec<SimpleCommand>,
    /// Files that redirections open for writing.
    pub writes: Vec<Word>,
    /// Files that redirections open for reading alone.
    pub reads: Vec<Word>,
    /// Loops over words, with what their variables are set to.
    pub loops: Vec<Loop>,
    /// Something in it may run more than once: in a loop or a function.
    pub repeats: bool,
    /// Something in it is started and not waited for.
    pub background: bool,
}

/// Takes a line apart. The cost is bounded for every text: its length and nesting are, and so is what the grammar may spend.
///
/// # Errors
/// The line is too long, too deep, has too many parts, or is not in the language that is read exactly.
pub fn parse(line: &str) -> Result<Line, ParseError> {
    if is_too_long(line) {
        return Err(ParseError::TooLong);
    }
    if line.contains('\0') {
        return Err(ParseError::Syntax("it holds a NUL"));
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
            return Err(ParseError::TooDeep);
        }
        let one = parser::read(&text, depth)?;
        if one.structured {
            second_reading(&text, &one)?;
        }
        inner.extend(one.inner);
        variables.add(&one.variables);
        add(&mut found.commands, one.commands);
        add(&mut found.writes, one.writes);
        add(&mut found.reads, one.reads);
        add(&mut found.loops, one.loops);
        found.repeats |= one.repeats;
        found.background |= one.background;
        if found.commands.len() + found.writes.len() + found.reads.len() > MOST_PARTS {
            return Err(ParseError::TooMany);
        }
    }
    variables.check()?;
    if found.commands.iter().any(|part| runs_quoted(&part.words)) {
        return Err(ParseError::Syntax(
            "a builtin may run what stands quoted among its words",
        ));
    }
    if variables.are_computed() && found.commands.iter().any(|part| alters_shell(&part.words)) {
        return Err(ParseError::Syntax(
            "arithmetic uses a variable that a builtin may set",
        ));
    }
    Ok(found)
}

/// Reads a text with the grammar of tree-sitter too.
#[cfg(feature = "grammar")]
fn second_reading(text: &str, found: &TextParts) -> Result<(), ParseError> {
    tree::agrees(text, found)
}

/// Without the grammar, no text with more than words and lists is read.
#[cfg(not(feature = "grammar"))]
fn second_reading(_: &str, _: &TextParts) -> Result<(), ParseError> {
    Err(ParseError::Syntax(
        "it holds more than words and lists, and this build has no grammar",
    ))
}

/// Adds what is not there yet: what a line does twice is judged once.
fn add<T: PartialEq>(to: &mut Vec<T>, more: Vec<T>) {
    for one in more {
        if !to.contains(&one) {
            to.push(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn loops_and_what_is_not_waited_for_are_noted() {
        for (line, repeats, background) in [
            ("ls", false, false),
            ("ls &", false, true),
            ("ls && ls", false, false),
            ("for f in a; do ls; done", true, false),
            ("while true; do ls & done", true, true),
            ("until false; do ls; done", true, false),
            ("f() { ls; }", true, false),
            ("ls $(ls &)", false, true),
            ("if true; then ls; fi", false, false),
        ] {
            let read = parse(line).unwrap();
            assert_eq!(
                (read.repeats, read.background),
                (repeats, background),
                "{line}"
            );
        }
        let read = parse("for f in a 'b c' *.d; do ls; done; for g; do ls; done").unwrap();
        let words = read.loops[0].words.iter().map(|word| word.text.as_str());
        assert_eq!(read.loops.len(), 1);
        assert_eq!(read.loops[0].name, "f");
        assert_eq!(words.collect::<Vec<_>>(), ["a", "b c", "*.d"]);
    }
}
