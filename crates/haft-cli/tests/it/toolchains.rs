//! The user's toolchains in commands: found, usable, and nothing next to them; `sandbox.{read,write,path,env}`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Lab, Ran, ended};

/// Returns the folders of the machine's own toolchain, where this test process finds them.
fn machine() -> Option<[(&'static str, PathBuf); 2]> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let folder = |variable, below| {
        let named = std::env::var_os(variable).map(PathBuf::from);
        let folder = named.or_else(|| Some(home.as_ref()?.join(below)))?;
        Some(folder).filter(|folder| folder.is_dir())
    };
    let cargo =
        folder("CARGO_HOME", ".cargo").filter(|folder| folder.join("bin/cargo").exists())?;
    Some([
        ("CARGO_HOME", cargo),
        ("RUSTUP_HOME", folder("RUSTUP_HOME", ".rustup")?),
    ])
}

/// Runs a command under `trusted`, with a `PATH` without toolchains.
fn run(lab: &Lab, line: &str, settings: &[&str], variables: &[(&str, PathBuf)]) -> Ran {
    let args = json!({ "command": line, "timeout_s": 300 }).to_string();
    let mut words = vec![
        "call",
        "run_command",
        "--args",
        &args,
        "--json",
        "--profile",
        "trusted",
    ];
    for setting in settings {
        words.extend(["-c", setting]);
    }
    let mut command = lab.command(&words);
    command.env("PATH", "/usr/bin:/bin");
    for (name, value) in variables {
        command.env(name, value);
    }
    ended(command.spawn().unwrap())
}

#[expect(
    clippy::print_stderr,
    reason = "what could not be tested here is said aloud"
)]
fn jailed(lab: &Lab) -> bool {
    let ran = run(lab, "true", &[], &[]);
    if ran.code != 0 {
        eprintln!("SKIPPED: no jail here: {}", ran.stdout);
    }
    ran.code == 0
}

fn stdout(ran: &Ran) -> String {
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    ran.json()["data"]["stdout"].as_str().unwrap().to_owned()
}

fn home_of(lab: &Lab) -> PathBuf {
    lab.work().parent().unwrap().to_owned()
}

fn program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Creates a repository as its user would.
#[expect(
    clippy::disallowed_methods,
    reason = "the user's own command, not haft's"
)]
fn init_repository(folder: &Path) {
    let made = std::process::Command::new("git")
        .args(["init", "-q"])
        .current_dir(folder)
        .status();
    assert!(made.unwrap().success());
}

fn doctor(lab: &Lab, settings: &[&str]) -> Vec<Value> {
    let mut words = vec!["doctor", "--json"];
    for setting in settings {
        words.extend(["-c", setting]);
    }
    let report = lab.run(&words).json();
    let checks = report["checks"].as_array().unwrap().iter();
    checks
        .filter(|check| check["name"] == "toolchains")
        .cloned()
        .collect()
}

