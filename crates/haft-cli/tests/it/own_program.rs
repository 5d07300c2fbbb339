//! K9: haft's own program where it lies in the workspace, as in a project's virtual environment.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::harness::{Lab, Ran, ended};
use crate::signals::jailed;

/// Puts the program into an ignored folder of the workspace, with the list of files of its package.
fn install(lab: &Lab) -> PathBuf {
    let own = lab.work().join(".venv/bin/haft");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    let built = env!("CARGO_BIN_EXE_haft");
    if fs::hard_link(built, &own).is_err() {
        fs::copy(built, &own).unwrap();
    }
    let record = "h/data.py,,\nh-1.dist-info/RECORD,,\n../../../bin/haft,,\n";
    let site = ".venv/lib/python3.11/site-packages";
    lab.file(&format!("{site}/h-1.dist-info/RECORD"), record);
    lab.file(&format!("{site}/h/data.py"), "old");
    lab.file(&format!("{site}/other/data.py"), "old");
    lab.file(".venv/pyvenv.cfg", "");
    lab.file(".gitignore", ".venv/\n");
    for file in [".git/HEAD", ".git/objects/x", ".git/refs/x"] {
        lab.file(file, "");
    }
    own
}

fn run(lab: &Lab, own: &std::path::Path, args: &[&str]) -> Ran {
    ended(lab.program(own.to_str().unwrap(), args).spawn().unwrap())
}

/// Commands that change the program or its package, and leave `done` behind.
const COMMANDS: &[&str] = &[
    "rm -f .venv/bin/haft; printf '#!/bin/sh\necho REPLACED\n' > .venv/bin/haft; chmod +x .venv/bin/haft",
    "echo x > new; mv -f new .venv/bin/haft",
    "rm -rf .venv",
    "mv .venv v2; mkdir -p .venv/bin; echo x > .venv/bin/haft",
    "rm -rf .venv; mkdir -p e/bin; echo x > e/bin/haft; ln -s e .venv",
    "echo evil > .venv/lib/python3.11/site-packages/h/data.py",
    "rm -rf .venv/lib/python3.11/site-packages/h-1.dist-info",
    "chmod 644 .venv/bin/haft",
    "ln -sf .venv/bin/haft l; echo x > l",
];

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn k9_no_tool_changes_the_program_that_judges_it() {
    let lab = Lab::new();
    let own = install(&lab);
    let size = fs::metadata(&own).unwrap().len();
    let site = lab.work().join(".venv/lib/python3.11/site-packages");
    let check = |what: &str| {
        let meta = fs::symlink_metadata(&own).unwrap();
        assert!(meta.is_file() && meta.len() == size, "{what}");
        let version = run(&lab, &own, &["--version"]);
        assert!(
            version.stdout.starts_with("haft "),
            "{what}: {}",
            version.stdout
        );
        let data = fs::read_to_string(site.join("h/data.py")).unwrap();
        assert!(
            data == "old" && site.join("h-1.dist-info/RECORD").exists(),
            "{what}"
        );
    };
    let call = |tool: &str, args: serde_json::Value, more: &[&str]| {
        let args = args.to_string();
        let all = [
            "call",
            tool,
            "--profile",
            "trusted",
            "--json",
            "--args",
            &args,
        ];
        let allow = ["-c", "approval.mode=auto:high"];
        run(&lab, &own, &[&all[..], &allow, more].concat())
    };
    if jailed(&lab) {
        for mode in ["copy", "direct"] {
            let mode = format!("sandbox.changes=\"{mode}\"");
            for line in COMMANDS {
                let ran = call("run_command", json!({"command": line}), &["-c", &mode]);
                check(&format!("{mode}: {line}: {}{}", ran.stdout, ran.stderr));
            }
        }
        // Other packages of the environment are not haft's.
        lab.file(".venv/lib/python3.11/site-packages/other/data.py", "old");
        let line = "echo new > .venv/lib/python3.11/site-packages/other/data.py; echo end";
        let ran = call("run_command", json!({"command": line}), &[]);
        let other = fs::read_to_string(site.join("other/data.py")).unwrap();
        assert_eq!(other, "new\n", "{}{}", ran.stdout, ran.stderr);
    }
    for (tool, args) in [
        (
            "write_file",
            json!({"path": ".venv/bin/haft", "content": "x"}),
        ),
        ("delete_file", json!({"path": ".venv/bin/haft"})),
        ("delete_file", json!({"path": ".venv", "recursive": true})),
        ("move_file", json!({"from": ".venv", "to": "v2"})),
        (
            "move_file",
            json!({"from": ".gitignore", "to": ".venv/bin/haft", "overwrite": true}),
        ),
    ] {
        let ran = call(tool, args.clone(), &[]);
        let status = ran.json()["status"].clone();
        check(&format!("{tool} {args}: {status}"));
        assert_ne!(status, "ok", "{tool} {args}");
    }
}

/// A way to the program: its place (none if outside the workspace), links and files, the path that starts it, and what replaces it.
struct Way {
    program: Option<&'static str>,
    tree: &'static [(&'static str, &'static str)],
    start: &'static str,
    replace: &'static [&'static str],
}

const PNPM: &str = "node_modules/.pnpm/@x+l@1/node_modules/@x/l/bin/haft";

