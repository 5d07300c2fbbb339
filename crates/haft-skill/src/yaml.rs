//! The YAML of front matter: a small tree built from events, with notes on what a strict reader refuses.

use std::ops::Range;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Map, Value};

/// Maximum depth; front matter has two levels, three with `metadata`.
const MAX_DEPTH: usize = 16;

/// Maximum number of notes; a text with more is refused, since some notes matter and none may be lost.
const MAX_NOTES: usize = 256;

/// A value. Scalars remain as written: the field decides what `yes` or `1.0` means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum YamlNode {
    /// A text, and whether it was unquoted.
    Text(String, bool),
    /// A sequence.
    List(Vec<YamlNode>),
    /// A mapping with unique keys; of duplicates, the first.
    Map(Vec<(String, YamlNode)>),
}

/// What the text contained besides the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum YamlNote {
    /// `[a]` or `{a: b}` on this line.
    Flow(usize),
    /// `&name` on this line.
    Anchor(usize),
    /// `!name` on this line.
    Tag(usize),
    /// A tab outside quotes, blocks and comments on this line.
    Tab(usize),
    /// A duplicate key, with its line and depth.
    Duplicate(String, usize, usize),
    /// A mapping on this line whose indentation differs from its neighbors.
    Indentation(usize),
}

/// A parsed text.
#[derive(Debug)]
pub(super) struct YamlDocument {
    /// The content; an empty text is an empty unquoted scalar.
    pub(super) node: YamlNode,
    /// What a strict reader refuses.
    pub(super) notes: Vec<YamlNote>,
}

/// Parses one document that starts below `above` lines of its file. Refuses aliases: a few of them can stand
/// for gigabytes.
pub(super) fn read(text: &str, above: usize) -> Result<YamlDocument, String> {
    // The parser takes a NUL for the end of the text and would ignore the rest.
    if text.contains('\0') {
        return Err("holds a NUL character".to_owned());
    }
    read_text(text, above).or_else(|told| match indent_quoted(text) {
        Some(indented) => read_text(&indented, above),
        None => Err(told),
    })
}

fn read_text(text: &str, above: usize) -> Result<YamlDocument, String> {
    let mut reader = YamlReader {
        parser: Parser::new_from_str(text),
        flow: FlowStarts::of(text),
        above,
        notes: Vec::new(),
        texts: Vec::new(),
    };
    let node = reader.document()?;
    reader.check_tabs(text)?;
    Ok(YamlDocument {
        node,
        notes: reader.notes,
    })
}

/// Indents continuation lines of quoted texts that start at or before the column of their key, which YAML 1.1 permits and 1.2
/// does not; this does not change the texts. `None` if there are none.
fn indent_quoted(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len() + 16);
    // The open quote, and the indentation of its key.
    let mut open = None;
    let mut moved = false;
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let rest = if let Some((_, own)) = open {
            if indent <= own && !line.trim().is_empty() {
                out.push_str(&" ".repeat(own + 1 - indent));
                moved = true;
            }
            line
        } else {
            let value = line
                .split_once(": ")
                .map_or("", |(_, value)| value.trim_start());
            let quote = value.chars().next().filter(|c| matches!(c, '\'' | '"'));
            open = quote.map(|quote| (quote, indent));
            value
                .get(1..)
                .filter(|_| open.is_some())
                .unwrap_or_default()
        };
        if open.is_some_and(|(quote, _)| closes(rest, quote)) {
            open = None;
        }
        out.push_str(line);
    }
    moved.then_some(out)
}

/// Whether a quoted text ends on this line.
fn closes(line: &str, quote: char) -> bool {
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\\' && quote == '"' {
            chars.next();
        } else if c == quote && (quote == '"' || chars.next_if_eq(&'\'').is_none()) {
            return true;
        }
    }
    false
}

impl YamlNode {
    /// Returns the value of a mapping's key.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(pairs) => pairs.iter().find(|(k, _)| k == key).map(|(_, v)| v),
            Self::Text(..) | Self::List(_) => None,
        }
    }

    /// Whether it is empty: an empty or `null` scalar without quotes.
    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Text(text, true) if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// Converts it to a JSON value; scalars remain texts.
    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Text(..) if self.is_null() => Value::Null,
            Self::Text(text, _) => Value::String(text.clone()),
            Self::List(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Self::Map(pairs) => {
                let pairs = pairs.iter().map(|(k, v)| (k.clone(), v.to_value()));
                Value::Object(pairs.collect::<Map<_, _>>())
            }
        }
    }
}

