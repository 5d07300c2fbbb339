//! `git`: the commands that only inspect a repository, with their options that neither write nor run anything.
//!
//! The repository's own settings can make git run programs; this file does not see that. The code that starts git disables it.

use haft_shell::{AsWord, base_name};

use crate::forms::{MAX_LETTERS, is_short, option_values};
use crate::meaning::CommandMeaning;
use crate::path_use::{PathAccess, PathUse};
use crate::program::{OptionHarm, Program, ProgramCall};
use crate::word::{ShellWord, WordForm};

use tables::{
    BRANCH_OPTIONS, GLOBAL_OPTIONS, LEADING_OPTIONS, LEADING_OPTIONS_WITH_VALUE, LEADING_PREFIXES,
    LOG_OPTIONS, MODIFIER_OPTIONS, NAME_COMMANDS, PATH_DIFF_OPTIONS, QUIET_COMMANDS,
    REFLOG_OPTIONS, SILENT_COMMANDS, SUMMARY_OPTIONS, TAG_OPTIONS, is_number, lists, tables_of,
};

mod tables;

pub(super) const PROGRAM: Program = Program::new(&["git"], meaning)
    .with_options(OptionHarm::Acts)
    .versioned()
    .reading(only_reads);

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    let words: Vec<&str> = call.words.iter().map(|word| word.text).collect();
    let Some(form) = GitForm::behind_any_options(&words) else {
        return CommandMeaning::unknown();
    };
    let only_reads = call.is_known() && form.only_reads();
    let contents = form.may_show();
    let hidden = !contents && !only_reads && form.may_show_unseen();
    let mut uses = if only_reads || contents || hidden {
        form.uses(contents || hidden)
    } else {
        Vec::new()
    };
    let put = form.files_that_it_stores();
    let stores = !put.is_empty();
    uses.extend(
        put.into_iter()
            .map(|text| PathUse::known(text, PathAccess::Reads)),
    );
    CommandMeaning {
        uses,
        unknown: !only_reads,
        shows: contents || hidden || stores,
        // Options before the command may lead it elsewhere; of other commands it is not known what they show.
        shows_more: hidden || (contents && form.is_led_elsewhere),
        git: true,
        ..CommandMeaning::default()
    }
}

fn only_reads(call: &ProgramCall<'_>) -> bool {
    if !call.is_known() {
        return false;
    }
    let words: Vec<&str> = call.words.iter().map(|word| word.text).collect();
    GitForm::of(&words).is_some_and(|form| form.only_reads())
}

/// A command of git, taken apart.
struct GitForm<'a> {
    command: &'a str,
    /// All words after the command.
    words: &'a [&'a str],
    /// Its words before `--`. If `--` may be a value, all of them: everything after it may be an option.
    before: &'a [&'a str],
    /// Its words after `--`, which are paths.
    paths: &'a [&'a str],
    /// Whether options before it may change what it works on: `-C`, `--git-dir`, `-c`.
    is_led_elsewhere: bool,
}

