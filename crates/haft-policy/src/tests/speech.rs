//! What the policy tells users and models: reasons, advice, suggested rules, explanations, the view.

use super::*;

/// The advice for the model and for the operator.
struct Advice {
    model: &'static str,
    operator: &'static str,
}

/// The advice for a model where no guard has a better one.
const ANOTHER_WAY: &str = "do it another way, or tell the user that it is not permitted here";

fn says(profile: Profile, lists: Lists<'_>, scene: &Scene, reason: &str, told: &Advice) {
    let ruling = policy(profile, lists).judge(&scene.call());
    assert!(ruling.reason.contains(reason), "{ruling:?}");
    assert_eq!(&*ruling.operator, told.operator, "{ruling:?}");
    assert_eq!(&*ruling.advice, told.model, "{ruling:?}");
    // U6: advice for a model never says how to loosen a rule.
    for word in ["--profile", "rule", "allow it"] {
        assert!(!ruling.advice.contains(word), "{ruling:?}");
    }
}

#[test]
fn a_refusal_names_what_would_allow_it() {
    let none = Lists::default();
    let by = |operator| Advice {
        model: ANOTHER_WAY,
        operator,
    };
    says(
        Profile::Workspace,
        none,
        &write("src/a.rs"),
        "requires approval to write src/a.rs (high risk)",
        &by("allow it with the rule Edit(/src/a.rs) or --profile trusted"),
    );
    says(
        Profile::ReadOnly,
        none,
        &write("src/a.rs"),
        "denies writing",
        &by("allow it with --profile trusted"),
    );
    says(
        Profile::Workspace,
        none,
        &fetch("example.com"),
        "requires approval to connect to https://example.com/x",
        &by("allow it with the rule WebFetch(domain:example.com)"),
    );
    says(
        Profile::ReadOnly,
        none,
        &fetch("example.com"),
        "denies connecting",
        &by("allow it with --profile workspace and the rule WebFetch(domain:example.com)"),
    );
    says(
        Profile::Workspace,
        none,
        &run("npm test"),
        "Profile `workspace` requires approval to run npm test",
        &by("allow it with the rule Bash(npm test) or --profile trusted"),
    );
    let deny = Lists {
        deny: &["Edit(src/**)"],
        ..none
    };
    says(
        Profile::Trusted,
        deny,
        &write("src/a.rs"),
        "The deny rule Edit(src/**) of test matches writing src/a.rs",
        &by("remove or narrow the deny rule Edit(src/**) of test"),
    );
    says(
        Profile::Trusted,
        none,
        &write(".git/x"),
        "protected",
        &Advice {
            model: "ask the user to change that file",
            operator: "no rule can override this",
        },
    );
    says(
        Profile::Workspace,
        none,
        &served("a.b", &json!({})),
        "requires approval to call a.b",
        &by("allow it with the rule a.b"),
    );
    let long = "x".repeat(10_000);
    assert!(
        policy(Profile::Workspace, none)
            .judge(&write(&long).call())
            .reason
            .len()
            < 400
    );
}

/// Returns the rules that a text for the operator advises.
fn advised(operator: &str) -> Vec<&str> {
    let named = operator
        .split_once("the rules ")
        .or_else(|| operator.split_once("the rule "));
    let named = named.map_or("", |(_, rest)| rest);
    let end = named.find([';', ','].as_slice()).unwrap_or(named.len());
    let named = named[..end].split(" or --profile").next().unwrap_or(named);
    let all = named.split(" and ").filter(|rule| !rule.is_empty());
    all.collect()
}

