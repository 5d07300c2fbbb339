//! Text that bash reads a second time (P1), and variables that it sets by itself (P2): such lines need approval, whatever allows them.

use haft_shell::ALTERING;

use super::*;

/// Rules that allow every line that can be parsed.
const ALL: Lists<'_> = Lists {
    deny: &[],
    ask: &[],
    allow: &["*", "Edit", "Bash", "Bash(*)"],
};

/// Checks that the line needs approval under every rule and profile, and does not run under `read-only`.
fn check_unread(line: &str) {
    for profile in [Profile::Workspace, Profile::Trusted] {
        let verdict = policy(profile, ALL).judge(&run(line).call()).verdict;
        assert_eq!(verdict, ASK, "{profile}: {line}");
    }
    let reading = policy(Profile::ReadOnly, Lists::default());
    assert_eq!(reading.judge(&run(line).call()).verdict, DENY, "{line}");
}

/// Arithmetic, indexes and the like that could run the content of a file or variable.
const READ_TWICE: &[&str] = &[
    // P1: every form in the finding.
    "echo $(( $(cat evil.txt) ))",
    "[[ $(cat evil.txt) -eq 0 ]]; ls",
    "[[ -v $(cat evil.txt) ]]; ls",
    "echo ${HOME:$(cat evil.txt)}",
    "(( $(<evil.txt) )); ls",
    "for ((i=0;i<$(<evil.txt);i++)); do ls; done",
    "NODE_ENV[$(<evil.txt)]=1; ls",
    "NODE_ENV=([$(<evil.txt)]=1); ls",
    "echo ${x[$(<evil.txt)]}",
    "cat <<E\n$(( $(cat evil.txt) ))\nE",
    "for x in 'a[$(touch pwn)]'; do ((x)); done; echo hi",
    "for x in \"$(cat evil.txt)\"; do echo ${!x}; done",
    "echo 'a[$(touch pwn)]'; (( $_ ))",
    "echo 'a[$(touch pwn)]'; [[ $_ -eq 0 ]]",
    "echo 'a[$(touch pwn)]'; echo ${!_}",
    "ls() { (( $1 )); }; ls 'a[$(touch pwn)]'",
    "NODE_ENV='a[$'; NODE_ENV+='(touch pwn)]'; ((NODE_ENV)); echo hi",
    "echo ${x:=a[\\$(touch pwn)]} $((x))",
    "for x in evil.txt; do [[ $(cat $x) -gt 1 ]]; done; ls",
    // The same in other places.
    "echo $((x))",
    "echo $(($x))",
    "echo $((${x}))",
    "echo \"$((x))\"",
    "echo $(( 'x' ))",
    "echo $((x[0]))",
    "echo $(( `cat evil.txt` ))",
    "echo ${HOME:x}",
    "echo ${HOME:0:x}",
    "echo ${HOME: -x}",
    "echo ${@:x}",
    "echo ${x[y]}",
    "echo ${x[$y]:-z}",
    "echo ${#x[y]}",
    "echo ${x@P}",
    "echo ${x@Q}",
    "echo ${x~}",
    "echo ${!x*}",
    "echo ${x=y}",
    "echo $[x]",
    "[[ x -eq 0 ]] && ls",
    "[[ $x -lt 3 ]] && ls",
    "[[ \"$x\" -ge 1 ]] && ls",
    "[[ -R x ]]; ls",
    "[[ -v x ]]; ls",
    "[[ -o x ]]; ls",
    "for ((;x;)); do ls; done",
    "if (( x )); then ls; fi",
    "x[0]=1",
    "x=(1 2)",
    "select x in $(cat evil.txt); do ls; done",
    "ls ${x:-$(( $(cat evil.txt) ))}",
    "ls > $((x))",
    "cat <<< $((x))",
    "case $((x)) in *) ls;; esac",
    // A value that completes a name makes it a different name.
    "for x5 in \"$(cat evil.txt)\"; do for i in 5; do ((x$i)); done; done; ls",
    "for i in 1; do echo $((${i}x)); done",
    // A counter that something else may set.
    "i=5; i=$(cat evil.txt); echo $((i))",
    "i=5; i+='x'; echo $((i))",
    "for i in 1 $(cat evil.txt); do echo $((i)); done",
    "for i in *; do echo $((i)); done",
    "for i; do echo $((i)); done",
    "i=5; read i < evil.txt; echo $((i))",
    "i=5; printf -v i %s \"$x\"; echo $((i))",
    "i=5; declare -n i=x; echo $((i))",
    "i=5; . ./evil.txt; echo $((i))",
    "COLUMNS=5; echo $((COLUMNS))",
    "i=5; IFS=x read i < evil.txt; echo $((i))",
    "i=$(wc -l evil.txt); echo $((i))",
    "wc() { cat evil.txt; }; i=$(wc -l); echo $((i))",
    "echo $(($(wc -l < a; cat evil.txt)))",
];

