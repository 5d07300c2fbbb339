//! The pieces of random lines: some that the reader accepts, and some that it does not.

/// Names of commands, with words that often follow.
#[rustfmt::skip]
pub(crate) const COMMANDS: &[&str] = &[
    "ls", "ls -la", "cat a.txt", "cat", "echo", "echo hi", "head -1 a.txt", "grep -r x .",
    "wc -l", "pwd", "stat a.txt", "du", "which ls", "diff a.txt b.txt", "diff -r",
    "find . -name a.txt", "find", "cd .", "cd sub", "git status", "git log --oneline -1",
    "git diff", "git", "git show", "git push", "git config", "c1", "c1 x", "c2", "printf %s",
    "printf '%s\\n' x", "read -r v", "export v=1", "test -f a.txt", "[ -f a.txt ]", "true", ":",
    "set -e", "touch pwn", "rm pwn",
];

/// What may precede a command.
#[rustfmt::skip]
pub(crate) const WRAPPERS: &[&str] = &[
    "timeout 5", "timeout -k 1 5", "timeout -s KILL 5", "timeout --unknown 5", "nice",
    "nice -n 5", "nohup", "stdbuf -oL", "command", "command -v", "command -p", "builtin",
    "time", "time -p", "xargs", "xargs -n 1", "xargs -I X", "xargs -d ' '", "env", "env -u FOO",
    "env A=1", "env -i", "exec", "exec -a n", "! ", "NODE_ENV=1", "NO_COLOR=", "v=1", "PATH=0",
    "HOME=sub", "find . -maxdepth 0 -exec", "find . -maxdepth 1 -name a.txt -execdir",
    "timeout 5 xargs", "sh -c", "bash -c", "bash -ec", "eval", "busybox", "setsid",
];

/// Words, harmless and not.
#[rustfmt::skip]
pub(crate) const WORDS: &[&str] = &[
    "a.txt", "b.txt", "sub", "x", "*", "*.txt", "-la", "-l", "-exec", ";", "';'", "+", "touch",
    "pwn", "--output=pwn", "\"$v\"", "$v", "${v}", "$1", "\"$@\"", "$#", "$?", "$_", "$HOME",
    "~", "{a,b}.txt", "{1..3}", "'a b'", "\"a b\"", "$'a\\x62'", "$\"x\"", "$(cat args.txt)",
    "\"$(cat evil.txt)\"", "$(cat evil.txt)", "$(<evil.txt)", "`cat args.txt`", "<(cat a.txt)",
    "'a[$(touch pwn)]'", "a[\\$(touch pwn)]", "'$(touch pwn)'", "\\$x", "v=1", "{}", "X",
];

/// Contents of arithmetic expressions.
#[rustfmt::skip]
pub(crate) const NUMBERS: &[&str] = &[
    "1", "2 + 3", "(4 * 5) % 3", "$#", "$?", "i", "$i", "${i}", "i++", "i = 2", "v", "$v",
    "${v}", "PATH=0", "PATH = 0", "$(cat evil.txt)", "$(<evil.txt)", "`cat evil.txt`", "x[0]",
    "x[$(touch pwn)]", "$1", "$_", "0x1f", "i$i", "1 ? i : 2", "v=1", "'a[$(touch pwn)]'",
    "RANDOM", "i, v",
];

/// Contents of `${…}`.
#[rustfmt::skip]
pub(crate) const PARAMETERS: &[&str] = &[
    "v", "#v", "v:-x", "v:-$(cat evil.txt)", "v:=x", "v:=a[\\$(touch pwn)]", "v=x", "v+x",
    "v:?x", "v#a*", "v%.txt", "v/a/b", "v^^", "v@P", "v@Q", "!v", "!v*", "!_", "v[0]", "v[@]",
    "v[i]", "v[$(touch pwn)]", "v[$v]", "#v[@]", "v:0:1", "v: -1", "v:i", "v:$(cat evil.txt)",
    "v:PATH=0", "HOME:PATH=0", "@:1", "v~",
];

/// Operators that join commands.
pub(crate) const JOINTS: &[&str] = &["; ", " && ", " || ", " | ", "\n", " & ", " |& "];

/// Redirections.
#[rustfmt::skip]
pub(crate) const REDIRECTIONS: &[&str] = &[
    " 2>&1", " > /dev/null", " < a.txt", " < args.txt", " < evil.txt", " <<< x",
    " <<< \"$(cat evil.txt)\"", " {v}>/dev/null", " {PATH}>/dev/null", " {HOME}</dev/null",
    " 3< a.txt", " 2>/dev/null", " <&$v",
];

/// Pieces that mutations insert anywhere.
#[rustfmt::skip]
pub(crate) const PIECES: &[&str] = &[
    "\\\n", "'", "\"", "\\", "$", "`", "(", ")", "((", "))", "[[ ", " ]]", "{", "}", ";", "&",
    "|", "<", ">", "#", " ", "\n", "=", "[", "]", "$(", "${", "$((", "!", "*", "-", "v", "PATH",
    "@P", "x=", "then ", "fi", "do ", "done", "case ", "esac", "in ", "coproc ", "select ",
    "function ", "<<E\n", "\nE\n", "$'", "$\"", "\\'", ";;",
];