#[test]
fn use_3_a_crate_is_built_tested_and_committed_with_the_users_cargo() {
    let lab = Lab::new();
    let Some(machine) = machine().filter(|_| jailed(&lab)) else {
        eprintln!("SKIPPED: no cargo of the user's here");
        return;
    };
    let target = lab.work().join("target");
    lab.file(
        "Cargo.toml",
        "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    );
    lab.file(
        "src/lib.rs",
        "pub fn two() -> u8 { 2 }\n#[test]\nfn is_two() { assert_eq!(two(), 2) }\n",
    );
    lab.file(".gitignore", "target\n");
    let cargo = |line: &str| run(&lab, line, &[], &machine);
    init_repository(&lab.work());
    assert!(stdout(&cargo("cargo test -q --offline")).contains("1 passed"));
    assert!(target.join("debug").is_dir(), "what git ignores is applied");
    let identity = "-c user.name=u -c user.email=u@example.org";
    stdout(&cargo("git add Cargo.toml Cargo.lock src .gitignore"));
    stdout(&cargo(&format!("git {identity} commit -q -m first")));
    assert!(stdout(&cargo("git log --oneline")).contains("first"));
    // Of cargo's own folder, only its programs are visible.
    let cargo_home = machine[0].1.canonicalize().unwrap();
    let seen = stdout(&cargo(&format!("ls -A {}", cargo_home.display())));
    assert_eq!(seen.trim(), "bin");
    let denied = cargo(&format!("touch {}/bin/x", cargo_home.display()));
    assert_eq!(denied.code, 1, "{}", denied.stdout);
}

#[test]
fn j2_what_lies_beside_a_toolchain_is_in_no_jail() {
    let lab = Lab::new();
    if !jailed(&lab) {
        return;
    }
    let home = home_of(&lab);
    program(
        &home.join(".cargo/bin/cargo-hello"),
        "#!/bin/sh\necho hello from \"$0\"\n",
    );
    program(
        &home.join(".nvm/versions/node/v20.0.0/bin/pretend"),
        "#!/bin/sh\necho pretend\n",
    );
    for secret in [
        ".cargo/credentials.toml",
        ".nvm/versions/node/v20.0.0/etc/npmrc",
        ".ssh/id",
    ] {
        fs::create_dir_all(home.join(secret).parent().unwrap()).unwrap();
        fs::write(home.join(secret), "a-secret-of-the-home").unwrap();
    }
    symlink(&home, home.join(".pyenv")).unwrap();
    symlink("/", home.join(".volta")).unwrap();
    assert!(stdout(&run(&lab, "cargo-hello", &[], &[])).contains("hello from"));
    assert!(stdout(&run(&lab, "pretend", &[], &[])).contains("pretend"));
    let line = format!(
        "grep -rl a-secret-of {0} /root /home 2>/dev/null; ls -A {0}/.nvm/versions/node/v20.0.0",
        home.display()
    );
    let seen = stdout(&run(&lab, &line, &[], &[]));
    assert_eq!(seen.trim(), "bin");
    let checks = doctor(&lab, &[]);
    let text = serde_json::to_string(&checks).unwrap();
    assert!(text.contains("cargo, nvm v20.0.0"), "{text}");
    for refused in [".pyenv", ".volta"] {
        let line = checks
            .iter()
            .find(|check| check["detail"].as_str().unwrap().contains(refused));
        let line = line.unwrap_or_else(|| panic!("{refused}: {text}"));
        assert_eq!(line["ok"], false, "{text}");
        assert!(
            line["advice"].as_str().unwrap().contains("sandbox.read"),
            "{text}"
        );
    }
}

#[test]
fn settings_add_folders_programs_and_variables() {
    let lab = Lab::new();
    if !jailed(&lab) {
        return;
    }
    let home = home_of(&lab);
    fs::create_dir_all(home.join("data")).unwrap();
    fs::write(home.join("data/file"), "data").unwrap();
    fs::create_dir_all(home.join("out")).unwrap();
    program(&home.join("tools/hello"), "#!/bin/sh\necho \"$GREETING\"\n");
    let settings = [
        "sandbox.read=[\"~/data\"]",
        "sandbox.write=[\"~/out\"]",
        "sandbox.path=[\"~/tools\"]",
        "sandbox.env={GREETING=\"good day\"}",
    ];
    let all = |line: &str| run(&lab, line, &settings, &[]);
    let home = home.display();
    assert_eq!(stdout(&all(&format!("cat {home}/data/file"))), "data");
    assert_eq!(stdout(&all("hello")).trim(), "good day");
    stdout(&all(&format!("cp {home}/data/file {home}/out/copy")));
    assert_eq!(
        fs::read_to_string(format!("{home}/out/copy")).unwrap(),
        "data"
    );
    assert_eq!(all(&format!("touch {home}/data/new")).code, 1);
    // Without the settings none of it is visible.
    let bare = run(&lab, &format!("cat {home}/data/file"), &[], &[]);
    assert_eq!(bare.code, 1, "{}", bare.stdout);
    let checks = doctor(&lab, &["sandbox.read=[\"~/absent\"]"]);
    let absent = checks
        .iter()
        .find(|check| check["detail"].as_str().unwrap().contains("absent"));
    assert_eq!(absent.unwrap()["ok"], false, "{checks:?}");
}

#[test]
fn settings_show_nothing_of_hafts_own_no_credentials_and_no_home() {
    let lab = Lab::new();
    let home = home_of(&lab);
    for folder in [
        ".ssh",
        ".config/gh",
        "data",
        ".local/bin",
        ".gradle/init.d",
        "tools/bin",
    ] {
        fs::create_dir_all(home.join(folder)).unwrap();
    }
    symlink(&home, home.join("link")).unwrap();
    symlink(home.join(".ssh"), home.join("keys")).unwrap();
    let own = lab.home().display().to_string();
    let rows: &[(&str, &str, &str)] = &[
        ("read", "~/link", "haft's own"),
        ("read", "/", "the system's own"),
        ("read", "/etc", "the system's own"),
        ("read", &own, "haft's own"),
        ("read", "~/.ssh", "credentials"),
        ("read", "~/keys", "credentials"),
        ("read", "~/.config", "credentials"),
        ("path", "~/.ssh", "credentials"),
        ("write", "~/.local/bin", "programs outside the jail"),
        ("write", "~/.gradle", "programs outside the jail"),
        ("write", "~/tools/bin", "programs that run outside the jail"),
        ("write", "~/tools", "programs that run outside the jail"),
        ("write", "~/link", "haft's own"),
        ("write", "/usr/share", "the system's own"),
        ("read", "relative", "not an absolute path"),
    ];
    let programs = format!("{}:/usr/bin:/bin", home.join("tools/bin").display());
    for (key, path, why) in rows {
        let setting = format!("sandbox.{key}=[\"{path}\"]");
        let mut command = lab.command(&["tools", "-c", &setting]);
        let ran = ended(command.env("PATH", &programs).spawn().unwrap());
        assert_eq!(ran.code, 5, "{setting}: {}", ran.stderr);
        assert!(ran.stderr.contains(why), "{setting}: {}", ran.stderr);
        assert!(
            ran.stderr.contains(&format!("sandbox.{key}")),
            "{}",
            ran.stderr
        );
    }
    let denied = [
        "tools",
        "-c",
        "policy.deny=[\"Read(~/data/**)\"]",
        "-c",
        "sandbox.read=[\"~/data\"]",
    ];
    let ran = lab.run(&denied);
    assert!(
        ran.code == 5 && ran.stderr.contains("deny rule"),
        "{}",
        ran.stderr
    );
    let ran = lab.run(&["tools", "-c", "sandbox.env={PATH=\"/x\"}"]);
    assert!(
        ran.code == 5 && ran.stderr.contains("cannot be set"),
        "{}",
        ran.stderr
    );
    // An untrusted folder's settings add nothing.
    lab.file("haft.toml", "sandbox.read = [\"/\"]\nsandbox.env = { X = \"1\" }\nsandbox.path = [\"/\"]\nsandbox.write = [\"/\"]\n");
    let ran = lab.run(&["tools"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("sandbox.read"), "{}", ran.stderr);
}
