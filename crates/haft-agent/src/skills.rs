//! Skills as presented to the model: the catalogue in the instructions, and those reactivated when a run is resumed.

use std::fmt::Write as _;

use haft::Session;
use haft::skill::set::Catalogue;
use haft::text::clip;

/// The tool that loads a skill.
pub(crate) const LOAD_SKILL: &str = "load_skill";
/// Maximum number of bytes of the catalogue.
const MAX_CATALOGUE: usize = 16 << 10;
/// Maximum number of characters of a description in it.
const MAX_DESCRIPTION: usize = 250;

/// Returns names and descriptions of the skills that the model may load, for the instructions; empty if there are none.
pub(crate) fn catalogue(skills: &Catalogue, session: &Session) -> String {
    let mut offered = skills
        .skills()
        .iter()
        .filter(|skill| skill.front().model_invocable && session.sees_skill(skill.name()))
        .peekable();
    if offered.peek().is_none() || session.tools().entry(LOAD_SKILL).is_none() {
        return String::new();
    }
    let mut text = String::from(
        "Skills are instructions for kinds of work. Load one with load_skill before you do its work.\n<available_skills>\n",
    );
    let mut left = 0;
    for skill in offered {
        let about: Vec<&str> = skill.description().split_whitespace().collect();
        let about = about.join(" ");
        let about = clip(&about, MAX_DESCRIPTION);
        if left > 0 || text.len() + about.len() > MAX_CATALOGUE {
            left += 1;
            continue;
        }
        let _ = writeln!(text, "- {}: {about}", skill.name());
    }
    if left > 0 {
        let _ = writeln!(text, "{left} more: list_skills names them.");
    }
    text.push_str("</available_skills>");
    text
}
