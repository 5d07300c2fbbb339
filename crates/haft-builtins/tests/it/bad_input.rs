//! Every bad input ends in an error that says what is wrong and what to do, and nothing is lost.

use std::fs;
use std::os::unix::fs::symlink;

use haft::ErrorKind;

use crate::scene::Scene;

/// `tool arguments => kind words that the message or the advice contains`
const ROWS: &str = r#"
read_file {"path": "mian.rs"} => not_found did you mean "main.rs"?
read_file {"path": "dir"} => failed list_files
read_file {"path": "pipe"} => failed a named pipe, not a regular file
read_file {"path": "sock"} => failed a socket
read_file {"path": "/dev/null"} => denied leaves the workspace
read_file {"path": "out/passwd"} => denied leaves the workspace
read_file {"path": "main.rs/"} => failed not a folder
read_file {"path": ""} => invalid_arguments empty
read_file {"path": "a\u0000b"} => invalid_arguments NUL
read_file {"path": "main.rs", "start_line": 9} => invalid_arguments has 2 lines
read_file {"path": "main.rs", "start_line": 0} => invalid_arguments start_line
read_file {"path": "main.rs", "lines": 1} => invalid_arguments lines
read_file {} => invalid_arguments path
write_file {"path": "dir", "content": ""} => failed a folder
write_file {"path": "pipe", "content": ""} => failed a named pipe
write_file {"path": "sock", "content": ""} => failed a socket
write_file {"path": "main.rs/x", "content": ""} => failed not a folder
write_file {"path": ".git/hooks/x", "content": ""} => denied .git
write_file {"path": "bare/hooks/x", "content": ""} => denied .git
write_file {"path": "bare/objects/x", "content": ""} => denied .git
write_file {"path": "tobare/config", "content": ""} => denied .git
edit_file {"path": "bare/config", "edits": [{"find": "[core]", "replace": "[x]"}]} => denied .git
apply_patch {"patch": "*** Begin Patch\n*** Add File: becoming/HEAD\n+x\n*** Add File: becoming/objects/x\n+x\n*** Add File: becoming/refs/x\n+x\n*** End Patch\n"} => denied .git
write_file {"path": "nearly/HEAD", "content": ""} => denied .git
write_file {"path": "common/config", "content": ""} => denied .git
write_file {"path": "sub/.git", "content": ""} => denied .git
write_file {"path": "real/config", "content": ""} => denied .git
move_file {"from": "bare", "to": "x"} => denied .git
move_file {"from": "main.rs", "to": "bare/config", "overwrite": true} => denied .git
delete_file {"path": "bare/config"} => denied .git
delete_file {"path": "real", "recursive": true} => denied .git
delete_file {"path": "holds", "recursive": true} => denied .git
move_file {"from": "holds", "to": "x"} => denied .git
write_file {"path": "tools/hooks/pre-commit", "content": ""} => denied git's settings in .git/config name it
move_file {"from": "tools", "to": "x"} => denied .git
write_file {"path": "team/git.conf", "content": ""} => denied .git
write_file {"path": "more/hooks2/pre-push", "content": ""} => denied .git
write_file {"path": "scripts/clean.sh", "content": ""} => denied .git
write_file {"path": "lint.sh", "content": ""} => denied .git
write_file {"path": "out/x", "content": ""} => denied leaves the workspace
write_file {"path": ".", "content": ""} => denied root
write_file {"path": "x", "content": "", "mode": "truncate"} => invalid_arguments mode
write_file {"path": "x"} => invalid_arguments content
edit_file {"path": "main.rs", "edits": []} => invalid_arguments edits
edit_file {"path": "none", "edits": [{"find": "a", "replace": "b"}]} => not_found no file
edit_file {"path": "dir", "edits": [{"find": "a", "replace": "b"}]} => failed a folder
edit_file {"path": "main.rs", "edits": [{"find": "fn main", "replace": ""}]} => failed at lines 1, 2
edit_file {"path": "main.rs", "edits": [{"find": "fn  main() {}", "replace": ""}]} => failed line 1 differs only in blanks
edit_file {"path": "main.rs", "edits": [{"find": "absent", "replace": ""}]} => failed does not occur
edit_file {"path": "main.rs", "edits": [{"start_line": 3, "end_line": 4, "replace": ""}]} => invalid_arguments 2 lines
edit_file {"path": "main.rs", "edits": [{"replace": ""}]} => invalid_arguments find
move_file {"from": "none", "to": "x"} => not_found no file
move_file {"from": "main.rs", "to": "dir/x"} => conflict overwrite=true
move_file {"from": "dir", "to": "dir/y"} => failed into itself
move_file {"from": ".git", "to": "x"} => denied .git
move_file {"from": "main.rs", "to": "../x"} => denied leaves
delete_file {"path": "dir"} => failed recursive=true
delete_file {"path": "."} => denied root
delete_file {"path": ".git", "recursive": true} => denied .git
list_files {"path": "main.rs"} => failed read_file
list_files {"path": "..", "depth": 1} => denied leaves
list_files {"path": "pipe"} => failed not a folder
glob_files {"pattern": "[a"} => invalid_arguments pattern
grep_files {"pattern": "(a"} => invalid_arguments pattern
grep_files {"pattern": "a", "type": "klingon"} => invalid_arguments klingon
grep_files {"pattern": "a", "path": "none"} => not_found none
read_artifact {"ref": "sha256-00"} => not_found no artifact
todo_write {"tasks": [{"id": "a"}]} => invalid_arguments no content
"#;

