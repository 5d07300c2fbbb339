//! Pictures: their formats and sizes, read from their first bytes. Nothing is decoded here.

use haft::approval::meaning::{Meaning, MeaningKind, Picture, Pictures};

use super::words::{name, size};

/// Ends of names of pictures.
const ENDS: [&str; 5] = [".gif", ".jpeg", ".jpg", ".png", ".webp"];

/// Maximum number of pixels of a picture that is made smaller.
pub(in crate::command) const MAX_PIXELS: u64 = 50_000_000;
/// Maximum length of a thumbnail in base64, in bytes.
pub(in crate::command) const MAX_THUMBNAIL: usize = 128 << 10;

/// Returns true if a path, in lower case, names a picture.
pub(super) fn is_named(path: &str) -> bool {
    ENDS.iter().any(|end| path.ends_with(end))
}

/// Returns what the change of a picture means; `None` if neither side is one.
pub(super) fn meaning(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> Option<Meaning> {
    if !is_named(&path.to_ascii_lowercase()) {
        return None;
    }
    let (was, is) = (before.and_then(picture), after.and_then(picture));
    let all_are = before.is_some() == was.is_some() && after.is_some() == is.is_some();
    if !all_are || (was.is_none() && is.is_none()) {
        return None;
    }
    let words = |one: &Picture| format!("{}×{}, {}", one.width, one.height, size(one.bytes));
    let change = match (&was, &is) {
        (Some(was), Some(is)) => format!("{} → {}", words(was), words(is)),
        (None, Some(is)) => format!("new, {}", words(is)),
        (Some(was), None) => format!("deleted, {}", words(was)),
        (None, None) => return None,
    };
    let title = format!("picture {}: {change}", name(path.as_bytes()));
    let mut meaning = Meaning::new(MeaningKind::Image, title);
    meaning.pictures = Some(Pictures {
        before: was,
        after: is,
    });
    Some(meaning)
}

fn picture(bytes: &[u8]) -> Option<Picture> {
    let (media_type, width, height) = png(bytes)
        .or_else(|| gif(bytes))
        .or_else(|| webp(bytes))
        .or_else(|| jpeg(bytes))?;
    Some(Picture {
        media_type: media_type.to_owned(),
        width,
        height,
        bytes: bytes.len() as u64,
        thumbnail: None,
    })
}

type PictureSize = (&'static str, u32, u32);

/// PNG, third edition, 11.2.1: the header is the first chunk.
fn png(bytes: &[u8]) -> Option<PictureSize> {
    let is_png = bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.get(12..16)? == b"IHDR";
    let word = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    is_png.then_some(())?;
    Some(("image/png", word(16)?, word(20)?))
}

/// `GIF89a`, 18: the logical screen.
fn gif(bytes: &[u8]) -> Option<PictureSize> {
    let is_gif = bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a");
    let word = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    is_gif.then_some(())?;
    Some(("image/gif", word(6)?.into(), word(8)?.into()))
}

/// RFC 9649: the first chunk is lossy, lossless or extended.
fn webp(bytes: &[u8]) -> Option<PictureSize> {
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12)? == b"WEBP";
    is_webp.then_some(())?;
    let half = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let three = |at: usize| {
        let low = u32::from(half(at)?);
        Some(low | u32::from(*bytes.get(at + 2)?) << 16)
    };
    let (width, height) = match bytes.get(12..16)? {
        b"VP8 " => (u32::from(half(26)? & 0x3fff), u32::from(half(28)? & 0x3fff)),
        b"VP8L" => {
            let bits = u32::from_le_bytes(bytes.get(21..25)?.try_into().ok()?);
            ((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1)
        }
        b"VP8X" => (three(24)? + 1, three(27)? + 1),
        _ => return None,
    };
    Some(("image/webp", width, height))
}

/// ITU-T T.81, B.2.2: the frame header.
fn jpeg(bytes: &[u8]) -> Option<PictureSize> {
    const MAX_SEGMENTS: usize = 1_000;
    if !bytes.starts_with(&[0xff, 0xd8]) {
        return None;
    }
    let word = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let mut at = 2;
    for _ in 0..MAX_SEGMENTS {
        while bytes.get(at) == Some(&0xff) && bytes.get(at + 1) == Some(&0xff) {
            at += 1;
        }
        let marker = *bytes.get(at + 1).filter(|_| bytes.get(at) == Some(&0xff))?;
        let is_frame = matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc);
        if is_frame {
            return Some(("image/jpeg", word(at + 7)?.into(), word(at + 5)?.into()));
        }
        at += 2 + usize::from(word(at + 2)?);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::picture;

    #[test]
    fn a_size_is_read_from_the_first_bytes_alone() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\xff\xff\0\0\xff\xfe";
        let bomb = picture(png).unwrap();
        assert_eq!(
            (bomb.width, bomb.height, bomb.thumbnail),
            (65_535, 65_534, None)
        );
        let gif = picture(b"GIF89a\x10\0\x20\0").unwrap();
        assert_eq!((gif.width, gif.height), (16, 32));
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08\0\x02\0\x03";
        let jpeg = picture(jpeg).unwrap();
        assert_eq!((jpeg.width, jpeg.height), (3, 2));
        let webp = picture(b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x01\0\0\x02\0\0").unwrap();
        assert_eq!((webp.width, webp.height), (2, 3));
        for wrong in [
            &b""[..],
            b"\xff\xd8\xff",
            b"\x89PNG\r\n\x1a\n",
            b"RIFF\0\0\0\0WEBP",
        ] {
            assert_eq!(picture(wrong), None);
        }
    }
}
