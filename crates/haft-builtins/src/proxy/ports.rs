//! The ports at which connections of a command to every address are taken.

use std::ops::RangeInclusive;

use haft_sandbox::{MAX_OUTLET_PORTS, NAMES_PORT, OUTLET_ADDRESS};

/// SSH, HTTP and HTTPS. No command can listen at ports below 1024, so these are in no server's way.
const USUAL: [u16; 3] = [22, 80, 443];

/// Ports at which developers' own servers listen. A rule that names one opens it to the proxy alone, or `0.0.0.0:8080` would be in use
/// before the command starts.
const OF_SERVERS: [RangeInclusive<u16>; 12] = [
    1234..=1234,
    1313..=1313,
    3000..=3020,
    4000..=4010,
    4173..=4180,
    4200..=4200,
    4321..=4321,
    5000..=5010,
    5173..=5180,
    8000..=8100,
    8888..=8889,
    9000..=9010,
];

/// Returns the usual ports and those that settings or rules name, as far as they can be taken.
pub(crate) fn taken_ports(named: impl IntoIterator<Item = u16>) -> Vec<u16> {
    let is_own = |port: u16| [0, NAMES_PORT, OUTLET_ADDRESS.port()].contains(&port);
    let is_of_servers = |port: u16| OF_SERVERS.iter().any(|ports| ports.contains(&port));
    let mut ports = USUAL.to_vec();
    for port in named {
        if ports.len() == MAX_OUTLET_PORTS {
            break;
        }
        if !is_own(port) && !is_of_servers(port) && !ports.contains(&port) {
            ports.push(port);
        }
    }
    ports
}

#[cfg(test)]
mod tests {
    use super::taken_ports;

    #[test]
    fn named_ports_are_taken_where_no_server_of_the_command_listens() {
        for (named, expect) in [
            (&[][..], &[22, 80, 443][..]),
            (&[443, 5432, 8443, 5432], &[22, 80, 443, 5432, 8443]),
            (&[0, 53, 3128, 3000, 5173, 8000, 8080, 9000], &[22, 80, 443]),
            (&[8101, 1023, 65535], &[22, 80, 443, 8101, 1023, 65535]),
        ] {
            assert_eq!(taken_ports(named.iter().copied()), expect, "{named:?}");
        }
        assert_eq!(taken_ports(10_000..60_000).len(), 64);
    }
}
