//! Commands that run other commands: what allow, ask and deny rules see of them.

use super::*;

const ALLOWED: &[&str] = &["Bash", "Bash(*)"];

/// Returns the verdict under a deny rule for `touch` that allows everything else.
fn under_deny(line: &str) -> Verdict {
    let lists = Lists {
        deny: &["Bash(touch *)"],
        allow: ALLOWED,
        ..Lists::default()
    };
    let trusted = policy(Profile::Trusted, lists);
    trusted.judge(&run(line).call()).verdict
}

type Row = (
    &'static [&'static str],
    &'static [&'static str],
    &'static str,
    Verdict,
);

/// Rows of allow rules, deny rules, line and verdict.
const FED: &[Row] = &[
    // P3: the forms in the finding.
    (&[], &[], "echo . -exec touch pwn ';' | xargs find", ASK),
    (&[], &[], "echo --output=pwn | xargs git diff", ASK),
    (
        &["Bash(git *)"],
        &["Bash(git config *)"],
        "echo config --file pwn a.b c | xargs git",
        ASK,
    ),
    (
        &["Bash(git *)"],
        &["Bash(git push *)"],
        "echo push origin | xargs git",
        ASK,
    ),
    (&["Bash(rm *)"], &[], "echo . | xargs rm -rf", ASK),
    // The same with other wrappers, options and places.
    (&[], &[], "ls | xargs timeout 5 find", ASK),
    (&[], &[], "ls | timeout 5 xargs git log", ASK),
    (&[], &[], "ls | xargs diff a", ASK),
    (&[], &[], "ls | xargs cd", ASK),
    (&[], &[], "ls | xargs", ASK),
    (&["Bash(find *)"], &[], "ls | xargs find", ASK),
    (&["Bash(sh *)"], &[], "ls | xargs sh", ASK),
    (&["Bash(timeout *)"], &[], "ls | xargs timeout 5", ASK),
    (&["Bash(env *)"], &[], "ls | xargs env", ASK),
    (&["Bash(make)"], &[], "echo evil | xargs make", ASK),
    (&["Bash(xargs make)"], &[], "echo good | xargs make", ALLOW),
    (&["Bash"], &["Read(.env)"], "echo .env | xargs cat", ASK),
    // Read-only programs only read, whatever their arguments.
    (&[], &[], "ls | xargs cat", ALLOW),
    (&[], &[], "ls | xargs grep -l x | xargs wc -l", ALLOW),
    (
        &["Bash(prettier *)"],
        &[],
        "ls | xargs prettier --check",
        ALLOW,
    ),
];

#[test]
fn xargs_adds_words_that_nobody_sees() {
    for (allow, deny, line, expect) in FED {
        let lists = Lists {
            allow,
            deny,
            ask: &[],
        };
        let expect = *expect;
        assert_eq!(judge(lists, &run(line)).verdict, expect, "{line}");
    }
    let reading = policy(Profile::ReadOnly, Lists::default());
    for line in [
        "echo . -exec touch pwn ';' | xargs find",
        "echo --output=pwn | xargs git diff",
        "echo . | xargs rm -rf",
    ] {
        assert_eq!(reading.judge(&run(line).call()).verdict, DENY, "{line}");
    }
}