#[test]
fn arithmetic_that_could_run_commands_is_asked_about() {
    for line in READ_TWICE {
        check_unread(line);
    }
}

#[test]
fn arithmetic_of_numbers_and_counters_is_read() {
    let lists = Lists {
        allow: &["Bash(a *)"],
        ..Lists::default()
    };
    for line in [
        "echo $((1 + 2)) $(( (3 * 4) % 5 )) $((0x1f << 2))",
        "echo $(($# - 1)) $(($? == 0))",
        "((1)) && ls",
        "for ((i = 0; i < 5; i++)); do ls $((i * 2)); done",
        "for i in 1 2 3; do echo $((i + $i + ${i})); done",
        "for i in {1..5}; do echo $((i)); done",
        "echo ${x:0:3} ${x: -2} ${x:(-2)} ${@:2}",
        "echo ${x[0]} ${x[@]} ${#x[*]} ${x[-1]}",
        "for i in 1 2; do echo ${x:i:1} ${x[i]}; done",
        "[[ $# -gt 1 ]] || ls",
        "[[ \"$?\" -eq 0 && -f a ]] && ls",
        "for n in 7; do [[ n -lt 9 ]] && ls; done",
        "echo ${x} ${#x} ${x:-a} ${x-b} ${x:+c} ${x:?d} ${x#a} ${x%%b} ${x/a/b} ${x^^} ${x,}",
        "echo $1 $@ $* $# $? $$ $! $- ${10} ${!} ${#} ${#@}",
        "[[ -f a && ! -d b || ( -n $x ) ]] && ls",
        "[[ $x == a* || $x != b || $x < c || $x =~ ^d+$ || a -nt b ]] && ls",
    ] {
        assert_eq!(judge(lists, &run(line)).verdict, ALLOW, "{line}");
    }
    // Counters that the line sets as variables need approval by default, like every variable.
    for line in [
        "i=0; while ((i < 3)); do ls; i=$((i + 1)); done",
        "i=\"5\"; ls; echo $((i--))",
        // The line alone gives a letter its value.
        "I=5; echo $((I))",
        "n=$(wc -l < b); echo $((n / 2))",
        "i=0; while [ $i -lt 3 ]; do ls; i=$((i + 1)); done",
        "c=0; while read -r l; do c=$((c + 1)); done < b; echo $c",
    ] {
        assert_eq!(judge(lists, &run(line)).verdict, ASK, "{line}");
        let trusted = policy(Profile::Trusted, lists);
        assert_eq!(trusted.judge(&run(line).call()).verdict, ALLOW, "{line}");
    }
}

#[test]
fn what_sets_a_variable_without_an_assignment_is_asked_about() {
    for line in [
        // P2: every form in the finding.
        "echo $((PATH=0)); ls",
        "[[ PATH=0 -eq 0 ]]; ls",
        "echo ${HOME:PATH=0}; ls",
        "echo {PATH}>/dev/null; ls",
        "echo {HOME}>/dev/null; git status",
        "read -r x < evil.txt; (( x ))",
        // The same with other operators.
        "echo {PATH}</dev/null; ls",
        "echo {PATH}<&1; ls",
        "echo {PATH}>&-; ls",
        "cat {PATH}<<E; ls\nE",
        "ls {x[$(touch pwn)]}>/dev/null",
        "{ ls; } {PATH}>/dev/null",
        "((PATH=0)); ls",
        "for ((PATH=0;0;)); do ls; done; ls",
        "echo ${PATH:=0}; ls",
        "coproc PATH { ls; }; ls",
        "coproc PATH [[ a ]]; ls",
    ] {
        check_unread(line);
    }
    // A loop's variable is an assignment.
    for line in [
        "for PATH in 0; do ls; done",
        "for http_proxy in x; do ls; done",
    ] {
        assert_eq!(judge(ALL, &run(line)).verdict, ASK, "{line}");
        let reading = policy(Profile::ReadOnly, Lists::default());
        assert_eq!(reading.judge(&run(line).call()).verdict, DENY, "{line}");
    }
}