impl<'a> GitForm<'a> {
    /// Takes a command apart that only harmless options precede; with others, an option stands for the command.
    fn of(words: &'a [&'a str]) -> Option<Self> {
        let at = words.iter().position(|word| !lists(GLOBAL_OPTIONS, word))?;
        Some(Self::at(words, at))
    }

    /// Takes a command apart whatever options precede it. After one that is not listed, nobody knows which word is the command.
    fn behind_any_options(words: &'a [&'a str]) -> Option<Self> {
        let mut at = 0;
        let mut is_led_elsewhere = false;
        while let Some(word) = words.get(at) {
            if lists(LEADING_OPTIONS_WITH_VALUE, word) {
                at += 2;
            } else if lists(LEADING_OPTIONS, word)
                || LEADING_PREFIXES.iter().any(|p| word.starts_with(p))
            {
                at += 1;
            } else if lists(GLOBAL_OPTIONS, word) {
                at += 1;
                continue;
            } else {
                break;
            }
            is_led_elsewhere = true;
        }
        (at < words.len()).then(|| Self {
            is_led_elsewhere,
            ..Self::at(words, at)
        })
    }

    fn at(words: &'a [&'a str], at: usize) -> Self {
        let (command, words) = (words[at], &words[at + 1..]);
        let end = words.iter().position(|word| *word == "--");
        let end = end.filter(|at| !may_be_value(words, *at, tables_of(command)));
        let (before, paths) = words.split_at(end.unwrap_or(words.len()));
        Self {
            command,
            words,
            before,
            paths: paths.get(1..).unwrap_or_default(),
            is_led_elsewhere: false,
        }
    }

    /// Whether it is a read-only form with known options.
    fn only_reads(&self) -> bool {
        let words = self.words;
        if self.is_led_elsewhere {
            return false;
        }
        match self.command {
            "status" | "diff" | "log" | "show" | "blame" => {
                has_only(words, tables_of(self.command))
            }
            "reflog" => match words.split_first() {
                None => true,
                Some((&"show", rest)) => has_only(rest, &[REFLOG_OPTIONS, ""]),
                Some((first, _)) => {
                    first.starts_with('-') && has_only(words, &[REFLOG_OPTIONS, ""])
                }
            },
            "stash" => words == ["list"],
            "remote" => matches!(words, [] | ["-v" | "--verbose"]),
            "branch" => lists_names(words, &["--list"], BRANCH_OPTIONS),
            "tag" => lists_names(words, &["-l", "--list"], TAG_OPTIONS),
            command => NAME_COMMANDS
                .iter()
                .any(|(name, options)| *name == command && has_only(words, &[options])),
        }
    }

    /// Whether this command, with its options, may show file content.
    fn may_show(&self) -> bool {
        may_show(self.command, self.before)
    }

    /// Whether it may show file content in a way that is not known here: an alias, `cat-file`, `reflog -p`, `grep`.
    fn may_show_unseen(&self) -> bool {
        if matches!(self.command, "status" | "diff" | "log" | "show" | "blame") {
            return false;
        }
        // Patches, verbose commits, commands that are run, another settings file.
        let shows = |word: &&str| {
            let letters = word.strip_prefix('-').unwrap_or_default();
            match letters.strip_prefix('-') {
                Some(long) => long.starts_with(['p', 'v', 'e', 'f', 'b']),
                None => *word == "foreach" || letters.contains(['p', 'v', 'x', 'f']),
            }
        };
        if lists(SILENT_COMMANDS, self.command) {
            return false;
        }
        let is_quiet = lists(QUIET_COMMANDS, self.command)
            || (self.command == "stash" && self.words.first() != Some(&"show"));
        !is_quiet || self.before.iter().any(shows)
    }

    /// Returns the files whose content it puts where other commands show it: messages, objects, patches.
    fn files_that_it_stores(&self) -> Vec<&'a str> {
        let is_value = |option: &str| {
            let long = option.starts_with("--f") || option.starts_with("--t");
            long || (is_short(option) && option.contains(['F', 't']))
        };
        match self.command {
            "hash-object" | "apply" | "am" => {
                let paths = self.paths.iter().copied();
                self.operands().chain(paths).collect()
            }
            "commit" | "commit-tree" | "tag" | "notes" | "merge" => {
                let each = self.words.iter().enumerate();
                let named = each.filter(|(_, word)| is_value(word));
                let found = named.flat_map(|(at, word)| {
                    let next = self.words.get(at + 1).copied();
                    let next = next.filter(|next| !is_option(next));
                    let ends = option_values(word).take(MAX_LETTERS);
                    ends.chain(next)
                });
                found.collect()
            }
            _ => Vec::new(),
        }
    }

    fn operands(&self) -> impl Iterator<Item = &'a str> {
        let before = self.before.iter().copied();
        before.filter(|word| !word.starts_with('-'))
    }

    /// Returns what it uses: paths, and file content if it shows any.
    fn uses(&self, contents: bool) -> Vec<PathUse> {
        let how = if contents {
            PathAccess::ReadsHistory
        } else {
            PathAccess::Names
        };
        // `COMMIT:PATH` names a path from the repository's root; a commit may also have the name of a file, and a path a colon.
        let named = self.operands().chain(self.paths.iter().copied());
        let named = named
            .flat_map(|text| std::iter::once(text).chain(behind_colons(text)))
            .filter(|text| !text.is_empty());
        let mut uses: Vec<PathUse> = named.map(|text| PathUse::known(text, how)).collect();
        let options = self.words.iter().filter(|text| text.starts_with('-'));
        let values = options.clone().filter_map(|text| option_value(text));
        uses.extend(values.map(|text| PathUse::known(text, PathAccess::Names)));
        // `-L1,5:PATH` shows lines of a file.
        let lines = options.filter(|text| text.starts_with("-L"));
        let files = lines.flat_map(|text| behind_colons(text));
        uses.extend(files.map(|text| PathUse::known(text, how)));
        if contents && self.command != "blame" {
            let below = self.below().into_iter();
            uses.extend(below.map(|text| PathUse::known(text, PathAccess::ReadsTracked)));
        }
        uses
    }

    /// Returns the folders or files whose content it may show.
    fn below(&self) -> Vec<&'a str> {
        // A revision may name a file (`HEAD:path`).
        let limited =
            self.command == "log" || (self.command == "diff" && self.operands().next().is_none());
        let plain = |path: &&str| !path.starts_with(':') && !path.contains(['*', '?', '[', '\\']);
        let of_paths = |option: &&str| {
            let tables = [SUMMARY_OPTIONS, MODIFIER_OPTIONS, PATH_DIFF_OPTIONS];
            is_number(option) || tables.iter().any(|table| lists(table, option))
        };
        let mut options = self.before.iter().filter(|word| is_option(word));
        if limited
            && options.all(of_paths)
            && !self.paths.is_empty()
            && self.paths.iter().all(plain)
        {
            self.paths.to_vec()
        } else {
            vec!["."]
        }
    }
}

