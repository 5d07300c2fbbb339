//! The part of the shell grammar needed to find every simple command: lists, groups, compound commands, functions.

use crate::builtin::{SetByBuiltin, sets};
use crate::command::{AssignedValue, SimpleCommand};
use crate::counting::prints_number;
use crate::each::Loop;
use crate::error::{MAX_DEPTH, ParseError};
use crate::lexer::{Lexer, Redirect, Sign, Token};
use crate::plain::plain_words;
use crate::variables::{Variables, is_number};
use crate::walk::InnerText;
use crate::walk::ReadWord;
use crate::word::{Expansions, Word, is_assignment};

/// Words that end a list of commands.
const LIST_TERMINATORS: &[&str] = &["then", "elif", "else", "fi", "do", "done", "esac", "}"];

/// The contents of one text; `inner` holds the texts of its substitutions.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a property of its own that a text has or has not"
)]
pub(crate) struct TextParts {
    pub(crate) commands: Vec<SimpleCommand>,
    pub(crate) writes: Vec<Word>,
    pub(crate) reads: Vec<Word>,
    pub(crate) loops: Vec<Loop>,
    /// Functions that the text defines.
    pub(crate) functions: Vec<String>,
    /// Variables of loops over words that the text does not list.
    pub(crate) unlisted: Vec<String>,
    /// True if part of the text may run more than once.
    pub(crate) repeats: bool,
    /// True if part of the text runs in the background.
    pub(crate) background: bool,
    pub(crate) inner: Vec<InnerText>,
    /// True if the text has more than words and lists, so that the grammar must confirm it.
    pub(crate) structured: bool,
    /// True if another shell reads the text differently.
    pub(crate) ambiguous: bool,
    /// Positions where commands are named.
    pub(crate) names: Vec<Name>,
    /// Positions of prefix words that look like commands.
    pub(crate) prefixes: Vec<usize>,
    /// The text's use of variables.
    pub(crate) variables: Variables,
}

/// The position of a command name, and whether it directly follows a prefix.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(
    not(feature = "grammar"),
    expect(dead_code, reason = "only the second reading compares places")
)]
pub(crate) struct Name {
    pub(crate) at: usize,
    pub(crate) prefixed: bool,
}

/// Parses a text at its nesting depth, in the loops around it.
pub(crate) fn read(inner: &InnerText) -> Result<TextParts, ParseError> {
    let InnerText {
        text,
        depth,
        within,
        certain,
        is_computed,
    } = inner;
    if *is_computed && !prints_number(text) {
        return Err(ParseError::Syntax(
            "arithmetic uses what a command prints, which may be more than a number",
        ));
    }
    let depth = *depth;
    let mut lexer = Lexer::new(text, depth);
    lexer.walk.within.clone_from(within);
    lexer.walk.variables.replace_certain(certain.clone());
    lexer.walk.variables.printed = *is_computed;
    let mut parser = Parser {
        lexer,
        ahead: None,
        found: TextParts::default(),
        depth,
    };
    parser.list()?;
    match parser.take()? {
        (Token::End, _) => {}
        _ => return Err(ParseError::Syntax("something ends that was not begun")),
    }
    let Parser {
        lexer, mut found, ..
    } = parser;
    found.structured |= lexer.walk.structured;
    found.ambiguous |= lexer.walk.ambiguous;
    found.inner = lexer.walk.inner;
    found.variables = lexer.walk.variables;
    Ok(found)
}

pub(crate) struct Parser<'a> {
    pub(crate) lexer: Lexer<'a>,
    pub(crate) ahead: Option<(Token, usize)>,
    pub(crate) found: TextParts,
    pub(crate) depth: usize,
}

