//! `DirectHost`: a host that is reached without the proxy, as `NO_PROXY` lists name it.

use std::net::IpAddr;

use crate::upstream::UpstreamError;

/// An entry of such a list: hosts, and the port for which it counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DirectHost {
    hosts: Hosts,
    /// The only port that the entry covers; `None` for all.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    All,
    /// The names below this one, and the name itself unless the entry began with a dot.
    Name {
        name: String,
        itself: bool,
    },
    /// Addresses that begin with these bits.
    Block {
        address: IpAddr,
        bits: u8,
    },
}

impl DirectHost {
    pub(crate) fn parse(entry: &str) -> Result<Self, UpstreamError> {
        let wrong = |why| UpstreamError::Direct {
            entry: entry.chars().take(100).collect(),
            why,
        };
        if entry == "*" {
            return Ok(Self {
                hosts: Hosts::All,
                port: None,
            });
        }
        if let Some((address, bits)) = entry.split_once('/') {
            let address: IpAddr = address
                .parse()
                .map_err(|_| wrong("only an address can have a `/`, as in 10.0.0.0/8"))?;
            let bits: u8 = bits.parse().unwrap_or(u8::MAX);
            if bits > width(address) {
                return Err(wrong("the address has fewer bits"));
            }
            let hosts = Hosts::Block { address, bits };
            return Ok(Self { hosts, port: None });
        }
        let inner = entry
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        if let Ok(address) = inner.unwrap_or(entry).parse::<IpAddr>() {
            let bits = width(address);
            let hosts = Hosts::Block { address, bits };
            return Ok(Self { hosts, port: None });
        }
        let (host, port) = match entry.rsplit_once(':') {
            Some((host, port)) => {
                let port = port
                    .parse()
                    .map_err(|_| wrong("what follows `:` is not a port number"))?;
                (host, Some(port))
            }
            None => (entry, None),
        };
        if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
            let bits = width(address);
            let hosts = Hosts::Block { address, bits };
            return Ok(Self { hosts, port });
        }
        let name = host.strip_prefix('*').unwrap_or(host);
        let below = name.strip_prefix('.');
        let itself = below.is_none() && name == host;
        let name = below.unwrap_or(name);
        let letter = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || !name.chars().all(letter) || (below.is_none() && name != host) {
            return Err(wrong(
                "write a name, `.name` for the names below it, an address, or a block such as 10.0.0.0/8",
            ));
        }
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let hosts = Hosts::Name { name, itself };
        Ok(Self { hosts, port })
    }

    /// Returns true if the entry names this host, given as in a URL, and port.
    pub(crate) fn names(&self, host: &str, port: u16) -> bool {
        if self.port.is_some_and(|own| own != port) {
            return false;
        }
        let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
        match &self.hosts {
            Hosts::All => true,
            Hosts::Name { name, itself } => {
                let host = host.to_ascii_lowercase();
                let rest = host.strip_suffix(name.as_str());
                rest.is_some_and(|rest| (rest.is_empty() && *itself) || rest.ends_with('.'))
            }
            Hosts::Block { address: own, bits } => {
                address.is_some_and(|address| is_in(address.to_canonical(), *own, *bits))
            }
        }
    }
}

/// Returns the number of bits in an address.
fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn is_in(address: IpAddr, block: IpAddr, bits: u8) -> bool {
    let number = |address: IpAddr| match address {
        IpAddr::V4(v4) => u128::from(u32::from(v4)) << 96,
        IpAddr::V6(v6) => u128::from(v6),
    };
    let prefix = u32::from(bits);
    let rest = 128_u32.saturating_sub(prefix);
    let mask = if prefix == 0 { 0 } else { u128::MAX << rest };
    address.is_ipv4() == block.is_ipv4() && number(address) & mask == number(block) & mask
}
