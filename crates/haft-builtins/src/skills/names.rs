//! The names of skills that are separate tools.

use std::collections::BTreeSet;

use haft::skill::Skill;

use crate::skills::AS_TOOL;

/// Maximum length of such a name, in bytes: it leaves room for a number and for a gateway's prefix.
const MAX_NAME: usize = 64;

/// Returns a tool name for each skill: the letters, digits, `-` and `_` of its name, with `_` for anything else. If two names are equal,
/// the later ones are numbered.
pub(super) fn tool_names<'a>(skills: &[&'a Skill]) -> Vec<(String, &'a Skill)> {
    let mut used = BTreeSet::new();
    let named = skills.iter().map(|skill| {
        let plain = to_legal_name(skill.name());
        let mut name = plain.clone();
        let mut number = 2_u32;
        while !used.insert(name.clone()) {
            name = format!("{plain}_{number}");
            number += 1;
        }
        (name, *skill)
    });
    named.collect()
}

fn to_legal_name(name: &str) -> String {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let mapped = name.chars().map(|c| if fine(c) { c } else { '_' });
    let room = MAX_NAME - AS_TOOL.len();
    AS_TOOL.chars().chain(mapped.take(room)).collect()
}

#[cfg(test)]
mod tests {
    use super::to_legal_name;

    #[test]
    fn a_name_is_made_legal() {
        for (name, expect) in [
            ("pdf-tools", "skill.pdf-tools"),
            ("Excel Analysis", "skill.Excel_Analysis"),
            ("表格", "skill.__"),
            ("a.b/c", "skill.a_b_c"),
        ] {
            assert_eq!(to_legal_name(name), expect);
        }
        assert_eq!(to_legal_name(&"x".repeat(1000)).len(), 64);
    }
}
