//! `UpgradeSlot`: a request that changes the protocol of its connection (websockets, `docker exec`), and the connection that it becomes.
//!
//! The request was judged like every other, and the host agreed with status 101; what follows is bytes.

use haft_http::connection::Driver;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderMap, HeaderValue, UPGRADE};
use hyper::upgrade::OnUpgrade;
use hyper::{Request, Version};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::copy_bidirectional;
use tokio::time::timeout;

use crate::proxy::STEP_TIMEOUT;

/// Which protocols a connection may change to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PassedUpgrades {
    /// Those whose further bytes name no other host to a server of HTTP: neither HTTP/2 nor TLS.
    NotHttp,
    /// All: where HTTP/2 may begin at once, it may begin later.
    All,
}

/// Where the connection of one request is put if it changes its protocol.
#[derive(Debug)]
pub(super) struct UpgradeSlot {
    passes: PassedUpgrades,
    opened: Mutex<Option<UpgradedWay>>,
}

/// A connection whose ends agreed on another protocol.
#[derive(Debug)]
pub(super) struct UpgradedWay {
    pub(super) client: OnUpgrade,
    pub(super) host: OnUpgrade,
    /// Drives the connection to the host until it is handed over.
    pub(super) driver: Driver,
}

impl UpgradeSlot {
    pub(super) fn new(passes: PassedUpgrades) -> Self {
        Self {
            passes,
            opened: Mutex::default(),
        }
    }

    /// Returns the protocols that a request may change to, as its host reads them. Others are left out, and the host answers as if the
    /// request did not name them (RFC 9110 §7.8).
    pub(super) fn wanted(&self, request: &Request<Incoming>) -> Option<HeaderValue> {
        let headers = request.headers();
        let is_wanted = request.version() == Version::HTTP_11
            && words(headers, &CONNECTION).any(|word| word.eq_ignore_ascii_case("upgrade"));
        if !is_wanted {
            return None;
        }
        let passes = |name: &&str| self.passes == PassedUpgrades::All || !is_http(name);
        let named: Vec<&str> = words(headers, &UPGRADE).filter(passes).collect();
        HeaderValue::try_from(named.join(", "))
            .ok()
            .filter(|value| !value.is_empty())
    }

    pub(super) fn put(&self, way: UpgradedWay) {
        *self.opened.lock() = Some(way);
    }

    pub(super) fn take(&self) -> Option<UpgradedWay> {
        self.opened.lock().take()
    }
}

impl UpgradedWay {
    /// Passes bytes in both directions until either end closes.
    pub(super) async fn run(self) {
        let both = async { tokio::try_join!(self.client, self.host) };
        // An end that has disconnected needs nothing more.
        if let Ok(Ok((client, host))) = timeout(STEP_TIMEOUT, both).await {
            drop(self.driver);
            let (mut client, mut host) = (TokioIo::new(client), TokioIo::new(host));
            let _ = copy_bidirectional(&mut client, &mut host).await;
        }
    }
}

/// Returns the words of a header that is a list.
fn words<'a>(
    headers: &'a HeaderMap,
    name: &hyper::header::HeaderName,
) -> impl Iterator<Item = &'a str> {
    let lists = headers.get_all(name).iter();
    let words = lists.filter_map(|value| value.to_str().ok());
    words
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|word| !word.is_empty())
}

/// Whether a protocol of `Upgrade` is HTTP/2 or another HTTP, or TLS (RFC 2817), in which further requests can name other hosts.
fn is_http(protocol: &str) -> bool {
    let name = protocol.split('/').next().unwrap_or(protocol);
    ["h2", "h2c", "h3", "http", "tls"]
        .iter()
        .any(|one| name.eq_ignore_ascii_case(one))
}

#[cfg(test)]
mod tests {
    use super::is_http;

    #[test]
    fn protocols_in_which_requests_name_hosts_are_http() {
        for (protocol, expect) in [
            ("h2c", true),
            ("H2C", true),
            ("HTTP/2.0", true),
            ("TLS/1.0", true),
            ("websocket", false),
            ("tcp", false),
            ("SPDY/3.1", false),
            ("h2-not", false),
        ] {
            assert_eq!(is_http(protocol), expect, "{protocol}");
        }
    }
}
