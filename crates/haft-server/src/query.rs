//! `text`: decoded values from a URL's query.

use std::borrow::Cow;

use http::Uri;
use percent_encoding::percent_decode_str;

/// Returns the first value with this name.
pub(crate) fn text(uri: &Uri, name: &str) -> Option<String> {
    let pairs = uri.query()?.split('&');
    let mut values = pairs.filter_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        (key == name).then_some(value)
    });
    let value: Cow<'_, str> = values.next()?.replace('+', " ").into();
    let decoded = percent_decode_str(&value).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn escapes_are_undone_and_other_names_left_alone() {
        let uri = "/x?rule=Edit(%2Fa%2F**)&q=two+words&bad=%ff"
            .parse()
            .unwrap();
        assert_eq!(text(&uri, "rule").unwrap(), "Edit(/a/**)");
        assert_eq!(text(&uri, "q").unwrap(), "two words");
        assert_eq!(text(&uri, "bad"), None);
        assert_eq!(text(&uri, "none"), None);
    }
}
