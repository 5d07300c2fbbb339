//! `Outcome::render`: what a reader gets of a call, in marked parts, and `Outcome::to_model`: the same as one text.
//!
//! First what happened, then what the tool gave (its output, texts, data, media), then the notes that haft adds, then artifacts that no
//! text names. Whatever is already there, nothing that the tool gave is left out, except data that a text repeats word for word.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::result::{Artifact, Content, Outcome, Status};

mod command;
mod compare;
mod frame;
mod record;
#[cfg(test)]
mod tests;

pub use record::RecordedEnd;

/// What a part of a rendered outcome is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartMark {
    /// How the call ended, and why.
    Status,
    /// The standard output of a command.
    Stdout,
    /// The standard error of a command.
    Stderr,
    /// A text that the tool gave.
    Text,
    /// Structured data, as JSON.
    Data,
    /// What else is known of a command besides its output, as JSON.
    Details,
    /// The name of an image, audio or resource.
    Media,
    /// What haft adds: advice, and facts about the call.
    Note,
    /// A large result stored as an artifact, with its beginning.
    Artifact,
}

impl PartMark {
    /// All marks, in the order in which parts stand.
    pub const ALL: [Self; 9] = [
        Self::Status,
        Self::Stdout,
        Self::Stderr,
        Self::Text,
        Self::Data,
        Self::Details,
        Self::Media,
        Self::Note,
        Self::Artifact,
    ];

    /// Returns the word that stands in the head of its section.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Text => "text",
            Self::Data => "data",
            Self::Details => "details",
            Self::Media => "media",
            Self::Note => "note",
            Self::Artifact => "artifact",
        }
    }

    /// Returns whether the tool wrote it, rather than haft.
    pub fn is_output(self) -> bool {
        !matches!(self, Self::Status | Self::Note)
    }
}

/// A part of a rendered outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RenderedPart<'a> {
    /// What it is.
    pub mark: PartMark,
    /// Its text; never empty.
    pub text: Cow<'a, str>,
}

impl RenderedPart<'_> {
    /// Returns the part with its own copy of the text.
    pub fn into_owned(self) -> RenderedPart<'static> {
        RenderedPart {
            mark: self.mark,
            text: self.text.into_owned().into(),
        }
    }
}

/// What a reader gets of a call, in order. A host may style each part by its mark; [`to_text`](Self::to_text) is the text for models.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct RenderedOutcome<'a> {
    /// The parts.
    pub parts: Vec<RenderedPart<'a>>,
}

impl<'a> RenderedOutcome<'a> {
    /// Adds a part, unless its text is empty.
    fn push(&mut self, mark: PartMark, text: impl Into<Cow<'a, str>>) {
        let text = text.into();
        if !text.is_empty() {
            self.parts.push(RenderedPart { mark, text });
        }
    }

    /// Returns the texts of the parts with this mark.
    pub fn texts(&self, mark: PartMark) -> impl Iterator<Item = &str> {
        let of = self.parts.iter().filter(move |part| part.mark == mark);
        of.map(|part| &*part.text)
    }

    /// Returns whether there is a part with this mark.
    pub fn has(&self, mark: PartMark) -> bool {
        self.parts.iter().any(|part| part.mark == mark)
    }

    /// Returns the parts as one text, in which nobody can take a tool's output for what haft says, or the reverse.
    ///
    /// A part begins with a head, `--- stdout ---`, where that is needed to tell it from the part before it. Where a part has a line
    /// that looks like a head, all parts get heads with more dashes: the lines with the most dashes are the heads.
    ///
    /// ```
    /// use haft::result::{PartMark, RenderedPart, RenderedOutcome};
    ///
    /// let part = |mark, text: &'static str| RenderedPart { mark, text: text.into() };
    /// let rendered = RenderedOutcome {
    ///     parts: vec![part(PartMark::Status, "failed: exit code 1"), part(PartMark::Stdout, "2 failed\n"), part(PartMark::Note, ".env looks empty")],
    /// };
    /// assert_eq!(rendered.to_text(), "failed: exit code 1\n--- stdout ---\n2 failed\n--- note ---\n.env looks empty");
    /// ```
    pub fn to_text(&self) -> String {
        frame::write(&self.parts)
    }

