//! Reads JSON with comments and trailing commas through `jsonc-parser`: the position of everything, and its content.

use std::borrow::Cow;
use std::ops::Range;

use jsonc_parser::ast::Value as AstValue;
use jsonc_parser::common::Ranged as _;
use jsonc_parser::errors::{ParseError, ParseErrorKind};
use jsonc_parser::tokens::Token;
use jsonc_parser::{
    CollectOptions, ParseOptions, ParseStringErrorKind, Scanner, ScannerOptions, parse_to_ast,
};

use super::tree::{JsoncTree, key_of};
use crate::edit::EditError;

/// Maximum nesting depth of a settings file.
const MAX_DEPTH: usize = 128;

/// Maximum number of tokens. Each takes a hundred bytes once it is parsed.
pub(super) const MAX_TOKENS: usize = 4_000_000;

/// The whitespace of JSON.
pub(super) const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// JSON with comments and trailing commas, and with nothing of JSON5.
const SYNTAX: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// The same for single tokens.
const TOKENS: ScannerOptions = ScannerOptions {
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

fn wrong<T>(what: impl Into<String>, at: Range<usize>) -> Result<T, EditError> {
    Err(EditError::at(what, at))
}

/// A member of an object.
#[derive(Debug)]
pub(super) struct JsoncMember {
    pub(super) key: String,
    /// The position of its key.
    pub(super) start: usize,
    pub(super) value: Range<usize>,
    /// Its value, parsed.
    pub(super) tree: JsoncTree,
    /// The position of the comma after it.
    pub(super) comma: Option<usize>,
}

/// An object: the positions of its braces, and its members. An array is read as one, too: its items are members without a key.
#[derive(Debug)]
pub(super) struct JsoncObject {
    pub(super) open: usize,
    /// The end of the last token in it, comments included.
    pub(super) end: usize,
    /// Whether that is a line comment.
    pub(super) ends_in_line_comment: bool,
    pub(super) close: usize,
    pub(super) members: Vec<JsoncMember>,
}

impl JsoncObject {
    pub(super) fn find(&self, key: &str) -> Result<Option<(usize, &JsoncMember)>, EditError> {
        let mut all = self
            .members
            .iter()
            .enumerate()
            .filter(|(_, m)| m.key == key);
        let first = all.next();
        match all.next() {
            Some((_, twice)) => wrong(
                format!("the key `{key}` appears twice"),
                twice.start..twice.value.start,
            ),
            None => Ok(first),
        }
    }

    /// Returns the object or array that a text consists of; `at` is the position of this text in its file.
    fn of(text: &str, value: &AstValue<'_>, at: usize) -> Result<Self, EditError> {
        let member = |key: String, start: usize, value: &AstValue<'_>| {
            let range = value.range();
            Ok(JsoncMember {
                key,
                start,
                value: range.start..range.end,
                tree: JsoncTree::of(text, value)?,
                comma: None,
            })
        };
        let members: Result<Vec<JsoncMember>, EditError> = match value {
            AstValue::Object(object) => {
                let members = object.properties.iter();
                members
                    .map(|one| member(key_of(text, one)?, one.range.start, &one.value))
                    .collect()
            }
            AstValue::Array(array) => {
                let items = array.elements.iter();
                items
                    .map(|item| member(String::new(), item.range().start, item))
                    .collect()
            }
            _ => Ok(Vec::new()),
        };
        let range = value.range();
        let object = Self {
            open: range.start,
            end: range.start + 1,
            ends_in_line_comment: false,
            close: range.end.saturating_sub(1),
            members: members?,
        };
        Ok(object.with_gaps(text)?.moved_by(at))
    }

    /// Adds what stands between the members: their commas, and the last comment.
    fn with_gaps(mut self, text: &str) -> Result<Self, EditError> {
        let starts = self.members.iter().map(|member| member.start);
        let values = self.members.iter().map(|member| member.value.end);
        let mut gaps = Vec::with_capacity(self.members.len() + 1);
        let mut begin = self.open + 1;
        for (end, next) in starts.chain([self.close]).zip(values.chain([self.close])) {
            gaps.push(JsoncGap::read(text, begin..end)?);
            begin = next;
        }
        if let Some(last) = gaps.last() {
            self.end = last.end;
            self.ends_in_line_comment = last.ends_in_line_comment;
        }
        for (member, gap) in self.members.iter_mut().zip(gaps.into_iter().skip(1)) {
            member.comma = gap.comma;
        }
        Ok(self)
    }

    fn moved_by(mut self, at: usize) -> Self {
        for place in [&mut self.open, &mut self.end, &mut self.close] {
            *place += at;
        }
        for member in &mut self.members {
            member.start += at;
            member.value = member.value.start + at..member.value.end + at;
            member.comma = member.comma.map(|comma| comma + at);
        }
        self
    }
}

