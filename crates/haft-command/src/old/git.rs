//! Read-only forms of git: the commands that only inspect a repository, and their options that neither write nor run anything.
//!
//! The repository's own settings can make git run programs; this module does not see that. The code that starts git disables it.

use haft_shell::{AsWord, Layer};

/// Options before the command.
const GLOBAL_OPTIONS: &str = "--no-pager -P --no-optional-locks";

/// Options of `git status`. A trailing `=` or `…` means that a value follows, in the same word or the next; in the same word only, if
/// the option is also listed without it.
const STATUS_OPTIONS: &str = "-s --short -b --branch -sb -bs --show-stash --porcelain --porcelain= --long -v -vv --verbose \
    -u -u… --untracked-files --untracked-files= --ignored --ignored= -z --column --column= \
    --no-column --ahead-behind --no-ahead-behind --renames --no-renames --find-renames \
    --find-renames= --ignore-submodules --ignore-submodules=";

/// Options of `git log` and `git show` that select and format commits.
const LOG_OPTIONS: &str = "--oneline --pretty --pretty= --format= --abbrev-commit --no-abbrev-commit --decorate \
    --decorate= --no-decorate --decorate-refs= --decorate-refs-exclude= --clear-decorations \
    --source --graph --no-graph -n… --max-count= --skip= --since= --after= --until= --before= \
    --author= --committer= --grep= --all-match --invert-grep -i --regexp-ignore-case \
    --basic-regexp -E --extended-regexp -F --fixed-strings -P --perl-regexp --merges --no-merges \
    --min-parents= --max-parents= --no-min-parents --no-max-parents --first-parent \
    --exclude-first-parent-only --not --all --branches --branches= --tags --tags= --remotes \
    --remotes= --glob= --exclude= --reflog -g --walk-reflogs --cherry --cherry-mark --cherry-pick \
    --left-only --right-only --left-right --boundary --simplify-by-decoration --simplify-merges \
    --full-history --dense --sparse --show-pulls --ancestry-path --date-order --author-date-order \
    --topo-order --reverse --parents --children --date= --relative-date --follow -L… --full-diff \
    --log-size --no-walk --no-walk= --do-walk --encoding= --notes --notes= --no-notes \
    --use-mailmap --mailmap --no-mailmap -m";

/// Options of every command that shows diffs.
const DIFF_OPTIONS: &str = "-p -u --patch -s --no-patch -U… --unified= --raw --patch-with-raw --patch-with-stat --stat \
    --stat= --compact-summary --numstat --shortstat --dirstat --dirstat= --cumulative --summary \
    --name-only --name-status --color --color= --no-color --color-moved --color-moved= \
    --no-color-moved --color-words --color-words= --word-diff --word-diff= --word-diff-regex= \
    --minimal --patience --histogram --anchored= --diff-algorithm= --indent-heuristic \
    --no-indent-heuristic --no-renames -M -M… --find-renames --find-renames= -C -C… --find-copies \
    --find-copies= --find-copies-harder -B -B… --break-rewrites --break-rewrites= -D \
    --irreversible-delete -l… --diff-filter= -S… -G… --find-object= --pickaxe-all --pickaxe-regex \
    -R --relative --relative= --no-relative -a --text -b --ignore-space-change -w \
    --ignore-all-space --ignore-cr-at-eol --ignore-space-at-eol --ignore-blank-lines -I… \
    --ignore-matching-lines= --inter-hunk-context= -W --function-context --exit-code -q --quiet \
    --check --ws-error-highlight= --full-index --binary --abbrev --abbrev= --no-abbrev \
    --src-prefix= --dst-prefix= --no-prefix --default-prefix --line-prefix= -z -r -t --no-ext-diff \
    --no-textconv --cached --staged --merge-base --base --ours --theirs --cc -c \
    --combined-all-paths --ignore-submodules --ignore-submodules=";

/// Options of `git blame`, without `--contents`, which would read another file.
const BLAME_OPTIONS: &str = "-b --root --show-stats -L… -l -t -p --porcelain --line-porcelain --incremental --date= -M -M… -C -C… -f \
    --show-name -n --show-number -s -e --show-email -w --abbrev= --first-parent --since=";

