//! `NameTable`: the addresses that stand for names in one command's network, so that a connection to one says which host is meant.
//!
//! The real address is looked up on this machine once the connection is allowed: a question for a name never leaves it before, and a
//! program can neither choose the address nor change it afterwards.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

use haft_sandbox::JAIL_ADDRESS;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

/// The range for tests of networks (RFC 2544, `198.18.0.0/15`): no host outside has such an address.
const RANGE: u32 = u32::from_be_bytes([198, 18, 0, 0]);
const RANGE_BITS: u32 = 17;
/// The addresses at both ends of the range that stand for no name; the jail's own is one of them.
const EDGE: u32 = 256;
/// Maximum number of names of one command that have an address.
pub(super) const MAX_NAMES: usize = 4096;

/// What an address is to one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Destination {
    /// The jail itself.
    Jail,
    /// The host of this name.
    Name(String),
    /// An address of the range that stands for no name, or no longer.
    Unknown(IpAddr),
    /// This very address outside.
    Address(IpAddr),
}

/// The names that one command has asked for.
#[derive(Debug, Default)]
pub(crate) struct NameTable(Mutex<Names>);

#[derive(Debug, Default)]
struct Names {
    known: HashMap<Ipv4Addr, KnownName>,
    addresses: HashMap<Box<str>, Ipv4Addr>,
    /// The addresses, the oldest first.
    order: VecDeque<Ipv4Addr>,
}

#[derive(Debug)]
struct KnownName {
    name: Box<str>,
    /// Whether there was a connection to it. Its address is given to no other name then.
    connected: bool,
}

impl NameTable {
    /// Returns the address that stands for a name, which is lowercase. `None` if there are as many names as there can be, each
    /// connected to: otherwise the oldest without a connection makes room.
    pub(super) fn address(&self, name: &str) -> Option<Ipv4Addr> {
        let mut names = self.0.lock();
        if let Some(address) = names.addresses.get(name) {
            return Some(*address);
        }
        if names.known.len() >= MAX_NAMES {
            names.make_room()?;
        }
        let address = names.free_address(name);
        let known = KnownName {
            name: name.into(),
            connected: false,
        };
        names.known.insert(address, known);
        names.addresses.insert(name.into(), address);
        names.order.push_back(address);
        Some(address)
    }

    /// Returns what a connection to this address is meant for, and notes it.
    pub(super) fn connect(&self, address: IpAddr) -> Destination {
        let address = address.to_canonical();
        let IpAddr::V4(v4) = address else {
            return if address.is_loopback() || address.is_unspecified() {
                Destination::Jail
            } else {
                Destination::Address(address)
            };
        };
        if v4.is_loopback() || v4.is_unspecified() || v4 == JAIL_ADDRESS {
            return Destination::Jail;
        }
        if !is_in_range(v4) {
            return Destination::Address(address);
        }
        match self.0.lock().known.get_mut(&v4) {
            Some(known) => {
                known.connected = true;
                Destination::Name(known.name.to_string())
            }
            None => Destination::Unknown(address),
        }
    }

    /// Returns the name that an address stands for.
    pub(super) fn name_of(&self, address: IpAddr) -> Option<String> {
        let IpAddr::V4(v4) = address.to_canonical() else {
            return None;
        };
        let names = self.0.lock();
        names.known.get(&v4).map(|known| known.name.to_string())
    }

    /// Returns the first names, at most `count`, that the command asked for and did not connect to.
    pub(crate) fn unreached(&self, count: usize) -> Vec<String> {
        let names = self.0.lock();
        let known = names.order.iter().filter_map(|at| names.known.get(at));
        let unreached = known.filter(|known| !known.connected).take(count);
        unreached.map(|known| known.name.to_string()).collect()
    }
}

