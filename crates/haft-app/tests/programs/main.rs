//! The examples as separate processes: this program is each of them, and also what the jail executes again.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test starts real programs, says what it tried and stops where it cannot go on"
)]

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

#[path = "../../examples/later.rs"]
mod later;
#[path = "../../examples/refunds.rs"]
mod refunds;

/// The page that shows `refunds`.
const PAGE: &str = include_str!("../../../../docs/guide/from-rust.md");

/// The variable that names the example to run as.
const PROGRAM: &str = "HAFT_TEST_PROGRAM";

fn main() -> ExitCode {
    if let Some(code) = haft_app::enter() {
        return code;
    }
    match std::env::var(PROGRAM).as_deref() {
        Ok("later") => return later::main(),
        Ok(_) => {
            refunds::main().unwrap();
            return ExitCode::SUCCESS;
        }
        Err(_) => {}
    }
    for (name, test) in TESTS {
        test();
        eprintln!("test {name} ... ok");
    }
    ExitCode::SUCCESS
}

const TESTS: [(&str, fn()); 2] = [
    (
        "asked_decided_and_resumed_in_three_starts",
        asked_decided_and_resumed_in_three_starts,
    ),
    (
        "the_agent_of_the_guide_prints_what_the_page_says",
        the_agent_of_the_guide_prints_what_the_page_says,
    ),
];

/// Starts `later` in a folder, and returns its exit code and its output.
fn later(folder: &Path, words: &[&str]) -> (i32, String) {
    start("later", folder, words)
}

fn start(program: &str, folder: &Path, words: &[&str]) -> (i32, String) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(words)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", folder.join("home"))
        .env(PROGRAM, program)
        .current_dir(folder)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].map(|out| String::from_utf8(out).unwrap());
    (output.status.code().unwrap(), said.concat())
}

/// Returns the id of the approval that a line names.
fn approval<'a>(said: &'a str, tool: &str) -> &'a str {
    let line = said.lines().find(|line| line.starts_with(tool));
    let line = line.unwrap_or_else(|| panic!("no line of {tool}: {said}"));
    line.split(' ').nth(1).unwrap()
}

fn asked_decided_and_resumed_in_three_starts() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for name in ["work", "home"] {
        fs::create_dir(at.join(name)).unwrap();
    }
    fs::write(at.join("work/.env"), "KEY=1\n").unwrap();
    fs::write(at.join("work/a.txt"), "hello\n").unwrap();
    let calls = [
        ("read_file", r#"{"path":"a.txt"}"#),
        ("grep_files", r#"{"pattern":"KEY"}"#),
        ("write_file", r#"{"path":"b.txt","content":"written\n"}"#),
        ("run_command", r#"{"command":"cat a.txt > c.txt"}"#),
    ];
    let words: Vec<&str> = calls
        .iter()
        .flat_map(|(tool, args)| [*tool, *args])
        .collect();
    let (code, said) = later(at, &[&["ask"], words.as_slice()].concat());
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("hello"), "{said}");
    assert!(!said.contains("KEY=1"), "{said}");

    for (tool, file, text) in [
        ("write_file", "b.txt", "written\n"),
        ("run_command", "c.txt", "hello\n"),
    ] {
        let id = approval(&said, tool);
        let file = at.join("work").join(file);
        // A request cannot be resumed before it is decided, and its call does not run twice.
        let (code, early) = later(at, &["resume", id]);
        assert!(code == 1 && early.contains("is pending"), "{early}");
        assert!(!file.exists());
        let (code, decided) = later(at, &["decide", id]);
        assert_eq!(code, 0, "{decided}");
        assert!(!file.exists());
        let (code, resumed) = later(at, &["resume", id]);
        assert_eq!(code, 0, "{resumed}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text, "{resumed}");
        let (code, again) = later(at, &["resume", id]);
        assert!(code == 1 && again.contains("has already run"), "{again}");
    }
    let (code, wrong) = later(at, &["decide", "ap-none"]);
    assert!(code == 1 && wrong.starts_with("error: "), "{wrong}");
}

/// Returns the only block of the page in this language that starts with `begins`.
fn block(language: &str, begins: &str) -> &'static str {
    let mark = format!("```{language}\n{begins}");
    let at = PAGE
        .find(&mark)
        .unwrap_or_else(|| panic!("no block {mark}"));
    let block = PAGE[at..].split_once('\n').unwrap().1;
    block.split_once("```").unwrap().0
}

fn the_agent_of_the_guide_prints_what_the_page_says() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = include_str!("../../examples/refunds.toml");
    assert_eq!(block("toml", "title"), scenario);
    let program = include_str!("../../examples/refunds.rs").replace("pub(crate) async", "async");
    let program = program.split_once("print\")]\n\n").unwrap().1;
    assert_eq!(block("rust,no_run", "use haft::{Decision"), program);
    // Short enough to read at a glance: counts lines with content.
    let lines = program
        .lines()
        .filter(|line| line.contains(char::is_alphanumeric));
    assert!(lines.count() <= 30);

    fs::write(folder.path().join("refunds.toml"), scenario).unwrap();
    let (code, printed) = start("refunds", folder.path(), &[]);
    assert_eq!(code, 0, "{printed}");
    assert_eq!(printed, block("text", "asked: "));
}
