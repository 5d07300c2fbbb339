//! Fetches one page and converts it for the model.

use std::borrow::Cow;

use bytes::Bytes;
use haft::bounds::ShareKey;
use haft::error::ToolError;
use hyper::header::CONTENT_TYPE;
use image::ImageFormat;

use crate::web::fetch::gate::FetchGate;
use crate::web::fetch::{FetchState, charset};
use crate::web::http::{HttpError, HttpReply};
use crate::web::reader::{PageFormat, ReadPage, ReadTask};
use crate::web::redirects::Redirects;
use crate::web::target::WebUrl;

/// The `Accept` header of a fetch.
const ACCEPT: &str =
    "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.5";
/// Maximum size of an image that is shown, in bytes; in base64 that is the usual limit of a call's images, 5 MiB.
const MAX_PICTURE: usize = 3_900_000;

/// A page as fetched.
#[derive(Debug)]
pub(super) struct FetchedPage {
    pub(super) url: String,
    pub(super) final_url: String,
    pub(super) status: u16,
    pub(super) media_type: String,
    pub(super) title: Option<String>,
    pub(super) body: PageBody,
    pub(super) raw: Bytes,
    pub(super) notes: Vec<String>,
}

/// The content of a page.
#[derive(Debug)]
pub(super) enum PageBody {
    /// Text, with its media type and whether it is byte for byte what the server sent.
    Text {
        text: String,
        media_type: Cow<'static, str>,
        as_sent: bool,
    },
    /// An image to show.
    Picture,
    /// Bytes that are stored but not shown.
    Kept,
}

impl FetchedPage {
    /// Returns a short summary of the page.
    pub(super) fn summary(&self) -> String {
        let named = self.title.as_deref().unwrap_or(&self.media_type);
        format!("{} {} ({named})", self.status, self.final_url)
    }

    /// Returns the error that the server's status indicates.
    pub(super) fn failure(&self) -> Option<ToolError> {
        if self.status < 400 {
            return None;
        }
        let message = format!("{} answered with status {}", self.final_url, self.status);
        let advice = match self.status {
            401 | 403 => "the page requires a login or refuses to be read: use another source",
            404 | 410 => "there is no such page: check the URL",
            429 | 500.. => "try again later, or another source",
            _ => "check the URL",
        };
        Some(ToolError::failed(message).with_advice(advice))
    }
}

/// How to convert a page, and for whom.
#[derive(Debug, Clone)]
pub(super) struct PageRequest {
    pub(super) format: PageFormat,
    /// Whose share of the readers it uses.
    pub(super) who: ShareKey,
}

/// Fetches a page and converts it.
pub(super) async fn get(
    shared: &FetchState,
    redirects: &Redirects,
    url: &str,
    request: &PageRequest,
) -> Result<FetchedPage, ToolError> {
    let cleared = WebUrl::parse(url).map_err(|why| HttpError::refused(url, why))?;
    // The call was cleared, so a rule names this private host with its port.
    let own = cleared.check_public().is_err();
    let http = if own {
        shared.web.http.for_place(&cleared)
    } else {
        shared.web.http.clone()
    };
    let follow = redirects.from(cleared);
    let gate = FetchGate {
        shared,
        redirects,
        follow,
        own,
    };
    let reply = http.follow(url, &[("Accept", ACCEPT)], &gate).await?;
    let mut got = FetchedPage {
        url: url.to_owned(),
        final_url: reply.url.clone(),
        status: reply.status,
        media_type: kind(&reply),
        title: None,
        body: PageBody::Kept,
        raw: reply.body.clone(),
        notes: Vec::new(),
    };
    if let Some(cut) = reply.cut {
        got.notes.push(format!("the page is cut: {}", cut.as_str()));
    }
    read(shared, &mut got, &reply, request).await;
    Ok(got)
}

