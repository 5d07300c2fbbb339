//! `haft runs marks`: lists what clients' runs have read that counts for their next ones, and forgets it.

use std::time::{Duration, UNIX_EPOCH};

use haft::plural::counted;
use haft_app::app::App;
use haft_app::problem::Problem;
use haft_app::provenance::{self, KeptMarks};
use haft_app::view::when;
use serde_json::json;

use crate::commands::ExitResult;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::visible;

/// Lists the marks, or forgets them.
pub(super) fn run(at: &Invocation, app: &App, clear: bool, client: Option<&str>) -> ExitResult {
    let failed = |error: std::io::Error| Problem::failed(format!("cannot read the marks: {error}"));
    let mut kept = provenance::list(app.home()).map_err(failed)?;
    if let Some(client) = client {
        kept.retain(|marks| marks.owner.client.as_deref() == Some(client));
    }
    let mut workspaces = 0;
    if clear {
        let failed =
            |error: std::io::Error| Problem::failed(format!("cannot forget the marks: {error}"));
        provenance::clear(&kept).map_err(failed)?;
        if client.is_none() {
            workspaces = provenance::clear_file_labels(app.home()).map_err(failed)?;
        }
    }
    if at.screen.json {
        at.screen
            .document(&json!({"marks": kept, "cleared": clear, "workspaces": workspaces}))?;
        return Ok(Exit::Done);
    }
    for marks in &kept {
        at.screen.out(&lines(marks))?;
    }
    at.screen.say(&match (clear, kept.is_empty()) {
        (true, _) => format!(
            "forgot the marks of {} and the written files of {}; runs that are open keep theirs",
            counted(kept.len(), "client"),
            counted(workspaces, "workspace")
        ),
        (false, true) => {
            "no client's runs have read anything that counts for its next ones".to_owned()
        }
        (false, false) => "`haft runs marks --clear` forgets them".to_owned(),
    });
    Ok(Exit::Done)
}

fn lines(marks: &KeptMarks) -> String {
    let owner = &marks.owner;
    let client = owner.client.as_deref().unwrap_or("a client without a name");
    let last = UNIX_EPOCH + Duration::from_secs(marks.last);
    let last = i128::try_from(
        last.duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_nanos(),
    );
    let last = haft::clock::rfc3339(last.unwrap_or_default());
    let mut out = format!(
        "{} ({}) in {}, last {}\n",
        visible::line(client),
        visible::line(&owner.principal),
        visible::line(&owner.workspace),
        when::ago(&last)
    );
    for source in &marks.sources {
        out.extend(["  ", &visible::line(source), "\n"]);
    }
    out
}
