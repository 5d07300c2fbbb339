//! Reads one word as bash does: removes the quotes, records the expansions, and extracts substitutions to be read separately.

use std::ops::{BitOr, BitOrAssign, Range};

use crate::arithmetic;
use crate::dialects;
use crate::error::{MAX_DEPTH, ParseError};
use crate::escapes::{ansi_c, unescaped};
use crate::extent::{Bracket, end_of, end_of_ansi, end_of_backticks, end_of_single, is_arithmetic};
use crate::variables::Variables;
use crate::word::{Expansions, Word};

/// Maximum nesting in a text that is only searched.
const MAX_SEARCH_DEPTH: usize = 32;

/// A text within another text that a shell reads as commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct InnerText {
    pub(crate) text: String,
    pub(crate) depth: usize,
    /// Variables of the loops around it.
    pub(crate) within: Vec<String>,
    /// Variables that are set to a whole number where it stands.
    pub(crate) certain: Vec<String>,
    /// True if arithmetic uses what it prints, which must be a number.
    pub(crate) is_computed: bool,
}

/// A set of the features of a word that the shell may interpret.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Marks(u8);

impl Marks {
    /// The word has syntax that the shell interprets.
    pub(crate) const SYNTAX: Self = Self(1);
    /// The word has `=` outside quotes.
    pub(crate) const EQUALS: Self = Self(2);
    /// A backslash quotes something in the word.
    pub(crate) const ESCAPE: Self = Self(4);
    /// The word has a character that another shell, or a terminal, may interpret.
    pub(crate) const UNUSUAL: Self = Self(8);

    pub(crate) fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Marks {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Marks {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

/// A word with its position and marks.
#[derive(Debug, Clone)]
pub(crate) struct ReadWord {
    pub(crate) word: Word,
    /// The position of the word.
    pub(crate) span: Range<usize>,
    pub(crate) marks: Marks,
    /// The substitutions in the word, each with its placeholder for display.
    cuts: Vec<(Range<usize>, String)>,
}

impl ReadWord {
    /// Returns true if the word is only arithmetic from `at` on.
    pub(crate) fn is_arithmetic_from(&self, text: &str, at: usize) -> bool {
        let whole = self
            .cuts
            .first()
            .is_some_and(|(cut, _)| *cut == (at..self.span.end));
        whole && text[at..].starts_with("$((")
    }

    /// Returns true if the word is a single process substitution: one recorded substitution that spans the whole word,
    /// because quoted text may look like one.
    pub(crate) fn is_process(&self, text: &str) -> bool {
        let whole = self.cuts.first().is_some_and(|(cut, _)| *cut == self.span);
        whole && text[self.span.start..].starts_with(['<', '>'])
    }

    /// Appends the word as written, with placeholders for its substitutions.
    pub(crate) fn push_text(&self, text: &str, out: &mut String) {
        let mut from = self.span.start;
        for (cut, stand_in) in &self.cuts {
            out.push_str(&text[from..cut.start]);
            out.push_str(stand_in);
            from = cut.end;
        }
        out.push_str(&text[from..self.span.end]);
    }
}

/// A cursor over a text.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a property of its own that a text has or has not"
)]
pub(crate) struct Walk<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
    /// The nesting depth of the text itself.
    pub(crate) depth: usize,
    /// Variables of the loops around the cursor.
    pub(crate) within: Vec<String>,
    /// True if the text is only searched: what cannot be read exactly is skipped, and nothing is an error.
    tolerant: bool,
    /// True if a searched text ends within a quote, whose contents are in `inner`.
    pub(crate) ends_open: bool,
    /// The texts of substitutions.
    pub(crate) inner: Vec<InnerText>,
    /// True if the text has more than words and lists.
    pub(crate) structured: bool,
    /// True if another shell reads the text differently.
    pub(crate) ambiguous: bool,
    /// The text's use of variables.
    pub(crate) variables: Variables,
}

