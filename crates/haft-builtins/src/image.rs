//! `view_image`: an image from the workspace or the web, scaled to fit and attached for the model's next turn.

use std::fmt::Write;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haft::context::CallContext;
use haft::error::ToolError;
use haft::permission::{Effect, Permission};
use haft::result::{Content, ToolResult};
use haft::spec::{Annotations, Risk, ToolSpec};
use haft::tool::{Depth, Intent, TypedTool};
use haft::workspace::{FileStamp, ResolvedPath, Workspace};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::describe::{builtin, known_as, read_only};
use crate::files::read::whole;
use crate::files::text::{media_type, with_separators};
use crate::files::tools::FILES;
use crate::files::{FileCaller, Files, sha256};
use crate::picture::fit::{AttachedImage, ImageLimit, fit_image};
use crate::web::http::{FetchLimits, Http, HttpError, IncompleteReason};
use crate::web::options::WebOptions;
use crate::web::redirects::Redirects;
use crate::web::target::WebUrl;
use crate::work::blocking;

/// Maximum size of an image file, in bytes.
const MAX_FILE: u64 = 20 << 20;
/// Maximum number of images decoded at the same time: each may take a quarter of a gigabyte.
const MAX_CONCURRENT: usize = 2;

/// What `view_image` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ViewImageInput {
    /// The picture's file, relative to the workspace root or absolute below it.
    #[serde(default)]
    #[schemars(with = "String")]
    pub path: Option<String>,
    /// Instead of path: an http or https URL of the public network.
    #[serde(default)]
    #[schemars(with = "String")]
    pub url: Option<String>,
    /// What to look for; returned with the picture.
    #[serde(default)]
    #[schemars(with = "String", length(max = 4000))]
    pub question: Option<String>,
}

/// What `view_image` gives besides the picture.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ViewImageData {
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The URL it came from, after redirects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The original's width in pixels, upright.
    pub width: u32,
    /// The original's height in pixels, upright.
    pub height: u32,
    /// The original's media type, by its content.
    pub media_type: String,
    /// The original's size.
    pub bytes: u64,
    /// The width of the attached picture, if it is not the original.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown_width: Option<u32>,
    /// Its height.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown_height: Option<u32>,
    /// Its media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown_media_type: Option<String>,
}

/// The tool `view_image`.
#[derive(Debug)]
pub struct ViewImage {
    files: Files,
    http: Http,
    bounds: ImageLimit,
    turns: Arc<Semaphore>,
}

impl ViewImage {
    /// Creates the tool for these files and this web access, with its client. An attached image has at most
    /// `inline_bytes` if possible.
    pub fn new(files: Files, web: &WebOptions, inline_bytes: usize) -> Self {
        let limits = FetchLimits {
            max_bytes: usize::try_from(MAX_FILE).unwrap_or(usize::MAX),
            ..web.http.limits().clone()
        };
        Self {
            files,
            http: web.http.clone().with_limits(limits),
            bounds: ImageLimit::inline(inline_bytes),
            turns: Arc::new(Semaphore::new(MAX_CONCURRENT)),
        }
    }

    async fn fetch_image(
        &self,
        url: &str,
        context: &CallContext,
    ) -> Result<(Vec<u8>, String), ToolError> {
        let accept = "image/png, image/jpeg, image/webp, image/gif";
        let cleared = WebUrl::parse(url).map_err(|why| HttpError::refused(url, why))?;
        let redirects = Redirects::of(context);
        let gate = redirects.from(cleared);
        let reply = self.http.follow(url, &[("accept", accept)], &gate).await;
        redirects.note_reached();
        let reply = reply?;
        if !reply.is_success() {
            let message = format!("{} answered {}", reply.url, reply.status);
            return Err(ToolError::failed(message));
        }
        match reply.cut {
            None => Ok((reply.body.to_vec(), reply.url)),
            Some(cut) => Err(incomplete_image(&reply.url, cut)),
        }
    }
}

fn incomplete_image(url: &str, cut: IncompleteReason) -> ToolError {
    let why = match cut {
        IncompleteReason::TooLarge => "pictures may have at most 20 MiB",
        other => other.as_str(),
    };
    ToolError::failed(format!("the picture at {url} did not come whole: {why}"))
}

/// The location of the image, which is exactly one of the two.
enum ImageSource<'a> {
    Path(&'a str),
    Url(&'a str),
}

fn source(input: &ViewImageInput) -> Result<ImageSource<'_>, ToolError> {
    match (&input.path, &input.url) {
        (Some(path), None) => Ok(ImageSource::Path(path)),
        (None, Some(url)) => Ok(ImageSource::Url(url)),
        _ => Err(ToolError::invalid_arguments("give either path or url")),
    }
}

