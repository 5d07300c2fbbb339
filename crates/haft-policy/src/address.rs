//! Hosts that a call may connect to: public addresses and public names. The guard checks before a call, the client when it opens
//! the connection. `docs/reference/ssrf.md` lists the rules; "URL rule 3" refers to one of them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The reason why haft does not connect to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NonPublicHost {
    /// The address is not globally reachable according to the IANA registries, or embeds an IPv4 address that is not.
    #[error("it is not an address of the public network")]
    Address,
    /// The address serves a machine's credentials, whether or not it is public.
    #[error("it is a metadata address")]
    Metadata,
    /// The name refers to this machine or to a private network.
    #[error("it is a name of this machine or of a private network")]
    Name,
    /// A unix socket of a service of this machine (`unix:/run/x`).
    #[error("it is a socket of a service of this machine")]
    Socket,
    /// A number that only some parsers read as an address, or not a valid name.
    #[error("it is neither an address nor a name that all parsers read the same way")]
    Unclear,
}

/// Metadata services outside the link-local range: those of Azure's virtual machine host (an otherwise public address), Alibaba
/// and Oracle (URL rule 4).
const METADATA_ADDRESSES: [Ipv4Addr; 3] = [
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
];

/// Suffixes of names that refer to this machine or to a private network (RFC 6761, RFC 6762, RFC 8375, RFC 9476,
/// ICANN's `.internal`, Kubernetes, and names that routers assign): URL rule 5.
const PRIVATE_NAMES: [&str; 15] = [
    "localhost",
    "localdomain",
    "localhost6",
    "localdomain6",
    "local",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "alt",
    "home.arpa",
    "svc",
    "cluster.local",
];

/// Names of metadata services that are public names (URL rule 4).
const METADATA_NAMES: [&str; 4] = [
    "metadata.goog",
    "metadata.tencentyun.com",
    "metadata.packet.net",
    "metadata.platformequinix.com",
];

/// Checks whether haft may connect to a host as a URL names it (`example.com`, `93.184.216.34`, `[2606:4700::1111]`).
///
/// This does not cover the addresses that a name resolves to: check each of them with `check_address`.
///
/// # Errors
/// [`NonPublicHost`] says which kind of host it is: not a public address, a metadata service, a private name, or one that parsers read
/// differently.
pub fn check_host(host: &str) -> Result<(), NonPublicHost> {
    if socket_path(host).is_some() {
        return Err(NonPublicHost::Socket);
    }
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let bare = bare.unwrap_or(&host);
    let bare = bare.split('%').next().unwrap_or(bare);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return check_address(address);
    }
    let below = |name: &str| {
        bare.strip_suffix(name)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    if METADATA_NAMES.iter().any(|name| below(name)) {
        return Err(NonPublicHost::Metadata);
    }
    if PRIVATE_NAMES.iter().any(|name| below(name)) {
        return Err(NonPublicHost::Name);
    }
    let last = bare.rsplit('.').next().unwrap_or(bare);
    let number = last.starts_with(|c: char| c.is_ascii_digit())
        && (last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x"));
    if number
        || bare.contains([':', '[', ']', '/', '@', '\\'])
        || bare.split('.').any(str::is_empty)
    {
        return Err(NonPublicHost::Unclear);
    }
    if !bare.contains('.') {
        return Err(NonPublicHost::Name);
    }
    Ok(())
}

/// How a unix socket of this machine is written where a host is.
const SOCKET: &str = "unix:";

/// Returns how a unix socket is written where a host is.
pub fn socket_host(path: &str) -> String {
    format!("{SOCKET}{path}")
}

/// Returns the path of a unix socket that is written where a host is: absolute, and without names that stand for another folder.
pub fn socket_path(host: &str) -> Option<&str> {
    let path = host.strip_prefix(SOCKET)?;
    let mut names = path.strip_prefix('/')?.split('/');
    let plain = |name: &str| !matches!(name, "" | "." | "..");
    (names.all(plain) && !path.contains(char::is_control)).then_some(path)
}

/// Whether a rule that names this non-public host may permit connecting to it. False for metadata services and for link-local
/// addresses, where they usually are.
pub fn can_be_opened(host: &str) -> bool {
    if socket_path(host).is_some() {
        return true;
    }
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(address) => address_can_be_opened(address),
        Err(_) => {
            !bare.contains("metadata")
                && !matches!(
                    check_host(&host),
                    Err(NonPublicHost::Metadata | NonPublicHost::Unclear)
                )
        }
    }
}

/// Whether a rule may permit connecting to this address, which the host's name resolves to. False for metadata services
/// and for link-local, multicast, broadcast and unspecified addresses; of IPv6, only loopback and unique local
/// addresses qualify.
pub fn address_can_be_opened(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            // `0.0.0.0` also means this machine.
            let odd = v4.is_unspecified() || v4.is_broadcast() || v4.is_multicast();
            !odd && !v4.is_link_local() && !METADATA_ADDRESSES.contains(&v4)
        }
        IpAddr::V6(v6) => {
            // `fd00:ec2::254` and similar addresses.
            let metadata = matches!(v6.segments(), [0xfd00, 0xec2, ..]);
            !metadata && (v6.is_loopback() || v6.segments()[0] & 0xfe00 == 0xfc00)
        }
    }
}

/// Checks whether haft may connect to an address (URL rules 3 and 4).
///
/// # Errors
/// [`NonPublicHost::Metadata`] for an address of a metadata service, [`NonPublicHost::Address`] for any other that is not globally reachable.
pub fn check_address(address: IpAddr) -> Result<(), NonPublicHost> {
    match address {
        IpAddr::V4(v4) => check_v4(v4),
        IpAddr::V6(v6) => check_v6(v6),
    }
}

