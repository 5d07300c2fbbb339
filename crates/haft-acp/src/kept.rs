//! Finds the run that now holds a session's conversation, and lists the sessions. A session is named by its first run; a finished run
//! is continued in a new one.

use std::io::ErrorKind;
use std::path::Path;

use haft::audit::index::RunFilter;
use haft::audit::runs::{self, RunsError};
use haft::call::RunId;
use haft_app::agent::{is_kept, kept_runs};
use haft_app::plain_file;
use haft_app::problem::Problem;
use serde_json::{Value, json};

use crate::limits::PAGE;
use crate::options::AcpOptions;
use crate::protocol::ListSessions;
use crate::rpc::RpcError;

/// The file in the first run's folder that names the latest run.
const LATEST: &str = "session-run";
/// The file in a later run's folder that names the first run.
const FIRST: &str = "session-of";
/// Maximum size of these files in bytes.
const MOST: u64 = 4096;

/// Returns the run that holds the conversation of a session.
pub(crate) fn run_of(home: &Path, session: &str) -> Result<RunId, Problem> {
    let unknown = || Problem::from(RunsError::NotFound(session.to_owned()));
    let folder = runs::run_dir(home, session).map_err(|_| unknown())?;
    if !is_kept(&folder) {
        return Err(unknown());
    }
    match plain_file::read(&folder.join(LATEST), MOST) {
        Ok(run) => Ok(RunId::new(run.trim())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(RunId::new(session)),
        Err(error) => Err(Problem::failed(format!(
            "cannot read which run continues session {session}: {error}"
        ))),
    }
}

/// Records that a run continues a session.
pub(crate) fn note(home: &Path, session: &str, run: &RunId) -> Result<(), Problem> {
    if run.as_str() == session {
        return Ok(());
    }
    for (of, file, names) in [
        (run.as_str(), FIRST, session),
        (session, LATEST, run.as_str()),
    ] {
        let folder = runs::run_dir(home, of)?;
        plain_file::write_private(&folder.join(file), names).map_err(|e| {
            Problem::failed(format!(
                "cannot note which run continues session {session}: {e}"
            ))
        })?;
    }
    Ok(())
}

/// Returns one page of the sessions, newest first.
pub(crate) async fn list(options: &AcpOptions, said: &ListSessions) -> Result<Value, RpcError> {
    // If no folder is given, haft's own settings determine which runs there are.
    let site = if let Some(folder) = &said.cwd {
        options.site(folder)?
    } else {
        options.home.create()?;
        options.site(options.home.path())?
    };
    let settings = options.settings(&site)?;
    let filter = RunFilter {
        workspace: said
            .cwd
            .as_ref()
            .map(|_| site.workspace.display().to_string()),
        after: said.cursor.as_deref().map(RunId::new),
        ..RunFilter::newest(PAGE)
    };
    let kept = kept_runs(&site, &settings, filter).await?;
    let sessions = kept
        .runs
        .into_iter()
        .filter(|kept| !kept.folder.join(FIRST).exists());
    let sessions = sessions.map(|kept| {
        json!({
            "sessionId": kept.run, "cwd": kept.workspace, "title": kept.prompt, "updatedAt": kept.last,
        })
    });
    let mut page = json!({"sessions": sessions.collect::<Vec<_>>()});
    if let Some(next) = kept.next {
        page["nextCursor"] = json!(next);
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_found_by_its_first_run_and_leads_to_the_latest() {
        let home = tempfile::tempdir().unwrap();
        let folder = runs::run_dir(home.path(), "20261126-a").unwrap();
        for session in ["20261126-a", "../etc", ""] {
            assert!(run_of(home.path(), session).is_err(), "{session}");
        }
        std::fs::create_dir_all(&folder).unwrap();
        assert!(
            run_of(home.path(), "20261126-a").is_err(),
            "not of an agent"
        );
        std::fs::write(folder.join("conversation.jsonl"), "").unwrap();
        let run = |session| run_of(home.path(), session).unwrap().to_string();
        assert_eq!(run("20261126-a"), "20261126-a");
        note(home.path(), "20261126-a", &RunId::new("20261126-a")).unwrap();
        assert_eq!(run("20261126-a"), "20261126-a");
        for later in ["20261126-b", "20261126-c"] {
            std::fs::create_dir_all(runs::run_dir(home.path(), later).unwrap()).unwrap();
            note(home.path(), "20261126-a", &RunId::new(later)).unwrap();
            assert_eq!(run("20261126-a"), later);
        }
    }
}
