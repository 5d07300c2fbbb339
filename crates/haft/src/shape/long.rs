//! `LongText`: a text of any length in a result: shown whole if it fits, otherwise its beginning and end, with the whole text stored.
//!
//! The executor stores results over the inline limit; this is for texts that must not be whole in memory before that.

use std::io;
use std::sync::Arc;

use crate::artifact::source::ByteSource;
use crate::artifact::{ArtifactError, ArtifactRef};
use crate::error::ToolError;
use crate::result::Artifact;
use crate::shape::notice::{self, FullCopy};
use crate::spec::Overflow;
use crate::tokens::Tokenizer;

/// Maximum average number of bytes per token of a text that could still fit.
const BYTES_PER_TOKEN: usize = 16;
/// Average number of bytes per token: the first guess at how much can be shown.
const BYTES_SHOWN: usize = 4;
/// Number of bytes that are shown on the call's own thread; more is worth another thread.
const INLINE_BYTES: u64 = 16 << 10;
/// The media type of stored texts.
pub(crate) const TEXT: &str = "text/plain";

/// A text that may be very long.
#[derive(Clone)]
pub struct LongText {
    /// The beginning of it that is available without a gap.
    pub source: Arc<dyn ByteSource>,
    /// Its total number of bytes; more than the source's if the rest was not kept.
    pub total: u64,
    /// Its last bytes, if not all of it was kept.
    pub end: Vec<u8>,
}

/// The part of a text that is shown.
#[derive(Debug, Default)]
pub struct ShapedText {
    /// The text, or its beginning and end with a line that tells where the rest is.
    pub text: String,
    /// The whole text, if only part of it is shown.
    pub artifact: Option<Artifact>,
}

/// How much may be shown.
#[derive(Clone, Copy)]
pub(crate) struct TextLimit<'a> {
    /// The tokenizer that counts what is shown.
    pub(crate) tokenizer: &'a dyn Tokenizer,
    /// Maximum number of tokens of all texts together.
    pub(crate) limit: usize,
    /// Whether the texts become JSON strings, and count as such.
    pub(crate) json: bool,
}

impl std::fmt::Debug for LongText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LongText")
            .field("total", &self.total)
            .finish_non_exhaustive()
    }
}

/// Returns whether these texts are small enough to read and show immediately.
pub(crate) fn are_short(texts: &[LongText]) -> bool {
    texts.iter().map(|text| text.total).sum::<u64>() <= INLINE_BYTES
}

/// How a text is shown.
#[derive(Debug)]
pub(crate) enum TextShare {
    /// Whole.
    Whole(String),
    /// In part, within this many tokens.
    Part(usize),
}

/// Where the whole of a partly shown text is stored; `None` if it is not to be stored.
pub(crate) type FullTextRef = Option<Result<ArtifactRef, ArtifactError>>;

/// Reads the texts and decides how each is shown within the room.
pub(crate) fn measure(
    texts: &[LongText],
    room: TextLimit<'_>,
) -> Result<Vec<TextShare>, ToolError> {
    let mut wholes = Vec::with_capacity(texts.len());
    for text in texts {
        wholes.push(text.whole(room)?);
    }
    if let Some(wholes) = all_within(&wholes, room) {
        return Ok(wholes);
    }
    let counted = wholes.into_iter().map(|whole| {
        let whole = whole?;
        let cost = room.cost(&whole, room.limit)?;
        Some((whole, cost))
    });
    let parts: Vec<CountedText> = counted.collect();
    let shares = shares(&parts, room.limit);
    let each = parts.into_iter().zip(shares);
    Ok(each
        .map(|(part, share)| match (part, share) {
            (Some((whole, _)), None) => TextShare::Whole(whole),
            (_, share) => TextShare::Part(share.unwrap_or_default()),
        })
        .collect())
}

/// Shows the texts as measured; each share comes with the location of the whole text.
pub(crate) fn show(
    texts: &[LongText],
    room: TextLimit<'_>,
    overflow: Overflow,
    shares: Vec<(TextShare, FullTextRef)>,
) -> Result<Vec<ShapedText>, ToolError> {
    let mut shown = Vec::with_capacity(texts.len());
    for (text, (share, kept)) in texts.iter().zip(shares) {
        shown.push(match share {
            TextShare::Whole(text) => ShapedText {
                text,
                artifact: None,
            },
            TextShare::Part(share) => text.shape_partly(room, share, kept)?,
        });
    }
    if overflow == Overflow::Fail && shown.iter().any(|one| one.artifact.is_some()) {
        return Err(failed(&shown, room.limit));
    }
    Ok(shown)
}

