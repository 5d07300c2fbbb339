//! A skill as a model reads it: `<skill_content>` round its text, its files by name, and what is to be known besides.

use std::fmt::Write as _;

use haft::skill::{Resources, Skill};

/// Most files named.
const FILES: usize = 200;

/// Wraps a skill's text.
pub(super) fn wrapped(skill: &Skill, body: &str, files: &Resources, notes: &[String]) -> String {
    let name = escaped(skill.name());
    let mut out = format!("<skill_content name=\"{name}\">\n");
    // The text must not close what it stands in.
    out.push_str(
        body.trim_end()
            .replace("</skill_content", "<\\/skill_content")
            .as_str(),
    );
    let _ = write!(
        out,
        "\n\nSkill directory: {}\nRelative paths in this skill are relative to the skill directory.\n",
        escaped(&skill.dir().to_string_lossy())
    );
    if !files.files.is_empty() {
        out.push_str("\n<skill_resources>\n");
        for file in files.files.iter().take(FILES) {
            let _ = writeln!(out, "<file>{}</file>", escaped(&file.path));
        }
        out.push_str("</skill_resources>\n");
        let more = files.files.len().saturating_sub(FILES);
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

/// Text as it stands in an attribute or an element; control characters as spaces.
fn escaped(text: &str) -> String {
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

/// The names of files for `data`, as many as are named.
pub(super) fn named(files: &Resources) -> Vec<String> {
    let paths = files.files.iter().map(|file| file.path.clone());
    paths.take(FILES).collect()
}
