//! Recognizes image formats by their first bytes, and checks whether a file is complete.

use image::ImageFormat;

/// The image formats that models accept, with their media types.
const FORMATS: [(ImageFormat, &str); 4] = [
    (ImageFormat::Png, "image/png"),
    (ImageFormat::Jpeg, "image/jpeg"),
    (ImageFormat::Gif, "image/gif"),
    (ImageFormat::WebP, "image/webp"),
];

/// Returns the format by content, whatever the file's name.
pub(crate) fn of(bytes: &[u8]) -> Option<(ImageFormat, &'static str)> {
    let format = image::guess_format(bytes).ok()?;
    FORMATS.into_iter().find(|(known, _)| *known == format)
}

/// Returns true if the file is complete; checked for formats whose decoder would fill in missing data or trust the sizes it reads.
pub(crate) fn is_whole(format: ImageFormat, bytes: &[u8]) -> bool {
    match format {
        ImageFormat::Jpeg => jpeg_ends(bytes),
        ImageFormat::WebP => webp_chunks(bytes),
        _ => true,
    }
}

/// Returns true for more than one frame: the flag of an extended WebP file.
pub(crate) fn is_animated_webp(bytes: &[u8]) -> bool {
    const ANIMATION_FLAG: u8 = 0x02;
    bytes.get(12..16) == Some(b"VP8X")
        && bytes
            .get(20)
            .is_some_and(|flags| flags & ANIMATION_FLAG != 0)
}

/// Returns true if the segments lead to the end marker (ITU-T T.81, annex B).
fn jpeg_ends(bytes: &[u8]) -> bool {
    const END_MARKER: u8 = 0xd9;
    let mut at = 2;
    loop {
        at = next_marker(bytes, at);
        match bytes.get(at + 1) {
            Some(&END_MARKER) => return true,
            Some(_) => {}
            None => return false,
        }
        let Some(&[high, low]) = bytes.get(at + 2..at + 4) else {
            return false;
        };
        at += 2 + usize::from(u16::from_be_bytes([high, low]));
    }
}

/// Returns the next marker. In the scan data before it, FF is followed by 0 or a restart number.
fn next_marker(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let ends = |at: &usize| !matches!(rest.get(at + 1), Some(0 | 0xd0..=0xd7 | 0xff));
    let marker = memchr::memchr_iter(0xff, rest).find(ends);
    from + marker.unwrap_or(rest.len())
}

/// Returns true if all chunks are within the file.
fn webp_chunks(bytes: &[u8]) -> bool {
    let size = |at: usize| {
        let four: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(four)).ok()
    };
    let Some(end) = size(4).map(|size| size.saturating_add(8)) else {
        return false;
    };
    let mut at = 12;
    while at + 8 <= end.min(bytes.len()) {
        let Some(next) = size(at + 4).and_then(|size| at.checked_add(size)?.checked_add(8)) else {
            return false;
        };
        if next > bytes.len() {
            return false;
        }
        // Chunks begin at even offsets.
        at = next + next % 2;
    }
    // The last padding byte is often missing.
    end <= bytes.len() + 1
}
