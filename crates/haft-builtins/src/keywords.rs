//! Search phrases for the standard tools, in addition to their names and descriptions.

/// Each tool with phrases that ask for what it does.
const KEYWORDS: [(&str, &[&str]); 27] = [
    (
        "read_file",
        &[
            "show print open cat view a file",
            "contents of a file",
            "read file",
            "look at a file",
        ],
    ),
    (
        "list_files",
        &[
            "list files in a folder or directory",
            "directory tree listing",
            "show what is in a folder",
        ],
    ),
    (
        "glob_files",
        &[
            "find files by name, extension or pattern",
            "locate a file",
            "all files of a kind",
        ],
    ),
    (
        "grep_files",
        &[
            "search code",
            "find text in files",
            "search for a string or word in the project",
            "where is a function defined or used",
            "occurrences, usages, references",
        ],
    ),
    (
        "write_file",
        &[
            "create a new file",
            "save text to a file",
            "append to a file, log",
            "write file",
            "overwrite",
        ],
    ),
    (
        "edit_file",
        &[
            "edit, modify or change a file, line or code",
            "replace text in a file",
            "fix a typo or bug",
            "insert or remove lines",
            "refactor",
        ],
    ),
    (
        "apply_patch",
        &[
            "apply a patch or diff",
            "change, edit several or multiple files at once",
        ],
    ),
    ("move_file", &["rename or move a file or folder"]),
    (
        "delete_file",
        &["delete or remove a file or folder", "erase"],
    ),
    (
        "run_command",
        &[
            "run or execute a shell command, bash, terminal",
            "run tests, build or compile the project",
            "install dependencies, packages, npm, pip, cargo",
            "git commit, push, status",
            "start a server or process in the background",
            "format or lint code",
        ],
    ),
    (
        "await_command",
        &[
            "wait for a background process, task or server",
            "read output or log of a running command or process",
        ],
    ),
    (
        "command_input",
        &[
            "type into a running command, send keys or input",
            "answer a prompt, interactive program, REPL, terminal",
        ],
    ),
    (
        "kill_command",
        &["stop, kill or end a background process, task, command or server"],
    ),
    (
        "expose_port",
        &[
            "open a port of a dev server to the browser, preview, localhost url",
            "show the user a running web server, expose or forward a port",
        ],
    ),
    (
        "fetch_url",
        &[
            "download, open or read a web page, website, url or link",
            "http get request, api",
            "fetch documentation online",
        ],
    ),
    (
        "web_search",
        &["search the web or internet", "google, look up online"],
    ),
    (
        "view_image",
        &[
            "look at or view an image, picture, photo or screenshot",
            "png jpeg",
        ],
    ),
    (
        "ask_user",
        &[
            "ask the user a question",
            "confirm, clarify, get input or a decision from the user",
        ],
    ),
    (
        "recall_memory",
        &[
            "recall, remember earlier runs",
            "what do we know, what was decided",
            "notes from past sessions",
        ],
    ),
    (
        "write_memory",
        &[
            "remember something, a fact or preference for later",
            "save, store a note or memory",
        ],
    ),
    (
        "todo_write",
        &[
            "make a plan, todo list, task list, checklist",
            "add, update or complete a task",
            "track progress",
        ],
    ),
    ("todo_read", &["show the todo list, plan or tasks"]),
    (
        "read_artifact",
        &[
            "read the rest of a large, long or truncated result or output",
            "stored artifact",
        ],
    ),
    (
        "tool_search",
        &[
            "find or search for a tool or capability",
            "which tools are there",
        ],
    ),
    (
        "tool_expand_tools",
        &["enable, load or expand a deferred tool"],
    ),
    ("list_skills", &["list skills, instructions, playbooks"]),
    ("load_skill", &["load, use or activate a skill"]),
];

/// Returns the phrases for a tool.
pub(crate) fn of(name: &str) -> &'static [&'static str] {
    let found = KEYWORDS.iter().find(|(tool, _)| *tool == name);
    found.map_or(&[], |(_, phrases)| phrases)
}
