//! `ConnectionRefusal`: why a connection was not made, in one line; `Refusals`: those of a command, with settings that would allow them.

use haft_sandbox::MAX_OUTLET_CONNECTIONS;
use hyper::StatusCode;
use parking_lot::Mutex;
use thiserror::Error;

use super::IDLE_TIMEOUT;
use super::allow::AllowList;
use crate::web::http::HttpError;

/// Maximum number of refusals stored per command; more are only counted.
const MAX_REFUSALS: usize = 16;
/// Maximum length of a refusal, in characters.
const MAX_SHOWN: usize = 300;

/// The reason why a connection, or a request on it, was refused or failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ConnectionRefusal {
    /// No entry names the place. The command reads this message, so it does not say which entry would allow it.
    #[error("{place} is not one of the hosts that commands may reach here")]
    NotListed { place: String, entry: String },
    /// A rule, the profile or the user refused, or nobody could be asked. The command reads this message, so it does not say how to
    /// change that.
    #[error("connection to {place} refused: {why}")]
    Judged {
        place: String,
        why: String,
        operator: Option<String>,
    },
    /// Refused whatever the list says.
    #[error("{host} is not on the public network, and no setting allows it ({why})")]
    Private { host: String, why: String },
    /// Programs may disagree on the host in the URL.
    #[error("the URL is refused: {0}")]
    Unclear(String),
    /// Not a request for a proxy.
    #[error("the request is refused: {0}")]
    Malformed(&'static str),
    /// `Host` names another host.
    #[error("the request for {0} is refused: its Host header must name the same host, once")]
    OtherHost(String),
    /// Rules judge each request at the host, and this one cannot be judged.
    #[error(
        "the request for {host} is refused: {why} (each request there is judged, because of the rule {rule})"
    )]
    Request {
        host: String,
        why: String,
        rule: String,
    },
    /// The tunnel does not carry TLS for the requested host.
    #[error("the tunnel to {host} was closed: {why}")]
    Tunnel { host: String, why: String },
    /// An address that stands for names, but for none that this command asked for.
    #[error("{place} stands for no host: ask for the address of its name again")]
    Unnamed { place: String },
    /// An address that stands for a name.
    #[error("{place} stands for {name} in this jail: give the proxy that name, not the address")]
    StandsFor { place: String, name: String },
    /// The credential for the host gives no login.
    #[error("no login for {host}: {why}")]
    Login { host: String, why: String },
    /// A socket that no command reaches.
    #[error("the socket {socket} {why}")]
    Powerful { socket: String, why: String },
    /// A socket of the host whose service does not answer.
    #[error("the service at the socket {socket} {why}")]
    Service { socket: String, why: String },
    /// Nothing was signed. The command reads this message only as its agent's failure.
    #[error("signature for {purpose} refused: {why}")]
    Signature {
        purpose: String,
        why: String,
        operator: Option<String>,
    },
    /// Ended because it was quiet and another needed its place.
    #[error(
        "the quiet connection to {place} was ended: nothing had passed for {} s, and the command had as many connections as it can have \
         ({MAX_OUTLET_CONNECTIONS})",
        IDLE_TIMEOUT.as_secs()
    )]
    Idle { place: String },
    /// Allowed, but the proxy named in settings did not connect to it.
    #[error("{message}")]
    Upstream {
        message: String,
        operator: &'static str,
    },
    /// Allowed, but not reachable.
    #[error("{0}")]
    Unreachable(String),
}

impl ConnectionRefusal {
    /// Returns the refusal of a host that no entry names, and that perhaps none can.
    pub(crate) fn not_listed(host: &str, port: u16) -> Self {
        match AllowList::read([host]) {
            Ok(_) => Self::NotListed {
                place: format!("{host}:{port}"),
                entry: match port {
                    80 | 443 => host.to_owned(),
                    other => format!("{host}:{other}"),
                },
            },
            Err(error) => Self::private(host, &error.why),
        }
    }

    /// Returns the setting that would allow the connection, for the operator: the command and the model must not see it.
    fn allowing_setting(&self) -> Option<String> {
        match self {
            Self::NotListed { entry, .. } => Some(format!(
                "`sandbox.allow_hosts = [\"{entry}\"]` lets commands connect to it"
            )),
            Self::Judged { operator, .. } | Self::Signature { operator, .. } => operator.clone(),
            Self::Upstream { operator, .. } => Some((*operator).to_owned()),
            _ => None,
        }
    }

    pub(crate) fn from_upstream_error(error: &HttpError) -> Self {
        Self::Upstream {
            message: error.to_string(),
            operator: error.operator_advice(),
        }
    }

    /// Returns the refusal of a program that takes no certificate of haft's. `purpose` says why haft ends its TLS.
    pub(super) fn distrust(host: &str, purpose: &str, error: &str) -> Self {
        Self::Tunnel {
            host: host.to_owned(),
            why: format!(
                "the program does not accept haft's certificate, by which haft stands between it and this host {purpose}: it has a list of \
                 authorities of its own, or expects a certain certificate ({error})"
            ),
        }
    }

