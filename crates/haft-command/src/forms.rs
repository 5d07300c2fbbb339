//! Forms that programs have in common: which of their words are files.

use haft_shell::{AsWord, Operands, Options};

use crate::meaning::CommandMeaning;
use crate::path_use::{PathAccess, PathUse};
use crate::program::ProgramCall;
use crate::script_files::ScriptFiles;
use crate::word::{CommandWord, WordForm};

/// Maximum number of letters in one word inspected as options; a file's name may follow any of them.
pub(crate) const MAX_LETTERS: usize = 64;

/// Returns the meaning of a command that shows files: every word may be one, on its own or after an option.
pub(crate) fn show_any_file(call: &ProgramCall<'_>) -> CommandMeaning {
    let more = may_name_more(call.words);
    CommandMeaning {
        unknown: more,
        shows_more: more,
        ..CommandMeaning::showing(any_file(call.words, PathAccess::Reads))
    }
}

/// Returns the meaning of a command with an option that is not known: it may show any of its words and, since the value of the option
/// may be a list of files, files that no word names. A file called `-` is shown, too.
pub(crate) fn suspect(call: &ProgramCall<'_>) -> CommandMeaning {
    CommandMeaning {
        shows_more: true,
        ..show_any_word(call)
    }
}

/// Returns the meaning of a command that may show any of its words, and do more.
pub(crate) fn show_any_word(call: &ProgramCall<'_>) -> CommandMeaning {
    let mut found = show_any_file(call).or_more();
    if call.words.iter().any(|word| word.text == "-") {
        found.uses.push(PathUse::known("-", PathAccess::Reads));
    }
    found
}

/// Returns the meaning of a command that shows its operands, if all of its options are these; otherwise it may do more.
pub(crate) fn show_operands(options: &Options, call: &ProgramCall<'_>) -> CommandMeaning {
    match plain(options, call.words) {
        Some(given) => CommandMeaning::showing(each_file(given.words, PathAccess::Reads)),
        None => suspect(call),
    }
}

/// What the value of an option is, by the names of the options.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ValueRoles {
    /// A file that the command reads.
    pub(crate) reads: &'static [&'static str],
    /// A file or a folder that it writes.
    pub(crate) writes: &'static [&'static str],
    /// A list of files, or something else that names files.
    pub(crate) lists: &'static [&'static str],
}

/// Returns the meaning of a command that shows its operands, and may do more by an option of the second table.
pub(crate) fn show_by_roles(
    options: &Options,
    all: &Options,
    roles: &ValueRoles,
    call: &ProgramCall<'_>,
) -> CommandMeaning {
    if plain(options, call.words).is_some() {
        return show_operands(options, call);
    }
    let Some(given) = plain(all, call.words) else {
        return suspect(call);
    };
    let mut uses = each_file(given.words, PathAccess::Reads);
    let mut lists = false;
    for one in &given.values {
        lists |= roles.lists.contains(&one.name);
        if roles.reads.contains(&one.name) || roles.lists.contains(&one.name) {
            uses.push(PathUse::known(one.value, PathAccess::Reads));
        } else if roles.writes.contains(&one.name) {
            uses.push(PathUse::known(one.value, PathAccess::Edits));
        }
    }
    CommandMeaning {
        shows_more: lists,
        ..CommandMeaning::showing(uses).or_more()
    }
}

/// How a program reads its scripts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScriptRules {
    /// Whether a script does nothing but print.
    pub(crate) is_fine: fn(&str) -> bool,
    /// Returns the files that a script names.
    pub(crate) files: fn(&str) -> ScriptFiles,
}

/// Returns the meaning of a command that shows what a script makes of files. It does nothing else if all of its options are these and
/// each script is fine. The script comes first, unless an option gives it.
pub(crate) fn script_reader(
    options: &Options,
    call: &ProgramCall<'_>,
    rules: ScriptRules,
) -> CommandMeaning {
    let Some(given) = plain(options, call.words) else {
        return suspect(call);
    };
    let mut files = given.words;
    let named = given.values.iter();
    let named = named.filter(|one| matches!(one.name, "e" | "expression"));
    let mut scripts: Vec<&str> = named.map(|one| one.value).collect();
    if scripts.is_empty() {
        if files.first().is_none_or(|script| !script.is_known()) {
            return suspect(call);
        }
        scripts.push(files.remove(0).text);
    }
    let unknown = !scripts.iter().all(|script| (rules.is_fine)(script));
    let named = if unknown {
        (rules.files)(&scripts.join("\n"))
    } else {
        ScriptFiles::default()
    };
    // Words such as `x=/etc` are variables to awk and files to the others; they are judged as files.
    let mut uses = each_file(files, PathAccess::Reads);
    uses.extend(named.uses());
    CommandMeaning {
        unknown,
        shows_more: named.more,
        ..CommandMeaning::showing(uses)
    }
}