/// What stands between two members, or between one and a brace.
#[derive(Debug)]
struct JsoncGap {
    comma: Option<usize>,
    /// The end of the last token, or the beginning.
    end: usize,
    ends_in_line_comment: bool,
}

impl JsoncGap {
    fn read(text: &str, range: Range<usize>) -> Result<Self, EditError> {
        let mut gap = Self {
            comma: None,
            end: range.start,
            ends_in_line_comment: false,
        };
        let inside = &text[range.clone()];
        let mut scanner = Scanner::new(inside, &TOKENS);
        while let Some(token) = scanner.scan().map_err(|e| refusal(inside, &e))? {
            if token == Token::Comma {
                gap.comma = Some(range.start + scanner.token_start());
            }
            gap.end = range.start + scanner.token_end();
            gap.ends_in_line_comment = matches!(token, Token::CommentLine(_));
        }
        Ok(gap)
    }
}

/// Parses a text; a blank one is an object without members.
pub(super) fn tree(text: &str) -> Result<JsoncTree, EditError> {
    let members = root(text)?.map(|object| object.members).unwrap_or_default();
    let members = members.into_iter();
    Ok(JsoncTree::Object(
        members.map(|member| (member.key, member.tree)).collect(),
    ))
}

/// Parses a text as an object; `None` if it has only blanks and comments.
pub(super) fn root(text: &str) -> Result<Option<JsoncObject>, EditError> {
    let plain = without_oddities(text);
    check_tokens(&plain)?;
    let object = |value: &AstValue<'_>| match value {
        AstValue::Object(_) => JsoncObject::of(text, value, 0),
        other => {
            let start = other.range().start;
            wrong("the file does not hold a JSON object", start..start + 1)
        }
    };
    parse(&plain, object)
}

/// Returns the object at this position.
pub(super) fn object_at(
    text: &str,
    name: &str,
    value: &Range<usize>,
) -> Result<JsoncObject, EditError> {
    let object = container(text, value, '{')?;
    object.ok_or_else(|| EditError::at(format!("`{name}` is not an object"), value.clone()))
}

/// Returns the array at this position, with its items as members without a key.
pub(super) fn array_at(
    text: &str,
    name: &str,
    value: &Range<usize>,
) -> Result<JsoncObject, EditError> {
    let array = container(text, value, '[')?;
    array.ok_or_else(|| EditError::at(format!("`{name}` is not a list"), value.clone()))
}

fn container(
    text: &str,
    value: &Range<usize>,
    open: char,
) -> Result<Option<JsoncObject>, EditError> {
    let own = &text[value.clone()];
    if !own.starts_with(open) {
        return Ok(None);
    }
    let plain = without_oddities(own);
    parse(&plain, |found| JsoncObject::of(own, found, value.start))
}

