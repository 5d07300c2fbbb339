//! Runs every `sh` block of the guide, line by line, in a small workspace; `# exit N` gives a line's expected exit code.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::fs;
use std::path::Path;
use std::process::Command;

/// Returns the lines of a page's `sh` blocks, each with its expected exit code.
fn lines(page: &str) -> Vec<(String, i32)> {
    let blocks = page
        .split("```sh\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("```"));
    let lines = blocks
        .flat_map(|(block, _)| block.lines())
        .filter(|line| !line.trim().is_empty());
    lines
        .map(|line| match line.rsplit_once("# exit ") {
            Some((line, code)) => (line.trim().to_owned(), code.trim().parse().unwrap()),
            None => (line.trim().to_owned(), 0),
        })
        .collect()
}

/// Creates a workspace and a home of their own.
fn scene() -> tempfile::TempDir {
    let scene = tempfile::tempdir().unwrap();
    for folder in ["ws/src", "config"] {
        fs::create_dir_all(scene.path().join(folder)).unwrap();
    }
    fs::write(
        scene.path().join("ws/README.md"),
        "# A small project\n\nTODO: write more.\n",
    )
    .unwrap();
    fs::write(scene.path().join("ws/src/main.rs"), "fn main() {}\n").unwrap();
    scene
}

#[expect(
    clippy::disallowed_methods,
    reason = "the guide's lines are run as a reader would"
)]
fn run(scene: &Path, line: &str) -> (i32, String) {
    let haft = Path::new(env!("CARGO_BIN_EXE_haft")).parent().unwrap();
    let path = format!("{}:{}", haft.display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(scene.join("ws"))
        .env_clear()
        .env("PATH", path)
        .env("HOME", scene)
        .env("HAFT_HOME", scene.join("home"))
        .env("XDG_CONFIG_HOME", scene.join("config"))
        // No server is left running in the background.
        .env("CI", "1")
        .output()
        .unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    (output.status.code().unwrap_or(-1), said)
}

/// Writes the scripts shown on a page to where its lines expect them; they must equal the repository's.
fn examples(scene: &Path, page: &str) {
    let blocks = page.split("```python\n").skip(1);
    for block in blocks.filter_map(|rest| rest.split_once("```")) {
        let name = block
            .0
            .strip_prefix("# ")
            .and_then(|line| line.split_once(':'))
            .unwrap()
            .0;
        let ours = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(name);
        assert_eq!(fs::read_to_string(ours).unwrap(), block.0, "{name}");
        let theirs = scene.join("ws").join(name);
        fs::create_dir_all(theirs.parent().unwrap()).unwrap();
        fs::write(theirs, block.0).unwrap();
    }
}

#[test]
fn the_guides_command_lines_do_what_they_say() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let mut pages: Vec<_> = fs::read_dir(&guide)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    pages.sort();
    let mut run_lines = 0;
    for page in pages {
        let scene = scene();
        examples(scene.path(), &fs::read_to_string(&page).unwrap());
        for (line, expect) in lines(&fs::read_to_string(&page).unwrap()) {
            let (code, said) = run(scene.path(), &line);
            assert_eq!(code, expect, "{}: {line}\n{said}", page.display());
            run_lines += 1;
        }
    }
    assert!(run_lines >= 20, "only {run_lines} lines found");
}
