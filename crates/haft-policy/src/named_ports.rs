//! The ports and requests at hosts elsewhere that rules name.

use std::collections::BTreeSet;

use crate::Policy;
use crate::rules::network_pattern::NetworkPattern;
use crate::rules::pattern::canonical_host;
use crate::rules::rule::{Rule, RuleList, Selector, Specifier};
use haft_types::spec::ToolClass;

impl Policy {
    /// Returns the ports that allow and ask rules for connections of commands name, except at this machine.
    pub fn named_ports(&self) -> BTreeSet<u16> {
        let rules = self.rules.all().iter();
        let is_network = |rule: &&Rule| {
            matches!(rule.selector, Selector::Class(ToolClass::Network))
                || rule.class == Some(ToolClass::Network)
        };
        let open = rules.filter(|rule| is_network(rule) && rule.list != RuleList::Deny);
        open.filter_map(|rule| match &rule.specifier {
            Specifier::Network(pattern) => pattern.port_elsewhere(),
            _ => None,
        })
        .collect()
    }
}

impl Policy {
    /// Returns the first rule that covers some requests at this host and port and not others: for a tool of this class, each request there
    /// is judged by itself.
    pub fn rule_on_requests(
        &self,
        class: ToolClass,
        host: &str,
        port: Option<u16>,
    ) -> Option<&str> {
        let host = &canonical_host(host);
        let names = |rule: &&Rule| {
            let of_class = matches!(rule.selector, Selector::Class(own) if own == class)
                || rule.class == Some(class);
            let names = |pattern: &NetworkPattern| match rule.list {
                RuleList::Allow => pattern.allows_at(host, port),
                RuleList::Ask | RuleList::Deny => pattern.forbids_at(host, port),
            };
            of_class
                && rule.judges_requests()
                && matches!(&rule.specifier, Specifier::Network(pattern) if names(pattern))
        };
        let found = self.rules.all().iter().find(names);
        found.map(|rule| &*rule.text)
    }

    /// Whether a rule for the connections of commands covers some requests of a host and not others.
    pub fn judges_requests_of_commands(&self) -> bool {
        let of_commands = |rule: &Rule| {
            matches!(rule.selector, Selector::Class(ToolClass::Network))
                || rule.class == Some(ToolClass::Network)
        };
        let mut rules = self.rules.all().iter();
        rules.any(|rule| rule.judges_requests() && of_commands(rule))
    }
}

#[cfg(test)]
mod tests {
    use crate::Policy;
    use crate::profile::Profile;

    #[test]
    fn ports_are_those_of_hosts_elsewhere_that_are_not_denied() {
        let policy = Policy::builder(Profile::Workspace)
            .allow("Network(db.example.com:5432)")
            .allow("Network(*.example.org:8443)")
            .allow("Network(example.net)")
            .allow("Network(npm)")
            .allow("Network(localhost:3306)")
            .allow("Network(127.0.0.1:6379)")
            .allow("WebFetch(domain:10.0.0.7:9999)")
            .ask("Network(10.0.0.7:9000)")
            .ask("Network(private:in.example.com:9418)")
            .deny("Network(example.com:25)")
            .build();
        let ports: Vec<u16> = policy.unwrap().named_ports().into_iter().collect();
        assert_eq!(ports, [5432, 8443, 9000, 9418]);
    }
}
