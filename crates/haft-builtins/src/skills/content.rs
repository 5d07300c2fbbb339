//! Formats a skill for the model: `<skill_content>` around its text, the names of its files, and notes.

use std::fmt::Write as _;

use haft::skill::{Skill, SkillResources};

/// Maximum number of files named.
const MAX_FILES: usize = 200;

/// Wraps a skill's text in `<skill_content>`, with its folder, the names of its files and the notes after it.
pub(super) fn wrap_skill(
    skill: &Skill,
    body: &str,
    files: &SkillResources,
    notes: &[String],
) -> String {
    let name = escape_text(skill.name());
    let mut out = format!("<skill_content name=\"{name}\">\n");
    // The text must not close the element that contains it.
    out.push_str(
        body.trim_end()
            .replace("</skill_content", "<\\/skill_content")
            .as_str(),
    );
    let _ = write!(
        out,
        "\n\nSkill directory: {}\nRelative paths in this skill are relative to the skill directory.\n",
        escape_text(&skill.dir().to_string_lossy())
    );
    if !files.files.is_empty() {
        out.push_str("\n<skill_resources>\n");
        for file in files.files.iter().take(MAX_FILES) {
            let _ = writeln!(out, "<file>{}</file>", escape_text(&file.path));
        }
        out.push_str("</skill_resources>\n");
        let more = files.files.len().saturating_sub(MAX_FILES);
        if more > 0 {
            let _ = writeln!(out, "{more} more files are not named here.");
        }
    }
    out.push_str("</skill_content>");
    for note in notes {
        let _ = write!(out, "\n[{note}]");
    }
    out
}

/// Escapes text for an attribute or an element, with spaces for control characters.
fn escape_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Returns the names of the files for `data`, up to the maximum.
pub(super) fn named(files: &SkillResources) -> Vec<String> {
    let paths = files.files.iter().map(|file| file.path.clone());
    paths.take(MAX_FILES).collect()
}
