//! What commands, scripts and the choice of a workspace can never reach: home folders, haft's own state.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::harness::{Lab, Ran, ended};

/// A home, not below /tmp, with the state folder at its default place.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let base = tempfile::tempdir_in("/var/tmp").unwrap();
        let home = Self(base);
        for folder in ["w", ".local/bin", ".local/state"] {
            fs::create_dir_all(home.path().join(folder)).unwrap();
        }
        home
    }

    fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn work(&self) -> PathBuf {
        self.path().join("w")
    }

    fn command(&self, args: &[&str], first: &Path) -> Command {
        let lab = Lab::new();
        let mut command = lab.command(args);
        let system = ["/usr/bin", "/bin"].map(PathBuf::from);
        let path = std::env::join_paths([first.to_owned()].into_iter().chain(system));
        command
            .env("HOME", self.path())
            .env("PATH", path.unwrap())
            .env_remove("HAFT_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .current_dir(self.work());
        command
    }

    fn chain(&self, script: &str, first: &Path) -> Ran {
        let file = self.work().join("script.py");
        fs::write(&file, script).unwrap();
        let args = ["chain", file.to_str().unwrap(), "--profile", "read-only"];
        ended(self.command(&args, first).spawn().unwrap())
    }

    /// Returns the token that a first run creates.
    fn token(&self) -> String {
        let ran = ended(
            self.command(&["doctor"], Path::new("/bin"))
                .spawn()
                .unwrap(),
        );
        let token = self.path().join(".local/state/haft/operator-token");
        fs::create_dir_all(token.parent().unwrap()).unwrap();
        if !token.exists() {
            fs::write(&token, "operator-token-of-a-test").unwrap();
        }
        assert!(ran.stdout.contains("sandbox"), "{}", ran.stderr);
        fs::read_to_string(token).unwrap().trim().to_owned()
    }
}

