//! The words of a command as far as they are known before it runs, with the values that loops of the line give them.

use haft_shell::{AsWord, AssignedValue, Expansions, Line, SimpleCommand, Word};

/// Maximum number of values inspected for a loop's variable.
const MAX_VALUES: usize = 64;

/// How much of a word is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordForm {
    /// All of it.
    Known,
    /// A pattern of files; the rest is known.
    Pattern,
    /// A path in the user's home folder: its text begins with `~`, and the rest is known.
    Home,
    /// Output of commands in the same line.
    Printed {
        /// Whether it may split into several words and glob patterns.
        splits: bool,
    },
    /// The output or input of a command in the same line, under a name that the shell makes: `<(…)`.
    Pipe,
    /// A text with numbers and names that every shell keeps and that are no secrets: `$?`, `exit $?`, `"$USER"`. Their values are not known.
    Fact,
    /// A path in the folder that the command runs in, `$PWD/a`: its text begins with `.` instead, and the rest is known.
    Here {
        /// Whether the folder's own name may become several words, and patterns.
        splits: bool,
    },
    /// Nothing of it: only the shell knows the value.
    Unknown,
}

impl WordForm {
    /// Returns the form of a word, without the values that loops give it.
    fn of<W: AsWord>(word: &W) -> Self {
        match word.expansions() {
            Expansions::NONE => Self::Known,
            open if open == Expansions::GLOB | Expansions::SPLIT => Self::Pattern,
            Expansions::TILDE if is_home(word.text()) => Self::Home,
            // No quoted text looks like this and has an expansion.
            Expansions::OUTPUT if matches!(word.text(), "<()" | ">()") => Self::Pipe,
            Expansions::OUTPUT => Self::Printed { splits: false },
            open if open == Expansions::OUTPUT | Expansions::SPLIT => {
                Self::Printed { splits: true }
            }
            open if is_here(word.text(), open) => Self::Here {
                splits: open.intersects(Expansions::SPLIT),
            },
            open if is_fact(word.text(), open) => Self::Fact,
            _ => Self::Unknown,
        }
    }

    fn expansions(self) -> Expansions {
        match self {
            Self::Known => Expansions::NONE,
            Self::Pattern => Expansions::GLOB | Expansions::SPLIT,
            Self::Home => Expansions::TILDE,
            Self::Printed { splits: false } | Self::Pipe => Expansions::OUTPUT,
            Self::Printed { splits: true } => Expansions::OUTPUT | Expansions::SPLIT,
            Self::Here { splits: false } => Expansions::VALUE,
            // Split or not: a fact is one because its text says so.
            Self::Here { splits: true } | Self::Fact | Self::Unknown => {
                Expansions::VALUE | Expansions::SPLIT
            }
        }
    }
}

/// A word of a command that a program's file reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandWord<'a> {
    /// The text without its quotes.
    pub text: &'a str,
    /// How much of it is known.
    pub form: WordForm,
}

impl<'a> CommandWord<'a> {
    /// Creates the view of a word. One that a program may replace, such as the `{}` of `xargs`, is not known.
    pub(crate) fn of<W: AsWord>(word: &'a W, is_replaced: bool) -> Self {
        let form = if is_replaced {
            WordForm::Unknown
        } else {
            WordForm::of(word)
        };
        Self {
            text: word.text(),
            form,
        }
    }

    /// Creates a word that is known.
    pub(crate) fn known(text: &'a str) -> Self {
        Self {
            text,
            form: WordForm::Known,
        }
    }

    /// Whether it looks like an option. A lone `-` does, too.
    pub(crate) fn is_option(self) -> bool {
        self.text.starts_with('-')
    }
}

impl AsWord for CommandWord<'_> {
    fn text(&self) -> &str {
        self.text
    }

    fn expansions(&self) -> Expansions {
        self.form.expansions()
    }
}

