//! Encodes the host's answers: an outcome as a script sees it.

use haft::error::{ErrorKind, bounded};
use haft::result::{Artifact, Failure, Outcome, PartMark, Status};
use serde::Serialize;
use serde_json::value::RawValue;

/// Media of a call, as a file in the script's folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MediaFile {
    /// The path by which the script finds it.
    pub path: String,
    /// Its media type.
    pub media_type: String,
    /// The ref of the artifact with its bytes; empty if the host stores none.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Its size in bytes.
    pub bytes: u64,
}

#[derive(Serialize)]
struct BridgeReply<'a> {
    status: Status,
    #[serde(skip_serializing_if = "str::is_empty")]
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    artifacts: &'a [Artifact],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    files: &'a [MediaFile],
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
    /// What a call that failed gave, for the traceback of a script that does not catch its error.
    #[serde(skip_serializing_if = "String::is_empty")]
    printed: String,
    seq: u64,
}

/// Returns the answer to call `seq`.
pub fn outcome(seq: u64, outcome: &Outcome, files: &[MediaFile]) -> String {
    let reply = BridgeReply {
        status: outcome.status,
        text: &outcome.text(),
        data: outcome.data.as_deref(),
        artifacts: &outcome.artifacts,
        files,
        error: outcome.error.as_ref(),
        printed: output_of(outcome),
        seq,
    };
    serde_json::to_string(&reply).unwrap_or_else(|_| "{\"status\":\"error\"}".to_owned())
}

/// Returns what a call that failed gave: its output and notes, without the advice, which the error has.
fn output_of(outcome: &Outcome) -> String {
    let Some(error) = &outcome.error else {
        return String::new();
    };
    let mut rendered = outcome.render();
    let advice = error.advice.as_deref();
    rendered.parts.retain(|part| {
        let is_advice = part.mark == PartMark::Note && Some(&*part.text) == advice;
        part.mark != PartMark::Status && !is_advice
    });
    rendered.to_text()
}

/// Returns the answer to a `put` or an `info`.
pub fn artifact(reference: &str, media_type: &str, bytes: u64) -> String {
    #[derive(Serialize)]
    struct ArtifactReply<'a> {
        #[serde(rename = "ref")]
        reference: &'a str,
        media_type: &'a str,
        bytes: u64,
    }
    let reply = ArtifactReply {
        reference,
        media_type,
        bytes,
    };
    serde_json::to_string(&reply).unwrap_or_default()
}

/// Returns the answer to a request that failed.
pub fn refused(kind: ErrorKind, message: &str) -> String {
    let error = Failure {
        kind,
        message: bounded(message.to_owned()),
        advice: None,
    };
    serde_json::json!({ "error": error }).to_string()
}
