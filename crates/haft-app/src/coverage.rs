//! What a rule covers beyond its text, in words for the user who decides about it.

use haft::policy::{Classes, rule_coverage};

/// Returns what a rule covers, if its text does not say all of it.
pub fn coverage(rule: &str) -> Option<String> {
    let classes: Classes = haft_builtins::classes().collect();
    rule_coverage(rule, &classes)
}
