//! Reads one word as bash does: quotes undone, and what the shell would expand in it noted and taken out for reading.

use std::ops::{BitOr, BitOrAssign, Range};

use super::extent::{Bracket, end_of, end_of_ansi, end_of_backticks, end_of_single, is_arithmetic};
use super::{DEEPEST, Inner, Unread, Word};
use crate::policy::wrapper::is_assignment;

/// What of a word is only known at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Open(u8);

impl Open {
    pub(crate) const NOTHING: Self = Self(0);
    /// A variable, or arithmetic.
    pub(crate) const VALUE: Self = Self(1);
    /// What a command prints.
    pub(crate) const PRINTED: Self = Self(2);
    /// Names of files.
    pub(crate) const GLOB: Self = Self(4);
    /// `{a,b}`.
    pub(crate) const BRACE: Self = Self(8);
    /// A home folder.
    pub(crate) const TILDE: Self = Self(16);
    /// `name=(…)`.
    pub(crate) const ARRAY: Self = Self(32);

    pub(crate) fn is_nothing(self) -> bool {
        self == Self::NOTHING
    }

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Open {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Open {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

/// A word as it was read.
#[derive(Debug, Clone)]
pub(super) struct ReadWord {
    pub(super) word: Word,
    /// Where it stands.
    pub(super) span: Range<usize>,
    /// Substitutions in it, and what stands for each when the word is shown.
    cuts: Vec<(Range<usize>, String)>,
}

impl ReadWord {
    /// As it is written, but for what its substitutions run.
    pub(super) fn shown(&self, text: &str, out: &mut String) {
        let mut from = self.span.start;
        for (cut, stand_in) in &self.cuts {
            out.push_str(&text[from..cut.start]);
            out.push_str(stand_in);
            from = cut.end;
        }
        out.push_str(&text[from..self.span.end]);
    }
}

/// Walks over a text.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    /// How deep the text itself lies.
    pub(super) depth: usize,
    /// What substitutions run.
    pub(super) inner: Vec<Inner>,
    /// Something was met that is more than words and lists of them.
    pub(super) structured: bool,
    in_array: bool,
}

/// A word that is being read.
#[derive(Debug)]
struct Draft {
    text: String,
    open: Open,
    cuts: Vec<(Range<usize>, String)>,
    start: usize,
    /// Unquoted signs that make a pattern or a list of names when another follows.
    bracket: bool,
    brace: bool,
    list: bool,
}

impl Draft {
    fn takes_array(&self, text: &str, at: usize) -> bool {
        let raw = &text[self.start..at];
        raw.ends_with('=') && is_assignment(raw)
    }

    /// Where a tilde is a home folder: at the start, and behind a sign of assignments.
    fn takes_tilde(&self, text: &str, at: usize) -> bool {
        at == self.start || text[self.start..at].ends_with(['=', ':'])
    }
}

impl<'a> Walk<'a> {
    pub(super) fn new(text: &'a str, depth: usize) -> Self {
        Self {
            text,
            at: 0,
            depth,
            inner: Vec::new(),
            structured: false,
            in_array: false,
        }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn eat(&mut self, sign: &str) -> bool {
        let found = self.rest().starts_with(sign);
        if found {
            self.at += sign.len();
        }
        found
    }

    /// The word that starts here; empty text and span where none does.
    pub(super) fn word(&mut self) -> Result<ReadWord, Unread> {
        let mut draft = Draft {
            text: String::new(),
            open: Open::NOTHING,
            cuts: Vec::new(),
            start: self.at,
            bracket: false,
            brace: false,
            list: false,
        };
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | ')' => break,
                '<' | '>' if !self.rest()[1..].starts_with('(') => break,
                '<' | '>' => self.process(&mut draft)?,
                '(' if !draft.takes_array(self.text, self.at) => break,
                '(' => self.array(&mut draft)?,
                '\'' => {
                    let end = end_of_single(self.text, self.at + 1)?;
                    draft.text.push_str(&self.text[self.at + 1..end]);
                    self.at = end + 1;
                }
                '"' => self.double_quoted(&mut draft)?,
                '\\' => {
                    self.at += 1;
                    let escaped = self
                        .peek()
                        .ok_or(Unread::Syntax("a backslash at its end"))?;
                    self.at += escaped.len_utf8();
                    // A continued line is joined.
                    draft.text.extend((escaped != '\n').then_some(escaped));
                }
                '`' => self.backticks(&mut draft)?,
                '$' => self.dollar(&mut draft, false)?,
                c => self.unquoted(c, &mut draft),
            }
        }
        Ok(ReadWord {
            word: Word {
                text: draft.text,
                open: draft.open,
            },
            span: draft.start..self.at,
            cuts: draft.cuts,
        })
    }

    fn unquoted(&mut self, c: char, draft: &mut Draft) {
        match c {
            '*' | '?' => draft.open |= Open::GLOB,
            '[' => draft.bracket = true,
            ']' if draft.bracket => draft.open |= Open::GLOB,
            '{' => draft.brace = true,
            ',' => draft.list |= draft.brace,
            '.' => draft.list |= draft.brace && draft.text.ends_with('.'),
            '}' if draft.list => draft.open |= Open::BRACE,
            '~' if draft.takes_tilde(self.text, self.at) => draft.open |= Open::TILDE,
            _ => {}
        }
        draft.text.push(c);
        self.at += c.len_utf8();
    }

    fn double_quoted(&mut self, draft: &mut Draft) -> Result<(), Unread> {
        self.at += 1;
        loop {
            let c = self.peek().ok_or(Unread::Syntax("an open quote"))?;
            match c {
                '"' => {
                    self.at += 1;
                    return Ok(());
                }
                '\\' => {
                    self.at += 1;
                    let next = self.peek().ok_or(Unread::Syntax("an open quote"))?;
                    self.at += next.len_utf8();
                    match next {
                        '\n' => {}
                        '$' | '`' | '"' | '\\' => draft.text.push(next),
                        other => draft.text.extend(['\\', other]),
                    }
                }
                '`' => self.backticks(draft)?,
                '$' => self.dollar(draft, true)?,
                c => {
                    draft.text.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
    }

    /// At a `$`.
    fn dollar(&mut self, draft: &mut Draft, quoted: bool) -> Result<(), Unread> {
        let start = self.at;
        let after = &self.text[start + 1..];
        match after.chars().next() {
            Some('(') => self.substitution(draft),
            Some('{') => {
                let end = end_of_parameter(self.text, start + 2, quoted)?;
                let body = &self.text[start + 2..end];
                self.at = end + 1;
                draft.open |= Open::VALUE;
                self.parameter(body)?;
                let shown = shown_parameter(body);
                draft.text.push_str(&shown);
                draft.cuts.push((start..end + 1, shown));
                Ok(())
            }
            Some('\'') if !quoted => {
                let end = end_of_ansi(self.text, start + 2)?;
                draft.text.push_str(&ansi_c(&self.text[start + 2..end])?);
                self.at = end + 1;
                Ok(())
            }
            Some('"') if !quoted => {
                self.at += 1;
                self.double_quoted(draft)
            }
            Some('[') => Err(Unread::Syntax("arithmetic in $[…]")),
            Some(c) if c == '_' || c.is_ascii_alphabetic() => {
                let name = |c: char| c != '_' && !c.is_ascii_alphanumeric();
                let length = 1 + after.find(name).unwrap_or(after.len());
                draft.open |= Open::VALUE;
                draft.text.push_str(&self.text[start..start + length]);
                self.at += length;
                Ok(())
            }
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                draft.open |= Open::VALUE;
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

    /// `$(…)`: a command, or arithmetic.
    fn substitution(&mut self, draft: &mut Draft) -> Result<(), Unread> {
        let start = self.at;
        let end = end_of(self.text, start + 2, Bracket::Round)?;
        let body = &self.text[start + 2..end];
        self.at = end + 1;
        if is_arithmetic(body) {
            draft.open |= Open::VALUE;
            self.expansions(body, false)?;
        } else {
            draft.open |= Open::PRINTED;
            self.commands(body.to_owned())?;
        }
        draft.text.push_str("$()");
        draft.cuts.push((start..end + 1, "$()".to_owned()));
        Ok(())
    }

    /// `<(…)` or `>(…)`.
    fn process(&mut self, draft: &mut Draft) -> Result<(), Unread> {
        let start = self.at;
        let end = end_of(self.text, start + 2, Bracket::Round)?;
        self.commands(self.text[start + 2..end].to_owned())?;
        self.at = end + 1;
        draft.open |= Open::PRINTED;
        let shown = format!("{}()", &self.text[start..=start]);
        draft.text.push_str(&shown);
        draft.cuts.push((start..end + 1, shown));
        Ok(())
    }

    fn backticks(&mut self, draft: &mut Draft) -> Result<(), Unread> {
        let start = self.at;
        let end = end_of_backticks(self.text, start + 1)?;
        let body = &self.text[start + 1..end];
        self.at = end + 1;
        self.commands(unescaped(body))?;
        draft.open |= Open::PRINTED;
        draft.text.push_str("$()");
        draft.cuts.push((start..end + 1, "$()".to_owned()));
        Ok(())
    }

    /// Commands to be read on their own.
    fn commands(&mut self, text: String) -> Result<(), Unread> {
        if text.trim().is_empty() {
            return Ok(());
        }
        if self.depth >= DEEPEST {
            return Err(Unread::TooDeep);
        }
        self.structured = true;
        self.inner.push(Inner {
            text,
            depth: self.depth + 1,
        });
        Ok(())
    }

    /// The inside of `${…}`.
    fn parameter(&mut self, body: &str) -> Result<(), Unread> {
        // `@P` reads the value as a prompt, and a prompt runs what it holds.
        if body.trim_end().ends_with("@P") {
            return Err(Unread::Syntax("${…@P}"));
        }
        self.expansions(body, true)
    }

    /// Notes what runs within a text that is no word: the inside of `${…}`, arithmetic, a here-document. Quotes are not looked at:
    /// what stands in them is found as well.
    pub(super) fn expansions(&mut self, text: &str, processes: bool) -> Result<(), Unread> {
        if !text.contains(['$', '`', '<', '>']) {
            return Ok(());
        }
        if self.depth >= DEEPEST {
            return Err(Unread::TooDeep);
        }
        let mut walk = Walk::new(text, self.depth + 1);
        let mut draft = Draft {
            text: String::new(),
            open: Open::NOTHING,
            cuts: Vec::new(),
            start: 0,
            bracket: false,
            brace: false,
            list: false,
        };
        while let Some(c) = walk.peek() {
            match c {
                '\\' => {
                    walk.at += 1;
                    walk.at += walk.peek().map_or(0, char::len_utf8);
                }
                '`' => walk.backticks(&mut draft)?,
                '$' => walk.dollar(&mut draft, true)?,
                '<' | '>' if processes && walk.rest()[1..].starts_with('(') => {
                    walk.process(&mut draft)?;
                }
                c => walk.at += c.len_utf8(),
            }
        }
        self.inner.append(&mut walk.inner);
        self.structured |= walk.structured;
        Ok(())
    }

    /// `(…)` after `name=`.
    fn array(&mut self, draft: &mut Draft) -> Result<(), Unread> {
        if self.in_array {
            return Err(Unread::Syntax("an array within an array"));
        }
        let start = self.at;
        self.at += 1;
        self.structured = true;
        self.in_array = true;
        loop {
            match self.peek() {
                None => return Err(Unread::Syntax("an open array")),
                Some(')') => break,
                Some(' ' | '\t' | '\n') => self.at += 1,
                Some('#') => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                Some(_) => {
                    let before = self.at;
                    let word = self.word()?;
                    if self.at == before {
                        return Err(Unread::Syntax("an array holds more than words"));
                    }
                    self.doubly_read(&word.word.text)?;
                }
            }
        }
        self.at += 1;
        self.in_array = false;
        draft.open |= Open::ARRAY;
        draft.cuts.push((start..self.at, "()".to_owned()));
        Ok(())
    }

    /// Text that some builtins and arithmetic expand a second time, as that of an array's index.
    pub(super) fn doubly_read(&mut self, text: &str) -> Result<(), Unread> {
        if text.contains("$(") && text != "$()" || text.contains('`') || text.contains("${") {
            let stripped = text.replace("$()", "");
            return self.expansions(&stripped, false);
        }
        Ok(())
    }
}

fn end_of_parameter(text: &str, from: usize, quoted: bool) -> Result<usize, Unread> {
    let end = end_of(text, from, Bracket::Curly)?;
    if quoted && text[from..end].contains('\'') {
        return Err(Unread::Syntax("a quote within ${…} within quotes"));
    }
    Ok(end)
}

/// `${…}` without what it might run.
fn shown_parameter(body: &str) -> String {
    if !body.contains(['$', '`', '<', '>', '(', '\'', '"', '\\']) {
        return format!("${{{body}}}");
    }
    let body = body.strip_prefix(['!', '#']).unwrap_or(body);
    let name = |c: char| c != '_' && !c.is_ascii_alphanumeric();
    let name = &body[..body.find(name).unwrap_or(body.len())];
    if name.is_empty() {
        "$_".to_owned()
    } else {
        format!("${{{name}}}")
    }
}

/// The commands between backticks: a backslash before `$`, a backtick or a backslash is taken away.
fn unescaped(body: &str) -> String {
    let mut text = String::with_capacity(body.len());
    let mut chars = body.chars().peekable();
    while let Some(c) = chars.next() {
        let escaped = (c == '\\')
            .then(|| chars.next_if(|n| matches!(n, '$' | '`' | '\\')))
            .flatten();
        text.push(escaped.unwrap_or(c));
    }
    text
}

/// The inside of `$'…'`. What it says in bytes that are no UTF-8 is not taken apart.
fn ansi_c(body: &str) -> Result<String, Unread> {
    let mut bytes = Vec::with_capacity(body.len());
    let mut rest = body.chars().peekable();
    let push = |bytes: &mut Vec<u8>, c: char| {
        bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    };
    while let Some(c) = rest.next() {
        if c != '\\' {
            push(&mut bytes, c);
            continue;
        }
        let Some(kind) = rest.next() else { break };
        let mut number = |first: &str, most: usize, radix: u32| {
            let mut digits = first.to_owned();
            for _ in 0..most {
                digits.extend(rest.next_if(|c| c.is_digit(radix)));
            }
            u32::from_str_radix(&digits, radix).ok()
        };
        match kind {
            'n' => bytes.push(b'\n'),
            't' => bytes.push(b'\t'),
            'r' => bytes.push(b'\r'),
            'a' => bytes.push(7),
            'b' => bytes.push(8),
            'e' | 'E' => bytes.push(27),
            'f' => bytes.push(12),
            'v' => bytes.push(11),
            '\\' | '\'' | '"' | '?' => push(&mut bytes, kind),
            'x' => bytes.push(byte(number("", 2, 16))?),
            '0'..='7' => bytes.push(byte(number(kind.encode_utf8(&mut [0; 4]), 2, 8))?),
            'u' | 'U' => {
                let most = if kind == 'u' { 4 } else { 8 };
                let letter = number("", most, 16).and_then(char::from_u32);
                let letter = letter
                    .filter(|c| *c != '\0')
                    .ok_or(Unread::Syntax("$'…'"))?;
                push(&mut bytes, letter);
            }
            // `\c` and what bash keeps as it is: rare enough to be asked about.
            _ => return Err(Unread::Syntax("an escape of $'…' that is not known")),
        }
    }
    String::from_utf8(bytes).map_err(|_| Unread::Syntax("$'…' holds bytes that are no text"))
}

/// A NUL ends the text for bash; what comes after it is not seen.
fn byte(number: Option<u32>) -> Result<u8, Unread> {
    number
        .and_then(|n| u8::try_from(n).ok())
        .filter(|n| *n != 0)
        .ok_or(Unread::Syntax("an escape of $'…' that is not known"))
}
