//! The main table: rules, a call, the verdict.

use serde_json::json;

use super::*;
use crate::rules::RuleText;

fn check(lists: Lists<'_>, scene: &Scene, expect: Verdict) {
    let ruling = judge(lists, scene);
    assert_eq!(ruling.verdict, expect, "{lists:?}\n{scene:?}\n{ruling:?}");
}

fn allow(rules: &[&str], scene: &Scene, expect: Verdict) {
    check(
        Lists {
            allow: rules,
            ..Lists::default()
        },
        scene,
        expect,
    );
}

fn deny(rules: &[&str], scene: &Scene, expect: Verdict) {
    check(
        Lists {
            deny: rules,
            ..Lists::default()
        },
        scene,
        expect,
    );
}

fn ask(rules: &[&str], scene: &Scene, expect: Verdict) {
    check(
        Lists {
            ask: rules,
            ..Lists::default()
        },
        scene,
        expect,
    );
}

#[test]
fn an_allow_covers_what_it_names_and_no_more() {
    let github = || served("github.create_issue", &json!({"repo": "a/b"}));
    for (rule, scene, expect) in vec![
        ("write_file", write("src/a.rs"), ALLOW),
        ("edit_file", write("src/a.rs"), ASK),
        ("Edit", write("src/a.rs"), ALLOW),
        ("Edit(*)", write("src/a.rs"), ALLOW),
        ("Read", write("src/a.rs"), ASK),
        ("*", write("src/a.rs"), ALLOW),
        ("Edit(src/**)", write("src/a.rs"), ALLOW),
        ("Edit(src/**)", write("src/deep/a.rs"), ALLOW),
        ("Edit(src/**)", write("lib/src/a.rs"), ASK),
        ("Edit(src/**)", write("src"), ASK),
        ("Edit(src/)", write("src/a.rs"), ALLOW),
        ("Edit(src/*)", write("src/a.rs"), ALLOW),
        ("Edit(src/*)", write("src/deep/a.rs"), ASK),
        ("Edit(/src/a.rs)", write("src/a.rs"), ALLOW),
        ("Edit(./src/a.rs)", write("src/a.rs"), ALLOW),
        ("Edit(//home/dev/app/src/**)", write("src/a.rs"), ALLOW),
        ("Edit(~/app/src/**)", write("src/a.rs"), ALLOW),
        ("Edit(~/other/**)", write("src/a.rs"), ASK),
        ("Edit(*.rs)", write("src/deep/a.rs"), ALLOW),
        ("Edit(*.rs)", write("src/a.rsx"), ASK),
        ("Edit(**/gen/*.rs)", write("a/gen/b.rs"), ALLOW),
        ("Edit(out.txt)", write("x/out.txt"), ALLOW),
        ("Edit(/out.txt)", write("x/out.txt"), ASK),
        ("Edit(src/**)", write("SRC/a.rs"), ASK),
        ("write_file(src/**)", write("src/a.rs"), ALLOW),
        ("edit_file(src/**)", write("src/a.rs"), ASK),
        ("write_file(mode:append)", write("src/a.rs"), ASK),
        ("WebFetch(domain:example.com)", fetch("example.com"), ALLOW),
        ("WebFetch(domain:example.com)", fetch("EXAMPLE.com"), ALLOW),
        ("WebFetch(domain:example.com)", fetch("example.com."), ALLOW),
        (
            "WebFetch(domain:example.com)",
            fetch("www.example.com"),
            ASK,
        ),
        ("WebFetch(domain:example.com)", fetch("notexample.com"), ASK),
        (
            "WebFetch(domain:example.com)",
            fetch("example.com.evil.org"),
            ASK,
        ),
        (
            "WebFetch(domain:*.example.com)",
            fetch("a.b.example.com"),
            ALLOW,
        ),
        ("WebFetch(domain:*.example.com)", fetch("example.com"), ASK),
        (
            "WebFetch(domain:api-*.example.com)",
            fetch("api-1.example.com"),
            ALLOW,
        ),
        (
            "WebFetch(domain:api-*.example.com)",
            fetch("api-1.x.example.com"),
            ASK,
        ),
        ("WebFetch", fetch("example.com"), ALLOW),
        ("fetch_url", fetch("example.com"), ALLOW),
        ("fetch_url(domain:example.com)", fetch("example.com"), ALLOW),
        ("Bash", fetch("example.com"), ASK),
        ("github.create_issue", github(), ALLOW),
        ("mcp__github__create_issue", github(), ALLOW),
        ("mcp__github", github(), ALLOW),
        ("mcp__github__*", github(), ALLOW),
        ("github.*", github(), ALLOW),
        ("github.create_*", github(), ALLOW),
        ("mcp__git", github(), ASK),
        ("mcp__github__create", github(), ASK),
        ("github.create_issue(repo:a/*)", github(), ALLOW),
        ("github.create_issue(repo:b/*)", github(), ASK),
        ("github.create_issue(owner:a)", github(), ASK),
    ] {
        allow(&[rule], &scene, expect);
    }
}

