//! Guards: what no rule can override.

use std::path::PathBuf;

use serde_json::json;

use super::*;
use crate::guards::Guard;
use crate::guards::MinimumVerdict;
use crate::guards::OwnFiles;
use crate::protected::protected;
use crate::protected::protected_from_commands;
use haft_files::workspace::Workspace;

pub(super) fn everything() -> Lists<'static> {
    Lists {
        allow: &["*", "Edit", "Read", "WebFetch"],
        ..Lists::default()
    }
}

/// Paths that file tools read and do not write.
const PROTECTED_PATHS: &[&str] = &[
    ".git",
    ".git/config",
    "sub/.git/hooks/pre-commit",
    ".GIT/config",
    ".claude/settings.json",
    ".haft/skills/x/SKILL.md",
    ".haft",
    ".agents/skills/x",
    ".claude/skills/x",
    ".mcp.json",
    ".cursor/rules",
    ".vscode/tasks.json",
    ".envrc",
    "haft.toml",
    "a/b/.bashrc",
    ".Profile",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".zed/settings.json",
    "sub/opencode.json",
    ".opencode/plugins/x.js",
    ".github/hooks/x.json",
    ".idea/workspace.xml",
    ".husky/pre-commit",
    ".devcontainer/devcontainer.json",
    ".devcontainer.json",
    ".kiro/hooks/x.json",
    ".roo/mcp.json",
    ".continue/mcpServers/x.yaml",
    ".qwen/settings.json",
    "crush.json",
    ".nvim.lua",
    "sub/.exrc",
    ".nvimrc",
    ".vimrc",
    ".lldbinit",
    ".gdbinit",
    "mise.toml",
    "sub/.mise.toml",
    ".mise/config.toml",
    ".config/mise/config.toml",
    ".tool-versions",
    "app.code-workspace",
    "sub/App.Code-Workspace",
    ".claude-plugin/plugin.json",
    ".antigravity/settings.json",
    ".githooks/post-index-change",
    ".helix/languages.toml",
];

#[test]
fn protected_paths_are_read_and_not_written() {
    for path in PROTECTED_PATHS.iter().copied() {
        assert!(protected(path).is_some(), "{path}");
        let ruling = judge(everything(), &write(path));
        assert_eq!(
            (ruling.verdict, &*ruling.rule),
            (DENY, "guard protected-paths"),
            "{path}"
        );
        // One of them is also a secret file by name.
        let reading = if path == ".envrc" { ASK } else { ALLOW };
        assert_eq!(judge(everything(), &read(path)).verdict, reading, "{path}");
        let through = tool(
            "write_file",
            Risk::High,
            &json!({}),
            vec![Permission::write(linked("a", path))],
        );
        assert_eq!(
            judge(everything(), &through).verdict,
            DENY,
            "link to {path}"
        );
        let mut redirected = run("ls");
        redirected
            .permissions
            .push(Permission::write(PathClaim::plain(path)));
        assert_eq!(judge(everything(), &redirected).verdict, ASK, "> {path}");
    }
    for path in [
        ".",
        "src/a",
        ".gitignore",
        "git",
        ".github/x",
        ".haft/cache/x",
        "skills/x",
        "my.haft.toml",
        "package.json",
        "Makefile",
        "nvim.lua",
        "code-workspace/a",
        "bin/mise",
        ".pre-commit-config.yaml",
    ] {
        assert_eq!(protected(path), None, "{path}");
        assert_eq!(judge(everything(), &write(path)).verdict, ALLOW, "{path}");
    }
}

#[test]
fn instructions_to_agents_are_asked_about_by_every_way_to_change_them() {
    let rows = [
        ("AGENTS.md", true, true),
        ("sub/claude.md", true, true),
        (".clinerules/a.md", true, true),
        (".github/copilot-instructions.md", true, true),
        ("node_modules/x/AGENTS.md", true, false),
        ("README.md", false, false),
    ];
    for (path, by_tool, by_command) in rows {
        let claim = || PathClaim::plain(path);
        for change in [Permission::write(claim()), Permission::remove(claim())] {
            let file = |spec: &str, first: Vec<Permission>| {
                let all = [first, vec![change.clone()]].concat();
                tool(spec, Risk::High, &json!({}), all)
            };
            let applied = file("apply_changes", vec![Permission::apply("git checkout x")]);
            let scenes = [(file("write_file", vec![]), by_tool), (applied, by_command)];
            for (scene, asked) in scenes {
                let ruling = judge(everything(), &scene);
                let expect = if asked { ASK } else { ALLOW };
                assert_eq!(ruling.verdict, expect, "{path}: {scene:?}");
                let by_guard = &*ruling.rule == "guard agent-instructions";
                assert_eq!(by_guard, asked, "{path}: {}", ruling.rule);
            }
        }
        let through = Permission::write(linked("notes.md", path));
        let scene = tool("write_file", Risk::High, &json!({}), vec![through]);
        let expect = if by_tool { ASK } else { ALLOW };
        assert_eq!(
            judge(everything(), &scene).verdict,
            expect,
            "link to {path}"
        );
    }
}

