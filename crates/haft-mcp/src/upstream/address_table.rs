//! `AddressTable`: which server owns a resource's address: the one table by which lists, reads, subscriptions and completion agree.
//!
//! It is made of what users reviewed and pinned. What a server lists beyond that never displaces an address of another server: it is
//! listed, and found, under an address that names its server.

use std::collections::HashMap;
use std::sync::Arc;

use crate::upstream::Upstream;
use crate::upstream::address::{fits, is_reserved};
use crate::upstream::pages::ListKind;

/// Prefix of the URI of a tool's page (MCP Apps).
const PAGE_PREFIX: &str = "ui://";

/// The owners of addresses that do not name their server. Servers are given by their position.
#[derive(Debug)]
pub(crate) struct AddressTable<'s> {
    /// The servers with resources.
    servers: Vec<(usize, &'s Upstream)>,
    /// The first server that pinned each address, and whether there are others.
    pinned: HashMap<&'s str, Pin>,
}

#[derive(Debug, Clone, Copy)]
struct Pin {
    server: usize,
    is_contested: bool,
}

impl<'s> AddressTable<'s> {
    /// Creates the table of these servers.
    pub(crate) fn new(servers: &'s [Arc<Upstream>]) -> Self {
        let all = servers.iter().map(|server| &**server).enumerate();
        let servers: Vec<_> = all.filter(|(_, server)| server.has_resources()).collect();
        let mut pinned: HashMap<&str, Pin> = HashMap::new();
        for (nth, server) in &servers {
            for uri in server.pinned_addresses() {
                let first = pinned.entry(uri).or_insert(Pin {
                    server: *nth,
                    is_contested: false,
                });
                first.is_contested |= first.server != *nth;
            }
        }
        Self { servers, pinned }
    }

    /// Returns the server that an address belongs to: the first that pinned it or a template for it, or the only one with
    /// resources. A page that two servers pinned belongs to none: a tool could be shown with another server's page.
    pub(crate) fn owner(&self, uri: &str) -> Option<usize> {
        if is_reserved(uri) {
            return None;
        }
        if let Some(pin) = self.pinned.get(uri) {
            let is_unclear = pin.is_contested && uri.starts_with(PAGE_PREFIX);
            return (!is_unclear).then_some(pin.server);
        }
        let has_template = |(_, server): &&(usize, &Upstream)| {
            let templates = server.known(ListKind::Templates);
            templates.iter().any(|t| t.key == uri || fits(&t.key, uri))
        };
        let found = self.servers.iter().find(has_template);
        found.map(|(nth, _)| *nth).or_else(|| self.only())
    }

    /// Returns the server that all addresses of a template belong to, as far as nobody pinned them: the first that pinned it,
    /// unless an earlier server has one that may have the same addresses; or the only one with resources.
    pub(crate) fn template_owner(&self, template: &str) -> Option<usize> {
        if is_reserved(template) {
            return None;
        }
        if let Some(only) = self.only() {
            return Some(only);
        }
        for (nth, server) in &self.servers {
            let templates = server.known(ListKind::Templates);
            if templates.iter().any(|t| t.key == template) {
                return Some(*nth);
            }
            if templates.iter().any(|t| may_overlap(&t.key, template)) {
                return None;
            }
        }
        None
    }

    fn only(&self) -> Option<usize> {
        match self.servers[..] {
            [(nth, _)] => Some(nth),
            _ => None,
        }
    }
}

/// Returns whether two templates may have an address in common, as far as the text before their first variables shows.
fn may_overlap(one: &str, other: &str) -> bool {
    let (one, other) = (literal(one), literal(other));
    one.starts_with(other) || other.starts_with(one)
}

/// Returns the text before a template's first variable.
fn literal(template: &str) -> &str {
    template.split('{').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::may_overlap;

    #[test]
    fn templates_overlap_unless_their_beginnings_differ() {
        for (one, other, expect) in [
            ("item://{id}/data", "item://{x}", true),
            ("item://{id}", "{+any}", true),
            ("item://a/{id}", "item://{+any}", true),
            ("item://a/{id}", "item://b/{id}", false),
            ("file:///{+path}", "item://{id}", false),
        ] {
            assert_eq!(may_overlap(one, other), expect, "{one} {other}");
            assert_eq!(may_overlap(other, one), expect, "{other} {one}");
        }
    }
}