    /// Returns the notes alone, in the frame that tells them from the other parts, which the reader gets by another way.
    pub fn notes_text(&self) -> Option<String> {
        frame::write_notes(&self.parts)
    }

    /// Returns the text of what the tool gave and the notes, without how the call ended and without artifacts, for the record.
    pub(crate) fn body(&self) -> String {
        let parts = self.parts.iter();
        let parts =
            parts.filter(|part| !matches!(part.mark, PartMark::Status | PartMark::Artifact));
        let parts: Vec<RenderedPart<'_>> = parts.cloned().collect();
        frame::write(&parts)
    }
}

impl Outcome {
    /// Returns what a reader gets of the call, in marked parts. Advice for the operator is not included.
    pub fn render(&self) -> RenderedOutcome<'_> {
        self.render_beside(|_| false)
    }

    /// Like [`render`](Self::render), without the content that the reader gets beside it in its own form: an image as an image.
    pub fn render_beside(&self, is_beside: impl Fn(&Content) -> bool) -> RenderedOutcome<'_> {
        let own = self.content.iter().filter(|content| !is_beside(content));
        let mut output = RenderedOutcome::default();
        // A call that waits has no output: its content says what it waits for.
        let waits = self.status == Status::Suspended && self.error.is_none();
        let texts: Vec<&str> = own.clone().filter_map(text_of).collect();
        let streams = self.data.as_deref().and_then(command::CommandStreams::of);
        if let Some(streams) = &streams {
            output.push(PartMark::Stdout, streams.stdout.clone());
            output.push(PartMark::Stderr, streams.stderr.clone());
        }
        if !waits {
            let reason = self.error.as_ref().map(|error| error.message.as_str());
            let is_said = |text: &str| {
                let streams = streams.as_ref();
                let is_stream =
                    streams.is_some_and(|said| said.stdout == text || said.stderr == text);
                is_stream || Some(text) == reason
            };
            for text in texts.iter().filter(|text| !is_said(text)) {
                output.push(PartMark::Text, *text);
            }
        }
        let status = self.status_text(if waits { &texts } else { &[] });
        if let Some(streams) = streams {
            output.push(PartMark::Details, streams.details(self.is_ok(), &status));
        } else if let Some(data) = self.data.as_deref().filter(|data| !self.says(data)) {
            output.push(PartMark::Data, data.get());
        }
        for media in own.filter_map(name_of) {
            output.push(PartMark::Media, media);
        }
        self.around(output, status, is_beside)
    }

    /// Returns the text to send to the model as the result of its call: [`render`](Self::render) as one text. Never empty, whatever the
    /// status, and within the inline limit except for a few lines.
    ///
    /// Images and audio are named, not included: a host whose model accepts them also sends [`content`](Self::content). Advice for the
    /// operator is not included.
    ///
    /// ```
    /// use haft::{Executor, Policy, Profile, Session, ToolCall, ToolRegistry, tool};
    ///
    /// /// Add two numbers.
    /// #[tool]
    /// fn add(a: i64, b: i64) -> i64 {
    ///     a + b
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let session = Session::new(ToolRegistry::new().with(add)?);
    /// let executor = Executor::new(Policy::builder(Profile::Workspace).deny("add(a:13)").build()?);
    /// let mut chat = Vec::new();
    /// for arguments in [r#"{"a":2,"b":3}"#, r#"{"a":13,"b":3}"#, r#"{"a":2}"#] {
    ///     let outcome = executor.execute(&session, ToolCall::new("add", arguments)).await;
    ///     chat.push(outcome.to_model());
    /// }
    /// assert_eq!(chat[0], r#"{"result":5}"#);
    /// assert!(chat[1].starts_with("denied: "));
    /// assert!(chat[2].starts_with("invalid_arguments: "));
    /// # Ok(()) }
    /// ```
    pub fn to_model(&self) -> String {
        self.render().to_text()
    }

    /// Puts what the tool gave between what happened and the notes.
    fn around<'a>(
        &'a self,
        output: RenderedOutcome<'a>,
        status: Cow<'a, str>,
        is_beside: impl Fn(&Content) -> bool,
    ) -> RenderedOutcome<'a> {
        let mut rendered = RenderedOutcome::default();
        let is_silent = output.parts.is_empty()
            && self.artifacts.is_empty()
            && !self.content.iter().any(is_beside);
        if !self.is_ok() || is_silent {
            rendered.push(PartMark::Status, status);
        }
        rendered.parts.extend(output.parts);
        let advice = self
            .error
            .as_ref()
            .and_then(|error| error.advice.as_deref());
        for note in advice
            .into_iter()
            .chain(self.notes.iter().map(String::as_str))
        {
            rendered.push(PartMark::Note, note);
        }
        if let Some(outer) = self.outer_error.as_ref().filter(|_| self.is_ok()) {
            let failed = format!("the call that this is a part of failed: {}", outer.message);
            rendered.push(PartMark::Note, failed);
        }
        for artifact in &self.artifacts {
            let mut parts = rendered.parts.iter();
            if !parts.any(|part| part.text.contains(&artifact.reference)) {
                rendered.push(PartMark::Artifact, preview(artifact));
            }
        }
        rendered
    }

    /// Returns how the call ended and why; `waits` are the texts about what it waits for.
    fn status_text(&self, waits: &[&str]) -> Cow<'_, str> {
        let summary = self.summary.trim();
        if let Some(error) = &self.error {
            return format!("{}: {}", error.kind.as_str(), self.reason(&error.message)).into();
        }
        let word = self.status.as_str();
        match (self.status, summary, &self.approval) {
            (Status::Ok, "", _) => "done".into(),
            (Status::Ok, summary, _) => summary.into(),
            (Status::Suspended, _, Some(id)) if !waits.is_empty() => {
                let words = waits.join("\n");
                if words.contains(id.as_str()) {
                    return format!("{word}: {words}").into();
                }
                format!("{word}: {words} (approval {id})").into()
            }
            (Status::Suspended, _, None) if !waits.is_empty() => {
                format!("{word}: {}", waits.join("\n")).into()
            }
            (_, "", _) => word.into(),
            (_, summary, _) => format!("{word}: {summary}").into(),
        }
    }

    /// Returns the reason of a failure: its first line, where a text has the rest of it.
    fn reason<'a>(&self, message: &'a str) -> &'a str {
        let (line, rest) = message.split_once('\n').unwrap_or((message, ""));
        let whole = message.trim_end_matches('…');
        let has_rest = |text: &str| text != message && text.starts_with(whole);
        if !rest.is_empty() && self.content.iter().filter_map(text_of).any(has_rest) {
            return line;
        }
        message
    }

    /// Returns whether a text says what the data says: the tool declares so, or it is the data.
    fn says(&self, data: &serde_json::value::RawValue) -> bool {
        let mut texts = self.content.iter().filter_map(text_of);
        if self.data_is_for_programs {
            return texts.next().is_some();
        }
        texts.any(|text| compare::is_same(text, data))
    }
}

/// Returns the text of a piece of content, if it is one and says something.
fn text_of(content: &Content) -> Option<&str> {
    match content {
        Content::Text { text } | Content::Resource { text, .. } => Some(text),
        Content::Image { .. } | Content::Audio { .. } | Content::ResourceLink { .. } => None,
    }
    .map(String::as_str)
    .filter(|text| !text.is_empty())
}

/// Returns the name of a piece of content that is not text.
fn name_of(content: &Content) -> Option<String> {
    match content {
        Content::Text { .. } | Content::Resource { .. } => None,
        Content::Image { mime_type, .. } => Some(format!("[picture, {mime_type}]")),
        Content::Audio { mime_type, .. } => Some(format!("[sound, {mime_type}]")),
        Content::ResourceLink { uri, name, .. } => Some(format!("[resource {name}: {uri}]")),
    }
}

/// Returns the text for an artifact that no other text names.
fn preview(artifact: &Artifact) -> String {
    let Artifact {
        reference,
        media_type,
        bytes,
        preview,
    } = artifact;
    let head = format!("[artifact {reference}: {media_type}, {bytes} bytes]");
    if preview.is_empty() {
        return head;
    }
    format!("{head}\n{preview}")
}
