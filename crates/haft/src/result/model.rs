//! `Outcome::to_model`: the text that a model reads as the result of a call, whatever its status.

use crate::result::{Artifact, Content, Outcome, Status};

impl Outcome {
    /// Returns the text to send to the model as the result of its call. Never empty, whatever the status, and within the inline
    /// limit except for a few lines.
    ///
    /// The text of an unsuccessful call starts with the kind of failure, its message and advice. Then follow the texts; the
    /// structured content, if no text repeats it; and the artifacts not named yet, with their previews. Images and audio are
    /// named, not included: a host whose model accepts them also sends [`content`](Self::content). Advice for the operator is
    /// not included.
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
        let mut lines: Vec<String> = Vec::with_capacity(self.content.len() + 2);
        let failure = self.failure_text();
        let failure = failure.as_deref();
        // An executor may have put the same text into the content.
        let content = self.content.iter().map(named);
        lines.extend(content.filter(|text| !text.is_empty() && Some(text.as_str()) != failure));
        // A script's text is what it printed, so its return value is added.
        let unsaid = lines.is_empty() || !self.calls.is_empty();
        if unsaid && let Some(data) = &self.data {
            lines.push(data.get().to_owned());
        }
        let named = lines.join("\n");
        let unnamed = self.artifacts.iter();
        let unnamed = unnamed.filter(|artifact| !named.contains(&artifact.reference));
        lines.extend(unnamed.map(preview));
        if let Some(failure) = failure {
            let sort = self
                .error
                .as_ref()
                .map_or(self.status.as_str(), |error| error.kind.as_str());
            lines.insert(0, format!("{sort}: {failure}"));
        }
        if lines.is_empty() {
            return self.short_text();
        }
        lines.join("\n")
    }

    /// Returns the message and advice of a failed call.
    fn failure_text(&self) -> Option<String> {
        let failure = self.error.as_ref()?;
        Some(match &failure.advice {
            Some(advice) => format!("{}\n{advice}", failure.message),
            None => failure.message.clone(),
        })
    }

    /// Returns a short text for an outcome with nothing to show.
    fn short_text(&self) -> String {
        let summary = self.summary.trim();
        match (self.status, summary.is_empty()) {
            (Status::Ok, true) => "done".to_owned(),
            (Status::Ok, false) => summary.to_owned(),
            (status, true) => status.as_str().to_owned(),
            (status, false) => format!("{}: {summary}", status.as_str()),
        }
    }
}

/// Returns a piece of content as text.
fn named(content: &Content) -> String {
    match content {
        Content::Text { text } | Content::Resource { text, .. } => text.clone(),
        Content::Image { mime_type, .. } => format!("[picture, {mime_type}]"),
        Content::Audio { mime_type, .. } => format!("[sound, {mime_type}]"),
        Content::ResourceLink { uri, name, .. } => format!("[resource {name}: {uri}]"),
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