impl<'a> Parser<'a> {
    pub(crate) fn text(&self) -> &'a str {
        self.lexer.walk.text
    }

    pub(crate) fn take(&mut self) -> Result<(Token, usize), ParseError> {
        match self.ahead.take() {
            Some(token) => Ok(token),
            None => self.lexer.next(),
        }
    }

    pub(crate) fn peek(&mut self) -> Result<&Token, ParseError> {
        if self.ahead.is_none() {
            self.ahead = Some(self.lexer.next()?);
        }
        Ok(self.ahead.as_ref().map_or(&Token::End, |(token, _)| token))
    }

    /// Returns the next word as written, if the next token is a word.
    pub(crate) fn raw(&mut self) -> Result<Option<&'a str>, ParseError> {
        let text = self.text();
        Ok(match self.peek()? {
            Token::Word(word) => Some(&text[word.span.clone()]),
            _ => None,
        })
    }

    pub(crate) fn at_sign(&mut self, wanted: Sign) -> Result<bool, ParseError> {
        Ok(matches!(self.peek()?, Token::Sign(sign) if *sign == wanted))
    }

    pub(crate) fn eat_sign(&mut self, wanted: Sign) -> Result<bool, ParseError> {
        let found = self.at_sign(wanted)?;
        if found {
            self.take()?;
        }
        Ok(found)
    }

    pub(crate) fn eat_word(&mut self, wanted: &str) -> Result<bool, ParseError> {
        let found = self.raw()? == Some(wanted);
        if found {
            self.take()?;
        }
        Ok(found)
    }

    pub(crate) fn expect_word(&mut self, wanted: &str) -> Result<(), ParseError> {
        if self.eat_word(wanted)? {
            return Ok(());
        }
        Err(ParseError::Syntax("a compound command is not complete"))
    }

    pub(crate) fn skip_lines(&mut self) -> Result<(), ParseError> {
        while matches!(self.peek()?, Token::Newline) {
            self.take()?;
        }
        Ok(())
    }

    /// Reads one level deeper, where a compound command may be nested.
    pub(crate) fn one_level_deeper(
        &mut self,
        inner: fn(&mut Self) -> Result<(), ParseError>,
    ) -> Result<(), ParseError> {
        self.found.structured = true;
        if self.depth >= MAX_DEPTH {
            return Err(ParseError::TooDeep);
        }
        self.depth += 1;
        self.lexer.walk.depth = self.depth;
        inner(self)?;
        self.depth -= 1;
        self.lexer.walk.depth = self.depth;
        Ok(())
    }

    /// Reads commands up to the end of a list and returns whether there was one.
    pub(crate) fn list(&mut self) -> Result<bool, ParseError> {
        let mut any = false;
        loop {
            self.skip_lines()?;
            if self.at_end()? {
                return Ok(any);
            }
            let certain = self.certain();
            self.and_or()?;
            any = true;
            if self.at_sign(Sign::Ampersand)? {
                self.found.background = true;
                self.forget_after(certain);
            }
            let separated = matches!(
                self.peek()?,
                Token::Sign(Sign::Semicolon | Sign::Ampersand) | Token::Newline
            );
            if separated {
                self.take()?;
            } else if self.at_end()? {
                return Ok(any);
            } else {
                return Err(ParseError::Syntax("a sign that nothing comes before"));
            }
        }
    }

    /// Reads a list that must not be empty.
    pub(crate) fn nonempty_list(&mut self) -> Result<(), ParseError> {
        if self.list()? {
            return Ok(());
        }
        Err(ParseError::Syntax("an empty list of commands"))
    }

    /// Returns the number of variables that are certainly set to a number here.
    pub(crate) fn certain(&self) -> usize {
        self.lexer.walk.variables.certain().len()
    }

    /// Forgets the variables that became so after there were this many.
    pub(crate) fn forget_after(&mut self, certain: usize) {
        self.lexer.walk.variables.forget_after(certain);
    }

    /// Reads a list that may not run, that may run in another shell, or elsewhere: what it sets is not certain after it.
    pub(crate) fn uncertain_list(&mut self) -> Result<(), ParseError> {
        let certain = self.certain();
        self.nonempty_list()?;
        self.forget_after(certain);
        Ok(())
    }

    fn at_end(&mut self) -> Result<bool, ParseError> {
        if self
            .raw()?
            .is_some_and(|raw| LIST_TERMINATORS.contains(&raw))
        {
            return Ok(true);
        }
        Ok(matches!(
            self.peek()?,
            Token::End | Token::Sign(Sign::Close | Sign::CaseEnd)
        ))
    }

    fn and_or(&mut self) -> Result<(), ParseError> {
        self.pipeline()?;
        // The first one runs; the others may not. What one sets after `&&` is certain for those that need it to have run.
        let certain = self.certain();
        loop {
            let is_needed = self.eat_sign(Sign::And)?;
            if !is_needed {
                self.forget_after(certain);
                if !self.eat_sign(Sign::Or)? {
                    return Ok(());
                }
            }
            self.skip_lines()?;
            self.pipeline()?;
            if !is_needed {
                self.forget_after(certain);
            }
        }
    }

    fn pipeline(&mut self) -> Result<(), ParseError> {
        let certain = self.certain();
        self.command()?;
        while self.eat_sign(Sign::Pipe)? {
            // Each runs in a shell of its own.
            self.forget_after(certain);
            self.skip_lines()?;
            self.command()?;
            self.forget_after(certain);
        }
        Ok(())
    }

    pub(crate) fn command(&mut self) -> Result<(), ParseError> {
        let mut prefixed = false;
        loop {
            match self.raw()? {
                Some("!") => {
                    self.found.structured = true;
                    self.take()?;
                    prefixed = true;
                }
                Some("time") => {
                    self.found.structured = true;
                    let (_, at) = self.take()?;
                    self.found.prefixes.push(at);
                    self.eat_word("-p")?;
                    prefixed = true;
                }
                _ => break,
            }
        }
        match self.raw()? {
            None if self.at_sign(Sign::Open)? => self.parse_parentheses()?,
            Some("{") => {
                self.take()?;
                self.one_level_deeper(|p| {
                    p.nonempty_list()?;
                    p.expect_word("}")
                })?;
            }
            Some("if") => self.one_level_deeper(Self::conditional)?,
            Some("while" | "until") => self.one_level_deeper(|p| {
                p.found.repeats = true;
                p.take()?;
                p.nonempty_list()?;
                p.body()
            })?,
            Some("for") => self.one_level_deeper(Self::each)?,
            Some("select") => {
                return Err(ParseError::Syntax(
                    "select sets a variable to what it is given",
                ));
            }
            Some("coproc") => return Err(ParseError::Syntax("coproc sets the variable it names")),
            Some("case") => self.one_level_deeper(Self::case)?,
            Some("[[") => self.condition()?,
            Some("function") => return self.one_level_deeper(Self::function),
            Some(raw) if LIST_TERMINATORS.contains(&raw) || matches!(raw, "in" | "]]") => {
                return Err(ParseError::Syntax("a word that belongs elsewhere"));
            }
            _ => return self.simple(prefixed),
        }
        self.redirections()
    }

    fn redirections(&mut self) -> Result<(), ParseError> {
        while let Token::Redirect(_) = self.peek()? {
            if let (Token::Redirect(redirect), _) = self.take()? {
                self.add_redirect(redirect);
            }
        }
        Ok(())
    }

    fn add_redirect(&mut self, redirect: Redirect) {
        match redirect {
            Redirect::Write(target) => self.found.writes.push(target),
            Redirect::Read(target) => self.found.reads.push(target),
            Redirect::Both(target) => {
                self.found.writes.push(target.clone());
                self.found.reads.push(target);
            }
            Redirect::Text(_) | Redirect::NoFile => {}
        }
    }

    fn simple(&mut self, prefixed: bool) -> Result<(), ParseError> {
        let mut words: Vec<ReadWord> = Vec::new();
        let mut assigned: Vec<(String, ReadWord)> = Vec::new();
        let (mut any, mut redirects) = (false, false);
        loop {
            match self.peek()? {
                Token::Word(_) => {
                    let (Token::Word(word), at) = self.take()? else {
                        break;
                    };
                    let raw = &self.text()[word.span.clone()];
                    if !words.is_empty() {
                        words.push(word);
                    } else if begins_index(raw) {
                        return Err(ParseError::Syntax("an index where a command begins"));
                    } else if is_assignment(raw) {
                        assigned.push((self.assignment(&word), word));
                    } else {
                        self.found.names.push(Name { at, prefixed });
                        words.push(word);
                    }
                }
                Token::Redirect(_) => {
                    redirects = true;
                    self.redirections()?;
                }
                Token::Sign(Sign::Open) => {
                    return match words.as_slice() {
                        [name] if assigned.is_empty() => self.named_function(&name.clone()),
                        _ => Err(ParseError::Syntax("a bracket in a command")),
                    };
                }
                _ => break,
            }
            any = true;
        }
        if !any {
            return Err(ParseError::Syntax("a command is missing"));
        }
        if words.is_empty() && !redirects {
            self.make_numbers_certain(&assigned);
        }
        self.finish(assigned, words);
        Ok(())
    }

    /// Records what a command without words sets: digits are what no error stops.
    fn make_numbers_certain(&mut self, assigned: &[(String, ReadWord)]) {
        for (name, word) in assigned {
            let value = word.word.text.strip_prefix(name.as_str());
            let value = value.and_then(|rest| rest.strip_prefix('='));
            let known = word.word.expansions.is_empty() && value.is_some_and(is_number);
            if known || self.is_printed(word, name.len() + 1) {
                self.lexer.walk.variables.make_certain(name);
            }
        }
    }

    /// Records the variable that `NAME=…` or `NAME+=…` sets and returns its name.
    fn assignment(&mut self, word: &ReadWord) -> String {
        let text = self.text();
        let raw = &text[word.span.clone()];
        let (name, _) = raw.split_once('=').unwrap_or((raw, ""));
        let value = name.len() + 1;
        let known = word.word.expansions.is_empty() && is_number(&word.word.text[value..]);
        let printed = self.is_printed(word, value);
        let number = known || printed || word.is_arithmetic_from(text, word.span.start + value);
        let (name, added) = match name.strip_suffix('+') {
            Some(name) => (name, true),
            None => (name, false),
        };
        let variables = &mut self.lexer.walk.variables;
        variables.printed |= printed;
        variables.set(name, number && !added);
        name.to_owned()
    }

    /// Returns true if the word is, from this place on, the output of a command that prints a number.
    fn is_printed(&self, word: &ReadWord, from: usize) -> bool {
        let raw = &self.text()[word.span.start + from..word.span.end];
        substituted(raw).is_some_and(prints_number)
    }

    /// Marks a word of `[` or `test` that is one number when the command runs.
    fn counted(&mut self, word: ReadWord) -> Word {
        let raw = &self.text()[word.span.clone()];
        let mut one = word.word;
        let name = raw.strip_prefix('$').unwrap_or_default();
        let name = name
            .strip_prefix('{')
            .map_or(Some(name), |name| name.strip_suffix('}'));
        let variables = &mut self.lexer.walk.variables;
        let is_number = match (name, substituted(raw)) {
            (_, Some(command)) if !raw.starts_with('"') => {
                variables.printed |= prints_number(command);
                prints_number(command)
            }
            (Some("#" | "?" | "$"), _) => true,
            (Some(name), _) => variables.count(name),
            (None, _) => false,
        };
        if is_number {
            one.expansions |= Expansions::NUMBER;
        }
        one
    }

    fn finish(&mut self, assigned: Vec<(String, ReadWord)>, words: Vec<ReadWord>) {
        if assigned.is_empty() && words.is_empty() {
            return;
        }
        let text = self.text();
        let mut shown = String::new();
        for word in assigned.iter().map(|(_, word)| word).chain(&words) {
            if !shown.is_empty() {
                shown.push(' ');
            }
            word.push_text(text, &mut shown);
        }
        let values = assigned.iter().map(|(_, word)| value_of(word, text));
        let values = values.collect();
        let tests = words
            .first()
            .is_some_and(|name| matches!(&*name.word.text, "[" | "test"));
        let words = words
            .into_iter()
            .map(|word| if tests { self.counted(word) } else { word.word });
        let words: Vec<Word> = words.collect();
        if let SetByBuiltin::Names(names) = sets(&words) {
            for (name, is_number) in names {
                self.lexer.walk.variables.set(name, is_number);
            }
        }
        self.found.commands.push(SimpleCommand {
            values,
            assignments: assigned.into_iter().map(|(name, _)| name).collect(),
            within: self.lexer.walk.within.clone(),
            words,
            text: shown,
        });
    }
}

