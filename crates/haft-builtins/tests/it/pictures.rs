//! `view_image`: each format, images that must be scaled, and files that are not images or are hostile.

use std::io::{Cursor, Write};
use std::os::unix::fs::symlink;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use haft::ErrorKind::{Denied, Failed, InvalidArguments, NotFound};
use haft::approval::AutoApprove;
use haft::call::ToolCall;
use haft::policy::{Policy, Profile, RuleSet, RuleText};
use haft::result::{Content, Outcome};
use haft::spec::Risk;
use haft::tool::{Tool, TypedTool};
use haft::toolset::registry::ToolRegistry;
use haft::workspace::Workspace;
use haft::{Executor, Session};
use haft_builtins::files::{FileOptions, Files};
use haft_builtins::image::ViewImage;
use haft_builtins::web::WebOptions;
use haft_builtins::web::http::Http;
use image::codecs::gif::GifEncoder;
use image::{DynamicImage, Frame, GenericImageView, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage};
use serde_json::{Value, json};

use crate::scene::{Scene, data};
use crate::town::{Town, answer, page};

const RED: [u8; 4] = [255, 0, 0, 255];
const BLUE: [u8; 4] = [0, 0, 255, 255];

fn encoded(image: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.into().write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// Returns an image whose left half is red and whose right half is blue.
fn halves(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, _| {
        let [r, g, b, _] = if x < width / 2 { RED } else { BLUE };
        Rgb([r, g, b])
    })
}

/// Returns an image that no encoder can compress.
fn noise(width: u32, height: u32) -> RgbaImage {
    let mut state = 1_u32;
    RgbaImage::from_fn(width, height, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [a, b, c, d] = state.to_be_bytes();
        Rgba([a, b, c, d])
    })
}

/// Returns the attached image and its media type.
fn attached(outcome: &Outcome) -> (DynamicImage, String) {
    let image = outcome.content.iter().find_map(|piece| match piece {
        Content::Image { data, mime_type } => Some((data, mime_type)),
        _ => None,
    });
    let (data, mime_type) = image.unwrap_or_else(|| panic!("{:?}", outcome.error));
    let bytes = STANDARD.decode(data).unwrap();
    assert!(bytes.len() <= 5 << 20);
    let format = image::guess_format(&bytes).unwrap();
    assert_eq!(format.to_mime_type(), mime_type);
    (image::load_from_memory(&bytes).unwrap(), mime_type.clone())
}

/// Returns whether two pixels are equal up to JPEG loss.
fn near(pixel: Rgba<u8>, wanted: [u8; 4]) -> bool {
    pixel.0.iter().zip(wanted).all(|(a, b)| a.abs_diff(b) < 16)
}

async fn view(scene: &Scene, bytes: impl AsRef<[u8]>) -> Outcome {
    scene.put("picture", bytes);
    scene.call("view_image", json!({"path": "picture"})).await
}

#[tokio::test]
async fn a_picture_that_fits_is_attached_as_it_is() {
    let scene = Scene::new();
    for (format, media_type) in [
        (ImageFormat::Png, "image/png"),
        (ImageFormat::Jpeg, "image/jpeg"),
        (ImageFormat::WebP, "image/webp"),
    ] {
        let bytes = encoded(halves(30, 20), format);
        scene.put("misnamed.txt", &bytes);
        let args = json!({"path": "misnamed.txt", "question": "Which colours?"});
        let outcome = scene.call("view_image", args).await;
        assert_eq!(
            data(&outcome),
            json!({"path": "misnamed.txt", "width": 30, "height": 20, "media_type": media_type, "bytes": bytes.len()})
        );
        let text = outcome.text();
        let said = format!("misnamed.txt: {media_type} of 30 x 20 pixels\nWhich colours?");
        assert_eq!(text, said);
        let Content::Image { data, .. } = &outcome.content[1] else {
            panic!("{:?}", outcome.content);
        };
        assert_eq!(STANDARD.decode(data).unwrap(), bytes);
    }
}

#[tokio::test]
async fn of_an_animation_the_first_frame_is_attached() {
    let scene = Scene::new();
    let mut bytes = Vec::new();
    let frame = |colour| Frame::new(RgbaImage::from_pixel(8, 6, Rgba(colour)));
    let mut encoder = GifEncoder::new(&mut bytes);
    encoder.encode_frames([frame(RED), frame(BLUE)]).unwrap();
    drop(encoder);
    let outcome = view(&scene, &bytes).await;
    let (image, media_type) = attached(&outcome);
    assert_eq!(
        (image.dimensions(), media_type.as_str()),
        ((8, 6), "image/png")
    );
    assert!(near(image.get_pixel(3, 3), RED));
    let data = data(&outcome);
    assert_eq!(
        (&data["media_type"], &data["shown_media_type"]),
        (&json!("image/gif"), &json!("image/png"))
    );
}

