//! Builds a call's result for a page and stores the page for later.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use haft::context::CallContext;
use haft::result::Content;

use crate::files::text::with_separators;
use crate::web::fetch::PageData;
use crate::web::fetch::page::{FetchedPage, PageBody};

/// Returns the line that separates the pages of a call.
pub(super) fn heading(data: &PageData) -> String {
    let url = data.final_url.as_deref().unwrap_or(&data.url);
    let status = data.status.map_or(String::new(), |s| format!(" ({s})"));
    format!("--- {url}{status}")
}

/// Stores bytes for the run and returns their ref. If that fails, adds a note.
async fn keep(
    context: &CallContext,
    notes: &mut Vec<String>,
    media_type: &str,
    bytes: Bytes,
) -> Option<String> {
    if bytes.is_empty() {
        return None;
    }
    let stored = match context.artifacts() {
        Ok(artifacts) => artifacts.put(media_type, bytes).await,
        Err(error) => {
            notes.push(format!("it was not stored: {error}"));
            return None;
        }
    };
    match stored {
        Ok(reference) => Some(reference.as_str().to_owned()),
        Err(why) => {
            notes.push(format!("it was not stored: {why}"));
            None
        }
    }
}

/// Stores the page and returns the part of it that may be shown.
pub(super) async fn page_result(
    got: FetchedPage,
    context: &CallContext,
    max: usize,
) -> (PageData, Vec<Content>) {
    let mut data = PageData {
        url: got.url,
        final_url: Some(got.final_url),
        status: Some(got.status),
        media_type: Some(got.media_type.clone()),
        title: got.title,
        notes: got.notes,
        ..PageData::default()
    };
    let mut parts = Vec::new();
    match got.body {
        PageBody::Text {
            text,
            media_type,
            as_sent,
        } => {
            if as_sent {
                data.artifact = keep(context, &mut data.notes, &got.media_type, got.raw).await;
            } else {
                let raw = keep(context, &mut data.notes, &got.media_type, got.raw).await;
                data.artifact = keep(
                    context,
                    &mut data.notes,
                    &media_type,
                    Bytes::from(text.clone()),
                )
                .await;
                data.raw = raw;
            }
            // The rest can be read from the artifact.
            context.note_links(&text);
            parts.extend(excerpt(&mut data, &text, max));
        }
        PageBody::Picture => {
            parts.push(Content::Image {
                data: STANDARD.encode(&got.raw),
                mime_type: got.media_type.clone(),
            });
            data.artifact = keep(context, &mut data.notes, &got.media_type, got.raw).await;
        }
        PageBody::Kept => {
            let bytes = got.raw.len();
            data.artifact = keep(context, &mut data.notes, &got.media_type, got.raw).await;
            let size = with_separators(bytes as u64);
            parts.push(Content::text(format!("[{}, {size} bytes]", got.media_type)));
        }
    }
    if !data.notes.is_empty() {
        parts.push(Content::text(format!("[{}]", data.notes.join("; "))));
    }
    (data, parts)
}

/// Returns the beginning of the text, and how to continue.
fn excerpt(data: &mut PageData, text: &str, max: usize) -> Vec<Content> {
    let chars = text.chars().count();
    data.chars = Some(chars);
    data.truncated = Some(chars > max);
    let Some((end, _)) = text.char_indices().nth(max) else {
        return vec![Content::text(text)];
    };
    let counted = format!(
        "[{} of {} characters",
        with_separators(max as u64),
        with_separators(chars as u64)
    );
    let on = match &data.artifact {
        Some(reference) => {
            format!("{counted}; continue with read_artifact ref={reference} offset={end}]")
        }
        None => format!("{counted}]"),
    };
    vec![Content::text(&text[..end]), Content::text(on)]
}
