//! Converts a page to Markdown, text or clean HTML: its article if there is one, else the whole body.

use dom_query::Document;
use dom_smoothie::{Article, Config, Readability, TextMode};

use super::ReadPage;
use super::tags::limit_tags;
use super::tree::parse;
use crate::web::reader::PageFormat;

/// Maximum number of elements for which to search for an article; larger pages are shown whole.
const MAX_ELEMENTS: usize = 60_000;
/// An article shorter than this part of the page's whole text (1/n) is not the main content.
const MIN_PART: usize = 20;
/// Maximum bytes of HTML to convert; the rest is in the artifact.
const MAX_HTML: usize = 5 * 1024 * 1024;

/// Converts the page at this address. Needs a stack of [`STACK_BYTES`](super::STACK_BYTES) bytes.
pub(super) fn convert(html: &str, url: &str, format: PageFormat) -> ReadPage {
    let shown = &html[..html.floor_char_boundary(MAX_HTML)];
    let limited = limit_tags(shown);
    let parsed = parse(&limited.html);
    let (whole, title) = (body(&parsed.document, format), title(&parsed.document));
    let cut = match (parsed.cut, shown.len() < html.len()) {
        (true, _) => Some("its HTML is nested too deeply or has too many elements"),
        (_, true) => Some("its HTML is over 5 MiB"),
        _ if limited.lost_tags => Some("it has a tag of more than 64 KiB or 1,000 attributes"),
        _ => None,
    };
    let article = article(parsed.document, url, format);
    let text = match article {
        Some(article) if article.len() >= whole.len() / MIN_PART => article,
        _ => whole,
    };
    ReadPage {
        text,
        title,
        cut: cut.map(str::to_owned),
    }
}

fn title(document: &Document) -> Option<String> {
    let title = document.select_single("title").text();
    let words: Vec<&str> = title.split_whitespace().collect();
    let title: String = words.join(" ").chars().take(300).collect();
    (!title.is_empty()).then_some(title)
}

/// Returns everything that a reader would see.
fn body(document: &Document, format: PageFormat) -> String {
    let skipped = [
        "script", "style", "noscript", "template", "head", "svg", "iframe",
    ];
    match format {
        PageFormat::Markdown => document.md(Some(&skipped)).to_string(),
        PageFormat::Text => {
            let visible = document.clone();
            visible.select(&skipped.join(",")).remove();
            visible.formatted_text().to_string()
        }
        PageFormat::Html | PageFormat::Raw => {
            let visible = document.clone();
            visible.select("script,style,template").remove();
            visible.select_single("body").html().to_string()
        }
    }
}

/// Returns the page's article, if it has one.
fn article(document: Document, url: &str, format: PageFormat) -> Option<String> {
    let config = Config {
        max_elements_to_parse: MAX_ELEMENTS,
        text_mode: match format {
            PageFormat::Markdown => TextMode::Markdown,
            PageFormat::Text => TextMode::Formatted,
            PageFormat::Html | PageFormat::Raw => TextMode::Raw,
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
        PageFormat::Html | PageFormat::Raw => content.to_string(),
        PageFormat::Markdown | PageFormat::Text => text_content.to_string(),
    };
    (!text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::{PageFormat, convert};

    const URL: &str = "https://example.com/a/";

    fn deep(tag: &str, n: usize) -> String {
        let open = format!("<{tag}>").repeat(n);
        format!("<html><title> A  page </title><body><p>before</p>{open}inside")
    }

    #[test]
    fn nesting_bombs_are_cut_and_do_not_overflow() {
        // Formatting elements reopen in every paragraph, so the tree grows with the square of the page.
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
            for format in [PageFormat::Markdown, PageFormat::Text, PageFormat::Html] {
                let html = page.clone();
                let cut = std::thread::Builder::new()
                    .stack_size(crate::web::reader::STACK_BYTES)
                    .spawn(move || convert(&html, URL, format).cut)
                    .unwrap()
                    .join()
                    .unwrap();
                // What only indents is flattened, and all of its text is there.
                let is_flat = ["<blockquote", "<ul>"].iter().any(|tag| page.contains(tag));
                assert_ne!(cut.is_some(), is_flat, "{format:?} {}", &page[..60]);
            }
        }
    }
}