/// What the variables of a command can hold.
#[derive(Debug, Clone, Copy)]
pub struct Bindings<'a> {
    /// The line, and the command of it that uses them; `None` if nothing is known of them.
    within: Option<(&'a Line, &'a SimpleCommand)>,
    home: Option<&'a str>,
    /// Whether variables that the line does not set are not set: no program hands them on.
    is_fresh: bool,
}

impl<'a> Bindings<'a> {
    /// Nothing is known of any variable.
    pub const NONE: Self = Self {
        within: None,
        home: None,
        is_fresh: false,
    };

    /// Creates the bindings of a command of a line.
    pub fn of(line: &'a Line, command: &'a SimpleCommand) -> Self {
        Self {
            within: Some((line, command)),
            home: None,
            is_fresh: false,
        }
    }

    /// States that the line runs in a shell of its own, in which only the usual variables are set.
    pub fn in_fresh_shell(self) -> Self {
        Self {
            is_fresh: true,
            ..self
        }
    }

    /// States the user's home folder.
    pub fn with_home(self, home: Option<&'a str>) -> Self {
        Self { home, ..self }
    }

    /// Returns the words that a variable can hold, if loops of the line are all that sets it.
    pub(crate) fn values(&self, name: &str) -> Option<Vec<&'a Word>> {
        let (line, command) = self.within?;
        line.values(name, command)
    }

    /// Returns the words that assignments of the line give a variable; it may also be empty.
    pub(crate) fn assigned(&self, name: &str) -> Option<Vec<Word>> {
        let (line, _) = self.within.filter(|_| self.is_fresh)?;
        let values = line.assigned(name)?.into_iter();
        let words = values.filter_map(|value| match value {
            AssignedValue::Word(word) => Some(word.clone()),
            AssignedValue::Fresh => Some(Word {
                text: "/tmp/tmp.*".to_owned(),
                expansions: Expansions::GLOB | Expansions::SPLIT,
            }),
            AssignedValue::Unknown => None,
        });
        let unset = Word {
            text: String::new(),
            expansions: Expansions::NONE,
        };
        Some(words.chain([unset]).collect())
    }

    /// Returns the path in a variable that shells set, unless the line sets it.
    pub(crate) fn fixed(&self, name: &str) -> Option<&'a str> {
        let (line, _) = self.within?;
        let path = match name {
            "HOME" => self.home?,
            // That of the command, wherever it runs.
            "PWD" => ".",
            _ => return None,
        };
        (!line.may_set(name)).then_some(path)
    }
}

/// A word, or one of its possible values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellWord {
    /// The text without its quotes.
    pub text: String,
    /// How much of it is known.
    pub form: WordForm,
}

impl AsWord for ShellWord {
    fn text(&self) -> &str {
        &self.text
    }

    fn expansions(&self) -> Expansions {
        self.form.expansions()
    }
}

impl ShellWord {
    fn new(text: impl Into<String>, form: WordForm) -> Self {
        let text = text.into();
        Self { text, form }
    }

    /// Creates a word that is known.
    pub fn known(text: &str) -> Self {
        Self::new(text, WordForm::Known)
    }

    /// Returns the word as a program's file reads it.
    pub fn as_word(&self) -> CommandWord<'_> {
        CommandWord {
            text: &self.text,
            form: self.form,
        }
    }

    /// Returns the possible values of a word of a command. A variable that only loops around the command set takes each of its values.
    pub fn of(word: &Word, bindings: &Bindings<'_>) -> Vec<Self> {
        let of_variable = Expansions::VALUE;
        let open = word.expansions;
        if (open == of_variable || open == of_variable | Expansions::SPLIT)
            && let Some(values) = variable_values(word, bindings)
        {
            return values;
        }
        vec![Self::new(&word.text, WordForm::of(word))]
    }
}

/// Variables that every shell sets itself, or that name the user, the terminal or the search path.
const FACTS: &[&str] = &[
    "?", "#", "$", "!", "EUID", "HOSTNAME", "HOSTTYPE", "LANG", "LINENO", "LOGNAME", "MACHTYPE",
    "OSTYPE", "PATH", "PPID", "SECONDS", "SHELL", "SHLVL", "TERM", "UID", "USER",
];

