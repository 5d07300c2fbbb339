//! What a change of rules lets through, as a table; and that no change is missed, judged by random calls.

mod agreement;
mod judged;

use super::{RuleDifference, VerdictChange};
use crate::profile::Profile;
use crate::rules::{RuleSet, RuleText};
use crate::tests::{Lists, builder, policy};
use haft_types::permission::Verdict;

/// Describes a difference: the change, the rule, and the example.
fn describe(one: &RuleDifference) -> String {
    let example = one.example.as_deref().filter(|value| !value.is_empty());
    let example = example.or(one.tool.as_deref()).unwrap_or("-");
    format!("{}: {} e.g. {example}", one.change, one.rule)
}

fn differences(old: Lists<'_>, new: Lists<'_>) -> Vec<RuleDifference> {
    let old = policy(Profile::Workspace, old);
    old.rule_differences(&policy(Profile::Workspace, new))
}

fn allow<'a>(allow: &'a [&'a str]) -> Lists<'a> {
    Lists {
        allow,
        ..Lists::default()
    }
}

fn deny<'a>(deny: &'a [&'a str]) -> Lists<'a> {
    Lists {
        deny,
        ..Lists::default()
    }
}

fn ask<'a>(ask: &'a [&'a str]) -> Lists<'a> {
    Lists {
        ask,
        ..Lists::default()
    }
}

#[test]
fn a_new_allow_rule_is_named_where_the_others_do_not_cover_it() {
    for (old, new, expect) in [
        (
            &[][..],
            &["Bash(git push *)"][..],
            "Bash(git push *) e.g. git push",
        ),
        (&["Bash(git *)"], &["Bash(git push *)"], ""),
        (&["Bash(git:*)"], &["Bash(git *)"], ""),
        (
            &["Bash(git push)"],
            &["Bash(git push *)"],
            "Bash(git push *) e.g. git push a",
        ),
        (&["Bash(*)"], &["Bash(git push *)"], ""),
        (&["Bash"], &["Bash(find * -delete)"], ""),
        // No pattern reaches what only an exact rule allows.
        (
            &["Bash(find *)"],
            &["Bash(find . -delete)"],
            "Bash(find . -delete) e.g. find . -delete",
        ),
        (&["Bash(find . -delete)"], &["Bash(find .  -delete)"], ""),
        (&["Bash(ls *)"], &["Bash(timeout 5 ls)"], ""),
        (&["Bash(* --version)"], &["Bash(git --version)"], ""),
        (&["Edit(/src/**)"], &["Edit(/src/*.rs)"], ""),
        (
            &["Edit(/src/*.rs)"],
            &["Edit(/src/**)"],
            "Edit(/src/**) e.g. src/a",
        ),
        (&["Edit(*.rs)"], &["Edit(/src/**/*.rs)"], ""),
        (&["Edit(/src/**)"], &["Edit(//home/dev/app/src/**)"], ""),
        (&["Edit(//home/dev/**)"], &["Edit(/src/**)"], ""),
        (
            &["Edit(/src/[a-m]*)", "Edit(/src/[!a-m]*)"],
            &["Edit(/src/*)"],
            "",
        ),
        (
            &["Edit(/src/**)"],
            &["write_file(/src/a)"],
            "write_file(/src/a) e.g. src/a",
        ),
        (&["Read(**)"], &["Read(.env)"], "Read(.env) e.g. .env"),
        (
            &["WebFetch(domain:*.a.org)"],
            &["WebFetch(domain:x.a.org)"],
            "",
        ),
        (
            &["WebFetch(domain:x.a.org)"],
            &["WebFetch(domain:*.a.org)"],
            "WebFetch(domain:*.a.org) e.g. a.a.org",
        ),
        (&["Network(*.a.org)"], &["Network(x.a.org:443)"], ""),
        (
            &["Network(*.a.org)"],
            &["Network(x.a.org:8443)"],
            "Network(x.a.org:8443) e.g. x.a.org:8443",
        ),
        (
            &["Network(*:443)"],
            &["Network(10.0.0.7:443)"],
            "Network(10.0.0.7:443) e.g. 10.0.0.7:443",
        ),
        (
            &["Network(a.org)"],
            &["Network(private:a.org:443)"],
            "Network(private:a.org:443) e.g. a.org:443",
        ),
        (&["Sign(https:*.a.org)"], &["Sign(https:x.a.org)"], ""),
        (
            &["Sign(https:a.org)"],
            &["Sign(ssh:a.org)"],
            "Sign(ssh:a.org) e.g. ssh:a.org",
        ),
        (&["a.b"], &["a.*"], "a.* e.g. a."),
        (&["a.*"], &["a.b(x:1)"], ""),
        (&["a.b(x:*)"], &["a.b(x:1)"], ""),
        (&["a.b(x:1)"], &["a.b(y:1)"], "a.b(y:1) e.g. y: 1"),
        (&["a.b(x:1*)"], &["a.b(x:*)"], "a.b(x:*) e.g. x: "),
        (&["Bash(a *)", "Bash(b *)"], &["Bash(b *)", "Bash(a *)"], ""),
    ] {
        let found = differences(allow(old), allow(&[old, new].concat()));
        let found: Vec<String> = found.iter().map(describe).collect();
        let expect: Vec<String> = [expect]
            .iter()
            .filter(|one| !one.is_empty())
            .map(|one| format!("newly allowed: {one}"))
            .collect();
        assert_eq!(found, expect, "{old:?} {new:?}");
    }
}

#[test]
fn a_missing_deny_or_ask_rule_is_named_where_the_others_do_not_cover_it() {
    for (old, new, expect) in [
        (
            deny(&["Bash(git push *)"]),
            deny(&[]),
            "no longer denied: Bash(git push *) e.g. git push",
        ),
        (deny(&["Bash(git push *)"]), deny(&["Bash(git *)"]), ""),
        (
            deny(&["Bash(git push *)"]),
            ask(&["Bash(git *)"]),
            "asked now, was denied: Bash(git push *) e.g. git push",
        ),
        (ask(&["Bash(git push *)"]), deny(&["Bash(git push*)"]), ""),
        (
            ask(&["Bash(git *)"]),
            ask(&["Bash(git push *)"]),
            "no longer asked about by a rule: Bash(git *) e.g. git",
        ),
        (deny(&["Edit(/src/a/**)"]), deny(&["Edit(/src/**)"]), ""),
        (
            deny(&["Read(/a)", "Read(/b)"]),
            deny(&["Read(/a)"]),
            "no longer denied: Read(/b) e.g. b",
        ),
        (deny(&["Bash"]), deny(&["*"]), ""),
        (
            deny(&["WebFetch(domain:a.org)"]),
            deny(&["WebFetch(domain:*)"]),
            "",
        ),
        (
            deny(&["WebFetch(domain:a.org)"]),
            deny(&["WebFetch(domain:*.org)"]),
            "",
        ),
        (
            deny(&["Network(a.org)"]),
            deny(&["Network(a.org:443)"]),
            "no longer denied: Network(a.org) e.g. a.org:0",
        ),
        (deny(&["a.*"]), deny(&["*"]), ""),
        (
            deny(&["*(x:1)"]),
            deny(&["a.*(x:1)"]),
            "no longer denied: *(x:1) e.g. x: 1",
        ),
    ] {
        let found = differences(old, new);
        let found: Vec<String> = found
            .iter()
            .filter(|one| one.change.is_looser() && one.change != VerdictChange::OpenToPrograms)
            .map(describe)
            .collect();
        let expect: Vec<&str> = [expect].into_iter().filter(|one| !one.is_empty()).collect();
        assert_eq!(found, expect, "{old:?} {new:?}");
    }
}

#[test]
fn a_deny_rule_on_files_that_becomes_an_ask_rule_opens_them_to_programs() {
    let found = differences(deny(&["Edit(/keys/**)"]), ask(&["Edit(/keys/**)"]));
    let found: Vec<VerdictChange> = found.iter().map(|one| one.change).collect();
    assert_eq!(
        found,
        [
            VerdictChange::AskedNow,
            VerdictChange::OpenToPrograms,
            VerdictChange::NewlyAsked
        ][..2]
    );
}

#[test]
fn an_earlier_ask_rule_that_no_longer_stands_first_opens_a_private_address() {
    let wide_first = ask(&["WebFetch(domain:*)", "WebFetch(domain:10.0.0.7:443)"]);
    let place_first = ask(&["WebFetch(domain:10.0.0.7:443)", "WebFetch(domain:*)"]);
    assert_eq!(differences(wide_first, wide_first), []);
    let found: Vec<String> = differences(wide_first, place_first)
        .iter()
        .map(describe)
        .collect();
    assert_eq!(
        found,
        ["asked now, was denied: WebFetch(domain:10.0.0.7:443) e.g. 10.0.0.7:443"]
    );
    let found = differences(place_first, wide_first);
    assert!(found.iter().all(|one| !one.change.is_looser()), "{found:?}");
}

#[test]
fn a_saved_rule_is_compared_for_its_own_calls() {
    let saved = |rule: &str, tool: &str, digest: &str| RuleText::new(rule).kept_for(tool, digest);
    let set = |rules: &[RuleText]| {
        let rules = RuleSet {
            allow: rules.to_vec(),
            ..RuleSet::default()
        };
        builder(Profile::Workspace, rules.in_layer("test"))
            .build()
            .unwrap()
    };
    let one = saved("Bash(git push)", "run_command", "rest");
    for (old, new, expect) in [
        (vec![], one.clone(), Some("git push")),
        (vec![one.clone()], one.clone(), None),
        (vec![RuleText::new("Bash(git *)")], one.clone(), None),
        (
            vec![saved("Bash(git *)", "run_command", "rest")],
            one.clone(),
            None,
        ),
        (
            vec![saved("Bash(git *)", "run_command", "other")],
            one.clone(),
            Some("git push"),
        ),
        (vec![one], RuleText::new("Bash(git push)"), Some("git push")),
    ] {
        let new = [old.clone(), vec![new]].concat();
        let found = set(&old).rule_differences(&set(&new));
        let found: Vec<_> = found
            .iter()
            .map(|one| one.example.as_deref().unwrap())
            .collect();
        assert_eq!(
            found,
            expect.into_iter().collect::<Vec<_>>(),
            "{old:?} {new:?}"
        );
    }
}

#[test]
fn examples_are_judged_by_both_policies() {
    let found = differences(allow(&[]), allow(&["Bash(git push *)"]));
    let [one] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(
        (one.before, one.after),
        (Some(Verdict::Ask), Some(Verdict::Allow))
    );
    assert_eq!(
        one.to_line(),
        "newly allowed: Bash(git push *), e.g. running `git push` (ask before, allow now)"
    );
    // A denied command is not newly allowed, whatever allow rule came.
    let old = deny(&["Bash(git push *)"]);
    let new = Lists {
        allow: &["Bash(git push *)"],
        ..old
    };
    assert_eq!(differences(old, new), []);
}

#[test]
fn what_cannot_be_decided_counts_as_looser() {
    let long = format!("Bash({})", "a".repeat(5_000));
    let stars = format!("Bash({})", "*a".repeat(700));
    for rule in [&long, &stars] {
        let (old, new) = ([stars.as_str(), "Bash(b*)"], [rule.as_str()]);
        let found = differences(allow(&old[1..]), allow(&new));
        assert!(
            found
                .iter()
                .any(|one| one.change == VerdictChange::NewlyAllowed),
            "{rule}"
        );
    }
    assert_eq!(differences(allow(&[&long]), allow(&[&long])), []);
    assert!(differences(allow(&[&long]), allow(&[&format!("{long} ")])).is_empty());
}

#[test]
fn stricter_changes_are_named_and_are_not_looser() {
    let found = differences(allow(&["Bash(a *)"]), deny(&["Bash(b *)"]));
    let found: Vec<_> = found
        .iter()
        .map(|one| (one.change, one.change.is_looser()))
        .collect();
    assert_eq!(
        found,
        [
            (VerdictChange::NewlyDenied, false),
            (VerdictChange::NoLongerAllowed, false)
        ]
    );
}

/// A rule for some requests, or for several arguments, is never taken for one that covers all of them.
#[test]
fn rules_on_requests_and_on_several_arguments_cover_only_what_the_same_rule_does() {
    let reading = "Network(a.b: GET /repos/**)";
    let all = "Network(a.b)";
    let both = "s.t(repo: acme/*, kind: bug)";
    let one = "s.t(repo: acme/*)";
    for (old, new, expect) in [
        (allow(&[]), allow(&[reading]), "newly allowed"),
        (allow(&[reading]), allow(&[all]), "newly allowed"),
        (allow(&[all]), allow(&[reading]), ""),
        (allow(&[reading]), allow(&[reading]), ""),
        (
            allow(&[reading]),
            allow(&["Network(a.b: * /**)"]),
            "newly allowed",
        ),
        (
            allow(&[]),
            allow(&["WebFetch(domain:a.b: GET /x)"]),
            "newly allowed",
        ),
        (deny(&[reading]), deny(&[]), "no longer denied"),
        (deny(&[all]), deny(&[reading]), "no longer denied"),
        (deny(&[reading]), deny(&[all]), ""),
        (ask(&[reading]), ask(&[]), "no longer asked about by a rule"),
        (allow(&[]), allow(&[both]), "newly allowed"),
        (allow(&[both]), allow(&[one]), "newly allowed"),
        (allow(&[one]), allow(&[both]), ""),
        (
            allow(&[both]),
            allow(&["s.t(repo: acme/*, kind: *)"]),
            "newly allowed",
        ),
        (deny(&[both]), deny(&[]), "no longer denied"),
        (deny(&[one]), deny(&[both]), "no longer denied"),
        (deny(&[both]), deny(&[one]), ""),
        // One that is narrower, or no wider, is covered by one rule alone.
        (
            allow(&["Network(a.b: GET /a/**)"]),
            allow(&["Network(a.b: GET /a/b)"]),
            "",
        ),
        (
            allow(&["Network(a.b: GET,HEAD /a/**)"]),
            allow(&["Network(a.b:443: GET /a/*)"]),
            "",
        ),
        (
            allow(&["Network(a.b: GET /a/**)"]),
            allow(&["Network(a.b:8443: GET /a/b)"]),
            "newly allowed",
        ),
        (
            allow(&["Network(a.b:443: GET /a/**)"]),
            allow(&["Network(a.b: GET /a/b)"]),
            "newly allowed",
        ),
        (
            allow(&["Network(a.b: GET /a/**)"]),
            allow(&["Network(a.b: POST /a/b)"]),
            "newly allowed",
        ),
        (
            allow(&["Network(a.b: GET /a/**?x=1)"]),
            allow(&["Network(a.b: GET /a/b)"]),
            "newly allowed",
        ),
        (
            allow(&["Network(a.b: GET /a/**)"]),
            allow(&["WebFetch(domain:a.b: GET /a/b)"]),
            "newly allowed",
        ),
        (
            deny(&["Network(a.b: * /a/**)", "Network(a.b: GET /a/b)"]),
            deny(&["Network(a.b: * /a/**)"]),
            "",
        ),
        (
            deny(&["Network(a.b: GET /a/**)"]),
            deny(&["Network(*.b: * /a/**)", "Network(a.b: * /a/**)"]),
            "",
        ),
        (
            deny(&["Network(a.b: GET /a/b)"]),
            deny(&["Network(a.b:443: GET /a/**)"]),
            "no longer denied",
        ),
        (
            deny(&["Network(a.b: GET /a/b)"]),
            ask(&["Network(a.b: GET /a/**)"]),
            "asked now, was denied",
        ),
        (
            allow(&["s.t(repo: acme/*, kind: *)"]),
            allow(&["s.t(repo: acme/x, kind: bug)"]),
            "",
        ),
        (
            deny(&["s.t(repo: acme/x, kind: bug, a: b)"]),
            deny(&["s.t(repo: acme/*, kind: bug)"]),
            "",
        ),
        (
            deny(&["s.t(repo: acme/*, kind: bug)"]),
            deny(&["s.t(repo: acme/x, kind: bug)"]),
            "no longer denied",
        ),
    ] {
        let found = differences(old, new);
        let looser: Vec<String> = found
            .iter()
            .filter(|one| one.change.is_looser())
            .map(|one| one.change.to_string())
            .collect();
        let shown = format!("{old:?} {new:?} {found:?}");
        assert_eq!(looser.is_empty(), expect.is_empty(), "{shown}");
        assert!(looser.iter().all(|change| change == expect), "{shown}");
    }
}

#[test]
fn patterns_of_absurd_size_are_compared_within_bounds() {
    let stars = "*".repeat(1_000);
    let deep = "**/".repeat(1_000);
    let pairs = "a*".repeat(700);
    let names = "[!a]".repeat(900);
    for (old, new) in [
        (format!("Bash({stars}a)"), format!("Bash({stars})")),
        (format!("Edit(/{deep}a)"), format!("Edit(/{deep}b)")),
        (format!("Bash({pairs}b)"), format!("Bash({pairs})")),
        (format!("Edit(/{names})"), format!("Edit(/{names}a)")),
        (
            format!("Edit(/{{a,{{b,c}}}}{deep})"),
            "Edit(/{a,b}/**)".to_owned(),
        ),
        ("Bash(grüße *)".to_owned(), "Bash(\u{1f600} *)".to_owned()),
    ] {
        let found = differences(allow(&[&old]), allow(&[&new]));
        assert!(
            found.iter().any(|one| one.change.is_looser()),
            "{old:.40} {new:.40}"
        );
    }
}

/// Each rule for a private port was judged with all rules, also where nothing near it had changed.
#[test]
fn rules_for_private_ports_that_stay_cost_nothing() {
    let ports: Vec<String> = (0..2_000)
        .map(|port| format!("Network(10.0.0.1:{})", port + 1))
        .collect();
    let old: Vec<&str> = ports.iter().map(String::as_str).collect();
    let new = [&old[..], &["Network(10.0.0.2:80)"]].concat();
    let found = differences(allow(&old), allow(&new));
    let found: Vec<String> = found.iter().map(describe).collect();
    assert_eq!(
        found,
        ["newly allowed: Network(10.0.0.2:80) e.g. 10.0.0.2:80"]
    );
}
