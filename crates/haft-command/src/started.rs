//! Every command that a line may end up starting, with its words: through wrappers, shells and their texts.

use haft_shell::{AsWord as _, base_name, layers, parse};

/// Maximum depth of texts for shells within texts for shells.
const MAX_DEPTH: usize = 8;
/// Maximum number of commands of one line.
const MAX_COMMANDS: usize = 512;

/// A command that a line may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StartedCommand {
    /// Its words as far as they are known, the program first; a word that only the shell knows is as written.
    pub(crate) words: Vec<String>,
}

impl StartedCommand {
    /// Returns the name of the program, without its folder.
    pub(crate) fn name(&self) -> &str {
        self.words.first().map_or("", |name| base_name(name))
    }
}

/// Returns the commands that a line may start; `None` if it cannot be read, or starts more than are looked at.
pub(crate) fn started(line: &str) -> Option<Vec<StartedCommand>> {
    let mut found = Vec::new();
    add(line, 0, &mut found).then_some(found)
}

/// Adds the commands of a text; false if it cannot be read.
fn add(text: &str, depth: usize, found: &mut Vec<StartedCommand>) -> bool {
    let Some(read) = (depth < MAX_DEPTH).then(|| parse(text).ok()).flatten() else {
        return false;
    };
    let mut is_whole = true;
    for command in &read.commands {
        let all = layers(&command.words);
        is_whole &= !all.truncated;
        for layer in &all.commands {
            if found.len() == MAX_COMMANDS {
                return false;
            }
            let words = layer.words.iter().map(|word| word.text().to_owned());
            found.push(StartedCommand {
                words: words.collect(),
            });
        }
        for script in &all.scripts {
            is_whole &= add(&script.text, depth + 1, found);
        }
    }
    is_whole
}

#[cfg(test)]
mod tests {
    use super::{StartedCommand, started};

    #[test]
    fn a_line_starts_what_its_wrappers_and_shells_do() {
        for (line, expect) in [
            ("make all", Some("make")),
            ("cd a && timeout 5 npm test", Some("cd timeout npm")),
            ("bash -lc 'ls; make'", Some("bash ls make")),
            ("echo $(curl x)", Some("echo curl")),
            ("sudo -u a ./b", Some("sudo b")),
            ("if", None),
            ("bash -c 'if'", None),
        ] {
            let names = started(line).map(|all| {
                let mut names: Vec<&str> = all.iter().map(StartedCommand::name).collect();
                names.sort_unstable();
                names.join(" ")
            });
            let expect = expect.map(|names| {
                let mut names: Vec<&str> = names.split(' ').collect();
                names.sort_unstable();
                names.join(" ")
            });
            assert_eq!(names, expect, "{line}");
        }
    }
}