/// A path, and whether a command's change to it needs approval.
const GIT_PATHS: &[(&str, bool)] = &[
    (".git", true),
    ("sub/.git", true),
    (".git/config", true),
    (".git/config.worktree", true),
    (".git/config.lock", true),
    (".git/CONFIG", true),
    (".git/hooks", true),
    (".git/hooks/pre-commit", true),
    (".Git/Hooks/pre-commit", true),
    (".git/info", true),
    (".git/info/attributes", true),
    (".git/commondir", true),
    (".git/gitdir", true),
    (".git/modules", true),
    (".git/modules/lib", true),
    (".git/modules/lib/config", true),
    (".git/modules/libs/one/hooks/post-checkout", true),
    (".git/modules/lib/info/attributes", true),
    (".git/modules/a/modules/b/config", true),
    (".git/worktrees", true),
    (".git/worktrees/w", true),
    (".git/worktrees/w/gitdir", true),
    (".git/worktrees/w/commondir", true),
    (".git/worktrees/w/config.worktree", true),
    (".git/modules/a/worktrees/w/config.worktree", true),
    ("x/y/.git/hooks/pre-commit", true),
    (".git/objects/.git/config", true),
    (".git/remotes/origin", true),
    (".git/branches/main", true),
    (".git/rebase-merge/strategy", true),
    (".git/sequencer/opts", true),
    (".git/rebase-apply/apply-opt", true),
    (".git/HEAD", false),
    (".git/HEAD.lock", false),
    (".git/index", false),
    (".git/index.lock", false),
    (".git/packed-refs", false),
    (".git/ORIG_HEAD", false),
    (".git/COMMIT_EDITMSG", false),
    (".git/MERGE_HEAD", false),
    (".git/objects/ab/cdef", false),
    (".git/objects/info/alternates", true),
    (".git/refs/heads/config", false),
    (".git/refs/heads/hooks/x", false),
    (".git/logs/HEAD", false),
    (".git/rebase-merge/done", true),
    (".git/info/exclude", true),
    (".git/conf", true),
    (".git/modules/lib/HEAD", false),
    (".git/modules/lib/objects/ab/cdef", false),
    (".git/worktrees/w/index", false),
    (".git/worktrees/objects/config.worktree", true),
    (".git/worktrees/w/modules/lib/index", false),
    ("x/.git/refs/heads/main", false),
    ("git/config", false),
    (".github/workflows", false),
];

#[test]
fn a_command_may_change_data_of_git_and_a_file_tool_nothing() {
    for (path, asked) in GIT_PATHS {
        let claim = || PathClaim::plain(*path);
        let expect = if *asked { ASK } else { ALLOW };
        for change in [Permission::write(claim()), Permission::remove(claim())] {
            let of_run = Permission::clone(&run("ls").permissions[0]);
            for first in [of_run, Permission::apply("git commit -m one")] {
                let permissions = vec![first, change.clone()];
                let scene = tool("apply_changes", Risk::Safe, &json!({}), permissions);
                let ruling = judge(everything(), &scene);
                assert_eq!(ruling.verdict, expect, "{path}: {scene:?}");
                if *asked {
                    assert_eq!(&*ruling.rule, "guard protected-paths", "{path}");
                }
            }
        }
        let denied = path
            .split('/')
            .any(|part| part.eq_ignore_ascii_case(".git"));
        let expect = if denied { DENY } else { ALLOW };
        assert_eq!(judge(everything(), &write(path)).verdict, expect, "{path}");
    }
    let deep = format!(".git/{}config", "modules/".repeat(5_000));
    assert_eq!(protected_from_commands(&deep), Some(".git"));
    let through = vec![
        Permission::apply("ls"),
        Permission::write(linked("a", ".git/config")),
    ];
    let scene = tool("apply_changes", Risk::Safe, &json!({}), through);
    let ruling = judge(everything(), &scene);
    assert_eq!(ruling.verdict, ASK);
    assert!(ruling.reason.contains("git takes settings"), "{ruling:?}");
}