/// Whether the word is one that `variable_values` made of `$PWD`: no word of a line has a variable and no `$`.
fn is_here(text: &str, open: Expansions) -> bool {
    let of_variable = Expansions::VALUE;
    let open = open == of_variable || open == of_variable | Expansions::SPLIT;
    open && (text == "." || text.starts_with("./")) && !text.contains('$')
}

/// Whether all that the shell puts into a word are facts. A word whose text holds any other `$`, quoted or not, is none.
fn is_fact(text: &str, open: Expansions) -> bool {
    if open != Expansions::VALUE && open != Expansions::VALUE | Expansions::SPLIT {
        return false;
    }
    let mut rest = text;
    let mut found = false;
    while let Some((_, behind)) = rest.split_once('$') {
        let (name, after) = match behind.strip_prefix('{') {
            Some(braced) => match braced.split_once('}') {
                Some(parts) => parts,
                None => return false,
            },
            None => behind.split_at(name_length(behind)),
        };
        if !FACTS.contains(&name) {
            return false;
        }
        (rest, found) = (after, true);
    }
    found && !rest.contains('`')
}

/// Returns how much of the text after a `$` names the variable.
fn name_length(behind: &str) -> usize {
    let is_part = |c: char| c == '_' || c.is_ascii_alphanumeric();
    match behind.chars().next() {
        Some(sign @ ('?' | '#' | '$' | '!')) => sign.len_utf8(),
        _ => behind.find(|c| !is_part(c)).unwrap_or(behind.len()),
    }
}

/// Whether the text is `~` or `~/…`, and not another user's home.
fn is_home(text: &str) -> bool {
    text == "~" || text.starts_with("~/")
}

/// Returns the values of a word with one variable, if they are known.
fn variable_values(word: &Word, bindings: &Bindings<'_>) -> Option<Vec<ShellWord>> {
    let (before, rest) = word.text.split_once('$')?;
    if rest.contains(['$', '`']) {
        return None;
    }
    let is_part = |c: char| c == '_' || c.is_ascii_alphanumeric();
    let (name, after) = match rest.strip_prefix('{') {
        Some(braced) => braced.split_once('}')?,
        None => rest.split_at(rest.find(|c| !is_part(c)).unwrap_or(rest.len())),
    };
    if name.is_empty() || !name.chars().all(is_part) {
        return None;
    }
    if name == "HOME" {
        let home = before.is_empty() && (after.is_empty() || after.starts_with('/'));
        return home.then(|| vec![ShellWord::new(format!("~{after}"), WordForm::Home)]);
    }
    let splits = word.expansions.intersects(Expansions::SPLIT);
    if name == "PWD" && bindings.fixed(name).is_some() {
        let folder = before.is_empty() && (after.is_empty() || after.starts_with('/'));
        return folder.then(|| {
            vec![ShellWord::new(
                format!(".{after}"),
                WordForm::Here { splits },
            )]
        });
    }
    let values = bindings.values(name)?;
    let pattern = Expansions::GLOB | Expansions::SPLIT;
    // Without quotes the shell drops an empty value and splits others: neither they nor the names that a pattern matches are one word.
    let splitting = |c: char| c.is_whitespace() || matches!(c, '*' | '?' | '[' | '\\');
    let is_one_word = |text: &str| !splits || !(text.is_empty() || text.contains(splitting));
    let can = |value: &&Word| {
        let plain = value.is_known() && is_one_word(&value.text);
        plain || (!splits && value.expansions == pattern && before.is_empty() && after.is_empty())
    };
    let fine = !values.is_empty() && values.len() <= MAX_VALUES && values.iter().all(can);
    fine.then(|| {
        let of = |value: &Word| {
            let form = if value.is_known() {
                WordForm::Known
            } else {
                WordForm::Pattern
            };
            ShellWord::new(format!("{before}{}{after}", value.text), form)
        };
        values.into_iter().map(of).collect()
    })
}