/// A word under construction.
#[derive(Debug, Default)]
struct Draft {
    text: String,
    expansions: Expansions,
    marks: Marks,
    cuts: Vec<(Range<usize>, String)>,
    start: usize,
    /// Unquoted characters that make a pattern or a brace list if the matching one follows.
    bracket: bool,
    brace: bool,
    list: bool,
}

impl Draft {
    fn mark(&mut self, holds: bool, mark: Marks) {
        if holds {
            self.marks |= mark;
        }
    }

    /// Returns true where a tilde is a home folder: at the start, and after `=` or `:`.
    fn takes_tilde(&self, text: &str, at: usize) -> bool {
        at == self.start || text[self.start..at].ends_with(['=', ':'])
    }
}

impl<'a> Walk<'a> {
    pub(crate) fn new(text: &'a str, depth: usize) -> Self {
        Self {
            text,
            at: 0,
            depth,
            within: Vec::new(),
            tolerant: false,
            ends_open: false,
            inner: Vec::new(),
            structured: false,
            ambiguous: false,
            variables: Variables::default(),
        }
    }

    /// Returns a walk that only searches the text.
    pub(crate) fn tolerant(self) -> Self {
        Self {
            tolerant: true,
            ..self
        }
    }

    /// Rejects the text, unless it is only searched.
    pub(crate) fn refuse(&self, why: &'static str) -> Result<(), ParseError> {
        if self.tolerant {
            return Ok(());
        }
        Err(ParseError::Syntax(why))
    }

    /// Returns the given end, or the end of the text if nothing closes in a text that is only searched.
    fn closed(&self, end: Result<usize, ParseError>) -> Result<usize, ParseError> {
        if self.tolerant {
            return Ok(end.unwrap_or(self.text.len()));
        }
        end
    }

    /// Searches the contents of an open quote for commands and drops the inner texts found since `known`. Bash does not run such a
    /// text, but the search must not miss a possible command.
    fn search_open_quote(&mut self, from: usize, known: usize) -> Result<(), ParseError> {
        self.refuse("an open quote")?;
        self.ends_open = true;
        self.inner.truncate(known);
        self.at = self.text.len();
        let rest = self.text.get(from..).unwrap_or_default();
        self.commands(rest.to_owned())
    }

    /// Returns the position after the closing character.
    fn after_closing(&self, end: usize) -> usize {
        (end + 1).min(self.text.len())
    }

    /// Returns whether texts within this one are read too.
    fn may_read_inner(&self) -> Result<bool, ParseError> {
        match (self.tolerant, self.depth) {
            (true, depth) => Ok(depth < MAX_SEARCH_DEPTH),
            (false, depth) if depth < MAX_DEPTH => Ok(true),
            (false, _) => Err(ParseError::TooDeep),
        }
    }

    pub(crate) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(crate) fn eat(&mut self, sign: &str) -> bool {
        let found = self.rest().starts_with(sign);
        if found {
            self.at += sign.len();
        }
        found
    }

