//! Project rules that no compiler checks: captions, sizes, names, parameters, crate layers, `serde_json` features, quotes of pages.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

mod api;
mod circles;
mod language;
mod parameters;
mod signposts;
mod sleeps;
mod type_names;
mod uses;

/// Returns the root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Returns every Rust file of ours with its text, paths relative to the root.
fn sources() -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut folders = vec![
        root().join("crates"),
        root().join("benches"),
        root().join("fuzz"),
    ];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if !path.ends_with("target") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                let name = path.strip_prefix(root()).unwrap().display().to_string();
                files.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(files.len() > 50, "found {} files only", files.len());
    files
}

/// Fails with every file that breaks the rule.
fn check(rule: &str, broken: impl Fn(&str, &str) -> Option<String>) {
    let faults: Vec<String> = sources()
        .iter()
        .filter_map(|(name, text)| Some(format!("{name}: {}", broken(name, text)?)))
        .collect();
    assert!(faults.is_empty(), "{rule}:\n{}", faults.join("\n"));
}

#[test]
fn every_file_opens_with_its_caption() {
    check("a file opens with a `//!` sentence", |_, text| {
        let caption = text.lines().next().unwrap_or_default().strip_prefix("//! ");
        caption
            .is_none_or(|c| c.trim().is_empty())
            .then(|| "no caption".to_owned())
    });
}

#[test]
fn no_file_is_over_600_lines() {
    check("a file has at most 600 lines", |_, text| {
        let lines = text.lines().count();
        (lines > 600).then(|| format!("{lines} lines"))
    });
}

#[test]
fn files_are_named_for_what_they_hold() {
    const DRAWERS: [&str; 9] = [
        "mod", "util", "utils", "helper", "helpers", "common", "types", "imp", "manager",
    ];
    check("a file's name says what it holds", |name, _| {
        let stem = Path::new(name).file_stem().unwrap().to_str().unwrap();
        DRAWERS.contains(&stem).then(|| "a drawer".to_owned())
    });
}

#[test]
fn nothing_is_left_to_be_done() {
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X:"),
    ];
    // A text that a test searches may contain the words; a comment may not.
    let left = |line: &str| {
        let comment = line.split_once("//").map(|(_, comment)| comment);
        comment.is_some_and(|comment| marks.iter().any(|mark| comment.contains(mark)))
    };
    check(
        "what is not done is in an issue, not in a comment",
        |_, text| {
            let at = text.lines().position(left)?;
            Some(format!("line {}", at + 1))
        },
    );
}

#[test]
fn a_crate_imports_from_the_home_module() {
    check(
        "`use crate::module::Name`, not the root's re-export",
        |name, text| {
            let (folder, _) = name.split_once("/src/")?;
            let lib = fs::read_to_string(root().join(folder).join("src/lib.rs")).ok()?;
            if name.ends_with("/src/lib.rs") {
                return None;
            }
            let exported = names_in(&lib, "pub use ");
            let bad: Vec<String> = first_names(text).intersection(&exported).cloned().collect();
            (!bad.is_empty()).then(|| bad.join(", "))
        },
    );
}

/// Returns the names that the statements with this beginning import.
fn names_in(text: &str, begin: &str) -> BTreeSet<String> {
    text.split(begin)
        .skip(1)
        .filter_map(|rest| rest.split(';').next())
        .flat_map(|statement| statement.split(['{', '}', ',']))
        .filter_map(|part| part.trim().rsplit("::").next())
        .filter_map(|part| part.split(" as ").last())
        .filter(|part| part.starts_with(char::is_uppercase))
        .map(str::to_owned)
        .collect()
}

/// Returns what `use crate::…` names directly below the root.
fn first_names(text: &str) -> BTreeSet<String> {
    text.split("use crate::")
        .skip(1)
        .filter_map(|rest| rest.split(';').next())
        .flat_map(|statement| match statement.strip_prefix('{') {
            Some(list) => list.trim_end_matches('}').split(',').collect::<Vec<_>>(),
            None => vec![statement],
        })
        .filter(|part| !part.contains("::"))
        .map(|part| {
            part.trim()
                .split(" as ")
                .next()
                .unwrap_or_default()
                .to_owned()
        })
        .collect()
}

