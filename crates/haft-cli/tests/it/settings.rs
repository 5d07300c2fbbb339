//! Settings, trust and their errors on the command line.

use std::os::unix::fs::PermissionsExt;

use crate::harness::Lab;

#[test]
fn a_broken_haft_toml_shows_the_spot() {
    let lab = Lab::new();
    lab.file("haft.toml", "# mine\n[policy]\nprofil = \"trusted\"\n");
    let ran = lab.run(&["config", "show", "--json", "--trust"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (5, ""));
    insta::assert_snapshot!("unknown-key", ran.stderr);
    lab.file("haft.toml", "[policy]\nprofile = \"trusted\n");
    insta::assert_snapshot!("syntax", lab.run(&["config", "--trust"]).stderr);
    lab.file("haft.toml", "[limits]\nmax_calls = \"many\"\n");
    insta::assert_snapshot!("wrong-type", lab.run(&["config", "--trust"]).stderr);
    lab.file(
        "haft.toml",
        "[limits]\ncall_timeout_s = 60\ntotal_timeout_s = 10\n",
    );
    insta::assert_snapshot!("bounds", lab.run(&["config", "--trust"]).stderr);
}

#[test]
fn trust_lets_a_folder_s_settings_count_until_it_is_taken_back() {
    let lab = Lab::new();
    lab.file(
        "haft.toml",
        "[policy]\nprofile = \"trusted\"\ndeny = [\"Bash\"]\n",
    );
    let profile = |args: &[&str]| {
        let mut all = vec!["config", "explain", "policy.profile", "--json"];
        all.extend(args);
        let ran = lab.run(&all);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let warnings = ran.stderr.matches("not trusted").count();
        (ran.json()["value"].as_str().unwrap().to_owned(), warnings)
    };
    assert_eq!(profile(&[]), ("workspace".to_owned(), 1));
    assert_eq!(profile(&["--trust"]), ("trusted".to_owned(), 0));
    assert_eq!(profile(&["--workspace", "."]), ("workspace".to_owned(), 1));
    assert_eq!(lab.run(&["trust"]).code, 0);
    assert_eq!(profile(&[]), ("trusted".to_owned(), 0));
    let store = lab.home().join("trust.json");
    assert_eq!(
        store.metadata().unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(lab.run(&["trust", "--remove"]).code, 0);
    assert_eq!(profile(&["-q"]), ("workspace".to_owned(), 0));
}

#[test]
fn explain_says_what_a_value_beat() {
    let lab = Lab::new();
    lab.user_settings("[limits]\nmax_calls = 7\n");
    let ran = lab.run(&[
        "config",
        "explain",
        "limits.max_calls",
        "-c",
        "limits.max_calls=9",
    ]);
    let text = ran
        .stdout
        .replace(lab.work().parent().unwrap().to_str().unwrap(), "ROOT");
    insta::assert_snapshot!("explain", text);
    let shown = lab.run(&["config", "show", "--json"]).json();
    let all = shown.as_array().unwrap();
    let entry = all.iter().find(|e| e["key"] == "limits.max_calls").unwrap();
    assert_eq!(
        (&entry["value"], &entry["layer"]),
        (&7.into(), &"user".into())
    );
}

#[test]
fn secrets_are_never_shown() {
    let lab = Lab::new();
    lab.user_settings("[store]\nurl = \"postgres://u:${env:DB_PASSWORD}@host/db\"\n");
    let mut command = lab.command(&["config", "show"]);
    command.env("DB_PASSWORD", "hush-hush");
    let ran = crate::harness::ended(command.spawn().unwrap());
    assert!(ran.stdout.contains("${env:DB_PASSWORD}") && !ran.stdout.contains("hush"));
    let ran = lab.run(&["config", "show"]);
    assert_eq!(ran.code, 5);
    assert!(
        ran.stderr.contains("the variable DB_PASSWORD is not set"),
        "{}",
        ran.stderr
    );
}

#[test]
fn init_writes_a_first_file_and_never_over_one() {
    let lab = Lab::new();
    assert_eq!(lab.run(&["config", "init"]).code, 0);
    assert_eq!(lab.run(&["config", "show", "--trust"]).code, 0);
    let ran = lab.run(&["config", "init"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("already exists"));
}

#[test]
fn the_schema_knows_every_key() {
    let schema = Lab::new().run(&["config", "schema"]).json();
    let at = |pointer: &str| {
        schema
            .pointer(pointer)
            .unwrap_or_else(|| panic!("{pointer}"))
    };
    assert_eq!(
        at("/properties/policy/properties/profile/default"),
        "workspace"
    );
    assert_eq!(
        at("/properties/tools/additionalProperties/properties/enabled/type"),
        "boolean"
    );
    assert_eq!(at("/properties/tools/properties/enable/type"), "array");
    let server = "/properties/mcp/properties/servers/additionalProperties";
    let network = format!("{server}/properties/sandbox/properties/network/type");
    assert_eq!(at(&network), "string");
    assert_eq!(at(&format!("{server}/additionalProperties")), false);
    assert_eq!(at("/additionalProperties"), false);
}

#[test]
fn a_settings_file_that_is_a_fifo_or_missing_is_an_error() {
    let lab = Lab::new();
    let fifo = lab.work().join("haft.toml");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    // A folder that is not trusted stops nothing.
    for (args, code) in [
        (&["config", "show"][..], 0),
        (&["config", "show", "--trust"], 5),
    ] {
        let ran = lab.run(args);
        assert_eq!(ran.code, code, "{}", ran.stderr);
        assert!(ran.stderr.contains("not a regular file"), "{}", ran.stderr);
    }
    std::fs::remove_file(fifo).unwrap();
    let ran = lab.run(&["config", "show", "--config", "nope.toml"]);
    assert_eq!(ran.code, 5);
    assert!(ran.stderr.contains("nope.toml"), "{}", ran.stderr);
}

#[test]
fn p17_a_workspace_s_settings_are_no_link_and_where_untrusted_not_quoted() {
    let lab = Lab::new();
    let secret = lab.file("secret", "root:hush:1\n");
    let outside = lab.home().parent().unwrap().join("secret");
    std::fs::rename(secret, &outside).unwrap();
    let own = lab.work().join("haft.toml");
    for (target, trust) in [
        (outside.to_str().unwrap(), &[][..]),
        (outside.to_str().unwrap(), &["--trust"]),
        ("other.toml", &[]),
    ] {
        lab.file("other.toml", "[policy]\nprofile = \"trusted\"\n");
        std::os::unix::fs::symlink(target, &own).unwrap();
        let ran = lab.run(&[&["config"], trust].concat());
        // A folder that is not trusted stops nothing: its file counts for nothing.
        let code = if trust.is_empty() { 0 } else { 5 };
        assert_eq!(ran.code, code, "{target}: {}", ran.stderr);
        assert!(ran.stderr.contains("a symbolic link"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("hush"), "{}", ran.stderr);
        std::fs::remove_file(&own).unwrap();
    }
    let rows = [
        ("root:hush:1\n", "haft.toml:1:"),
        ("hush = [[\n", "haft.toml:1:"),
        (
            "policy.deny = [\"Reed(x)\"] # hush\n",
            "unknown tool or class `Reed`",
        ),
        (
            "limits.call_timeout_s = 60 # hush\nlimits.total_timeout_s = 10 # hush\n",
            "limits.total_timeout_s",
        ),
        ("tools.read_fil.enabled = false # hush\n", "read_fil"),
        ("tools.disable = [\"read_fil\"] # hush\n", "read_fil"),
        ("limits.max_calls = \"many-hush\"\n", "not a string"),
        ("limits.max_calls = -1 # hush\n", "not an integer"),
        ("nothing = \"hush\"\n", "unknown setting `nothing`"),
        ("policy = \"hush\"\n", "is a section"),
    ];
    for (text, says) in rows {
        lab.file("haft.toml", text);
        let ran = lab.run(&["tools"]);
        assert_eq!(ran.code, 0, "{text}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{text}: {}", ran.stderr);
        let trusted = lab.run(&["tools", "--trust"]);
        assert_eq!(trusted.code, 5, "{text}: {}", trusted.stderr);
        let said = ran.stdout + &ran.stderr + &lab.run(&["policy", "check"]).stdout;
        assert!(!said.contains("hush"), "{text}: {said}");
    }
    lab.file("haft.toml", "limits.max_calls = \"many-hush\"\n");
    let ran = lab.run(&["tools", "--trust"]);
    assert!(ran.stderr.contains("many-hush"), "trusted: {}", ran.stderr);
}

#[test]
fn p16_no_error_or_view_of_the_settings_shows_a_secret() {
    let lab = Lab::new();
    for (setting, says) in [
        (
            "policy.allow=[\"${env:HUSH}\"]",
            "a rule cannot contain a secret",
        ),
        (
            "policy.deny=[{rule=\"Bash\",reason=\"${env:HUSH}\"}]",
            "a rule cannot contain a secret",
        ),
        ("tools.enable=[\"${env:HUSH}\"]", "tools.enable"),
        ("tools.read_file.bind={none=\"${env:HUSH}\"}", "none"),
        ("store.url=\"${env:HUSH}\"", "store.url"),
        ("artifacts.url=\"${env:HUSH}\"", "artifacts.url"),
    ] {
        for command in [
            &["tools"][..],
            &["policy", "show"],
            &["policy", "check"],
            &["config"],
        ] {
            let mut run = lab.command(&[command, &["-c", setting]].concat());
            let ran = run.env("HUSH", "xyzzy_(").output().unwrap();
            let said = [&ran.stdout[..], &ran.stderr].concat();
            let said = String::from_utf8(said).unwrap();
            assert!(!said.contains("xyzzy"), "{command:?} {setting}: {said}");
            if command == ["tools"] {
                assert_eq!(ran.status.code(), Some(5), "{setting}: {said}");
                assert!(said.contains(says), "{setting}: {said}");
            }
        }
    }
}