type Size = (u32, u32);

/// Images, their sizes, and the attached image's size and type.
fn large_pictures() -> Vec<(Vec<u8>, Size, Size, &'static str)> {
    let glass = RgbaImage::from_fn(
        3200,
        100,
        |x, _| if x < 1600 { Rgba([0; 4]) } else { Rgba(RED) },
    );
    let deep = DynamicImage::ImageRgb8(halves(2000, 1000)).to_rgb16();
    vec![
        (
            encoded(halves(2000, 1000), ImageFormat::Jpeg),
            (2000, 1000),
            (1568, 784),
            "image/jpeg",
        ),
        (
            encoded(halves(4000, 1000), ImageFormat::Png),
            (4000, 1000),
            (1568, 392),
            "image/png",
        ),
        (
            encoded(DynamicImage::ImageRgb16(deep), ImageFormat::Png),
            (2000, 1000),
            (1568, 784),
            "image/png",
        ),
        (
            encoded(halves(2000, 10), ImageFormat::WebP),
            (2000, 10),
            (1568, 8),
            "image/jpeg",
        ),
        (
            encoded(glass, ImageFormat::Png),
            (3200, 100),
            (1568, 49),
            "image/png",
        ),
        (
            encoded(halves(5000, 1), ImageFormat::Png),
            (5000, 1),
            (1568, 1),
            "image/png",
        ),
    ]
}

#[tokio::test]
async fn a_large_picture_is_scaled_down_and_keeps_its_kind() {
    let scene = Scene::new();
    for (bytes, original, shown, media_type) in large_pictures() {
        let outcome = view(&scene, &bytes).await;
        let (image, kind) = attached(&outcome);
        assert_eq!((image.dimensions(), kind.as_str()), (shown, media_type));
        let data = data(&outcome);
        assert_eq!(
            (&data["width"], &data["height"]),
            (&json!(original.0), &json!(original.1))
        );
        assert_eq!(
            (&data["shown_width"], &data["shown_height"]),
            (&json!(shown.0), &json!(shown.1))
        );
        assert!(outcome.text().contains("attached as"), "{}", outcome.text());
        let right = image.get_pixel(shown.0 - 1, 0);
        assert!(near(right, RED) || near(right, BLUE), "{right:?}");
        assert_eq!(image.color().has_alpha(), original == (3200, 100));
    }
}

#[tokio::test]
async fn a_picture_over_the_inline_limit_is_made_smaller_until_it_fits() {
    let scene = Scene::with(|mut builtins| {
        builtins.inline_media_bytes = 100_000;
        builtins
    });
    let solid = DynamicImage::ImageRgba8(noise(700, 700)).to_rgb8();
    for (bytes, media_type) in [
        (encoded(noise(700, 700), ImageFormat::Png), "image/png"),
        (encoded(solid, ImageFormat::Png), "image/jpeg"),
    ] {
        let outcome = view(&scene, &bytes).await;
        let Content::Image { data, mime_type } = &outcome.content[1] else {
            panic!("{:?}", outcome.error);
        };
        assert!(data.len() / 4 * 3 <= 100_000, "{}", data.len());
        assert_eq!(mime_type, media_type);
    }
}

/// Returns a JPEG with this EXIF orientation.
fn held(orientation: u8) -> Vec<u8> {
    let tiff = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    let mut note = b"Exif\0\0".to_vec();
    note.extend_from_slice(tiff);
    note[6 + 18] = orientation;
    let mut bytes = encoded(halves(40, 20), ImageFormat::Jpeg);
    let length = u16::try_from(note.len() + 2).unwrap().to_be_bytes();
    bytes.splice(2..2, [0xff, 0xe1].into_iter().chain(length).chain(note));
    bytes
}

#[tokio::test]
async fn a_photograph_is_turned_upright() {
    let scene = Scene::new();
    for (orientation, size, top_left) in [
        (1, (40, 20), RED),
        (3, (40, 20), BLUE),
        (6, (20, 40), RED),
        (8, (20, 40), BLUE),
    ] {
        let outcome = view(&scene, held(orientation)).await;
        let (image, _) = attached(&outcome);
        assert_eq!(image.dimensions(), size, "{orientation}");
        assert!(near(image.get_pixel(2, 2), top_left), "{orientation}");
        assert_eq!(data(&outcome)["width"], json!(size.0));
    }
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

fn chunk(kind: [u8; 4], body: &[u8]) -> Vec<u8> {
    let named = [&kind, body].concat();
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&length[..], &named, &crc(&named).to_be_bytes()].concat()
}

