//! Limits the size of HTML tags and references before parsing, because the parser compares each attribute of a tag with all earlier
//! ones, merges those of every `html` and `body` tag into one, and looks a name up again with each letter.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr2};

/// Maximum number of attributes per tag.
const MAX_ATTRIBUTES: usize = 1_000;
/// Maximum size of a tag, in bytes. A longer tag, such as an image with a data URL, loses its later attributes.
const MAX_BYTES: usize = 64 << 10;

/// Maximum number of letters and digits in a reference such as `&amp;`. The longest name has 32.
const MAX_REFERENCE: usize = 64;

/// A page with tags of limited size.
pub(super) struct LimitedPage<'a> {
    pub(super) html: Cow<'a, str>,
    /// True if what was left out may have contained other tags.
    pub(super) lost_tags: bool,
}

/// Maximum depth of elements whose text the converter indents: each level copies all that is within.
const MAX_INDENTS: usize = 64;
/// Those elements.
const INDENTED: [&str; 5] = ["blockquote", "dir", "menu", "ol", "ul"];
/// The elements of which a page has one: the parser adds the attributes of each further tag to it.
const MERGED: [&str; 2] = ["body", "html"];

/// Removes what exceeds the limits: attributes of a tag, attributes that are merged into one tag, and tags that indent further. The
/// `&` of an endless reference becomes text.
///
/// Everything that looks like a tag is read as HTML's tokenizer reads one, including in comments and scripts, because only the
/// parser knows where a page's text begins and ends.
pub(super) fn limit_tags(html: &str) -> LimitedPage<'_> {
    let bytes = html.as_bytes();
    let mut page = PageLimiter {
        html,
        out: String::new(),
        kept: 0,
        lost_tags: false,
    };
    let (mut merged, mut indents) = (0, IndentDepth::default());
    let mut at = 0;
    while let Some(found) = memchr2(b'<', b'&', &bytes[at..]) {
        let tag = at + found;
        at = tag + 1;
        if bytes[tag] == b'&' {
            if is_endless_reference(&bytes[at..]) {
                page.replace(tag..at, "&amp;");
            }
            continue;
        }
        let closes = bytes.get(at) == Some(&b'/');
        let name = at + usize::from(closes);
        if !bytes.get(name).is_some_and(u8::is_ascii_alphabetic) {
            continue;
        }
        let TagEnd {
            named,
            within,
            end,
            count,
        } = tag_at(bytes, tag);
        let is = |names: &[&str]| {
            names
                .iter()
                .any(|one| html[name..named].eq_ignore_ascii_case(one))
        };
        let mut within = within;
        if !closes && is(&MERGED) {
            merged += count;
            if merged > MAX_ATTRIBUTES {
                within = named;
            }
        }
        if is(&INDENTED) && !indents.admits(closes) {
            page.replace(tag..(end + 1).min(bytes.len()), "");
        } else if within < end {
            page.lost_tags |= html[within..end].contains("</");
            page.replace(within..end, "");
        }
        at = end.max(at);
    }
    page.finish()
}

/// A page while it is limited.
struct PageLimiter<'a> {
    html: &'a str,
    out: String,
    /// The end of what is in `out`, or was left out.
    kept: usize,
    lost_tags: bool,
}

impl<'a> PageLimiter<'a> {
    fn replace(&mut self, range: Range<usize>, by: &str) {
        self.out.push_str(&self.html[self.kept..range.start]);
        self.out.push_str(by);
        self.kept = range.end;
    }

    fn finish(mut self) -> LimitedPage<'a> {
        let html = if self.kept == 0 {
            Cow::Borrowed(self.html)
        } else {
            self.out.push_str(&self.html[self.kept..]);
            Cow::Owned(self.out)
        };
        LimitedPage {
            html,
            lost_tags: self.lost_tags,
        }
    }
}

/// How many indenting elements are open, and how many were left out.
#[derive(Default)]
struct IndentDepth {
    open: usize,
    left_out: usize,
}

impl IndentDepth {
    /// Counts a tag; returns false if it has to be left out.
    fn admits(&mut self, closes: bool) -> bool {
        match (closes, self.left_out) {
            (true, 0) => self.open = self.open.saturating_sub(1),
            (true, _) => {
                self.left_out -= 1;
                return false;
            }
            (false, 0) if self.open < MAX_INDENTS => self.open += 1,
            (false, _) => {
                self.left_out += 1;
                return false;
            }
        }
        true
    }
}

/// Returns whether what follows an `&` goes on like a reference for longer than any is.
fn is_endless_reference(after: &[u8]) -> bool {
    let name = after.strip_prefix(b"#").unwrap_or(after);
    let longest = name.get(..=MAX_REFERENCE);
    longest.is_some_and(|name| name.iter().all(u8::is_ascii_alphanumeric))
}

/// The end of a tag's kept attributes, and the end of the tag: before its `>`, or at the end of the page.
struct TagEnd {
    /// The end of its name.
    named: usize,
    within: usize,
    end: usize,
    /// The number of its attributes.
    count: usize,
}

