//! Command patterns, words and scanning.

use haft_shell::{fragments, join_words, plain_words};

use super::*;
use crate::commands::risk::command_risk;

fn check(rule: &str, line: &str, expect: Verdict) {
    let ruling = judge(
        Lists {
            allow: &[rule],
            ..Lists::default()
        },
        &run(line),
    );
    assert_eq!(ruling.verdict, expect, "{rule} on {line:?}: {ruling:?}");
}

#[test]
fn command_patterns_match_words_not_spelling() {
    for (rule, line, expect) in [
        ("Bash(npm test)", "npm test", ALLOW),
        ("Bash(npm test)", "  npm \t test ", ALLOW),
        ("Bash(npm test)", "npm 'test'", ALLOW),
        ("Bash(npm test)", "'npm test'", ASK),
        ("Bash(npm test)", "npm test x", ASK),
        ("run_command(npm test)", "npm test", ALLOW),
        ("Bash(git commit -m \"wip\")", "git commit -m wip", ALLOW),
        ("Bash(git commit -m \"a b\")", "git commit -m 'a b'", ALLOW),
        ("Bash(git commit -m a b)", "git commit -m 'a b'", ASK),
        ("Bash(* --version)", "node --version", ALLOW),
        ("Bash(* --version)", "node 'x --version'", ASK),
        ("Bash(* --version)", "sh -c 'evil --version'", ASK),
        (
            "Bash(find . -name \"*.ts\" *)",
            "find . -name '*.ts' -print",
            ALLOW,
        ),
        ("Bash(echo \\*)", "make \\*", ASK),
        ("Bash(make \\*)", "make \\*", ALLOW),
        ("Bash(make \\*)", "make all", ASK),
        ("Bash(make*)", "makeinfo x", ALLOW),
        ("Bash(make *)", "makeinfo", ASK),
        ("Bash(sh -c 'npm test')", "sh -c 'npm test'", ALLOW),
        ("Bash(sh *)", "sh -c 'npm test'", ASK),
        ("Bash", "sh -c 'npm test'", ASK),
        ("Bash", "find . -delete", ASK),
        ("Bash(find . -delete)", "find . -delete", ALLOW),
        ("Bash(timeout *)", "timeout 5 make", ASK),
        ("Bash(timeout 5 make)", "timeout 5 make", ALLOW),
        (
            "Bash(make)",
            "nice -n 5 timeout --signal=KILL 5s make",
            ALLOW,
        ),
        ("Bash(make)", "timeout --unknown 5 make", ASK),
        ("Bash(make)", "command -v make", ASK),
        ("Bash(make)", "stdbuf -oL time -p make", ALLOW),
    ] {
        check(rule, line, expect);
    }
}

#[test]
fn variables_stop_an_allow_and_nothing_else() {
    let under = |env: Value| {
        let mut scene = run("npm test");
        scene.arguments = json!({"command": "npm test", "env": env}).to_string();
        scene
    };
    for (env, expect) in [
        (json!({}), ALLOW),
        (json!({"NODE_ENV": "test"}), ALLOW),
        (json!({"PATH": "/tmp/bin"}), ASK),
        (json!({"NODE_ENV": "test", "LD_PRELOAD": "x"}), ASK),
        (json!(["PATH=x"]), ASK),
    ] {
        for rule in ["Bash(npm test)", "Bash(npm *)", "Bash", "run_command"] {
            let allow = Lists {
                allow: &[rule],
                ..Lists::default()
            };
            assert_eq!(
                judge(allow, &under(env.clone())).verdict,
                expect,
                "{rule} {env}"
            );
        }
        let deny = Lists {
            deny: &["Bash(npm *)"],
            ..Lists::default()
        };
        assert_eq!(judge(deny, &under(env)).verdict, DENY);
    }
    let policy = policy(Profile::Workspace, Lists::default());
    assert!(
        policy
            .suggest(&under(json!({"PATH": "x"})).call())
            .is_empty()
    );
}

#[test]
fn more_wrappers_than_are_looked_through_are_asked_about() {
    let lists = Lists {
        deny: &["Bash(rm *)"],
        ask: &[],
        allow: &["Bash", "Bash(*)"],
    };
    for wrapper in ["sudo ", "nice ", "timeout 1 "] {
        for (times, expect) in [(3, DENY), (5, DENY), (100, ASK), (1000, ASK)] {
            let line = format!("{}rm x", wrapper.repeat(times));
            assert_eq!(
                judge(lists, &run(&line)).verdict,
                expect,
                "{times} {wrapper}"
            );
        }
    }
}

#[test]
fn deny_sees_through_wrappers_paths_and_scripts() {
    for line in [
        "sudo id",
        "'su'do id",
        "/usr/bin/sudo id",
        "env A=1 sudo id",
        "timeout 5 nice sudo id",
        "xargs -n 1 sudo",
        "sh -c 'sudo id'",
        "bash -lc \"ls; sudo id\"",
        "eval sudo id",
        "exec sudo id",
        "ls; sudo id",
        "ls && sudo id",
        "echo $(sudo id)",
        "echo `sudo id`",
        "if sudo id; then ls; fi",
        "A=1 sudo id",
        "{ sudo id; }",
        "ls | (cd x; sudo id)",
        "cat <<EOF\n$(sudo id)\nEOF",
        "echo \"${x:-$(sudo id)}\"",
        "ls 2>&1 | sudo tee x",
        "ls > x; sudo id",
        "ls >x &&sudo id",
        "$'su\\x64o\\0x' id",
        "sudo id; echo 'open",
    ] {
        let lists = Lists {
            deny: &["Bash(sudo *)"],
            ask: &[],
            allow: &["Bash", "*"],
        };
        assert_eq!(judge(lists, &run(line)).verdict, DENY, "{line:?}");
        let lists = Lists {
            deny: &[],
            ask: &["Bash(sudo *)"],
            allow: &["Bash", "*"],
        };
        assert_eq!(judge(lists, &run(line)).verdict, ASK, "{line:?}");
    }
    for line in [
        "echo sudo id",
        "echo 'ls; sudo id'",
        "git commit -m 'sudo id'",
    ] {
        let lists = Lists {
            deny: &["Bash(sudo *)"],
            ask: &[],
            allow: &["Bash"],
        };
        assert_eq!(judge(lists, &run(line)).verdict, ALLOW, "{line:?}");
    }
}

