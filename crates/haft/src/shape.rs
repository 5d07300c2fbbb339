//! Shaping: makes a result fit the inline limit; what is too large is stored whole and replaced by a preview.

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::artifact::ArtifactError;
use crate::call::RunId;
use crate::error::ErrorKind;
use crate::future::BoxFuture;
use crate::result::{Artifact, Content, Failure};
use crate::spec::Overflow;
use crate::tokens::Tokenizer;

mod data;
pub mod long;
mod media;
mod notice;
mod text;

// The limits in these tests are in tokens; counting in bytes is tested elsewhere.
#[cfg(all(test, feature = "o200k"))]
mod tests;

use notice::FullCopy;

/// Maximum length, in bytes, of the preview of an artifact in an outcome (contract §3).
pub const PREVIEW_BYTES: usize = 1024;
/// Maximum number of pieces of content that stay separate; more are joined.
const MAX_PIECES: usize = 256;

/// The limits of what may be returned inline, and how to handle more.
#[derive(Debug, Clone, Copy)]
pub struct InlineLimits<'a> {
    /// The tokenizer that counts for the limit; [`Bytes`](crate::tokens::Bytes) inside a chain.
    pub tokenizer: &'a dyn Tokenizer,
    /// Maximum number of tokens of the texts and of the compact JSON of the data together.
    pub limit: usize,
    /// Maximum total size of images and audio, in bytes.
    pub media_bytes: usize,
    /// How to handle more.
    pub overflow: Overflow,
    /// The run that artifacts belong to, for their URIs.
    pub run: &'a RunId,
    /// Whether an output schema describes the data, so that a preview must keep to its types.
    pub typed: bool,
}

/// Stores the artifacts of the run.
pub trait ArtifactKeeper: Send + Sync {
    /// Stores bytes with this media type.
    ///
    /// # Errors
    /// The error of the store.
    fn keep<'k>(
        &'k self,
        media_type: &'k str,
        bytes: Bytes,
    ) -> BoxFuture<'k, Result<Artifact, ArtifactError>>;
}

/// A result within its limits.
#[derive(Debug, Default)]
pub struct FittedResult {
    /// The content, or a preview of it.
    pub content: Vec<Content>,
    /// The data, or a preview of it; an object.
    pub data: Option<Box<RawValue>>,
    /// What to say about what is not returned inline.
    pub notes: Vec<String>,
    /// The artifacts that were stored.
    pub artifacts: Vec<Artifact>,
    /// Set if the overflow is [`Overflow::Fail`] and something was too large.
    pub error: Option<Failure>,
    /// Whether the content is complete.
    pub content_is_whole: bool,
    /// Whether the data is complete.
    pub data_is_whole: bool,
}

impl FittedResult {
    /// Creates an empty result that counts as complete.
    pub(crate) fn whole() -> Self {
        Self {
            content_is_whole: true,
            data_is_whole: true,
            ..Self::default()
        }
    }
}

/// Wraps data that is not an object as `{"result": value}`: structured content is always an object.
pub fn object(raw: Box<RawValue>) -> Box<RawValue> {
    if raw.get().starts_with('{') {
        return raw;
    }
    let wrapped = format!("{{\"result\":{}}}", raw.get());
    RawValue::from_string(wrapped).unwrap_or(raw)
}

/// Returns the start of an artifact: at most [`PREVIEW_BYTES`], in whole characters; empty if it is not text.
pub fn preview(bytes: &[u8]) -> String {
    let head = bytes
        .get(..bytes.len().min(PREVIEW_BYTES))
        .unwrap_or_default();
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // A character cut at the end does not mean that the data is binary.
        Err(e) if e.error_len().is_none() => {
            let sound = head.get(..e.valid_up_to()).unwrap_or_default();
            std::str::from_utf8(sound).unwrap_or_default()
        }
        Err(_) => "",
    };
    text.to_owned()
}

/// Returns whether a result may be returned inline unchanged.
pub fn is_within(content: &[Content], data: Option<&RawValue>, bounds: &InlineLimits<'_>) -> bool {
    media::total(content) <= bounds.media_bytes
        && content.len() <= MAX_PIECES
        && within(content, data, bounds)
}