#[test]
fn a_deny_takes_every_spelling_and_depth() {
    for (rule, scene, expect) in [
        ("Edit(secrets/**)", write("pkg/secrets/key"), DENY),
        ("Edit(secrets/**)", write("secrets"), DENY),
        ("Edit(secrets/**)", write("secrets2/key"), ASK),
        ("Edit(/secrets/**)", write("pkg/secrets/key"), ASK),
        ("Edit(secrets/**)", read("secrets/key"), ALLOW),
        ("Read(secrets/**)", read("secrets/key"), DENY),
        ("Read(secrets/**)", read("secrets"), DENY),
        ("Read(secrets/**)", write("secrets/key"), DENY),
        ("Read(.env)", read("a/b/.env"), DENY),
        ("Read(.env)", read("a/b/.env/c"), DENY),
        ("Read(.env)", read("a/b/.envx"), ALLOW),
        ("Read(.env)", read("a/b/.envrc"), ASK),
        ("Read(.env*)", read("a/b/.env.local"), DENY),
        ("Read(//home/dev/app/x)", read("x"), DENY),
        ("Edit(/config/prod/**)", write("config"), DENY),
        ("Edit(/*/prod/**)", write("README.md"), ASK),
        ("Read(**)", read("anything"), DENY),
        ("read_file", read("anything"), DENY),
        ("read_*", read("anything"), DENY),
        ("*", read("anything"), DENY),
        ("Read", read("anything"), DENY),
        ("Read", write("anything"), ASK),
        ("*(path:any*)", read("anything"), DENY),
        ("mcp__a__b__c", served("a.b__c", &json!({})), DENY),
        ("mcp__a__b__c", served("a__b.c", &json!({})), DENY),
        (
            "x.y(deep.0.name:s*)",
            served("x.y", &json!({"deep": [{"name": "s1"}]})),
            DENY,
        ),
        ("x.y(n:3)", served("x.y", &json!({"n": 3})), DENY),
        (
            "x.y(force:true)",
            served("x.y", &json!({"force": true})),
            DENY,
        ),
        (
            "x.y(force:true)",
            served("x.y", &json!({"force": false})),
            ASK,
        ),
        ("x.y(a.b:1)", served("x.y", &json!({"a.b": 1})), DENY),
        ("x.y(a:*)", served("x.y", &json!({"a": {"b": 1}})), ASK),
    ] {
        deny(&[rule], &scene, expect);
    }
}

