//! `Cookie`: the session cookie's name, how it is set and cleared, and how it is read from a request.

use http::HeaderMap;
use http::header::COOKIE;

use crate::console::sessions::IDLE_TIMEOUT;

/// Maximum number of values to check per request.
const MAX_VALUES: usize = 8;

/// This server's cookie.
#[derive(Debug, Clone)]
pub(crate) struct Cookie {
    name: String,
    secure: bool,
}

impl Cookie {
    /// The port in the name distinguishes servers on the same host, which cookies do not. Over HTTPS, the browser itself ties the
    /// name to this host.
    pub(crate) fn new(port: u16, https: bool) -> Self {
        let prefix = if https { "__Host-" } else { "" };
        Self {
            name: format!("{prefix}haft_session_{port}"),
            secure: https,
        }
    }

    /// Returns the header that sets the cookie.
    pub(crate) fn set(&self, id: &str) -> String {
        self.header(id, IDLE_TIMEOUT.as_secs())
    }

    /// Returns the header that clears the cookie.
    pub(crate) fn clear(&self) -> String {
        self.header("", 0)
    }

    fn header(&self, value: &str, seconds: u64) -> String {
        let secure = if self.secure { "; Secure" } else { "" };
        format!(
            "{}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}",
            self.name
        )
    }

    /// Returns the cookie's values in a request. There may be several, since another server on this host can set one with the
    /// same name for a path of its own. Foreign values are simply skipped, because a session also needs its secret.
    pub(crate) fn read<'a>(&'a self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
        let texts = headers.get_all(COOKIE).iter();
        texts
            .filter_map(|header| header.to_str().ok())
            .flat_map(|text| text.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(|(name, value)| *name == self.name && !value.is_empty())
            .map(|(_, value)| value)
            .take(MAX_VALUES)
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, header::COOKIE};

    use super::Cookie;

    #[test]
    fn a_cookie_is_set_for_this_site_alone() {
        let plain = Cookie::new(7420, false);
        assert_eq!(
            plain.set("abc"),
            "haft_session_7420=abc; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200"
        );
        assert_eq!(
            plain.clear(),
            "haft_session_7420=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"
        );
        assert_eq!(
            Cookie::new(443, true).set("abc"),
            "__Host-haft_session_443=abc; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200; Secure"
        );
    }

    #[test]
    fn a_cookie_is_read_by_its_whole_name() {
        let cookie = Cookie::new(1, false);
        for (headers, expect) in [
            (&["haft_session_1=a"][..], &["a"][..]),
            (&["x=y; haft_session_1=a;z=1"], &["a"]),
            (&["x=y", "haft_session_1=a"], &["a"]),
            (&["haft_session_1=a; haft_session_1=b"], &["a", "b"]),
            (&["haft_session_1=a", "haft_session_1=b"], &["a", "b"]),
            (&["haft_session_12=a"], &[]),
            (&["xhaft_session_1=a"], &[]),
            (&["haft_session_1="], &[]),
            (&["haft_session_1"], &[]),
            (&[], &[]),
        ] {
            let mut map = HeaderMap::new();
            for text in headers {
                map.append(COOKIE, HeaderValue::from_static(text));
            }
            assert!(cookie.read(&map).eq(expect.iter().copied()), "{headers:?}");
        }
    }
}
