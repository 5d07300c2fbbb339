//! Wording: replaced sentences do not come back, and names and pages keep to the glossary of CONTRIBUTING.md.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::root;

/// Parts of sentences that were replaced because no engineer would say them.
const REPLACED: [&str; 26] = [
    concat!("written down before anybody ", "is asked"),
    concat!("is gone on ", "with by"),
    concat!("by a haft that ", "is gone"),
    concat!("Say what works ", "here"),
    concat!("go on with ", "what ran"),
    concat!("stand over ", "all rules"),
    concat!("asker no longer ", "waits"),
    concat!("the decision counts when ", "the call is resumed"),
    concat!("Approve all ", "that can be"),
    concat!("Leave the ", "batch"),
    concat!("follow from the ", "line before"),
    concat!("is no ", "range"),
    concat!("which is no ", "tool, class"),
    concat!("- (", "goes)"),
    concat!("+ (", "comes)"),
    concat!("wice is ", "as once"),
    concat!("how the waits ", "ended"),
    concat!("Under what it ", "is browsed"),
    concat!(".length} ", "wait"),
    concat!("Beside what people ", "use now"),
    concat!("what passes ", "them by"),
    concat!("for once, within ", "five minutes"),
    concat!("Parts that are ", "useful alone"),
    concat!("is reached ", "by: "),
    concat!("took haft ", "out of"),
    concat!("hold secrets, they ", "look empty"),
];

/// Past participles: they say that something happened, not what a function does or a type holds.
const PARTICIPLES: [&str; 7] = ["told", "shown", "kept", "asked", "found", "taken", "said"];

/// Words that the glossary replaces, in pages.
const WORDS: [&str; 6] = ["house", "door", "doors", "somebody", "nobody", "asker"];

/// How often these words remain on a page; the counts may only shrink, too.
const LEFT_WORDS: &[(&str, usize)] = &[
    // The name of a test's row.
    ("docs/security.md", 1),
];

/// Returns every text file below these folders, with its path relative to the root.
pub(crate) fn texts(folders: &[&str], extensions: &[&str]) -> Vec<(String, String)> {
    let mut todo: Vec<_> = folders.iter().map(|folder| root().join(folder)).collect();
    let mut texts = Vec::new();
    while let Some(path) = todo.pop() {
        if path.is_dir() {
            if path.ends_with("target") || path.ends_with("node_modules") {
                continue;
            }
            todo.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else if path
            .extension()
            .and_then(|ending| ending.to_str())
            .is_some_and(|ending| extensions.contains(&ending))
        {
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            // Some recorded cases are not UTF-8.
            let bytes = fs::read(&path).unwrap();
            texts.push((name, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    texts
}

/// Returns every page for readers: the documents at the root, `docs/`, and the crates' own pages. The changelog describes the
/// past, in the words of its time.
fn pages() -> Vec<(String, String)> {
    let mut pages = texts(&["docs", "crates", "scripts"], &["md"]);
    for entry in fs::read_dir(root()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if Path::new(&name)
            .extension()
            .is_some_and(|ending| ending == "md")
            && name != "CHANGELOG.md"
        {
            pages.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
    pages
}

/// Returns the text as one line, so that a sentence is found wherever it is broken.
fn unbroken(text: &str) -> String {
    text.lines()
        .map(|line| {
            line.trim()
                .trim_start_matches(['/', '!', '*', '>', '#'])
                .trim()
                .trim_end_matches('\\')
                .trim_end()
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns the replaced sentences in a text.
fn replaced_in(text: &str) -> Vec<&'static str> {
    let text = unbroken(text);
    REPLACED
        .into_iter()
        .filter(|sentence| text.contains(sentence))
        .collect()
}

/// Returns the items of a Rust text that a participle names, in lowercase: `told` for `fn told`, `kept` for `struct Kept`.
fn participles_in(text: &str) -> Vec<String> {
    let words: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'))
        .filter(|word| !word.is_empty())
        .collect();
    words
        .windows(2)
        .filter(|pair| ["fn", "struct", "enum", "trait", "type"].contains(&pair[0]))
        .map(|pair| pair[1].to_lowercase())
        .filter(|name| PARTICIPLES.contains(&name.as_str()))
        .collect()
}

/// Returns how often the words occur on a page, outside code.
fn words_in(text: &str) -> usize {
    let mut fenced = false;
    let mut count = 0;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        // Every second piece between backticks is code.
        for prose in line.split('`').step_by(2) {
            count += prose
                .split(|c: char| !c.is_alphanumeric())
                .filter(|word| WORDS.contains(&word.to_lowercase().as_str()))
                .count();
        }
    }
    count
}

/// Fails if a count is larger than its row allows.
fn compare(what: &str, counts: &BTreeMap<String, usize>, rows: &[(&str, usize)]) {
    let allowed = |name: &str| {
        let row = rows.iter().find(|(row, _)| *row == name);
        row.map_or(0, |(_, allowed)| *allowed)
    };
    let faults: Vec<String> = counts
        .iter()
        .filter(|(name, count)| **count > allowed(name))
        .map(|(name, count)| {
            format!(
                "{name}: {count} {what}, at most {} are allowed",
                allowed(name)
            )
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn replaced_sentences_do_not_come_back() {
    let endings = [
        "rs", "md", "ts", "tsx", "js", "mjs", "html", "py", "toml", "snap",
    ];
    let mut all = texts(
        &["crates", "docs", "benches", "examples", "scripts"],
        &endings,
    );
    all.extend(pages());
    assert!(all.len() > 500, "{} texts only", all.len());
    let faults: Vec<String> = all
        .iter()
        .map(|(name, text)| (name, replaced_in(text)))
        .filter(|(_, found)| !found.is_empty())
        .map(|(name, found)| format!("{name}: {found:?}"))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn no_item_is_named_by_a_participle() {
    let faults: Vec<String> = texts(&["crates", "benches"], &["rs"])
        .iter()
        .flat_map(|(file, text)| {
            participles_in(text)
                .into_iter()
                .map(move |name| format!("{file}: an item is named `{name}`"))
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn pages_keep_to_the_glossary() {
    let counts = pages()
        .into_iter()
        .map(|(name, text)| (name, words_in(&text)));
    compare(
        "words that the glossary replaces",
        &counts.collect(),
        LEFT_WORDS,
    );
}

#[test]
fn the_rules_of_words_find_what_they_look_for() {
    let broken = concat!("/// Run x is gone on\n    ", "/// with by another.");
    assert_eq!(replaced_in(broken), [concat!("is gone on ", "with by")]);
    assert_eq!(replaced_in("run x is already being resumed"), [""; 0]);
    // So that the rule does not match this text itself.
    let code = "pub(crate) FN told(x: u8) {}\nSTRUCT Kept<T>(T);\n// FN shown\nFN told_apart() {}\nlet said = 1;";
    let code = code.replace("FN", "fn").replace("STRUCT", "struct");
    assert_eq!(participles_in(&code), ["told", "kept"]);
    let page = "The Door is open. `nobody` runs it.\n```\nhouse\n```\nSomebody's house.";
    assert_eq!(words_in(page), 3);
}
