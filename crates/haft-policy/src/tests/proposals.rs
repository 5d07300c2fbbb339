//! Which rules may be proposed to the user.

use super::*;
use crate::classes::Classes;
use crate::explain::proposal::PROPOSED_RULE;
use crate::explain::proposal::refuse_proposal;
use crate::explain::proposal::rule_coverage;
use haft_files::secret_names::SecretNames;

#[test]
fn narrow_rules_may_be_proposed_and_wide_ones_are_refused_with_the_reason() {
    let (classes, secrets): (Classes, _) = (CLASSES.into_iter().collect(), SecretNames::default());
    let refused = |rule: &str| refuse_proposal(rule, &classes, &secrets);
    for rule in [
        "Bash(npm run test)",
        "Bash(git add *)",
        "Bash(git commit -m x *)",
        "Bash(git apply fix.diff)",
        "Bash(cargo test --workspace)",
        "Bash(python3 scripts/gen.py)",
        "Bash(python3.11 scripts/gen.py --all)",
        "Bash(./scripts/check.sh --fast)",
        "Bash(git commit -m 'a b')",
        "Bash(git -c core.pager=cat log)",
        "Bash(rm -rf build)",
        "Bash(make docs)",
        "run_command(git status --short *)",
        "Edit(/docs/**)",
        "Edit(src/*.rs)",
        "Edit(/crates/*/src/**)",
        "Edit(docs/**/*.md)",
        "Edit(Cargo.toml)",
        "Edit(/docs/a?c.md)",
        "Read(/vendor/x)",
        "WebFetch(domain:docs.example.org)",
        "Network(registry.npmjs.org)",
        "Network(example.org:8443)",
        "server.tool(id:5)",
    ] {
        assert_eq!(refused(rule), None, "{rule}");
    }
    for (rule, why) in [
        ("Bash(*)", "covers every call"),
        ("Bash", "covers every call"),
        ("Edit", "covers every call"),
        ("write_file", "covers every call"),
        ("server.tool", "covers every call"),
        ("*", "several tools"),
        ("server.*", "several tools"),
        ("Bash(npm *)", "too wide"),
        ("Bash(np*)", "too wide"),
        ("Bash(* --version)", "too wide"),
        ("Bash(bash -c *)", "any command"),
        ("Bash(/usr/bin/python3 -m *)", "covers anything"),
        ("Bash(curl https://example.org/*)", "too wide"),
        ("Bash(ls; curl *)", "never matches"),
        ("Edit(**)", "every path"),
        ("Edit(/*)", "every path"),
        ("Read(.env)", "may hold secrets"),
        ("Edit(*.pem)", "may hold secrets"),
        ("Edit(.git/hooks/**)", "protected"),
        ("Edit(/haft.toml)", "protected"),
        ("Edit(//etc/hosts)", "outside the workspace"),
        ("WebFetch(domain:*.example.org)", "several hosts"),
        ("WebFetch(domain:localhost)", "host"),
        ("WebFetch(domain:192.168.0.1)", "not public"),
        ("Network(npm)", "several hosts"),
        ("Network(*.example.org)", "several hosts"),
        ("server.tool(id:*)", "not exact"),
        ("Edit(", "bracket"),
        ("", "tool name"),
        ("Edit(/a)\nEdit(/b)", "one line"),
    ] {
        let said = refused(rule).unwrap_or_else(|| panic!("{rule} may be proposed"));
        assert!(said.contains(why), "{rule}: {said}");
    }
    assert!(refused(&format!("Edit(/{})", "a".repeat(500))).is_some());
}

#[test]
fn a_rule_on_a_parameter_that_says_not_what_the_call_does_is_not_proposed() {
    for rule in [
        "run_command(timeout_s:31)",
        "run_command(background:true)",
        "run_command(cwd:src)",
        "write_file(mode:overwrite)",
        "write_file(content:x)",
        "fetch_url(format:markdown)",
        "delete_file(recursive:true)",
        "tool_chain(timeout_s:10)",
        "propose_rule(reason:x)",
        "todo_write(x:y)",
        "web_search(query:rust)",
        "frobnicate(a:b)",
    ] {
        refused(rule, "whatever the call does");
    }
}