/// Commands that print names of commits and files but no file content, with their options.
const NAME_COMMANDS: &[(&str, &str)] = &[
    (
        "rev-parse",
        "--show-toplevel --show-prefix --show-cdup --git-dir --git-common-dir --is-inside-work-tree \
         --is-bare-repository --abbrev-ref --abbrev-ref= --short --short= --symbolic --symbolic-full-name --verify -q \
         --quiet --all --branches --tags --remotes",
    ),
    (
        "ls-files",
        "-c --cached -d --deleted -m --modified -o --others -i --ignored -s --stage -u --unmerged -k --killed -t -v -z \
         --directory --no-empty-directory --exclude-standard --full-name --error-unmatch --abbrev --abbrev= --deduplicate \
         --eol",
    ),
    (
        "describe",
        "--all --tags --contains --abbrev= --candidates= --exact-match --debug --long --match= --exclude= --always \
         --first-parent",
    ),
    (
        "shortlog",
        "-s --summary -n --numbered -e --email -sn -ns -sne -nse --since= --after= --until= --before= --no-merges --merges \
         --all --first-parent",
    ),
];

/// Options of `git reflog` and `git reflog show`.
const REFLOG_OPTIONS: &str = "--oneline --all -n… --max-count= --skip= --since= --until= --date= --abbrev-commit --no-abbrev-commit \
    --pretty= --format= --relative-date";

/// Options of `git branch` that list. Without `--list`, a word that is not an option creates a branch.
const BRANCH_OPTIONS: &str = "-a --all -r --remotes -v -vv -av -avv -rv -i --ignore-case --list --show-current --column --column= \
    --no-column --color --color= --no-color --abbrev= --no-abbrev --sort=";

/// Options of `git tag` that list, for calls with `-l` or `--list`.
const TAG_OPTIONS: &str =
    "-l --list -n -n… -i --ignore-case --column --column= --no-column --color --color= --sort=";

/// Whether it is a read-only form with known options. Every word must be known, since an unknown one could be an option.
pub fn only_reads<W: AsWord>(layer: Layer<'_, W>) -> bool {
    if !layer.is_known() {
        return false;
    }
    let words = layer.words.iter().skip(1).map(AsWord::text);
    let mut words = words.skip_while(|word| GLOBAL_OPTIONS.split(' ').any(|known| known == *word));
    let Some(command) = words.next() else {
        return false;
    };
    let words: Vec<&str> = words.collect();
    match command {
        "status" | "diff" | "log" | "show" | "blame" => has_only(&words, tables_of(command)),
        "reflog" => match words.split_first() {
            None => true,
            Some((&"show", rest)) => has_only(rest, &[REFLOG_OPTIONS, ""]),
            Some((first, _)) => first.starts_with('-') && has_only(&words, &[REFLOG_OPTIONS, ""]),
        },
        "stash" => words == ["list"],
        "remote" => matches!(words[..], [] | ["-v" | "--verbose"]),
        "branch" => lists_names(&words, &["--list"], BRANCH_OPTIONS),
        "tag" => lists_names(&words, &["-l", "--list"], TAG_OPTIONS),
        command => NAME_COMMANDS
            .iter()
            .any(|(name, options)| *name == command && has_only(&words, &[options])),
    }
}