/// Returns the command of a word that is `$(…)` and nothing else, with or without quotes.
fn substituted(raw: &str) -> Option<&str> {
    let quoted = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"'));
    let raw = quoted.unwrap_or(raw);
    raw.strip_prefix("$(")?.strip_suffix(')')
}

/// Returns what the word of an assignment sets.
fn value_of(word: &ReadWord, text: &str) -> AssignedValue {
    let raw = &text[word.span.clone()];
    let (Some((name, raw)), Some((_, value))) =
        (raw.split_once('='), word.word.text.split_once('='))
    else {
        return AssignedValue::Unknown;
    };
    if name.ends_with('+') {
        return AssignedValue::Unknown;
    }
    if makes_fresh(raw) {
        return AssignedValue::Fresh;
    }
    AssignedValue::Word(Word {
        text: value.to_owned(),
        expansions: word.word.expansions,
    })
}

/// Returns true for `$(mktemp …)`, with or without quotes, which names what it has just made: not with `-u`.
fn makes_fresh(raw: &str) -> bool {
    let words = substituted(raw).and_then(plain_words).unwrap_or_default();
    let is_quiet = |word: &String| {
        let is_dry = word.starts_with("--d") && !word.starts_with("--di");
        !is_dry && (word.starts_with("--") || !(word.starts_with('-') && word.contains('u')))
    };
    words.first().is_some_and(|name| name == "mktemp") && words.iter().all(is_quiet)
}

/// Returns true for `NAME[…`. Bash reads that up to the closing bracket, spaces included, and evaluates it.
fn begins_index(raw: &str) -> bool {
    let name = raw.split_once('[').map_or("", |(name, _)| name);
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