#[test]
fn only_plain_words_are_words() {
    for (line, words) in [
        ("a b", Some(&["a", "b"][..])),
        ("a\\ b 'c d' \"e \\\" f\"", Some(&["a b", "c d", "e \" f"])),
        ("a ''", Some(&["a", ""])),
        ("a \\\nb", Some(&["a", "b"])),
        ("a b=c --x=y#z", Some(&["a", "b=c", "--x=y#z"])),
        ("a\u{a0}b", Some(&["a\u{a0}b"])),
        ("", None),
        ("a;b", None),
        ("a b=~/x", None),
        ("a ~", None),
        ("a {b,c}", None),
        ("a \"$b\"", None),
        ("a \"`b`\"", None),
        ("a [b]", None),
        ("! a", None),
        ("if", None),
        ("a # b", None),
        ("a=b c", None),
        ("a 'b", None),
        ("a \\", None),
        ("a 'b\0c'", None),
        ("a $'b'", None),
        ("a b\\\nc", None),
    ] {
        let expect = words.map(|words| words.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(plain_words(line), expect, "{line:?}");
        if let Some(words) = expect {
            assert_eq!(plain_words(&join_words(&words)), Some(words), "{line:?}");
        }
    }
    assert_eq!(plain_words(&"a".repeat(10_001)), None);
}

#[test]
fn the_read_only_set_is_safe_and_nothing_else() {
    for (line, risk) in [
        ("ls -la", Risk::Safe),
        ("cat a", Risk::Safe),
        ("timeout 5 grep -r x .", Risk::Safe),
        ("find . -name x -type f", Risk::Safe),
        ("git status", Risk::Safe),
        ("git --no-pager log -p", Risk::Safe),
        ("git diff --stat", Risk::Safe),
        ("cd src", Risk::Safe),
        ("diff a b", Risk::Safe),
        ("cd ..", Risk::High),
        ("cd -", Risk::High),
        ("cd /etc", Risk::High),
        ("diff -l a b", Risk::High),
        ("git diff --output=x", Risk::High),
        ("git diff --outp=x", Risk::High),
        ("git diff --ext-diff", Risk::High),
        ("git -C x status", Risk::High),
        ("git -c core.pager=x log", Risk::High),
        ("git branch -D main", Risk::High),
        ("git", Risk::High),
        ("find . -delete", Risk::High),
        ("find . -fprintf x y", Risk::High),
        ("find . -ok rm x", Risk::High),
        ("sort x", Risk::High),
        ("sed -n 1p x", Risk::High),
        ("./ls", Risk::High),
        ("env ls", Risk::High),
        ("rm x", Risk::High),
        ("rm -rf /", Risk::Critical),
        ("nice rmdir /etc", Risk::Critical),
    ] {
        assert_eq!(command_risk(&plain_words(line).unwrap()), risk, "{line}");
    }
    assert_eq!(command_risk(&[]), Risk::High);
    for (line, risk) in [
        ("ls; ls", Risk::Safe),
        ("ls *.ts | head -3 2>/dev/null", Risk::Safe),
        ("cd app && ls", Risk::Safe),
        ("cd app && git status", Risk::High),
        ("find . -name *.ts", Risk::High),
        ("git log $X", Risk::High),
        ("cat \"$X\"", Risk::Safe),
        ("$X", Risk::High),
        ("ls > x", Risk::High),
        ("A=1 ls", Risk::High),
        ("NO_COLOR=1 ls", Risk::Safe),
        ("ls; rm -rf /", Risk::Critical),
        ("echo $(rm -rf ~)", Risk::Critical),
        ("ls (", Risk::High),
        ("", Risk::High),
        ("# ls", Risk::High),
    ] {
        assert_eq!(line_risk(line), risk, "{line}");
    }
}

#[test]
fn lines_are_taken_apart_with_their_targets() {
    let found =
        fragments("cat <<'E' > a 2>&1; x > \"b c\" >| d &> e\nbody; rm y\nE\nlast $(in `deep`)");
    let commands: Vec<String> = found
        .commands
        .iter()
        .map(|words| join_words(words))
        .collect();
    assert_eq!(found.targets, ["a", "b c", "d", "e"]);
    assert_eq!(commands, ["cat", "x", "deep", "in '$()'", "last '$()'"]);
    assert_eq!(fragments("a '\\\n' b\\\nc").commands, [["a", "\\\n", "bc"]]);
    for odd in [
        "", "$(", "`", "${", "<<", "<<E", ">", "$'\\x", "\"", "\\", "((((", "<(<(<(",
    ] {
        fragments(odd);
    }
    fragments(&"$(".repeat(100_000));
}
