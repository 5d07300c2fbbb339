//! Which project an agent's call belongs to, and where its paths lead: several open folders, links, folders within one another.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Lab, Ran, ended};
use crate::hook::{bash, before, decision, hook, lab};

/// An event of Cursor, which cannot ask its user.
fn cursor(roots: &[&Path], cwd: &str, tool: &str, input: &Value) -> Value {
    json!({
        "conversation_id": "c-1", "cursor_version": "3.21.16", "hook_event_name": "preToolUse", "workspace_roots": roots,
        "cwd": cwd, "tool_name": tool, "tool_input": input, "tool_use_id": "t-1",
    })
}

fn cursor_says(lab: &Lab, event: &Value) -> (String, String) {
    let said = lab.run_with(&["hook", "cursor"], &event.to_string()).json();
    let text = |name: &str| said[name].as_str().unwrap_or_default().to_owned();
    (text("permission"), text("user_message"))
}

/// A hook whose process was started in this folder.
fn hook_in(lab: &Lab, folder: &Path, event: &Value) -> Ran {
    use std::io::Write as _;
    let mut child = lab
        .command(&["hook", "claude"])
        .current_dir(folder)
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(event.to_string().as_bytes()).unwrap();
    drop(pipe);
    ended(child)
}

/// An event of Claude Code in this folder.
fn in_folder(folder: &Path, tool: &str, input: &Value) -> Value {
    json!({
        "session_id": "s-1", "transcript_path": "/tmp/t.jsonl", "cwd": folder, "permission_mode": "default",
        "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input, "tool_use_id": "t-1",
    })
}

/// Two open folders; what one of them says of its plan is in its own settings.
fn open_folders(lab: &Lab) -> [PathBuf; 2] {
    let (a, b) = (lab.work().join("a"), lab.work().join("b"));
    for root in [&a, &b] {
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::write(root.join("notes.txt"), "text\n").unwrap();
        fs::write(root.join("plan.txt"), "text\n").unwrap();
    }
    fs::write(
        b.join("haft.toml"),
        "[policy]\ndeny = [\"Read(/plan.txt)\"]\n",
    )
    .unwrap();
    [a, b]
}

#[test]
fn relative_paths_of_several_open_folders_are_asked_about_unless_the_agent_says_where() {
    let lab = lab("[hook]\nask = \"haft\"\nwait_s = 1\n");
    let [a, b] = open_folders(&lab);
    let roots = [&*a, &*b];
    let (in_a, in_b) = (a.to_str().unwrap(), b.to_str().unwrap());
    let shell = |command: &str| json!({"command": command});
    let read = |path: &Path| json!({"file_path": path});
    let rows = [
        (in_a, "Shell", shell("cat plan.txt"), "allow"),
        (in_b, "Shell", shell("cat notes.txt"), "allow"),
        // The rules of the folder that it works in.
        (in_b, "Shell", shell("cat plan.txt"), "deny"),
        (
            "",
            "Shell",
            json!({"command": "cat notes.txt", "cwd": in_b}),
            "allow",
        ),
        (
            "",
            "Shell",
            json!({"command": "cat plan.txt", "cwd": in_b}),
            "deny",
        ),
        ("", "Read", read(&b.join("notes.txt")), "allow"),
        ("", "Read", read(&b.join("plan.txt")), "deny"),
        ("", "Read", read(&a.join("plan.txt")), "allow"),
        // From one folder into the other.
        (in_a, "Read", read(&b.join("notes.txt")), "deny"),
    ];
    for (cwd, tool, input, expected) in rows {
        let (verdict, why) = cursor_says(&lab, &cursor(&roots, cwd, tool, &input));
        assert_eq!(verdict, expected, "{cwd} {tool} {input}: {why}");
        let plan = in_b == cwd || input.to_string().contains(in_b);
        let plan = plan && input.to_string().contains("plan.txt");
        assert_eq!(
            why.contains("Read(/plan.txt)"),
            plan,
            "{cwd} {tool} {input}: {why}"
        );
    }
    for (tool, input) in [
        ("Shell", shell("cat notes.txt")),
        ("Read", json!({"file_path": "notes.txt"})),
        ("Read", json!({"file_path": "../a/notes.txt"})),
    ] {
        let (verdict, why) = cursor_says(&lab, &cursor(&roots, "", tool, &input));
        assert_eq!(verdict, "deny", "{tool} {input}");
        let all = lab.run(&["approvals", "list", "--json"]).json();
        let all = all.as_array().unwrap().iter();
        let request = all
            .rev()
            .find(|one| why.contains(one["id"].as_str().unwrap()));
        let reason = request.unwrap_or_else(|| panic!("{why}"))["reason"].to_string();
        assert!(reason.contains(in_a) && reason.contains(in_b), "{reason}");
    }
    // One open folder is where it works.
    let one = cursor(&[&a], "", "Shell", &shell("cat plan.txt"));
    assert_eq!(cursor_says(&lab, &one).0, "allow");
}

