//! Which rules may be proposed to a person.

use super::super::{Classes, PROPOSED_RULE, SecretNames, refuse_proposal};
use super::*;

#[test]
fn narrow_rules_may_be_proposed_and_wide_ones_are_refused_with_the_reason() {
    let (classes, secrets): (Classes, _) = (CLASSES.into_iter().collect(), SecretNames::default());
    let refused = |rule: &str| refuse_proposal(rule, &classes, &secrets);
    for rule in [
        "Bash(npm run test)",
        "Bash(npm run *)",
        "Bash(cargo test --workspace *)",
        "Bash(python3 scripts/gen.py)",
        "run_command(git log --oneline *)",
        "Edit(/docs/**)",
        "Edit(src/*.rs)",
        "Read(/vendor/x)",
        "WebFetch(domain:docs.example.org)",
        "Network(registry.npmjs.org)",
        "Network(example.org:8443)",
        "web_search(query:rust)",
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
        ("Bash(bash -c *)", "covers anything"),
        ("Bash(/usr/bin/python3 -m *)", "covers anything"),
        ("Bash(curl https://example.org/*)", "covers anything"),
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
        ("web_search(query:*)", "not exact"),
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
