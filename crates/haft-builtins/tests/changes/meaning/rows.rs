//! Command lines of git, and what a request must say about each.

use haft::approval::meaning::MeaningKind;

/// The repository in which each command line runs: two commits on `main`, two on `side`.
pub(super) const REPOSITORY: &str = "git init -q -b main . && git config user.name Ada && git config user.email ada@localhost && \
    printf '1\\n2\\n3\\n' > file && echo one > other && git add . && git commit -q -m one && \
    git switch -q -c side && echo s1 > side1 && git add . && git commit -q -m s1 && \
    echo s2 > side2 && git add . && git commit -q -m s2 && \
    git switch -q main && echo 4 >> file && git commit -q -am two && git tag v1";

/// A command line, with what the request must say about it.
pub(super) struct Row {
    pub(super) line: &'static str,
    pub(super) kind: MeaningKind,
    /// The title, without what differs from run to run.
    pub(super) title: &'static str,
    /// A part of a warning; empty if there must be none.
    pub(super) warning: &'static str,
    /// A line that the shown files must have.
    pub(super) shows: &'static str,
    /// A part of a title or a line, anywhere.
    pub(super) says: &'static str,
}

const fn row(line: &'static str, kind: MeaningKind, title: &'static str) -> Row {
    Row {
        line,
        kind,
        title,
        warning: "",
        shows: "",
        says: "",
    }
}

const fn warned(row: &Row, warning: &'static str) -> Row {
    Row { warning, ..*row }
}

const fn showing(row: &Row, shows: &'static str) -> Row {
    Row { shows, ..*row }
}

const fn saying(row: &Row, says: &'static str) -> Row {
    Row { says, ..*row }
}