fn executable(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn j11_a_home_folder_is_no_workspace() {
    let lab = Lab::new();
    let home = lab.work().parent().unwrap().to_owned();
    let above = home.parent().unwrap().to_owned();
    let link = lab.work().join("link");
    symlink(&home, &link).unwrap();
    fs::write(home.join("secret.txt"), "secret").unwrap();
    let read = ["call", "read_file", "--args", r#"{"path":"secret.txt"}"#];
    for folder in [&home, &above, &link, Path::new("/")] {
        let folder = folder.to_str().unwrap();
        for command in [
            &read[..],
            &["chain", "-"],
            &["serve", "--stdio"],
            &["tools"],
            &["doctor"],
            &["policy", "show"],
            &["approvals", "list"],
        ] {
            let ran = lab.run(&[command, &["--workspace", folder]].concat());
            assert_eq!(ran.code, 2, "{command:?} {folder}: {}", ran.stdout);
            assert!(ran.stderr.contains("home folder"), "{}", ran.stderr);
        }
    }
    // In that folder, commands that run no tool work all the same.
    let here = |args: &[&str]| ended(lab.command(args).current_dir(&home).spawn().unwrap());
    for (args, code) in [
        (&read[..], 2),
        (&["serve", "--stdio"], 2),
        (&["approvals", "list"], 0),
        (&["runs", "list"], 0),
    ] {
        let ran = here(args);
        assert_eq!(ran.code, code, "{args:?}: {}{}", ran.stdout, ran.stderr);
        assert!(!ran.stdout.contains("secret"), "{}", ran.stdout);
    }
    let report = here(&["doctor", "--json"]).json();
    let checks = report["checks"].as_array().unwrap();
    let workspace = checks.iter().find(|check| check["name"] == "workspace");
    assert_eq!(workspace.unwrap()["ok"], false);
}

#[test]
fn j1_an_interpreter_of_the_workspace_is_passed_over() {
    let home = Home::new();
    let venv = home.work().join(".venv");
    fs::create_dir_all(venv.join("bin")).unwrap();
    fs::write(venv.join("pyvenv.cfg"), "home = /usr/bin\n").unwrap();
    let evil = "#!/bin/sh\necho evil >&2\nexec /usr/bin/python3 \"$@\"\n";
    executable(&venv.join("bin/python3"), evil);
    let version = fs::canonicalize("/usr/bin/python3").unwrap();
    let version = version.file_name().unwrap().to_str().unwrap().to_owned();
    let package = venv.join("lib").join(&version).join("site-packages/pandas");
    fs::create_dir_all(&package).unwrap();
    fs::write(package.join("__init__.py"), "evil = True\n").unwrap();
    let script = "try:\n  import pandas\nexcept ImportError: pandas = None\n\
                  print(getattr(pandas, 'evil', 'clean'))";
    for link in [false, true] {
        if link {
            fs::remove_file(venv.join("bin/python3")).unwrap();
            symlink("/usr/bin/python3", venv.join("bin/python3")).unwrap();
        }
        let ran = home.chain(script, &venv.join("bin"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stdout.starts_with("clean"), "{}", ran.stdout);
        assert!(!ran.stderr.contains("evil"), "{}", ran.stderr);
        let doctor = home.command(&["doctor", "--json"], &venv.join("bin"));
        let doctor = ended({ doctor }.spawn().unwrap());
        assert!(
            doctor.stdout.contains(".venv/bin/python3")
                && doctor.stdout.contains("tools may change"),
            "{}",
            doctor.stdout
        );
    }
}

#[test]
fn j2_an_interpreter_in_the_home_shows_nothing_else_of_it() {
    let home = Home::new();
    let token = home.token();
    let local = home.path().join(".local");
    // Any program will do, since it is not even started: the files next to it used to be shown.
    fs::create_dir_all(local.join("lib/python3.11")).unwrap();
    fs::create_dir_all(local.join("include/node")).unwrap();
    fs::copy("/usr/bin/python3", local.join("bin/python3")).unwrap();
    fs::copy("/bin/true", local.join("bin/node")).unwrap();
    let path = local.join("state/haft/operator-token");
    let script = format!(
        "import os\ntry: print(open({path:?}).read())\nexcept OSError as error: print('refused')"
    );
    let ran = home.chain(&script, &local.join("bin"));
    assert!(ran.stdout.starts_with("refused"), "{}", ran.stdout);
    for line in [
        format!("cat {}", path.display()),
        format!("grep -r . {}", local.join("state").display()),
    ] {
        let args = format!(r#"{{"command":"{line}"}}"#);
        let settings = ["-c", "tools.enable=[\"commands\"]", "--profile", "trusted"];
        let call = [&["call", "run_command", "--args", &args][..], &settings].concat();
        let ran = ended(home.command(&call, &local.join("bin")).spawn().unwrap());
        assert_ne!(ran.code, 0, "{}", ran.stdout);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!said.contains(&token), "{said}");
    }
}

#[test]
fn f7_passthrough_is_below_the_floor() {
    let lab = Lab::new();
    let base = [
        "call",
        "run_command",
        "--args",
        r#"{"command":"touch ran"}"#,
        "-c",
        "tools.enable=[\"commands\"]",
        "-c",
        "policy.allow=[\"Bash\"]",
        "-c",
        "sandbox.backend=passthrough",
    ];
    for require in ["full", "no-proc", "landlock+seccomp", ""] {
        let floor = format!("sandbox.require={require}");
        let more = if require.is_empty() {
            vec![]
        } else {
            vec!["-c", &floor]
        };
        let ran = lab.run(&[&base[..], &more].concat());
        assert_eq!(ran.code, 1, "{require}: {}", ran.stdout);
        assert!(!lab.work().join("ran").exists(), "{}", ran.stdout);
        assert!(ran.stderr.contains("is required"), "{}", ran.stderr);
        let doctor = [
            &["doctor", "--json", "-c", "sandbox.backend=passthrough"][..],
            &more,
        ];
        let report = lab.run(&doctor.concat()).json();
        let checks = report["checks"].as_array().unwrap();
        for (name, says) in [("sandbox", "no command runs"), ("network", "has no effect")] {
            let check = checks.iter().find(|check| check["name"] == name).unwrap();
            assert_eq!(check["ok"], false, "{check}");
            assert!(check["detail"].as_str().unwrap().contains(says), "{check}");
        }
    }
    // A checker is not chosen by anyone at that moment: it is jailed all the same.
    lab.file(
        "haft.toml",
        "[files.check]\n\"*.txt\" = [\"cat\", \"/proc/1/environ\"]\n",
    );
    let write = [
        "call",
        "write_file",
        "--args",
        r#"{"path":"a.txt","content":"x"}"#,
        "--profile",
        "trusted",
        "--trust",
        "-c",
        "sandbox.backend=passthrough",
        "-c",
        "sandbox.require=none",
        "--json",
    ];
    let outcome = lab.run(&write).json();
    let check = outcome["data"]["check"].to_string();
    assert!(check.contains("ermission denied"), "{outcome}");
}

/// AP9: the line is a single text for bash, but three commands for other shells.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test hides bash from the binary by mounts of its own"
)]
fn ap9_a_line_is_run_by_bash_or_not_at_all() {
    let lab = Lab::new();
    let bin = lab.work().with_file_name("bin");
    fs::create_dir_all(&bin).unwrap();
    for name in ["sh", "ls", "touch"] {
        fs::copy(Path::new("/bin").join(name), bin.join(name)).unwrap();
    }
    let possible = Command::new("unshare").args(["-rm", "true"]).status();
    if !possible.is_ok_and(|ran| ran.success()) {
        eprintln!("SKIPPED: no mounts of one's own here");
        return;
    }
    // The first mount hides `mount` itself; usually /bin is a link to the folder that it covers.
    let script = "mount=$(command -v mount); for folder in /bin /usr/bin; do [ -L $folder ] || folders=\"$folders $folder\"; done\n\
                  cp \"$mount\" \"$1\" && for folder in $folders; do \"$1/mount\" --bind \"$1\" $folder || exit 70; done\n\
                  shift; exec \"$@\"";
    let inside = |words: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", script, "sh"]).arg(&bin);
        command.args(words);
        command
    };
    let shells = inside(&["ls", "/bin"]).output().unwrap();
    let shells = String::from_utf8_lossy(&shells.stdout).into_owned();
    assert_eq!(shells, "ls\nmount\nsh\ntouch\n", "bash is hidden");
    let line = serde_json::json!({"command": "echo $'\\'; touch ran; #'"}).to_string();
    let enabled = "tools.enable=[\"commands\"]";
    let argv = serde_json::json!({"argv": ["/bin/bash", "-c", "echo"]}).to_string();
    for (arguments, says) in [(line, "no other shell"), (argv, "there is no such file")] {
        let args = [
            "call",
            "run_command",
            "--args",
            &arguments,
            "-c",
            enabled,
            "--profile",
            "trusted",
        ];
        assert_eq!(lab.run(&args).code, 0, "bash runs it");
        let like = lab.command(&args);
        let mut command = inside(&[like.get_program().to_str().unwrap()]);
        command
            .args(args)
            .current_dir(lab.work())
            .env_clear()
            .envs(like.get_envs().filter_map(|(k, v)| Some((k, v?))));
        let ran = command.output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(!lab.work().join("ran").exists(), "{said}");
        assert!(said.contains("/bin/bash") && said.contains(says), "{said}");
    }
}