/// Returns compressed zeros.
fn zeros(count: usize) -> Vec<u8> {
    let mut packer = ZlibEncoder::new(Vec::new(), Compression::fast());
    let block = vec![0; 1 << 16];
    let mut left = count;
    while left > 0 {
        let now = left.min(block.len());
        packer.write_all(&block[..now]).unwrap();
        left -= now;
    }
    packer.finish().unwrap()
}

/// Returns a black PNG with one bit per pixel, and a chunk before the image data.
fn black(width: u32, height: u32, before: &[u8]) -> Vec<u8> {
    let mut head = [width.to_be_bytes(), height.to_be_bytes()].concat();
    head.extend_from_slice(&[1, 0, 0, 0, 0]);
    let rows = (width as usize).div_ceil(8) + 1;
    // An image that is refused by its header needs no data.
    let rows = if width > 10_000 {
        0
    } else {
        rows * height as usize
    };
    [
        b"\x89PNG\r\n\x1a\n".to_vec(),
        chunk(*b"IHDR", &head),
        before.to_vec(),
        chunk(*b"IDAT", &zeros(rows)),
        chunk(*b"IEND", &[]),
    ]
    .concat()
}

#[tokio::test]
async fn a_small_file_of_many_pixels_is_shown_small() {
    let scene = Scene::new();
    let bytes = black(7000, 7000, &[]);
    assert!(bytes.len() < 100_000);
    let outcome = view(&scene, bytes).await;
    assert_eq!(attached(&outcome).0.dimensions(), (1568, 1568));
    // Text and profiles that unpack to 100 MB are not unpacked, or only up to the limit.
    for kind in [b"zTXt", b"iCCP"] {
        let bomb = [&b"a\0\0"[..], &zeros(100 << 20)].concat();
        let outcome = view(&scene, black(10, 10, &chunk(*kind, &bomb))).await;
        assert!(outcome.is_ok(), "{:?}", outcome.error);
    }
}

/// Returns a GIF with one small frame on a screen of this size.
fn gif(width: u16, height: u16) -> Vec<u8> {
    let mut bytes = encoded(halves(4, 4), ImageFormat::Gif);
    let size = [width.to_le_bytes(), height.to_le_bytes()].concat();
    bytes.splice(6..10, size);
    bytes
}

/// Files that are not images, damaged ones, and some that claim too much.
fn bad_files() -> Vec<(Vec<u8>, &'static str)> {
    let jpeg = encoded(halves(400, 300), ImageFormat::Jpeg);
    let mut vast = jpeg.clone();
    let frame = vast.windows(2).position(|two| two == [0xff, 0xc0]).unwrap();
    vast.splice(frame + 5..frame + 9, [0x75, 0x30, 0x75, 0x30]);
    let mut broken = encoded(noise(50, 50), ImageFormat::Png);
    let middle = broken.len() / 2;
    broken[middle..middle + 20].fill(0);
    let mut huge = encoded(halves(10, 10), ImageFormat::Jpeg);
    huge.resize((20 << 20) + 1, 0);
    let cut = |format| {
        let mut bytes = encoded(noise(60, 60), format);
        bytes.truncate(bytes.len() * 2 / 3);
        bytes
    };
    let mut cut_jpeg = jpeg.clone();
    cut_jpeg.truncate(jpeg.len() - 40);
    vec![
        (
            black(30_000, 30_000, &[]),
            "30000 x 30000 pixels, more than 50,000,000 in all",
        ),
        (gif(30_000, 30_000), "30000 x 30000 pixels"),
        (vast, "30000 x 30000 pixels"),
        (gif(0, 5), "no pixels"),
        (cut(ImageFormat::Png), "cut off"),
        (cut(ImageFormat::WebP), "cut off"),
        (cut(ImageFormat::Gif), "End of File"),
        (cut_jpeg, "cut off"),
        (broken, "cannot be decoded"),
        (b"\x89PNG\r\n\x1a\n".to_vec(), "cut off"),
        (b"\xff\xd8\xff".to_vec(), "cut off"),
        (b"RIFF\x04\0\0\0WEBP".to_vec(), "cut off"),
        (Vec::new(), "it is empty"),
        (b"hello, I am text\n".to_vec(), "it is not a picture"),
        (b"%PDF-1.7".to_vec(), "its content is application/pdf"),
        (b"BM\x46\0\0\0\0\0\0\0".to_vec(), "it is not a picture"),
        (huge, "pictures may have at most 20 MiB"),
    ]
}

