//! Limits the size of HTML tags before parsing, because the parser compares each attribute of a tag with all earlier ones.

use std::borrow::Cow;

use memchr::memchr;

/// Maximum number of attributes per tag.
const MAX_ATTRIBUTES: usize = 1_000;
/// Maximum size of a tag, in bytes. A longer tag, such as an image with a data URL, loses its later attributes.
const MAX_BYTES: usize = 64 << 10;

/// A page with tags of limited size.
pub(super) struct LimitedPage<'a> {
    pub(super) html: Cow<'a, str>,
    /// True if what was left out may have contained other tags.
    pub(super) lost_tags: bool,
}

/// Removes the attributes of each tag that exceed the limits.
///
/// Everything that looks like a tag is read as HTML's tokenizer reads one, including in comments and scripts, because only the
/// parser knows where a page's text begins and ends.
pub(super) fn limit_tags(html: &str) -> LimitedPage<'_> {
    let bytes = html.as_bytes();
    let (mut out, mut lost_tags) = (String::new(), false);
    let (mut kept, mut at) = (0, 0);
    while let Some(found) = memchr(b'<', &bytes[at..]) {
        let tag = at + found;
        let name = tag + 1 + usize::from(bytes.get(tag + 1) == Some(&b'/'));
        if !bytes.get(name).is_some_and(u8::is_ascii_alphabetic) {
            at = tag + 1;
            continue;
        }
        let TagEnd { within, end } = tag_at(bytes, tag);
        if within < end {
            out.push_str(&html[kept..within]);
            lost_tags |= html[within..end].contains("</");
            kept = end;
        }
        at = end;
    }
    out.push_str(&html[kept..]);
    let html = if kept == 0 {
        Cow::Borrowed(html)
    } else {
        Cow::Owned(out)
    };
    LimitedPage { html, lost_tags }
}

/// The end of a tag's kept attributes, and the end of the tag: before its `>`, or at the end of the page.
struct TagEnd {
    within: usize,
    end: usize,
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
        within: if fits { at } else { within },
        end: at,
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

    use super::{LimitedPage, MAX_BYTES, limit_tags};

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
}