/// Returns the meaning of a command whose last operand is a file, or a folder that the others go into; `None` if that is not certain.
pub(crate) fn put(
    options: &Options,
    call: &ProgramCall<'_>,
    how: PathAccess,
) -> Option<CommandMeaning> {
    let operands = options.split(call.words)?.words;
    let (to, from) = operands.split_last()?;
    if !call.is_certain || from.is_empty() || !operands.iter().all(|word| word.is_known()) {
        return None;
    }
    let mut uses = Vec::new();
    for file in from {
        let name = file.text.trim_end_matches('/').rsplit('/').next();
        let name = name.filter(|name| !matches!(*name, "" | "." | ".."))?;
        uses.push(PathUse::of(**file, how));
        if how == PathAccess::Moves {
            uses.push(PathUse::of(**file, PathAccess::Carries));
        }
        uses.push(PathUse {
            puts: Some(name.to_owned()),
            ..PathUse::of(**to, PathAccess::Writes)
        });
    }
    Some(CommandMeaning::showing(uses))
}

/// Returns the meaning of a command that may put its words elsewhere as they are, links included, and may do more. An option that is
/// none of these may name a list of files.
pub(crate) fn carry(known: &Options, call: &ProgramCall<'_>, how: PathAccess) -> CommandMeaning {
    let named = call.words.iter().filter(|word| !word.is_option());
    let uses = named.flat_map(|word| [how, PathAccess::Carries].map(|how| PathUse::of(*word, how)));
    let mut uses: Vec<PathUse> = uses.collect();
    // A folder that an option names, or a file behind `--`.
    let mut ended = false;
    for word in call.words.iter().filter(|word| word.is_option()) {
        if ended {
            uses.extend([how, PathAccess::Carries].map(|how| PathUse::of(*word, how)));
        }
        ended |= word.text == "--";
        let values = option_values(word.text).take(MAX_LETTERS);
        uses.extend(values.map(|text| PathUse::known(text, how)));
    }
    CommandMeaning {
        shows_more: !known.know(call.words) || may_name_more(call.words),
        ..CommandMeaning::showing(uses).or_more()
    }
}

/// Returns the meaning of a command that prints facts about files: every word may be one.
pub(crate) fn name_any_file(call: &ProgramCall<'_>) -> CommandMeaning {
    CommandMeaning {
        unknown: may_name_more(call.words),
        ..CommandMeaning::of(any_file(call.words, PathAccess::Names))
    }
}

/// Returns the meaning of a command that lists folders, and may follow the links that it meets: `-L`, `--dereference`.
pub(crate) fn list_any_file(call: &ProgramCall<'_>) -> CommandMeaning {
    let follows = |word: &CommandWord<'_>| {
        let letters = word.text.strip_prefix('-').unwrap_or_default();
        match letters.strip_prefix('-') {
            Some(long) => long.starts_with("de"),
            None => letters.contains('L'),
        }
    };
    let more = may_name_more(call.words);
    let mut found = name_any_file(call);
    found.shows_more = more;
    if call.words.iter().any(follows) {
        for one in &mut found.uses {
            one.how = PathAccess::NamesBelow;
        }
        if call.words.iter().all(|word| word.is_option()) {
            found.uses.push(PathUse::known(".", PathAccess::NamesBelow));
        }
    }
    found
}

/// Returns the meaning of a command that uses its operands in this way, if all of its options are these.
pub(crate) fn use_operands(
    options: &Options,
    call: &ProgramCall<'_>,
    how: PathAccess,
) -> CommandMeaning {
    match options.split(call.words) {
        Some(given) => CommandMeaning::of(each_file(given.words, how)),
        None => CommandMeaning::unknown(),
    }
}

/// Returns the meaning of a command that prints its own words, or facts about the system; patterns among its words become file names.
pub(crate) fn print_words(call: &ProgramCall<'_>) -> CommandMeaning {
    let open = call.words.iter();
    let is_path = |form| {
        matches!(
            form,
            WordForm::Pattern | WordForm::Home | WordForm::Here { splits: true }
        )
    };
    let open = open.filter(|word| is_path(word.form));
    CommandMeaning {
        globs_output: call
            .words
            .iter()
            .any(|word| word.form == WordForm::Printed { splits: true }),
        prints_words: call
            .words
            .iter()
            .all(|word| word.is_known() && !word.text.contains(['*', '?', '['])),
        ..CommandMeaning::of(
            open.map(|word| PathUse::of(*word, PathAccess::Names))
                .collect(),
        )
    }
}