/// Returns what follows each of the first colons of a text.
fn behind_colons(text: &str) -> impl Iterator<Item = &str> {
    let colons = text.match_indices(':').take(MAX_LETTERS);
    colons.map(|(at, _)| &text[at + 1..])
}

/// Returns the value of an option within the same word.
fn option_value(text: &str) -> Option<&str> {
    match text.strip_prefix("--") {
        Some(long) => Some(long.split_once('=')?.1),
        None => text.get(2..).filter(|value| !value.is_empty()),
    }
}

/// Whether the word is a commit message, which is never a place: `git commit -m TEXT`.
pub(crate) fn is_message(words: &[ShellWord], at: usize) -> bool {
    let is_git = words
        .first()
        .is_some_and(|name| base_name(name.text()) == "git");
    let command = words.get(1).map(AsWord::text);
    let before = at.checked_sub(1).and_then(|at| words.get(at));
    is_git
        && matches!(command, Some("commit" | "tag"))
        && before.is_some_and(|option| matches!(option.text(), "--message" | "-m" | "-am"))
        && !words[at].text.starts_with('-')
        && !matches!(
            words[at].form,
            WordForm::Unknown | WordForm::Fact | WordForm::Pattern
        )
}

/// Whether these tables list every option. With two tables, a number counts commits.
///
/// This includes words behind `--`, because git takes `--` as the value of an option that needs one: in
/// `git log --decorate-refs -- --output=x`, the last word is an option.
fn has_only(words: &[&str], tables: &[&str]) -> bool {
    let mut options = words.iter().filter(|word| is_option(word));
    options.all(|option| {
        let counts = tables.len() > 1 && is_number(option);
        let listed = tables.iter().any(|table| lists(table, option));
        (counts || listed) && !verifies_signatures(option)
    })
}

fn is_option(word: &str) -> bool {
    word.starts_with('-') && word != "--"
}

/// Whether all options only list, and other words occur only together with one of `listing`.
fn lists_names(words: &[&str], listing: &[&str], options: &str) -> bool {
    let plain = words.iter().all(|word| is_option(word));
    (plain || has_for_certain(words, listing, &[options])) && has_only(words, &[options])
}

/// Whether one of these options is there however git reads the words: not behind `--`, and not as the value of another option.
fn has_for_certain(words: &[&str], options: &[&str], tables: &[&str]) -> bool {
    let before = words.iter().take_while(|word| **word != "--").enumerate();
    let mut listed = before.filter(|(_, word)| options.iter().any(|table| lists(table, word)));
    listed.any(|(at, _)| !may_be_value(words, at, tables))
}

/// Whether the word at this position may be the value of the option before it.
fn may_be_value(words: &[&str], at: usize, tables: &[&str]) -> bool {
    let before = at.checked_sub(1).and_then(|at| words.get(at));
    before.is_some_and(|option| is_option(option) && takes_next(option, tables))
}

/// Whether git may take the next word as this option's value: it has none, and is not listed without one.
fn takes_next(option: &str, tables: &[&str]) -> bool {
    let has_value = |known: &str| match known.strip_suffix('…') {
        Some(letter) => option != letter && option.starts_with(letter),
        None => known.ends_with('=') && option.starts_with(known),
    };
    let mut known = tables.iter().flat_map(|table| table.split(' '));
    !is_number(option) && !known.any(|known| known == option || has_value(known))
}

