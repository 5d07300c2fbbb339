//! Notebooks: which cells change, as text; their outputs are only counted.

use haft::approval::meaning::{Meaning, MeaningKind};
use haft::approval::preview::FileChange;
use serde::Deserialize;
use serde_json::value::RawValue;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::budget::Budget;
use super::words::{count, one_line};

/// Maximum size of a notebook that is read, in bytes.
const MAX_NOTEBOOK: usize = 16 << 20;
/// Maximum number of cells that are compared.
const MAX_CELLS: usize = 5_000;

/// A notebook, as far as it is compared (nbformat 4).
#[derive(Deserialize)]
struct Notebook<'j> {
    #[serde(borrow)]
    cells: Vec<Cell<'j>>,
    #[serde(borrow)]
    metadata: Option<&'j RawValue>,
}

#[derive(Deserialize)]
struct Cell<'j> {
    #[serde(rename = "cell_type")]
    kind: String,
    source: Source,
    #[serde(borrow, default)]
    outputs: Vec<&'j RawValue>,
}

/// The text of a cell: one string, or one for each line.
#[derive(Deserialize)]
#[serde(untagged)]
enum Source {
    Text(String),
    Lines(Vec<String>),
}

/// The text of a cell below its kind, as in Python's percent format.
fn text(cell: &Cell<'_>) -> String {
    let source = match &cell.source {
        Source::Text(text) => text.clone(),
        Source::Lines(lines) => lines.concat(),
    };
    let end = if source.ends_with('\n') { "" } else { "\n" };
    format!("# %% [{}]\n{source}{end}", one_line(&cell.kind, 30))
}

/// Returns true if the path names a notebook.
pub(super) fn is_named(path: &str) -> bool {
    path.strip_suffix(".ipynb").is_some()
}

/// Returns what the change of a notebook means; `None` if it is none that haft understands.
pub(super) fn meaning(
    path: &str,
    before: Option<&[u8]>,
    after: Option<&[u8]>,
    budget: &mut Budget,
) -> Option<Meaning> {
    if !is_named(path) {
        return None;
    }
    let (Ok(was), Ok(is)) = (parse_side(before), parse_side(after)) else {
        let title = format!("notebook {}: it cannot be read", one_line(path, 200));
        let mut meaning = Meaning::new(MeaningKind::Notebook, title);
        meaning
            .warnings
            .push("it is no notebook that haft understands".to_owned());
        return Some(meaning);
    };
    let cells = |side: &Option<Notebook<'_>>| -> Vec<String> {
        side.iter().flat_map(|one| &one.cells).map(text).collect()
    };
    let (cells_before, cells_after) = (cells(&was), cells(&is));
    let counts = Counts::of(&cells_before, &cells_after);
    let mut meaning = Meaning::new(
        MeaningKind::Notebook,
        format!("notebook {}: {}", one_line(path, 200), counts.words()),
    );
    meaning.lines = other_changes(was.as_ref(), is.as_ref());
    let side = |there: bool, cells: &[String]| there.then(|| cells.concat().into_bytes());
    let texts = [
        side(before.is_some(), &cells_before),
        side(after.is_some(), &cells_after),
    ];
    let bytes = texts.iter().flatten().map(Vec::len).sum();
    if texts[0] != texts[1] && budget.may_show(bytes) {
        let [before, after] = &texts;
        let shown = FileChange::new(path, before.as_deref(), after.as_deref());
        meaning.files.push(shown);
    }
    Some(meaning)
}

/// Reads one side, which may be no file; the error if it is no notebook.
fn parse_side(side: Option<&[u8]>) -> Result<Option<Notebook<'_>>, ()> {
    side.map(|bytes| parse(bytes).ok_or(())).transpose()
}

fn parse(bytes: &[u8]) -> Option<Notebook<'_>> {
    let bytes = (bytes.len() <= MAX_NOTEBOOK).then_some(bytes)?;
    let notebook: Notebook<'_> = serde_json::from_slice(bytes).ok()?;
    (notebook.cells.len() <= MAX_CELLS).then_some(notebook)
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    added: usize,
    removed: usize,
    changed: usize,
}

