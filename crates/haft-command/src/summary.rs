//! What a command does, in a sentence for a person who reads why a call was judged as it was.

use std::fmt::Write as _;

use crate::meaning::CommandMeaning;
use crate::path_use::PathAccess;

/// Maximum number of paths named after each verb.
const MAX_PATHS: usize = 5;
/// Maximum number of characters of a path that are shown.
const MAX_LETTERS: usize = 80;

/// What is said of paths, in this order.
const VERBS: [&str; 8] = [
    "removes",
    "moves",
    "writes",
    "changes in place",
    "reads",
    "reads below",
    "looks at",
    "goes to",
];

/// Returns the verb for a use; `None` for one that another use states.
fn verb(how: PathAccess) -> Option<&'static str> {
    Some(match how {
        PathAccess::Removes => "removes",
        PathAccess::Moves => "moves",
        PathAccess::Writes => "writes",
        PathAccess::Edits => "changes in place",
        PathAccess::Reads | PathAccess::ReadsHistory => "reads",
        PathAccess::ReadsBelow { .. } | PathAccess::ReadsTracked => "reads below",
        PathAccess::Names | PathAccess::NamesBelow => "looks at",
        PathAccess::Goes => "goes to",
        PathAccess::Carries | PathAccess::MayUse | PathAccess::Connects => return None,
    })
}

impl CommandMeaning {
    /// Returns what the command does, such as `reads a.txt and does nothing else`.
    ///
    /// The paths are as the command writes them: whoever shows the text makes it visible.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        for verb in VERBS {
            self.say(verb, &mut text);
        }
        match (text.is_empty(), self.unknown) {
            // In a jail it runs unasked, so this is known of it.
            (true, true) if self.only_reads => text.push_str("only reads"),
            (false, true) if self.only_reads => text.push_str(", and may read more"),
            (true, true) => text.push_str("haft does not know what it does"),
            (true, false) => text.push_str("uses no file"),
            (false, true) => text.push_str(", and may do more"),
            (false, false) => text.push_str(", and does nothing else"),
        }
        text
    }

    /// Adds the paths of one verb, each once.
    fn say(&self, said: &str, text: &mut String) {
        let uses = self.uses.iter().filter(|one| verb(one.how) == Some(said));
        let mut paths: Vec<&str> = Vec::new();
        for one in uses {
            if !paths.contains(&one.path.as_str()) {
                paths.push(&one.path);
            }
        }
        if paths.is_empty() {
            return;
        }
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(said);
        for (at, path) in paths.iter().take(MAX_PATHS).enumerate() {
            text.push_str(if at == 0 { " " } else { ", " });
            text.extend(path.chars().take(MAX_LETTERS));
            if path.chars().nth(MAX_LETTERS).is_some() {
                text.push('…');
            }
        }
        if let Some(more) = paths.len().checked_sub(MAX_PATHS).filter(|more| *more > 0) {
            let _ = write!(text, " and {more} more");
        }
    }
}

#[cfg(test)]
mod tests {
    use haft_shell::{inner_command, plain_words};

    use crate::programs::meaning;

    #[test]
    fn a_summary_names_what_is_used_and_whether_that_is_all() {
        for (line, expect) in [
            ("cat a b", "reads a, b, and does nothing else"),
            ("timeout 5 cat a a", "reads a, and does nothing else"),
            ("grep -r x src", "reads below src, and does nothing else"),
            ("cp a b", "writes b, reads a, and does nothing else"),
            ("mv a b", "moves a, writes b, and does nothing else"),
            (
                "sed -i s/x/y/ a",
                "changes in place a, reads a, and may do more",
            ),
            ("rm a", "removes a, and does nothing else"),
            ("rm -r a", "removes a, and may do more"),
            (
                "cat 1 2 3 4 5 6 7",
                "reads 1, 2, 3, 4, 5 and 2 more, and does nothing else",
            ),
            ("pwd", "uses no file"),
            ("pwd -P", "uses no file"),
            ("pwd -x", "only reads"),
            ("wc --files0-from=a", "reads a, and may read more"),
            ("make all", "haft does not know what it does"),
        ] {
            let words = plain_words(line).unwrap();
            assert_eq!(meaning(inner_command(&words)).summary(), expect, "{line}");
        }
    }
}
