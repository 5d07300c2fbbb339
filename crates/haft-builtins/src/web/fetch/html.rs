//! A page as Markdown, text or clean HTML: the article where there is one, else the whole body.

use std::sync::Arc;
use std::time::Duration;

use dom_query::Document;
use dom_smoothie::{Article, Config, Readability, TextMode};
use tokio::sync::{Semaphore, oneshot};

use crate::web::fetch::Format;
use crate::web::fetch::tree::parse;

/// Stack of a converting thread: what walks a tree of the deepest nesting needs a part of it.
const STACK: usize = 64 * 1024 * 1024;
/// Conversions at one time; a page that takes forever holds one of them.
const AT_ONCE: usize = 4;
/// How long one conversion may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// Elements beyond which a page is shown whole, without a search for its article.
const MAX_ELEMENTS: usize = 60_000;
/// An article shorter than this part of the page's whole text (1/n) is not what the page is about.
const LEAST_PART: usize = 20;
/// Bytes of HTML that are converted; the rest is in the artifact.
const MAX_HTML: usize = 5 * 1024 * 1024;

/// Converts pages on threads of their own.
#[derive(Debug, Clone)]
pub(super) struct Converter(Arc<Semaphore>);

impl Default for Converter {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

/// What a page became.
#[derive(Debug, Default)]
pub(super) struct Converted {
    pub(super) text: String,
    pub(super) title: Option<String>,
    /// What is missing, as the end of a sentence.
    pub(super) cut: Option<&'static str>,
}

impl Converter {
    /// Converts a page of this address; says why it could not.
    pub(super) async fn convert(
        &self,
        html: String,
        url: String,
        format: Format,
    ) -> Result<Converted, &'static str> {
        let late = "its HTML takes too long to convert";
        let (send, receive) = oneshot::channel();
        let permits = Arc::clone(&self.0);
        let work = async move {
            let permit = permits.acquire_owned().await.map_err(|_| late)?;
            let thread = std::thread::Builder::new()
                .name("haft-html".to_owned())
                .stack_size(STACK);
            let started = thread.spawn(move || {
                let converted = convert(&html, &url, format);
                drop(permit);
                // Nobody waits any longer where the call has ended.
                let _ = send.send(converted);
            });
            started.map_err(|_| "no thread could be had to convert it")?;
            receive.await.map_err(|_| "its HTML could not be converted")
        };
        tokio::time::timeout(PATIENCE, work)
            .await
            .unwrap_or(Err(late))
    }
}

fn convert(html: &str, url: &str, format: Format) -> Converted {
    let shown = &html[..html.floor_char_boundary(MAX_HTML)];
    let parsed = parse(shown);
    let (whole, title) = (body(&parsed.document, format), title(&parsed.document));
    let cut = match (parsed.cut, shown.len() < html.len()) {
        (true, _) => Some("its HTML is nested too deeply or has too many elements"),
        (_, true) => Some("its HTML is over 5 MiB"),
        _ => None,
    };
    let article = article(parsed.document, url, format);
    let text = match article {
        Some(article) if article.text.len() >= whole.len() / LEAST_PART => article.text,
        _ => whole,
    };
    Converted { text, title, cut }
}

fn title(document: &Document) -> Option<String> {
    let title = document.select_single("title").text();
    let words: Vec<&str> = title.split_whitespace().collect();
    let title: String = words.join(" ").chars().take(300).collect();
    (!title.is_empty()).then_some(title)
}

/// Everything a reader would see.
fn body(document: &Document, format: Format) -> String {
    let skipped = [
        "script", "style", "noscript", "template", "head", "svg", "iframe",
    ];
    match format {
        Format::Markdown => document.md(Some(&skipped)).to_string(),
        Format::Text => {
            let visible = document.clone();
            visible.select(&skipped.join(",")).remove();
            visible.formatted_text().to_string()
        }
        Format::Html | Format::Raw => {
            let visible = document.clone();
            visible.select("script,style,template").remove();
            visible.select_single("body").html().to_string()
        }
    }
}

struct Found {
    text: String,
}

/// The page's article, if it has one.
fn article(document: Document, url: &str, format: Format) -> Option<Found> {
    let config = Config {
        max_elements_to_parse: MAX_ELEMENTS,
        text_mode: match format {
            Format::Markdown => TextMode::Markdown,
            Format::Text => TextMode::Formatted,
            Format::Html | Format::Raw => TextMode::Raw,
        },
        ..Config::default()
    };
    let mut reader = Readability::with_document(document, Some(url), Some(config)).ok()?;
    let Article {
        content,
        text_content,
        ..
    } = reader.parse().ok()?;
    let text = match format {
        Format::Html | Format::Raw => content.to_string(),
        Format::Markdown | Format::Text => text_content.to_string(),
    };
    (!text.trim().is_empty()).then_some(Found { text })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::{Format, convert};

    const URL: &str = "https://example.com/a/";

    fn deep(tag: &str, n: usize) -> String {
        let open = format!("<{tag}>").repeat(n);
        format!("<html><title> A  page </title><body><p>before</p>{open}inside")
    }

    #[test]
    fn nesting_bombs_are_cut_and_do_not_overflow() {
        // Formatting elements reopen in every paragraph: the tree grows with the square of the page.
        let mut reopened = String::new();
        for n in 0..50_000 {
            let _ = write!(reopened, "<p><font color=c{n}></p>");
        }
        let fostered = format!("<table>{}", "<b>".repeat(100_000));
        let hidden = "<div><table><td></div></table>".repeat(50_000);
        let mut pages = vec![reopened, fostered, hidden];
        let tags = [
            "div",
            "blockquote",
            "ul><li",
            "table><tr><td",
            "b",
            "font",
            "span",
            "svg",
            "template",
            "ol><li><p",
        ];
        pages.extend(tags.map(|tag| deep(tag, 100_000)));
        for page in pages {
            for format in [Format::Markdown, Format::Text, Format::Html] {
                let html = page.clone();
                let done = std::thread::Builder::new()
                    .stack_size(super::STACK)
                    .spawn(move || convert(&html, URL, format).cut)
                    .unwrap()
                    .join()
                    .unwrap();
                assert!(done.is_some(), "{format:?} {}", &page[..60]);
            }
        }
    }
}