/// A whole text and its cost, if it could be shown whole.
type CountedText = Option<(String, usize)>;

/// Returns the share of each text that is not shown whole: texts that need less than an equal share leave the rest to the others.
fn shares(parts: &[CountedText], limit: usize) -> Vec<Option<usize>> {
    let mut order: Vec<usize> = (0..parts.len()).collect();
    let cost = |at: usize| parts[at].as_ref().map_or(usize::MAX, |(_, cost)| *cost);
    order.sort_by_key(|at| cost(*at));
    let (mut left, mut open) = (limit, parts.len());
    let mut shares = vec![None; parts.len()];
    for at in order {
        let share = left / open;
        if cost(at) <= share {
            left -= cost(at);
        } else {
            left -= share;
            shares[at] = Some(share);
        }
        open -= 1;
    }
    shares
}

/// Returns the texts as they are shown if all fit whatever their tokens are, since a token is at least one byte long. Counting loads a
/// table, which takes longer than most commands run.
fn all_within(wholes: &[Option<String>], room: TextLimit<'_>) -> Option<Vec<TextShare>> {
    let mut left = room.limit;
    for whole in wholes {
        left = left.checked_sub(room.bytes(whole.as_ref()?))?;
    }
    let wholes = wholes.iter().flatten();
    Some(wholes.cloned().map(TextShare::Whole).collect())
}

fn failed(shown: &[ShapedText], limit: usize) -> ToolError {
    let artifacts = shown.iter().filter_map(|one| one.artifact.as_ref());
    let refs: Vec<String> = artifacts
        .map(|artifacts| notice::read(&artifacts.reference, 0))
        .collect();
    ToolError::failed(format!(
        "the result is over the inline limit of {limit} tokens"
    ))
    .with_advice(format!("read it with {}", refs.join(" and ")))
}

fn unreadable(error: io::Error) -> ToolError {
    ToolError::failed(format!("the output cannot be read back: {error}")).with_source(error)
}

impl TextLimit<'_> {
    /// Returns the number of bytes of a text as it counts.
    fn bytes(&self, text: &str) -> usize {
        if !self.json {
            return text.len();
        }
        serde_json::to_string(text).map_or(usize::MAX, |json| json.len())
    }

    /// Returns the cost of a text, if that is at most `limit`.
    fn cost(&self, text: &str, limit: usize) -> Option<usize> {
        if !self.json {
            return self.tokenizer.fits(text, limit);
        }
        let json = serde_json::to_string(text).ok()?;
        self.tokenizer.fits(&json, limit)
    }
}

impl LongText {
    /// Returns all of it, if it is short enough that it could fit.
    fn whole(&self, room: TextLimit<'_>) -> Result<Option<String>, ToolError> {
        let most = room.limit.saturating_mul(BYTES_PER_TOKEN) as u64;
        if self.total > most || self.total > self.source.size() {
            return Ok(None);
        }
        let bytes = self.source.whole().map_err(unreadable)?;
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Returns its beginning and end within `share` tokens; `kept` is where the whole is stored.
    fn shape_partly(
        &self,
        room: TextLimit<'_>,
        share: usize,
        kept: FullTextRef,
    ) -> Result<ShapedText, ToolError> {
        let kept = kept.map(|kept| Ok(to_artifact(&kept?, TEXT, &*self.source)?));
        let (artifact, whole) = match kept {
            None => (None, FullCopy::Cut),
            Some(Err::<_, ArtifactError>(error)) => (None, FullCopy::Lost(error.to_string())),
            Some(Ok(artifact)) => {
                let whole = FullCopy::Kept(artifact.reference.clone());
                (Some(artifact), whole)
            }
        };
        let mut bytes = share.saturating_mul(BYTES_SHOWN);
        loop {
            let text = self.head_and_tail(bytes / 2, &whole).map_err(unreadable)?;
            if room.cost(&text, share).is_some() {
                return Ok(ShapedText { text, artifact });
            }
            if bytes == 0 {
                let text = String::new();
                return Ok(ShapedText { text, artifact });
            }
            bytes = bytes / 4 * 3;
        }
    }

    /// Returns at most `side` bytes each of its beginning and end, with a notice of what is missing in between.
    fn head_and_tail(&self, side: usize, whole: &FullCopy) -> io::Result<String> {
        let head = read(&*self.source, 0, side)?;
        let head = whole_characters(&head);
        let tail = if self.end.is_empty() {
            let from = self.source.size().saturating_sub(side as u64);
            read(&*self.source, from.max(head.len() as u64), side)?
        } else {
            self.end[self.end.len().saturating_sub(side)..].to_vec()
        };
        let half = tail.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80);
        let tail = &tail[half.count()..];
        let left_out = self.total - (head.len() + tail.len()) as u64;
        let notice = if self.total > self.source.size() {
            notice::of_cut(self.total, self.source.size(), head.len(), whole)
        } else {
            notice::of_text(left_out, 0, head.len(), whole)
        };
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        Ok([&*head, &notice, &*tail].concat())
    }
}

