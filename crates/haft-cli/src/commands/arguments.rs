//! A call's arguments as typed: `KEY=VALUE`, or `--args` with JSON, `@FILE`, or `-` for stdin.

use std::io;
use std::path::Path;

use haft_app::plain_file;
use haft_app::problem::{Problem, SourceLocation};
use serde_json::Value;

use crate::args::CallArguments;

mod pairs;

/// The maximum size of arguments that are read; the executor applies its own limit.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Returns the argument text of a call; `schema` is the tool's, if there is such a tool.
pub(crate) fn of_call(typed: &CallArguments, schema: Option<&Value>) -> Result<String, Problem> {
    match &typed.args {
        Some(args) => read(args),
        None if typed.pairs.is_empty() => Ok("{}".to_owned()),
        None => pairs::to_json(&typed.pairs, schema),
    }
}

/// Returns the argument text; it is not validated here.
pub(crate) fn read(typed: &str) -> Result<String, Problem> {
    let told = |what: io::Error, place: SourceLocation| {
        Problem::usage(format!("cannot read the arguments: {what}"))
            .at(place)
            .advise("--args takes JSON, @FILE, or - for stdin")
    };
    if typed == "-" {
        return plain_file::bounded(io::stdin().lock(), MAX_BYTES)
            .map_err(|e| told(e, SourceLocation::named("stdin")));
    }
    match typed.strip_prefix('@') {
        Some(file) => {
            let path = Path::new(file);
            plain_file::read(path, MAX_BYTES).map_err(|e| told(e, SourceLocation::file(path)))
        }
        None => Ok(typed.to_owned()),
    }
}
