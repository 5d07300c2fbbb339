//! Hosts that browsers ask on their own for updates, lists and the time: no person is asked about them.

/// The hosts of Chromium's, Edge's and Firefox's makers that a page never needs.
const HOSTS: [&str; 12] = [
    "aus5.mozilla.org",
    "clients2.google.com",
    "config.edge.skype.com",
    "content-signature-2.cdn.mozilla.net",
    "detectportal.firefox.com",
    "firefox.settings.services.mozilla.com",
    "incoming.telemetry.mozilla.org",
    "msedge.api.cdp.microsoft.com",
    "optimizationguide-pa.googleapis.com",
    "push.services.mozilla.com",
    "redirector.gvt1.com",
    "update.googleapis.com",
];

/// Why such a connection is refused, for the command.
pub(super) const WHY: &str = "browsers ask it for updates on their own, and nobody is asked about that; only a rule allows it";

/// Whether a host is one of them.
pub(super) fn is_one(host: &str) -> bool {
    HOSTS.binary_search(&host).is_ok()
}

#[cfg(test)]
mod tests {
    use super::{HOSTS, is_one};

    #[test]
    fn only_hosts_of_browsers_updates_are_refused_unasked() {
        assert!(HOSTS.is_sorted());
        for (host, expect) in [
            ("update.googleapis.com", true),
            ("aus5.mozilla.org", true),
            ("storage.googleapis.com", false),
            ("example.com", false),
        ] {
            assert_eq!(is_one(host), expect, "{host}");
        }
    }
}
