//! Runs what the README and the guide tell a reader to type, as a stranger would: each page in an empty folder with a new home, with no
//! setting, variable or file that the page does not make.
//!
//! Every line of an `sh` block and every `$ ` line of a `console` block runs, in its order; `# exit N` gives a line's expected exit code. A
//! `python` block is saved under the name in its first line, as the page says. [`EXCEPTIONS`] lists the lines that do not run, and why.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A line that does not run as it is printed.
struct Exception {
    page: &'static str,
    /// The beginning of the line.
    line: &'static str,
    why: Why,
}

/// Why a line does not run here.
enum Why {
    /// It needs what the test must not use or cannot have.
    Needs(#[expect(dead_code, reason = "for readers of the list")] &'static str),
    /// It asks at a terminal; this word answers.
    Asks(&'static str),
}

/// All exceptions. The list may only shrink; `exceptions_are_few_and_all_used` counts it.
const EXCEPTIONS: [Exception; 10] = [
    Exception {
        page: "README.md",
        line: "make ",
        why: Why::Needs("the checkout: it builds what the other lines run"),
    },
    Exception {
        page: "README.md",
        line: "haft hook install claude",
        why: Why::Asks("--yes"),
    },
    Exception {
        page: "README.md",
        line: "cargo add haft",
        why: Why::Needs("a Cargo project; the doctests compile the program below it"),
    },
    Exception {
        page: "servers.md",
        line: "haft mcp add tickets",
        why: Why::Needs("a token of a server that does not exist"),
    },
    Exception {
        page: "servers.md",
        line: "haft mcp inspect docs",
        why: Why::Needs("the network: npx downloads the server"),
    },
    Exception {
        page: "servers.md",
        line: "haft mcp pin docs",
        why: Why::Needs("the network: npx downloads the server"),
    },
    Exception {
        page: "servers.md",
        line: "haft call docs.echo",
        why: Why::Needs("the network: npx downloads the server"),
    },
    Exception {
        page: "servers.md",
        line: "haft mcp login tickets",
        why: Why::Needs("an authorization server and a browser"),
    },
    Exception {
        page: "servers.md",
        line: "haft mcp logout tickets",
        why: Why::Needs("a login"),
    },
    Exception {
        page: "gateway.md",
        line: "haft serve --workspace /srv/haft",
        why: Why::Needs("a server's folder and a certificate; the gateway tests serve"),
    },
];

/// Returns the lines of a page that a reader types, each with its expected exit code.
fn lines(page: &str) -> Vec<(String, i32)> {
    let mut all = Vec::new();
    let mut block = None;
    for line in page.lines() {
        if let Some(language) = line.strip_prefix("```") {
            block = match block {
                None => Some(language),
                Some(_) => None,
            };
            continue;
        }
        let typed = match block {
            Some("sh") => Some(line.trim()),
            Some("console") => line.strip_prefix("$ ").map(str::trim),
            _ => None,
        };
        let Some(typed) = typed.filter(|typed| !typed.is_empty()) else {
            continue;
        };
        all.push(match typed.rsplit_once("# exit ") {
            Some((line, code)) => (line.trim().to_owned(), code.trim().parse().unwrap()),
            None => (typed.to_owned(), 0),
        });
    }
    all
}

/// A reader's machine: a home, and in it an empty folder.
struct Stranger {
    home: tempfile::TempDir,
}

impl Stranger {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("project")).unwrap();
        Self { home }
    }

    fn folder(&self) -> PathBuf {
        self.home.path().join("project")
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the guide's lines are run as a reader would"
    )]
    fn run(&self, line: &str) -> (i32, String) {
        let haft = Path::new(env!("CARGO_BIN_EXE_haft")).parent().unwrap();
        let path = format!("{}:{}", haft.display(), std::env::var("PATH").unwrap());
        let output = Command::new("sh")
            .args(["-c", line])
            .current_dir(self.folder())
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.home.path())
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

    /// Saves the scripts shown on a page under the names in their first lines; they must equal the repository's.
    fn save_scripts(&self, page: &str) {
        let blocks = page.split("```python\n").skip(1);
        for (text, _) in blocks.filter_map(|rest| rest.split_once("```")) {
            let first = text.strip_prefix("# ").unwrap();
            let name = first.split_once(':').unwrap().0;
            let ours = root().join(name);
            assert_eq!(fs::read_to_string(ours).unwrap(), text, "{name}");
            let theirs = self.folder().join(name);
            fs::create_dir_all(theirs.parent().unwrap()).unwrap();
            fs::write(theirs, text).unwrap();
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the README and the pages of the guide, with their names.
fn pages() -> Vec<(String, String)> {
    let guide = fs::read_dir(root().join("docs/guide")).unwrap();
    let mut files: Vec<PathBuf> = guide.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.file_name().is_some_and(|name| name != "README.md"));
    files.push(root().join("README.md"));
    files.sort();
    let name = |file: &Path| file.file_name().unwrap().to_str().unwrap().to_owned();
    let read = |file: &PathBuf| (name(file), fs::read_to_string(file).unwrap());
    files.iter().map(read).collect()
}

fn exception(page: &str, line: &str) -> Option<&'static Exception> {
    let applies = |one: &&Exception| one.page == page && line.starts_with(one.line);
    EXCEPTIONS.iter().find(applies)
}

#[test]
fn what_the_readme_and_the_guide_say_to_type_works_in_an_empty_folder() {
    // Two cores: half of the pages at a time.
    let pages = pages();
    let total: usize = std::thread::scope(|scope| {
        let (even, odd): (Vec<_>, Vec<_>) =
            pages.iter().enumerate().partition(|(at, _)| at % 2 == 0);
        let run = |pages: Vec<(usize, &(String, String))>| -> usize {
            pages
                .iter()
                .map(|(_, (name, page))| try_page(name, page))
                .sum()
        };
        let other = scope.spawn(move || run(odd));
        run(even) + other.join().unwrap()
    });
    assert!(total >= 220, "only {total} lines ran");
}

/// Runs a page's lines; returns how many.
fn try_page(name: &str, page: &str) -> usize {
    let stranger = Stranger::new();
    stranger.save_scripts(page);
    let mut ran = 0;
    for (line, expect) in lines(page) {
        let line = match exception(name, &line).map(|one| &one.why) {
            Some(Why::Needs(_)) => continue,
            Some(Why::Asks(answer)) => {
                let command = line.split(" #").next().unwrap_or_default().trim_end();
                format!("{command} {answer}")
            }
            None => line,
        };
        let (code, said) = stranger.run(&line);
        assert_eq!(code, expect, "{name}: {line}\n{said}");
        ran += 1;
    }
    ran
}

#[test]
fn exceptions_are_few_and_all_used() {
    assert!(EXCEPTIONS.len() <= 10);
    let pages = pages();
    for one in &EXCEPTIONS {
        let page = pages.iter().find(|(name, _)| name == one.page);
        let (_, page) = page.unwrap();
        let used = lines(page)
            .iter()
            .any(|(line, _)| line.starts_with(one.line));
        assert!(used, "{}: no line begins with {:?}", one.page, one.line);
    }
}