#[test]
fn files_named_by_reading_commands_are_covered_too() {
    let deny_key = ["Read(secrets/**)"];
    for (line, expect) in [
        ("cat secrets/key", DENY),
        ("/bin/cat secrets/key", DENY),
        ("cat ./secrets/../secrets/key", DENY),
        ("head -n 3 'secrets/key'", DENY),
        ("timeout 5 tail secrets/key", DENY),
        ("sed -n 1p secrets/key", DENY),
        ("sed -e 1p secrets/key", DENY),
        ("sed secrets/key other", ASK),
        ("cat -- secrets/key", DENY),
        ("grep -n . secrets/key", DENY),
        ("grep -ne . secrets/key", DENY),
        ("grep --regexp=. secrets/key", DENY),
        ("grep --file=secrets/key x", DENY),
        ("grep secrets/key other", ALLOW),
        ("diff /dev/null secrets/key", DENY),
        ("cat < secrets/key", DENY),
        ("cat x && cat secrets/key", DENY),
        ("sh -c 'cat secrets/key'", DENY),
        ("cat public/key", ALLOW),
    ] {
        deny(&deny_key, &run(line), expect);
    }
    let mut scene = run("cat key");
    scene.arguments = r#"{"command":"cat key","cwd":"secrets"}"#.to_owned();
    deny(&["Read(/secrets/**)"], &scene, DENY);
    deny(
        &["Edit(secrets/**)"],
        &run("sed -i s/a/b/ secrets/key"),
        DENY,
    );
    deny(&["Edit(secrets/**)"], &run("cat secrets/key"), ALLOW);
    deny(&["Edit"], &run("echo x > out.txt"), DENY);
    deny(&["Edit"], &run("ls 2> /dev/null"), ALLOW);
    ask(&["Read(.env)"], &run("cat .env"), ASK);
}

#[test]
fn what_reads_unasked_reads_no_denied_file() {
    // AP5: a command that walks a folder or shows a repository does not name the file.
    for (line, expect) in [
        ("grep -r '' .", ASK),
        ("grep -r ''", ASK),
        ("grep -nR x", ASK),
        ("grep -d recurse x .", ASK),
        ("grep --recursive x .", ASK),
        ("grep --dereference-recursive x conf", ASK),
        ("cd conf && grep -r x .", ASK),
        ("ls && timeout 5 grep -r x .", ASK),
        ("diff -r . other", ASK),
        ("diff conf other", ASK),
        ("git diff", ASK),
        ("git diff -U0 --stat", ASK),
        ("git diff --cached", ASK),
        ("git diff HEAD -- src", ASK),
        ("git diff -- conf", ASK),
        ("git log -p -1", ASK),
        ("git log -L1,9:x", ASK),
        ("git log -p --follow -- src/a", ASK),
        ("git show", ASK),
        ("git show -s 5f2c1e", ASK),
        ("git status -v", ASK),
        ("git diff -- conf/prod/key", DENY),
        ("git diff /dev/null conf/prod/key", DENY),
        ("git log -p -- conf/prod/key", DENY),
        ("git show HEAD:conf/prod/key", DENY),
        ("grep -fconf/prod/key x", DENY),
        ("grep -nfconf/prod/key x", DENY),
        ("wc --files0-from=conf/prod/key", DENY),
        ("wc --files0-from conf/prod/key", DENY),
        ("du --files0-from=conf/prod/key", DENY),
        ("grep -r conf/prod/key src", ALLOW),
        ("grep -r x src", ALLOW),
        ("grep -n x README.md", ALLOW),
        ("diff -r src other", ALLOW),
        ("git diff --stat", ALLOW),
        ("git diff -- src", ALLOW),
        ("git log --oneline -5", ALLOW),
        ("git log --stat -M -1", ALLOW),
        ("git log -p -- src lib", ALLOW),
        ("git status --short", ALLOW),
        ("wc -l src/a", ALLOW),
    ] {
        deny(&["Read(conf/prod/*)"], &run(line), expect);
    }
    for rule in ["Read(.env)", "Read(**/key)", "Read(//home/dev/app/.env)"] {
        deny(&[rule], &run("grep -r x ."), ASK);
        deny(&[rule], &run("git diff"), ASK);
        ask(&[rule], &run("grep -r x ."), ASK);
    }
    deny(&["Read"], &run("grep -r x"), DENY);
    deny(&["Edit(.env)"], &run("grep -r x ."), ALLOW);
}