#[test]
fn no_rule_allows_a_critical_change_of_a_command() {
    let call = |risk, more: Vec<Permission>| {
        let mut apply = Permission::apply("make");
        apply.risk = risk;
        let permissions = [vec![apply], more].concat();
        tool("apply_changes", Risk::Safe, &json!({}), permissions)
    };
    let mut hook = Permission::write(PathClaim::plain("hooks/pre-commit"));
    hook.risk = Risk::Critical;
    for (scene, verdict) in [
        (call(Risk::Safe, vec![]), ALLOW),
        (call(Risk::Critical, vec![]), ASK),
        (call(Risk::Safe, vec![hook.clone()]), ASK),
    ] {
        let ruling = judge(everything(), &scene);
        assert_eq!(ruling.verdict, verdict, "{scene:?}");
        if verdict == ASK {
            assert_eq!(&*ruling.rule, "guard command-changes");
        }
    }
    // A file tool's write is not affected.
    let by_tool = tool("write_file", Risk::High, &json!({}), vec![hook]);
    assert_eq!(judge(everything(), &by_tool).verdict, ALLOW);
}

#[test]
fn rules_for_files_and_commands_do_not_speak_of_applying() {
    let apply = |more: Vec<Permission>| {
        let permissions = [vec![Permission::apply("sed -i s/a/b/ x")], more].concat();
        tool("apply_changes", Risk::Safe, &json!({}), permissions)
    };
    let classes = Lists {
        deny: &["Bash", "Read", "WebFetch", "Bash(sed *)"],
        ask: &["Edit"],
        ..Lists::default()
    };
    assert_eq!(judge(classes, &apply(vec![])).verdict, ALLOW);
    for (path, expect) in [
        // The name of an existing file is not a pattern.
        ("app/[id]/$x.ts", ALLOW),
        ("src/a", ALLOW),
        ("../a", ASK),
        ("/etc/passwd", ASK),
        (".envrc", ASK),
    ] {
        let scene = apply(vec![Permission::write(PathClaim::plain(path))]);
        assert_eq!(judge(everything(), &scene).verdict, expect, "{path}");
    }
    let mut scene = apply(vec![]);
    scene.permissions[0].risk = Risk::High;
    let ruling = judge(Lists::default(), &scene);
    assert_eq!(ruling.verdict, ASK);
    assert!(
        ruling
            .reason
            .contains("to apply what sed -i s/a/b/ x changed"),
        "{ruling:?}"
    );
}

#[test]
fn nothing_outside_the_workspace_is_touched() {
    for path in ["/etc/passwd", "..", "../x", "/"] {
        for scene in [read(path), write(path)] {
            let ruling = judge(everything(), &scene);
            assert_eq!(
                (ruling.verdict, &*ruling.rule),
                (DENY, "guard workspace-edge"),
                "{path}"
            );
            assert!(ruling.advice.contains("workspace"), "{ruling:?}");
        }
    }
    assert_eq!(judge(everything(), &write("..x/y")).verdict, ALLOW);
}

#[test]
fn private_addresses_are_not_connected_to() {
    for host in [
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "127.0.0.1",
        "127.1",
        "0x7f.1",
        "2130706433",
        "0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.100.100.200",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "[::1]",
        "[::]",
        "[fe80::1%eth0]",
        "[fd00::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "metadata.google.internal",
        "",
    ] {
        let ruling = judge(everything(), &fetch(host));
        assert_eq!(ruling.verdict, DENY, "{host}");
    }
    for host in [
        "example.com",
        "8.8.8.8",
        "[2606:4700::1111]",
        "172.15.0.1",
        "1.example.com",
        "4chan.org",
    ] {
        assert_eq!(judge(everything(), &fetch(host)).verdict, ALLOW, "{host}");
    }
}