struct YamlReader<'a> {
    parser: Parser<'a, saphyr_parser::StrInput<'a>>,
    flow: FlowStarts,
    above: usize,
    notes: Vec<YamlNote>,
    /// The positions of quoted texts and blocks, in characters.
    texts: Vec<Range<usize>>,
}

impl<'a> YamlReader<'a> {
    fn line(&self, span: Span) -> usize {
        self.above + span.start.line()
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), String> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(e)) => Err(format!(
                "line {}, column {}: {}",
                self.above + e.marker().line(),
                e.marker().col() + 1,
                e.info()
            )),
            None => Err("ends too early".to_owned()),
        }
    }

    fn document(&mut self) -> Result<YamlNode, String> {
        let mut node = None;
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => {
                    return Ok(node.unwrap_or_else(|| YamlNode::Text(String::new(), true)));
                }
                (Event::DocumentStart(_), _) if node.is_some() => {
                    return Err("holds more than one document".to_owned());
                }
                (
                    Event::StreamStart
                    | Event::DocumentStart(_)
                    | Event::DocumentEnd
                    | Event::Nothing,
                    _,
                ) => {}
                (event, span) => node = Some(self.node(event, span, 0)?),
            }
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<YamlNode, String> {
        let line = self.line(span);
        if depth > MAX_DEPTH {
            return Err(format!(
                "line {line}: nested deeper than {MAX_DEPTH} levels"
            ));
        }
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.check_anchor_and_tag(anchor, tag.is_some(), line)?;
                let plain = style == ScalarStyle::Plain;
                if !plain {
                    self.texts.push(span.start.index()..span.end.index());
                }
                Ok(YamlNode::Text(text.into_owned(), plain))
            }
            Event::SequenceStart(anchor, tag) => {
                self.check_anchor_and_tag(anchor, tag.is_some(), line)?;
                self.check_flow(span)?;
                self.list(depth)
            }
            Event::MappingStart(anchor, tag) => {
                self.check_anchor_and_tag(anchor, tag.is_some(), line)?;
                self.check_flow(span)?;
                self.map(depth)
            }
            Event::Alias(_) => Err(format!("line {line}: aliases (`*name`) are not supported")),
            _ => Err(format!("line {line}: a value is missing")),
        }
    }

    fn list(&mut self, depth: usize) -> Result<YamlNode, String> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(YamlNode::List(items)),
                (event, span) => items.push(self.node(event, span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<YamlNode, String> {
        let mut pairs: Vec<(String, YamlNode)> = Vec::new();
        let mut known = std::collections::HashSet::new();
        let mut column = None;
        loop {
            let (key, line) = match self.next()? {
                (Event::MappingEnd, _) => return Ok(YamlNode::Map(pairs)),
                (event, span) => match self.node(event, span, depth + 1)? {
                    YamlNode::Text(key, _) => (key, self.line(span)),
                    YamlNode::List(_) | YamlNode::Map(_) => {
                        return Err(format!("line {}: a key is not a text", self.line(span)));
                    }
                },
            };
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingStart(..)) {
                let own = span.start.col();
                if *column.get_or_insert(own) != own {
                    self.note(YamlNote::Indentation(self.line(span)))?;
                }
            }
            let value = self.node(event, span, depth + 1)?;
            if known.insert(key.clone()) {
                pairs.push((key, value));
            } else {
                self.note(YamlNote::Duplicate(key, line, depth))?;
            }
        }
    }

    fn check_anchor_and_tag(
        &mut self,
        anchor: usize,
        tagged: bool,
        line: usize,
    ) -> Result<(), String> {
        if anchor != 0 {
            self.note(YamlNote::Anchor(line))?;
        }
        if tagged {
            self.note(YamlNote::Tag(line))?;
        }
        Ok(())
    }

    fn check_flow(&mut self, span: Span) -> Result<(), String> {
        if self.flow.at(span.start.index()) {
            return self.note(YamlNote::Flow(self.line(span)));
        }
        Ok(())
    }

    fn check_tabs(&mut self, text: &str) -> Result<(), String> {
        if !text.contains('\t') {
            return Ok(());
        }
        let mut texts = std::mem::take(&mut self.texts).into_iter().peekable();
        let (mut line, mut before, mut comment) = (1, '\n', false);
        for (at, c) in text.chars().enumerate() {
            while texts.next_if(|text| text.end <= at).is_some() {}
            let inside = texts.peek().is_some_and(|text| text.start <= at);
            match c {
                '\n' => (line, comment) = (line + 1, false),
                '#' if !inside && before.is_whitespace() => comment = true,
                '\t' if !inside && !comment => return self.note(YamlNote::Tab(self.above + line)),
                _ => {}
            }
            before = c;
        }
        Ok(())
    }

    fn note(&mut self, note: YamlNote) -> Result<(), String> {
        self.notes.push(note);
        if self.notes.len() > MAX_NOTES {
            return Err(format!(
                "holds more than {MAX_NOTES} brackets, anchors, tags and repeated keys"
            ));
        }
        Ok(())
    }
}