/// Parses a text and reads its value, if it has one.
fn parse<T>(
    plain: &str,
    read: impl FnOnce(&AstValue<'_>) -> Result<T, EditError>,
) -> Result<Option<T>, EditError> {
    let parsed = parse_to_ast(plain, &CollectOptions::default(), &SYNTAX);
    let parsed = parsed.map_err(|e| refusal(plain, &e))?;
    parsed.value.as_ref().map(read).transpose()
}

/// Returns a text of the same length without what clients accept and the parser does not: the byte order mark, and halves of characters
/// (`\ud83d`), which JavaScript writes where it cut a text and which have no value in UTF-8. Values are taken from the text itself.
fn without_oddities(text: &str) -> Cow<'_, str> {
    const MARK: char = '\u{feff}';
    let mut out = String::new();
    let mut from = 0;
    if text.starts_with(MARK) {
        from = MARK.len_utf8();
        out.push_str("   ");
    }
    let is_half = |code: &[u8]| {
        matches!(code, [b'd' | b'D', b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F', rest @ ..]
            if rest.iter().all(u8::is_ascii_hexdigit))
    };
    for (at, _) in text.match_indices("\\u") {
        let code = text.as_bytes().get(at + 2..at + 6);
        if code.is_some_and(is_half) {
            out.push_str(&text[from..at]);
            out.push_str("\\u0020");
            from = at + 6;
        }
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[from..]);
    Cow::Owned(out)
}

/// Refuses what the parser accepts and clients read differently or not at all, and what is nested too deeply to parse.
fn check_tokens(text: &str) -> Result<(), EditError> {
    let mut scanner = Scanner::new(text, &TOKENS);
    let (mut before, mut depth) = (0, 0_usize);
    for _ in 0..MAX_TOKENS {
        let token = scanner.scan().map_err(|e| refusal(text, &e))?;
        let range = scanner.token_start()..scanner.token_end();
        let odd = text[before..range.start].find(|c| !BLANKS.contains(&c));
        if let Some(odd) = odd.map(|odd| before + odd) {
            return wrong("this is not a blank in JSON", odd..odd + 1);
        }
        before = range.end;
        match token {
            None => return Ok(()),
            Some(Token::OpenBrace | Token::OpenBracket) => {
                if depth > MAX_DEPTH {
                    return wrong("the JSON is nested too deeply", range);
                }
                depth += 1;
            }
            Some(Token::CloseBrace | Token::CloseBracket) => depth = depth.saturating_sub(1),
            Some(Token::String(_)) if text[range.clone()].contains('\n') => {
                return wrong("a string does not end", range.start..range.start + 1);
            }
            // Some clients treat these as the end of the comment, others do not.
            Some(Token::CommentLine(comment)) => {
                let rest = &text[range.end..];
                let is_half = rest.len() > 1 && rest.starts_with('\r') && !rest.starts_with("\r\n");
                if is_half || comment.contains(['\u{2028}', '\u{2029}']) {
                    return wrong("a comment holds half a line break", range);
                }
            }
            Some(_) => {}
        }
    }
    let what = format!("the JSON has more than {MAX_TOKENS} parts");
    wrong(what, before..before)
}

/// Says in haft's words what the parser refuses, and where.
fn refusal(text: &str, error: &ParseError) -> EditError {
    let found = error.range();
    let range = found.start..found.end.max(found.start + 1);
    let first = found.start..found.start + 1;
    match error.kind() {
        ParseErrorKind::ExpectedColonAfterObjectKey => {
            EditError::at("expected `:` after the key", range)
        }
        ParseErrorKind::ExpectedComma => missing_comma(text, found.start),
        ParseErrorKind::UnexpectedTokenInObject | ParseErrorKind::ExpectedStringObjectProperty => {
            EditError::at("expected a key, a comma or `}`", range)
        }
        ParseErrorKind::MultipleRootJsonValues => {
            EditError::at("there is something after the JSON object", range)
        }
        ParseErrorKind::UnterminatedArray => EditError::at("an array does not end", first),
        ParseErrorKind::UnterminatedObject => EditError::at("an object does not end", first),
        ParseErrorKind::UnterminatedCommentBlock => EditError::at("a comment does not end", first),
        ParseErrorKind::NestingDepthExceeded => {
            EditError::at("the JSON is nested too deeply", range)
        }
        ParseErrorKind::String(ParseStringErrorKind::UnterminatedStringLiteral) => {
            EditError::at("a string does not end", first)
        }
        ParseErrorKind::String(_) => {
            EditError::at("a string has an escape that JSON does not have", range)
        }
        _ => EditError::at("expected a JSON value", range),
    }
}

/// Points at the token before which a comma is missing. The parser says only where the value before it ends.
fn missing_comma(text: &str, after: usize) -> EditError {
    let mut scanner = Scanner::new(text, &TOKENS);
    let mut opened = Vec::new();
    while let Ok(Some(token)) = scanner.scan() {
        match token {
            Token::CommentLine(_) | Token::CommentBlock(_) => {}
            _ if scanner.token_start() >= after => break,
            Token::OpenBrace | Token::OpenBracket => opened.push(token),
            Token::CloseBrace | Token::CloseBracket => drop(opened.pop()),
            _ => {}
        }
    }
    let range = scanner.token_start()..scanner.token_end();
    let what = match opened.last() {
        Some(Token::OpenBracket) => "expected a comma or `]`",
        _ => "expected a key, a comma or `}`",
    };
    EditError::at(what, range)
}