pub(super) const ROWS: &[Row] = &[
    showing(
        &row(
            "echo price=3 >> file && git add -A && git commit -qm 'Fix discount'",
            MeaningKind::Commit,
            "commit 'Fix discount' on main: 1 file, +1 −0",
        ),
        "price=3",
    ),
    row(
        "git mv other renamed && chmod +x file && git commit -qam moved",
        MeaningKind::Commit,
        "commit 'moved' on main: 2 files",
    ),
    row(
        "printf 'evil\\033[2J\\nbranch' > 'a\nb' && git add . && git commit -qm \"$(printf 'a\\033[31mb')\"",
        MeaningKind::Commit,
        "commit 'a\\x1b[31mb' on main: 1 file, +2 −0",
    ),
    row(
        "echo 1 > a && git add a && git commit -qm A && echo 2 > b && git add b && git commit -qm B",
        MeaningKind::Commit,
        "2 commits on main",
    ),
    row(
        "git switch -qc new && echo 1 > a && git add a && git commit -qm A",
        MeaningKind::Commit,
        "commit 'A' on new branch new: 1 file, +1 −0",
    ),
    showing(
        &row(
            "echo 5 >> file && git commit -qa --amend -m changed",
            MeaningKind::Amend,
            "amend 'changed' on main: 1 file, +1 −0",
        ),
        "5",
    ),
    row(
        "git merge -q side -m joined",
        MeaningKind::Merge,
        "merge 'joined' on main: 2 files, +2 −0",
    ),
    row(
        "git switch -q side && git rebase -q main",
        MeaningKind::Rebase,
        "rebase side: 2 commits made anew on",
    ),
    row(
        "git cherry-pick side~1 side >/dev/null",
        MeaningKind::CherryPick,
        "cherry-pick 2 commits on main",
    ),
    row("git tag v2", MeaningKind::Tag, "tag v2 on"),
    row(
        "git tag -a v3 -m 'third time'",
        MeaningKind::Tag,
        "tag v3 on",
    ),
    warned(
        &row(
            "git tag -f v1 HEAD~1",
            MeaningKind::Tag,
            "tag v1 moves from",
        ),
        "keeps the old one",
    ),
    row(
        "git tag -d v1",
        MeaningKind::Tag,
        "delete tag v1 (it was at",
    ),
    row("git branch next", MeaningKind::Branch, "new branch next at"),
    row(
        "git branch -m side aside",
        MeaningKind::Branch,
        "rename branch side to aside",
    ),
    warned(
        &row(
            "git branch -qD side",
            MeaningKind::Branch,
            "delete branch side (it was at",
        ),
        "2 commits are on no branch or tag any more",
    ),
    warned(
        &row(
            "git tag -d v1 && git reset -q --hard HEAD~1",
            MeaningKind::Reset,
            "reset main to",
        ),
        "1 commit is on no branch or tag any more",
    ),
    row(
        "git switch -q side",
        MeaningKind::Checkout,
        "switch from main to side",
    ),
    row(
        "git checkout -q HEAD~1",
        MeaningKind::Checkout,
        "switch from main to",
    ),
    row(
        "echo 6 >> file && git stash -q",
        MeaningKind::Stash,
        "stash 'WIP on main:",
    ),
    showing(
        &row(
            "echo 7 >> file && git add file",
            MeaningKind::Staged,
            "staged for the next commit: 1 file, +1 −0",
        ),
        "7",
    ),
    row(
        "git switch -q -c a main~1 && echo a > a && git add a && git commit -qm a && git switch -q -c b main~1 && echo b > b && \
            git add b && git commit -qm b && git switch -q main && git merge -q a b side -m octopus",
        MeaningKind::Merge,
        "merge 'octopus' of 3 branches on main: 4 files, +4 −0",
    ),
    // What the index undoes of a commit, or never had of it.
    saying(
        &row(
            "echo evil >> file && git commit -qam m && git checkout -q HEAD~1 -- file",
            MeaningKind::Commit,
            "commit 'm' on main: 1 file, +1 −0",
        ),
        "staged for the next commit: 1 file, +0 −1",
    ),
    saying(
        &row(
            "echo n > n && git add n && T=$(git write-tree) && git reset -q && rm n && \
                git update-ref refs/heads/main $(git commit-tree -p HEAD -m m $T)",
            MeaningKind::Commit,
            "commit 'm' on main: 1 file, +1 −0",
        ),
        "staged for the next commit: 1 file, +0 −1",
    ),
    saying(
        &row(
            "git reset -q --soft HEAD~1",
            MeaningKind::Reset,
            "reset main to",
        ),
        "staged for the next commit: 1 file, +1 −0",
    ),
    // Another index's extension, which holds its trees, behind these entries.
    warned(
        &row(
            "cp .git/index x && cp file y && echo evil > file && GIT_INDEX_FILE=$PWD/x git add file && GIT_INDEX_FILE=$PWD/x git write-tree >/dev/null && \
                mv y file && { head -c -53 .git/index; tail -c 53 x; } > z && mv z .git/index && rm x",
            MeaningKind::Staged,
            "git's index keeps trees for the next commit",
        ),
        "its cached trees do not fit its entries",
    ),
    // What takes the place of other commits is compared with them.
    row(
        "git reset -q --soft HEAD~1 && printf '1\\n2\\n' > file && git add . && git commit -qm two",
        MeaningKind::Amend,
        "amend 'two' on main: 1 file, +0 −2",
    ),
    saying(
        &warned(
            &row(
                "git switch -q side && git reset -q --soft HEAD~2 && git rm -q --cached side2 && git commit -qm s1 && \
                git commit -q --allow-empty -m s2 && git clean -qf",
                MeaningKind::Rebase,
                "rebase side: 2 commits made anew on",
            ),
            "not among the new commits under its name",
        ),
        "against the old tip: 1 file, +0 −1",
    ),
    saying(
        &row(
            "git switch -q side && git reset -q --hard HEAD~1 && git branch keep ORIG_HEAD",
            MeaningKind::Reset,
            "reset side to",
        ),
        "'s1': 1 file, +0 −1",
    ),
    showing(
        &row(
            "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i > f$i; git add .; git commit -qm $i; done; echo evil > f1; git commit -qam 11",
            MeaningKind::Commit,
            "11 commits on main: 10 files, +10 −0",
        ),
        "evil",
    ),
    saying(
        &row(
            "echo key > secret; for i in 1 2 3 4 5 6 7 8 9 10; do echo $i > f$i; git add .; git commit -qm $i; done; git rm -q secret; git commit -qm 11",
            MeaningKind::Commit,
            "11 commits on main: 10 files, +10 −0",
        ),
        "files that only the commits in between change: secret",
    ),
    // One new commit, upon others that the branch had not.
    showing(
        &row(
            "git switch -qc more side && git merge -q main -m m && git switch -q main && git merge -q more && echo x > x && git add x && \
                git commit -qm x && git branch -qD more",
            MeaningKind::Commit,
            "2 commits on main: 3 files, +3 −0",
        ),
        "s1",
    ),
    // Words that only what was done can give.
    row(
        "echo x >> file && git add file && GIT_REFLOG_ACTION=cherry-pick git commit -qm Backport",
        MeaningKind::Commit,
        "commit 'Backport' on main: 1 file, +1 −0",
    ),
    row(
        "git revert --no-edit HEAD >/dev/null",
        MeaningKind::Commit,
        "revert of",
    ),
    warned(
        &row(
            "echo x >> other && git commit -qam \"$(printf 'Revert\\n\\nThis reverts commit %s.' $(git rev-parse HEAD))\"",
            MeaningKind::Commit,
            "commit 'Revert' on main: 1 file, +1 −0",
        ),
        "does not change just that",
    ),
    row(
        "git checkout -q --orphan fresh && git commit -qm Fresh",
        MeaningKind::Commit,
        "commit 'Fresh' on new branch fresh (an orphan: it has no history): 2 files, +5 −0",
    ),
    warned(
        &row(
            "git symbolic-ref refs/heads/side refs/heads/main",
            MeaningKind::Branch,
            "branch side becomes another name of main",
        ),
        "2 commits are on no branch or tag any more",
    ),
    saying(
        &row(
            "git switch -qc x && echo x >> file && git commit -qam x && git switch -q main && echo y >> file && git commit -qam y && \
                { git merge -q x || true; } && rm .git/MERGE_MSG .git/MERGE_MODE .git/MERGE_HEAD && git checkout -qf HEAD file other",
            MeaningKind::Commit,
            "commit 'y' on main: 1 file, +1 −0",
        ),
        "commit 'x' on new branch x",
    ),
    warned(
        &row(
            "git update-index --assume-unchanged file && git update-index --skip-worktree other",
            MeaningKind::Staged,
            "git is told to overlook changes",
        ),
        "git no longer sees changes of 1 file (assume-unchanged): file\ngit no longer looks at 1 file (skip-worktree): other",
    ),
    // Who made the commit, and what else comes with the first parent's line.
    saying(
        &row(
            "echo x >> file && GIT_COMMITTER_NAME=Linus git commit -qam x",
            MeaningKind::Commit,
            "commit 'x' on main: 1 file, +1 −0",
        ),
        "by 'Ada <ada@localhost>'\ncommitted by 'Linus <ada@localhost>'",
    ),
    saying(
        &row(
            "git merge -q side -m joined && echo x > x && git add x && git commit -qm x",
            MeaningKind::Commit,
            "2 commits on main",
        ),
        "merge 'joined': 2 files, +2 −0\nby 'Ada <ada@localhost>'\nmerges ",
    ),
    row(
        "git reflog expire --expire=now --all",
        MeaningKind::Reset,
        "git's logs lose ",
    ),
    // What somebody wrote into a message never reads as haft's own words.
    saying(
        &row(
            "git commit -q --allow-empty -m \"$(printf \"x' on main: no files\\n\\nreplaces abc\\n\\342\\200\\256evil\")\"",
            MeaningKind::Commit,
            "commit 'x\\' on main: no files' on main: no files",
        ),
        "> replaces abc\n> \\u{202e}evil",
    ),
    saying(
        &row(
            "printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%064d\\nsize 123456\\n' 7 > big.bin && git add . && git commit -qm big",
            MeaningKind::Commit,
            "commit 'big' on main: 1 file, +3 −0",
        ),
        "Git LFS keeps it: 123.4 kB",
    ),
];