/// The crates by floor, from the bottom up. A crate uses crates of the floors below its own; every crate is listed here once.
const FLOORS: &[&[&str]] = &[
    // Engines: they know nothing about tools and are useful on their own.
    &[
        "haft-command",
        "haft-hook",
        "haft-http",
        "haft-json",
        "haft-search",
        "haft-shell",
        "haft-tokens",
        "haft-wire",
    ],
    // The terms that all others share.
    &["haft-types"],
    // A workspace's files, by themselves.
    &["haft-files"],
    &["haft-skill"],
    // Contracts and pipeline; processes; the other end of the wire.
    &["haft", "haft-macros", "haft-sandbox", "haft-scripted"],
    // Satellites: independent of each other.
    &[
        "haft-agent",
        "haft-builtins",
        "haft-chain",
        "haft-mcp",
        "haft-store",
    ],
    // The application as a library, and the server around it.
    &["haft-acp", "haft-app", "haft-server"],
    &["haft-cli"],
];

/// The crates that use one of their own floor, and that one.
const BESIDE: &[(&str, &str)] = &[
    // What a command does is asked about the words that a shell would start.
    ("haft-command", "haft-shell"),
    // The strict reader reads events of agents.
    ("haft-hook", "haft-json"),
    // The strict reader and writer handle bodies and names of a wire.
    ("haft-wire", "haft-json"),
    ("haft", "haft-macros"),
    // The tests of the macros use `haft`, which re-exports them.
    ("haft-macros", "haft"),
    // An editor's sessions each wrap an application.
    ("haft-acp", "haft-app"),
    // The server wraps an application.
    ("haft-server", "haft-app"),
];

/// The crates that the tests of every crate may use.
const FOR_TESTS: &[&str] = &["haft-fuzz"];

/// Returns whether the crate `name` may use `other` in this section of its manifest.
fn may_name(name: &str, other: &str, section: &str) -> bool {
    let floor = |name| FLOORS.iter().position(|floor| floor.contains(&name));
    name == other
        || BESIDE.contains(&(name, other))
        || (section == "dev-dependencies" && FOR_TESTS.contains(&other))
        || matches!((floor(name), floor(other)), (Some(own), Some(below)) if below < own)
}

/// What decides, runs and resumes calls, in `haft-app`: whoever shows its state reads it from outside.
const KNOWS_NO_SCREEN: [&str; 12] = [
    "agent", "decide", "exec", "follow", "follower", "others", "remember", "repeat", "requests",
    "resume", "run", "undo",
];

#[test]
fn what_runs_calls_knows_no_screen() {
    let faults: Vec<String> = sources()
        .into_iter()
        .filter(|(name, text)| {
            let module = name.strip_prefix("crates/haft-app/src/");
            let module = module.and_then(|rest| rest.split(['/', '.']).next());
            let runs = module.is_some_and(|module| KNOWS_NO_SCREEN.contains(&module));
            runs && text.contains("crate::view")
        })
        .map(|(name, _)| name)
        .collect();
    assert!(faults.is_empty(), "import from `view/`: {faults:?}");
}

#[test]
fn arrows_between_crates_point_down() {
    let mut crates = BTreeSet::new();
    let mut faults = Vec::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let Ok(text) = fs::read_to_string(folder.join("Cargo.toml")) else {
            continue;
        };
        let manifest: toml::Table = text.parse().unwrap();
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(table) = manifest.get(section).and_then(toml::Value::as_table) else {
                continue;
            };
            let ours = table.keys().filter(|key| key.starts_with("haft"));
            faults.extend(
                ours.filter(|other| !may_name(&name, other, section))
                    .map(|other| format!("{name} names {other} in its {section}")),
            );
        }
        crates.insert(name);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let rows = FLOORS.concat().into_iter().chain(FOR_TESTS.iter().copied());
    let rows: BTreeSet<String> = rows.map(str::to_owned).collect();
    assert_eq!(crates, rows, "the crates, and those that have a floor");
}

