//! The modes: how each changes a command's risk, what it sees, and the result.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;

use haft::policy::{Policy, Profile, RuleSet};
use haft_builtins::command::CommandNetwork;
use haft_sandbox::{Backend, Config, Sandbox, Strength};
use serde_json::json;

use crate::town::{Town, page};
use crate::{Scene, allow};

pub(crate) async fn all(sandbox: &Sandbox) {
    risks(sandbox).await;
    refusals_are_told(sandbox).await;
    curl(sandbox).await;
    full(sandbox).await;
    packages(sandbox).await;
    weak_jails().await;
}

async fn none() -> std::sync::Arc<Town> {
    Town::new(|_| page("text/plain", "here")).await
}

/// A command that can send data out is not safe, and one in the host's network is critical.
async fn risks(sandbox: &Sandbox) {
    let town = none().await;
    let folder = tempfile::tempdir().unwrap();
    let modes = [
        ("none", CommandNetwork::default()),
        ("allow-list", CommandNetwork::allow_list(allow(&[], &town))),
        (
            "install",
            CommandNetwork::install(allow(&[], &town), folder.path().join("p")),
        ),
        ("full", CommandNetwork::full()),
    ];
    let allowed = || RuleSet {
        allow: vec!["Bash(ls:*)".into()],
        ..RuleSet::default()
    };
    for (profile, rules, line, runs) in [
        (Profile::Workspace, false, "ls", ["none"].as_slice()),
        (
            Profile::Workspace,
            true,
            "ls",
            &["none", "allow-list", "install", "full"],
        ),
        (Profile::Workspace, false, "make", &[]),
        (
            Profile::Trusted,
            false,
            "ls",
            &["none", "allow-list", "install"],
        ),
        (Profile::ReadOnly, false, "ls", &["none"]),
        (Profile::ReadOnly, true, "ls", &["none"]),
    ] {
        for (mode, network) in &modes {
            let rules = if rules { allowed() } else { RuleSet::default() };
            let policy = Policy::builder(profile).rules(rules).build().unwrap();
            let scene = Scene::judged(sandbox, network.clone(), policy);
            let outcome = scene.call(json!({ "command": line })).await;
            assert_eq!(network.word(), *mode);
            let ran = outcome.status.as_str() != "denied";
            assert_eq!(
                ran,
                runs.contains(mode),
                "{profile} {mode} {line}: {outcome:?}"
            );
        }
    }
}

/// The model is told which setting blocked it.
async fn refusals_are_told(sandbox: &Sandbox) {
    let town = none().await;
    let network = CommandNetwork::allow_list(allow(&["example.com"], &town));
    let scene = Scene::new(sandbox, network);
    let seen = scene.script("get('https://pypi.org/simple/')").await;
    assert!(!seen.ok, "{}", seen.shown);
    let say = "pypi.org:443 is not one of the hosts that commands may reach here";
    assert_eq!(seen.data["network_refused"], json!([say]));
    let shown: serde_json::Value = serde_json::from_str(&seen.shown).unwrap();
    assert_eq!(shown["error"]["advice"], say, "{shown}");
    let closed = Scene::new(sandbox, CommandNetwork::default());
    let seen = closed.line("env").await;
    assert!(!seen.shown.contains("PROXY"), "{}", seen.shown);
    assert!(!seen.strength.contains("network"), "{}", seen.strength);
}

/// Another client, if it is installed.
async fn curl(sandbox: &Sandbox) {
    let town = Town::new(|asked| page("text/plain", &asked.path)).await;
    let scene = Scene::new(
        sandbox,
        CommandNetwork::allow_list(allow(&["example.com"], &town)),
    );
    scene.trust(&town);
    if !scene.line("curl --version").await.ok {
        eprintln!("SKIPPED: no curl in the jail");
        return;
    }
    let seen = scene
        .line("curl -sS --cacert ca.crt https://example.com/one http://example.com/two")
        .await;
    assert_eq!(seen.data["stdout"], "/one/two", "{}", seen.shown);
    let seen = scene
        .line(
            "curl -sS --noproxy '*' --cacert ca.crt https://example.com/one http://example.com/two",
        )
        .await;
    assert_eq!(seen.data["stdout"], "/one/two", "{}", seen.shown);
}

