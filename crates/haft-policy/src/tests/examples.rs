//! Rules as text: which are parsed, which are refused, and which are found to have no effect.

use std::sync::Arc;

use super::*;
use crate::rules::RuleText;
use crate::rules::RulesError;
use crate::rules::rule::RuleList;

fn table(rule: &str, matches: &[&str], no_match: &[&str]) -> RuleText {
    let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
    RuleText {
        matches: owned(matches),
        no_match: owned(no_match),
        ..RuleText::new(rule)
    }
}

fn set(list: RuleList, rule: RuleText) -> RuleSet {
    let mut set = RuleSet::default();
    match list {
        RuleList::Deny => set.deny.push(rule),
        RuleList::Ask => set.ask.push(rule),
        RuleList::Allow => set.allow.push(rule),
    }
    set.in_layer("user")
}

#[test]
fn examples_hold_or_the_rules_are_refused() {
    for (list, rule, matches, no_match) in [
        (
            RuleList::Allow,
            "Bash(npm run *)",
            &["npm run test", "timeout 5 npm run x"][..],
            &["npm runs", "npm run a; rm b"][..],
        ),
        (
            RuleList::Deny,
            "Bash(rm *)",
            &["rm -rf x", "ls; rm x", "A=1 rm x"],
            &["echo rm x"],
        ),
        (
            RuleList::Allow,
            "Edit(src/**)",
            &["src/a.rs", "./src/b"],
            &["lib/src/a", "src"],
        ),
        (RuleList::Deny, "Read(.env)", &["a/.env"], &["a/.envrc"]),
        (
            RuleList::Allow,
            "WebFetch(domain:*.example.com)",
            &[
                "https://a.example.com/x?y",
                "https://u:p@a.example.com:443/",
            ],
            &["https://example.com", "https://a.example.com:8443/"],
        ),
        (
            RuleList::Ask,
            "github.create_issue(repo:a/*)",
            &["repo:a/b"],
            &["repo:b", "owner:a/b"],
        ),
        (RuleList::Deny, "mcp__github", &["github.x"], &["gitlab.x"]),
        (
            RuleList::Allow,
            "Bash",
            &["make all", "make; ls"],
            &["make > x", "eval x"],
        ),
    ] {
        let good = builder(
            Profile::Workspace,
            set(list, table(rule, matches, no_match)),
        );
        assert!(good.build().is_ok(), "{rule}");
        for (swapped, expected) in [
            (table(rule, no_match, &[]), "match"),
            (table(rule, &[], matches), "no_match"),
        ] {
            let set = set(list, swapped);
            let report = set.check(&crate::PolicyContext::default());
            let error = builder(Profile::Workspace, set).build().unwrap_err();
            let RulesError::Example {
                rule: named,
                expected: got,
                layer,
                ..
            } = &error
            else {
                panic!("{error}");
            };
            assert_eq!(
                (named.as_str(), *got, layer.as_str()),
                (rule, expected, "user")
            );
            assert!(
                !report.ok && report.failures[0].expected == expected,
                "{report:?}"
            );
        }
    }
}

#[test]
fn what_is_no_rule_is_refused_with_the_form_that_works() {
    for (list, rule, says) in [
        (RuleList::Allow, "", "Tool(specifier)"),
        (RuleList::Deny, "Bash(rm", "Bash(…)"),
        (RuleList::Deny, "Bash()", "empty"),
        (RuleList::Deny, "Bash(rm) x", "Bash(…)"),
        (RuleList::Deny, "Bash('rm)", "quote"),
        (RuleList::Deny, "run command", "not a tool name"),
        (RuleList::Deny, "(x)", "not a tool name"),
        (RuleList::Deny, "Edit(!src/**)", "negated"),
        (RuleList::Allow, "read_*", "server.*"),
        (RuleList::Allow, "mcp__*", "mcp__server__*"),
        (RuleList::Allow, "mcp__*__x", "mcp__server__*"),
        (RuleList::Allow, "*(path:x)", "must name its tool"),
    ] {
        let error = builder(Profile::Workspace, set(list, rule.into()))
            .build()
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(says) && error.contains("user"),
            "{rule}: {error}"
        );
    }
}

