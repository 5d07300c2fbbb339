//! Profiles: the verdict where no rule matches.

use serde_json::json;

use super::*;

fn check(scene: &Scene, expect: [Verdict; 3]) {
    for (profile, expect) in [Profile::ReadOnly, Profile::Workspace, Profile::Trusted]
        .into_iter()
        .zip(expect)
    {
        let ruling = policy(profile, Lists::default()).judge(&scene.call());
        assert_eq!(ruling.verdict, expect, "{profile}: {scene:?} {ruling:?}");
    }
}

#[test]
fn each_profile_has_its_verdict_for_each_kind_of_call() {
    let unjailed = {
        let mut scene = run("make");
        scene.permissions[0].effect = Effect::Run {
            command: "make".into(),
            argv: Some(vec!["make".into()]),
            jailed: false,
            on_copy: false,
        };
        scene
    };
    let critical = Permission::write(PathClaim::plain("a")).at(Risk::Critical);
    for (scene, expect) in [
        (read("a"), [ALLOW, ALLOW, ALLOW]),
        (run("ls -la"), [ALLOW, ALLOW, ALLOW]),
        (write("a"), [DENY, ASK, ALLOW]),
        (write("/etc/passwd"), [DENY, DENY, DENY]),
        (run("make"), [DENY, ASK, ALLOW]),
        (run("make; ls"), [DENY, ASK, ALLOW]),
        (run("make; $X"), [DENY, ASK, ASK]),
        (run("make > x"), [DENY, ASK, ALLOW]),
        (run("make > /x"), [DENY, ASK, ASK]),
        (run("rm -rf /"), [DENY, ASK, ASK]),
        (unjailed, [DENY, ASK, ASK]),
        (fetch("example.com"), [DENY, ASK, ASK]),
        (served("github.create_issue", &json!({})), [DENY, ASK, ASK]),
        (
            tool("mine", Risk::Safe, &json!({}), vec![]),
            [ALLOW, ALLOW, ALLOW],
        ),
        (
            tool("mine", Risk::High, &json!({}), vec![]),
            [DENY, ASK, ALLOW],
        ),
        (
            tool("mine", Risk::Critical, &json!({}), vec![]),
            [DENY, ASK, ASK],
        ),
        (
            tool("delete_file", Risk::Critical, &json!({}), vec![critical]),
            [DENY, ASK, ASK],
        ),
    ] {
        check(&scene, expect);
    }
}

#[test]
fn no_rule_lifts_read_only() {
    let lists = Lists {
        allow: &["*", "write_file", "Edit", "Bash", "WebFetch"],
        ..Lists::default()
    };
    let policy = policy(Profile::ReadOnly, lists);
    for scene in [
        write("a"),
        run("make"),
        run("make; ls"),
        fetch("example.com"),
    ] {
        let ruling = policy.judge(&scene.call());
        assert_eq!(
            (ruling.verdict, &*ruling.rule),
            (DENY, "profile read-only"),
            "{scene:?}"
        );
    }
    assert_eq!(policy.judge(&run("ls").call()).verdict, ALLOW);
}

#[test]
fn the_risk_is_the_highest_of_spec_and_effects() {
    let scene = tool(
        "t",
        Risk::High,
        &json!({}),
        vec![Permission::read(PathClaim::plain("a"))],
    );
    let ruling = Policy::workspace().judge(&scene.call());
    assert_eq!((ruling.risk, ruling.verdict), (Risk::High, ASK));
    assert_eq!(
        Policy::workspace().judge(&write("a").call()).risk,
        Risk::High
    );
}