#[test]
fn a_project_that_is_opened_by_a_link_is_judged_as_the_project() {
    let lab = lab("hook.ask = \"agent\"\n[policy]\ndeny = [\"Read(/plan.txt)\"]\n");
    lab.file("notes.txt", "text\n");
    lab.file("plan.txt", "text\n");
    lab.file("sub/notes.txt", "text\n");
    symlink("/etc", lab.work().join("away")).unwrap();
    fs::write(lab.work().parent().unwrap().join("beside.txt"), "text\n").unwrap();
    let link = lab.work().parent().unwrap().join("link");
    symlink(lab.work(), &link).unwrap();
    let read = |path: &str| json!({"file_path": link.join(path)});
    let cat = |path: &str| bash(&format!("cat {}", link.join(path).display()));
    let rows = [
        (link.clone(), "Read", read("notes.txt"), "allow"),
        (lab.work(), "Read", read("sub/notes.txt"), "allow"),
        (link.clone(), "Bash", cat("notes.txt"), "allow"),
        (link.join("sub"), "Bash", bash("cat notes.txt"), "allow"),
        (
            link.clone(),
            "Bash",
            bash(&format!("ls {}", link.display())),
            "allow",
        ),
        // A rule applies by whatever path the call names the file.
        (lab.work(), "Read", read("plan.txt"), "deny"),
        (link.clone(), "Bash", cat("plan.txt"), "deny"),
        // A link in the project does not make its target a part of the project.
        (link.clone(), "Read", read("away/hostname"), "ask"),
        (link.clone(), "Bash", cat("away/hostname"), "ask"),
        (link.clone(), "Read", read("../beside.txt"), "ask"),
        // The link itself lies outside.
        (
            link.clone(),
            "Bash",
            bash(&format!("rm {}", link.display())),
            "ask",
        ),
    ];
    for (cwd, tool, input, expected) in rows {
        let ran = hook_in(&lab, &link, &in_folder(&cwd, tool, &input));
        let (verdict, why) = decision(&ran);
        assert_eq!(verdict, expected, "{} {tool} {input}: {why}", cwd.display());
    }
}

#[test]
fn a_repository_in_a_folder_of_a_trusted_project_takes_nothing_from_its_rules() {
    let lab = lab("hook.ask = \"agent\"\n");
    lab.file("haft.toml", "[policy]\ndeny = [\"Bash(cat *)\"]\n");
    lab.file("sub/notes.txt", "text\n");
    lab.file("sub/.git/HEAD", "ref: refs/heads/main\n");
    let sub = lab.work().join("sub");
    let said = |lab: &Lab| {
        let ran = hook_in(lab, &sub, &in_folder(&sub, "Bash", &bash("cat notes.txt")));
        decision(&ran)
    };
    let (verdict, why) = said(&lab);
    let file = lab.work().join("haft.toml");
    assert_eq!(verdict, "ask", "{why}");
    assert!(why.contains(file.to_str().unwrap()), "{why}");
    assert_eq!(lab.run(&["trust"]).code, 0);
    assert_eq!(said(&lab).0, "deny");
    // Nor do settings that an agent puts there.
    lab.file("sub/haft.toml", "");
    assert_eq!(said(&lab).0, "deny");
    // If the user trusts the folder, its own settings apply there.
    assert_eq!(lab.run(&["trust", sub.to_str().unwrap()]).code, 0);
    let (verdict, why) = said(&lab);
    assert_eq!(verdict, "allow", "{why}");
}

#[test]
fn a_file_that_has_other_names_is_changed_after_a_question() {
    let lab = lab("hook.ask = \"agent\"\n[policy]\nallow = [\"Edit(/**)\"]\n");
    lab.file("one.txt", "text\n");
    let other = lab.work().parent().unwrap().join("other.txt");
    fs::write(&other, "text\n").unwrap();
    fs::hard_link(&other, lab.work().join("two.txt")).unwrap();
    for (path, expected) in [("one.txt", "allow"), ("two.txt", "ask")] {
        let input = json!({"file_path": lab.work().join(path), "content": "new"});
        for (tool, input) in [
            ("Write", input),
            ("Bash", bash(&format!("echo new > {path}"))),
        ] {
            let ran = hook(&lab, &before(&lab, "t-1", tool, &input));
            let (verdict, why) = decision(&ran);
            assert_eq!(verdict, expected, "{tool} {path}: {why}");
        }
    }
    let read = hook(&lab, &before(&lab, "t-1", "Bash", &bash("cat two.txt")));
    assert_eq!(decision(&read).0, "allow");
}

#[test]
fn a_folder_that_is_not_there_is_no_place_to_judge_in() {
    let lab = lab("[policy]\ndeny = [\"Read(/sub/plan.txt)\"]\n");
    lab.file("sub/plan.txt", "x");
    let gone = lab.work().join("gone");
    let event = json!({
        "session_id": "s-1", "transcript_path": "/t", "cwd": gone, "permission_mode": "default",
        "hook_event_name": "PreToolUse", "tool_name": "Read", "tool_input": {"file_path": "sub/plan.txt"}, "tool_use_id": "t-1",
    });
    let (verdict, why) = decision(&hook(&lab, &event.to_string()));
    assert_eq!(verdict, "deny", "{why}");
    assert!(why.contains("names no folder that exists"), "{why}");
}

#[test]
fn git_reads_nothing_unasked_where_the_workspace_may_be_its_repository() {
    let lab = lab("hook.ask = \"agent\"\n[policy]\nallow = [\"Edit(/**)\"]\n");
    let made = |line: &str| decision(&hook(&lab, &before(&lab, line, "Bash", &bash(line)))).0;
    assert_eq!(made("git status"), "ask");
    std::fs::create_dir(lab.work().join(".git")).unwrap();
    std::fs::write(lab.work().join(".git/config"), "").unwrap();
    assert_eq!(made("git log -1"), "allow");
}