#[test]
fn builtins_that_set_variables_or_names_need_an_exact_rule_and_stop_every_other() {
    for (rule, builtin) in [
        // P2: the two rules in the finding, and the other builtins.
        ("Bash(printf *)", "printf -v PATH %s 0"),
        ("Bash(read *)", "read -r PATH < evil.txt"),
        ("Bash(mapfile *)", "mapfile -t PATH"),
        ("Bash(readarray *)", "readarray x"),
        ("Bash(getopts *)", "getopts ab PATH"),
        ("Bash(declare *)", "declare -n x=PATH"),
        ("Bash(typeset *)", "typeset PATH=0"),
        ("Bash(local *)", "local PATH=0"),
        ("Bash(readonly *)", "readonly PATH=0"),
        ("Bash(export *)", "export PATH=0"),
        ("Bash(let *)", "let PATH=0"),
        ("Bash(unset *)", "unset PATH"),
        ("Bash(wait *)", "wait -p PATH"),
        ("Bash(test *)", "test -v PATH"),
        ("Bash([ *)", "[ -v PATH ]"),
        ("Bash(set *)", "set -k"),
        ("Bash(shopt *)", "shopt -s expand_aliases"),
        ("Bash(alias *)", "alias ls=touch"),
        ("Bash(hash *)", "hash -p ./evil ls"),
        ("Bash(enable *)", "enable -f ./evil.so ls"),
        ("Bash(trap *)", "trap 'ls pwn' EXIT"),
        ("Bash(compgen *)", "compgen -C ./evil x"),
        ("Bash(builtin *)", "builtin read PATH"),
        ("Bash(command *)", "command read PATH"),
        ("Bash(. *)", ". ./evil"),
        ("Bash(exec *)", "exec -a ls ./evil"),
    ] {
        let by_pattern = Lists {
            allow: &[rule, "Bash(make)", "Bash"],
            ..Lists::default()
        };
        assert_eq!(judge(by_pattern, &run(builtin)).verdict, ASK, "{builtin}");
        let words = builtin.split(" < ").next().unwrap();
        let exact = format!("Bash({words})");
        let exactly = Lists {
            allow: &[&exact, "Bash(make)", "Bash"],
            ..Lists::default()
        };
        assert_eq!(judge(exactly, &run(builtin)).verdict, ALLOW, "{builtin}");
        for line in [
            format!("{builtin}; ls"),
            format!("ls $x; {builtin}"),
            format!("{builtin} && make"),
            format!("{{ {builtin}; }}; make $x"),
        ] {
            assert_eq!(judge(exactly, &run(&line)).verdict, ASK, "{line}");
            let reading = policy(Profile::ReadOnly, Lists::default());
            assert_eq!(reading.judge(&run(&line).call()).verdict, DENY, "{line}");
        }
    }
}

#[test]
fn builtins_that_only_look_are_covered_by_patterns() {
    let lists = Lists {
        allow: &[
            "Bash(printf *)",
            "Bash(test *)",
            "Bash([ *)",
            "Bash(set *)",
            "Bash(wait *)",
            "Bash(make)",
        ],
        ..Lists::default()
    };
    for line in [
        "printf '%s\\n' \"$x\"; make",
        "printf -- -v; make",
        "test -f a && make",
        "[ a = b ] || make",
        "[ -n \"$x\" ] && [ \"$x\" = \"$y\" ] || [ ! -f \"$x\" ] || make",
        "test \"$x\" -gt 3 && test \"$x\" && make",
        "set -e; make",
        "set -euo pipefail; set -x; make",
        "make; wait",
    ] {
        assert_eq!(judge(lists, &run(line)).verdict, ALLOW, "{line}");
    }
    for line in [
        "printf \"$x\" y; make",
        "printf -vPATH x; make",
        "test $x; make",
        "[ -n $x ]; make",
        "[ $x = y ]; make",
        "[ \"$@\" ]; make",
        "[ \"$x\" \"$y\" ]; make",
        "[ \"$x\" \"$y\" z ]; make",
        "[ -f a -a \"$x\" z ]; make",
        "[ -v x ]; make",
        "test -R x; make",
        "set -o posix; make",
        "set -a; make",
        "set -eo; make",
        "set \"$x\"; make",
        "set -- a; make",
    ] {
        let verdict = judge(lists, &run(line)).verdict;
        let shows = line.starts_with("set -eo;");
        assert_eq!(verdict, if shows { ALLOW } else { ASK }, "{line}");
    }
}