/// Whether this command with these words, among them its options, may show file content.
fn may_show(command: &str, words: &[&str]) -> bool {
    let mut options = words.iter().copied().filter(|word| is_option(word));
    let quiet = |option: &str| lists(SUMMARY_OPTIONS, option) || lists(MODIFIER_OPTIONS, option);
    let of_commits = |option: &str| {
        (lists(LOG_OPTIONS, option) || is_number(option))
            && !option.starts_with("-L")
            && option != "-m"
    };
    match command {
        "status" => options.any(|option| option == "--verbose" || option.starts_with("-v")),
        "log" => !options.all(|option| quiet(option) || of_commits(option)),
        "diff" => {
            let only_names = has_for_certain(words, &[SUMMARY_OPTIONS], tables_of(command));
            !options.all(quiet) || !only_names
        }
        "show" | "blame" => true,
        _ => false,
    }
}

/// Whether a format verifies signatures (`%G?`), which runs the program that git's settings name.
fn verifies_signatures(option: &str) -> bool {
    let mut formats = option.split('%').skip(1);
    formats.any(|format| format.trim_start_matches(['+', '-', ' ']).starts_with('G'))
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn git_reads_if_each_option_is_known() {
        check(&[
            ("git status -sb", "only reads, Names b"),
            ("git log --oneline -5", "only reads"),
            ("git --no-pager log -p", "only reads, ReadsTracked ."),
            (
                "git log -p -- a",
                "only reads, ReadsHistory a, ReadsTracked a",
            ),
            (
                "git log --decorate-refs -- -p",
                "only reads, ReadsTracked .",
            ),
            ("git log -- --output=x", "unknown"),
            ("git log --outp=x", "Names x, ReadsTracked ., unknown"),
            (
                "git log -L1,5:a",
                "only reads, Names 1,5:a, ReadsHistory a, ReadsTracked .",
            ),
            ("git diff", "only reads, ReadsTracked ."),
            ("git diff --name-only -- a", "only reads, Names a"),
            (
                "git diff -l --name-only a",
                "only reads, ReadsHistory a, ReadsTracked .",
            ),
            (
                "git show HEAD:a",
                "only reads, ReadsHistory HEAD:a, ReadsHistory a, ReadsTracked .",
            ),
            (
                "git show HEAD:a:b",
                "only reads, ReadsHistory HEAD:a:b, ReadsHistory a:b, ReadsHistory b, ReadsTracked .",
            ),
            ("git blame a", "only reads, ReadsHistory a"),
            ("git show $x", "ReadsHistory $x, ReadsTracked ., unknown"),
            ("git branch topic", "unknown"),
            ("git branch -avv", "only reads, Names vv"),
            ("git stash list", "only reads, Names list"),
            ("git -C a status", "unknown"),
            ("git commit -m a", "unknown"),
            ("git", "unknown"),
            ("git --version", "prints words"),
            ("/usr/bin/git diff", "ReadsTracked ., unknown"),
        ]);
    }

    #[test]
    fn git_behind_other_options_and_unlisted_commands_may_show_more() {
        check(&[
            (
                "git -C . show HEAD:a",
                "ReadsHistory HEAD:a, ReadsHistory a, ReadsTracked ., shows more, unknown",
            ),
            (
                "git -c a.b=c --git-dir=.git log -p -- a",
                "ReadsHistory a, ReadsTracked a, shows more, unknown",
            ),
            ("git --literal-pathspecs commit -m a", "unknown"),
            (
                "git --new-option show HEAD:a",
                "ReadsHistory show, ReadsHistory HEAD:a, ReadsHistory a, ReadsTracked ., shows more, unknown",
            ),
            (
                "git cat-file blob :a",
                "ReadsHistory blob, ReadsHistory :a, ReadsHistory a, ReadsTracked ., shows more, unknown",
            ),
            (
                "git stash show -p",
                "ReadsHistory show, ReadsTracked ., shows more, unknown",
            ),
            ("git reflog -p", "ReadsTracked ., shows more, unknown"),
            (
                "git commit --dry-run -v",
                "ReadsTracked ., shows more, unknown",
            ),
            ("git commit -F a", "Reads a, unknown"),
            ("git commit -aFa -m b", "Reads Fa, Reads a, unknown"),
            (
                "git commit --file=a",
                "Names a, ReadsTracked ., Reads a, shows more, unknown",
            ),
            ("git tag -F a b", "Reads a, unknown"),
            ("git hash-object -w a", "Reads a, unknown"),
            ("git push origin main", "unknown"),
            ("git stash", "unknown"),
        ]);
    }
}
