//! The ports at hosts elsewhere that rules for the connections of commands name.

use std::collections::BTreeSet;

use crate::Policy;
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
