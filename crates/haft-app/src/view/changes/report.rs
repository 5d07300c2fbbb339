//! The list of what a run changed, each text file with its diff.

use haft::approval::meaning::Meaning;
use haft::change::net::{ChangeKind, NetChange, net_changes};
use haft_builtins::files::undo::change_sets;
use serde::Serialize;

use crate::app::App;
use crate::change_texts::ChangeTexts;
pub use crate::change_texts::{FileReport, FileTexts, ReportLimits};
use crate::problem::Problem;
use crate::run::selection::RunSelection;

/// What a run, or one call of it, changed.
#[derive(Debug, Serialize)]
pub struct ChangeReport {
    run: String,
    /// What the changes amount to: commits, packages, pictures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub meanings: Vec<Meaning>,
    /// The net change of each file, from before the first change to after the last.
    pub changes: Vec<FileReport>,
    /// Number of changes left out of the list: new and modified files are left out first.
    #[serde(skip_serializing_if = "is_zero")]
    more_changes: usize,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Reports what a run, or one call of it, changed.
///
/// # Errors
/// The run's change log cannot be read.
pub fn report(
    app: &App,
    of: &RunSelection,
    limits: &ReportLimits<'_>,
) -> Result<ChangeReport, Problem> {
    let nets = nets(app, of)?;
    let listed = listed(&nets, limits.most_files());
    let more_changes = nets.len() - listed.len();
    let mut texts = ChangeTexts::new(app.files(), app.changes()?, &of.run, limits);
    let mut meanings = texts.meanings(&nets);
    if let Some(redactor) = limits.redactor() {
        for meaning in &mut meanings {
            meaning.visit_texts(&mut |text| *text = redactor.redact(text).into_owned());
        }
    }
    Ok(ChangeReport {
        run: of.run.to_string(),
        meanings,
        changes: listed.into_iter().map(|net| texts.report(net)).collect(),
        more_changes,
    })
}

/// Returns the text files that a run, or one call of it, changed, before and after; leaves out files that are too long or not text.
///
/// # Errors
/// The run's change log cannot be read.
pub fn texts(
    app: &App,
    of: &RunSelection,
    limits: &ReportLimits<'_>,
) -> Result<Vec<FileTexts>, Problem> {
    let nets = nets(app, of)?;
    let mut texts = ChangeTexts::new(app.files(), app.changes()?, &of.run, limits);
    let listed = listed(&nets, limits.most_files()).into_iter();
    Ok(listed.filter_map(|net| texts.sides(net)).collect())
}

/// Returns each file's net change, from before the first change to after the last.
fn nets(app: &App, of: &RunSelection) -> Result<Vec<NetChange>, Problem> {
    let sets = change_sets(app.changes()?, &of.run, of.call.as_deref());
    let sets =
        sets.map_err(|e| Problem::failed(format!("cannot read what run {} changed: {e}", of.run)))?;
    Ok(net_changes(&sets))
}

/// Returns up to `most` changes, in order. New and modified files are left out first.
fn listed(nets: &[NetChange], most: usize) -> Vec<&NetChange> {
    let is_ordinary =
        |net: &NetChange| matches!(net.action(), ChangeKind::Create | ChangeKind::Modify);
    let others = nets.iter().filter(|net| !is_ordinary(net)).count();
    let mut others_left = most;
    let mut ordinary_left = most.saturating_sub(others);
    let mut keep = |net: &&NetChange| {
        let left = if is_ordinary(net) {
            &mut ordinary_left
        } else {
            &mut others_left
        };
        let is_listed = *left > 0;
        *left = left.saturating_sub(1);
        is_listed
    };
    nets.iter().filter(|net| keep(net)).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use haft::change::EntryState;
    use haft::change::net::{NetChange, PathState};

    use super::listed;

    fn net(path: &str, deleted: bool) -> NetChange {
        let state = PathState {
            path: Path::new(path).to_owned(),
            state: EntryState::Folder { mode: None },
        };
        let (before, after) = if deleted {
            (Some(state), None)
        } else {
            (None, Some(state))
        };
        NetChange {
            before,
            after,
            foreign: false,
            unfinished: false,
        }
    }

    #[test]
    fn a_list_that_is_cut_keeps_every_deletion() {
        let nets = [
            ("a", false),
            ("b", false),
            ("c", true),
            ("d", false),
            ("e", true),
        ];
        let nets = nets.map(|(path, deleted)| net(path, deleted));
        let cut = |most| -> String {
            let listed_nets = listed(&nets, most);
            listed_nets
                .iter()
                .map(|net| net.path().to_string_lossy())
                .collect()
        };
        assert_eq!(cut(usize::MAX), "abcde");
        assert_eq!(cut(4), "abce");
        assert_eq!(cut(3), "ace");
        assert_eq!(cut(1), "c");
    }
}