    pub(crate) fn private(host: &str, why: &str) -> Self {
        Self::Private {
            host: host.to_owned(),
            why: why.to_owned(),
        }
    }

    /// Returns false for a connection that was allowed and failed.
    pub(super) fn is_decision(&self) -> bool {
        !matches!(
            self,
            Self::Unreachable(_)
                | Self::Upstream { .. }
                | Self::Login { .. }
                | Self::Service { .. }
                | Self::Idle { .. }
        )
    }

    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::Unreachable(_)
            | Self::Upstream { .. }
            | Self::Login { .. }
            | Self::Service { .. }
            | Self::Idle { .. } => StatusCode::BAD_GATEWAY,
            _ => StatusCode::FORBIDDEN,
        }
    }
}

/// The refusals of one command: a few lines, without duplicates.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<RefusalLog>);

#[derive(Debug, Default)]
struct RefusalLog {
    lines: Vec<RefusalLine>,
    more: u64,
}

#[derive(Debug)]
struct RefusalLine {
    text: String,
    /// The setting that would allow the connection.
    would_allow: Option<String>,
}

impl Refusals {
    /// Records a refusal. The command learns about other failures by itself.
    pub(crate) fn note(&self, refusal: &ConnectionRefusal) {
        if !matches!(refusal, ConnectionRefusal::Unreachable(_)) {
            self.note_untold(refusal);
        }
    }

    /// Records a refusal, or a failure of which the command sees only that its connection ends.
    pub(super) fn note_untold(&self, refusal: &ConnectionRefusal) {
        let line: String = refusal.to_string().chars().take(MAX_SHOWN).collect();
        let mut log = self.0.lock();
        if log.lines.iter().any(|known| known.text == line) {
            return;
        }
        if log.lines.len() < MAX_REFUSALS {
            log.lines.push(RefusalLine {
                text: line,
                would_allow: refusal.allowing_setting(),
            });
        } else {
            log.more += 1;
        }
    }

    /// Returns the setting that would allow the first refused connection, if there is one, for the operator.
    pub(crate) fn allowing_setting(&self) -> Option<String> {
        let log = self.0.lock();
        log.lines.first()?.would_allow.clone()
    }

    /// Returns the lines, and one that counts those left out.
    pub(crate) fn lines(&self) -> Vec<String> {
        let log = self.0.lock();
        let mut lines: Vec<String> = log.lines.iter().map(|line| line.text.clone()).collect();
        if log.more > 0 {
            lines.push(format!("{} more were refused", log.more));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::{ConnectionRefusal, MAX_REFUSALS, Refusals};

    #[test]
    fn j18_a_refusal_advises_nothing_that_settings_refuse() {
        for host in [
            "127.0.0.1",
            "localhost",
            "10.0.0.1",
            "[::1]",
            "host.internal",
        ] {
            let message = ConnectionRefusal::not_listed(host, 80).to_string();
            assert!(message.contains("no setting allows it"), "{message}");
        }
        let said = ConnectionRefusal::not_listed("example.com", 8443).to_string();
        let expect = "example.com:8443 is not one of the hosts that commands may reach here";
        assert_eq!(said, expect);
    }

    #[test]
    fn u6_what_would_allow_a_host_is_said_to_people_alone() {
        for (port, entry) in [(443, "example.com"), (8443, "example.com:8443")] {
            let refusal = ConnectionRefusal::not_listed("example.com", port);
            assert!(!refusal.to_string().contains("allow_hosts"), "{refusal}");
            let refusals = Refusals::default();
            refusals.note(&refusal);
            let setting = format!("sandbox.allow_hosts = [\"{entry}\"]");
            assert!(refusals.allowing_setting().unwrap().contains(&setting));
        }
        // The setting is that of the first line, or none.
        let refusals = Refusals::default();
        refusals.note(&ConnectionRefusal::private("10.0.0.1", "private"));
        refusals.note(&ConnectionRefusal::not_listed("example.com", 443));
        assert_eq!(refusals.allowing_setting(), None);
    }

    #[test]
    fn refusals_are_kept_once_and_bounded() {
        let refusals = Refusals::default();
        for number in 0..MAX_REFUSALS + 5 {
            for _ in 0..2 {
                refusals.note(&ConnectionRefusal::not_listed(
                    &format!("h{number}.example.com"),
                    443,
                ));
            }
        }
        refusals.note(&ConnectionRefusal::Unreachable(
            "example.com is away".into(),
        ));
        refusals.note(&ConnectionRefusal::private(&"x".repeat(10_000), ""));
        let lines = refusals.lines();
        assert_eq!(lines.len(), MAX_REFUSALS + 1);
        assert_eq!(lines[MAX_REFUSALS], "11 more were refused");
        assert!(lines.iter().all(|line| line.len() <= 300));
    }
}