async fn read(
    shared: &FetchState,
    got: &mut FetchedPage,
    reply: &HttpReply,
    request: &PageRequest,
) {
    let format = request.format;
    let header = reply.headers.get(CONTENT_TYPE);
    let header = header.map(|v| String::from_utf8_lossy(v.as_bytes()));
    let header = header.unwrap_or_default();
    let markup = is_markup(&got.media_type);
    if markup && format != PageFormat::Raw {
        let Some(reader) = &shared.web.reader else {
            got.notes.push(
                "this host cannot convert HTML: the raw page is stored but not shown".to_owned(),
            );
            return;
        };
        let source = charset::decode(&reply.body, &header, true);
        let url = got.final_url.clone();
        match reader
            .read(
                ReadTask::Html { url, format },
                source.into(),
                request.who.clone(),
            )
            .await
        {
            Ok(read) => got.take(read, format),
            Err(why) => got
                .notes
                .push(format!("only the raw page is stored: {why}")),
        }
    } else if markup || is_text(&got.media_type) {
        let text = charset::decode(&reply.body, &header, markup);
        got.body = PageBody::Text {
            as_sent: text.as_bytes() == &*reply.body,
            text,
            media_type: "text/plain".into(),
        };
    } else if got.media_type == "application/pdf" {
        pdf(shared, got, request).await;
    } else if got.media_type.starts_with("image/") {
        picture(got);
    } else {
        got.notes
            .push("it is not text: its bytes are stored but not shown".to_owned());
    }
}

impl FetchedPage {
    fn take(&mut self, read: ReadPage, format: PageFormat) {
        let media_type = match format {
            PageFormat::Markdown => "text/markdown",
            PageFormat::Text => "text/plain",
            PageFormat::Html | PageFormat::Raw => "text/html",
        };
        self.title = read.title;
        let cut = read.cut;
        self.notes
            .extend(cut.map(|why| format!("only its beginning is converted: {why}")));
        self.body = PageBody::Text {
            text: read.text,
            media_type: media_type.into(),
            as_sent: false,
        };
    }
}

async fn pdf(shared: &FetchState, got: &mut FetchedPage, request: &PageRequest) {
    let Some(reader) = &shared.web.reader else {
        got.notes
            .push("this host cannot read PDF: its bytes are stored but not shown".to_owned());
        return;
    };
    let read = reader.read(ReadTask::Pdf, got.raw.clone(), request.who.clone());
    match read.await {
        Ok(ReadPage { text, cut, .. }) => {
            let cut = cut.map(|why| format!("only its beginning is shown: {why}"));
            got.notes.extend(cut);
            if text.trim().is_empty() {
                got.notes
                    .push("it holds no text; it may be a scan".to_owned());
            }
            got.body = PageBody::Text {
                text,
                media_type: "text/plain".into(),
                as_sent: false,
            };
        }
        Err(error) => got
            .notes
            .push(format!("its text could not be extracted: {error}")),
    }
}

fn picture(got: &mut FetchedPage) {
    let shown = matches!(
        image::guess_format(&got.raw),
        Ok(ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::Gif | ImageFormat::WebP)
    );
    if shown && got.raw.len() <= MAX_PICTURE {
        got.body = PageBody::Picture;
        return;
    }
    let why = if shown {
        "it is too large to show"
    } else {
        "it is not a PNG, JPEG, GIF or WebP"
    };
    got.notes
        .push(format!("the picture is stored but not shown: {why}"));
}

/// Returns the media type: for an image what its bytes say, else what the server says, else a guess from the content.
fn kind(reply: &HttpReply) -> String {
    let body = &reply.body[..];
    let declared = reply.media_type();
    let vague = matches!(
        declared.as_str(),
        "" | "application/octet-stream" | "binary/octet-stream"
    );
    if (vague || declared.starts_with("image/"))
        && let Ok(format) = image::guess_format(body)
    {
        return format.to_mime_type().to_owned();
    }
    if !vague {
        return declared;
    }
    let head = String::from_utf8_lossy(&body[..body.len().min(512)]);
    let head = head
        .trim_start_matches('\u{feff}')
        .trim_start()
        .to_ascii_lowercase();
    if body.starts_with(b"%PDF-") {
        "application/pdf".to_owned()
    } else if head.starts_with("<!doctype html") || head.starts_with("<html") {
        "text/html".to_owned()
    } else if !body.contains(&0) && std::str::from_utf8(body).is_ok() {
        "text/plain".to_owned()
    } else {
        "application/octet-stream".to_owned()
    }
}

fn is_markup(media_type: &str) -> bool {
    matches!(media_type, "text/html" | "application/xhtml+xml")
}

fn is_text(media_type: &str) -> bool {
    const TEXTS: [&str; 10] = [
        "application/json",
        "application/ld+json",
        "application/x-ndjson",
        "application/xml",
        "application/javascript",
        "application/x-javascript",
        "application/yaml",
        "application/toml",
        "application/x-sh",
        "image/svg+xml",
    ];
    media_type.starts_with("text/")
        || media_type.ends_with("+json")
        || media_type.ends_with("+xml")
        || TEXTS.contains(&media_type)
}