#[test]
fn what_is_advised_would_let_the_call_run() {
    let rows = [
        write("src/a.rs"),
        write(".git/x"),
        write(".env"),
        read(".env"),
        write("../a"),
        run("npm test"),
        run("rm -rf /"),
        run("make; $X"),
        fetch("example.com"),
        fetch("127.0.0.1"),
        served("a.b", &json!({})),
        removal("e.txt", Risk::High),
        removal("e.txt", Risk::Critical),
        tool("wipe", Risk::Critical, &json!({}), Vec::new()),
    ];
    let asks = Lists {
        ask: &["Edit(/e.txt)", "Bash", "wipe"],
        ..Lists::default()
    };
    let mut tried = 0;
    for profile in [Profile::ReadOnly, Profile::Workspace, Profile::Trusted] {
        for (lists, scene) in [Lists::default(), asks]
            .iter()
            .flat_map(|lists| rows.iter().map(move |scene| (*lists, scene)))
        {
            let ruling = policy(profile, lists).judge(&scene.call());
            let operator = ruling.operator.to_string();
            assert_eq!(operator.is_empty(), ruling.verdict == ALLOW, "{ruling:?}");
            if operator.starts_with("remove or narrow") {
                let after = policy(profile, Lists::default()).judge(&scene.call());
                assert!(after.verdict <= ruling.verdict, "{ruling:?}");
                continue;
            }
            let with = Lists {
                allow: &advised(&operator),
                ..lists
            };
            let other = if operator.contains("--profile workspace") {
                Profile::Workspace
            } else {
                profile
            };
            if !with.allow.is_empty() {
                let after = policy(other, with).judge(&scene.call());
                assert_eq!(after.verdict, ALLOW, "{profile} {ruling:?}");
                tried += 1;
            }
            if operator.contains("--profile trusted") {
                let after = policy(Profile::Trusted, lists).judge(&scene.call());
                assert_eq!(after.verdict, ALLOW, "{profile} {ruling:?}");
                tried += 1;
            }
        }
    }
    assert!(tried > 10, "{tried}");
}

/// Returns the same call with another argument.
fn with(scene: Scene, name: &str, value: Value) -> Scene {
    let mut arguments = serde_json::from_str::<Value>(&scene.arguments).unwrap();
    arguments[name] = value;
    Scene {
        arguments: arguments.to_string(),
        ..scene
    }
}

fn removal(path: &str, risk: Risk) -> Scene {
    let effect = Permission::remove(PathClaim::plain(path)).at(risk);
    tool("delete_file", risk, &json!({"path": path}), vec![effect])
}

#[test]
fn suggested_rules_allow_the_call_and_nothing_beside_it() {
    for (scene, rules) in [
        (write("src/a.rs"), &["Edit(/src/a.rs)"][..]),
        (write("a [1]*?.txt"), &["Edit(/a \\[1]\\*\\?.txt)"]),
        (run("git commit -m 'a b'"), &["Bash(git commit -m 'a b')"]),
        (run("make 'x *'"), &["Bash(make x\\ \\*)"]),
        (run("find . -exec x"), &["Bash(find . -exec x)"]),
        (fetch("example.com"), &["WebFetch(domain:example.com)"]),
        (served("a.b", &json!({})), &["a.b"]),
        (run("make; ls"), &["Bash(make)"]),
        (
            run("make a && make 'b *' > out.txt"),
            &["Bash(make a)", "Bash(make b\\ \\*)", "Edit(/out.txt)"],
        ),
        (run("make $X"), &[]),
        (run("make; $X"), &[]),
        (run("NODE_ENV=x make"), &[]),
        (run("make; (("), &[]),
        (run("a; b; c; d; e; f"), &[]),
        (run("rm -rf /"), &[]),
        (write(".git/x"), &[]),
        (write("a "), &[]),
        (read("a"), &[]),
        // P5: a rule would say less than what is shown.
        (run("bash <<< 'ls'"), &[]),
        (run("python3 - <<'E'\nprint()\nE"), &[]),
        (run("python3 < ok.py"), &[]),
        (run("cat <(make)"), &[]),
        (with(run("make"), "cwd", json!("evil")), &[]),
        (with(run("make"), "cwd", json!("./")), &["Bash(make)"]),
        (with(run("make"), "env", json!({"X": "; touch pwn"})), &[]),
        (with(run("make"), "env", json!({"NO_COLOR": "1"})), &[]),
        (with(run("make"), "env", json!({})), &["Bash(make)"]),
        // P18: removals and critical calls need approval each time.
        (removal("a", Risk::High), &[]),
        (removal("a", Risk::Critical), &[]),
        (tool("wipe", Risk::Critical, &json!({}), Vec::new()), &[]),
    ] {
        let before = policy(Profile::Workspace, Lists::default());
        let found = before.suggest(&scene.call());
        assert_eq!(found, rules);
        if !found.is_empty() {
            let texts: Vec<&str> = found.iter().map(String::as_str).collect();
            let lists = Lists {
                allow: &texts,
                ..Lists::default()
            };
            assert_eq!(judge(lists, &scene).verdict, ALLOW, "{found:?}");
            for other in [
                write("src/b.rs"),
                write("a [1]xy.txt"),
                run("git commit -m a"),
                run("make 'x y'"),
                fetch("a.example.com"),
            ] {
                assert_eq!(judge(lists, &other).verdict, ASK, "{found:?} {other:?}");
            }
        }
    }
}