/// The positions of brackets that may open a flow collection: events do not distinguish flow from block.
struct FlowStarts(Vec<usize>);

impl FlowStarts {
    fn of(text: &str) -> Self {
        let brackets = text.chars().enumerate();
        let brackets = brackets.filter(|(_, c)| matches!(c, '[' | '{'));
        Self(brackets.map(|(at, _)| at).collect())
    }

    fn at(&self, index: usize) -> bool {
        self.0.binary_search(&index).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{YamlNote, read};

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let got = match read(text, 0) {
            Ok(read) => format!("{} {:?}", read.node.to_value(), read.notes),
            Err(e) => e,
        };
        assert!(got.starts_with(expect), "{text:.80?}: {got}");
    }

    #[test]
    fn a_text_is_read_as_written() {
        check("a: 1\nb: yes", r#"{"a":"1","b":"yes"} []"#);
        check("", "null []");
        check("a:", r#"{"a":null} []"#);
        check("a: ''", r#"{"a":""} []"#);
        check("a: |\n  x\n  y\n", r#"{"a":"x\ny\n"} []"#);
        check("- a\n- b", r#"["a","b"] []"#);
        check(
            "a: 'b\nc'\nd: \"e \\\"\nf\"",
            r#"{"a":"b c","d":"e \" f"} []"#,
        );
        check("a:\n  b: 'c\nit''s'\n", r#"{"a":{"b":"c it's"}} []"#);
        check("# only a comment\n", "null []");
    }

    #[test]
    fn what_a_strict_reader_minds_is_noted() {
        check("a: [b]", r#"{"a":["b"]} [Flow(1)]"#);
        check("x: 1\na: {b: c}", r#"{"a":{"b":"c"},"x":"1"} [Flow(2)]"#);
        check("a: ä[b]", r#"{"a":"ä[b]"} []"#);
        check("a: &x b", r#"{"a":"b"} [Anchor(1)]"#);
        check(
            "a: b\t\nc: 'd\te' # f\tg\n",
            r#"{"a":"b","c":"d\te"} [Tab(1)]"#,
        );
        check(
            "a: 'd\te' # f\tg\nb: |\n  x\ty\n",
            r#"{"a":"d\te","b":"x\ty\n"} []"#,
        );
        check("a: !!int 3", r#"{"a":"3"} [Tag(1)]"#);
        check("a: 1\na: 2", r#"{"a":"1"} [Duplicate("a", 2, 0)]"#);
        check(
            "a:\n  b: 1\nc:\n    d: 2",
            r#"{"a":{"b":"1"},"c":{"d":"2"}} [Indentation(4)]"#,
        );
    }

    #[test]
    fn what_could_grow_or_hide_is_refused() {
        check("a: &x b\nc: *x", "line 2: aliases");
        check("a: b\0\nc: d", "holds a NUL");
        check("a: b\n---\nc: d", "holds more than one document");
        check("? [a]\n: b", "line 1: a key is not a text");
        check(&"[".repeat(100), "line 1: nested deeper than 16");
        check(&"[".repeat(60_000), "line 1, column 256: ");
        check(&"- ".repeat(30_000), "line 1: nested deeper than 16");
        check("a: \"b", "line ");
    }

    #[test]
    fn notes_are_bounded_and_none_is_lost() {
        check(&"a: 1\n".repeat(10_000), "holds more than 256");
        let text = "a: 1\n".repeat(257);
        assert_eq!(read(&text, 0).unwrap().notes.len(), 256);
        assert!(matches!(
            read("a: 1\na: 2", 7).unwrap().notes[..],
            [YamlNote::Duplicate(_, 9, 0)]
        ));
    }
}