impl Counts {
    fn of(before: &[String], after: &[String]) -> Self {
        let mut counts = Self::default();
        for op in capture_diff_slices(Algorithm::Myers, before, after) {
            let (was, is) = (op.old_range().len(), op.new_range().len());
            if !matches!(op, DiffOp::Equal { .. }) {
                counts.changed += was.min(is);
                counts.added += is.saturating_sub(was);
                counts.removed += was.saturating_sub(is);
            }
        }
        counts
    }

    fn words(&self) -> String {
        let each = [
            (self.added, "added"),
            (self.changed, "changed"),
            (self.removed, "removed"),
        ];
        let each = each.into_iter().filter(|(number, _)| *number > 0);
        let words: Vec<String> = each
            .map(|(number, verb)| format!("{} {verb}", count(number, "cell")))
            .collect();
        if words.is_empty() {
            "no cell changes".to_owned()
        } else {
            words.join(", ")
        }
    }
}

/// Returns lines on what is not shown: outputs and metadata.
fn other_changes(was: Option<&Notebook<'_>>, is: Option<&Notebook<'_>>) -> Vec<String> {
    let outputs = |side: Option<&Notebook<'_>>| -> Vec<String> {
        let cells = side.into_iter().flat_map(|one| &one.cells);
        cells
            .flat_map(|cell| &cell.outputs)
            .map(|output| output.get().to_owned())
            .collect()
    };
    let (before, after) = (outputs(was), outputs(is));
    let mut lines = Vec::new();
    if before != after {
        let line = format!("outputs, not shown: {} → {}", before.len(), after.len());
        lines.push(line);
    }
    let metadata = |side: Option<&Notebook<'_>>| {
        let metadata = side.and_then(|one| one.metadata);
        metadata.map(|raw| raw.get().to_owned())
    };
    if was.is_some() && is.is_some() && metadata(was) != metadata(is) {
        lines.push("its metadata changes, too".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::meaning;
    use crate::command::meaning::budget::Budget;

    const NOTEBOOK: &str = r##"{"cells":[{"cell_type":"markdown","source":["# Title\n"]},
        {"cell_type":"code","source":["x = 1\n","print(x)"],"outputs":[{"output_type":"stream","text":["1\n"]}]}],
        "metadata":{"kernelspec":{"name":"python3"}},"nbformat":4}"##;

    #[test]
    fn a_notebook_shows_its_cells_and_counts_its_outputs() {
        let rows = [
            ("x = 1", "x = 2", "1 cell changed", ""),
            (
                "\"outputs\":[{\"output_type\":\"stream\",\"text\":[\"1\\n\"]}]",
                "\"outputs\":[]",
                "no cell changes",
                "outputs, not shown: 1 → 0",
            ),
            ("python3", "evil", "no cell changes", "metadata changes"),
            (
                "{\"cell_type\":\"markdown\",\"source\":[\"# Title\\n\"]},",
                "",
                "1 cell removed",
                "",
            ),
        ];
        for (from, to, title, line) in rows {
            let after = NOTEBOOK.replace(from, to);
            assert_ne!(after, NOTEBOOK, "{from}");
            let mut budget = Budget::new(Duration::from_secs(60));
            let found = meaning(
                "a.ipynb",
                Some(NOTEBOOK.as_bytes()),
                Some(after.as_bytes()),
                &mut budget,
            );
            let found = found.unwrap();
            assert_eq!(found.title, format!("notebook a.ipynb: {title}"));
            assert!(found.lines.join("\n").contains(line), "{found:?}");
        }
        for junk in ["no JSON", "{}", "[1]", ""] {
            let mut budget = Budget::new(Duration::from_secs(60));
            let found = meaning("a.ipynb", None, Some(junk.as_bytes()), &mut budget).unwrap();
            assert!(found.warnings.len() == 1, "{junk}");
        }
    }
}