/// The lists of builtins are complete: each builtin of this machine's bash is listed, or does not affect the rest of a line.
#[test]
#[expect(clippy::disallowed_methods, reason = "bash is the judge")]
fn every_builtin_of_bash_is_known() {
    let settled = [
        ":", "[", "bg", "break", "caller", "cd", "command", "continue", "dirs", "disown", "echo",
        "exit", "false", "fg", "help", "jobs", "kill", "logout", "popd", "printf", "pushd", "pwd",
        "return", "set", "shift", "suspend", "test", "times", "true", "type", "ulimit", "umask",
        "wait",
    ];
    let said = std::process::Command::new("/bin/bash")
        .args(["--norc", "-c", "compgen -b"])
        .output();
    let Ok(said) = said else {
        eprintln!("SKIPPED: there is no /bin/bash");
        return;
    };
    for name in String::from_utf8(said.stdout).unwrap().lines() {
        let known = ALTERING.contains(&name) || settled.contains(&name);
        assert!(known, "{name} is a builtin of bash that no list names");
    }
}

#[test]
fn lines_joined_within_words_are_asked_about() {
    for line in [
        // P7: a reserved word, an assignment, a number before a redirection.
        "i\\\nf ls; then ls; f\\\ni",
        "i\\\nf ls; the\\\nn touch pwn; f\\\ni",
        "copro\\\nc touch pwn; wait",
        "X\\\n=1 touch pwn",
        "ls 2\\\n>x",
        "ec\\\nho a",
        "ls $\\\n(touch pwn)",
        "ls \"$\\\n(touch pwn)\"",
        "ls \"a\\\nb $x\"",
        "ls ${x\\\n@P}",
        "ls `ls\\\n`",
        "{PATH}\\\n>x ls",
        // AP8: a number that is not a descriptor is a word of the command, or its name.
        "ls 99999999999>/dev/null",
        "2147483648>/dev/null ls",
    ] {
        check_unread(line);
    }
    let lists = Lists::default();
    for line in [
        "ls \\\n-l",
        "ls -l\\\n a",
        "ls -l \\\n  | head \\\n  -3",
        "echo \"a\\\nb\"",
        "ls\\\n",
    ] {
        assert_eq!(judge(lists, &run(line)).verdict, ALLOW, "{line:?}");
    }
    // A deny rule sees the joined words.
    let lists = Lists {
        deny: &["Bash(touch *)"],
        allow: &["Bash"],
        ..Lists::default()
    };
    for line in [
        "i\\\nf ls; the\\\nn touch pwn; f\\\ni",
        "copro\\\nc touch pwn; wait",
        "X\\\n=1 touch pwn",
        "to\\\nuch pwn",
    ] {
        assert_eq!(judge(lists, &run(line)).verdict, DENY, "{line:?}");
    }
}

/// A deny rule applies to whatever it can see in a line that cannot be parsed.
#[test]
fn a_deny_looks_into_what_is_read_twice() {
    let lists = Lists {
        deny: &["Bash(touch *)"],
        allow: &["Bash"],
        ..Lists::default()
    };
    for line in [
        "echo $(( $(touch pwn) ))",
        "[[ $(touch pwn) -eq 0 ]]",
        "for x in 'a[$(touch pwn)]'; do ((x)); done",
        "echo 'a[$(touch pwn)]'; (( $_ ))",
        "x='a[`touch pwn`]'; ((x))",
        "echo ${x:=a[\\$(touch pwn)]} $((x))",
        "printf -v 'x[$(touch pwn)]' y",
        "declare 'x[$(touch pwn)]=1'; ls",
        "trap 'touch pwn' EXIT",
        "x=($(touch pwn))",
        "x[$(touch pwn)]=1",
        "coproc x { touch pwn; }",
        "select x in a; do touch pwn; done",
    ] {
        let verdict = policy(Profile::Trusted, lists)
            .judge(&run(line).call())
            .verdict;
        assert_eq!(verdict, DENY, "{line}");
    }
}

