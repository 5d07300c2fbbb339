//! Which pictures are known by their first bytes, and whether a file is all there.

use image::ImageFormat;

/// The pictures that models take: format and media type.
const KNOWN: [(ImageFormat, &str); 4] = [
    (ImageFormat::Png, "image/png"),
    (ImageFormat::Jpeg, "image/jpeg"),
    (ImageFormat::Gif, "image/gif"),
    (ImageFormat::WebP, "image/webp"),
];

/// The format by its content, whatever the file is called.
pub(super) fn of(bytes: &[u8]) -> Option<(ImageFormat, &'static str)> {
    let format = image::guess_format(bytes).ok()?;
    KNOWN.into_iter().find(|(known, _)| *known == format)
}

/// Whether the file has an end; for formats whose decoder would fill up what is missing, or trust the sizes it reads.
pub(super) fn is_whole(format: ImageFormat, bytes: &[u8]) -> bool {
    match format {
        ImageFormat::Jpeg => jpeg_ends(bytes),
        ImageFormat::WebP => webp_chunks(bytes),
        _ => true,
    }
}

/// More than one frame: the flag of an extended WebP file.
pub(super) fn is_animated_webp(bytes: &[u8]) -> bool {
    const ANIMATED: u8 = 0x02;
    bytes.get(12..16) == Some(b"VP8X") && bytes.get(20).is_some_and(|flags| flags & ANIMATED != 0)
}

/// Whether the segments lead to the marker of the end (ITU-T T.81, annex B).
fn jpeg_ends(bytes: &[u8]) -> bool {
    const END: u8 = 0xd9;
    let mut at = 2;
    loop {
        at = next_marker(bytes, at);
        match bytes.get(at + 1) {
            Some(&END) => return true,
            Some(_) => {}
            None => return false,
        }
        let Some(&[high, low]) = bytes.get(at + 2..at + 4) else {
            return false;
        };
        at += 2 + usize::from(u16::from_be_bytes([high, low]));
    }
}

/// The next marker. In a scan's data before it FF is followed by 0 or a restart's number.
fn next_marker(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let ends = |at: &usize| !matches!(rest.get(at + 1), Some(0 | 0xd0..=0xd7 | 0xff));
    let marker = memchr::memchr_iter(0xff, rest).find(ends);
    from + marker.unwrap_or(rest.len())
}

/// Whether all chunks are within the file.
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
        // Chunks begin at even places.
        at = next + next % 2;
    }
    // The last padding byte is often left out.
    end <= bytes.len() + 1
}
