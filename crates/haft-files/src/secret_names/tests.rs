//! Tables of names that mark a file as secret.

use super::{SECRET_NAMES, SecretNames};

#[test]
fn every_standard_entry_can_be_read() {
    let names = SecretNames::default();
    assert_eq!(names.entries().count(), SECRET_NAMES.len());
}

#[test]
fn files_that_hold_secrets_are_known_by_name() {
    let names = SecretNames::default();
    for path in [
        ".env",
        ".ENV",
        "apps/web/.env.local",
        ".env.production",
        ".env.production.local",
        ".env-staging",
        "deploy/prod.env",
        "server.pem",
        "certs/tls.key",
        "a.p12",
        "id_rsa",
        "id_ed25519",
        "keys/id_rsa_work",
        "id_ecdsa.bak",
        ".npmrc",
        "packages/a/.npmrc",
        ".pypirc",
        ".netrc",
        "credentials",
        "credentials.json",
        "credentials-prod.yml",
        ".cargo/credentials.toml",
        "application_default_credentials.json",
        "service-account.json",
        "gcp_service_account_key.json",
        "myServiceAccountKey.json",
        "app-firebase-adminsdk-x1.json",
        ".aws/config",
        "home/.ssh/config",
        ".docker/config.json",
        ".git-credentials",
        "kubeconfig",
        ".kube/config",
        "infra/terraform.tfvars",
        "terraform.tfstate",
        "config/secrets.yml",
        "/root/.aws/credentials",
    ] {
        assert!(names.covers(path), "{path}");
    }
}

#[test]
fn examples_code_and_fixtures_hold_no_secrets() {
    let names = SecretNames::default();
    for path in [
        "",
        ".",
        ".env.example",
        ".env.sample",
        ".env.template",
        ".env.dist",
        ".env.local.example",
        "example.env",
        "envrc",
        "env.ts",
        "src/env.rs",
        "credentials.rs",
        "src/credentials.py",
        "src/credentials/mod.rs",
        "packages/credentials/index.json",
        "id_generator.py",
        "id_rsa.pub",
        "id_rsa_parser.rs",
        "keys.ts",
        "secrets.py",
        "keyboard.json",
        "monkey.txt",
        "tests/fixtures/server.pem",
        "internal/testdata/tls.key",
        "node_modules/x/.npmrc",
        ".venv/lib/python3.12/site-packages/certifi/cacert.pem",
        "vendor/x/server.key",
        ".ssh/known_hosts",
        ".ssh/id_rsa.pub",
        "config.json",
        "notes/credentials.md",
        ".git/config",
        "credentials.yml.enc",
    ] {
        assert!(!names.covers(path), "{path}");
    }
}

#[test]
fn a_copy_counts_as_what_it_is_a_copy_of() {
    let names = SecretNames::default();
    for (path, expect) in [
        (".env~", true),
        (".env.swp", true),
        (".env.swo", true),
        ("#.env#", true),
        ("apps/web/.#.env", true),
        (".env.bak", true),
        (".env.orig", true),
        ("id_rsa.bak", true),
        ("credentials.json~", true),
        (".npmrc.save", true),
        (".npmrc~", true),
        (".netrc.2026-01-31", true),
        ("server.key.old", true),
        ("server.pem.gz", true),
        (".secrets.yml.swp", true),
        ("secrets (1).yml", true),
        (".aws.bak/config", true),
        (".kube-old/config~", true),
        (".env.example~", false),
        ("#.env.example#", false),
        (".env.sample.swp", false),
        (".env.example.bak", false),
        ("example.env.orig", false),
        ("credentials.rs~", false),
        (".credentials.rs.swp", false),
        ("id_rsa.pub.bak", false),
        ("cacert.pem.old", false),
        ("fixtures/server.key~", false),
        ("notes.txt~", false),
        ("main.rs.orig", false),
    ] {
        assert_eq!(names.covers(path), expect, "{path}");
    }
    let names = names.with(["!.npmrc", "!*.swp", "*.token"]).unwrap();
    for (path, expect) in [
        (".npmrc~", false),
        (".env.swp", false),
        (".env~", true),
        ("a.token.bak", true),
    ] {
        assert_eq!(names.covers(path), expect, "{path}");
    }
}

#[test]
fn the_last_entry_that_fits_decides() {
    let names = SecretNames::default();
    let more = [
        "!.npmrc",
        "tokens/",
        "/deploy/*.json",
        "a*b*c",
        "fixtures/.env",
    ];
    let names = names.with(more).unwrap();
    for (path, expect) in [
        (".npmrc", false),
        ("tokens/a/b.txt", true),
        ("x/tokens/a", true),
        ("tokens", false),
        ("deploy/x.json", true),
        ("x/deploy/x.json", false),
        ("a1b2c", true),
        ("abc", true),
        ("acb", false),
        ("fixtures/.env", true),
        ("fixtures/.env.local", false),
    ] {
        assert_eq!(names.covers(path), expect, "{path}");
    }
    assert!(names.covers_folder("x/tokens") && !names.covers_folder("credentials"));
}

#[test]
fn folders_that_can_hold_none_need_no_look() {
    let names = SecretNames::default();
    assert!(names.may_lie_below("src") && names.may_lie_below(".ssh"));
    assert!(!names.may_lie_below("web/node_modules") && !names.may_lie_below(".git/objects"));
    let names = names.with(["node_modules/x/.env"]).unwrap();
    assert!(names.may_lie_below("web/node_modules"));
}

#[test]
fn what_is_no_name_is_refused() {
    let names = SecretNames::default();
    for wrong in [
        "", "!", "/", "*", "**", "a/**/b", "../x", "a//b", " .env", "x\n", "**/",
    ] {
        let refused = names.with([wrong]);
        assert!(refused.is_err(), "{wrong:?}");
    }
    assert!(names.with([&*"a".repeat(201)]).is_err());
}

#[test]
fn a_path_has_causes_if_and_only_if_it_is_covered() {
    for added in [
        &[][..],
        &["conf/", "!conf/a*"],
        &["!.env", ".env.*"],
        &["!*.pem", "conf/*.pem", "!/conf/"],
    ] {
        let names = SecretNames::default().with(added.iter().copied()).unwrap();
        for path in [
            "",
            ".",
            "conf",
            "conf/a.txt",
            "conf/.env",
            "a/conf/k.pem",
            "conf/k.pem",
            ".env",
            ".env.example",
            ".env.local~",
            ".ssh",
            ".ssh/id_rsa.pub",
            "/etc/conf/x",
            "node_modules/.env",
        ] {
            let causes = names.causes(path);
            assert_eq!(causes.is_empty(), !names.covers(path), "{added:?} {path}");
            let causes = names.causes_of_folder(path);
            let covered = names.covers_folder(path);
            assert_eq!(causes.is_empty(), !covered, "{added:?} {path}");
        }
    }
}