fn tag_at(bytes: &[u8], start: usize) -> TagEnd {
    let is_space = |byte: u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\x0c' | b'\r');
    let skip = |mut at: usize, over: &dyn Fn(u8) -> bool| {
        while bytes.get(at).is_some_and(|byte| over(*byte)) {
            at += 1;
        }
        at
    };
    let is_name = |byte: u8| !is_space(byte) && byte != b'/' && byte != b'>';
    let mut at = skip(start + 1, &|byte| byte == b'/');
    at = skip(at, &is_name);
    let named = at;
    let (mut within, mut count) = (at, 0);
    loop {
        at = skip(at, &|byte| is_space(byte) || byte == b'/');
        if matches!(bytes.get(at), None | Some(b'>')) {
            break;
        }
        // An equals sign begins a name like any other character.
        at = skip(at + 1, &|byte| is_name(byte) && byte != b'=');
        let value = skip(at, &is_space);
        if bytes.get(value) == Some(&b'=') {
            at = value_end(bytes, skip(value + 1, &is_space));
        }
        count += 1;
        if count <= MAX_ATTRIBUTES && at - start <= MAX_BYTES {
            within = at;
        }
    }
    let fits = count <= MAX_ATTRIBUTES && at - start <= MAX_BYTES;
    TagEnd {
        named,
        within: if fits { at } else { within },
        end: at,
        count,
    }
}

/// Returns the end of the value that begins here.
fn value_end(bytes: &[u8], at: usize) -> usize {
    let end = if let Some(quote @ (b'"' | b'\'')) = bytes.get(at) {
        memchr(*quote, &bytes[at + 1..]).map(|n| at + n + 2)
    } else {
        let ends = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\x0c' | b'\r' | b'>');
        bytes[at..].iter().position(ends).map(|n| at + n)
    };
    end.unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::{LimitedPage, MAX_ATTRIBUTES, MAX_BYTES, MAX_INDENTS, limit_tags};

    #[test]
    fn w3_a_tag_keeps_a_thousand_attributes_and_64_kib() {
        let many = |n: usize| " a=\"<b>'\"".repeat(n);
        let large = "x".repeat(MAX_BYTES);
        let rows = [
            ("plain", "<p a=1>x</p> 1 < 2".to_owned(), None),
            ("a thousand", format!("<p{}>x", many(1000)), None),
            (
                "more",
                format!("<p{} b>x<i c=d>", many(1000)),
                Some(format!("<p{}>x<i c=d>", many(1000))),
            ),
            (
                "many more, of an end tag, to the end",
                format!("</p{}", many(100_000)),
                Some(format!("</p{}", many(1000))),
            ),
            (
                "large, among others",
                format!("<img alt='a>b' src='{large}' id=é>é"),
                Some("<img alt='a>b'>é".to_owned()),
            ),
            (
                "an open quote",
                format!("<p a=\"{large}"),
                Some("<p".to_owned()),
            ),
            ("no tag", format!("<{large}> <!{large} <3"), None),
        ];
        for (what, html, expect) in rows {
            let LimitedPage { html: got, .. } = limit_tags(&html);
            let borrowed = matches!(got, Cow::Borrowed(_));
            assert_eq!(borrowed, expect.is_none(), "{what}");
            assert!(*got == expect.unwrap_or(html.clone()), "{what}: {got:.200}");
        }
    }

    #[test]
    fn what_an_odd_quote_swallows_is_told() {
        let swallowed = format!("<script>a <b=\"{}</script><p>x", "x ".repeat(MAX_BYTES));
        assert!(limit_tags(&swallowed).lost_tags);
        let picture = format!("<img src=\"{}\"><p>x", "x".repeat(MAX_BYTES));
        assert!(!limit_tags(&picture).lost_tags);
    }

    #[test]
    fn w3_a_flood_of_attributes_costs_no_more_than_its_length() {
        // A million attributes: with quadratic cost this would not end.
        let html = format!("<p{}>", " a".repeat(1_000_000));
        assert_eq!(limit_tags(&html).html.len(), "<p>".len() + 2_000);
    }

    #[test]
    fn n3_what_the_parser_would_gather_over_the_page_is_limited() {
        let tags: Vec<String> = (0..5_000).map(|n| format!("<html a{n}>")).collect();
        let merged = tags.concat();
        let limited = limit_tags(&merged).html.into_owned();
        assert_eq!(limited.matches(" a").count(), MAX_ATTRIBUTES);
        assert_eq!(limited.matches("<html").count(), 5_000);
        let bodies = "<BODY a=1 b=2>".repeat(501);
        assert_eq!(limit_tags(&bodies).html.matches("a=1").count(), 500);
        for (before, after) in [
            ("a &amp; b &nbsp;".to_owned(), None),
            (format!("&{}", "a".repeat(64)), None),
            (
                format!("x &{} y", "a".repeat(65)),
                Some(format!("x &amp;{} y", "a".repeat(65))),
            ),
            (
                format!("&#x{}", "1".repeat(70)),
                Some(format!("&amp;#x{}", "1".repeat(70))),
            ),
        ] {
            assert_eq!(
                limit_tags(&before).html,
                after.unwrap_or(before.clone()),
                "{before}"
            );
        }
        let quotes = format!(
            "{}x{}",
            "<blockquote>".repeat(500),
            "</blockquote>".repeat(500)
        );
        let limited = limit_tags(&quotes).html.into_owned();
        assert_eq!(limited.matches("<blockquote>").count(), MAX_INDENTS);
        assert_eq!(limited.matches("</blockquote>").count(), MAX_INDENTS);
        let flat = "<ul><li>x</li></ul>".repeat(1_000);
        assert_eq!(limit_tags(&flat).html, flat);
    }
}