/// Returns the uses of these words, each the name of a file.
pub(crate) fn each_file<'w>(
    words: impl IntoIterator<Item = &'w CommandWord<'w>>,
    how: PathAccess,
) -> Vec<PathUse> {
    // The command behind a process substitution is a part of its own.
    let words = words.into_iter().filter(|word| word.form != WordForm::Pipe);
    words.map(|word| PathUse::file(*word, how)).collect()
}

/// Returns the uses of a program that takes every word for a file, on its own or after an option.
pub(crate) fn any_file(words: &[CommandWord<'_>], how: PathAccess) -> Vec<PathUse> {
    let mut found = each_path(words, how);
    // A delimiter, not the root: `cut -d/`.
    if !words.iter().any(|word| word.text == "/") {
        found.retain(|place| place.path != "/");
    }
    found
}

/// Returns all that may be a path. Behind `--`, a word that looks like an option may be a file, or still an option, because `--` may be
/// the value of one; a glob pattern may match files called `--`.
pub(crate) fn each_path(words: &[CommandWord<'_>], how: PathAccess) -> Vec<PathUse> {
    let (mut found, mut ended) = (Vec::with_capacity(words.len()), false);
    for word in words {
        if word.form == WordForm::Pipe {
            continue;
        }
        // To programs that print facts about files, `-` is a file's name.
        if !word.is_option() || (word.text == "-" && how == PathAccess::Names) {
            found.push(PathUse::file(*word, how));
            continue;
        }
        found.extend(
            option_values(word.text)
                .take(MAX_LETTERS)
                .map(|text| PathUse::known(text, how)),
        );
        if ended || word.form == WordForm::Pattern {
            found.push(PathUse::of(*word, how));
        }
        ended |= word.text == "--";
    }
    found
}

/// Returns what may be an option's value within the same word: `--from-file=x`, `-nfx`. Empty for a word that is not an option.
pub(crate) fn option_values(text: &str) -> impl Iterator<Item = &str> {
    let long = text
        .strip_prefix("--")
        .and_then(|rest| rest.split_once('='));
    let short = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    let ends = short.into_iter().flat_map(|letters| {
        let ends = letters.char_indices().skip(1);
        ends.map(move |(at, _)| &letters[at..])
    });
    long.map(|(_, value)| value).into_iter().chain(ends)
}

/// Whether a word has more option letters than are inspected.
pub(crate) fn may_name_more(words: &[CommandWord<'_>]) -> bool {
    let is_long = |word: &CommandWord<'_>| word.text.len() > MAX_LETTERS && is_short(word.text);
    let mut long = words.iter().filter(|word| is_long(word));
    long.any(|word| word.text.chars().nth(2 + MAX_LETTERS).is_some())
}

/// Whether the word is letters behind one dash.
pub(crate) fn is_short(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--")
}

/// Returns the words that are not options, and all words after `--`.
pub(crate) fn operands<'w>(words: &'w [CommandWord<'w>]) -> Vec<&'w CommandWord<'w>> {
    operand_positions(words).map(|at| &words[at]).collect()
}

/// Returns the positions of the words that are not options, and of all words after `--`.
pub(crate) fn operand_positions(words: &[CommandWord<'_>]) -> impl Iterator<Item = usize> {
    let end = words.iter().position(|word| word.text == "--");
    let end = end.unwrap_or(words.len());
    (0..end)
        .filter(|at| !words[*at].is_option() || words[*at].text == "-")
        .chain(end + 1..words.len())
}

/// Returns the operands if every option is known and no value names a place.
pub(crate) fn plain<'w>(
    options: &Options,
    words: &'w [CommandWord<'w>],
) -> Option<Operands<'w, CommandWord<'w>>> {
    let operands = options.split(words)?;
    operands
        .values
        .iter()
        .all(|given| given.is_known)
        .then_some(operands)
}

/// Whether a word behind the first operand looks like an option. The programs of macOS and BSD take it, and the word after it, as files.
pub(crate) fn has_late_option(options: &Options, words: &[CommandWord<'_>]) -> Option<bool> {
    let mut behind = words[options.count(words)?..].iter();
    Some(behind.any(|word| word.is_option() && word.text != "-"))
}

/// Removes the pattern, which comes first, and returns whether it may be the only operand. A pattern that the shell expands may become
/// several words: the rest of them are files.
pub(crate) fn remove_pattern(operands: &mut Vec<&CommandWord<'_>>) -> bool {
    if operands.first().is_some_and(|first| first.is_known()) {
        operands.remove(0);
        return operands.is_empty();
    }
    operands.len() < 2
}
