//! What a rule covers beyond its text, in words for whoever decides about it.

use haft::policy::{Classes, rule_coverage};

/// What a rule covers, where its text says less than that.
pub fn coverage(rule: &str) -> Option<String> {
    let classes: Classes = haft_builtins::classes().collect();
    rule_coverage(rule, &classes)
}