/// Makes a result fit. What fits is returned unchanged, without copying. Without `keep` there is no store, and what is too large
/// is cut.
pub async fn fit(
    content: Vec<Content>,
    data: Option<Box<RawValue>>,
    bounds: &InlineLimits<'_>,
    keep: Option<&dyn ArtifactKeeper>,
) -> FittedResult {
    let data = data.map(object);
    if is_within(&content, data.as_deref(), bounds) {
        return FittedResult {
            content,
            data,
            ..FittedResult::whole()
        };
    }
    let keep = keep.filter(|_| bounds.overflow != Overflow::Clip);
    let mut shaper = Shaper {
        bounds,
        keep,
        fitted: FittedResult::default(),
    };
    shaper.run(content, data).await;
    shaper.fitted
}

/// Returns the size of all texts, images and audio of a content.
pub(crate) fn text_bytes(content: &[Content]) -> usize {
    let texts = content.iter().flat_map(texts).map(str::len).sum::<usize>();
    texts.saturating_add(media::total(content))
}

/// Returns the texts of a piece that count.
fn texts(piece: &Content) -> [&str; 2] {
    match piece {
        Content::Text { text } => [text, ""],
        Content::Resource { text, uri, .. } => [text, uri],
        Content::ResourceLink { uri, name, .. } => [name, uri],
        Content::Image { .. } | Content::Audio { .. } => ["", ""],
    }
}

/// Returns whether texts and data fit. A token is at least one byte, so a small total needs no counting.
fn within(content: &[Content], data: Option<&RawValue>, bounds: &InlineLimits<'_>) -> bool {
    let texts = || {
        content
            .iter()
            .flat_map(texts)
            .chain(data.map(RawValue::get))
    };
    if texts().map(str::len).sum::<usize>() <= bounds.limit {
        return true;
    }
    let left = texts().try_fold(bounds.limit, |left, text| spend(bounds, text, left));
    left.is_some()
}

/// Returns what a text leaves of a limit; `None` if the text exceeds it.
fn spend(bounds: &InlineLimits<'_>, text: &str, left: usize) -> Option<usize> {
    if text.is_empty() {
        return Some(left);
    }
    left.checked_sub(bounds.tokenizer.fits(text, left)?)
}

struct Shaper<'a> {
    bounds: &'a InlineLimits<'a>,
    keep: Option<&'a dyn ArtifactKeeper>,
    fitted: FittedResult,
}