/// Command rules that are refused, and why.
const COMMANDS: &[(&str, &str)] = &[
    (r#"Bash("python3" -c *)"#, "covers anything"),
    ("Bash('curl' -o *)", "a known subcommand"),
    (r#"Bash("rm" -rf *)"#, "a known subcommand"),
    (r"Bash(p\ython3 -c *)", "covers anything"),
    ("Bash(python3.11 -c *)", "covers anything"),
    ("Bash(PYTHON3 -c *)", "covers anything"),
    ("Bash(nodejs -e *)", "covers anything"),
    ("Bash(busybox sh *)", "any command"),
    ("Bash(gawk -f *)", "covers anything"),
    ("Bash(lua5.4 -e *)", "covers anything"),
    ("Bash(pip3 install *)", "a known subcommand"),
    ("Bash(npm exec *)", "a known subcommand"),
    ("Bash(npm run *)", "a known subcommand"),
    ("Bash(pnpm dlx *)", "a known subcommand"),
    ("Bash(uv run *)", "a known subcommand"),
    ("Bash(go run *)", "a known subcommand"),
    ("Bash(cargo run *)", "a known subcommand"),
    ("Bash(git -c *)", "git -c has options"),
    ("Bash(git -c core.pager=x log *)", "git -c"),
    ("Bash(cargo test --config x *)", "a known subcommand"),
    ("Bash(./git add *)", "a known subcommand"),
    ("Bash(shred -u *)", "a known subcommand"),
    ("Bash(truncate -s0 *)", "a known subcommand"),
    ("Bash(watch -n1 *)", "any command"),
    ("Bash(stdbuf -o0 *)", "any command"),
    ("Bash(timeout 5 *)", "any command"),
    ("Bash(X=1 python3 *)", "sets a variable"),
    ("Bash(X=1 git log *)", "sets a variable"),
    ("Bash(? -c *)", "not a plain program name"),
    ("Bash($SHELL -c *)", "not a plain program name"),
    ("Bash(git lo*)", "too wide"),
    ("Bash(git log:*)", "too wide"),
    ("Bash(git '*')", "too wide"),
    ("Bash(git * --oneline)", "too wide"),
    // After these, too, an option can write a file or start a program.
    ("Bash(git log *)", "write a file or start a program"),
    ("Bash(git diff *)", "write a file or start a program"),
    ("Bash(git show *)", "write a file or start a program"),
    ("Bash(git shortlog *)", "write a file or start a program"),
    ("Bash(cargo tree *)", "a known subcommand"),
    ("Bash(cargo test *)", "a known subcommand"),
    ("Bash(go list *)", "a known subcommand"),
    ("Bash(npm test *)", "a known subcommand"),
    ("Bash(npm view *)", "a known subcommand"),
    ("Bash(pip list *)", "a known subcommand"),
    ("Bash(uv tree *)", "a known subcommand"),
    // Even an exact line may run its piped input.
    ("Bash(bash)", "any command"),
    ("Bash(bash -s)", "any command"),
    ("Bash(xargs rm)", "any command"),
    ("Bash(. script)", "any command"),
    ("Bash(python3)", "too wide"),
    ("Bash(python3 -)", "options"),
    ("Bash(python3 -c 'print(1)')", "options"),
    ("Bash(tool -)", "whatever it reads"),
    ("Bash(tool /dev/stdin)", "whatever it reads"),
    ("Bash(psql production)", "its input"),
    ("Bash(sqlite3 app.db)", "its input"),
    ("Bash(gdb program)", "its input"),
    ("Bash(ed file)", "its input"),
    ("Bash(patch -p1)", "its input"),
    ("Bash(git apply)", "its input"),
    ("Bash(git apply --index)", "its input"),
    ("Bash(git am -3)", "its input"),
    ("Bash(rbash script)", "any command"),
];

#[test]
fn commands_are_proposed_by_the_words_that_run_and_not_by_how_they_are_written() {
    for (rule, why) in COMMANDS {
        refused(rule, why);
    }
}

#[test]
fn paths_are_proposed_below_a_named_folder_and_never_by_a_pattern_for_a_protected_name() {
    for (rule, why) in [
        ("Edit(*.*)", "begins with a pattern"),
        ("Edit(*e*)", "begins with a pattern"),
        ("Read(.e*)", "begins with a pattern"),
        ("Read(*_rsa)", "begins with a pattern"),
        ("Edit(h*t.toml)", "begins with a pattern"),
        ("Edit(.g?t/hooks/*)", "begins with a pattern"),
        ("Edit(/.v*/**)", "begins with a pattern"),
        ("Edit(**/a)", "begins with a pattern"),
        ("Edit(src/.g?t/x)", "could be .git"),
        ("Edit(src/.[g]it/x)", "protected"),
        ("Edit(src/.G*/x)", "could be .git"),
        ("Edit(src/h*t.toml)", "could be haft.toml"),
        ("Edit(src/*.toml)", "could be haft.toml"),
        ("Read(src/.e*)", "could be"),
        ("Read(src/*.bak)", "could be a copy of a file"),
        ("Read(src/*.bak~)", "could be"),
        ("Read(keys/*_rsa)", "may hold secrets"),
        ("Read(keys/id_*)", "may hold secrets"),
        ("Read(src/cred*.txt)", "may hold secrets"),
        ("Read(src/*.yml)", "could be .aider.conf.yml"),
        ("Read(src/.ssh/*/x)", "may hold secrets"),
        ("Edit(.claude/*/x)", "protected"),
        ("Edit(src/.git/x/*)", "protected"),
        ("Edit(src/????)", "could be"),
    ] {
        refused(rule, why);
    }
}

#[test]
fn a_host_that_looks_like_another_is_not_proposed() {
    for (rule, why) in [
        ("Network(\u{430}pple.com)", "xn--"),
        ("Network(\u{430}pple.com:8443)", "xn--"),
        ("WebFetch(domain:\u{430}pple.com)", "xn--"),
    ] {
        refused(rule, why);
    }
}

#[test]
fn a_rule_says_what_it_covers_beyond_its_text() {
    let classes: Classes = CLASSES.into_iter().collect();
    for (rule, says) in [
        (
            "server.tool(id:5)",
            Some("every call of server.tool whose id is 5"),
        ),
        ("Network(example.org)", Some("ports 80 and 443")),
        ("Network(example.org)", Some("for every command")),
        (
            "Network(example.org:443)",
            Some("only this port, for every command"),
        ),
        (
            "WebFetch(domain:example.org)",
            Some("only the default ports"),
        ),
        ("WebFetch(domain:example.org:8443)", Some("only this port")),
        ("Edit(/docs/**)", None),
        ("Bash(npm test)", None),
        ("Edit(", None),
    ] {
        let said = rule_coverage(rule, &classes);
        match says {
            Some(says) => assert!(
                said.as_deref().unwrap_or_default().contains(says),
                "{rule}: {said:?}"
            ),
            None => assert_eq!(said, None, "{rule}"),
        }
    }
}

fn refused(rule: &str, why: &str) {
    let (classes, secrets): (Classes, _) = (CLASSES.into_iter().collect(), SecretNames::default());
    let said = refuse_proposal(rule, &classes, &secrets);
    let said = said.unwrap_or_else(|| panic!("{rule} may be proposed"));
    assert!(said.contains(why), "{rule}: {said}");
}

#[test]
fn a_proposal_is_asked_about_whatever_rules_and_profile_say() {
    let effect = Effect::Other {
        kind: PROPOSED_RULE.to_owned(),
        value: "Edit(/docs/**)".to_owned(),
    };
    for risk in [Risk::Safe, Risk::High, Risk::Critical] {
        let permissions = vec![Permission {
            effect: effect.clone(),
            risk,
        }];
        let scene = tool("propose_rule", risk, &json!({}), permissions);
        let lists = Lists {
            allow: &["*", "propose_rule"],
            ..Lists::default()
        };
        let ruling = policy(Profile::Trusted, lists).judge(&scene.call());
        assert_eq!(
            (ruling.verdict, &*ruling.rule),
            (ASK, "guard rule-proposals")
        );
    }
}
