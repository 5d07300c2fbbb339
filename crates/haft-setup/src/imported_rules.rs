//! `ImportedRules`: rules about the tools of servers, from other programs' settings.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

/// Rules about tools of servers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ImportedRules {
    /// Calls that may run.
    pub allow: Vec<String>,
    /// Calls that need approval.
    pub ask: Vec<String>,
    /// Calls that never run.
    pub deny: Vec<String>,
    /// What is not imported.
    pub not_carried: Vec<String>,
}

impl ImportedRules {
    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.ask.is_empty() && self.deny.is_empty()
    }

    pub(crate) fn add(&mut self, more: Self) {
        let join = |list: &mut Vec<String>, more: Vec<String>| {
            for item in more {
                if !list.contains(&item) {
                    list.push(item);
                }
            }
        };
        join(&mut self.allow, more.allow);
        join(&mut self.ask, more.ask);
        join(&mut self.deny, more.deny);
        join(&mut self.not_carried, more.not_carried);
    }

    /// Renames servers: `names` has the names in haft by those in the rules.
    pub fn rename(&mut self, names: &BTreeMap<String, String>) {
        for list in [&mut self.allow, &mut self.ask, &mut self.deny] {
            for rule in list.iter_mut() {
                if let Some((server, tool)) = rule.split_once('.')
                    && let Some(now) = names.get(server)
                {
                    *rule = format!("{now}.{tool}");
                }
            }
        }
    }

    /// Returns the rules as text for haft's settings.
    pub fn text(&self) -> String {
        let mut out = String::from("[policy]\n");
        for (name, list) in [
            ("allow", &self.allow),
            ("ask", &self.ask),
            ("deny", &self.deny),
        ] {
            if !list.is_empty() {
                let items = toml::Value::from(list.clone());
                // Writing to a `String` cannot fail.
                let _ = writeln!(out, "{name} = {items}");
            }
        }
        out
    }
}
