//! Host rules that may be proposed: one exact public host. Look-alike letters need no check here: the rules reject hosts with
//! characters beyond ASCII.

use crate::address::check_host;

/// Says why a rule for this host, with or without a port, may not be proposed.
pub(crate) fn refuse(place: &str) -> Option<String> {
    let port = |(_, port): &(&str, &str)| port.chars().all(|c| c.is_ascii_digit());
    let host = place
        .rsplit_once(':')
        .filter(port)
        .map_or(place, |(host, _)| host);
    if host.contains('*') || !host.contains('.') {
        return Some("it covers several hosts: name one".to_owned());
    }
    check_host(host)
        .is_err()
        .then(|| "the host is not public".to_owned())
}