impl Shaper<'_> {
    async fn run(&mut self, content: Vec<Content>, data: Option<Box<RawValue>>) {
        let before = media::total(&content);
        let content = self.media(content).await;
        // Media over the limit is replaced by something shorter.
        let media_stay = media::total(&content) == before;
        if self.bounds.overflow == Overflow::Fail {
            self.keep_all(&content, data).await;
            self.fail();
        } else if within(&content, data.as_deref(), self.bounds) && content.len() <= MAX_PIECES {
            self.fitted.content = content;
            self.fitted.data = data;
            self.fitted.content_is_whole = media_stay;
            self.fitted.data_is_whole = true;
        } else {
            self.shrink(content, data).await;
            self.fitted.content_is_whole &= media_stay;
        }
    }

    /// Stores bytes if there is a store; returns the result.
    async fn keep(&mut self, media_type: &str, bytes: &Bytes) -> FullCopy {
        let Some(keep) = self.keep else {
            return FullCopy::Cut;
        };
        match keep.keep(media_type, bytes.clone()).await {
            Ok(artifact) => {
                let whole = FullCopy::Kept(artifact.reference.clone());
                if !self.fitted.artifacts.contains(&artifact) {
                    self.fitted.artifacts.push(artifact);
                }
                whole
            }
            Err(error) => FullCopy::Lost(error.to_string()),
        }
    }

    async fn keep_all(&mut self, content: &[Content], data: Option<Box<RawValue>>) {
        let text = text::join(content);
        if !text.is_empty() {
            self.keep("text/plain", &Bytes::from(text)).await;
        }
        if let Some(data) = data {
            self.keep("application/json", &bytes_of(data)).await;
        }
    }

    fn fail(&mut self) {
        let refs: Vec<String> = self
            .fitted
            .artifacts
            .iter()
            .map(|a| notice::read(&a.reference, 0))
            .collect();
        let advice = if refs.is_empty() {
            "ask for less: a range, a filter or a lower limit".to_owned()
        } else {
            format!("read it with {}", refs.join(" and "))
        };
        let limit = self.bounds.limit;
        self.fitted = FittedResult {
            artifacts: std::mem::take(&mut self.fitted.artifacts),
            error: Some(Failure {
                kind: ErrorKind::Failed,
                message: format!("the result is over the inline limit of {limit} tokens"),
                advice: Some(advice),
            }),
            ..FittedResult::default()
        };
    }

    /// Divides the limit between texts and data, and previews what exceeds its share.
    async fn shrink(&mut self, content: Vec<Content>, data: Option<Box<RawValue>>) {
        let limit = self.bounds.limit;
        let Some(data) = data else {
            let (content, _) = self.fit_texts(content, limit).await;
            self.fitted.content = content;
            self.fitted.data_is_whole = true;
            return;
        };
        let half = limit / 2;
        let texts = content.iter().flat_map(texts);
        let texts_left = texts
            .into_iter()
            .try_fold(half, |left, text| spend(self.bounds, text, left));
        if let Some(left) = texts_left.filter(|_| content.len() <= MAX_PIECES) {
            // The texts are small: the data gets everything that they leave.
            self.fitted.data = self.fit_data(data, limit - half + left).await;
            self.fitted.content_is_whole = true;
            self.fitted.content = content;
            return;
        }
        if let Some(left) = spend(self.bounds, data.get(), half) {
            let (content, _) = self.fit_texts(content, limit - half + left).await;
            self.fitted.content = content;
            self.fitted.data = Some(data);
            self.fitted.data_is_whole = true;
            return;
        }
        let (content, left) = self.fit_texts(content, half).await;
        self.fitted.data = self.fit_data(data, limit - half + left).await;
        self.fitted.content = content;
    }

    /// Returns a preview of texts within `limit` tokens, and the tokens that it leaves.
    async fn fit_texts(&mut self, content: Vec<Content>, limit: usize) -> (Vec<Content>, usize) {
        let joined = Bytes::from(text::join(&content));
        let whole = self.keep("text/plain", &joined).await;
        let text = std::str::from_utf8(&joined).unwrap_or_default();
        let shown = text::preview(text, &whole, self.bounds.tokenizer, limit);
        let left = spend(self.bounds, &shown, limit).unwrap_or_default();
        let media =
            |piece: &Content| matches!(piece, Content::Image { .. } | Content::Audio { .. });
        let mut shaped = Vec::new();
        if !shown.is_empty() {
            shaped.push(Content::Text { text: shown });
        }
        shaped.extend(content.into_iter().filter(media).take(MAX_PIECES));
        (shaped, left)
    }

    /// Returns a preview of the data and notes that it is one, within `limit` tokens together.
    async fn fit_data(&mut self, data: Box<RawValue>, limit: usize) -> Option<Box<RawValue>> {
        let bytes = bytes_of(data);
        let whole = self.keep("application/json", &bytes).await;
        let text = std::str::from_utf8(&bytes).unwrap_or_default();
        let notice = notice::of_data(text.len(), &whole);
        // With a very low limit, the data takes precedence.
        let left = spend(self.bounds, &notice, limit / 2);
        self.fitted.notes.extend(left.map(|_| notice));
        let room = left.map_or(limit, |left| limit - limit / 2 + left);
        data::preview(text, self.bounds.tokenizer, room, self.bounds.typed)
    }
}

fn bytes_of(raw: Box<RawValue>) -> Bytes {
    let text: Box<str> = raw.into();
    Bytes::from(String::from(text))
}