/// Files of repositories in folders of other names than `.git`: by their shape, behind a `.git` file, behind a `commondir`; of a folder
/// that is not quite one; and of a working tree within one.
const REPOSITORIES: [(&str, &str); 20] = [
    ("bare/HEAD", ""),
    ("bare/objects/x", ""),
    ("bare/refs/x", ""),
    ("bare/config", "[core]"),
    ("bare/main/.git", "gitdir: ../worktrees/main"),
    ("nearly/objects/x", ""),
    ("nearly/refs/x", ""),
    ("sub/.git", "gitdir: ../real"),
    ("real/HEAD", ""),
    ("real/commondir", "../common"),
    ("common/config", ""),
    ("holds/bare/HEAD", ""),
    ("holds/bare/objects/x", ""),
    ("holds/bare/refs/x", ""),
    ("like/objects/x", ""),
    ("like/refs/x", ""),
    // What settings name: hooks, further settings and what these name, a program, and what an interpreter is given.
    (
        ".git/config",
        "[core]\n\thooksPath = tools/hooks\n[include]\n\tpath = ../team/git.conf\n[filter \"c\"]\n\tclean = ./scripts/clean.sh %f\n\
         [diff \"x\"]\n\ttextconv = sh lint.sh\n",
    ),
    ("team/git.conf", "[core]\n\thooksPath = more/hooks2"),
    ("tools/hooks/x", ""),
    ("lint.sh", ""),
];

fn kind(word: &str) -> ErrorKind {
    let kinds = [
        ErrorKind::NotFound,
        ErrorKind::InvalidArguments,
        ErrorKind::Conflict,
        ErrorKind::Failed,
        ErrorKind::Denied,
    ];
    *kinds.iter().find(|kind| kind.as_str() == word).unwrap()
}

#[tokio::test]
async fn every_bad_input_ends_in_a_clear_error_and_nothing_is_lost() {
    let scene = Scene::new();
    scene.put("main.rs", "fn main() {}\nfn main() {}\n");
    scene.put("dir/x", "x");
    for (path, text) in REPOSITORIES {
        scene.put(path, text);
    }
    symlink("bare", scene.at("tobare")).unwrap();
    symlink("/etc", scene.at("out")).unwrap();
    let (fifo, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
    rustix::fs::mknodat(rustix::fs::CWD, scene.at("pipe"), fifo, mode, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(scene.at("sock")).unwrap();
    for row in ROWS.lines().filter(|row| !row.is_empty()) {
        let (call, expect) = row.split_once(" => ").unwrap();
        let (tool, args) = call.split_once(' ').unwrap();
        let (word, says) = expect.split_once(' ').unwrap();
        let args = serde_json::from_str(args).unwrap();
        scene.fails(tool, args, kind(word), says).await;
    }
    assert_eq!(scene.text("main.rs"), "fn main() {}\nfn main() {}\n");
    assert_eq!(scene.text("dir/x"), "x");
    assert!(scene.text(".git/config").contains("tools/hooks"));
    let left = fs::read_dir(scene.at("")).unwrap();
    let names: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 17, "{names:?}");
    // What only looks like a repository, and working trees within one, may be changed.
    for path in [
        "like/config",
        "like/objects/y",
        "bare/main/a",
        "bare/main/src/b",
        "sub/c",
    ] {
        let args = serde_json::json!({ "path": path, "content": "x" });
        scene.data("write_file", args).await;
    }
}
