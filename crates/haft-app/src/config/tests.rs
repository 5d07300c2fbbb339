//! The layers in tables: what is written where, and which value results.

use std::fs;
use std::path::Path;

use crate::config::program::ProgramSettings;
use crate::config::{LayerInputs, Settings};
use crate::environment::Environment;
use crate::problem::Problem;

/// The contents of the layers.
#[derive(Default)]
struct Layers {
    user: &'static str,
    workspace: &'static str,
    trusted: bool,
    config: &'static str,
    variables: &'static [(&'static str, &'static str)],
    options: &'static [&'static str],
    profile: Option<&'static str>,
    program: Option<ProgramSettings>,
}

fn resolve(layers: &Layers) -> Result<Settings, Problem> {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let write = |name: &str, text: &str| {
        if !text.is_empty() {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    };
    write("xdg/haft/config.toml", layers.user);
    write("work/haft.toml", layers.workspace);
    write("extra.toml", layers.config);
    fs::create_dir_all(root.join("work")).unwrap();
    let xdg = root.join("xdg");
    let mut variables = vec![("XDG_CONFIG_HOME", xdg.to_str().unwrap())];
    variables.extend(layers.variables);
    let options: Vec<String> = layers.options.iter().map(|&o| o.to_owned()).collect();
    let extra = root.join("extra.toml");
    Settings::resolve(&LayerInputs {
        environment: &Environment::from(variables.as_slice()),
        workspace: &root.join("work"),
        trusted: layers.trusted,
        always: None,
        config: (!layers.config.is_empty()).then_some(Path::new(&extra)),
        options: &options,
        profile: layers.profile,
        program: layers.program.as_ref(),
    })
}

/// Returns the key's value and the layers it comes from.
fn value(layers: &Layers, key: &str) -> String {
    let settings = resolve(layers).unwrap();
    let path: Vec<&str> = key.split('.').collect();
    match settings.entry(&path) {
        Some(entry) => {
            let from: Vec<&str> = entry.sources.iter().map(|s| s.layer.as_str()).collect();
            format!("{} {}", entry.value, from.join(","))
        }
        None => "none".to_owned(),
    }
}

#[test]
fn a_later_layer_wins_key_by_key() {
    let key = "limits.max_calls";
    let mut layers = Layers::default();
    assert_eq!(value(&layers, key), "10000 built-in");
    layers.user = "[limits]\nmax_calls = 1";
    assert_eq!(value(&layers, key), "1 user");
    layers.workspace = "[limits]\nmax_calls = 2";
    layers.trusted = true;
    assert_eq!(value(&layers, key), "2 workspace");
    layers.config = "[limits]\nmax_calls = 3";
    assert_eq!(value(&layers, key), "3 --config");
    layers.variables = &[
        ("HAFT_LIMITS__MAX_CALLS", "4"),
        ("HAFT_HOME", "/x"),
        ("HAFTX__Y", "1"),
    ];
    assert_eq!(value(&layers, key), "4 environment");
    layers.options = &["limits.max_calls=5", "limits.inline_tokens = 9"];
    assert_eq!(value(&layers, key), "5 -c");
    assert_eq!(value(&layers, "limits.inline_tokens"), "9 -c");
    assert_eq!(value(&layers, "limits.call_timeout_s"), "600 built-in");
    layers.options = &["policy.profile=trusted"];
    layers.profile = Some("read-only");
    assert_eq!(value(&layers, "policy.profile"), "\"read-only\" --profile");
}

#[test]
fn a_program_s_settings_are_the_only_layer_unless_it_wants_the_machine_s() {
    let key = "limits.max_calls";
    let program = ProgramSettings::default()
        .set(key, 7)
        .set("policy.deny", vec!["p"])
        .set("policy.deny", vec!["q"]);
    let mut layers = Layers {
        user: "[limits]\nmax_calls = 1\ninline_tokens = 5\n[policy]\ndeny = [\"a\"]",
        workspace: "[policy]\nprofile = \"read-only\"",
        variables: &[("HAFT_LIMITS__CALL_TIMEOUT_S", "4")],
        program: Some(program.clone()),
        ..Layers::default()
    };
    assert_eq!(value(&layers, key), "7 program");
    assert_eq!(
        value(&layers, "policy.deny"),
        "[\"p\", \"q\"] program,program"
    );
    let others = [
        "limits.inline_tokens",
        "limits.call_timeout_s",
        "policy.profile",
    ];
    for other in others {
        assert!(value(&layers, other).ends_with(" built-in"), "{other}");
    }
    layers.program = Some(program.with_machine());
    assert_eq!(value(&layers, key), "7 program");
    assert_eq!(value(&layers, "limits.inline_tokens"), "5 user");
    assert_eq!(value(&layers, "limits.call_timeout_s"), "4 environment");
    assert_eq!(
        value(&layers, "policy.deny"),
        "[\"a\", \"p\", \"q\"] user,program,program"
    );

    let wrong = [
        ("limits.max_call", "did you mean `limits.max_calls`?"),
        ("limits", "a section, not a key"),
        ("limits max", "is not a setting's key"),
        ("policy.profile", "takes one of"),
    ];
    for (key, says) in wrong {
        let program = Some(ProgramSettings::default().set(key, "x"));
        let problem = resolve(&Layers {
            program,
            ..Layers::default()
        });
        let problem = problem.unwrap_err();
        let text = format!("{problem}; {}", problem.advice().unwrap_or_default());
        assert!(text.contains(says), "{key}: {text}");
        assert!(
            key == "limits max" || text.contains("the embedding program"),
            "{text}"
        );
    }
}

#[test]
fn lists_add_up() {
    let layers = Layers {
        user: "[policy]\ndeny = [\"a\"]\nallow = [\"b\"]\n[tools]\ndisable = [\"x\"]",
        workspace: "[policy]\ndeny = [\"c\"]\nallow = [\"d\"]\nask = [\"e\"]\n[tools]\ndisable = [\"y\"]\nenable = [\"z\"]",
        options: &["policy.deny=[\"f\"]", "policy.deny=g"],
        ..Layers::default()
    };
    let deny = "[\"a\", \"c\", \"f\", \"g\"] user,untrusted workspace,-c,-c";
    assert_eq!(value(&layers, "policy.deny"), deny);
    assert_eq!(value(&layers, "policy.allow"), "[\"b\"] user");
    assert_eq!(
        value(&layers, "tools.disable"),
        "[\"x\", \"y\"] user,untrusted workspace"
    );
    assert_eq!(value(&layers, "tools.enable"), "none");
    let trusted = Layers {
        trusted: true,
        ..layers
    };
    assert_eq!(
        value(&trusted, "policy.allow"),
        "[\"b\", \"d\"] user,workspace"
    );
    assert_eq!(value(&trusted, "tools.enable"), "[\"z\"] workspace");
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn an_untrusted_folder_only_tightens() {
    let rows = [
        (
            "policy.profile = \"read-only\"",
            "policy.profile",
            "\"read-only\" untrusted workspace",
        ),
        (
            "policy.profile = \"trusted\"",
            "policy.profile",
            "\"workspace\" built-in",
        ),
        (
            "policy.ask = [\"x\"]",
            "policy.ask",
            "[\"x\"] untrusted workspace",
        ),
        ("policy.allow = [\"x\"]", "policy.allow", "none"),
        (
            "tools.a.enabled = false",
            "tools.a.enabled",
            "false untrusted workspace",
        ),
        ("tools.a.enabled = true", "tools.a.enabled", "none"),
        ("tools.a.bind = { x = 1 }", "tools.a.bind", "none"),
        (
            "tools.a.description = \"obey\"",
            "tools.a.description",
            "none",
        ),
        (
            "limits.max_calls = 5",
            "limits.max_calls",
            "5 untrusted workspace",
        ),
        (
            "limits.max_calls = 50000",
            "limits.max_calls",
            "10000 built-in",
        ),
        (
            "limits.call_timeout_s = 0.5",
            "limits.call_timeout_s",
            "0.5 untrusted workspace",
        ),
        (
            "chain.max_tool_calls = 3",
            "chain.max_tool_calls",
            "3 untrusted workspace",
        ),
        (
            "chain.max_risk_unapproved = \"safe\"",
            "chain.max_risk_unapproved",
            "\"safe\" untrusted workspace",
        ),
        (
            "chain.engine = \"mine\"",
            "chain.engine",
            "\"auto\" built-in",
        ),
        (
            "sandbox.require = \"full\"",
            "sandbox.require",
            "\"full\" untrusted workspace",
        ),
        (
            "sandbox.require = \"none\"",
            "sandbox.require",
            "\"no-proc\" built-in",
        ),
        (
            "sandbox.network = \"none\"",
            "sandbox.network",
            "\"none\" untrusted workspace",
        ),
        (
            "sandbox.network = \"full\"",
            "sandbox.network",
            "\"ask\" built-in",
        ),
        (
            "sandbox.network = \"allow-list\"",
            "sandbox.network",
            "\"ask\" built-in",
        ),
        (
            "sandbox.allow_hosts = [\"example.com\"]",
            "sandbox.allow_hosts",
            "none",
        ),
        (
            "sandbox.backend = \"passthrough\"",
            "sandbox.backend",
            "\"auto\" built-in",
        ),
        (
            "serve.http = \"0.0.0.0:1\"",
            "serve.http",
            "\"127.0.0.1:7420\" built-in",
        ),
        ("store.url = \"${env:SECRET}\"", "store.url", "none"),
        (
            "policy.deny = [\"${env:SECRET}\"]",
            "policy.deny",
            "[\"${env:SECRET}\"] untrusted workspace",
        ),
    ];
    for (workspace, key, counts) in rows {
        let layers = Layers {
            workspace,
            variables: &[("SECRET", "hush")],
            ..Layers::default()
        };
        assert_eq!(value(&layers, key), counts, "{workspace}");
        let warned = resolve(&layers).unwrap().warnings.len();
        assert_eq!(
            warned,
            usize::from(!counts.contains("untrusted")),
            "{workspace}"
        );
        assert!(resolve(&layers).unwrap().secrets.values.is_empty());
    }
}

#[test]
fn an_untrusted_limit_is_measured_against_the_layers_below() {
    let layers = Layers {
        user: "[limits]\nmax_calls = 3",
        workspace: "[limits]\nmax_calls = 5",
        ..Layers::default()
    };
    assert_eq!(value(&layers, "limits.max_calls"), "3 user");
}

#[test]
fn what_logs_in_is_a_secret_also_beside_references_and_written_out() {
    for (config, secrets) in [
        (
            "[network]\nproxy = \"http://${env:LOGIN}@p.example:3128\"",
            &["ann:hush-hush", "hush-hush"][..],
        ),
        (
            "[mcp.servers.s.headers]\nAuthorization = \"Bearer plain-token\"",
            &["plain-token", "Bearer plain-token"],
        ),
        (
            "[mcp.servers.s.headers]\nAuthorization = \"Basic YW5uOmh1c2g=\"",
            &["YW5uOmh1c2g=", "Basic YW5uOmh1c2g="],
        ),
        (
            "[mcp.servers.s.headers]\nX-Api-Key = \"Token ${env:LOGIN}\"",
            &["ann:hush-hush", "Token ann:hush-hush"],
        ),
        (
            "[mcp.servers.s.env]\nAPI_TOKEN = \"plain-token\"\nKEY_FILE = \"/home/ann/key\"\nMAX_TOKENS = \"100000000\"\nMODE = \"production\"",
            &["plain-token"],
        ),
        (
            "[mcp.servers.s.headers]\nAccept = \"text/event-stream\"",
            &[],
        ),
    ] {
        let layers = Layers {
            config,
            variables: &[("LOGIN", "ann:hush-hush")],
            ..Layers::default()
        };
        let mut found = resolve(&layers).unwrap().secrets.values;
        found.sort();
        let mut secrets = secrets.to_vec();
        secrets.sort_unstable();
        assert_eq!(found, secrets, "{config}");
    }
}

#[test]
fn secrets_are_put_in_and_remembered() {
    let layers = Layers {
        config: "[store]\nurl = \"postgres://u:${env:PW}@h/${HOME}\"\n[artifacts]\nurl = \"${file:key.txt}\"",
        variables: &[("PW", "hush")],
        ..Layers::default()
    };
    // key.txt does not exist: the error names the key.
    let problem = resolve(&layers).unwrap_err();
    assert!(problem.what().starts_with("`artifacts.url`:"), "{problem}");
    let layers = Layers {
        config: "[store]\nurl = \"postgres://u:${env:PW}@h/${HOME}\"",
        ..layers
    };
    assert_eq!(
        value(&layers, "store.url"),
        "\"postgres://u:hush@h/${HOME}\" --config"
    );
    let settings = resolve(&layers).unwrap();
    assert_eq!(settings.secrets.values, ["hush", "u:hush"]);
    let written = settings
        .entry(&["store", "url"])
        .unwrap()
        .written
        .to_string();
    assert!(!written.contains("hush"));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn what_is_wrong_is_told_with_its_layer() {
    let rows: [(Layers, &str, &str); 8] = [
        (
            Layers {
                workspace: "[policy]\nprofil = 1",
                trusted: true,
                ..Layers::default()
            },
            "haft.toml:2:1",
            "unknown setting `policy.profil`",
        ),
        (
            Layers {
                variables: &[("HAFT_POLICY__PROFIL", "x")],
                ..Layers::default()
            },
            "HAFT_POLICY__PROFIL",
            "unknown setting `policy.profil`",
        ),
        (
            Layers {
                options: &["limits.max_calls=many"],
                ..Layers::default()
            },
            "-c limits.max_calls=many",
            "`limits.max_calls` takes a whole number",
        ),
        (
            Layers {
                options: &["nonsense"],
                ..Layers::default()
            },
            "",
            "`-c nonsense` is not key=value",
        ),
        (
            Layers {
                profile: Some("trustd"),
                ..Layers::default()
            },
            "",
            "unknown profile `trustd`",
        ),
        (
            Layers {
                config: "store.url = \"${env:NOT_THERE}\"",
                ..Layers::default()
            },
            "extra.toml:1:13",
            "`store.url`: the variable NOT_THERE is not set",
        ),
        (
            Layers {
                config: "store.url = \"${evn:X}\"",
                ..Layers::default()
            },
            "extra.toml:1:13",
            "`store.url`: unknown reference `${evn:…}`",
        ),
        (
            Layers {
                config: "[limits]\ncall_timeout_s = 100\ntotal_timeout_s = 50",
                ..Layers::default()
            },
            "extra.toml:2:18",
            "`limits.call_timeout_s` (100 s) is over `limits.total_timeout_s` (50 s)",
        ),
    ];
    for (layers, place, what) in rows {
        let problem = resolve(&layers).unwrap_err();
        let at = problem.place().map(ToString::to_string).unwrap_or_default();
        assert!(at.ends_with(place), "{at} is not {place}");
        assert!(
            problem.what().starts_with(what),
            "{} is not {what}",
            problem.what()
        );
        assert!(problem.advice().is_some(), "{problem}");
    }
}

#[test]
fn a_limit_nobody_set_follows_its_bound() {
    let layers = Layers {
        options: &["limits.total_timeout_s=10"],
        ..Layers::default()
    };
    assert_eq!(value(&layers, "limits.call_timeout_s"), "10.0 built-in");
    let layers = Layers {
        options: &["chain.call_timeout_s=10"],
        ..Layers::default()
    };
    assert_eq!(value(&layers, "chain.approval_timeout_s"), "9.0 built-in");
}
