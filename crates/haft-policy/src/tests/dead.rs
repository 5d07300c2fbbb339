//! Rules that decide no call: which ones are found, and that removing them changes no verdict.

use super::*;
use crate::Policy;
use crate::explain::dead::DeadCause;

const NONE: &[&str] = &[];

fn dead(lists: Lists<'_>) -> Vec<(String, DeadCause, Option<String>)> {
    let policy = policy(Profile::Workspace, lists);
    let rules = policy.view().rules;
    let name = |at: usize| rules[at].rule.clone();
    let found = policy.dead_rules().into_iter();
    found
        .map(|dead| (name(dead.at), dead.cause, dead.by.map(name)))
        .collect()
}

/// Rules for deny, ask and allow; the last is the tested rule, with the rule that shadows it, if any.
type Row<'a> = (&'a [&'a str], &'a [&'a str], &'a str, Option<&'a str>);

const ROWS: &[Row<'_>] = &[
    (&["Edit"], NONE, "Edit(/notes/**)", Some("Edit")),
    (&["*"], NONE, "Read(/a)", Some("*")),
    (&["Edit"], NONE, "write_file", Some("Edit")),
    (&["Edit"], NONE, "write_file(/notes/**)", Some("Edit")),
    (NONE, &["Edit"], "Edit(/notes/**)", Some("Edit")),
    (&["server.*"], NONE, "server.tool", Some("server.*")),
    (&["server.*"], NONE, "server.get_*", Some("server.*")),
    (&["write_file"], NONE, "write_file(/a)", Some("write_file")),
    (
        &["Edit(/src/**)"],
        NONE,
        "Edit(/src/gen/**)",
        Some("Edit(/src/**)"),
    ),
    (
        &["Edit(src/**)"],
        NONE,
        "Edit(src/**)",
        Some("Edit(src/**)"),
    ),
    (
        &["Edit(.env)"],
        NONE,
        "Edit(/config/.env)",
        Some("Edit(.env)"),
    ),
    (&["Edit(/**)"], NONE, "Edit(/src/*.rs)", Some("Edit(/**)")),
    (&["Edit(*.rs)"], NONE, "Edit(*.rs)", Some("Edit(*.rs)")),
    (
        &["Bash(git push *)"],
        NONE,
        "Bash(git push origin main)",
        Some("Bash(git push *)"),
    ),
    (
        &["Bash(git push *)"],
        NONE,
        "Bash(git push origin *)",
        Some("Bash(git push *)"),
    ),
    (
        &["Bash(git push:*)"],
        NONE,
        "Bash(git push)",
        Some("Bash(git push:*)"),
    ),
    (
        &["WebFetch(domain:*.example.org)"],
        NONE,
        "WebFetch(domain:a.b.example.org)",
        Some("WebFetch(domain:*.example.org)"),
    ),
    (
        &["Network(github)"],
        NONE,
        "Network(api.github.com)",
        Some("Network(github)"),
    ),
    (
        &["Network(example.org)"],
        NONE,
        "Network(example.org:8443)",
        Some("Network(example.org)"),
    ),
    // Each decides on something that the other does not cover.
    (&["Edit(/src/**)"], NONE, "Edit(/**)", None),
    (&["Edit(/src/*.rs)"], NONE, "Edit(/src/**)", None),
    (&["Edit(/src/gen/**)"], NONE, "Edit(/src/**)", None),
    (&["Read"], NONE, "Edit(/notes/**)", None),
    (&["run_command"], NONE, "Bash(ls)", None),
    (&["Bash(git push *)"], NONE, "Bash(git *)", None),
    (&["Bash(git push *)"], NONE, "Bash(git pushing)", None),
    (
        &["WebFetch(domain:*.example.org)"],
        NONE,
        "WebFetch(domain:example.org)",
        None,
    ),
    (
        &["Network(example.org:8443)"],
        NONE,
        "Network(example.org)",
        None,
    ),
    (&["server.tool"], NONE, "server.*", None),
    (NONE, &["Edit(/src/**)"], "Edit(/notes/**)", None),
];

#[test]
fn a_rule_is_shadowed_where_an_earlier_list_decides_all_that_it_covers() {
    for (deny, ask, allow, by) in ROWS {
        let lists = Lists {
            deny,
            ask,
            allow: &[allow],
        };
        let expect: Vec<_> = by
            .iter()
            .map(|by| {
                (
                    (*allow).to_owned(),
                    DeadCause::Shadowed,
                    Some((*by).to_owned()),
                )
            })
            .collect();
        assert_eq!(dead(lists), expect, "{deny:?} {ask:?} {allow}");
    }
}

#[test]
fn ask_rules_are_shadowed_by_bare_denials_and_by_the_same_pattern_alone() {
    for (deny, ask, found) in [
        ("Edit", "Edit(/src/**)", true),
        ("Edit(/src/**)", "Edit(/src/**)", true),
        // Removing a parent of /src/gen needs approval, but is not denied.
        ("Edit(.env)", "Edit(/config/.env)", false),
    ] {
        let lists = Lists {
            deny: &[deny],
            ask: &[ask],
            ..Lists::default()
        };
        assert_eq!(!dead(lists).is_empty(), found, "{deny} {ask}");
    }
}

#[test]
fn rules_that_match_nothing_repeat_another_or_lie_outside_are_found() {
    for (rules, expect) in [
        (&["Bash(ls; rm x)"][..], Some(DeadCause::NeverMatches)),
        (&["Read(/a)", "Read(/a)"], Some(DeadCause::Repeated)),
        (&["Edit(//etc/**)"], Some(DeadCause::Outside)),
        (&["Read(~/notes/**)"], Some(DeadCause::Outside)),
        (&["Read(~/app/notes/**)"], None),
        (&["Read(//home/**)"], None),
        (&["Read(//**/x)"], None),
        (&["Read(/a)", "Read(/b)"], None),
    ] {
        let lists = Lists {
            allow: rules,
            ..Lists::default()
        };
        let causes: Vec<_> = dead(lists).into_iter().map(|(_, cause, _)| cause).collect();
        assert_eq!(causes, expect.into_iter().collect::<Vec<_>>(), "{rules:?}");
    }
    // A deny rule outside the workspace still applies to commands.
    let lists = Lists {
        deny: &["Read(//etc/**)"],
        ..Lists::default()
    };
    assert_eq!(dead(lists), []);
}

#[test]
fn without_a_shadowed_rule_every_verdict_is_the_same() {
    let scenes = [
        write("src/gen/a.rs"),
        write("src/a.rs"),
        write("config/.env"),
        write("notes/a"),
        write("a"),
        read("a"),
        read("src/a.rs"),
        run("git push"),
        run("git push origin main"),
        run("sudo git push origin 'main'"),
        run("git push > src/gen/a"),
        run("ls"),
        fetch("a.b.example.org"),
        fetch("example.org"),
    ];
    for (deny, ask, allow, by) in ROWS.iter().filter(|row| row.3.is_some()) {
        let with = Lists {
            deny,
            ask,
            allow: &[allow],
        };
        let without = Lists {
            allow: NONE,
            ..with
        };
        let [with, without]: [Policy; 2] = [with, without].map(|l| policy(Profile::Workspace, l));
        for scene in &scenes {
            let verdict = |policy: &Policy| policy.judge(&scene.call()).verdict;
            assert_eq!(
                verdict(&with),
                verdict(&without),
                "{allow} beside {by:?}: {scene:?}"
            );
        }
    }
}

/// It would be about an argument that is called like the host.
#[test]
fn a_rule_for_any_tool_that_names_requests_is_refused_with_the_rules_to_write() {
    for (rule, form) in [
        (
            "*(h.example.com: DELETE /**)",
            Some(
                "Network(h.example.com: DELETE /**) and WebFetch(domain:h.example.com: DELETE /**)",
            ),
        ),
        (
            "c*(h.example.com: DELETE /**)",
            Some("Network(h.example.com: DELETE /**)"),
        ),
        (
            "*(domain:h.example.com: * /a)",
            Some("WebFetch(domain:h.example.com: * /a)"),
        ),
        (
            "*(localhost:8080: GET /a)",
            Some("Network(localhost:8080: GET /a)"),
        ),
        (
            "*(*.example.com: get,post /a?b=c)",
            Some("Network(*.example.com: get,post /a?b=c)"),
        ),
        (
            "*( h.example.com:443:DELETE /a )",
            Some("Network(h.example.com:443: DELETE /a)"),
        ),
        ("*(line: GET /a)", None),
        ("*(a.b: c)", None),
        ("s.t(request.line: GET /a)", None),
    ] {
        let lists = Lists {
            deny: &[rule],
            ..Lists::default()
        };
        let found = builder(Profile::Workspace, lists.set())
            .build()
            .map(|policy| policy.dead_rules());
        let found: Vec<String> = found.unwrap().into_iter().map(|dead| dead.advice).collect();
        match form {
            None => assert!(found.is_empty(), "{rule}: {found:?}"),
            Some(form) => assert!(
                matches!(&found[..], [one] if one.contains(form)),
                "{rule}: {found:?}"
            ),
        }
    }
}
