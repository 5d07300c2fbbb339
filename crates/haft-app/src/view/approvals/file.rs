//! `FileSides`: one file of a request before and after, page by page, when the request does not show all of it.

use std::fs::File;
use std::path::Path;

use haft::approval::ApprovalRequest;
use haft::approval::preview::{ContentPage, FileChange, SideContent};
use haft::workspace::{EntryKind, Workspace};
use haft_builtins::command::changes::open_changed;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::app::App;
use crate::problem::Problem;

/// Maximum length of a page, in bytes; also the default.
pub const MAX_PAGE: usize = 4 << 20;
/// The tool whose arguments hold the whole file.
const WRITE: &str = "write_file";

/// A file before and after.
#[derive(Debug, Serialize)]
pub struct FileSides {
    /// Its path.
    pub path: String,
    /// Where the pages begin, in bytes.
    pub offset: u64,
    /// What is in the workspace now; absent if there is no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<ContentPage>,
    /// What it becomes; absent if it is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<ContentPage>,
}

/// The part of a file to return.
#[derive(Debug, Clone, Copy)]
pub struct ByteRange {
    /// Where it begins, in bytes.
    pub offset: u64,
    /// Its maximum length, in bytes, at most [`MAX_PAGE`].
    pub length: usize,
}

impl Default for ByteRange {
    fn default() -> Self {
        Self {
            offset: 0,
            length: MAX_PAGE,
        }
    }
}

/// Reads a part of a file that a request is about.
///
/// # Errors
/// A [`Problem`] if the request is not about the file, or its content is no longer stored anywhere.
pub fn file(
    app: &App,
    request: &ApprovalRequest,
    path: &str,
    range: ByteRange,
) -> Result<FileSides, Problem> {
    let workspace = if request.workspace == app.workspace() {
        app.files().clone()
    } else {
        let opened = Workspace::open(Path::new(&request.workspace));
        let opened = opened.map_err(|error| Problem::failed(error.to_string()))?;
        opened.with_repository()
    };
    let opened = open_changed(app.changes()?, &workspace, request, Path::new(path));
    let [before, after] = match opened {
        Some(opened) => {
            let opened = opened.map_err(|error| Problem::failed(error.message().to_owned()))?;
            opened.map(Ok)
        }
        None => of_tool(&workspace, request, path)?,
    };
    let failed = |error: std::io::Error| Problem::failed(format!("read {path}: {error}"));
    let length = range.length.clamp(1, MAX_PAGE);
    let page = |side: std::io::Result<Option<SideContent<'static>>>| {
        let page = side.map_err(failed)?;
        let page = page.map(|side| side.page(range.offset, length));
        let page = page.transpose().map_err(failed)?;
        Ok::<_, Problem>(page.map(|page| ContentPage {
            text: app.redactor().redact_exactly(&page.text).into_owned(),
            ..page
        }))
    };
    Ok(FileSides {
        path: path.to_owned(),
        offset: range.offset,
        before: page(before)?,
        after: page(after)?,
    })
}

type SideContents = [std::io::Result<Option<SideContent<'static>>>; 2];

/// Returns the sides of a file that a file tool would change: the workspace's file as it is now, which may have changed
/// since the request was made, and what the request itself holds.
fn of_tool(
    workspace: &Workspace,
    request: &ApprovalRequest,
    path: &str,
) -> Result<SideContents, Problem> {
    let preview = &request.snapshot.preview;
    let Some(shown) = preview.iter().find(|file| file.path == path) else {
        return Err(Problem::failed(format!(
            "{path} is not one of the files that this request is about"
        )));
    };
    let now = || {
        let place = workspace.existing(path).ok()?;
        (place.kind() == Some(EntryKind::File)).then(|| workspace.read(&place).ok())?
    };
    let before = match (shown.before_bytes, now()) {
        (None, _) => None,
        (Some(_), Some(open)) => {
            Some(content(open.file).map_err(|e| Problem::failed(e.to_string()))?)
        }
        (Some(_), None) => return Err(Problem::failed(format!("{path} no longer exists"))),
    };
    let after = match after(request, shown) {
        Ok(after) => after.map(|text| SideContent::from(text.into_bytes())),
        Err(why) => return Err(Problem::failed(why)),
    };
    Ok([Ok(before), Ok(after)])
}

/// Returns what a file becomes, as far as the request holds it.
fn after(request: &ApprovalRequest, shown: &FileChange) -> Result<Option<String>, String> {
    if shown.after_bytes.is_none() || shown.after.is_some() {
        return Ok(shown.after.clone());
    }
    let arguments: Map<String, Value> =
        serde_json::from_str(&request.arguments).unwrap_or_default();
    let whole = arguments.get("content").and_then(Value::as_str);
    let appends = arguments.get("mode").is_some_and(|mode| mode == "append");
    match whole {
        Some(whole) if request.tool.as_str() == WRITE && !appends => Ok(Some(whole.to_owned())),
        _ => Err(format!(
            "what {} becomes is stored nowhere yet: see the arguments of the request",
            shown.path
        )),
    }
}

fn content(file: File) -> std::io::Result<SideContent<'static>> {
    let bytes = file.metadata()?.len();
    Ok(SideContent::File(file, bytes))
}
