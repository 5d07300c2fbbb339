//! Notebooks: which cells change, as text, with everything else that is in them; only their outputs are counted.

use std::collections::BTreeMap;

use haft::approval::meaning::{Meaning, MeaningKind};
use haft::approval::preview::FileChange;
use haft::text::hex;
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::budget::Budget;
use super::words::{count, name, one_line, size};

/// Maximum size of a notebook that is read, in bytes.
const MAX_NOTEBOOK: usize = 16 << 20;
/// Maximum number of cells that are compared.
const MAX_CELLS: usize = 5_000;

/// Maximum length of a value that is shown whole, in bytes. Of a longer one, such as an attached picture, the hash is.
const MAX_VALUE: usize = 2_000;

/// Members by their names. Of several of one name the last counts, as in Jupyter.
type Fields<'j> = BTreeMap<String, &'j RawValue>;

/// A notebook (nbformat 4).
struct Notebook<'j> {
    cells: Vec<Cell<'j>>,
    /// Everything but its cells.
    others: Fields<'j>,
}

struct Cell<'j> {
    kind: String,
    source: CellSource,
    outputs: Vec<&'j RawValue>,
    /// Everything but its kind, its text and its outputs.
    others: Fields<'j>,
}

impl<'j> Notebook<'j> {
    fn parse(bytes: &'j [u8]) -> Option<Self> {
        let mut others: Fields<'j> = serde_json::from_slice(bytes).ok()?;
        let cells: Vec<Fields<'j>> = serde_json::from_str(others.remove("cells")?.get()).ok()?;
        if cells.len() > MAX_CELLS {
            return None;
        }
        let cells = cells.into_iter().map(Cell::parse).collect::<Option<_>>()?;
        Some(Self { cells, others })
    }
}

impl<'j> Cell<'j> {
    fn parse(mut others: Fields<'j>) -> Option<Self> {
        let kind = serde_json::from_str(others.remove("cell_type")?.get()).ok()?;
        let source = serde_json::from_str(others.remove("source")?.get()).ok()?;
        let outputs = match others.remove("outputs") {
            Some(outputs) => serde_json::from_str(outputs.get()).ok()?,
            None => Vec::new(),
        };
        // It says how often the cell ran.
        others.remove("execution_count");
        Some(Self {
            kind,
            source,
            outputs,
            others,
        })
    }
}

/// The text of a cell: one string, or one for each line.
#[derive(Deserialize)]
#[serde(untagged)]
enum CellSource {
    Text(String),
    Lines(Vec<String>),
}

/// Returns a line for each further member that says anything.
fn lines_of(others: &Fields<'_>) -> String {
    let line = |(name, value): (&String, &&RawValue)| {
        let text = serde_json::from_str::<serde_json::Value>(value.get());
        let text = text.map_or_else(|_| value.get().to_owned(), |value| value.to_string());
        if matches!(&*text, "{}" | "[]" | "null") {
            return String::new();
        }
        let shown = if text.len() <= MAX_VALUE {
            one_line(&text, MAX_VALUE)
        } else {
            let hash = hex(&Sha256::digest(&text));
            let begin = one_line(&text, 200);
            format!(
                "{begin} ({} in all, sha256 {hash})",
                size(text.len() as u64)
            )
        };
        format!("# {}: {shown}\n", one_line(name, 100))
    };
    others.iter().map(line).collect()
}

/// The text of a cell below its kind, as in Python's percent format, and then what else it has.
fn text(cell: &Cell<'_>) -> String {
    let source = match &cell.source {
        CellSource::Text(text) => text.clone(),
        CellSource::Lines(lines) => lines.concat(),
    };
    let end = if source.ends_with('\n') { "" } else { "\n" };
    let others = lines_of(&cell.others);
    format!("# %% [{}]\n{source}{end}{others}", one_line(&cell.kind, 30))
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
        let title = format!("notebook {}: it cannot be read", name(path.as_bytes()));
        let mut meaning = Meaning::new(MeaningKind::Notebook, title);
        meaning
            .warnings
            .push("haft does not understand it as a notebook".to_owned());
        return Some(meaning);
    };
    let cells = |side: &Option<Notebook<'_>>| -> Vec<String> {
        side.iter().flat_map(|one| &one.cells).map(text).collect()
    };
    let (cells_before, cells_after) = (cells(&was), cells(&is));
    let counts = CellCounts::of(&cells_before, &cells_after);
    let mut meaning = Meaning::new(
        MeaningKind::Notebook,
        format!("notebook {}: {}", name(path.as_bytes()), counts.words()),
    );
    meaning.lines = other_changes(was.as_ref(), is.as_ref());
    let side = |of: &Option<Notebook<'_>>, cells: &[String]| {
        let others = lines_of(&of.as_ref()?.others);
        Some((others + &cells.concat()).into_bytes())
    };
    let texts = [side(&was, &cells_before), side(&is, &cells_after)];
    let bytes = texts.iter().flatten().map(Vec::len).sum();
    if texts[0] != texts[1] {
        let [before, after] = &texts;
        let mut shown = FileChange::new(path, before.as_deref(), after.as_deref());
        if !budget.may_show(bytes) {
            shown.fold("the request has no room for it");
        }
        meaning.files.push(shown);
    }
    Some(meaning)
}

/// Reads one side, which may be no file; the error if it is not a notebook.
fn parse_side(side: Option<&[u8]>) -> Result<Option<Notebook<'_>>, ()> {
    side.map(|bytes| parse(bytes).ok_or(())).transpose()
}

fn parse(bytes: &[u8]) -> Option<Notebook<'_>> {
    let bytes = (bytes.len() <= MAX_NOTEBOOK).then_some(bytes)?;
    Notebook::parse(bytes)
}

#[derive(Debug, Default, PartialEq, Eq)]
struct CellCounts {
    added: usize,
    removed: usize,
    changed: usize,
}

impl CellCounts {
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

/// Returns lines on what changes beside its cells.
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
    if let (Some(was), Some(is)) = (was, is)
        && lines_of(&was.others) != lines_of(&is.others)
    {
        lines.push("what it says of itself, such as its metadata, changes, too".to_owned());
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
            ("python3", "evil", "no cell changes", "metadata, changes"),
            (
                "\"cell_type\":\"markdown\",",
                "\"cell_type\":\"markdown\",\"attachments\":{\"a.svg\":{\"image/svg+xml\":\"evil\"}},",
                "1 cell changed",
                "",
            ),
            (
                "\"cell_type\":\"code\",",
                "\"cell_type\":\"code\",\"metadata\":{\"tags\":[\"evil\"]},",
                "1 cell changed",
                "",
            ),
            (
                "{\"cells\"",
                "{\"worksheets\":[\"evil\"],\"cells\"",
                "no cell changes",
                "changes, too",
            ),
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
            if to.contains("evil") {
                let shown = found.files.iter().filter_map(|file| file.after.as_ref());
                assert!(
                    shown.cloned().collect::<String>().contains("evil"),
                    "{found:?}"
                );
            }
        }
    }

    #[test]
    fn a_file_that_is_no_notebook_says_so() {
        for junk in ["no JSON", "{}", "[1]", ""] {
            let mut budget = Budget::new(Duration::from_secs(60));
            let found = meaning("a.ipynb", None, Some(junk.as_bytes()), &mut budget).unwrap();
            assert!(found.warnings.len() == 1, "{junk}");
        }
    }
}