#[test]
fn the_value_of_an_option_is_no_folder_and_ends_no_options() {
    for (line, expect) in [
        ("grep -rn -A 2 x", ASK),
        ("grep -r -m 1 x", ASK),
        ("grep --label -- -r x", ASK),
        ("grep -rf src/pat", ASK),
        ("grep --unknown -r 1 x", ASK),
        ("git log -p --since -- src", ASK),
        ("git log --decorate-refs -- -p", ASK),
        ("grep -rn -A 2 x src", ALLOW),
        ("git log -p -M -- src", ALLOW),
        ("git log -p -n 3 -- src", ALLOW),
    ] {
        deny(&["Read(conf/prod/*)"], &run(line), expect);
    }
}

#[test]
fn another_way_to_a_denied_file_is_denied_or_asked_about() {
    for (line, expect) in [
        // AP11: by another path to the same folder.
        ("cat ../app/conf/prod/key", DENY),
        ("cat ../../dev/app/conf/prod/key", DENY),
        ("cd src && cat ../../app/conf/prod/key", DENY),
        ("git diff /dev/null ../app/conf/prod/key", DENY),
        ("grep -r x ..", ASK),
        ("diff -r ../app src", ASK),
        ("git diff -- ../app/conf", ASK),
        ("cd src && grep -r x ../../app", ASK),
        ("cat /proc/self/cwd/conf/prod/key", ASK),
        ("head -1 /proc/1/root/conf/prod/key", ASK),
        ("grep -r x /proc/self/cwd/conf", ASK),
        ("cat /proc/cpuinfo", ALLOW),
        ("cat ../other/conf/prod/key", ALLOW),
        // AP12: by an option that shows more than the given files.
        ("git log -p --full-diff -- src", ASK),
        ("git log -p -U0 --since=monday -5 -- src", ALLOW),
        // AP13: after many letters, and after more than are inspected.
        ("grep -nnnnnnnnnnnfconf/prod/key x", DENY),
        ("tail -qqqqqqqqqqqqconf/prod/key", DENY),
        (&format!("tail -{}conf/prod/key", "q".repeat(70)), ASK),
        ("tail -n1000 src/a", ALLOW),
    ] {
        deny(&["Read(conf/prod/*)"], &run(line), expect);
    }
}

#[test]
fn deny_then_ask_then_allow_whatever_is_narrower() {
    let lists = |deny, ask, allow| Lists { deny, ask, allow };
    let scene = write("src/a.rs");
    check(lists(&["Edit(**)"], &[], &["Edit(src/a.rs)"]), &scene, DENY);
    check(lists(&[], &["Edit"], &["Edit(src/a.rs)"]), &scene, ASK);
    check(lists(&["write_file"], &["*"], &["*"]), &scene, DENY);
    check(lists(&["edit_file"], &[], &["*"]), &scene, ALLOW);
    ask(&["Read(a)"], &read("a"), ASK);
    ask(&["Read(a)"], &read("b"), ALLOW);
}

#[test]
fn each_effect_needs_its_own_allow_and_the_highest_counts() {
    let two = tool(
        "move_file",
        Risk::High,
        &json!({}),
        vec![
            Permission::write(PathClaim::plain("src/a")),
            Permission::write(PathClaim::plain("docs/a")),
        ],
    );
    allow(&["Edit(src/**)"], &two, ASK);
    allow(&["Edit(src/**)", "Edit(docs/**)"], &two, ALLOW);
    allow(&["move_file"], &two, ALLOW);
    check(
        Lists {
            deny: &["Edit(docs/**)"],
            allow: &["move_file"],
            ask: &[],
        },
        &two,
        DENY,
    );
}

#[test]
fn a_spec_that_is_riskier_than_its_stated_effects_is_judged_by_itself() {
    let odd = tool(
        "delete_file",
        Risk::Critical,
        &json!({}),
        vec![Permission::write(PathClaim::plain("a"))],
    );
    allow(&["Edit(a)"], &odd, ASK);
    allow(&["delete_file(a)"], &odd, ASK);
    allow(&["delete_file"], &odd, ALLOW);
}