/// Reads at most `most` bytes of a source, starting at `from`.
fn read(source: &dyn ByteSource, from: u64, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; most];
    let mut filled = 0;
    while filled < most {
        match source.read_at(from + filled as u64, &mut bytes[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// Removes an incomplete character at the end.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

/// Returns an artifact as outcomes name it.
fn to_artifact(
    reference: &ArtifactRef,
    media_type: &str,
    source: &dyn ByteSource,
) -> io::Result<Artifact> {
    let head = read(source, 0, super::PREVIEW_BYTES)?;
    Ok(Artifact {
        reference: reference.as_str().to_owned(),
        media_type: media_type.to_owned(),
        bytes: source.size(),
        preview: super::preview(&head),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;

    use super::{LongText, ShapedText, TextLimit, TextShare, measure, show};
    use crate::artifact::ArtifactRef;
    use crate::error::{ErrorKind, ToolError};
    use crate::spec::Overflow;
    use crate::tokens::{self, Tokenizer};

    fn long(text: &str) -> LongText {
        LongText {
            total: text.len() as u64,
            source: Arc::new(Bytes::copy_from_slice(text.as_bytes())),
            end: Vec::new(),
        }
    }

    /// Shows the texts with each partly shown one stored; also returns the stored texts.
    fn show_all(
        texts: &[LongText],
        room: TextLimit<'_>,
        overflow: Overflow,
    ) -> (Result<Vec<ShapedText>, ToolError>, Vec<Bytes>) {
        let mut all = Vec::new();
        let shares = measure(texts, room).unwrap().into_iter().zip(texts);
        let shares = shares.map(|(share, text)| {
            let kept = match share {
                TextShare::Part(_) if overflow != Overflow::Clip => {
                    let whole = text.source.whole().unwrap();
                    let reference = ArtifactRef::of(&whole);
                    all.push(whole);
                    Some(Ok(reference))
                }
                TextShare::Part(_) | TextShare::Whole(_) => None,
            };
            (share, kept)
        });
        let shares = shares.collect();
        (show(texts, room, overflow, shares), all)
    }

    fn shape_all(texts: &[LongText], room: TextLimit<'_>) -> (Vec<ShapedText>, Vec<Bytes>) {
        let (shown, kept) = show_all(texts, room, Overflow::Store);
        (shown.unwrap(), kept)
    }

    #[test]
    fn f3_a_text_of_any_kind_is_shown_within_its_room_and_kept_whole() {
        let lines: Vec<String> = (0..9_000).map(|n| format!("line {n} says Grüße")).collect();
        let lines = lines.join("\n");
        let rows = [
            "short".to_owned(),
            lines,
            "🦀".repeat(40_000),
            "\u{1}\"\\\n".repeat(40_000),
            "=".repeat(300_000),
        ];
        let standard = tokens::standard();
        for text in &rows {
            for tokenizer in [&tokens::Bytes as &dyn Tokenizer, &*standard] {
                for (limit, json) in [(0, true), (40, false), (700, true), (4096, false)] {
                    let room = TextLimit {
                        tokenizer,
                        limit,
                        json,
                    };
                    let (shown, kept) = shape_all(&[long(text)], room);
                    let one = &shown[0];
                    assert!(room.cost(&one.text, limit).is_some() || one.text.is_empty());
                    if one.text == *text {
                        assert!(one.artifact.is_none() && kept.is_empty());
                        continue;
                    }
                    assert!(kept == [text.as_bytes()], "kept whole");
                    let artifact = one.artifact.as_ref().unwrap();
                    assert_eq!(artifact.bytes, text.len() as u64);
                    if limit >= 700 {
                        let (head, rest) = one.text.split_once("\n… ").unwrap();
                        let (notice, tail) = rest.split_once(" …\n").unwrap();
                        assert!(text.starts_with(head) && text.ends_with(tail));
                        assert!(head.len() > 20 && tail.len() > 20, "{notice}");
                        let left = text.len() - head.len() - tail.len();
                        assert!(
                            notice.starts_with(&format!("{left} bytes left out")),
                            "{notice}"
                        );
                        assert!(notice.contains(&artifact.reference), "{notice}");
                    }
                }
            }
        }
    }

    #[test]
    fn f3_what_one_text_does_not_need_the_other_may_show() {
        let room = TextLimit {
            tokenizer: &tokens::Bytes,
            limit: 2_000,
            json: false,
        };
        let small = "e".repeat(300);
        let (shown, kept) = shape_all(&[long(&"o".repeat(9_000)), long(&small)], room);
        assert_eq!((shown[1].text.as_str(), kept.len()), (small.as_str(), 1));
        assert!(
            (1_200..=1_700).contains(&shown[0].text.len()),
            "{}",
            shown[0].text.len()
        );
    }

    /// A tokenizer whose table must not be loaded.
    struct Unloaded;

    impl Tokenizer for Unloaded {
        fn fits(&self, text: &str, _: usize) -> Option<usize> {
            panic!("counts the tokens of {} bytes", text.len())
        }

        fn head(&self, text: &str, _: usize) -> usize {
            panic!("cuts {} bytes", text.len())
        }

        fn tail(&self, text: &str, _: usize) -> usize {
            panic!("cuts {} bytes", text.len())
        }
    }

    #[test]
    fn texts_whose_bytes_fit_are_shown_without_counting_tokens() {
        let rows: [(&[&str], bool); 4] = [
            (&[], true),
            (&["", ""], true),
            (&["five\n", "and five\n"], true),
            (&["0123456789", "0123456789"], false),
        ];
        for (texts, json) in rows {
            let room = TextLimit {
                tokenizer: &Unloaded,
                limit: 20,
                json,
            };
            let texts: Vec<LongText> = texts.iter().map(|text| long(text)).collect();
            let (shown, kept) = shape_all(&texts, room);
            assert_eq!((shown.len(), kept.len()), (texts.len(), 0));
            assert!(shown.iter().all(|one| one.artifact.is_none()));
        }
    }

    #[test]
    fn f3_what_was_not_kept_is_said_with_its_size() {
        let cut = LongText {
            total: 1_000_000,
            end: b"the end".to_vec(),
            ..long(&"x".repeat(5_000))
        };
        let room = TextLimit {
            tokenizer: &tokens::Bytes,
            limit: 1_000,
            json: false,
        };
        let (shown, _) = shape_all(&[cut], room);
        let text = &shown[0].text;
        assert!(text.ends_with(" …\nthe end"), "{text}");
        assert!(
            text.contains("cut: the first 5000 of 1000000 bytes are stored"),
            "{text}"
        );
    }

    #[test]
    fn f3_a_tool_that_is_to_cut_or_fail_does() {
        let room = TextLimit {
            tokenizer: &tokens::Bytes,
            limit: 1_000,
            json: false,
        };
        let texts = [long(&"x".repeat(5_000))];
        let (clipped, _) = show_all(&texts, room, Overflow::Clip);
        let clipped = clipped.unwrap();
        assert!(clipped[0].artifact.is_none() && clipped[0].text.contains(" bytes cut"));
        let (failed, kept) = show_all(&texts, room, Overflow::Fail);
        let failed = failed.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Failed);
        let reference = ArtifactRef::of(&kept[0]);
        assert!(failed.advice().unwrap().contains(reference.as_str()));
    }
}