async fn full(sandbox: &Sandbox) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let line = format!("bash -c 'echo x > /dev/tcp/127.0.0.1/{port}'");
    for (network, reached) in [
        (CommandNetwork::full(), true),
        (CommandNetwork::default(), false),
    ] {
        let scene = Scene::new(sandbox, network);
        let seen = scene.line(&line).await;
        assert_eq!(seen.ok, reached, "{}", seen.shown);
        assert_eq!(seen.strength.contains(", network full"), reached);
        // Only there does it see the machine's host names and resolver.
        let resolver = scene.line("cat /etc/resolv.conf").await;
        let own = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        let shown = if reached { own } else { String::new() };
        assert_eq!(resolver.data["stdout"], shown.as_str());
    }
}

/// Installers do not see the workspace; commands that do can use what they install, but not change it.
async fn packages(sandbox: &Sandbox) {
    let town = none().await;
    let cache = tempfile::tempdir().unwrap();
    let folder: PathBuf = cache.path().canonicalize().unwrap().join("packages/1");
    let installer = CommandNetwork::install(allow(&["pypi.org"], &town), folder.clone());
    let scene = Scene::new(sandbox, installer);
    let file = scene.root().join("a.txt").display().to_string();
    let seen = scene.line(&format!("cat {file}")).await;
    assert!(
        !seen.ok && !seen.shown.contains("IN-THE-WORKSPACE"),
        "{}",
        seen.shown
    );
    let seen = scene
        .line("pwd; echo $HOME; echo $PIP_TARGET; echo $HTTPS_PROXY")
        .await;
    let at = folder.display();
    let expect = format!("{at}\n{at}\n{at}/python\nhttp://127.0.0.1:3128\n");
    assert_eq!(seen.data["stdout"], expect.as_str(), "{}", seen.shown);
    assert!(
        seen.strength.contains(", network install"),
        "{}",
        seen.strength
    );
    let outcome = scene.call(json!({ "command": "ls", "cwd": "sub" })).await;
    assert!(!outcome.is_ok());
    for line in [
        "mkdir -p python/bin cargo && echo 'word = \"found\"' > python/mine.py",
        "printf '#!/bin/sh\\necho mine' > python/bin/mine; cp python/bin/mine python/bin/ls; chmod 755 python/bin/*",
    ] {
        let seen = scene.line(line).await;
        assert!(seen.ok, "{}", seen.shown);
    }
    assert!(folder.join("python/mine.py").is_file());
    for mode in [
        CommandNetwork::default(),
        CommandNetwork::allow_list(allow(&[], &town)),
    ] {
        let offline = mode.word() == "none";
        let scene = Scene::new(sandbox, mode.with_packages(folder.clone()));
        let seen = scene
            .line("python3 -c 'import mine; print(mine.word)'; mine; ls a.txt")
            .await;
        assert_eq!(
            seen.data["stdout"], "found\nmine\na.txt\n",
            "{}",
            seen.shown
        );
        let seen = scene.line(&format!("echo x > {at}/python/mine.py")).await;
        assert!(!seen.ok, "{}", seen.shown);
        let seen = scene.line("test -n \"$CARGO_HOME\"").await;
        assert_eq!(seen.ok, offline, "{}", seen.shown);
    }
    let absent = CommandNetwork::default().with_packages(cache.path().join("absent"));
    assert!(Scene::new(sandbox, absent).line("ls").await.ok);
}

/// If the jail cannot enforce the list, nothing runs.
async fn weak_jails() {
    let town = none().await;
    for config in [
        Config {
            at_most: Some(Strength::LandlockSeccomp),
            require: Strength::LandlockSeccomp,
            ..Config::default()
        },
        Config {
            backend: Backend::Passthrough,
            require: haft_sandbox::Strength::None,
            ..Config::default()
        },
    ] {
        let network = CommandNetwork::allow_list(allow(&["example.com"], &town));
        let scene = Scene::new(&Sandbox::new(config), network);
        let seen = scene.line("touch ran").await;
        assert!(
            !seen.ok && seen.shown.contains("needs namespaces"),
            "{}",
            seen.shown
        );
        assert!(!scene.root().join("ran").exists());
    }
}