#[test]
fn p18_a_rule_for_a_class_never_lets_a_critical_change_run() {
    let removal = |tool_name: &str, risk| {
        let effect = Permission::remove(PathClaim::plain("a")).at(risk);
        tool(tool_name, risk, &json!({"path": "a"}), vec![effect])
    };
    let critical = removal("delete_file", Risk::Critical);
    for (rules, expect) in [
        (&["Edit(a)"][..], ASK),
        (&["Edit(/a)"], ASK),
        (&["Edit"], ASK),
        (&["Edit", "Edit(a)"], ASK),
        (&["delete_file(a)"], ALLOW),
        (&["delete_file(b)"], ASK),
        (&["delete_file"], ALLOW),
        (&["*"], ALLOW),
    ] {
        allow(rules, &critical, expect);
    }
    // A patch that deletes a file is as harmful as one that empties it; the user's rule for changes covers both.
    allow(&["Edit(a)"], &removal("apply_patch", Risk::High), ALLOW);
    // Denying changes also denies removals, whatever their risk.
    for rule in ["Edit(a)", "Edit", "Read(a)", "delete_file"] {
        let lists = Lists {
            deny: &[rule],
            allow: &["*"],
            ..Lists::default()
        };
        assert_eq!(judge(lists, &critical).verdict, DENY, "{rule}");
    }
}

#[test]
fn p5_a_kept_rule_covers_the_call_it_was_kept_for_and_no_other() {
    let kept = |rule: &str, tool: &str, rest: &str| {
        let rules = RuleSet {
            allow: vec![RuleText::new(rule).kept_for(tool, rest)],
            ..RuleSet::default()
        };
        builder(Profile::Workspace, rules).build().unwrap()
    };
    let verdict = |policy: &Policy, scene: &Scene| policy.judge(&scene.call()).verdict;
    let path = kept("Edit(/a)", "write_file", UNSTATED);
    assert_eq!(verdict(&path, &write("a")), ALLOW);
    assert_eq!(verdict(&path, &write("b")), ASK);
    // Another tool, other remaining arguments, a removal, and a call with unknown remaining arguments.
    let edit = tool(
        "edit_file",
        Risk::High,
        &json!({"path": "a"}),
        write("a").permissions,
    );
    assert_eq!(verdict(&path, &edit), ASK);
    assert_eq!(
        verdict(&kept("Edit(/a)", "write_file", "other"), &write("a")),
        ASK
    );
    let patch = |effect| tool("apply_patch", Risk::High, &json!({}), vec![effect]);
    let by_patch = kept("Edit(/a)", "apply_patch", UNSTATED);
    let (change, removal) = (
        Permission::write(PathClaim::plain("a")),
        Permission::remove(PathClaim::plain("a")),
    );
    assert_eq!(verdict(&by_patch, &patch(change)), ALLOW);
    assert_eq!(verdict(&by_patch, &patch(removal)), ASK);
    let scene = write("a");
    let unknown = JudgedCall::new(&scene.spec, &scene.arguments, &scene.permissions, &NO_RUN);
    assert_eq!(path.judge(&unknown).verdict, ASK);
    // Bare names, too.
    let bare = kept("refund", "refund", UNSTATED);
    assert_eq!(verdict(&bare, &served("refund", &json!({}))), ALLOW);
    assert_eq!(verdict(&bare, &served("other", &json!({}))), ASK);
    // Half a limit, or a limit on a deny or ask rule, would mean less than intended: an error.
    let half = RuleText {
        tool: Some("write_file".to_owned()),
        ..RuleText::new("Edit(/a)")
    };
    let whole = RuleText::new("Edit(/a)").kept_for("write_file", UNSTATED);
    for rules in [
        RuleSet {
            allow: vec![half],
            ..RuleSet::default()
        },
        RuleSet {
            deny: vec![whole.clone()],
            ..RuleSet::default()
        },
        RuleSet {
            ask: vec![whole],
            ..RuleSet::default()
        },
    ] {
        assert!(builder(Profile::Workspace, rules).build().is_err());
    }
}

