//! Trouble with a bucket: what happened, where, and what to do next, without what a server says of credentials.

use std::error::Error as _;
use std::io;

use object_store::Error;

/// Longest cause that is passed on.
const LONGEST: usize = 200;

/// The error in words. A server's own answer may repeat a key and what was signed: of it, only its code is passed on.
pub(super) fn to_io_error(place: &str, error: &Error) -> io::Error {
    let texts = texts(error);
    let code = texts.iter().find_map(|text| code(text)).unwrap_or_default();
    let (kind, words) = match (code, error) {
        ("NoSuchBucket", _) => (
            io::ErrorKind::NotFound,
            format!(
                "{place}: there is no such bucket: make it, or name another in `artifacts.url`"
            ),
        ),
        (
            "PermanentRedirect"
            | "AuthorizationHeaderMalformed"
            | "IllegalLocationConstraintException",
            _,
        ) => (
            io::ErrorKind::InvalidInput,
            format!("{place} is in another region ({code}): set AWS_REGION to it"),
        ),
        (code, error) if is_refusal(code, error) => (
            io::ErrorKind::PermissionDenied,
            format!(
                "{place} refuses these credentials ({}): check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, \
                 and that they may list, read, write and delete there",
                if code.is_empty() {
                    "no reason given"
                } else {
                    code
                }
            ),
        ),
        ("", _) => (
            io::ErrorKind::NotConnected,
            format!(
                "{place} cannot be used ({}): check AWS_ENDPOINT_URL and the network, then try again",
                texts.last().map(|text| plain(text)).unwrap_or_default()
            ),
        ),
        (code, _) => (
            io::ErrorKind::Other,
            format!("{place} answered {code}: try again, or look into the server's log"),
        ),
    };
    io::Error::new(kind, words)
}

/// Whether it is the credentials that are wrong, or let too little be done.
fn is_refusal(code: &str, error: &Error) -> bool {
    let codes = [
        "AccessDenied",
        "ExpiredToken",
        "InvalidAccessKeyId",
        "InvalidToken",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
    ];
    let denied = matches!(
        error,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. }
    );
    denied || codes.contains(&code)
}

/// The error and its causes, the first cause last.
fn texts(error: &Error) -> Vec<String> {
    let mut texts = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        texts.push(error.to_string());
        cause = error.source();
    }
    texts
}

/// The code in a server's answer.
fn code(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("<Code>")?;
    let (code, _) = rest.split_once("</Code>")?;
    let word =
        !code.is_empty() && code.len() <= 64 && code.bytes().all(|b| b.is_ascii_alphanumeric());
    word.then_some(code)
}

/// A cause up to where a server's answer begins, on one line.
fn plain(text: &str) -> String {
    let own = text.split('<').next().unwrap_or_default();
    let line = own.split_whitespace().collect::<Vec<_>>().join(" ");
    line[..line.floor_char_boundary(LONGEST)]
        .trim_end_matches([' ', ':'])
        .to_owned()
}
