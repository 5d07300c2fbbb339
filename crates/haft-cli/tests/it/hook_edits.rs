//! What an agent's own edit tool changed is in its session's changes, and is undone with them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;

use crate::approvals::wait;
use crate::hook::{after, before, decision, hook, lab, runs};
use crate::serve::Server;

/// What the agent does to the workspace once haft let its call go.
type Edit = fn(&Path);

#[test]
fn an_edit_of_an_agent_is_undone_with_its_session() {
    // The file that the call names, what the agent does, and what is different then.
    let rows: [(&str, Edit, &[&str]); 4] = [
        (
            "a.txt",
            |work| fs::write(work.join("a.txt"), "two\n").unwrap(),
            &["modify   a.txt"],
        ),
        (
            "new/b.txt",
            |work| {
                fs::create_dir(work.join("new")).unwrap();
                fs::write(work.join("new/b.txt"), "two\n").unwrap();
            },
            &["new/b.txt"],
        ),
        (
            "link.txt",
            |work| fs::write(work.join("link.txt"), "two\n").unwrap(),
            &["modify   a.txt"],
        ),
        // It changed nothing.
        ("a.txt", |_| {}, &[]),
    ];
    for (file, edit, expect) in rows {
        let lab = lab("policy.allow = [\"Edit(/**)\"]\n");
        let work = lab.work();
        lab.file("a.txt", "one\n");
        symlink("a.txt", work.join("link.txt")).unwrap();
        let _server = Server::start(&lab, &[]);
        let input = json!({"file_path": work.join(file), "content": "two\n"});
        let ran = hook(&lab, &before(&lab, "t-1", "Write", &input));
        assert_eq!(decision(&ran).0, "allow", "{file}: {}", ran.stdout);
        edit(&work);
        hook(&lab, &after(&lab, "t-1", "Write", &input, &json!({})));
        let run = runs(&lab)[0]["run"].as_str().unwrap().to_owned();
        // The report is answered before the executor has read it.
        let shown = wait("the end of the call", || {
            let shown = lab.run(&["runs", "show", &run]).stdout;
            let ended = shown
                .lines()
                .any(|line| line.starts_with("call-1") && line.contains("ok"));
            ended.then_some(shown)
        });
        let diff = lab.run(&["runs", "diff", &run]).stdout;
        for part in expect {
            assert!(diff.contains(part), "{file}: {diff}{shown}");
        }
        let undone = lab.run(&["runs", "undo", &run, "--yes"]);
        assert_eq!(undone.code == 0, !expect.is_empty(), "{}", undone.stderr);
        let text = fs::read_to_string(work.join("a.txt")).unwrap();
        assert_eq!(
            (&*text, work.join("new").exists()),
            ("one\n", false),
            "{file}"
        );
    }
}
