//! Secret files need approval unless a rule names them.

use super::*;
use crate::secret_files::SecretFiles;

const RULE: &str = "policy.secret_files = ask";

fn allowing<'a>(allow: &'a [&'a str]) -> Lists<'a> {
    Lists {
        allow,
        ..Lists::default()
    }
}

#[test]
fn reading_and_changing_a_secret_is_asked_about_under_every_profile_that_asks() {
    for profile in [Profile::Workspace, Profile::Trusted] {
        let policy = policy(
            profile,
            allowing(&["*", "Read", "Edit", "Read(**)", "Edit(apps/**)"]),
        );
        for path in [
            ".env",
            "apps/web/.env.local",
            "certs/dev.key",
            ".aws/config",
        ] {
            let moved = tool(
                "move_file",
                Risk::High,
                &json!({}),
                vec![
                    Permission::remove(PathClaim::plain(path)),
                    Permission::write(PathClaim::plain("open.txt")),
                ],
            );
            let linked = tool(
                "read_file",
                Risk::Safe,
                &json!({}),
                vec![Permission::read(linked("plain.txt", path))],
            );
            for scene in [&read(path), &write(path), &moved, &linked] {
                let ruling = policy.judge(&scene.call());
                assert_eq!(
                    (ruling.verdict, &*ruling.rule, &*ruling.layer),
                    (ASK, RULE, "secrets"),
                    "{profile} {path} {}",
                    scene.spec.name
                );
            }
        }
        assert_eq!(policy.judge(&read(".env.example").call()).verdict, ALLOW);
    }
}

#[test]
fn a_rule_lifts_it_only_where_it_names_the_secret() {
    for (rule, path, expect) in [
        ("Read(.env)", ".env", ALLOW),
        ("Read(.env)", "apps/.env", ALLOW),
        ("Read(/.env)", "apps/.env", ASK),
        ("Read(.env*)", ".env.local", ALLOW),
        ("Read(apps/**/.env.local)", "apps/web/.env.local", ALLOW),
        ("Read(*.pem)", "certs/a.pem", ALLOW),
        ("read_file(*.pem)", "certs/a.pem", ALLOW),
        ("grep_files(*.pem)", "certs/a.pem", ASK),
        ("Read(.aws/**)", ".aws/config", ALLOW),
        ("Read(certs/**)", "certs/a.pem", ASK),
        ("Read(certs/*)", "certs/a.pem", ASK),
        ("Read(.*)", ".env", ASK),
        ("Read(**)", ".env", ASK),
        ("Read", ".env", ASK),
        ("read_file", ".env", ASK),
        ("Edit(.env)", ".env", ASK),
    ] {
        let ruling = judge(allowing(&[rule]), &read(path));
        assert_eq!(ruling.verdict, expect, "{rule} {path}");
    }
    // Among the rules that cover it, a single one that names it is enough, in any position.
    let both = judge(allowing(&["Read(**)", "Read(.env)"]), &read(".env"));
    assert_eq!(both.verdict, ALLOW);
    // The target of a link is checked separately.
    let link = tool(
        "read_file",
        Risk::Safe,
        &json!({}),
        vec![Permission::read(linked("a.txt", ".npmrc"))],
    );
    assert_eq!(judge(allowing(&["Read(a.txt)"]), &link).verdict, ASK);
    assert_eq!(judge(allowing(&["Read(.npmrc)"]), &link).verdict, ALLOW);
    let edit = judge(allowing(&["Edit(.env)"]), &write(".env"));
    assert_eq!(edit.verdict, ALLOW);
}

#[test]
fn the_setting_allows_or_denies_whatever_rules_say() {
    let with = |files, allow: &[&str], scene: &Scene| {
        let builder = builder(Profile::Workspace, allowing(allow).set());
        let policy = builder.secret_files(files).build().unwrap();
        policy.judge(&scene.call())
    };
    assert_eq!(with(SecretFiles::Allow, &[], &read(".env")).verdict, ALLOW);
    let denied = with(SecretFiles::Deny, &["Read(.env)"], &read(".env"));
    assert_eq!(denied.verdict, DENY);
    assert!(denied.reason.contains(".env"), "{denied:?}");
    let denied = with(SecretFiles::Deny, &["Edit(.env)"], &write(".env"));
    assert_eq!(denied.verdict, DENY);
}

#[test]
fn deny_rules_and_guards_stand_over_what_lifts_it() {
    let lists = Lists {
        deny: &["Read(.env)"],
        allow: &["Read(.env)", "Edit(.git/**)"],
        ..Lists::default()
    };
    let ruling = judge(lists, &read(".env"));
    assert_eq!((ruling.verdict, &*ruling.rule), (DENY, "Read(.env)"));
}

#[test]
fn what_was_approved_in_the_run_is_read_unasked_and_not_changed_so() {
    let policy = policy(Profile::Trusted, Lists::default());
    let released = [".env".to_owned()];
    let run = RunHistory {
        released: released.clone().into(),
        ..RunHistory::none()
    };
    let verdict = |scene: &Scene| {
        let call = JudgedCall {
            run: &run,
            ..scene.call()
        };
        policy.judge(&call).verdict
    };
    assert_eq!(verdict(&read(".env")), ALLOW);
    assert_eq!(verdict(&read(".env.local")), ASK);
    assert_eq!(verdict(&write(".env")), ASK);
    assert!(policy.denials().denies_reading(".env"));
    let after = policy.denials_after(&released);
    assert!(!after.denies_reading(".env") && after.denies_reading(".env.local"));
}

#[test]
fn no_rule_is_suggested_for_a_secret_and_no_model_reads_how_to_open_it() {
    let policy = policy(Profile::Workspace, Lists::default());
    for scene in [read(".env"), write(".env")] {
        assert_eq!(policy.suggest(&scene.call()), Vec::<String>::new());
        let ruling = policy.judge(&scene.call());
        let told = format!("{} {}", ruling.reason, ruling.advice);
        for word in ["rule", "policy", "secret_files", "Read("] {
            assert!(!told.contains(word), "{told}");
        }
        assert!(ruling.operator.contains("(/.env)"), "{}", ruling.operator);
    }
}

#[test]
fn explain_and_show_say_what_is_said_of_secrets() {
    let policy = policy(Profile::Workspace, allowing(&["Read(**)"]));
    let why = policy.explain(&read(".env").call());
    let layer = why.layers.iter().find(|layer| layer.layer == "secrets");
    let layer = layer.unwrap();
    assert_eq!((layer.verdict, &*layer.rule), (Some(ASK), RULE));
    assert!(why.parts.iter().any(|part| part.rule == RULE));
    let plain = policy.explain(&read("a.txt").call());
    assert!(plain.layers.iter().all(|layer| layer.layer != "secrets"));
    let view = policy.view();
    assert_eq!(view.secret_files, SecretFiles::Ask);
    assert!(view.secret_names.iter().any(|name| name == ".env"));
}

#[test]
fn programs_see_no_secret_that_no_class_rule_names() {
    let denials = |allow: &[&str]| policy(Profile::Trusted, allowing(allow)).denials();
    let none = denials(&["Read(**)", "read_file(.env)"]);
    assert!(none.denies_reading(".env") && none.denies_reading_folder(".ssh"));
    assert!(!none.denies_reading("credentials.rs") && !none.denies_reading_folder("credentials"));
    let some = denials(&["Read(.env)", "Read(.ssh/config)"]);
    assert!(!some.denies_reading("a/.env") && !some.denies_reading(".ssh/config"));
    assert!(!some.denies_reading_folder(".ssh") && some.denies_reading(".ssh/id_rsa"));
}
