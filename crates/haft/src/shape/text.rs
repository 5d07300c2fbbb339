//! Texts that are too long: head and tail, with a notice of what is missing in between.

use crate::result::Content;
use crate::tokens::{Bytes, Tokenizer};

use super::notice::{self, FullCopy};
use super::texts;

/// Joins all texts of a content, in order, on separate lines; for a link, its name and address.
pub(super) fn join(content: &[Content]) -> String {
    let mut all = String::with_capacity(content.iter().flat_map(texts).map(str::len).sum());
    for piece in content {
        let parts: &[&str] = match piece {
            Content::Text { text } | Content::Resource { text, .. } => &[text],
            Content::ResourceLink { name, uri, .. } => &[name, " ", uri],
            Content::Image { .. } | Content::Audio { .. } => continue,
        };
        if !all.is_empty() && !all.ends_with('\n') {
            all.push('\n');
        }
        all.extend(parts.iter().copied());
    }
    all
}

/// Returns at most `limit` tokens of a text: the text itself, or head, notice and tail.
pub(super) fn preview(
    text: &str,
    whole: &FullCopy,
    tokenizer: &dyn Tokenizer,
    limit: usize,
) -> String {
    if text.len() <= limit || tokenizer.fits(text, limit).is_some() {
        return text.to_owned();
    }
    // Count the notice with the largest numbers it can have.
    let longest = notice::of_text(text.len() as u64, text.len(), text.len(), whole);
    let Some(room) = tokenizer.fits(&longest, limit).map(|notice| limit - notice) else {
        return text
            .get(..head(text, tokenizer, limit))
            .unwrap_or_default()
            .to_owned();
    };
    // The head gets three quarters of the room: most texts state first what they are.
    // Joined pieces may count one token more or less than separately; then try with a little less.
    for part in [64, 62, 56, 48, 32] {
        let room = room * part / 64;
        let shown = head_and_tail(text, whole, tokenizer, room);
        if tokenizer.fits(&shown, limit).is_some() {
            return shown;
        }
    }
    text.get(..Bytes.head(text, limit))
        .unwrap_or_default()
        .to_owned()
}

fn head_and_tail(text: &str, whole: &FullCopy, tokenizer: &dyn Tokenizer, room: usize) -> String {
    let head = tokenizer.head(text, room - room / 4);
    let rest = text.get(head..).unwrap_or_default();
    let tail = tokenizer.tail(rest, room / 4);
    let (left_out, tail) = rest.split_at_checked(tail).unwrap_or_default();
    let lines = memchr::memchr_iter(b'\n', left_out.as_bytes()).count();
    let head = text.get(..head).unwrap_or_default();
    let notice = notice::of_text(left_out.len() as u64, lines, head.len(), whole);
    [head, &notice, tail].concat()
}

/// Returns where the head ends if nothing else is shown.
fn head(text: &str, tokenizer: &dyn Tokenizer, limit: usize) -> usize {
    let end = tokenizer.head(text, limit);
    let alone = text.get(..end).unwrap_or_default();
    if end <= limit || tokenizer.fits(alone, limit).is_some() {
        return end;
    }
    Bytes.head(text, limit)
}