const WAYS: &[Way] = &[
    Way {
        program: Some("node_modules/h/bin/haft"),
        tree: &[
            ("node_modules/h/package.json", "{}"),
            ("node_modules/.bin/haft", "-> ../h/bin/haft"),
        ],
        start: "node_modules/.bin/haft",
        replace: &[
            "rm -f node_modules/.bin/haft && echo evil > node_modules/.bin/haft",
            "mv node_modules/.bin nb && mkdir node_modules/.bin",
        ],
    },
    Way {
        program: Some("ign/env/bin/haft"),
        tree: &[
            ("e2/env/bin/haft", "evil"),
            ("tools", "-> ign"),
            (".venv", "-> tools/env"),
        ],
        start: ".venv/bin/haft",
        replace: &[
            "rm -f .venv && ln -s e2/env .venv",
            "rm -f tools && ln -s e2 tools",
            "ln -s e2 t && mv -fT t tools",
        ],
    },
    Way {
        program: None,
        tree: &[],
        start: ".venv/bin/haft",
        replace: &[
            "rm -f .venv/bin/haft && echo evil > .venv/bin/haft",
            "mv .venv v2",
        ],
    },
    Way {
        program: Some(PNPM),
        tree: &[
            (
                "node_modules/.pnpm/h@1/node_modules/h/package.json",
                r#"{"optionalDependencies": {"@x/l": "1"}}"#,
            ),
            (
                "node_modules/.pnpm/h@1/node_modules/@x/l",
                "-> ../../../@x+l@1/node_modules/@x/l",
            ),
            ("node_modules/h", "-> .pnpm/h@1/node_modules/h"),
            (
                "node_modules/.bin/haft",
                r#"exec node "$basedir/../h/shim.js""#,
            ),
        ],
        start: PNPM,
        replace: &[
            "echo evil > node_modules/.bin/haft",
            "rm -f node_modules/h && mkdir node_modules/h",
            "rm -f node_modules/.pnpm/h@1/node_modules/@x/l",
            "echo evil > node_modules/.pnpm/h@1/node_modules/h/shim.js",
        ],
    },
];

/// Creates what a way consists of.
fn lay(lab: &Lab, way: &Way) {
    let built = Path::new(env!("CARGO_BIN_EXE_haft"));
    let place = |path: &str| {
        let path = lab.work().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    };
    match way.program.map(place) {
        Some(own) if fs::hard_link(built, &own).is_err() => _ = fs::copy(built, own).unwrap(),
        Some(_) => {}
        None => symlink(built, place(way.start)).unwrap(),
    }
    for (path, text) in way.tree {
        match text.strip_prefix("-> ") {
            Some(to) => symlink(to, place(path)).unwrap(),
            None => fs::write(place(path), text).unwrap(),
        }
    }
    lab.file(".gitignore", "node_modules/\n.venv\nign/\n");
}

/// On a copy, a command that runs in the background is judged when nobody asks any more, so the jail itself must hold the links.
#[test]
fn k9_no_command_replaces_a_link_or_script_that_starts_the_program() {
    for way in WAYS {
        let lab = Lab::new();
        lay(&lab, way);
        if !jailed(&lab) {
            return;
        }
        let own = lab.work().join(way.start);
        let sh = |line: &str, mode: &str| {
            lab.file("x.sh", line);
            let mode = format!("sandbox.changes=\"{mode}\"");
            let args = json!({"command": "sh x.sh"}).to_string();
            let call = ["call", "run_command", "--profile", "trusted", "--json"];
            run(
                &lab,
                &own,
                &[&call[..], &["--args", &args, "-c", &mode]].concat(),
            )
        };
        for mode in ["copy", "direct"] {
            for line in way.replace {
                let ran = sh(line, mode);
                let held = ["busy", "Read-only file system"];
                let said = format!("{mode}: {line}: {}{}", ran.stdout, ran.stderr);
                assert!(held.iter().any(|word| ran.stdout.contains(word)), "{said}");
                let version = run(&lab, &own, &["--version"]);
                assert!(version.stdout.starts_with("haft "), "{said}");
            }
            // What lies beside it is not haft's.
            let beside = own.parent().unwrap().join("beside");
            let beside = match way.program {
                Some(PNPM) => lab.work().join("node_modules/.pnpm/beside"),
                _ => beside,
            };
            let ran = sh(&format!("echo {mode} > {}", beside.display()), mode);
            let text = fs::read_to_string(&beside).unwrap_or_default();
            assert_eq!(text.trim(), mode, "{}{}", ran.stdout, ran.stderr);
        }
    }
}

#[test]
fn a_program_in_the_workspace_is_warned_of_and_written_nowhere_unless_asked_to() {
    let lab = Lab::new();
    let own = install(&lab);
    let doctor = run(&lab, &own, &["doctor"]);
    assert!(
        doctor.stdout.contains("uv tool install"),
        "{}",
        doctor.stdout
    );
    for install in [
        &["mcp", "install", "claude-code"][..],
        &["hook", "install", "claude", "--yes"],
        &["init", "--client", "claude-code"],
    ] {
        let refused = run(&lab, &own, install);
        assert_eq!(refused.code, 2, "{install:?}: {}", refused.stderr);
        assert!(
            refused.stderr.contains("lies in the workspace"),
            "{}",
            refused.stderr
        );
    }
    assert!(!lab.work().join(".mcp.json").exists());
    for install in [
        &["mcp", "install", "claude-code", "--here"][..],
        &["hook", "install", "claude", "--yes", "--here"],
        &["init"],
    ] {
        let done = run(&lab, &own, install);
        assert_eq!(done.code, 0, "{install:?}: {}", done.stderr);
        assert!(done.stderr.contains("pipx"), "{install:?}: {}", done.stderr);
    }
}
