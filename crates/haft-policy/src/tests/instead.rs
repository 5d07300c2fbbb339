//! What a denial says can be done instead.

use super::*;

#[test]
fn advice_names_what_rules_allow_of_the_same_kind() {
    let lists = Lists {
        deny: &[
            "Bash(git push *)",
            "Edit(/lib/**)",
            "WebFetch(domain:evil.example)",
        ],
        allow: &[
            "Bash",
            "Bash(npm run *)",
            "run_command(cargo test)",
            "Edit(/src/**)",
            "edit_file(/docs/**)",
            "WebFetch(domain:docs.example)",
            "Read(.env)",
            "web_search(query:x)",
        ],
        ..Lists::default()
    };
    let redirected = tool(
        "edit_file",
        Risk::High,
        &json!({}),
        vec![Permission::write(PathClaim::plain("lib/a"))],
    );
    for (scene, says) in [
        (
            run("git push origin"),
            "commands that run without approval: npm run *, cargo test",
        ),
        (
            write("lib/a"),
            "paths that may be changed without approval: /src/**",
        ),
        (
            redirected,
            "paths that may be changed without approval: /src/**, /docs/**",
        ),
        (
            fetch("evil.example"),
            "hosts that may be fetched: docs.example",
        ),
    ] {
        let ruling = judge(lists, &scene);
        assert_eq!(ruling.verdict, DENY);
        assert!(ruling.advice.ends_with(says), "{}", ruling.advice);
    }
}

#[test]
fn advice_names_no_rule_where_none_speaks_of_the_kind() {
    let lists = Lists {
        deny: &["Bash(git push *)", "Edit(/lib/**)"],
        allow: &["Bash", "Edit", "Bash(npm run *; curl *)"],
        ..Lists::default()
    };
    for scene in [run("git push origin"), write("lib/a")] {
        let advice = judge(lists, &scene).advice;
        assert!(advice.ends_with("not permitted here"), "{advice}");
    }
}

#[test]
fn advice_names_no_rule_that_another_list_decides_before() {
    for (deny, ask, says) in [
        (&["Edit(/docs/**)"][..], &[][..], "not permitted here"),
        (&["Edit"], &[], "not permitted here"),
        (
            &["Edit(/docs/a/**)"],
            &["Edit(/docs/**)"],
            "not permitted here",
        ),
        (&["Edit(/docs/a/**)"], &[], "without approval: /docs/**"),
    ] {
        let lists = Lists {
            deny,
            ask,
            allow: &["Edit(/docs/**)"],
        };
        let advice = judge(lists, &write("docs/a/x")).advice;
        assert!(advice.ends_with(says), "{deny:?} {ask:?}: {advice}");
    }
}

#[test]
fn advice_names_a_few_rules_at_most() {
    let rules: Vec<String> = (0..9).map(|n| format!("Edit(/src{n}/**)")).collect();
    let allow: Vec<&str> = rules.iter().map(String::as_str).collect();
    let lists = Lists {
        allow: &allow,
        deny: &["Edit(/lib/**)"],
        ..Lists::default()
    };
    let advice = judge(lists, &write("lib/a")).advice;
    assert!(advice.ends_with("/src3/**, /src4/**, …"), "{advice}");
}