impl Names {
    /// Forgets the oldest name without a connection.
    fn make_room(&mut self) -> Option<()> {
        let known = &self.known;
        let free = |address: &Ipv4Addr| known.get(address).is_some_and(|name| !name.connected);
        let at = self.order.iter().position(free)?;
        let address = self.order.remove(at)?;
        let forgotten = self.known.remove(&address)?;
        self.addresses.remove(&forgotten.name);
        Some(())
    }

    /// Returns the address for a new name. It follows from the name, so that an address that a program stored stands for the same name
    /// in the next command, or for none.
    fn free_address(&self, name: &str) -> Ipv4Addr {
        let digest = Sha256::digest(name.as_bytes());
        let number = digest
            .iter()
            .take(4)
            .fold(0, |sum: u32, byte| sum << 8 | u32::from(*byte));
        let count = (1 << RANGE_BITS) - 2 * EDGE;
        // There are far more addresses than names.
        let nth = |step| Ipv4Addr::from(RANGE + EDGE + number.wrapping_add(step) % count);
        let mut candidates = (0..count).map(nth);
        let free = candidates.find(|address| !self.known.contains_key(address));
        free.unwrap_or(nth(0))
    }
}

fn is_in_range(address: Ipv4Addr) -> bool {
    u32::from(address) >> RANGE_BITS == RANGE >> RANGE_BITS
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::{Destination, MAX_NAMES, NameTable};

    #[test]
    fn an_address_stands_for_the_same_name_in_every_command() {
        let (one, other) = (NameTable::default(), NameTable::default());
        let address = one.address("example.com").unwrap();
        other.address("example.org").unwrap();
        assert_eq!(one.address("example.com"), Some(address));
        assert_eq!(
            one.connect(address.into()),
            Destination::Name("example.com".into())
        );
        // What another command has not asked for is nothing to it.
        let unknown = Destination::Unknown(address.into());
        assert_eq!(other.connect(address.into()), unknown);
        assert_eq!(other.address("example.com"), Some(address));
    }

    #[test]
    fn addresses_are_the_jails_a_names_or_their_own() {
        let names = NameTable::default();
        for (text, expect) in [
            ("127.0.0.1", Destination::Jail),
            ("127.8.9.10", Destination::Jail),
            ("::1", Destination::Jail),
            ("::", Destination::Jail),
            ("0.0.0.0", Destination::Jail),
            ("::ffff:127.0.0.1", Destination::Jail),
            ("198.18.0.1", Destination::Jail),
        ] {
            assert_eq!(names.connect(text.parse().unwrap()), expect, "{text}");
        }
        for text in ["10.0.0.1", "169.254.169.254", "1.1.1.1", "2606:4700::1111"] {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(names.connect(address), Destination::Address(address));
        }
        for text in ["198.18.0.0", "198.19.255.255", "::ffff:198.18.7.7"] {
            let address: IpAddr = text.parse().unwrap();
            let unknown = Destination::Unknown(address.to_canonical());
            assert_eq!(names.connect(address), unknown);
        }
    }

    #[test]
    fn a_hundred_thousand_names_displace_only_what_has_no_connection() {
        let names = NameTable::default();
        let held = names.address("held.example.com").unwrap();
        assert!(matches!(names.connect(held.into()), Destination::Name(_)));
        for number in 0..100_000 {
            let name = format!("h{number}.example.com");
            let address = names.address(&name).unwrap();
            assert_eq!(names.name_of(address.into()), Some(name));
        }
        assert_eq!(names.0.lock().known.len(), MAX_NAMES);
        assert_eq!(names.0.lock().order.len(), MAX_NAMES);
        assert_eq!(names.address("held.example.com"), Some(held));
        assert_eq!(names.unreached(1), ["h95905.example.com"]);
    }

    #[test]
    fn a_full_table_of_connections_takes_no_other_name() {
        let names = NameTable::default();
        for number in 0..MAX_NAMES {
            let address = names.address(&format!("h{number}.example.com")).unwrap();
            names.connect(address.into());
        }
        assert_eq!(names.address("one.more.example.com"), None);
        assert!(names.address("h7.example.com").is_some());
    }
}
