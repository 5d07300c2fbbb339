//! The connections and logins that patterns match, as texts: the port first, then the host.
//!
//! `u443 Hexample.com` is a connection at a usual port of its scheme, `x8443 H…` one at another, `un S/…` a socket, `B[::1]` a host in
//! brackets. A login is `h443 H…` (https), `s22 H…` (ssh), `?s` (a server that is not known), `g` or `kFINGERPRINT`.

use super::automaton::{Automaton, StateId, Symbol};
use super::glob_language::write_glob;
use crate::address::socket_host;
use crate::rules::network_pattern::NetworkPattern;
use crate::rules::pattern::DomainPattern;
use crate::rules::rule::RuleList;
use crate::rules::sign_pattern::{SignPattern, SignScope};

/// The ports that are usual for a scheme.
const USUAL: [&str; 2] = ["80", "443"];
/// The kinds of hosts: by name, in brackets, a socket's path.
const NAMED: char = 'H';
const BRACKETS: char = 'B';
const SOCKET: char = 'S';

/// Ends the part of the port.
const GAP: char = ' ';

/// Writes connections and logins into an automaton.
pub(super) struct HostWriter<'a> {
    pub(super) automaton: &'a mut Automaton,
}

impl HostWriter<'_> {
    fn char(&mut self, from: StateId, c: char) -> StateId {
        self.automaton.step(from, Symbol::Char(c))
    }

    /// Writes the digits of any port.
    fn any_port(&mut self, from: StateId) -> StateId {
        let digits = || Symbol::In([('0', '9')].into());
        let first = self.automaton.step(from, digits());
        let more = self.automaton.repeat(first, digits());
        self.char(more, GAP)
    }

    fn port(&mut self, from: StateId, port: &str) -> StateId {
        let end = self.automaton.text(from, port);
        self.char(end, GAP)
    }

    /// Returns the states after each way to write a usual port: `u443`, `x443`, and without one.
    fn usual_ports(&mut self, from: StateId, both: bool) -> Vec<StateId> {
        let usual = self.char(from, 'u');
        let mut ends: Vec<StateId> = USUAL.map(|port| self.port(usual, port)).into();
        if both {
            let unusual = self.char(from, 'x');
            ends.extend(USUAL.map(|port| self.port(unusual, port)));
        } else {
            ends.push(self.port(usual, "n"));
        }
        ends
    }

    fn any_connection_port(&mut self, from: StateId) -> Vec<StateId> {
        let mut ends = self.usual_ports(from, false);
        let unusual = self.char(from, 'x');
        ends.push(self.any_port(unusual));
        ends
    }

    /// Writes every connection.
    pub(super) fn all_connections(&mut self, from: StateId) {
        for end in self.any_connection_port(from) {
            for kind in [NAMED, BRACKETS] {
                self.any_host(end, kind);
            }
        }
        let none = self.automaton.text(from, "un ");
        self.any_host(none, SOCKET);
    }

    /// Writes every login.
    pub(super) fn all_logins(&mut self, from: StateId) {
        for kind in ['h', 's'] {
            let start = self.char(from, kind);
            let end = self.any_port(start);
            for kind in [NAMED, BRACKETS] {
                self.any_host(end, kind);
            }
            let unknown = self.char(from, '?');
            let end = self.char(unknown, kind);
            self.automaton.accept(end);
        }
        let git = self.char(from, 'g');
        self.automaton.accept(git);
        let key = self.char(from, 'k');
        let print = self.automaton.repeat(key, hexadecimal());
        self.automaton.accept(print);
    }

    fn any_host(&mut self, from: StateId, kind: char) {
        let start = self.char(from, kind);
        let first = self.automaton.step(start, Symbol::any());
        let end = self.automaton.repeat(first, Symbol::any());
        self.automaton.accept(end);
    }

    /// Writes the connections to hosts of a domain: an allow is for the usual port of the scheme.
    pub(super) fn domain(&mut self, from: StateId, pattern: &DomainPattern, list: RuleList) {
        let ends = if list == RuleList::Allow {
            self.usual_ports(from, false)
        } else {
            self.any_connection_port(from)
        };
        for end in ends {
            self.host(end, pattern);
        }
        self.sockets_of(from, pattern);
    }

    /// Writes what begins like a socket and is none.
    pub(super) fn impossible(&mut self, from: StateId) {
        let none = self.automaton.text(from, "un ");
        let mut at = self.char(none, SOCKET);
        for c in socket_host("/").chars() {
            self.automaton.accept(at);
            let other = self.automaton.step(at, Symbol::but(&[c]));
            self.automaton.accept_all(other);
            at = self.char(at, c);
        }
    }

    /// A socket has no port. The pattern of a domain reads its path as a name, letter by letter.
    fn sockets_of(&mut self, from: StateId, pattern: &DomainPattern) {
        let end = self.automaton.text(from, "un ");
        let start = self.char(end, SOCKET);
        let end = self.labels(start, pattern);
        self.automaton.accept(end);
    }

    /// Writes the connections that a network pattern names.
    pub(super) fn network(&mut self, from: StateId, pattern: &NetworkPattern, list: RuleList) {
        let allows = list == RuleList::Allow;
        if let Some(socket) = pattern.socket() {
            let end = self.automaton.text(from, "un ");
            let start = self.char(end, SOCKET);
            let end = self.automaton.text(start, socket);
            return self.automaton.accept(end);
        }
        let mut ends = match pattern.port() {
            None if allows => self.usual_ports(from, true),
            None => self.any_connection_port(from),
            Some(port) => {
                let text = port.to_string();
                let usual = USUAL.contains(&text.as_str()).then_some('u');
                let flags = usual.into_iter().chain(['x']);
                let flags: Vec<StateId> = flags.map(|flag| self.char(from, flag)).collect();
                flags
                    .into_iter()
                    .map(|flag| self.port(flag, &text))
                    .collect()
            }
        };
        if pattern.port().is_some() && !allows {
            ends.push(self.automaton.text(from, "un "));
        }
        for host in pattern.hosts() {
            for end in &ends {
                self.host(*end, host);
            }
            if !allows {
                self.sockets_of(from, host);
            }
        }
    }

    /// Writes the logins that a pattern names.
    pub(super) fn sign(&mut self, from: StateId, pattern: &SignPattern, list: RuleList) {
        let allows = list == RuleList::Allow;
        let kind = pattern.kind().chars().next().unwrap_or_default();
        match pattern.scope() {
            SignScope::Whole => {
                let end = self.char(from, 'g');
                self.automaton.accept(end);
            }
            SignScope::Key(print) => {
                let start = self.char(from, 'k');
                let end = match print {
                    Some(print) => self.automaton.text(start, print),
                    None => self.automaton.repeat(start, hexadecimal()),
                };
                self.automaton.accept(end);
            }
            SignScope::Place(place) => {
                let start = self.char(from, kind);
                let end = match place.port {
                    None if !allows => self.any_port(start),
                    port => self.port(start, &port.unwrap_or(place.usual).to_string()),
                };
                self.host(end, &place.host);
                if !allows {
                    let unknown = self.char(from, '?');
                    let end = self.char(unknown, kind);
                    self.automaton.accept(end);
                }
            }
        }
    }

    /// Writes the hosts of a pattern, except sockets.
    fn host(&mut self, from: StateId, pattern: &DomainPattern) {
        let named = self.char(from, NAMED);
        let end = self.labels(named, pattern);
        self.automaton.accept(end);
        // A host in brackets is one label, dots or not.
        match pattern.labels() {
            [] => self.any_host(from, BRACKETS),
            [label] if !pattern.is_below() => {
                let start = self.char(from, BRACKETS);
                let end = write_glob(self.automaton, start, &label.pieces(), &[]);
                self.automaton.accept(end);
            }
            _ => {}
        }
    }

    /// Writes the labels of a host.
    fn labels(&mut self, from: StateId, pattern: &DomainPattern) -> StateId {
        let mut at = from;
        if pattern.is_below() {
            at = self.automaton.repeat(at, Symbol::any());
        }
        for (place, label) in pattern.labels().iter().enumerate() {
            if place > 0 || pattern.is_below() {
                at = self.char(at, '.');
            }
            at = write_glob(self.automaton, at, &label.pieces(), &['.']);
        }
        at
    }
}

fn hexadecimal() -> Symbol {
    Symbol::In([('0', '9'), ('A', 'F')].into())
}