#[test]
fn hafts_own_files_are_out_of_reach() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let hidden = [
        root.join(".state"),
        "/var/haft/token".into(),
        "private.toml".into(),
    ];
    let workspace = Workspace::open(&root).unwrap().with_hidden(hidden);
    let policy = builder(Profile::Trusted, everything().set())
        .workspace(&workspace)
        .build()
        .unwrap();
    for (scene, expect) in [
        (read(".state/haft.db"), DENY),
        (read(".state"), DENY),
        (read("."), ALLOW),
        (read(".state2"), ALLOW),
        (write("private.toml"), DENY),
        (
            tool(
                "delete_file",
                Risk::High,
                &json!({}),
                vec![Permission::write(PathClaim::plain("."))],
            ),
            DENY,
        ),
        (run("cat .state/token"), DENY),
        (run("cat x/../.state/token"), DENY),
        (run("cp --target=/var/haft/token x"), DENY),
        (run("cat /var/haft/token | base64"), DENY),
        (run("cat state"), ALLOW),
    ] {
        assert_eq!(policy.judge(&scene.call()).verdict, expect, "{scene:?}");
    }
    for (path, shown) in [(".state/x", false), ("/var/haft/token", false), ("a", true)] {
        assert_eq!(policy.may_show("grep_files", path), shown, "{path}");
    }
    assert!(
        OwnFiles::new(vec![PathBuf::from("/ws")])
            .in_workspace(Path::new("/ws"))
            .covers("a/b")
    );
}

#[test]
fn command_lines_that_are_not_known_and_critical_removals_are_asked_about() {
    let lists = Lists {
        allow: &["Bash", "run_command", "*", "Edit", "Bash(rm *)"],
        ..Lists::default()
    };
    for line in [
        "echo 'open",
        "ls (",
        "$X",
        "ls; \"$X\" y",
        "s{u,}do x",
        "time $X",
        "ls > $X",
        "ls > ~/x",
        "ls > *.x",
        "cd sub && ls > x",
        "rm -rf $X",
        "rm -rf $X/",
        "rm -rf $HOME",
        "rm -rf \"$PWD\"/..",
        "rm -rf ~/*",
        "rm -rf /*",
        "rm -rf ../*",
        "rm -rf /usr/*",
        "rm -rf $X/usr",
        "rm -rf $(pwd)",
        "rm -rf {/usr,/etc}",
    ] {
        let ruling = judge(lists, &run(line));
        assert_eq!(
            (ruling.verdict, &*ruling.rule),
            (ASK, "guard command-lines"),
            "{line}"
        );
    }
    for line in [
        "ls; make",
        "ls > x",
        "ls $X",
        "ls *",
        "echo `id`",
        "NODE_ENV=1 ls",
        "ls &",
        "ls\nls",
        "rm -rf build/*",
        "rm -rf *.log",
        "cd sub && ls > /dev/null",
    ] {
        assert_eq!(judge(lists, &run(line)).verdict, ALLOW, "{line}");
    }
    for line in [
        "rm -rf /",
        "rm -rf /usr",
        "rm -rf .",
        "rmdir ..",
        "rm -rf ../..",
        "rm -rf /home/dev",
        "rm -rf /home",
        "rm -rf /home/dev/app/",
        "timeout 5 rm -r /etc",
        "sudo rm -rf /",
        "/bin/rm -rf -- /",
        "rm '~'",
    ] {
        assert_eq!(judge(lists, &run(line)).verdict, ASK, "{line}");
    }
    for line in [
        "rm a.txt",
        "rm -rf build",
        "rm -rf /tmp/x",
        "rm -rf ./build",
        "echo 'rm -rf /'",
    ] {
        assert_eq!(judge(lists, &run(line)).verdict, ALLOW, "{line}");
    }
    let mut empty = run("ls");
    empty.permissions[0].effect = Effect::Run {
        command: String::new(),
        argv: Some(vec![]),
        jailed: true,
        on_copy: false,
    };
    assert_eq!(judge(lists, &empty).verdict, DENY);
}

#[derive(Debug)]
struct Broken;

impl Guard for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn floor(&self, _: &JudgedCall<'_>, _: &Permission) -> Result<MinimumVerdict, String> {
        Err("no answer".into())
    }
}

#[test]
fn a_guard_that_errs_denies() {
    let policy = policy(Profile::Trusted, everything()).with_guard(Broken);
    let ruling = policy.judge(&read("a").call());
    assert_eq!((ruling.verdict, &*ruling.rule), (DENY, "guard broken"));
    assert!(ruling.reason.contains("no answer"), "{ruling:?}");
}
