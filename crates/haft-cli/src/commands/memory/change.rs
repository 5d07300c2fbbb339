//! `haft memory add | edit | remove`: changes that a user makes to memory.

use std::io::Read as _;

use haft::memory::{MAX_CONTENT, MemoryId, MemoryRecord, MemoryScope};
use haft_app::app::App;
use haft_app::problem::Problem;
use haft_app::remember::{self, MemoryText};

use super::to_problem;
use crate::commands::ExitResult;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::visible;

/// Adds a memory.
pub(super) async fn add(
    at: &Invocation,
    app: &App,
    text: &str,
    scope: &str,
    tags: &[String],
) -> ExitResult {
    let known = MemoryScope::parse(scope);
    let known = known.ok_or_else(|| {
        Problem::usage(format!("unknown scope `{scope}`")).advise("write user or project")
    })?;
    let text = MemoryText {
        content: Some(content(text)?),
        tags: Some(tags.to_vec()),
    };
    let added = remember::add(app, known, text, &app.principal().subject).await;
    done(at, "added", &added.map_err(|e| to_problem(&e))?)
}

/// Changes a memory.
pub(super) async fn edit(
    at: &Invocation,
    app: &App,
    id: &MemoryId,
    text: Option<&str>,
    tags: &[String],
) -> ExitResult {
    if text.is_none() && tags.is_empty() {
        return Err(Problem::usage("nothing to change").advise("give a text, --tag, or both"));
    }
    let text = MemoryText {
        content: text.map(content).transpose()?,
        tags: (!tags.is_empty()).then(|| tags.to_vec()),
    };
    let edited = remember::edit(app, id, None, text, &app.principal().subject).await;
    done(at, "changed", &edited.map_err(|e| to_problem(&e))?)
}

/// Removes a memory.
pub(super) async fn remove(at: &Invocation, app: &App, id: &MemoryId) -> ExitResult {
    let removed = remember::remove(app, id, None).await;
    done(at, "removed", &removed.map_err(|e| to_problem(&e))?)
}

/// Returns the text given, or the text on stdin.
fn content(text: &str) -> Result<String, Problem> {
    if text != "-" {
        return Ok(text.to_owned());
    }
    let mut read = String::new();
    // One byte more than a memory may have shows that the text is too long.
    let mut input = std::io::stdin().lock().take(MAX_CONTENT as u64 + 1);
    let length = input.read_to_string(&mut read);
    length.map_err(|e| Problem::usage(format!("cannot read the text from stdin: {e}")))?;
    Ok(read)
}

fn done(at: &Invocation, word: &str, record: &MemoryRecord) -> ExitResult {
    if at.screen.json {
        at.screen.document(record)?;
    } else {
        let id = visible::line(record.id.as_str());
        at.screen.say(&format!("{word} {id}"));
    }
    Ok(Exit::Done)
}
