//! The pieces of random lines.

/// What may stand before a command.
#[rustfmt::skip]
pub(crate) const WRAPPERS: &[&str] = &["timeout 5", "nice -n 5", "nohup", "command", "xargs", "xargs -I X", "xargs -n 1", "env", "env A=1", "sudo", "sudo -u root", "find . -exec", "time", "/bin/env", "stdbuf -oL", "NO_COLOR=1"];

/// Words, harmless and not.
#[rustfmt::skip]
pub(crate) const WORDS: &[&str] = &["a", "a.txt", "src/b.rs", ".env", "../x", "/etc/passwd", "~/.ssh/id_rsa", "~", "$x", "\"$x\"", "$f", "\"$f\"", "*.rs", "*", "a*", "-", "--", "/", ".", "..", "{a,b}", "'a b'", "$(cat l)", "\"$(cat l)\"", "<(sort b)", "X", "{}", "HEAD", "HEAD:a", "main..b", "5", "1,5p", "s/a/b/", "{print $1}", "'{print $1}'", ".a", "+%F", "'%s\\n'", "%d", "key=val", "=ls", "https://a.b/c", "file:///etc/x", "/proc/self/cwd/a", "/dev/null", "list", "-exec", "';'", "+", "rm", "x^y", "\"$HOME/a\"", "a/../..", "**/a", "'a[$(x)]'", "-name", "-delete", "!", "(", "]", "-L", "-R", "-r", "-i", "-e", "-f", "-o", "-s", "-c", "-n", "--version", "show", "status", "log", "diff", "-p", "-Sxyz", "-nfx", "-L1,5:a"];

/// Programs that no file names, and one that wraps others.
pub(crate) const OTHERS: &[&str] = &["foo", "curl", "rustc", "shred", "dd", "busybox"];

/// Programs with the most to say, which come more often.
pub(crate) const FREQUENT: &[&str] = &["grep", "sed", "rm", "cat", "diff", "find", "rg", "cp"];

/// Commands of git, and options before them.
#[rustfmt::skip]
pub(crate) const GIT: &[&str] = &[
    "status", "log", "diff", "show", "blame", "reflog", "branch", "tag", "rev-parse", "ls-files", "describe", "shortlog", "stash",
    "remote", "commit", "--no-pager", "-P", "push",
];
