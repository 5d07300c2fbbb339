//! Bucket errors: what happened, where, and what to do next, without what the server says about credentials.

use std::error::Error as _;
use std::io;

use object_store::Error;

/// Maximum length of a cause that is passed on.
const MAX_CAUSE: usize = 200;

/// Describes the error. A server's response may repeat a key and the signed request, so only its error code is passed on.
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

/// Returns whether the credentials are wrong or insufficient.
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

/// Returns the texts of the error and its causes, root cause last.
fn texts(error: &Error) -> Vec<String> {
    let mut texts = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        texts.push(error.to_string());
        cause = error.source();
    }
    texts
}

/// Extracts the code from a server's response.
fn code(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("<Code>")?;
    let (code, _) = rest.split_once("</Code>")?;
    let word =
        !code.is_empty() && code.len() <= 64 && code.bytes().all(|b| b.is_ascii_alphanumeric());
    word.then_some(code)
}

/// Returns a cause on one line, cut where a server's response begins.
fn plain(text: &str) -> String {
    let own = text.split('<').next().unwrap_or_default();
    let line = own.split_whitespace().collect::<Vec<_>>().join(" ");
    line[..line.floor_char_boundary(MAX_CAUSE)]
        .trim_end_matches([' ', ':'])
        .to_owned()
}
