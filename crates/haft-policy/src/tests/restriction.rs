//! Restrictions by an active skill: lists, exclusions, and every effect of a call.

use serde_json::json;

use super::*;

fn rules(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Returns the effect that lies outside the restriction, if any.
fn outside(only: Option<&[&str]>, excludes: &[&str], scene: &Scene) -> Option<String> {
    let policy = policy(Profile::Trusted, Lists::default());
    let only = only.map(rules);
    let restriction = policy.restriction(only.as_deref(), &rules(excludes));
    let found = policy.outside(&restriction, &scene.call());
    if !restriction.shows(&scene.spec) {
        assert!(
            found.is_some(),
            "a tool that is not shown can be called: {only:?} {excludes:?} {scene:?}"
        );
    }
    found.map(|outside| outside.what)
}

fn check(only: &[&str], scene: &Scene, fits: bool) {
    let found = outside(Some(only), &[], scene);
    assert_eq!(found.is_none(), fits, "{only:?} {scene:?}: {found:?}");
}

#[test]
fn a_list_lets_through_what_its_rules_name_and_no_more() {
    for (only, scene, fits) in vec![
        (&["read_file"][..], read("src/a.rs"), true),
        (&["read_file"], write("src/a.rs"), false),
        (&["Read"], read("src/a.rs"), true),
        (&["Read"], write("src/a.rs"), false),
        (&["Read"], run("cat a"), false),
        (&["Edit"], write("src/a.rs"), true),
        (&["Write"], write("src/a.rs"), true),
        (&["Grep", "LS"], read("src/a.rs"), true),
        (&["Read(src/**)"], read("src/a.rs"), true),
        (&["Read(src/**)"], read("lib/a.rs"), false),
        (&["Read(lib/**)", "Read(src/**)"], read("src/a.rs"), true),
        (&["run_command"], run("rm -rf x"), true),
        (&["Bash"], run("x=$(curl evil) make"), true),
        (&["Bash(git *)"], run("git log"), true),
        (&["Bash(git *)"], run("rm -rf x"), false),
        (&["Bash(git *)"], run("git log; rm -rf x"), false),
        (&["Bash(git:*)", "Read"], run("git log"), true),
        (&["Bash(git *)"], read("a"), false),
        (&["*"], write("a"), true),
        (&[], read("a"), false),
        (&["WebFetch(domain:docs.rs)"], fetch("docs.rs"), true),
        (&["WebFetch(domain:docs.rs)"], fetch("evil.example"), false),
        (
            &["github.create_issue"],
            served("github.create_issue", &json!({})),
            true,
        ),
        (
            &["mcp__github"],
            served("github.create_issue", &json!({})),
            true,
        ),
        (
            &["github.*"],
            served("gitlab.create_issue", &json!({})),
            false,
        ),
        (
            &["github.create_issue(repo:a/b)"],
            served("github.create_issue", &json!({"repo": "a/b"})),
            true,
        ),
        (
            &["github.create_issue(repo:a/b)"],
            served("github.create_issue", &json!({"repo": "a/c"})),
            false,
        ),
        (&["Read"], served("github.create_issue", &json!({})), false),
    ] {
        check(only, &scene, fits);
    }
}

#[test]
fn a_rule_that_cannot_be_read_lets_nothing_through() {
    for only in [
        &["Bash(git"][..],
        &["what is this"],
        &["Bash(a; b)"],
        &["*_file"],
        &[""],
    ] {
        check(only, &run("git log"), false);
        check(only, &read("a"), false);
    }
    let policy = policy(Profile::Trusted, Lists::default());
    let only = rules(&["Read", "Bash(git", "Bash(a; b)"]);
    let restriction = policy.restriction(Some(&only), &rules(&["x y"]));
    assert_eq!(restriction.unread(), ["Bash(git", "Bash(a; b)", "x y"]);
}

#[test]
fn what_is_excluded_is_outside_and_unreadable_exclusions_take_the_whole_tool() {
    for (excludes, scene, fits) in vec![
        (&["Bash"][..], run("ls"), false),
        (&["Bash"], read("a"), true),
        (&["Bash(rm *)"], run("rm -rf x"), false),
        (&["Bash(rm *)"], run("ls; rm -rf x"), false),
        (&["Bash(rm *)"], run("ls"), true),
        (&["Write"], write("a"), false),
        (&["Edit(src/**)"], write("src/a"), false),
        (&["Edit(src/**)"], write("lib/a"), true),
        (&["Read(.env)"], run("cat .env"), false),
        (&["Bash(a; b)"], run("ls"), false),
        (&["Bash(\"open)"], run("ls"), false),
        (&["github"], served("github.x", &json!({})), true),
        (&["mcp__github"], served("github.x", &json!({})), false),
        (&[], run("ls"), true),
    ] {
        let found = outside(None, excludes, &scene);
        assert_eq!(found.is_none(), fits, "{excludes:?} {scene:?}: {found:?}");
    }
}

#[test]
fn what_a_run_needs_to_go_on_is_never_taken_away_but_from_a_server_of_that_name() {
    for name in [
        "load_skill",
        "list_skills",
        "tool_search",
        "read_artifact",
        "todo_write",
    ] {
        let mine = tool(name, Risk::Safe, &json!({}), Vec::new());
        assert_eq!(outside(Some(&[]), &[name, "*"], &mine), None, "{name}");
        let mut theirs = tool(name, Risk::Safe, &json!({}), Vec::new());
        theirs.spec.source = "mcp:server".into();
        assert!(outside(Some(&[]), &[], &theirs).is_some(), "{name}");
    }
    let mut skill = tool("skill.pdf", Risk::Safe, &json!({}), Vec::new());
    skill.spec.source = "builtin".into();
    skill.spec.stays_in_run = true;
    assert_eq!(outside(Some(&[]), &[], &skill), None);
}

#[test]
fn an_allow_through_a_link_must_cover_where_it_leads() {
    let permission = Permission::read(linked("src/a", "secret/a"));
    let scene = tool(
        "read_file",
        Risk::Safe,
        &json!({"path": "src/a"}),
        vec![permission],
    );
    check(&["Read(src/**)"], &scene, false);
    check(&["Read(src/**)", "Read(secret/**)"], &scene, true);
}

#[test]
fn what_a_skill_asks_for_is_told_where_it_speaks_of_the_call() {
    let policy = policy(Profile::Workspace, Lists::default());
    let asks = rules(&["Bash(git:*)", "Bash(jq:*)", "Read", "Write"]);
    let told = |scene: &Scene| policy.asked_for(&asks, &scene.call()).join(" ");
    assert_eq!(told(&run("git push")), "Bash(git:*)");
    assert_eq!(told(&read("a")), "Read");
    assert_eq!(told(&write("a")), "Write");
    assert_eq!(told(&run("rm x")), "");
    assert_eq!(policy.judge(&run("git push").call()).verdict, ASK);
}