/// Checks that the address is in none of the special ranges of the IANA registry for IPv4.
fn check_v4(address: Ipv4Addr) -> Result<(), NonPublicHost> {
    let [a, b, c, _] = address.octets();
    let special = matches!(
        (a, b, c),
        (0 | 10 | 127 | 224..=255, _, _)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 168, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (198, 18..=19, _)
            | (198, 51, 100)
            | (203, 0, 113)
    );
    if special {
        return Err(NonPublicHost::Address);
    }
    if METADATA_ADDRESSES.contains(&address) {
        return Err(NonPublicHost::Metadata);
    }
    Ok(())
}

/// Accepts global unicast (`2000::/3`) except documentation, tunnels and translated private addresses.
fn check_v6(address: Ipv6Addr) -> Result<(), NonPublicHost> {
    if let Some(v4) = address.to_ipv4_mapped() {
        return check_v4(v4);
    }
    let hidden =
        |high: u16, low: u16| check_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match address.segments() {
        // NAT64 translation and 6to4 tunnels.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => hidden(high, low),
        // IETF protocol assignments with Teredo, and the documentation blocks.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Err(NonPublicHost::Address),
        // Compatible, translated, local, multicast and unassigned addresses lie outside 2000::/3.
        [first, ..] if (0x2000..0x4000).contains(&first) => Ok(()),
        _ => Err(NonPublicHost::Address),
    }
}

/// Says in one sentence that a host is refused, for guards and connectors.
pub fn refusal(host: impl fmt::Display, why: NonPublicHost) -> String {
    format!("{host} is refused: {why}; no connection to it was made")
}

/// Returns the port of `host:port` or of a URL.
pub(crate) fn port_of(address: &str) -> Option<u16> {
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (scheme, rest),
        None => ("", address),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let after = authority
        .rsplit_once(']')
        .map_or(authority, |(_, after)| after);
    match (after.rsplit_once(':'), scheme) {
        (Some((_, port)), _) => port.parse().ok(),
        (None, "https") => Some(443),
        (None, "http") => Some(80),
        (None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{NonPublicHost, can_be_opened, check_host};

    #[test]
    fn no_rule_and_no_person_opens_a_metadata_service() {
        for (host, opened) in [
            ("10.0.0.7", true),
            ("127.0.0.1", true),
            ("localhost", true),
            ("registry.internal", true),
            ("unix:/run/postgresql/.s.PGSQL.5432", true),
            ("unix:run/x", false),
            ("unix:/run/../x", false),
            ("unix:", false),
            ("[fd12:3456::1]", true),
            ("[::1]", true),
            ("169.254.169.254", false),
            ("[::ffff:169.254.169.254]", false),
            ("[64:ff9b::a9fe:a9fe]", false),
            ("[2002:a9fe:a9fe::]", false),
            ("169.254.170.2", false),
            ("100.100.100.200", false),
            ("192.0.0.192", false),
            ("168.63.129.16", false),
            ("[fd00:ec2::254]", false),
            ("[fe80::a9fe:a9fe]", false),
            ("metadata.google.internal", false),
            ("metadata.goog", false),
            ("0.0.0.0", false),
            ("[::]", false),
            ("255.255.255.255", false),
            ("224.0.0.1", false),
        ] {
            assert_eq!(can_be_opened(host), opened, "{host}");
        }
    }

    #[test]
    fn only_public_hosts_pass() {
        let rows = [
            ("example.com", Ok(())),
            ("example.com.", Ok(())),
            ("93.184.216.34", Ok(())),
            ("[2606:2800:220:1:248:1893:25c8:1946]", Ok(())),
            ("metadata.google.internal.example.com", Ok(())),
            ("100.63.255.255", Ok(())),
            ("100.64.0.0", Err(NonPublicHost::Address)),
            ("[::ffff:8.8.8.8]", Ok(())),
            ("[::ffff:127.0.0.1]", Err(NonPublicHost::Address)),
            ("[::127.0.0.1]", Err(NonPublicHost::Address)),
            ("[::ffff:0:8.8.8.8]", Err(NonPublicHost::Address)),
            ("[64:ff9b::7f00:1]", Err(NonPublicHost::Address)),
            ("[64:ff9b:1::808:808]", Err(NonPublicHost::Address)),
            ("[2002:7f00:1::]", Err(NonPublicHost::Address)),
            ("[2001::1]", Err(NonPublicHost::Address)),
            ("[fec0::1]", Err(NonPublicHost::Address)),
            ("[ff02::1]", Err(NonPublicHost::Address)),
            ("[5f00::1]", Err(NonPublicHost::Address)),
            ("168.63.129.16", Err(NonPublicHost::Metadata)),
            ("[::ffff:168.63.129.16]", Err(NonPublicHost::Metadata)),
            ("metadata.goog", Err(NonPublicHost::Metadata)),
            ("metadata.google.internal", Err(NonPublicHost::Name)),
            ("LocalHost", Err(NonPublicHost::Name)),
            ("a.localdomain", Err(NonPublicHost::Name)),
            ("router", Err(NonPublicHost::Name)),
            ("kubernetes.default.svc", Err(NonPublicHost::Name)),
            ("notlocalhost.com", Ok(())),
            ("127.1", Err(NonPublicHost::Unclear)),
            ("0x7f000001", Err(NonPublicHost::Unclear)),
            ("a..b", Err(NonPublicHost::Unclear)),
            ("", Err(NonPublicHost::Unclear)),
            ("a.b..", Err(NonPublicHost::Unclear)),
        ];
        for (host, expect) in rows {
            assert_eq!(check_host(host), expect, "{host}");
        }
    }
}
