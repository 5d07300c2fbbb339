//! A user's first minutes: `haft init`, help, arguments without JSON, one line per tool.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use serde_json::Value;

use crate::harness::Lab;

#[test]
#[expect(clippy::too_many_lines, reason = "one walk, step by step")]
fn init_writes_settings_that_fit_and_trusts_the_folder() {
    let lab = Lab::new();
    lab.file("package.json", r#"{"scripts":{"test":"x","build":"y"}}"#);
    lab.file("api/pyproject.toml", "[tool.ruff]\n");
    lab.file("core/Cargo.toml", "");
    lab.file("svc/go.mod", "module x\n");
    fs::create_dir(lab.work().join(".git")).unwrap();
    let dry = lab.run(&[
        "init",
        "--dry-run",
        "--client",
        "cursor",
        "--mcp",
        "--project",
    ]);
    assert_eq!(dry.code, 0, "{}", dry.stderr);
    assert!(
        dry.stdout.contains("[policy]") && dry.stdout.contains("mcpServers"),
        "{}",
        dry.stdout
    );
    assert!(!lab.work().join("haft.toml").exists() && !lab.work().join(".cursor").exists());
    let ran = lab.run(&["init", "--client", "cursor", "--mcp", "--project", "--yes"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for words in [
        "Go, Node (npm), Python, Rust, 4 packages, git",
        "allows Bash(cargo test)",
        ".cursor/mcp.json",
    ] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    assert!(lab.work().join(".cursor/mcp.json").exists());
    assert!(
        ran.stderr.contains("keeps it out of commits"),
        "{}",
        ran.stderr
    );
    let exclude = lab.work().join(".git/info/exclude");
    let hidden = fs::read_to_string(&exclude).unwrap();
    assert!(hidden.ends_with("\n/.cursor/mcp.json\n"), "{hidden}");
    let check = lab.run(&["policy", "check"]);
    assert_eq!(check.code, 0, "{}", check.stderr);
    let shown = lab.run(&["config", "show"]);
    assert!(
        shown.code == 0 && shown.stderr.is_empty(),
        "{}",
        shown.stderr
    );
    assert!(shown.stdout.contains("Bash(npm test)") && shown.stdout.contains("haft.toml"));
    let explained = lab
        .run(&[
            "policy",
            "explain",
            "run_command",
            "command=npm test",
            "--json",
        ])
        .json();
    assert_eq!(explained["verdict"], "allow", "{explained}");
    let push = [
        "policy",
        "explain",
        "run_command",
        "command=git push origin",
    ];
    let push = lab.run(&[&push[..], &["--json"]].concat()).json();
    assert_eq!(push["verdict"], "ask", "{push}");
}

#[test]
fn init_never_overwrites_and_trusts_nothing_unseen() {
    let lab = Lab::new();
    let text = "[policy]\nallow = [\"Bash\"]\n";
    lab.file("haft.toml", text);
    let ran = lab.run(&["init", "--json"]);
    let said = ran.json();
    assert_eq!(
        (said["written"].as_bool(), said["trusted"].as_bool()),
        (Some(false), Some(false))
    );
    assert_eq!(
        fs::read_to_string(lab.work().join("haft.toml")).unwrap(),
        text
    );
    let said = lab.run(&["init"]).stderr;
    assert!(
        said.contains("left unchanged") && said.contains("haft trust"),
        "{said}"
    );
    let wrong = lab.run(&["init", "--client", "emacs"]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    // A client has one name as an agent, and another as an MCP client, in both commands.
    for name in ["claude", "claude-code", "gemini-cli"] {
        let hook = lab.run(&["hook", "install", name, "--dry-run"]);
        let init = lab.run(&["init", "--client", name, "--dry-run"]);
        assert_eq!(
            (hook.code, init.code),
            (0, 0),
            "{name}: {}{}",
            hook.stderr,
            init.stderr
        );
        for said in [hook.stderr, init.stderr] {
            assert!(said.contains("`haft console`"), "{name}: {said}");
        }
    }
    let hooks_only = lab.run(&["init", "--client", "copilot"]).stderr;
    assert!(
        hooks_only.contains("haft hook install copilot"),
        "{hooks_only}"
    );
    // A dangling link counts as existing, too.
    fs::remove_file(lab.work().join("haft.toml")).unwrap();
    std::os::unix::fs::symlink("/nowhere", lab.work().join("haft.toml")).unwrap();
    assert!(lab.run(&["init"]).stderr.contains("left unchanged"));
    let mut home = lab.command(&["init"]);
    home.env("HOME", lab.work());
    let refused = crate::harness::ended(home.spawn().unwrap());
    assert!(
        refused.code == 2 && refused.stderr.contains("home folder"),
        "{}",
        refused.stderr
    );
}

/// Command lines, and the verdicts of init's rules on them.
const LINES: &[(&str, &str)] = &[
    ("cargo test", "allow"),
    ("cargo test -p haft some_name", "allow"),
    ("cargo fmt", "allow"),
    ("go test ./...", "allow"),
    ("npm test", "allow"),
    ("npm run build", "allow"),
    ("pytest -q", "allow"),
    ("mypy .", "allow"),
    ("make test", "allow"),
    ("cargo test --config x", "ask"),
    (
        "cargo test -p a --config \"target.'cfg(all())'.runner=['sh','-c','id']\"",
        "ask",
    ),
    ("cargo test -p a --con\"\"fig=x", "ask"),
    ("cargo test -p a \"$x\"", "ask"),
    ("cargo test -p a --manifest-path /tmp/x/Cargo.toml", "ask"),
    ("cargo test -p a -Zunstable-options -C /tmp", "ask"),
    ("cargo clippy -- -C linker=/tmp/x", "ask"),
    ("go test -exec /tmp/x ./...", "ask"),
    ("go vet -vettool=/tmp/x ./...", "ask"),
    ("npm test --script-shell=/tmp/x", "ask"),
    ("npm run build --script-shell /tmp/x", "ask"),
    ("pytest -p x", "ask"),
    ("pytest -c /tmp/x.ini", "ask"),
    ("mypy --config-file x", "ask"),
    ("make test -f /tmp/x", "ask"),
    ("make test SHELL=/tmp/x", "ask"),
    ("git push", "ask"),
    ("git push origin main", "ask"),
    ("git -C . push", "ask"),
    ("git --no-pager push o", "ask"),
    ("git -c a=b push", "ask"),
    ("git send-pack o", "ask"),
    ("git -C . send-pack o", "ask"),
];

#[test]
fn the_rules_of_init_let_no_argument_start_another_program() {
    let lab = Lab::new();
    for (name, text) in [
        ("Cargo.toml", ""),
        ("go.mod", "module x"),
        ("package.json", r#"{"scripts":{"test":"x","build":"y"}}"#),
        ("pyproject.toml", "[tool.ruff]\n[tool.mypy]\n"),
        ("Makefile", "test: a\n"),
        (".git/HEAD", ""),
    ] {
        lab.file(name, text);
    }
    assert_eq!(lab.run(&["init"]).code, 0);
    for &(line, expected) in LINES {
        let command = format!("command={line}");
        // Without a copy whose changes could be asked about, only the rules decide.
        let live = ["-c", "sandbox.changes=direct"];
        let args = [
            &["policy", "explain", "run_command", &command, "--json"],
            &live[..],
        ]
        .concat();
        let explained = lab.run(&args).json();
        assert_eq!(explained["verdict"], expected, "{line}: {explained}");
        // A rule of init has to be the reason, not only the lack of an allow rule.
        let layers = explained["layers"].to_string();
        let needs = expected == "allow" || line.starts_with("git") || line.starts_with("cargo");
        assert!(!needs || layers.contains("Bash("), "{line}: {explained}");
    }
}

#[test]
fn init_trusts_no_skills_that_a_folder_brings_unless_told() {
    let skill = "---\nname: evil\ndescription: Does as it likes.\n---\nRun this.\n";
    let lab = Lab::new();
    lab.file(".agents/skills/evil/SKILL.md", skill);
    let dry = lab.run(&["init", "--dry-run"]);
    assert!(
        dry.stderr.contains("evil") && dry.stderr.contains("--yes"),
        "{}",
        dry.stderr
    );
    let ran = lab.run(&["init"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for words in ["not trusted", "evil", ".agents/skills/evil", "haft trust"] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    assert!(lab.work().join("haft.toml").exists());
    assert_eq!(
        lab.run(&["skills", "list", "--json"])
            .json()
            .as_array()
            .map(Vec::len),
        Some(0)
    );
    // Confirmed in advance.
    let lab = Lab::new();
    lab.file(".claude/skills/evil/SKILL.md", skill);
    let said = lab.run(&["init", "--yes", "--json"]).json();
    assert_eq!(said["trusted"], true, "{said}");
    assert_eq!(said["skills"][0]["name"], "evil", "{said}");
    // For a folder without skills, it says what trust means from now on.
    let lab = Lab::new();
    let said = lab.run(&["init"]).stderr;
    assert!(
        said.contains("is trusted") && said.contains("skills"),
        "{said}"
    );
}

#[test]
fn init_checks_everything_before_it_writes_anything() {
    let lab = Lab::new();
    lab.file(".cursor/mcp.json", "{,}");
    let ran = lab.run(&["init", "--client", "cursor", "--mcp", "--project", "--yes"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(!lab.work().join("haft.toml").exists(), "{}", ran.stderr);
    assert!(!lab.home().join("trust.json").exists());
    // A folder that the trust store cannot represent.
    let folder = lab.work().join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&folder).unwrap();
    let mut command = lab.command(&["init"]);
    command.current_dir(&folder);
    let ran = crate::harness::ended(command.spawn().unwrap());
    assert!(
        ran.code == 2 && ran.stderr.contains("not UTF-8"),
        "{}",
        ran.stderr
    );
    assert!(!folder.join("haft.toml").exists());
}

#[test]
fn folders_set_up_at_once_are_all_trusted_and_a_revocation_counts() {
    let lab = Lab::new();
    let folders: Vec<_> = (0..20)
        .map(|nth| lab.work().join(format!("f{nth}")))
        .collect();
    for folder in &folders {
        fs::create_dir(folder).unwrap();
    }
    assert_eq!(lab.run(&["trust"]).code, 0);
    let mut children: Vec<_> = folders
        .iter()
        .map(|folder| {
            let mut command = lab.command(&["init"]);
            command.current_dir(folder).spawn().unwrap()
        })
        .collect();
    children.push(lab.command(&["trust", "--remove"]).spawn().unwrap());
    for child in children {
        let ran = crate::harness::ended(child);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let store = fs::read_to_string(lab.home().join("trust.json")).unwrap();
    let store: Value = serde_json::from_str(&store).unwrap();
    let trusted = store["trusted"].as_array().unwrap();
    assert_eq!(trusted.len(), 20, "{store}");
    assert!(
        !trusted.contains(&lab.work().to_str().unwrap().into()),
        "{store}"
    );
}

#[test]
fn help_and_version_are_words_like_others() {
    let lab = Lab::new();
    let rows: [(&[&str], &str); 4] = [
        (&["help"], "First steps:"),
        (&["help", "call"], "haft call read_file path=README.md"),
        (&["help", "mcp", "install"], "Usage: haft mcp install"),
        (
            &["version"],
            concat!("haft ", env!("CARGO_PKG_VERSION"), "\n"),
        ),
    ];
    for (args, words) in rows {
        let ran = lab.run(args);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
        assert!(ran.stdout.contains(words), "{args:?}: {}", ran.stdout);
    }
    assert_eq!(
        lab.run(&["version", "--json"]).json()["version"],
        env!("CARGO_PKG_VERSION")
    );
    let wrong = lab.run(&["help", "mcp", "instal"]);
    assert!(
        wrong.code == 2 && wrong.stderr.contains("haft help mcp install"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn arguments_are_typed_without_json() {
    let lab = Lab::new();
    lab.file("a.txt", "one\ntwo\nthree\n");
    let ran = lab.run(&["call", "read_file", "path=a.txt", "max_lines=1"]);
    assert!(
        ran.code == 0 && ran.stdout == "one\n" && ran.stderr.starts_with("note: lines 1-1 of 3"),
        "{} {}",
        ran.stdout,
        ran.stderr
    );
    let found = lab
        .run(&[
            "call",
            "grep_files",
            "pattern=t",
            "ignore_case:=true",
            "--json",
        ])
        .json();
    assert_eq!(found["data"]["matches"].as_array().unwrap().len(), 2);
    let listed = lab.run(&["call", "list_files"]);
    assert!(
        listed.stdout.contains("a.txt") && !listed.stdout.contains('{'),
        "{}",
        listed.stdout
    );
    let both = lab.run(&["call", "read_file", "path=a.txt", "--args", "{}"]);
    assert_eq!(both.code, 2, "{}", both.stderr);
    let wrong = lab.run(&["call", "read_file", "max_lines=many"]);
    assert_eq!(wrong.code, 2);
    for words in [
        "read_file takes",
        "path string (required)",
        "max_lines integer",
    ] {
        assert!(wrong.stderr.contains(words), "{words}: {}", wrong.stderr);
    }
    let shell = lab.run(&["call", "run_command", "command=echo out; echo err >&2"]);
    if shell.code == 0 {
        assert_eq!(
            (shell.stdout.as_str(), shell.stderr.contains("err\n")),
            ("out\n", true)
        );
    }
}

#[test]
fn the_list_of_tools_is_short_for_people_and_for_models() {
    let lab = Lab::new();
    let list = lab.run(&["tools"]);
    for line in list.stdout.lines().skip(1) {
        assert!(line.len() < 150, "{line}");
    }
    let whole = lab.run(&["tools", "--dialect", "mcp"]).stdout;
    assert!(whole.len() <= 36 * 1024, "{} bytes", whole.len());
    let tools: Value = serde_json::from_str(&whole).unwrap();
    for tool in tools.as_array().unwrap() {
        assert_eq!(tool["inputSchema"]["type"], "object");
        // Every argument that a model writes has a description.
        for (name, property) in tool["inputSchema"]["properties"].as_object().unwrap() {
            assert!(
                property["description"].is_string(),
                "{}.{name}",
                tool["name"]
            );
        }
    }
}

#[test]
fn all_runs_are_verified_at_once() {
    let lab = Lab::new();
    lab.run(&["call", "list_files"]);
    lab.run(&["call", "todo_read"]);
    let all = lab.run(&["runs", "verify", "--all", "--json"]);
    assert_eq!((all.code, all.json().as_array().unwrap().len()), (0, 2));
    let run = all.json()[0]["run"].as_str().unwrap().to_owned();
    let record = lab.home().join("runs").join(&run).join("events.jsonl");
    let text = fs::read_to_string(&record).unwrap();
    fs::write(&record, text.replace("\"ok\"", "\"no\"")).unwrap();
    let broken = lab.run(&["runs", "verify", "--all"]);
    assert_eq!(broken.code, 1);
    assert!(
        broken.stdout.contains(&run) && broken.stdout.contains("ok 1 of 2 runs, broken 1"),
        "{}",
        broken.stdout
    );
    assert_eq!(lab.run(&["runs", "verify"]).code, 2);
}

#[test]
fn doctor_reports_settings_that_do_not_load_and_tries_the_rest() {
    let lab = Lab::new();
    lab.user_settings("[limits]\nmax_cals = 5\n");
    let ran = lab.run(&["doctor", "--json"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let report = ran.json();
    let checks = report["checks"].as_array().unwrap();
    assert_eq!(
        (&checks[0]["name"], &checks[0]["ok"]),
        (&"settings".into(), &false.into())
    );
    assert!(
        checks[0]["detail"]
            .as_str()
            .unwrap()
            .contains("config.toml:2:1"),
        "{report}"
    );
    assert!(checks.len() > 8, "{report}");
}

#[test]
fn runs_are_told_apart_and_named_by_their_beginnings() {
    let lab = Lab::new();
    lab.file("a.txt", "one\n");
    lab.run(&["call", "read_file", "path=a.txt"]);
    lab.run(&["call", "read_file", "path=none.txt"]);
    lab.run(&["call", "write_file", "path=b.txt", "content=x"]);
    let list = lab.run(&["runs", "list"]).stdout;
    for words in [
        "read_file a.txt",
        "read_file none.txt",
        "write_file b.txt",
        "pending",
    ] {
        assert!(list.contains(words), "{words}: {list}");
    }
    let rows = |args: &[&str]| {
        let all = [&["runs", "list", "--json"], args].concat();
        lab.run(&all).json().as_array().unwrap().clone()
    };
    assert_eq!(rows(&["-n", "2"]).len(), 2);
    assert_eq!(rows(&["--tool", "write_file"]).len(), 1);
    assert_eq!(
        rows(&["--status", "error"])[0]["first"]["argument"],
        "none.txt"
    );
    assert_eq!(
        rows(&["--here", "--status", "ok"])[0]["first"]["tool"],
        "read_file"
    );
    assert_eq!(rows(&["--state", "suspended"]).len(), 1);
    let id = rows(&["--status", "ok"])[0]["run"]
        .as_str()
        .unwrap()
        .to_owned();
    let short = lab.run(&["runs", "verify", &id[..id.len() - 1], "--json"]);
    assert_eq!(
        (short.code, short.json()["run"].as_str()),
        (0, Some(id.as_str()))
    );
    let several = lab.run(&["runs", "show", "2"]);
    assert!(
        several.code == 2 && several.stderr.contains(&id),
        "{}",
        several.stderr
    );
    let bash = lab.run(&["tools", "bash"]);
    assert!(
        bash.stderr.contains("did you mean `run_command`?"),
        "{}",
        bash.stderr
    );
}

#[test]
fn a_list_of_runs_refuses_unknown_words_and_has_each_member_once() {
    let lab = Lab::new();
    lab.run(&["call", "list_files"]);
    for unknown in [["--status", "fine"], ["--state", "pending"]] {
        let ran = lab.run(&[&["runs", "list"], &unknown[..]].concat());
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains("expected "), "{}", ran.stderr);
    }
    let text = lab.run(&["runs", "list", "--json", "-n", "1"]).stdout;
    assert_eq!(
        text.matches("\"outcome\"").count(),
        1,
        "a member twice: {text}"
    );
}
