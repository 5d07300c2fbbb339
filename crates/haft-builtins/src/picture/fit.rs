//! Decodes an image within limits, rotates it upright, and scales it down and re-encodes it if needed.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft::error::ToolError;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits};

use crate::files::text::with_separators;
use crate::picture::format::{self, is_animated_webp, is_whole};

/// Maximum number of pixels to decode.
const MAX_PIXELS: u64 = 50_000_000;
/// Maximum memory of a decoder, in bytes: 50 megapixels of four bytes, with room to spare.
const MAX_DECODED: u64 = 256 << 20;
/// Maximum length of an attached image's long side: models accept this size without scaling it down.
const MAX_SIDE: u32 = 1568;
/// Minimum length of the long side when an image is scaled down to fit.
const MIN_SIDE: u32 = 64;
/// Maximum size of a PNG; above it, an image without transparency is attached as a JPEG.
const MAX_PNG: usize = 1 << 20;
/// JPEG quality, out of 100.
const QUALITY: u8 = 85;

/// The size limit of an attached image.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImageLimit {
    /// Maximum number of bytes, counted as encoded in base64.
    inline: usize,
}

impl ImageLimit {
    pub(crate) fn inline(bytes: usize) -> Self {
        Self { inline: bytes }
    }

    fn holds(self, bytes: &[u8]) -> bool {
        bytes.len().div_ceil(3) * 3 <= self.inline
    }
}

/// An image ready to be attached.
#[derive(Debug)]
pub(crate) struct AttachedImage {
    /// The original's size, upright.
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) media_type: &'static str,
    /// The image to attach.
    pub(crate) shown: EncodedImage,
    original: bool,
}

impl AttachedImage {
    /// Returns true if the attached image is not the original.
    pub(crate) fn changed(&self) -> bool {
        !self.original
    }
}

/// An encoded image.
#[derive(Debug)]
pub(crate) struct EncodedImage {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) media_type: &'static str,
    pub(crate) bytes: Vec<u8>,
}

/// The reason why a file cannot be shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PictureError {
    #[error("it is empty")]
    Empty,
    #[error("it is not a picture that can be viewed")]
    Unknown,
    #[error(
        "the picture has {width} x {height} pixels, more than {} in all",
        with_separators(MAX_PIXELS)
    )]
    TooManyPixels { width: u32, height: u32 },
    #[error("the picture takes more than {} MiB to decode", MAX_DECODED >> 20)]
    TooLarge,
    #[error("the picture has no pixels")]
    NoPixels,
    #[error("the picture is cut off")]
    Cut,
    #[error("the picture cannot be decoded: {0}")]
    Broken(ImageError),
    #[error("the picture cannot be encoded: {0}")]
    Encoding(ImageError),
}

impl PictureError {
    /// Converts to the error for the caller, for a file that looks like this media type.
    pub(crate) fn into_tool_error(self, name: &str, media_type: &str) -> ToolError {
        let tool_error = ToolError::failed(format!("{name:?}: {self}"));
        match &self {
            Self::Unknown => tool_error.with_advice(format!(
                "its content is {media_type}, whatever its name says; PNG, JPEG, GIF and WebP can be viewed"
            )),
            Self::TooManyPixels { .. } | Self::TooLarge => {
                tool_error.with_advice("make a smaller copy of it, or cut the part out that matters")
            }
            Self::Empty | Self::Cut | Self::Broken(_) | Self::NoPixels => {
                tool_error.with_advice("the file is damaged: get it again")
            }
            Self::Encoding(_) => tool_error,
        }
    }
}

/// Decodes an image and makes it fit. An image that fits already is attached unchanged.
pub(crate) fn fit_image(bytes: Vec<u8>, bounds: ImageLimit) -> Result<AttachedImage, PictureError> {
    if bytes.is_empty() {
        return Err(PictureError::Empty);
    }
    let (format, media_type) = format::of(&bytes).ok_or(PictureError::Unknown)?;
    if !is_whole(format, &bytes) {
        return Err(PictureError::Cut);
    }
    let (mut image, orientation) = decoded(format, &bytes)?;
    let upright = |(width, height)| {
        if swaps_sides(orientation) {
            (height, width)
        } else {
            (width, height)
        }
    };
    let (width, height) = upright((image.width(), image.height()));
    let animated = format == ImageFormat::Gif || is_animated_webp(&bytes);
    let original = !animated
        && orientation == Orientation::NoTransforms
        && width.max(height) <= MAX_SIDE
        && bounds.holds(&bytes);
    let shown = if original {
        EncodedImage {
            width,
            height,
            media_type,
            bytes,
        }
    } else {
        // The original is no longer needed, and rotating the smaller image is faster.
        drop(bytes);
        image = scaled(image, MAX_SIDE);
        image.apply_orientation(orientation);
        encode_to_fit(image, format, bounds)?
    };
    Ok(AttachedImage {
        width,
        height,
        media_type,
        shown,
        original,
    })
}