/// What a line, or the argument `env` of its call, makes a shell or a program run by a variable.
#[test]
fn a_deny_looks_into_variables_that_are_run() {
    let lists = Lists {
        deny: &["Bash(git push)", "Read(key.txt)"],
        allow: &["Bash"],
        ..Lists::default()
    };
    let verdict = |line: &str, env: serde_json::Value| {
        let scene = Scene {
            arguments: json!({"command": line, "env": env}).to_string(),
            ..run(line)
        };
        policy(Profile::Trusted, lists).judge(&scene.call()).verdict
    };
    let none = || json!({});
    // bash runs these, whatever the line is; so do the programs that have such variables.
    for line in [
        "PS4='$(git push)'; set -x; ls",
        "PS4='+ `git push` '; set -x; ls",
        "PS4='$(git push)' bash -xc ls",
        "env PS4='$(git push)' bash -xc ls",
        "env -i PS4='$(git push)' bash -xc ls",
        "env -S \"PS4='$(git push)' bash -xc ls\"",
        "export PS4='$(git push)'; bash -x f",
        "declare -x PS4='$(git push)'; bash -x f",
        "bash -c 'PS4=\"\\$(git push)\"; set -x; ls'",
        "x='$(git push)'; PS4=$x; set -x; ls",
        "BASH_ENV='$(git push)' bash -c true",
        "BASH_ENV=key.txt bash -c true",
        "BASH_ENV=./key.txt bash -c true",
        "PROMPT_COMMAND='git push' bash -i",
        "env 'BASH_FUNC_ls%%=() { git push; }' bash -c ls",
        "GIT_EDITOR='git push' git commit",
        "GIT_SSH_COMMAND='git push; ssh' git fetch",
        "PAGER='sh -c \"git push\"' git log",
        "make CC='$(shell git push)' EDITOR='git push'",
        "LESSOPEN='|git push' less f",
        "x=(a); PAGER='git push' git log",
        "sh -c \"x=(a); PAGER='git push' git log\"",
    ] {
        assert_eq!(verdict(line, none()), DENY, "{line}");
    }
    for (name, value) in [
        ("PS4", "$(git push)"),
        ("PS1", "`git push`"),
        ("BASH_ENV", "$(git push)"),
        ("BASH_ENV", "key.txt"),
        ("BASH_FUNC_ls%%", "() { git push; }"),
        ("PROMPT_COMMAND", "git push"),
        ("GIT_SSH_COMMAND", "git push"),
        ("ANY", "$(git push)"),
    ] {
        assert_eq!(verdict("ls", json!({name: value})), DENY, "{name}={value}");
    }
}

#[test]
fn what_a_variable_may_run_is_asked_about_where_a_rule_could_deny_it() {
    let lists = Lists {
        deny: &["Bash(git push)"],
        allow: &["Bash", "Bash(*)"],
        ..Lists::default()
    };
    let verdict = |lists, line: &str| {
        policy(Profile::Trusted, lists)
            .judge(&run(line).call())
            .verdict
    };
    for line in [
        // No one knows which programs run such a value.
        "MY_HOOK='git push' ./x",
        "MY_HOOK='sh -c \"git push\"' ./x",
        "make TEST_RUNNER='git push'",
        // The value is known only at run time, or not by its text.
        "PS4=$x; set -x; ls",
        "PS4='\\044(git push)'; set -x; ls",
        "PS4='$'; PS4+='(git push)'; set -x; ls",
        "for PS4 in '$(git push)'; do set -x; ls; done",
        "read PS4 < f; set -x; ls",
        "printf -v PS4 '%s' x; set -x; ls",
        "printf -vPS4 %s x; set -x; ls",
        "read -aPS4 < f; set -x; ls",
        "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0='!git push' git x",
        "GIT_CONFIG_PARAMETERS=\"'alias.x=!git push'\" git x",
        "declare -n r=PS4; r=x; set -x; ls",
        "mapfile PS4 < f; set -x; ls",
        "GIT_EDITOR=\"$x\" git commit",
        "export GIT_EDITOR=$x; git commit",
        "BASH_ENV=$x bash -c true",
        // The command's name is made when it runs.
        "PS4='$(git${IFS}push)'; set -x; ls",
        "PS4='$($(echo git) push)'; set -x; ls",
        "PS1='`git${IFS}push`' bash -ic ls",
        "A='x[$(git${IFS}push)]'; declare -i B=A",
        "A='x[$(git${IFS}push)]' bash -c 'echo $((A))'",
    ] {
        assert_eq!(verdict(lists, line), ASK, "{line}");
    }
    let one = |deny| Lists { deny, ..lists };
    // Without a rule that could mean it, the profile and allow rules alone decide.
    for line in [
        "MY_HOOK='git pull' ./x",
        "PS4='+ ${BASH_SOURCE}:${LINENO}: '; set -x; ls",
        "PAGER=cat git log",
        "PAGER= git log",
        "TAG=$(git describe) ./x",
        "FLAGS=\"$FLAGS -O2\" ./x",
        "NODE_ENV=test ./x",
        "PATH=$PWD/bin:$PATH ./x",
        "file='git push'; cat f",
    ] {
        let without = verdict(one(&[]), line);
        assert_eq!(verdict(lists, line), without, "{line}");
    }
}