#[test]
fn an_arrow_that_points_up_or_aside_is_found() {
    let rows = [
        ("haft-cli", "haft-mcp", "dependencies", true),
        ("haft-mcp", "haft-sandbox", "dependencies", true),
        ("haft-server", "haft-app", "dependencies", true),
        ("haft-app", "haft-server", "dependencies", false),
        ("haft-mcp", "haft-store", "dependencies", false),
        ("haft", "haft-macros", "dependencies", true),
        ("haft", "haft-search", "dependencies", true),
        ("haft-search", "haft", "dev-dependencies", false),
        ("haft", "haft-sandbox", "dependencies", false),
        ("haft", "haft-store", "dev-dependencies", false),
        ("haft-mcp", "haft-fuzz", "dev-dependencies", true),
        ("haft-mcp", "haft-fuzz", "dependencies", false),
        ("haft-fuzz", "haft", "dependencies", false),
    ];
    for (name, other, section, expect) in rows {
        let row = format!("{name} names {other} in its {section}");
        assert_eq!(may_name(name, other, section), expect, "{row}");
    }
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "asks cargo for the features it resolved"
)]
fn serde_json_keeps_objects_and_numbers_plain() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let args = [
        "tree",
        "--offline",
        "-p",
        "haft-cli",
        "-e",
        "normal,features",
        "-i",
        "serde_json",
    ];
    let output = Command::new(cargo)
        .args(args)
        .current_dir(root())
        .output()
        .unwrap();
    let tree = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success() && tree.contains("serde_json"),
        "{tree}"
    );
    for feature in ["preserve_order", "arbitrary_precision"] {
        // Digests and byte-exact arguments rely on sorted keys and plain numbers.
        assert!(
            !tree.contains(&format!("serde_json feature \"{feature}\"")),
            "{tree}"
        );
    }
}

/// Returns the rows of the security page's tables: the tests in the last column, `crate/function` and texts of rows in it.
fn attempts(page: &str) -> Vec<(String, String)> {
    let rows = page.lines().filter(|line| line.starts_with("| "));
    rows.filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let head = cells[0] == "id" || cells[0].starts_with('-');
        (!head).then(|| (cells[0].to_owned(), cells[cells.len() - 1].to_owned()))
    })
    .collect()
}

#[test]
fn every_attempt_of_the_security_page_is_held_by_a_test() {
    let page = fs::read_to_string(root().join("docs/security.md")).unwrap();
    let sources = sources();
    let holds = |home: &str, text: &str| {
        let home = format!("crates/{home}/");
        let own =
            |(name, source): &(String, String)| name.starts_with(&home) && source.contains(text);
        sources.iter().any(own)
    };
    for (id, held_by) in attempts(&page) {
        let tests: Vec<(&str, &str)> = held_by
            .split('`')
            .skip(1)
            .step_by(2)
            .map(|test| test.split_once('/').unwrap())
            .collect();
        assert!(!tests.is_empty(), "{id}: no test is named in `{held_by}`");
        for (home, function) in &tests {
            let defined = holds(home, &format!("fn {function}("));
            assert!(defined, "{id}: {home} has no test `{function}`");
        }
        for row in held_by.split('"').skip(1).step_by(2) {
            let found = tests.iter().any(|(home, _)| holds(home, row));
            assert!(found, "{id}: no named crate has the row \"{row}\"");
        }
    }
}

/// Returns every quote of `mark` followed by a number in this text: the number, perhaps with points (`3`, `3.2`), and the line from 1.
fn quoted_numbers(text: &str, mark: &str) -> Vec<(String, usize)> {
    let mut quotes = Vec::new();
    for (at, line) in text.lines().enumerate() {
        for rest in line.split(mark).skip(1) {
            let number = rest
                .find(|c: char| !c.is_ascii_digit() && c != '.')
                .map_or(rest, |end| &rest[..end]);
            // A full stop at the end belongs to the sentence.
            let number = number.trim_end_matches('.');
            if !number.is_empty() {
                quotes.push((number.to_owned(), at + 1));
            }
        }
    }
    quotes
}

/// Returns whether a page has a heading with this number: `## 3. …` for `3`, `### 3.2 …` for `3.2`.
fn has_section(page: &str, number: &str) -> bool {
    let heading = match number.matches('.').count() {
        0 => format!("## {number}. "),
        below => format!("{} {number} ", "#".repeat(below + 2)),
    };
    page.lines().any(|line| line.starts_with(&heading))
}

