//! What a reader gets of a call from its record, which holds the beginning of what the tool gave.

use serde_json::value::RawValue;

use crate::result::render::command::CommandStreams;
use crate::result::render::{PartMark, RenderedOutcome, frame};

/// What the record holds of a call that ended.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordedEnd<'a> {
    /// How it ended, as a word.
    pub status: &'a str,
    /// One line for the user.
    pub summary: &'a str,
    /// The kind and message of its failure.
    pub error: Option<(&'a str, &'a str)>,
    /// The beginning of what the tool gave.
    pub result: &'a str,
}

impl RecordedEnd<'_> {
    /// Returns what a reader gets of the call. Artifacts are not included: the record holds only their refs.
    pub fn render(&self) -> RenderedOutcome<'_> {
        let mut rendered = RenderedOutcome::default();
        let is_ok = self.status == "ok";
        let status = match self.error {
            Some((kind, message)) => format!("{kind}: {message}"),
            None if is_ok => self.summary.to_owned(),
            None if self.summary.is_empty() => self.status.to_owned(),
            None => format!("{}: {}", self.status, self.summary),
        };
        if !is_ok || self.result.is_empty() {
            rendered.push(PartMark::Status, status.clone());
        }
        for part in frame::read(self.result) {
            // The record of an older version has a command's data.
            let data = Some(&part)
                .filter(|part| part.mark == PartMark::Text && part.text.starts_with('{'));
            let raw: Option<&RawValue> =
                data.and_then(|part| serde_json::from_str(&part.text).ok());
            match (raw, raw.and_then(CommandStreams::of)) {
                (_, Some(streams)) => {
                    rendered.push(PartMark::Stdout, streams.stdout.clone().into_owned());
                    rendered.push(PartMark::Stderr, streams.stderr.clone().into_owned());
                    rendered.push(PartMark::Details, streams.details(is_ok, &status));
                }
                (Some(_), None) => rendered.push(PartMark::Data, part.text.into_owned()),
                // How the call ended is not part of the result.
                (None, None) if part.mark == PartMark::Status => {
                    rendered.push(PartMark::Text, part.text.into_owned());
                }
                (None, None) => rendered.push(part.mark, part.text.into_owned()),
            }
        }
        rendered
    }
}
