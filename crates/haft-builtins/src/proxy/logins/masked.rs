//! Masks a credential's value where a server sends it back: a command would read it otherwise.
//!
//! Each byte becomes a star, so that lengths hold. Bytes that may begin a value wait for those that follow.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use hyper::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::HeaderValue;
use memchr::memmem;

use super::LoginSecret;
use crate::proxy::ProxyBody;

const MASK: u8 = b'*';

/// Masks the values of headers.
pub(super) fn mask_headers(headers: &mut HeaderMap, secret: &LoginSecret) {
    for value in headers.values_mut() {
        let mut bytes = value.as_bytes().to_vec();
        if mask(&mut bytes, secret.texts())
            && let Ok(masked) = HeaderValue::from_bytes(&bytes)
        {
            *value = masked;
        }
    }
}

/// Masks every occurrence; returns whether there was one.
fn mask(bytes: &mut [u8], texts: &[Vec<u8>]) -> bool {
    let mut found = false;
    for text in texts {
        let mut from = 0;
        while let Some(at) = bytes.get(from..).and_then(|rest| memmem::find(rest, text)) {
            let at = from + at;
            bytes[at..at + text.len()].fill(MASK);
            from = at + text.len();
            found = true;
        }
    }
    found
}

/// Returns how many bytes at the end may begin one of the texts.
fn begun(bytes: &[u8], texts: &[Vec<u8>]) -> usize {
    let longest = texts.iter().map(Vec::len).max().unwrap_or(0);
    let most = longest.saturating_sub(1).min(bytes.len());
    let begins = |length: usize| {
        let end = &bytes[bytes.len() - length..];
        texts
            .iter()
            .any(|text| text.len() > length && text.starts_with(end))
    };
    (1..=most).rev().find(|length| begins(*length)).unwrap_or(0)
}

/// The body of an answer without a credential's value.
pub(super) struct MaskedBody {
    body: ProxyBody,
    secret: Arc<LoginSecret>,
    /// The bytes that may begin a value.
    held: BytesMut,
    /// A frame without data that follows the bytes that are held.
    next: Option<Frame<Bytes>>,
    ended: bool,
}

impl MaskedBody {
    pub(super) fn new(body: ProxyBody, secret: Arc<LoginSecret>) -> Self {
        Self {
            body,
            secret,
            held: BytesMut::new(),
            next: None,
            ended: false,
        }
    }

    /// Takes the next bytes, and returns what can be passed on.
    fn pass(&mut self, more: &[u8]) -> Bytes {
        self.held.extend_from_slice(more);
        mask(&mut self.held, self.secret.texts());
        let keep = begun(&self.held, self.secret.texts());
        let pass = self.held.len() - keep;
        self.held.split_to(pass).freeze()
    }
}

impl Body for MaskedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        loop {
            if let Some(next) = self.next.take() {
                return Poll::Ready(Some(Ok(next)));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(frame)) => Some(frame.into_data()),
                None => None,
            };
            let passed = match frame {
                Some(Ok(data)) => self.pass(&data),
                Some(Err(other)) => {
                    self.next = Some(other);
                    self.held.split().freeze()
                }
                None => {
                    self.ended = true;
                    self.held.split().freeze()
                }
            };
            if !passed.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(passed))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.next.is_none() && self.held.is_empty() && (self.ended || self.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        // Masking changes no length. What is held is not in the body's hint anymore.
        let (body, held) = (self.body.size_hint(), self.held.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower() + held);
        if let Some(upper) = body.upper() {
            hint.set_upper(upper + held);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use http_body_util::{BodyExt, StreamBody};
    use hyper::body::Frame;

    use super::super::{LoginForm, LoginSecret};
    use super::{MaskedBody, mask_headers};

    fn secret() -> Arc<LoginSecret> {
        let form = LoginForm::header("Authorization: Bearer {}").unwrap();
        Arc::new(LoginSecret::read(&form, b"abab-abac").unwrap())
    }

    async fn masked(parts: &[&str]) -> String {
        let frames: Vec<Result<Frame<Bytes>, hyper::Error>> = parts
            .iter()
            .map(|part| Ok(Frame::data(Bytes::from((*part).to_owned()))))
            .collect();
        let body = StreamBody::new(futures(frames)).boxed_unsync();
        let body = MaskedBody::new(body, secret());
        let bytes = body.collect().await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    /// Returns a stream of these items.
    fn futures<T: Send>(items: Vec<T>) -> impl futures_util::Stream<Item = T> + Send {
        futures_util::stream::iter(items)
    }

    #[tokio::test]
    async fn a_value_is_masked_wherever_it_is_cut() {
        for (parts, expect) in [
            (&["token=abab-abac;"][..], "token=*********;"),
            (&["x ab", "ab-", "abac y"], "x ********* y"),
            (&["ababab-abac"], "ab*********"),
            (&["abab-aba"], "abab-aba"),
            (&["abab-", "x"], "abab-x"),
            (&["", "abab-abacabab-abac"], "******************"),
            (&[], ""),
        ] {
            assert_eq!(masked(parts).await, expect, "{parts:?}");
        }
        let whole = "1abab-abac2YWJhYi1hYmFj3";
        for at in 1..whole.len() {
            let (one, other) = whole.split_at(at);
            let masked = masked(&[one, other]).await;
            assert_eq!(masked, "1*********2************3", "{at}");
        }
    }

    #[test]
    fn headers_are_masked() {
        let mut headers = hyper::HeaderMap::new();
        headers.insert("x-echo", "Bearer abab-abac".parse().unwrap());
        mask_headers(&mut headers, &secret());
        assert_eq!(headers["x-echo"], "Bearer *********");
    }
}
