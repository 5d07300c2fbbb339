//! Recorded exchanges with providers, from the folder in `HAFT_DATA`.

use std::fs;
use std::path::Path;

use haft_wire::declarer::VersionedTool;
use haft_wire::{Declarations, Declarer, Delta, Dialect, Reply, ReplyLimits, ToolDeclaration};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::sync::Arc;

/// A request and the provider's answer.
pub(crate) struct Exchange {
    /// The recording and the position in it, for messages.
    pub(crate) name: String,
    /// The request's path.
    pub(crate) path: String,
    /// The request's body.
    pub(crate) request: Value,
    pub(crate) status: u64,
    /// The answer's body; `Null` if it was streamed.
    pub(crate) body: Value,
    /// The answer's stream, unchanged.
    pub(crate) stream: Option<String>,
}

/// Returns the exchanges of a dialect; `None`, with a message, if there is no data.
pub(crate) fn exchanges(folder: &str) -> Option<Vec<Exchange>> {
    let Some(data) = std::env::var_os("HAFT_DATA") else {
        eprintln!("SKIPPED: HAFT_DATA is not set, the recorded exchanges of {folder} are not read");
        return None;
    };
    let folder = Path::new(&data).join("provider-exchanges").join(folder);
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let recording: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        for (at, one) in recording["exchanges"]
            .as_array()
            .unwrap()
            .iter()
            .enumerate()
        {
            let name = file.file_stem().unwrap().to_string_lossy();
            all.push(Exchange {
                name: format!("{name} {at}"),
                path: one["request"]["path"].as_str().unwrap().to_owned(),
                request: one["request"]["body"].clone(),
                status: one["response"]["status"].as_u64().unwrap(),
                body: one["response"]["body"].clone(),
                stream: one["response"]["sse"].as_str().map(str::to_owned),
            });
        }
    }
    Some(all)
}

/// Returns the data of a stream's events, read without haft.
pub(crate) fn events(stream: &str) -> Vec<Value> {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data:"));
    data.map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

/// Reads a stream in pieces of these sizes, repeated.
pub(crate) fn streamed(dialect: Dialect, stream: &str, sizes: &[usize]) -> (Reply, Vec<Delta>) {
    let mut reader = dialect.reader(ReplyLimits::default());
    let (mut rest, mut deltas, mut turn) = (stream.as_bytes(), Vec::new(), 0);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(sizes[turn % sizes.len()].min(rest.len()));
        reader.push(piece, &mut deltas).unwrap();
        (rest, turn) = (after, turn + 1);
    }
    assert!(reader.is_whole());
    (reader.finish().unwrap(), deltas)
}

/// Asserts that the reply is the same however the stream is cut.
pub(crate) fn reads_alike_however_cut(dialect: Dialect, stream: &str) -> Reply {
    let (whole, _) = streamed(dialect, stream, &[stream.len()]);
    for sizes in [&[1][..], &[2, 3, 5], &[7], &[1, 64], &[4096]] {
        let (reply, _) = streamed(dialect, stream, sizes);
        assert_eq!(format!("{reply:?}"), format!("{whole:?}"), "{sizes:?}");
    }
    whole
}

pub(crate) fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap()
}

pub(crate) fn declare(dialect: Dialect, tools: &[ToolDeclaration]) -> Arc<Declarations> {
    let versions: Vec<String> = (0..tools.len()).map(|at| at.to_string()).collect();
    let entries: Vec<VersionedTool<'_>> = versions
        .iter()
        .zip(tools)
        .map(|(version, tool)| VersionedTool { version, tool })
        .collect();
    Declarer::new(dialect).declare(&entries)
}

/// Returns the members of a body that the host passes through unchanged.
pub(crate) fn further(body: &Value, own: &[&str]) -> Vec<(String, Box<RawValue>)> {
    let members = body.as_object().unwrap().iter();
    members
        .filter(|(name, _)| !own.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), raw(value)))
        .collect()
}