#[tokio::test]
async fn what_cannot_be_viewed_is_an_honest_error() {
    let scene = Scene::new();
    for (bytes, says) in bad_files() {
        scene.put("x.png", &bytes);
        scene
            .fails("view_image", json!({"path": "x.png"}), Failed, says)
            .await;
    }
}

#[tokio::test]
async fn wrong_arguments_and_places_are_refused() {
    let scene = Scene::new();
    scene.put("x.png", "");
    symlink("/etc/passwd", scene.at("out.png")).unwrap();
    scene.put("dir/x", "");
    for (args, kind, says) in [
        (json!({"path": "out.png"}), Denied, "leaves the workspace"),
        (json!({"path": "none.png"}), NotFound, "no file"),
        (json!({"path": "dir"}), Failed, "a folder"),
        (json!({}), InvalidArguments, "either path or url"),
        (
            json!({"path": "x.png", "url": "http://a.example/x"}),
            InvalidArguments,
            "either path or url",
        ),
        (
            json!({"url": "http://127.0.0.1/x.png"}),
            Denied,
            "127.0.0.1",
        ),
        (json!({"url": "file:///etc/passwd"}), Denied, "file"),
        (
            json!({"path": "x.png", "question": "q".repeat(4001)}),
            InvalidArguments,
            "question",
        ),
    ] {
        scene.fails("view_image", args, kind, says).await;
    }
}

/// Calls this tool in a session under these deny rules, with everything else approved.
async fn under(deny: &[&str], tool: Arc<dyn Tool>, args: Value) -> Outcome {
    let rules = RuleSet {
        deny: deny.iter().map(|rule| RuleText::new(*rule)).collect(),
        ..RuleSet::default()
    };
    let policy = Policy::builder(Profile::Trusted)
        .rules(rules)
        .workspace(tool.workspace().unwrap())
        .build()
        .unwrap();
    let registry = ToolRegistry::new();
    registry.replace_all("builtin", [tool]).unwrap();
    let executor = Executor::new(policy).with_approver(AutoApprove::up_to(Risk::Critical));
    let session = Session::builder(Arc::new(registry)).build().unwrap();
    let call = ToolCall::new("view_image", args.to_string());
    executor.execute(&session, call).await
}

fn tool(scene: &Scene, http: Http) -> Arc<dyn Tool> {
    let workspace = Workspace::open(&scene.at("")).unwrap();
    let files = Files::new(workspace, FileOptions::default(), None);
    let web = WebOptions {
        http,
        ..WebOptions::default()
    };
    ViewImage::new(files, &web, 5 << 20).into_tool().unwrap()
}

#[tokio::test]
async fn rules_on_reading_hold_for_pictures_too() {
    let scene = Scene::new();
    let bytes = encoded(halves(4, 4), ImageFormat::Png);
    scene.put("secret.png", &bytes);
    scene.put("plain.png", &bytes);
    for (path, denied) in [("secret.png", true), ("plain.png", false)] {
        let tool = tool(&scene, Http::guarded());
        let outcome = under(&["Read(secret.png)"], tool, json!({"path": path})).await;
        let kind = outcome.error.map(|error| error.kind);
        assert_eq!(kind, denied.then_some(Denied), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_comes_from_the_web_by_the_guarded_client() {
    let scene = Scene::new();
    let picture = encoded(halves(30, 20), ImageFormat::Png);
    let town = Town::new(move |asked| match asked.path.as_str() {
        "/p" => page("text/html", &picture),
        "/gone" => answer("404 Not Found", "", "no"),
        _ => page("image/png", "no picture"),
    })
    .await;
    let url = "https://example.com/p";
    let outcome = under(&[], tool(&scene, town.http()), json!({"url": url})).await;
    assert_eq!(attached(&outcome).0.dimensions(), (30, 20));
    let got = data(&outcome);
    assert_eq!(
        (&got["url"], &got["media_type"]),
        (&json!(url), &json!("image/png"))
    );
    for (url, says) in [
        ("https://example.com/gone", "404"),
        ("https://example.com/x", "not a picture"),
    ] {
        let outcome = under(&[], tool(&scene, town.http()), json!({"url": url})).await;
        let error = outcome.error.unwrap();
        assert!(error.message.contains(says), "{}", error.message);
    }
    let before = town.connected().len();
    let deny = ["WebFetch(domain:example.com)"];
    let outcome = under(&deny, tool(&scene, town.http()), json!({"url": url})).await;
    assert_eq!(outcome.error.unwrap().kind, Denied);
    assert_eq!(town.connected().len(), before);
}