/// Decodes the image or its first frame. It reads the header first, so that an image over the limits allocates nothing.
fn decoded(format: ImageFormat, bytes: &[u8]) -> Result<(DynamicImage, Orientation), PictureError> {
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_DECODED);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(broken)?;
    let (width, height) = decoder.dimensions();
    if width == 0 || height == 0 {
        return Err(PictureError::NoPixels);
    }
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(PictureError::TooManyPixels { width, height });
    }
    if decoder.total_bytes() > MAX_DECODED {
        return Err(PictureError::TooLarge);
    }
    // An image with damaged orientation data is shown as stored.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let image = DynamicImage::from_decoder(decoder).map_err(broken)?;
    Ok((image, orientation))
}

fn broken(error: ImageError) -> PictureError {
    match error {
        ImageError::Limits(_) => PictureError::TooLarge,
        ImageError::IoError(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
            PictureError::Cut
        }
        other => PictureError::Broken(other),
    }
}

/// Returns a small copy of an image as PNG, in base64.
///
/// # Errors
/// Why there is none.
pub(crate) fn thumbnail(bytes: &[u8]) -> Result<String, String> {
    const SIDE: u32 = 192;
    let to_text = |error: PictureError| error.to_string();
    let (format, _) = format::of(bytes).ok_or_else(|| to_text(PictureError::Unknown))?;
    let (image, orientation) = decoded(format, bytes).map_err(to_text)?;
    let mut image = scaled(image, SIDE);
    image.apply_orientation(orientation);
    Ok(STANDARD.encode(png(&image).map_err(to_text)?.bytes))
}

/// Returns true if width and height are swapped.
fn swaps_sides(orientation: Orientation) -> bool {
    matches!(
        orientation,
        Orientation::Rotate90
            | Orientation::Rotate270
            | Orientation::Rotate90FlipH
            | Orientation::Rotate270FlipH
    )
}

/// Scales down so that the long side is `side`, roughly at first, because the fine filter takes sixteen bytes per pixel.
fn scaled(image: DynamicImage, side: u32) -> DynamicImage {
    let long = image.width().max(image.height());
    if long <= side {
        return image;
    }
    let to = |length: u32, side: u32| {
        let length = u64::from(length) * u64::from(side);
        u32::try_from(length.div_ceil(u64::from(long)))
            .unwrap_or(side)
            .max(1)
    };
    let (width, height) = (image.width(), image.height());
    let rough = side.saturating_mul(2);
    let image = if long > rough {
        image.thumbnail_exact(to(width, rough), to(height, rough))
    } else {
        image
    };
    image.resize_exact(to(width, side), to(height, side), FilterType::CatmullRom)
}

/// Encodes an image, ever smaller until it fits: JPEG for photographs, PNG for transparent images and drawings.
fn encode_to_fit(
    mut image: DynamicImage,
    format: ImageFormat,
    bounds: ImageLimit,
) -> Result<EncodedImage, PictureError> {
    let transparent = image.color().has_alpha() && !is_opaque(&image);
    let drawn = matches!(format, ImageFormat::Png | ImageFormat::Gif);
    loop {
        let mut shown = if transparent || drawn {
            png(&image)?
        } else {
            jpeg(&image)?
        };
        let large = shown.bytes.len() > MAX_PNG || !bounds.holds(&shown.bytes);
        if !transparent && drawn && large {
            shown = jpeg(&image)?;
        }
        let side = shown.width.max(shown.height);
        if bounds.holds(&shown.bytes) || side <= MIN_SIDE {
            return Ok(shown);
        }
        image = scaled(image, (side / 4 * 3).max(MIN_SIDE));
    }
}

fn is_opaque(image: &DynamicImage) -> bool {
    image.to_rgba8().pixels().all(|pixel| pixel.0[3] == u8::MAX)
}

fn png(image: &DynamicImage) -> Result<EncodedImage, PictureError> {
    let image = if image.color().has_alpha() {
        DynamicImage::ImageRgba8(image.to_rgba8())
    } else {
        DynamicImage::ImageRgb8(image.to_rgb8())
    };
    let mut bytes = Cursor::new(Vec::new());
    let done = image.write_to(&mut bytes, ImageFormat::Png);
    done.map_err(PictureError::Encoding)?;
    Ok(EncodedImage {
        width: image.width(),
        height: image.height(),
        media_type: "image/png",
        bytes: bytes.into_inner(),
    })
}

fn jpeg(image: &DynamicImage) -> Result<EncodedImage, PictureError> {
    let image = image.to_rgb8();
    let mut bytes = Vec::new();
    let done = JpegEncoder::new_with_quality(&mut bytes, QUALITY).encode_image(&image);
    done.map_err(PictureError::Encoding)?;
    Ok(EncodedImage {
        width: image.width(),
        height: image.height(),
        media_type: "image/jpeg",
        bytes,
    })
}
