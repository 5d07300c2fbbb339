//! Uninstall after install: every file of every program has its bytes back, and what was not there is not there again.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::fs;
use std::path::{Path, PathBuf};

use haft_setup::edit::{jsonc, toml};
use serde_json::{Value, json};

mod candidates;
mod lab;

use candidates::{Candidate, candidates};
use lab::{Edit, Lab, Tree};

/// A step of a row.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Installs with this word in the launch of a server.
    Install(Edit, &'static str),
    Uninstall(Edit),
}

/// Returns the orders in which edits are made and undone: of each alone, and of two in any order.
fn orders(edits: &[Edit], is_shared: bool) -> Vec<Vec<Step>> {
    use Step::{Install, Uninstall};
    let singles = edits.iter().flat_map(|edit| {
        let once = vec![Install(*edit, "a"), Uninstall(*edit)];
        let twice = [&[Install(*edit, "a"), Install(*edit, "b")], &once[1..]].concat();
        [once, twice]
    });
    let mut orders: Vec<_> = singles.collect();
    let [one, other] = *edits else {
        return orders;
    };
    for (one, other) in [(one, other), (other, one)]
        .into_iter()
        .filter(|_| is_shared)
    {
        let both = [Install(one, "a"), Install(other, "a")];
        let again = [Install(one, "b")];
        let undone = [Uninstall(one), Uninstall(other)];
        let reversed = [Uninstall(other), Uninstall(one)];
        for undone in [undone, reversed] {
            orders.push([&both[..], &undone].concat());
            orders.push([&both[..], &again, &undone].concat());
        }
    }
    orders
}

/// Whether two edits may touch the same file.
fn is_shared(candidate: &Candidate, text: Option<&str>) -> bool {
    if candidate.edits.len() == 1 {
        return false;
    }
    let lab = Lab::new();
    candidate.write(&lab, text);
    let mut touched = Vec::new();
    for edit in &candidate.edits {
        let edits = lab.install(*edit, "a", candidate.level).unwrap_or_default();
        touched.push(edits.into_iter().map(|edit| edit.file).collect::<Vec<_>>());
    }
    matches!(&*touched, [one, other] if one.iter().any(|file| other.contains(file)))
}

/// Performs a row; returns what is wrong.
fn run(candidate: &Candidate, text: Option<&str>, steps: &[Step]) -> Vec<String> {
    let lab = Lab::new();
    candidate.write(&lab, text);
    let before = lab.tree();
    let at = format!(
        "{} {:?} {:?} {text:?}: {steps:?}",
        candidate.name, candidate.level, candidate.file
    );
    let mut wrong = Vec::new();
    // The files below each edit that is not undone yet; `None` if that was made anew.
    let mut below: Vec<(String, Option<Tree>)> = Vec::new();
    for step in steps {
        let now = lab.user_tree();
        match step {
            Step::Install(edit, word) => {
                let done = lab.install(*edit, word, candidate.level);
                wrong.extend(done.err().map(|refused| format!("{at}: {refused}")));
                let name = format!("{edit:?}");
                match below.iter().position(|(other, _)| *other == name) {
                    None => below.push((name, Some(now))),
                    Some(nth) if nth + 1 == below.len() => {}
                    Some(nth) => below[nth..].iter_mut().for_each(|(_, tree)| *tree = None),
                }
            }
            Step::Uninstall(edit) => {
                lab.uninstall(*edit, candidate.level).unwrap();
                let name = format!("{edit:?}");
                let nth = below.iter().position(|(other, _)| *other == name).unwrap();
                let is_last = nth + 1 == below.len();
                if let (_, Some(tree)) = below.remove(nth)
                    && is_last
                    && lab.user_tree() != tree
                {
                    wrong.push(format!("{at}: {:?}", changes(&tree, &lab.user_tree())));
                }
                below[nth..].iter_mut().for_each(|(_, tree)| *tree = None);
            }
        }
    }
    if lab.tree() != before {
        wrong.push(format!("{at}: {:?}", changes(&before, &lab.tree())));
    }
    wrong
}

#[test]
fn every_file_of_every_program_has_its_bytes_back_in_any_order() {
    let (mut wrong, mut done, mut shared) = (Vec::new(), 0, 0);
    for candidate in candidates() {
        for text in candidate.texts() {
            let is_shared = is_shared(&candidate, text.as_deref());
            for steps in orders(&candidate.edits, is_shared) {
                wrong.extend(run(&candidate, text.as_deref(), &steps));
                done += 1;
            }
            shared += usize::from(is_shared);
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {done}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(done > 2_000 && shared >= 60, "{done} {shared}");
}

/// Reads a text of a file by its format.
fn parse(file: &Path, text: &str) -> Value {
    if file.extension().is_some_and(|end| end == "toml") {
        return serde_json::to_value(toml::parse(text).unwrap()).unwrap();
    }
    jsonc::read(text).unwrap()
}

/// Adds a member of the user's to a text that has others.
fn add_member(file: &Path, text: &str) -> String {
    if file.extension().is_some_and(|end| end == "toml") {
        let plain = text.trim_start_matches('\u{feff}');
        return format!("mine = [1]\n{plain}");
    }
    text.replacen('{', "{\"mine\": [1],", 1)
}

#[test]
fn what_a_user_adds_in_between_stays_and_nothing_of_haft_does() {
    let (mut wrong, mut done) = (Vec::new(), 0);
    for candidate in candidates() {
        let Some(name) = &candidate.file else {
            continue;
        };
        for text in candidate.texts() {
            let is_shared = is_shared(&candidate, text.as_deref());
            let orders = orders(&candidate.edits, is_shared);
            for steps in orders.into_iter().filter(|steps| steps.len() != 3) {
                let lab = Lab::new();
                candidate.write(&lab, text.as_deref());
                let file = lab.base(candidate.level).join(name);
                let before = text.as_deref().unwrap_or_default();
                let mut is_changed = false;
                for step in &steps {
                    match step {
                        Step::Install(edit, word) => {
                            lab.install(*edit, word, candidate.level).unwrap();
                        }
                        Step::Uninstall(edit) => {
                            let now = fs::read_to_string(&file).unwrap_or_default();
                            if !is_changed && now != before {
                                fs::write(&file, add_member(&file, &now)).unwrap();
                                is_changed = true;
                            }
                            lab.uninstall(*edit, candidate.level).unwrap();
                        }
                    }
                }
                if !is_changed {
                    continue;
                }
                done += 1;
                let left = fs::read_to_string(&file).unwrap_or_default();
                let mut expected = parse(&file, before);
                expected["mine"] = json!([1]);
                let mut now = parse(&file, &left);
                // A version that haft added may be needed by what the user added.
                if expected.get("version").is_none() {
                    now.as_object_mut().unwrap().remove("version");
                }
                if now != expected {
                    let level = candidate.level;
                    wrong.push(format!("{name:?} {level:?} {text:?} {steps:?}: {left}"));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {done}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(done > 600, "{done}");
}

/// Returns what differs, as text.
fn changes(before: &Tree, after: &Tree) -> Vec<(PathBuf, Option<String>)> {
    let changed = after
        .iter()
        .filter(|(path, bytes)| before.get(*path) != Some(bytes));
    let text = |bytes: &Option<Vec<u8>>| {
        let bytes = bytes.as_ref();
        bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    changed
        .map(|(path, bytes)| (path.clone(), text(bytes)))
        .collect()
}
