//! `docs/reference/code-map.md` lists every source file with the first sentence of its caption.
//!
//! `HAFT_API=write cargo test -p haft-cli --test tidy code_map` writes it after files were added, moved or described anew.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::api::check_snapshot;
use crate::language::texts;
use crate::root;

const PAGE: &str = "docs/reference/code-map.md";

const HEAD: &str = "# Code map

Every source file except tests, with the first sentence of its caption. [ARCHITECTURE.md](../../ARCHITECTURE.md) says how they work together.
A file says more about itself than this page: read its caption whole.

This page is generated: `HAFT_API=write cargo test -p haft-cli --test tidy code_map` writes it, and the same test fails where it is not what
the captions say.
";

/// Folders with sources below a crate's folder, with the ends of their files and the mark of a caption.
const SOURCES: [(&str, &str, &str); 2] = [("src/", ".rs", "//!"), ("ui/src/", ".ts .tsx", "//")];

/// Returns the first paragraph of the caption that opens a file, on one line.
fn caption(text: &str, mark: &str) -> String {
    let lines = text
        .lines()
        .map_while(|line| Some(line.strip_prefix(mark)?.trim()));
    let lines: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    lines.join(" ")
}

/// Returns the first sentence of a caption. A full stop ends it if a sentence can begin after it.
fn first_sentence(caption: &str) -> &str {
    let begins = |rest: &str| {
        let rest = rest.trim_start();
        rest.is_empty()
            || rest.starts_with(|c: char| c.is_uppercase() || c == '`')
            || rest.starts_with("haft ")
    };
    let mut stops = caption.match_indices(". ");
    let end = stops.find(|(at, _)| begins(&caption[at + 1..]));
    end.map_or(caption, |(at, _)| &caption[..=at])
}

/// Returns the crate, the path below its sources, and the line of the map, of a source file; `None` for other files.
fn entry(path: &str, text: &str) -> Option<(String, String, String)> {
    let (home, file) = path.strip_prefix("crates/")?.split_once('/')?;
    let (folder, _, mark) = SOURCES.into_iter().find(|(folder, ends, _)| {
        file.starts_with(folder) && ends.split(' ').any(|end| file.ends_with(end))
    })?;
    let below = &file[folder.len()..];
    if below
        .split('/')
        .any(|part| matches!(part, "tests" | "tests.rs"))
    {
        return None;
    }
    let home = format!("{home}/{}", folder.trim_end_matches('/'));
    let said = caption(text, mark);
    let line = format!("- `{below}`: {}", first_sentence(&said));
    Some((home, below.to_owned(), line))
}

/// Returns the page: crate by crate, the files of its root first, then folder by folder, each after the file that it belongs to.
fn page(files: &[(String, String)]) -> String {
    let mut crates = BTreeMap::<String, BTreeMap<(String, String), String>>::new();
    for (path, text) in files {
        let Some((home, below, line)) = entry(path, text) else {
            continue;
        };
        let folder = below.split_once('/').map_or("", |(folder, _)| folder);
        // Without its ending, a file sorts before those below it.
        let place = below
            .rsplit_once('.')
            .map_or(&*below, |(stem, _)| stem)
            .replace('/', "\0");
        crates
            .entry(home)
            .or_default()
            .insert((folder.to_owned(), place), line);
    }
    let mut page = HEAD.to_owned();
    for (home, lines) in crates {
        let _ = write!(page, "\n## {home}\n\n");
        let mut last = String::new();
        for ((folder, _), line) in lines {
            if folder != last {
                let _ = write!(page, "\n### {home}/{folder}\n\n");
                last = folder;
            }
            page.push_str(&line);
            page.push('\n');
        }
    }
    page
}

#[test]
fn the_code_map_says_what_the_captions_say() {
    let files = texts(&["crates"], &["rs", "ts", "tsx"]);
    let page = page(&files);
    assert!(
        page.lines().count() > 1_000,
        "{} lines",
        page.lines().count()
    );
    check_snapshot(&root().join(PAGE), &page, PAGE);
}

#[test]
fn a_map_has_first_sentences_in_the_order_of_folders() {
    let rows = [
        ("One. Two.", "One."),
        ("`A`: of b.rs, c. haft knows it.", "`A`: of b.rs, c."),
        (
            "Reads 1.2 and RFC 7.3, e.g. this. It ends.",
            "Reads 1.2 and RFC 7.3, e.g. this.",
        ),
        ("No stop", "No stop"),
    ];
    for (text, expect) in rows {
        assert_eq!(first_sentence(text), expect, "{text}");
    }
    let files = [
        (
            "crates/a/src/lib.rs",
            "//! The root,\n//! in two lines. More.\n//!\n//! Much more.\n",
        ),
        ("crates/a/src/b/c/d.rs", "//! D.\n"),
        ("crates/a/src/b/c.rs", "//! C.\n"),
        ("crates/a/src/b.rs", "//! B.\n"),
        ("crates/a/src/b/tests.rs", "//! Tests.\n"),
        ("crates/a/tests/it.rs", "//! Tests.\n"),
        ("crates/a/ui/src/e.ts", "// E.\n\nimport \"x\";\n"),
    ];
    let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
    let expect = "\n## a/src\n\n- `b.rs`: B.\n- `lib.rs`: The root, in two lines.\n\n### a/src/b\n\n- `b/c.rs`: C.\n- `b/c/d.rs`: D.\n\n## a/ui/src\n\n- `e.ts`: E.\n";
    assert_eq!(page(&files).strip_prefix(HEAD), Some(expect));
}