/// Lines that run `touch` through something else.
const RUN_TOUCH: &[&str] = &[
    // P7: every form in the finding.
    "env -u FOO touch pwn",
    "env -C sub touch ../pwn",
    "env -S'touch pwn'",
    "env --split-string='touch pwn'",
    "exec -a n touch pwn",
    // AP7: a builtin that runs its words.
    "jobs -x touch pwn",
    "builtin jobs -x touch pwn",
    "sh -c -e 'touch pwn'",
    "bash -c -x 'touch pwn'",
    "bash -c -- 'touch pwn'",
    "eval -- touch pwn",
    "timeout 0x5 touch pwn",
    "echo pwn | xargs -I X touch X",
    "echo pwn | xargs -d ' ' touch",
    "ionice -c best-effort touch pwn",
    "flock x touch pwn",
    "sudo -u root touch pwn",
    "doas -u root touch pwn",
    // Documented in addition to the finding's forms.
    "find . -exec touch pwn ';'",
    "find . -name x -okdir timeout 5 touch {} +",
    "find . -exec sh -c 'touch pwn' ';'",
    "env -vS 'touch pwn'",
    "env - A=1 touch pwn",
    "env --unset=FOO --chdir sub touch pwn",
    "env --unknown touch pwn",
    "sudo $X touch",
    "exec -cl touch pwn",
    "bash -c -o errexit 'touch pwn'",
    "bash -ceuo pipefail 'touch pwn'",
    "bash +x -c 'touch pwn'",
    "timeout -k 1 --signal KILL 5 touch pwn",
    "timeout --unknown 5 touch pwn",
    "nice -n -5 touch pwn",
    "nice --5 touch pwn",
    "stdbuf --output L touch pwn",
    "nohup -- touch pwn",
    "command -p touch pwn",
    "\\time -f '%e' touch pwn",
    "ionice -c3 -n 7 touch pwn",
    "flock -w 5 x touch pwn",
    "flock x -c 'touch pwn'",
    "watch -n 1 'touch pwn'",
    "watch touch pwn",
    "setsid -w touch pwn",
    "setsid --wait touch pwn",
    "busybox touch pwn",
    "chroot / touch pwn",
    "unshare -r touch pwn",
    "nsenter -t 1 touch pwn",
    "taskset 1 touch pwn",
    "taskset -c 0 touch pwn",
    "strace -f -o x touch pwn",
    "script -c 'touch pwn'",
    "su root -c 'touch pwn'",
    "sudo -n -- sh -c 'touch pwn'",
    "sudo A=1 touch pwn",
    "sudo --user=root touch pwn",
    "ls | xargs -n1 -P 4 touch",
    "ls | xargs --max-args 1 touch",
    "ls | xargs --unknown touch",
    "ls | xargs -i touch {}",
    "ls | xargs sh -c 'touch pwn'",
    "ls | sudo -n xargs touch",
    "timeout 5 env -u X nice ionice -c 2 touch pwn",
    "/usr/bin/env -i /bin/touch pwn",
];

#[test]
fn a_deny_holds_behind_wrappers_with_options() {
    for line in RUN_TOUCH {
        assert_eq!(under_deny(line), DENY, "{line}");
        let asking = Lists {
            ask: &["Bash(touch *)"],
            allow: ALLOWED,
            ..Lists::default()
        };
        let trusted = policy(Profile::Trusted, asking);
        assert_eq!(trusted.judge(&run(line).call()).verdict, ASK, "{line}");
    }
}

#[test]
fn words_that_a_wrapper_puts_in_are_asked_about_where_a_deny_could_match() {
    for line in [
        "echo touch pwn | xargs env",
        "echo touch | xargs -I X X pwn",
        "echo touch | xargs --replace=X sh -c X",
        "ls | xargs --unknown git",
        "ls | xargs timeout 5",
        "find . -name touch -exec {} pwn ';'",
        "sudo $X y",
        "find . $X",
        "ls | xargs find",
        "sh $X",
        "bash -c \"ls $X\"",
        "eval \"$X\"",
        "read $X",
        "unset \"$X\"",
        "declare $X=1",
        "printf -v \"$X\" y",
        "export A=$X",
        "[ $X = y ]",
        "env $X y",
    ] {
        assert_eq!(under_deny(line), ASK, "{line}");
    }
}

#[test]
fn a_deny_does_not_reach_into_the_words_of_another_command() {
    for line in [
        "timeout 5 grep touch pwn",
        "env -u FOO grep touch pwn",
        "sudo -u root grep touch pwn",
        "nice -n 5 git commit -m 'touch pwn'",
        "find . -name touch",
        "ls | xargs grep touch",
        "xargs -n 1 grep touch",
        "bash -c 'echo \"$1\"' _ 'touch pwn'",
        // P13, clause 5: only prints what the name refers to.
        "export A=\"$X\" B=\"$(ls)\"",
        "[ -f \"$X\" ]",
        "exec ls \"$X\"",
        "command -v touch",
        "command -V touch",
        "command -pv touch",
        "timeout 5 command -v touch",
    ] {
        assert_eq!(under_deny(line), ALLOW, "{line}");
    }
}