/// Fails with every quote of `marks` in the files of `folder` whose number `names` does not find on the page; returns the number of
/// quotes.
fn check_quotes(page: &str, folder: &str, marks: &[&str], names: fn(&str, &str) -> bool) -> usize {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let mut seen = 0;
    let mut faults = Vec::new();
    for (name, source) in sources() {
        if !name.starts_with(folder) {
            continue;
        }
        for mark in marks {
            for (number, line) in quoted_numbers(&source, mark) {
                seen += 1;
                if !names(&text, &number) {
                    faults.push(format!("{name}:{line}: {mark}{number}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{page} lacks:\n{}", faults.join("\n"));
    seen
}

#[test]
fn every_quoted_section_of_the_contract_exists() {
    let page = "docs/reference/contract.md";
    let quotes = check_quotes(page, "", &["contract §", "Contract §"], has_section);
    assert!(quotes >= 20, "{quotes} quotes");
}

/// Returns whether a page has a heading `### WORD 3: …` for `3`.
fn has_heading(page: &str, word: &str, number: &str) -> bool {
    let heading = format!("### {word} {number}: ");
    page.lines().any(|line| line.starts_with(&heading))
}

#[test]
fn every_quoted_clause_of_the_shell_rules_exists() {
    let names = |page: &str, number: &str| has_heading(page, "Clause", number);
    let page = "docs/reference/shell-rules.md";
    let marks = ["clause ", "Clause "];
    let quotes = |folder| check_quotes(page, folder, &marks, names);
    let (policy, reader) = (
        quotes("crates/haft/src/policy") + quotes("crates/haft-command/"),
        quotes("crates/haft-shell/"),
    );
    assert!(policy >= 10, "{policy} quotes in the policy");
    assert!(reader >= 4, "{reader} quotes in the reader");
}

#[test]
fn every_quoted_path_rule_and_url_rule_exists() {
    let names = |page: &str, number: &str| has_heading(page, "Path rule", number);
    let marks = ["path rule ", "path rules "];
    let quotes = check_quotes("docs/reference/paths.md", "crates/", &marks, names);
    assert!(quotes >= 10, "{quotes} quotes of path rules");
    let names = |page: &str, number: &str| has_heading(page, "URL rule", number);
    let marks = ["URL rule ", "URL rules "];
    let quotes = check_quotes("docs/reference/ssrf.md", "crates/", &marks, names);
    assert!(quotes >= 8, "{quotes} quotes of URL rules");
}

/// Returns the names of documents in `docs/` that the text quotes, with the line from 1.
fn quoted_pages(text: &str) -> Vec<(String, usize)> {
    let pages = text.lines().enumerate().flat_map(|(at, line)| {
        line.split("docs/").skip(1).filter_map(move |rest| {
            let letter = |c: char| c.is_ascii_alphanumeric() || "-_/.".contains(c);
            let end = rest.find(|c| !letter(c)).unwrap_or(rest.len());
            let page = rest[..end].trim_end_matches('.');
            let ending = Path::new(page).extension();
            ending
                .is_some_and(|ending| ending == "md")
                .then(|| (format!("docs/{page}"), at + 1))
        })
    });
    pages.collect()
}

#[test]
fn every_quoted_page_of_the_docs_exists() {
    check("a page that the code quotes exists", |name, text| {
        // A test's scene may have its own pages.
        let pages = if name.contains("/tests/") {
            Vec::new()
        } else {
            quoted_pages(text)
        };
        let missing: Vec<String> = pages
            .into_iter()
            .filter(|(page, _)| !root().join(page).is_file())
            .map(|(page, line)| format!("{page} (line {line})"))
            .collect();
        (!missing.is_empty()).then(|| missing.join(", "))
    });
    let quotes = quoted_pages("// see docs/a/b.md.\n// and `docs/c.rs`");
    assert_eq!(quotes, [("docs/a/b.md".to_owned(), 1)]);
}

#[test]
fn a_quote_of_a_section_that_does_not_exist_is_found() {
    let page = "# Page\n\n## 1. Commands\n\n### 1.2 Exit codes\n\n## 10. Shapes\n";
    let rows = [
        ("1", true),
        ("1.2", true),
        ("10", true),
        ("0", false),
        ("1.3", false),
        ("2", false),
        ("1.2.1", false),
    ];
    for (number, expect) in rows {
        assert_eq!(has_section(page, number), expect, "{number}");
    }
    let text = "as rule 1 says.\nrule 1.2, rule 10.\nrule of thumb";
    let expect = [("1", 1), ("1.2", 2), ("10", 2)];
    let expect = expect.map(|(number, line)| (number.to_owned(), line));
    assert_eq!(quoted_numbers(text, "rule "), expect);
}
