//! A small piece of YAML as a tree. Aliases and tags, which no package manager writes, are not understood.

use saphyr_parser::{Event, Parser};

/// Maximum depth of maps and lists.
const MAX_DEPTH: usize = 32;

/// A value. Scalars are texts, whatever they stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum YamlValue {
    Text(String),
    Map(Vec<(String, YamlValue)>),
    List(Vec<YamlValue>),
}

impl YamlValue {
    /// Returns the value of a member; of several of one name the last one.
    pub(super) fn get(&self, name: &str) -> Option<&YamlValue> {
        let member = self.members().iter().rev().find(|(key, _)| key == name);
        member.map(|(_, value)| value)
    }

    /// Returns the text of a member.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_text()
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn members(&self) -> &[(String, YamlValue)] {
        match self {
            Self::Map(members) => members,
            _ => &[],
        }
    }
}

/// Reads one document; `None` if it is none, or has what is not understood.
pub(super) fn parse(text: &str) -> Option<YamlValue> {
    let mut parser = Parser::new_from_str(text);
    let mut events = std::iter::from_fn(|| parser.next())
        .map_while(Result::ok)
        .map(|(event, _)| event)
        .skip_while(|event| matches!(event, Event::StreamStart | Event::DocumentStart(_)));
    let first = events.next()?;
    let node = node(first, &mut events, 0)?;
    let ends = matches!(events.next()?, Event::DocumentEnd);
    (ends && matches!(events.next()?, Event::StreamEnd)).then_some(node)
}

fn node<'e>(
    event: Event<'e>,
    events: &mut impl Iterator<Item = Event<'e>>,
    depth: usize,
) -> Option<YamlValue> {
    if depth > MAX_DEPTH {
        return None;
    }
    match event {
        Event::Scalar(text, _, 0, None) => Some(YamlValue::Text(text.into_owned())),
        Event::SequenceStart(0, None) => {
            let mut list = Vec::new();
            loop {
                match events.next()? {
                    Event::SequenceEnd => return Some(YamlValue::List(list)),
                    event => list.push(node(event, events, depth + 1)?),
                }
            }
        }
        Event::MappingStart(0, None) => {
            let mut members = Vec::new();
            loop {
                let key = match events.next()? {
                    Event::MappingEnd => return Some(YamlValue::Map(members)),
                    Event::Scalar(text, _, 0, None) => text.into_owned(),
                    _ => return None,
                };
                let value = events.next()?;
                members.push((key, node(value, events, depth + 1)?));
            }
        }
        _ => None,
    }
}

/// Splits a text at the lines that are not indented: each such line with those below it.
pub(super) fn sections(text: &str) -> Vec<&str> {
    pieces(text, |line| {
        !line.starts_with([' ', '\t', '#', '\n', '\r']) && !line.is_empty()
    })
}

/// Splits a section's lines below its first one at those that are indented least.
pub(super) fn entries(body: &str) -> Vec<&str> {
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let says = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let least = body.lines().filter(says).map(indent).min();
    pieces(body, |line| says(&line) && Some(indent(line)) == least)
}

fn pieces(text: &str, begins: impl Fn(&str) -> bool) -> Vec<&str> {
    let (mut pieces, mut start, mut at) = (Vec::new(), 0, 0);
    for line in text.split_inclusive('\n') {
        if begins(line) && at > start {
            pieces.push(&text[start..at]);
            start = at;
        }
        at += line.len();
    }
    if at > start {
        pieces.push(&text[start..at]);
    }
    pieces
}