impl TypedTool for ViewImage {
    const NAME: &'static str = "view_image";
    const DESCRIPTION: &'static str = "Look at a picture from a file (path) or the web (url): PNG, JPEG, WebP or GIF (first frame). At most \
        20 MiB and 50 megapixels. The picture is attached to the result, upright, scaled down to 1568 pixels \
        if it is larger. question says what to look for. data has the original's width, height and \
        media_type.";
    type Input = ViewImageInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        let spec = read_only(builtin::<ViewImageData>(spec, FILES));
        let spec = ToolSpec {
            annotations: Annotations {
                open_world_hint: Some(true),
                ..spec.annotations
            },
            ..spec
        };
        known_as(spec, &["analyze_image", "see", "picture", "screenshot"])
    }

    fn workspace(&self) -> Option<&Workspace> {
        Some(&self.files.workspace)
    }

    fn intent(&self, input: &Self::Input, _: Depth) -> Result<Intent, ToolError> {
        let permission = match source(input)? {
            ImageSource::Path(path) => Permission::read(self.files.workspace.claim(path)?),
            ImageSource::Url(url) => {
                let effect = connection(url)?;
                let risk = Risk::High;
                Permission { effect, risk }
            }
        };
        Ok(Intent::of([permission]).with_stated(&["path", "url"]))
    }

    async fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let caller = FileCaller::of(context, &self.files);
        let mut known = None;
        let (bytes, path, url) = match source(&input)? {
            ImageSource::Path(path) => {
                let (files, path) = (self.files.clone(), path.to_owned());
                let work = move |_: &(dyn Fn() -> bool + Sync)| read(&files, &path, &caller);
                let (bytes, place, stamp) = blocking(work).await?;
                let path = place.display();
                known = Some((place, stamp, sha256(&bytes)));
                (bytes, Some(path), None)
            }
            ImageSource::Url(url) => {
                context.cleared(&connection(url)?)?;
                let (bytes, url) = self.fetch_image(url, context).await?;
                (bytes, None, Some(url))
            }
        };
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(|_| ToolError::unavailable("the host is shutting down"))?;
        let name = path.clone().or_else(|| url.clone()).unwrap_or_default();
        let bounds = self.bounds;
        let size = bytes.len() as u64;
        let picture = blocking(move |_| {
            // Held until the memory is free again, even if the caller no longer waits for the image.
            let _turn = turn;
            let media_type = media_type(&bytes);
            fit_image(bytes, bounds).map_err(|e| e.into_tool_error(&name, media_type))
        });
        let picture = picture.await?;
        // A file whose content was not returned does not count as read.
        if let Some((place, stamp, sha256)) = known {
            let seen = &self.files.seen;
            seen.note(context.run(), place.real(), stamp, &sha256);
        }
        let data = ViewImageData {
            path,
            url,
            width: picture.width,
            height: picture.height,
            media_type: picture.media_type.to_owned(),
            bytes: size,
            shown_width: picture.changed().then_some(picture.shown.width),
            shown_height: picture.changed().then_some(picture.shown.height),
            shown_media_type: picture
                .changed()
                .then(|| picture.shown.media_type.to_owned()),
        };
        result(&data, &picture, input.question.as_deref())
    }
}

/// Returns the effect of connecting to an image.
fn connection(url: &str) -> Result<Effect, ToolError> {
    let target = WebUrl::parse(url).map_err(|why| HttpError::refused(url, why))?;
    Ok(Effect::get(url, target.host()))
}

/// Reads the whole file.
fn read(
    files: &Files,
    path: &str,
    caller: &FileCaller,
) -> Result<(Vec<u8>, ResolvedPath, FileStamp), ToolError> {
    let place = caller.reads(caller.view.existing(path)?)?;
    let size = place.bytes().unwrap_or(0);
    if size > MAX_FILE {
        let (path, size) = (place.display(), with_separators(size));
        let message = format!("{path:?} has {size} bytes; pictures may have at most 20 MiB");
        return Err(ToolError::failed(message));
    }
    let (bytes, stamp) = whole(files, &place, MAX_FILE)?;
    Ok((bytes, place, stamp))
}

/// Builds the result for the caller: a text that describes the image, and the image.
fn result(
    data: &ViewImageData,
    picture: &AttachedImage,
    question: Option<&str>,
) -> Result<ToolResult, ToolError> {
    let name = data.path.as_deref().or(data.url.as_deref());
    let mut text = format!(
        "{}: {} of {} x {} pixels",
        name.unwrap_or_default(),
        data.media_type,
        data.width,
        data.height
    );
    let summary = text.clone();
    let shown = &picture.shown;
    if picture.changed() {
        // Writing to a `String` cannot fail.
        let _ = write!(
            text,
            ", attached as {} of {} x {}",
            shown.media_type, shown.width, shown.height
        );
    }
    if let Some(question) = question.map(str::trim).filter(|q| !q.is_empty()) {
        let _ = write!(text, "\n{question}");
    }
    let image = Content::Image {
        data: STANDARD.encode(&shown.bytes),
        mime_type: shown.media_type.to_owned(),
    };
    let result = ToolResult {
        content: vec![Content::text(text), image],
        ..ToolResult::default()
    };
    result.with_summary(summary).with_data_for_programs(data)
}
