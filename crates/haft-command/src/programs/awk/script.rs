//! The files that a program of `awk` reads besides its operands.

use crate::script_files::ScriptFiles;

/// Words with which a program reads more than its operands, or runs commands.
const READING: &[&str] = &["getline", "ARGV", "ARGC", "system"];

/// Returns the files that a program may name in its texts, if it can read more than its operands.
pub(super) fn files(script: &str) -> ScriptFiles {
    let Some((code, texts)) = split(script) else {
        return ScriptFiles::any();
    };
    let is_part = |c: char| c == '_' || c.is_ascii_alphanumeric();
    let mut names = code.split(|c| !is_part(c));
    let pipes = code.replace("||", " ").contains('|');
    // `@include`, and functions by a name in a variable.
    let more = pipes || code.contains('@') || names.any(|name| READING.contains(&name));
    ScriptFiles {
        reads: if more { texts } else { Vec::new() },
        writes: Vec::new(),
        more,
    }
}

/// Returns a program without texts, regular expressions and comments, and its texts; `None` if one of them does not end.
fn split(script: &str) -> Option<(String, Vec<String>)> {
    let (mut code, mut texts) = (String::new(), Vec::new());
    let mut chars = script.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                let mut text = String::new();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '\\' => text.push(chars.next()?),
                        c => text.push(c),
                    }
                }
                texts.push(text);
                code.push('"');
            }
            '/' if begins_regex(&code) => {
                let mut in_bracket = false;
                loop {
                    match chars.next()? {
                        '/' if !in_bracket => break,
                        // Programs differ in whether one in brackets ends it.
                        '/' | '\n' => return None,
                        '\\' => drop(chars.next()?),
                        '[' => in_bracket = true,
                        ']' => in_bracket = false,
                        _ => {}
                    }
                }
                code.push('"');
            }
            '#' => {
                chars.by_ref().find(|c| *c == '\n');
                code.push('\n');
            }
            '\\' => {
                code.push(' ');
            }
            c => code.push(c),
        }
    }
    Some((code, texts))
}

/// Whether a slash behind this code begins a regular expression, because no value precedes it that it could divide.
fn begins_regex(code: &str) -> bool {
    let before = code.trim_end_matches([' ', '\t']).chars().next_back();
    before.is_none_or(|c| "(,!~{};&|\n".contains(c))
}