#[test]
fn an_allow_needs_the_link_and_its_target_a_deny_takes_either() {
    let through = |path, target| {
        tool(
            "write_file",
            Risk::High,
            &json!({}),
            vec![Permission::write(linked(path, target))],
        )
    };
    for (path, target, expect) in [
        ("src/a", "src/b", ALLOW),
        ("src/a", "lib/b", ASK),
        ("lib/a", "src/b", ASK),
        ("src/a", "docs/b", ALLOW),
    ] {
        allow(
            &["Edit(src/**)", "Edit(docs/**)"],
            &through(path, target),
            expect,
        );
    }
    for (path, target, expect) in [
        ("src/a", "secrets/b", DENY),
        ("secrets/a", "src/b", DENY),
        ("src/a", "src/b", ALLOW),
    ] {
        let lists = Lists {
            deny: &["Edit(secrets/**)"],
            ask: &[],
            allow: &["Edit"],
        };
        check(lists, &through(path, target), expect);
        let lists = Lists {
            deny: &[],
            ask: &["Edit(secrets/**)"],
            allow: &["Edit"],
        };
        check(lists, &through(path, target), expect.min(ASK));
    }
    allow(&["Edit"], &through("a", "/etc/passwd"), DENY);
}

#[test]
fn no_rule_for_commands_covers_what_a_redirection_writes() {
    let mut scene = run("ls");
    scene
        .permissions
        .push(Permission::write(PathClaim::plain("out.txt")));
    for rule in ["Bash", "run_command", "Bash(ls)"] {
        allow(&[rule], &scene, ASK);
        allow(&[rule, "Edit(out.txt)"], &scene, ALLOW);
    }
}

#[test]
fn a_deny_in_any_layer_is_final_and_names_its_layer() {
    let deny = Lists {
        deny: &["Edit(src/**)"],
        ..Lists::default()
    };
    let allow = Lists {
        allow: &["*", "Edit"],
        ..Lists::default()
    };
    for (first, second) in [("/etc", "user"), ("user", "/etc")] {
        let mut set = deny.set().in_layer(first);
        set.extend(allow.set().in_layer(second));
        let ruling = builder(Profile::Trusted, set)
            .build()
            .unwrap()
            .judge(&write("src/a").call());
        assert_eq!(
            (ruling.verdict, &*ruling.rule, &*ruling.layer),
            (DENY, "Edit(src/**)", first)
        );
    }
}

#[test]
fn a_walk_shows_only_what_could_be_read_by_name() {
    let policy = policy(
        Profile::Workspace,
        Lists {
            deny: &["Read(secrets/**)", "grep_files(*.min.js)", "Edit(a)"],
            ask: &["Read(.env)"],
            allow: &["Read"],
        },
    );
    for (tool, path, shown) in [
        ("grep_files", "src/a", true),
        ("grep_files", "x/secrets/key", false),
        ("list_files", "secrets", false),
        ("grep_files", "x/a.min.js", false),
        ("list_files", "x/a.min.js", true),
        ("list_files", ".env", false),
        ("list_files", "a", true),
    ] {
        assert_eq!(policy.may_show(tool, path), shown, "{tool} {path}");
    }
}

#[test]
fn a_bare_deny_takes_the_tool_away() {
    let policy = policy(
        Profile::Workspace,
        Lists {
            deny: &["write_file", "Bash", "github.*", "Read(secrets/**)"],
            ..Lists::default()
        },
    );
    for (name, rule) in [
        ("write_file", Some("write_file")),
        ("run_command", Some("Bash")),
        ("kill_command", Some("Bash")),
        ("github.x", Some("github.*")),
        ("read_file", None),
        ("edit_file", None),
    ] {
        assert_eq!(policy.removes(name), rule, "{name}");
    }
}
