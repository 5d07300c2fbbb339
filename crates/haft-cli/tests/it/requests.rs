//! Everyday requests and the tool that each should find: at rank one or two.

use serde_json::Value;

use crate::harness::Lab;

/// What users and models type, and the tools that do it.
const REQUESTS: [(&str, &[&str]); 50] = [
    ("find text in files", &["grep_files"]),
    ("find text in many files", &["grep_files"]),
    ("search code", &["grep_files"]),
    ("search for a string in the project", &["grep_files"]),
    ("where is this function used", &["grep_files"]),
    ("grep", &["grep_files"]),
    ("find files by name", &["glob_files"]),
    ("find all python files", &["glob_files"]),
    ("locate a file", &["glob_files"]),
    ("list the files in a folder", &["list_files"]),
    ("ls", &["list_files"]),
    ("show the directory tree", &["list_files"]),
    ("read a file", &["read_file"]),
    ("show the contents of a file", &["read_file"]),
    ("open a file", &["read_file"]),
    ("cat", &["read_file"]),
    ("create a new file", &["write_file"]),
    ("save text to a file", &["write_file"]),
    ("append to a log file", &["write_file"]),
    ("replace text in a file", &["edit_file"]),
    ("change a line of code", &["edit_file"]),
    ("fix a typo", &["edit_file"]),
    ("apply a diff", &["apply_patch"]),
    ("change several files at once", &["apply_patch"]),
    ("rename a file", &["move_file"]),
    ("move a folder", &["move_file"]),
    ("run a shell command", &["run_command"]),
    ("execute bash", &["run_command"]),
    ("run the tests", &["run_command"]),
    ("build the project", &["run_command"]),
    ("install dependencies", &["run_command"]),
    ("git commit", &["run_command"]),
    ("start a server in the background", &["run_command"]),
    ("wait for a background process", &["await_command"]),
    ("stop a running process", &["kill_command"]),
    ("download a page", &["fetch_url"]),
    ("read a website", &["fetch_url"]),
    ("open a link", &["fetch_url"]),
    ("http request", &["fetch_url"]),
    ("look at a screenshot", &["view_image"]),
    ("describe a picture", &["view_image"]),
    ("ask the user a question", &["ask_user"]),
    ("remember something for later", &["write_memory"]),
    ("what was decided in earlier runs", &["recall_memory"]),
    ("make a plan", &["todo_write"]),
    ("show my tasks", &["todo_read", "todo_write"]),
    ("read the rest of a long result", &["read_artifact"]),
    ("call many tools in one script", &["tool_chain"]),
    ("find a tool", &["tool_search"]),
    ("delete a file", &["delete_file"]),
];

/// Maximum number of misses.
const MISSES: usize = 2;

#[test]
fn everyday_requests_find_their_tool_first_or_second() {
    let lab = Lab::new();
    let mut missed = Vec::new();
    for (request, expected) in REQUESTS {
        let ran = lab.run(&["tools", "--search", request, "--json"]);
        let found = ran.json();
        let names: Vec<&str> = found
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|tool| tool["name"].as_str())
            .collect();
        // A script needs an interpreter that not every machine has.
        let absent = expected == ["tool_chain"] && lab.run(&["tools", "tool_chain"]).code != 0;
        let hit = names.iter().take(2).any(|name| expected.contains(name));
        if !hit && !absent {
            missed.push(format!("{request}: {:?}", &names[..names.len().min(4)]));
        }
    }
    assert!(missed.len() <= MISSES, "{missed:#?}");
}

#[test]
fn a_tool_that_is_off_is_named_with_what_turns_it_on() {
    let lab = Lab::new();
    let ran = lab.run(&["tools", "--search", "delete a file"]);
    assert!(
        ran.stderr.contains("delete_file") && ran.stderr.contains("tools.enable"),
        "{}",
        ran.stderr
    );
    let found = lab
        .run(&["tools", "--search", "delete a file", "--json"])
        .json();
    let off: Vec<&Value> = found
        .as_array()
        .unwrap()
        .iter()
        .filter(|tool| tool["enabled"] == false)
        .collect();
    assert_eq!(off[0]["name"], "delete_file");
    assert!(off[0]["advice"].as_str().unwrap().contains("tools.enable"));
    let on = lab.run(&[
        "tools",
        "--search",
        "delete a file",
        "-c",
        "tools.enable=delete_file",
    ]);
    assert!(
        on.stdout.contains("delete_file") && !on.stderr.contains("delete_file:"),
        "{}",
        on.stderr
    );
}