#[test]
fn rules_that_can_never_match_are_found_with_the_form_that_works() {
    for (rule, form) in [
        ("Bash(command:rm *)", "Bash(rm *)"),
        ("Write(out.txt)", "Edit(out.txt)"),
        ("Write", "Edit"),
        ("Grep(src/**)", "Read(src/**)"),
        ("Edit(../x/**)", "Edit(//absolute/path/**)"),
        ("Edit(path:src/**)", "Edit(src/**)"),
        (
            "WebFetch(https://example.com)",
            "WebFetch(domain:example.com)",
        ),
        (
            "WebFetch(domain:https://example.com/x)",
            "WebFetch(domain:example.com)",
        ),
        (
            "WebFetch(domain:*.example.com:443)",
            "WebFetch(domain:example.com)",
        ),
        (
            "WebFetch(url:https://example.com)",
            "WebFetch(domain:example.com)",
        ),
        (
            "github.create_issue(src/**)",
            "github.create_issue(parameter:value)",
        ),
        ("Bash(curl * | sh)", "Bash(curl *) and Bash(sh)"),
        ("Bash(npm test && ls)", "Bash(npm test) and Bash(ls)"),
        ("Bash(ls > out)", "Edit(…) for a target"),
    ] {
        let deny = set(RuleList::Deny, rule.into());
        let report = deny.check(&crate::PolicyContext::default());
        assert!(
            !report.ok && report.failures[0].expected.contains(form),
            "{rule}: {report:?}"
        );
        let policy = builder(Profile::Workspace, deny).build().unwrap();
        assert_eq!(policy.findings().len(), 1, "{rule}");
        assert!(!policy.check().ok);
        let allow = builder(Profile::Workspace, set(RuleList::Allow, rule.into()))
            .build()
            .unwrap();
        assert!(!allow.check().ok && allow.findings().len() == 1, "{rule}");
    }
    let homeless = set(RuleList::Deny, "Edit(~/x)".into());
    assert!(!homeless.check(&crate::PolicyContext::default()).ok);
    assert!(
        builder(Profile::Workspace, homeless)
            .build()
            .unwrap()
            .check()
            .ok
    );
}

#[test]
fn settings_hold_rules_as_text_or_table() {
    let text = json!({
        "allow": ["Read", {"rule": "Bash(npm *)", "match": ["npm test"], "no_match": ["npx x"], "reason": "why"}],
        "deny": [],
    });
    let set: RuleSet = serde_json::from_value(text).unwrap();
    assert_eq!(set.allow[0], RuleText::new("Read"));
    assert_eq!(set.allow[1].reason.as_deref(), Some("why"));
    for wrong in [
        json!({"allow": [{"rule": "Read", "matches": []}]}),
        json!({"permit": []}),
        json!({"allow": [1]}),
    ] {
        assert!(
            serde_json::from_value::<RuleSet>(wrong.clone()).is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn f8_rules_are_held_against_the_tools_of_a_registry() {
    let name = ToolName::new("read_file").unwrap();
    let tools = [Arc::new(ToolSpec::new(name, "", json!({"type": "object"})))];
    for (rule, says) in [
        ("read_fil", "did you mean `read_file`?"),
        ("Raed(x)", "did you mean `Read`?"),
        ("write_file(a)", "unknown tool or class `write_file`"),
    ] {
        let rules = RuleSet {
            deny: vec![rule.into()],
            ..RuleSet::default()
        };
        let builder = Policy::builder(Profile::Workspace).rules(rules);
        let error = builder.for_tools(tools.clone()).build().unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
    let fine = RuleSet {
        deny: ["read_file", "Read(x)", "Bash", "*", "srv.tool", "read_*"]
            .map(Into::into)
            .to_vec(),
        ..RuleSet::default()
    };
    let builder = Policy::builder(Profile::Workspace).rules(fine);
    assert!(builder.for_tools(tools.clone()).build().is_ok());
}