/// Returns the options of a command that may show file content.
fn tables_of(command: &str) -> &'static [&'static str] {
    match command {
        "status" => &[STATUS_OPTIONS],
        "diff" => &[DIFF_OPTIONS],
        "log" | "show" => &[LOG_OPTIONS, DIFF_OPTIONS],
        "blame" => &[BLAME_OPTIONS],
        _ => &[],
    }
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

/// Diff options that print a summary without file content.
const SUMMARY_OPTIONS: &str = "--raw --stat --stat= --compact-summary --numstat --shortstat --dirstat --dirstat= \
    --cumulative --summary --name-only --name-status -s --no-patch -q --quiet";

/// Diff options that print nothing by themselves.
const MODIFIER_OPTIONS: &str = "--color --color= --no-color -M… --find-renames --find-renames= -C… --find-copies \
    --find-copies= --find-copies-harder --no-renames -l… --diff-filter= -R --relative --relative= \
    --no-relative -z -r -t --no-ext-diff --no-textconv --cached --staged --merge-base --abbrev \
    --abbrev= --no-abbrev --exit-code --ignore-submodules --ignore-submodules=";

/// Other options with which git shows diffs only of the paths after `--`. `--follow` and `--full-diff` show more.
const PATH_DIFF_OPTIONS: &str = "-p -u --patch -U… --unified= --patch-with-raw --patch-with-stat --oneline --pretty --pretty= \
    --format= --abbrev-commit --decorate --decorate= --no-decorate --graph --reverse -n… --max-count= --skip= \
    --since= --after= --until= --before= --author= --committer= --grep= -i --merges --no-merges \
    --first-parent --all --branches --date= --word-diff --word-diff= --minimal --patience --histogram \
    -S… -G… -a --text -b --ignore-space-change -w --ignore-all-space --ignore-blank-lines -W \
    --function-context --full-index --binary";

/// The file content that a git command may show.
#[derive(Debug, Default)]
pub struct GitReads<'a> {
    /// Whether it shows any content.
    pub contents: bool,
    /// Words that may name a file.
    pub named: Vec<&'a str>,
    /// Folders or files whose content it may show.
    pub below: Vec<&'a str>,
}

/// Returns what a read-only form of git may show, given the words after `git`; nothing for other forms.
pub fn git_reads<'a>(words: &[&'a str]) -> GitReads<'a> {
    let general = |word: &&&str| GLOBAL_OPTIONS.split(' ').any(|known| known == **word);
    let mut words = words.iter().skip_while(|word| general(word)).copied();
    let command = words.next().unwrap_or_default();
    let words: Vec<&str> = words.collect();
    let end = words.iter().position(|word| *word == "--");
    // If `--` may be a value, everything after it may be an option.
    let end = end.filter(|at| !may_be_value(&words, *at, tables_of(command)));
    let (before, paths) = words.split_at(end.unwrap_or(words.len()));
    let paths = paths.get(1..).unwrap_or_default();
    let contents = may_show(command, before);
    if !contents {
        return GitReads::default();
    }
    let operands = || before.iter().filter(|word| !word.starts_with('-'));
    if command == "blame" {
        return GitReads {
            contents,
            named: operands().chain(paths).copied().collect(),
            below: Vec::new(),
        };
    }
    // A revision may name a file (`HEAD:path`).
    let limited = command == "log" || (command == "diff" && operands().next().is_none());
    let plain = |path: &&str| !path.starts_with(':') && !path.contains(['*', '?', '[', '\\']);
    let of_paths = |option: &&str| {
        let tables = [SUMMARY_OPTIONS, MODIFIER_OPTIONS, PATH_DIFF_OPTIONS];
        is_number(option) || tables.iter().any(|table| lists(table, option))
    };
    let mut options = before.iter().filter(|word| is_option(word));
    let limited = limited && options.all(of_paths);
    let below = if limited && !paths.is_empty() && paths.iter().all(plain) {
        paths.to_vec()
    } else {
        vec!["."]
    };
    let behind_colon = |word: &&'a str| word.rsplit_once(':').map(|(_, path)| path);
    let named = operands()
        .copied()
        .chain(operands().filter_map(behind_colon));
    GitReads {
        contents,
        named: named.chain(paths.iter().copied()).collect(),
        below,
    }
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

fn lists(table: &str, option: &str) -> bool {
    table.split(' ').any(|known| is(option, known))
}

/// Whether the option matches this entry of a table.
fn is(option: &str, known: &str) -> bool {
    if let Some(letter) = known.strip_suffix('…') {
        return option.starts_with(letter);
    }
    match known.strip_suffix('=') {
        Some(name) => option == name || option.starts_with(known),
        None => option == known,
    }
}

/// Whether the option is a number: `-5`.
fn is_number(option: &str) -> bool {
    option.len() > 1 && option[1..].bytes().all(|b| b.is_ascii_digit())
}

/// Whether a format verifies signatures (`%G?`), which runs the program that git's settings name.
fn verifies_signatures(option: &str) -> bool {
    let mut formats = option.split('%').skip(1);
    formats.any(|format| format.trim_start_matches(['+', '-', ' ']).starts_with('G'))
}