#[test]
fn an_explanation_holds_every_part_and_layer() {
    let mut set = Lists {
        allow: &["Edit(src/**)"],
        ..Lists::default()
    }
    .set()
    .in_layer("user");
    set.extend(
        Lists {
            ask: &["Bash"],
            ..Lists::default()
        }
        .set()
        .in_layer("workspace"),
    );
    let policy = builder(Profile::Workspace, set).build().unwrap();
    let explained = serde_json::to_value(policy.explain(&write("src/a.rs").call())).unwrap();
    assert_eq!(explained["tool"], "write_file");
    assert_eq!(explained["verdict"], "allow");
    assert_eq!(
        explained["parts"],
        json!([
            {"kind": "call", "value": "write_file", "verdict": "allow", "rule": "profile workspace", "layer": "profile"},
            {"kind": "write", "value": "src/a.rs", "verdict": "allow", "rule": "Edit(src/**)", "layer": "user"},
        ])
    );
    let layers: Vec<(&str, &str, &str)> = explained["layers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| {
            (
                l["layer"].as_str().unwrap(),
                l["verdict"].as_str().unwrap(),
                l["rule"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        layers,
        [
            ("workspace", "none", ""),
            ("user", "allow", "Edit(src/**)"),
            ("guard", "allow", "guard workspace-edge"),
            ("guard", "allow", "guard protected-paths"),
            ("guard", "allow", "guard agent-instructions"),
            ("guard", "allow", "guard command-changes"),
            ("guard", "allow", "guard unknown-names"),
            ("guard", "allow", "guard private-addresses"),
            ("guard", "allow", "guard rule-proposals"),
            ("guard", "allow", "guard command-lines"),
            ("guard", "allow", "guard own-commands"),
            ("profile", "ask", "profile workspace"),
        ]
    );
    assert!(explained.get("enabled").is_none());
}

#[test]
fn the_view_holds_all_rules_in_their_order() {
    let lists = Lists {
        allow: &["Read"],
        ask: &["Bash"],
        deny: &["Edit(x)"],
    };
    let view = serde_json::to_value(policy(Profile::Trusted, lists).view()).unwrap();
    assert_eq!(view["profile"], "trusted");
    assert_eq!(
        view["rules"][0],
        json!({"list": "deny", "rule": "Edit(x)", "layer": "test"})
    );
    assert_eq!(view["rules"][2]["list"], "allow");
    assert_eq!(view["guards"].as_array().unwrap().len(), 9);
}

#[test]
fn reason_of_several_effects_when_verdicts_are_equal_is_of_the_most_serious() {
    // The risks of writes in order, and the path that the reason names.
    for (risks, rules, expect) in [
        ([Risk::High, Risk::High], Lists::default(), "write a"),
        ([Risk::High, Risk::Critical], Lists::default(), "write b"),
        ([Risk::Critical, Risk::High], Lists::default(), "write a"),
        // A rule says more than the profile.
        (
            [Risk::Critical, Risk::High],
            Lists {
                ask: &["Edit(/b)"],
                ..Lists::default()
            },
            "Edit(/b)",
        ),
    ] {
        let mut scene = write("a");
        let paths = ["a", "b"].into_iter().zip(risks);
        let each = paths.map(|(path, risk)| Permission::write(PathClaim::plain(path)).at(risk));
        scene.permissions = each.collect();
        let ruling = policy(Profile::Workspace, rules).judge(&scene.call());
        assert!(ruling.reason.contains(expect), "{expect}: {ruling:?}");
    }
}

/// The words of a test may become others, among them ones that run a command: the rule does not match what is written.
#[test]
fn a_rule_that_could_only_match_once_the_words_are_known_is_named_so() {
    for (rule, line, says) in [
        (
            "Bash(git push *)",
            "for f in *.txt; do [ -f $f ]; done",
            "could match running [ -f $f ]: not all of it is known before it runs",
        ),
        (
            "Bash(git push *)",
            "git push $x",
            "matches running git push $x",
        ),
        ("Bash(git push *)", "git $x", "could match running git $x"),
    ] {
        let lists = Lists {
            ask: &[rule],
            ..Lists::default()
        };
        let ruling = judge(lists, &run(line));
        assert!(ruling.reason.contains(says), "{line}: {}", ruling.reason);
        assert_eq!(ruling.verdict, ASK, "{line}");
    }
}
