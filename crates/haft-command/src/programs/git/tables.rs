//! The options of git's reading commands that neither write nor run anything.

/// Options before the command.
pub(super) const GLOBAL_OPTIONS: &str = "--no-pager -P --no-optional-locks";

/// Options before the command that change what it works on or how.
pub(super) const LEADING_OPTIONS: &str = "-p --paginate --bare --no-replace-objects --literal-pathspecs --glob-pathspecs --noglob-pathspecs \
    --icase-pathspecs --no-lazy-fetch --no-advice";
/// Those that take the next word as their value.
pub(super) const LEADING_OPTIONS_WITH_VALUE: &str =
    "-C -c --git-dir --work-tree --namespace --config-env --super-prefix --attr-source";
/// Those with their value in the same word.
pub(super) const LEADING_PREFIXES: [&str; 7] = [
    "--git-dir=",
    "--work-tree=",
    "--namespace=",
    "--config-env=",
    "--exec-path=",
    "--super-prefix=",
    "--attr-source=",
];

/// Commands that show no file content, whatever their options are.
pub(super) const SILENT_COMMANDS: &str = "am apply branch bundle cherry clean clone count-objects describe fetch for-each-ref fsck gc \
    hash-object init ls-files ls-remote ls-tree maintenance merge merge-base mv name-rev notes prune pull push \
    remote repack rerere rev-list rev-parse revert cherry-pick rm show-ref sparse-checkout switch symbolic-ref tag update-index \
    update-ref verify-commit verify-tag version --version --help -h help worktree write-tree";
/// Commands that show file content only with an option such as `-p`, `-v`, `-x` or `-f`, or with `foreach`.
pub(super) const QUIET_COMMANDS: &str =
    "add checkout commit config rebase reset restore shortlog submodule";

/// Options of `git status`. A trailing `=` or `…` means that a value follows, in the same word or the next; in the same word only, if
/// the option is also listed without it.
pub(super) const STATUS_OPTIONS: &str = "-s --short -b --branch -sb -bs --show-stash --porcelain --porcelain= --long -v -vv --verbose \
    -u -u… --untracked-files --untracked-files= --ignored --ignored= -z --column --column= \
    --no-column --ahead-behind --no-ahead-behind --renames --no-renames --find-renames \
    --find-renames= --ignore-submodules --ignore-submodules=";

/// Options of `git log` and `git show` that select and format commits.
pub(super) const LOG_OPTIONS: &str = "--oneline --pretty --pretty= --format= --abbrev-commit --no-abbrev-commit --decorate \
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
pub(super) const DIFF_OPTIONS: &str = "-p -u --patch -s --no-patch -U… --unified= --raw --patch-with-raw --patch-with-stat --stat \
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
pub(super) const BLAME_OPTIONS: &str = "-b --root --show-stats -L… -l -t -p --porcelain --line-porcelain --incremental --date= -M -M… -C -C… -f \
    --show-name -n --show-number -s -e --show-email -w --abbrev= --first-parent --since=";

/// Commands that print names of commits and files but no file content, with their options.
pub(super) const NAME_COMMANDS: &[(&str, &str)] = &[
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
pub(super) const REFLOG_OPTIONS: &str = "--oneline --all -n… --max-count= --skip= --since= --until= --date= --abbrev-commit --no-abbrev-commit \
    --pretty= --format= --relative-date";

/// Options of `git branch` that list. Without `--list`, a word that is not an option creates a branch.
pub(super) const BRANCH_OPTIONS: &str = "-a --all -r --remotes -v -vv -av -avv -rv -i --ignore-case --list --show-current --column --column= \
    --no-column --color --color= --no-color --abbrev= --no-abbrev --sort=";

/// Options of `git tag` that list, for calls with `-l` or `--list`.
pub(super) const TAG_OPTIONS: &str =
    "-l --list -n -n… -i --ignore-case --column --column= --no-column --color --color= --sort=";

/// Diff options that print a summary without file content.
pub(super) const SUMMARY_OPTIONS: &str = "--raw --stat --stat= --compact-summary --numstat --shortstat --dirstat --dirstat= \
    --cumulative --summary --name-only --name-status -s --no-patch -q --quiet";

/// Diff options that print nothing by themselves.
pub(super) const MODIFIER_OPTIONS: &str = "--color --color= --no-color -M… --find-renames --find-renames= -C… --find-copies \
    --find-copies= --find-copies-harder --no-renames -l… --diff-filter= -R --relative --relative= \
    --no-relative -z -r -t --no-ext-diff --no-textconv --cached --staged --merge-base --abbrev \
    --abbrev= --no-abbrev --exit-code --ignore-submodules --ignore-submodules=";

/// Other options with which git shows diffs only of the paths after `--`. `--follow` and `--full-diff` show more.
pub(super) const PATH_DIFF_OPTIONS: &str = "-p -u --patch -U… --unified= --patch-with-raw --patch-with-stat --oneline --pretty --pretty= \
    --format= --abbrev-commit --decorate --decorate= --no-decorate --graph --reverse -n… --max-count= --skip= \
    --since= --after= --until= --before= --author= --committer= --grep= -i --merges --no-merges \
    --first-parent --all --branches --date= --word-diff --word-diff= --minimal --patience --histogram \
    -S… -G… -a --text -b --ignore-space-change -w --ignore-all-space --ignore-blank-lines -W \
    --function-context --full-index --binary";

/// Returns the options of a command that may show file content.
pub(super) fn tables_of(command: &str) -> &'static [&'static str] {
    match command {
        "status" => &[STATUS_OPTIONS],
        "diff" => &[DIFF_OPTIONS],
        "log" | "show" => &[LOG_OPTIONS, DIFF_OPTIONS],
        "blame" => &[BLAME_OPTIONS],
        _ => &[],
    }
}

pub(super) fn lists(table: &str, option: &str) -> bool {
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
pub(super) fn is_number(option: &str) -> bool {
    option.len() > 1 && option[1..].bytes().all(|b| b.is_ascii_digit())
}
