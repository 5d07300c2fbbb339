//! The variables that arithmetic may use: those that the line always sets to a whole number.

use crate::error::ParseError;

/// How a line uses its variables.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Variables {
    /// Variables set to a whole number.
    numbers: Vec<String>,
    /// Variables set to anything else.
    others: Vec<String>,
    /// Variables used in arithmetic.
    computed: Vec<String>,
    /// Variables that are set to a whole number before what is read next, whichever way the commands took.
    certain: Vec<String>,
    /// Whether arithmetic uses a variable that may not be set yet: it may have come from outside, with any text.
    early: bool,
    /// Variables that were taken for a number where they stand without quotes.
    counted: Vec<String>,
    /// Whether what a command prints was taken for a number.
    pub(crate) printed: bool,
}

impl Variables {
    /// Records that the line sets a variable, and whether to a whole number.
    pub(crate) fn set(&mut self, name: &str, is_number: bool) {
        let names = if is_number {
            &mut self.numbers
        } else {
            &mut self.others
        };
        note(names, name);
    }

    /// Records that arithmetic uses a variable.
    pub(crate) fn compute(&mut self, name: &str) {
        self.early |= !self.certain.iter().any(|known| known == name);
        note(&mut self.computed, name);
    }

    /// Returns whether a variable that stands without quotes is a whole number here, if it is one wherever the line sets it.
    pub(crate) fn count(&mut self, name: &str) -> bool {
        let counts = may_count(name) && self.certain.iter().any(|known| known == name);
        if counts {
            note(&mut self.counted, name);
        }
        counts
    }

    /// Returns whether every variable that was taken for a number is one.
    pub(crate) fn are_counted(&self) -> bool {
        self.counted.iter().all(|name| self.is_number(name))
    }

    /// Records that a variable is set to a whole number from here on.
    pub(crate) fn make_certain(&mut self, name: &str) {
        note(&mut self.certain, name);
    }

    /// Returns the variables that are set to a whole number here.
    pub(crate) fn certain(&self) -> &[String] {
        &self.certain
    }

    /// Replaces the variables that are set to a whole number here, and returns them.
    pub(crate) fn replace_certain(&mut self, certain: Vec<String>) -> Vec<String> {
        std::mem::replace(&mut self.certain, certain)
    }

    /// Forgets what became certain after there were this many: the commands that set it may not have run, or not in this shell.
    pub(crate) fn forget_after(&mut self, count: usize) {
        self.certain.truncate(count);
    }

    /// Merges in the variables of another text of the same line.
    pub(crate) fn add(&mut self, other: &Self) {
        self.early |= other.early;
        self.printed |= other.printed;
        for (names, more) in [
            (&mut self.numbers, &other.numbers),
            (&mut self.others, &other.others),
            (&mut self.computed, &other.computed),
            (&mut self.counted, &other.counted),
        ] {
            for name in more {
                note(names, name);
            }
        }
    }

    /// Returns true if the line computes with variables.
    pub(crate) fn are_computed(&self) -> bool {
        !self.computed.is_empty()
    }

    fn is_number(&self, name: &String) -> bool {
        self.numbers.contains(name) && !self.others.contains(name)
    }

    /// Fails if arithmetic uses a variable that may hold more than a whole number: bash would evaluate that text.
    pub(crate) fn check(&self) -> Result<(), ParseError> {
        if !self.early && self.computed.iter().all(|name| self.is_number(name)) {
            return Ok(());
        }
        Err(ParseError::Syntax(
            "arithmetic uses a variable that may hold more than a number",
        ))
    }
}

/// Capital names of numbers that scripts use, and neither a shell nor a program.
const COUNTERS: &[&str] = &["COUNT", "END", "NOW", "START", "TOTAL"];

/// Returns true if arithmetic may use the variable once the line has set it: no shell gives it another value by itself.
pub(crate) fn may_count(name: &str) -> bool {
    let mut letters = name.chars();
    let is_letter = letters.next().is_some_and(|c| c.is_ascii_uppercase())
        && letters.all(|c| c.is_ascii_digit());
    is_private(name) || is_letter || COUNTERS.contains(&name)
}

fn note(names: &mut Vec<String>, name: &str) {
    if !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}

/// Lower-case parameters to which zsh gives a meaning of its own; it ties `path` to `PATH`, for one. The other shells have none that a
/// line in the syntax of sh can set.
const SPECIAL: &[&str] = &[
    "aliases",
    "argv",
    "builtins",
    "cdpath",
    "commands",
    "dirstack",
    "errnos",
    "fignore",
    "fpath",
    "funcfiletrace",
    "funcsourcetrace",
    "funcstack",
    "functions",
    "functrace",
    "galiases",
    "histchars",
    "jobdirs",
    "jobstates",
    "jobtexts",
    "keymaps",
    "langinfo",
    "mailpath",
    "manpath",
    "mapfile",
    "modules",
    "nameddirs",
    "options",
    "parameters",
    "patchars",
    "path",
    "prompt",
    "psvar",
    "reswords",
    "saliases",
    "signals",
    "sysparams",
    "termcap",
    "terminfo",
    "userdirs",
    "usergroups",
    "widgets",
];

/// Beginnings and ends of names that shells and programs read.
const OF_OTHERS: (&[&str], &[&str]) = (
    &[
        "bash", "dis_", "epoch", "fish", "git", "ld_", "npm", "prompt", "zle", "zsh",
    ],
    &["_functions", "_handler", "_proxy", "path"],
);

/// Returns true if only the line itself reads the variable, whatever the shell: its name is of lower-case letters, and neither a shell
/// nor a program gives it a meaning. Shells and programs read variables with capitals in their names; `_` changes with each command.
pub(crate) fn is_private(name: &str) -> bool {
    let fine = |b: u8| b == b'_' || b.is_ascii_lowercase() || b.is_ascii_digit();
    let (starts, ends) = OF_OTHERS;
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(fine)
        && !SPECIAL.contains(&name)
        && !starts.iter().any(|start| name.starts_with(start))
        && !ends.iter().any(|end| name.ends_with(end))
}

/// Returns true for `5` or `-5`, which no shell evaluates to anything else.
pub fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::is_private;

    #[test]
    fn only_names_that_no_shell_reads_are_private() {
        for name in ["f", "file", "i1", "test_name", "version"] {
            assert!(is_private(name), "{name}");
        }
        for name in [
            "",
            "_",
            "_x",
            "1a",
            "A",
            "aB",
            "PATH",
            "path",
            "fpath",
            "module_path",
            "psvar",
            "options",
            "precmd_functions",
            "http_proxy",
            "fish_user_paths",
            "zsh_eval_context",
            "dis_aliases",
            "ä",
        ] {
            assert!(!is_private(name), "{name}");
        }
    }
}
