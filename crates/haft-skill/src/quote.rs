//! Quotes values of a front matter that is not valid YAML, as its author means them: texts with `: ` in them, texts over several lines.

use crate::front::NARROWING;
use crate::yaml;

/// The keys whose values are texts, so that lines below them are never keys of a mapping.
const TEXT_KEYS: [&str; 10] = [
    "argument-hint",
    "argument_hint",
    "category",
    "compatibility",
    "description",
    "license",
    "licence",
    "name",
    "when-to-use",
    "when_to_use",
];

/// A top-level key with its value.
struct KeyValue<'a> {
    key: &'a str,
    /// What stands on the key's line.
    first: &'a str,
    /// The lines below it that belong to it.
    below: Vec<&'a str>,
}

/// Quotes the values of top-level keys: those that are invalid in YAML, or with `all` every one that may be.
pub(super) fn quote_values(front: &str, all: bool) -> String {
    let mut out = String::new();
    let mut lines = front.lines().peekable();
    while let Some(line) = lines.next() {
        let mut ahead = lines.clone();
        let quoted = KeyValue::read(line, &mut ahead).and_then(|value| {
            let text = value.quoted(all)?;
            Some((value.key, text))
        });
        match quoted {
            Some((key, text)) => {
                lines = ahead;
                out.push_str(key);
                out.push_str(": ");
                // A JSON string is a text in double quotes in YAML, too.
                out.push_str(&serde_json::Value::from(text).to_string());
            }
            None => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

impl<'a> KeyValue<'a> {
    /// Takes the lines of a value, if the line begins one.
    fn read(
        line: &'a str,
        lines: &mut std::iter::Peekable<std::str::Lines<'a>>,
    ) -> Option<KeyValue<'a>> {
        let (key, value) = key_of(line)?;
        let is_text = TEXT_KEYS.contains(&key);
        let belongs = |line: &&str| {
            let indented = line.starts_with([' ', '\t']);
            let blank = line.trim().is_empty();
            indented || (is_text && blank) || (key == "description" && lost_indentation(line))
        };
        let mut below = Vec::new();
        while let Some(line) = lines.next_if(belongs) {
            below.push(line.trim());
        }
        Some(Self {
            key,
            first: value.trim(),
            below,
        })
    }

    /// Returns the text that the author means, if it must be quoted.
    fn quoted(&self, all: bool) -> Option<String> {
        let is_text = TEXT_KEYS.contains(&self.key);
        // A limit that may be hidden in a text keeps the skill from loading.
        let narrows = |line: &&str| key_of(line).is_some_and(|(key, _)| NARROWING.contains(&key));
        if self.below.iter().any(narrows) {
            return None;
        }
        match self.first.chars().next() {
            None if !is_text => None,
            Some('#') => None,
            Some(style @ ('|' | '>')) => {
                // A block is read as it is, unless its lines are indented with tabs or not at all.
                (all && is_text && !self.parses()).then(|| self.block(style))
            }
            Some(quote @ ('"' | '\'')) => {
                let text = || {
                    let text = self.folded();
                    let inner = text.strip_prefix(quote).and_then(|t| t.strip_suffix(quote));
                    inner.map_or(text.clone(), str::to_owned)
                };
                (all && is_text && !self.parses()).then(text)
            }
            _ => {
                let text = self.folded();
                let invalid = needs_quoting(self.first) || (is_text && needs_quoting(&text));
                (invalid || all && !text.is_empty()).then_some(text)
            }
        }
    }

    /// Whether the value alone is valid YAML.
    fn parses(&self) -> bool {
        let below = self.below.iter().map(|line| format!("\n  {line}"));
        let text = format!("x: {}{}\n", self.first, below.collect::<String>());
        let misplaced = matches!(self.first.chars().next(), Some('|' | '>'));
        !misplaced && yaml::read(&text, 0).is_ok()
    }

    /// Joins the lines as YAML folds them: blanks for line ends, line ends for blank lines. Whole lines of comment are left out.
    fn folded(&self) -> String {
        let mut text = self.first.to_owned();
        for line in &self.below {
            if line.starts_with('#') {
                continue;
            }
            match (line.is_empty(), text.is_empty() || text.ends_with('\n')) {
                (true, false) => text.push('\n'),
                (false, false) => text.push(' '),
                (_, true) => {}
            }
            text.push_str(line);
        }
        text.trim().to_owned()
    }

    /// Joins the lines of a block, `|` as they are or `>` folded.
    fn block(&self, style: char) -> String {
        let lines = Self {
            key: self.key,
            first: "",
            below: self.below.clone(),
        };
        match style {
            '|' => self.below.join("\n").trim().to_owned(),
            _ => lines.folded(),
        }
    }
}

/// Splits `key: value`; `None` for a line that is indented, a comment, an item of a list, or quoted.
fn key_of(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let plain = !key.is_empty() && !key.starts_with([' ', '\t', '-', '#', '"', '\'']);
    let word = !key.trim_end().contains([' ', '\t']);
    let ends = value.is_empty() || value.starts_with([' ', '\t']);
    (plain && word && ends).then_some((key.trim_end(), value))
}

/// Whether a line is a part of the text above it: nothing in YAML begins like it.
fn lost_indentation(line: &str) -> bool {
    let word = |key: &str| !key.is_empty() && !key.contains([' ', '\t']);
    let like_key = line
        .split_once(':')
        .is_some_and(|(key, _)| word(key.trim()));
    line.starts_with(char::is_alphanumeric) && !like_key
}

fn needs_quoting(value: &str) -> bool {
    let odd_start = value.starts_with(['*', '&', '!', '@', '`', '%']);
    let colon = value.contains(": ") || value.ends_with(':') || value.contains(":\t");
    odd_start || (!value.starts_with(['[', '{']) && colon)
}