    /// Reads the word that starts here; its text and span are empty if there is none.
    pub(crate) fn word(&mut self) -> Result<ReadWord, ParseError> {
        let mut draft = Draft {
            start: self.at,
            ..Draft::default()
        };
        let mut end = None;
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' => break,
                '<' | '>' if !self.rest()[1..].starts_with('(') => break,
                '<' | '>' => self.process(&mut draft)?,
                '\'' => self.single_quoted(&mut draft)?,
                '"' => self.double_quoted(&mut draft)?,
                '\\' if self.tolerant && self.eat("\\\n") => {}
                '\\' if self.rest().starts_with("\\\n") => {
                    end = Some(self.at);
                    self.skip_joined_lines()?;
                    break;
                }
                '\\' => self.read_escaped(&mut draft)?,
                '`' => self.backticks(&mut draft, false)?,
                '$' => self.dollar(&mut draft, false)?,
                c => self.push_unquoted(c, &mut draft),
            }
        }
        Ok(ReadWord {
            word: Word {
                text: draft.text,
                expansions: draft.expansions,
            },
            span: draft.start..end.unwrap_or(self.at),
            marks: draft.marks,
            cuts: draft.cuts,
        })
    }

    /// Skips joined lines after a word. Rejects a word that continues there: bash joins lines before it splits words, so joined
    /// words can mean something other than they appear to.
    fn skip_joined_lines(&mut self) -> Result<(), ParseError> {
        while self.eat("\\\n") {}
        match self.peek() {
            None | Some(' ' | '\t' | '\n' | ';' | '&' | '|' | ')') => Ok(()),
            Some(_) => Err(ParseError::Syntax("a line is joined within a word")),
        }
    }

    fn push_unquoted(&mut self, c: char, draft: &mut Draft) {
        match c {
            '*' | '?' => draft.expansions |= Expansions::GLOB | Expansions::SPLIT,
            '=' => draft.marks |= Marks::EQUALS,
            '[' => draft.bracket = true,
            ']' if draft.bracket => draft.expansions |= Expansions::GLOB | Expansions::SPLIT,
            '{' => draft.brace = true,
            ',' => draft.list |= draft.brace,
            '.' => draft.list |= draft.brace && draft.text.ends_with('.'),
            '}' if draft.list => draft.expansions |= Expansions::BRACE | Expansions::SPLIT,
            '~' if draft.takes_tilde(self.text, self.at) => {
                draft.expansions |= Expansions::TILDE;
                draft.marks |= Marks::SYNTAX;
            }
            _ => {}
        }
        let negates = c == '!' && draft.text.ends_with('[');
        self.ambiguous |= c == '!' && !negates && dialects::recalls(self.rest());
        self.ambiguous |= c == '{' && dialects::braces_differ(&draft.text, self.rest());
        draft.mark("*?[{}!".contains(c), Marks::SYNTAX);
        draft.mark(matches!(c, '^' | ']') || c.is_control(), Marks::UNUSUAL);
        draft.text.push(c);
        self.at += c.len_utf8();
    }

    fn read_escaped(&mut self, draft: &mut Draft) -> Result<(), ParseError> {
        draft.marks |= Marks::ESCAPE;
        self.at += 1;
        let Some(escaped) = self.peek() else {
            draft.text.push('\\');
            return self.refuse("a backslash at its end");
        };
        self.at += escaped.len_utf8();
        // To fish, this is a character by its number or name: `\x2f`, `\n`.
        self.ambiguous |= escaped.is_ascii_alphanumeric();
        draft.text.push(escaped);
        Ok(())
    }

    fn single_quoted(&mut self, draft: &mut Draft) -> Result<(), ParseError> {
        let from = self.at + 1;
        let Ok(end) = end_of_single(self.text, from) else {
            draft.text.push_str(&self.text[from..]);
            return self.search_open_quote(from, self.inner.len());
        };
        let inner = &self.text[from..end];
        draft.mark(inner.contains('\r'), Marks::UNUSUAL);
        draft.text.push_str(inner);
        self.at = end + 1;
        self.ambiguous |= dialects::quotes_differ(inner, self.rest());
        Ok(())
    }

    fn double_quoted(&mut self, draft: &mut Draft) -> Result<(), ParseError> {
        self.at += 1;
        let (from, known) = (self.at, self.inner.len());
        let (mut joined, mut expanded) = (false, false);
        loop {
            let Some(c) = self.peek() else {
                return self.search_open_quote(from, known);
            };
            expanded |= matches!(c, '`' | '$');
            draft.mark(c == '\\', Marks::ESCAPE);
            draft.mark(matches!(c, '!' | '\r'), Marks::UNUSUAL);
            self.ambiguous |= c == '!' && dialects::recalls(self.rest());
            match c {
                '"' => {
                    self.at += 1;
                    if joined && expanded {
                        self.refuse("a line is joined beside an expansion")?;
                    }
                    return Ok(());
                }
                '\\' => {
                    self.at += 1;
                    let Some(next) = self.peek() else {
                        continue;
                    };
                    self.at += next.len_utf8();
                    match next {
                        '\n' => joined = true,
                        '$' | '`' | '"' | '\\' => draft.text.push(next),
                        other => draft.text.extend(['\\', other]),
                    }
                }
                '`' => self.backticks(draft, true)?,
                '$' => self.dollar(draft, true)?,
                c => {
                    draft.text.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
    }

    /// Reads an expansion, starting at its `$`.
    fn dollar(&mut self, draft: &mut Draft, quoted: bool) -> Result<(), ParseError> {
        draft.marks |= Marks::SYNTAX;
        let start = self.at;
        let after = &self.text[start + 1..];
        self.ambiguous |= dialects::expands_more(after, quoted);
        match after.chars().next() {
            Some('(') => self.substitution(draft, quoted),
            Some('{') => self.braced(draft, quoted),
            Some('\'') if !quoted => {
                let Ok(end) = end_of_ansi(self.text, start + 2) else {
                    return self.search_open_quote(start + 2, self.inner.len());
                };
                let body = &self.text[start + 2..end];
                draft.text.push_str(&ansi_c(body, self.tolerant)?);
                self.at = end + 1;
                Ok(())
            }
            // Bash expands whatever the translation of `$"…"` contains.
            Some('"') if !quoted => {
                self.at += 1;
                self.refuse("a text to be translated, $\"…\"")
            }
            Some('[') => {
                self.at += 1;
                draft.text.push('$');
                self.refuse("arithmetic in $[…]")
            }
            Some(c) if c == '_' || c.is_ascii_alphabetic() => {
                let name = |c: char| c != '_' && !c.is_ascii_alphanumeric();
                let length = 1 + after.find(name).unwrap_or(after.len());
                draft.expansions |= Expansions::VALUE | split(quoted);
                draft.text.push_str(&self.text[start..start + length]);
                self.at += length;
                Ok(())
            }
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                draft.expansions |= Expansions::VALUE | split(quoted && !"@*".contains(c));
                draft.text.extend(['$', c]);
                self.at += 2;
                Ok(())
            }
            _ => {
                draft.text.push('$');
                self.at += 1;
                Ok(())
            }
        }
    }

    /// Reads `${…}`.
    fn braced(&mut self, draft: &mut Draft, quoted: bool) -> Result<(), ParseError> {
        let start = self.at;
        let end = match end_of_parameter(self.text, start + 2, quoted) {
            Err(_) if self.tolerant => {
                draft.text.push_str("${}");
                return self.search_open_quote(start + 2, self.inner.len());
            }
            end => end?,
        };
        let body = &self.text[start + 2..end];
        self.at = end + 1;
        draft.expansions |= Expansions::VALUE | split(quoted && !body.contains(['@', '*']));
        let shown = if self.tolerant {
            self.expansions(body, true)?;
            "${}".to_owned()
        } else {
            self.parameter(body)?
        };
        draft.text.push_str(&shown);
        draft.cuts.push((start..self.at, shown));
        Ok(())
    }

    /// Reads `$(…)`: a command, or arithmetic.
    fn substitution(&mut self, draft: &mut Draft, quoted: bool) -> Result<(), ParseError> {
        let start = self.at;
        let end = self.closed(end_of(self.text, start + 2, Bracket::Round))?;
        let body = &self.text[start + 2..end];
        self.at = self.after_closing(end);
        if body.starts_with('(') && !self.tolerant {
            if !is_arithmetic(body) {
                return Err(ParseError::Syntax("$(( that may be arithmetic or a group"));
            }
            draft.expansions |= Expansions::VALUE;
            let body = self.computed(body)?;
            arithmetic::read(&body, &mut self.variables)?;
        } else {
            draft.expansions |= Expansions::OUTPUT | split(quoted);
            self.commands(body.to_owned())?;
        }
        draft.text.push_str("$()");
        draft.cuts.push((start..self.at, "$()".to_owned()));
        Ok(())
    }

    /// Reads `<(…)` or `>(…)`.
    fn process(&mut self, draft: &mut Draft) -> Result<(), ParseError> {
        draft.marks |= Marks::SYNTAX;
        let start = self.at;
        let end = self.closed(end_of(self.text, start + 2, Bracket::Round))?;
        self.commands(self.text[start + 2..end].to_owned())?;
        self.at = self.after_closing(end);
        draft.expansions |= Expansions::OUTPUT;
        let shown = format!("{}()", &self.text[start..=start]);
        draft.text.push_str(&shown);
        draft.cuts.push((start..self.at, shown));
        Ok(())
    }

    fn backticks(&mut self, draft: &mut Draft, quoted: bool) -> Result<(), ParseError> {
        draft.marks |= Marks::SYNTAX;
        let start = self.at;
        let end = self.closed(end_of_backticks(self.text, start + 1))?;
        let body = &self.text[start + 1..end];
        self.ambiguous |= dialects::is_syntax_without_backticks(body);
        self.at = self.after_closing(end);
        // Within double quotes, an escaped quote belongs to the inner commands.
        if body.contains("\\\n") || (quoted && body.contains("\\\"")) {
            self.refuse("a joined line or a quote within backticks")?;
        }
        self.commands(unescaped(body))?;
        draft.expansions |= Expansions::OUTPUT | split(quoted);
        draft.text.push_str("$()");
        draft.cuts.push((start..self.at, "$()".to_owned()));
        Ok(())
    }

    /// Queues commands to be read separately.
    pub(crate) fn commands(&mut self, text: String) -> Result<(), ParseError> {
        if text.trim().is_empty() || !self.may_read_inner()? {
            return Ok(());
        }
        self.structured = true;
        self.inner.push(InnerText {
            text,
            depth: self.depth + 1,
            within: self.within.clone(),
            certain: self.variables.certain().to_vec(),
            is_computed: false,
        });
        Ok(())
    }

    /// Records what runs in a text that is not a word: the word in `${…}`, a here-document. It ignores quotes, so it also finds what
    /// is inside them.
    pub(crate) fn expansions(&mut self, text: &str, processes: bool) -> Result<(), ParseError> {
        if !text.contains(['$', '`', '<', '>']) || !self.may_read_inner()? {
            return Ok(());
        }
        let mut walk = Walk {
            tolerant: self.tolerant,
            within: self.within.clone(),
            ..Walk::new(text, self.depth + 1)
        };
        walk.variables
            .replace_certain(self.variables.certain().to_vec());
        let mut draft = Draft::default();
        while let Some(c) = walk.peek() {
            match c {
                // In a text that is only searched, an escaped expansion may run when bash reads it again.
                '\\' if !walk.tolerant => {
                    walk.at += 1;
                    walk.at += walk.peek().map_or(0, char::len_utf8);
                }
                '`' => walk.backticks(&mut draft, true)?,
                '$' if processes && walk.rest()[1..].starts_with('"') => {
                    walk.at += 1;
                    walk.refuse("a text to be translated, $\"…\"")?;
                }
                '$' => walk.dollar(&mut draft, true)?,
                '<' | '>' if processes && walk.rest()[1..].starts_with('(') => {
                    walk.process(&mut draft)?;
                }
                c => walk.at += c.len_utf8(),
            }
        }
        self.inner.append(&mut walk.inner);
        self.structured |= walk.structured;
        self.ambiguous |= walk.ambiguous;
        self.variables.add(&walk.variables);
        Ok(())
    }
}

/// Returns `SPLIT` for an unquoted expansion, whose value splits into words.
fn split(is_one: bool) -> Expansions {
    if is_one {
        Expansions::NONE
    } else {
        Expansions::SPLIT
    }
}

fn end_of_parameter(text: &str, from: usize, quoted: bool) -> Result<usize, ParseError> {
    let end = end_of(text, from, Bracket::Curly)?;
    if quoted && text[from..end].contains('\'') {
        return Err(ParseError::Syntax("a quote within ${…} within quotes"));
    }
    Ok(end)
}
