//! What an agent's session changed: its commands are runs of their own, and its edits a run of the hook's.

use std::collections::{BTreeMap, BTreeSet};

use haft::call::RunId;

use crate::app::App;
use crate::problem::Problem;
use crate::run::selection::RunSelection;

/// The calls of a session that changed files.
#[derive(Debug, Default)]
pub struct SessionChanges {
    /// The calls, the last change first: the order in which they can be undone.
    pub calls: Vec<RunSelection>,
    /// What they changed, as paths below the workspace.
    pub paths: BTreeSet<String>,
}

/// Returns what the session changed that a run belongs to, in this workspace.
///
/// # Errors
/// The run belongs to no session of an agent, or a record cannot be read.
pub async fn changes_of_session(app: &App, of: &RunId) -> Result<SessionChanges, Problem> {
    let unread = |what: String| Problem::failed(format!("cannot read what was changed: {what}"));
    let runs = app.runs().of_session(of).await;
    let Some(runs) = runs.map_err(|error| unread(error.to_string()))? else {
        let what = format!("run {of} belongs to no session of an agent");
        return Err(Problem::usage(what).advise("omit --session to undo the run alone"));
    };
    let log = app.changes()?;
    let mut last: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut paths = BTreeSet::new();
    for run in runs {
        let sets = log.read(&run);
        for set in sets.map_err(|error| unread(error.to_string()))? {
            let call = set.call.as_str().split('.').next().unwrap_or_default();
            let at = last.entry((run.to_string(), call.to_owned())).or_default();
            *at = set.at.max(std::mem::take(at));
            let changed = set.changes.iter();
            paths.extend(changed.map(|one| one.path.to_string_lossy().into_owned()));
        }
    }
    let mut calls: Vec<_> = last.into_iter().collect();
    calls.sort_by(|(_, one), (_, other)| other.cmp(one));
    let calls = calls.into_iter().map(|((run, call), _)| RunSelection {
        run: RunId::new(run),
        call: Some(call),
    });
    Ok(SessionChanges {
        calls: calls.collect(),
        paths,
    })
}
