//! `read_artifact`: reads a slice of a large result that is stored as an artifact.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haft::artifact::{ArtifactError, ArtifactInfo, ArtifactRef};
use haft::call::Origin;
use haft::context::CallContext;
use haft::error::ToolError;
use haft::result::ToolResult;
use haft::spec::ToolSpec;
use haft::tool::{Depth, Intent, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::describe::{builtin, read_only};
use crate::files::text::with_separators;

/// Default limit of a direct call, in bytes.
const PAGE_BYTES: u64 = 16 * 1024;
/// Default limit of a call from a script, whose results are smaller, in bytes.
const CHAIN_PAGE_BYTES: u64 = 3 * 1024;

/// Tokens reserved for the rest of the result.
const RESERVED_TOKENS: usize = 200;

/// What `read_artifact` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadArtifactInput {
    /// The ref from a result: `sha256-…`.
    #[serde(rename = "ref")]
    pub reference: String,
    /// First byte.
    #[serde(default)]
    pub offset: u64,
    /// The most bytes to return. Default 16,384; in a script 3,072.
    #[serde(default)]
    #[schemars(with = "u64", range(min = 1, max = 1_048_576))]
    pub limit: Option<u64>,
}

/// What `read_artifact` gives besides the text.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReadArtifactData {
    /// First byte returned.
    pub offset: u64,
    /// The offset of the next slice.
    pub next_offset: u64,
    /// The size of the whole artifact.
    pub bytes: u64,
    /// Whether this is the end.
    pub eof: bool,
    /// The artifact's media type.
    pub media_type: String,
    /// The slice in base64, if it is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

/// The tool `read_artifact`.
#[derive(Debug)]
pub struct ReadArtifact;

impl TypedTool for ReadArtifact {
    const NAME: &'static str = "read_artifact";
    const DESCRIPTION: &'static str = "Read a part of a stored large result, by its ref and byte offset. Returns text as text, other bytes \
        as data.base64. data.next_offset continues; data.eof marks the end. Only refs of this run.";
    type Input = ReadArtifactInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        read_only(builtin::<ReadArtifactData>(spec, "artifacts"))
    }

    fn intent(&self, _: &Self::Input, _: Depth) -> Result<Intent, ToolError> {
        Ok(Intent::call_only())
    }

    async fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let artifacts = context.artifacts()?;
        let absent = || {
            ToolError::not_found(format!("no artifact {:?} in this run", input.reference))
                .with_advice("use the ref exactly as a result of this run named it")
        };
        let reference = ArtifactRef::parse(&input.reference).ok_or_else(absent)?;
        let to_tool_error = |error: ArtifactError| match error {
            ArtifactError::NotFound(_) => absent(),
            other => ToolError::unavailable(other.to_string()).with_source(other),
        };
        let info = artifacts.info(&reference).await.map_err(to_tool_error)?;
        let page = if context.origin() == Origin::Chain {
            CHAIN_PAGE_BYTES
        } else {
            PAGE_BYTES
        };
        let limit = input.limit.unwrap_or(page);
        if input.offset > info.bytes {
            let message = format!(
                "offset {} is past the end ({} bytes)",
                input.offset, info.bytes
            );
            return Err(ToolError::invalid_arguments(message));
        }
        let end = input.offset.saturating_add(limit);
        let slice = artifacts.read(&reference, input.offset..end).await;
        let slice = slice.map_err(to_tool_error)?;
        slice_result(&slice, input.offset, info, context)
    }
}

/// Returns as much of a slice as fits inline. The caller continues from `next_offset`; the rest is not stored again.
fn slice_result(
    slice: &[u8],
    offset: u64,
    info: ArtifactInfo,
    context: &CallContext,
) -> Result<ToolResult, ToolError> {
    let bytes = info.bytes;
    let last = offset + slice.len() as u64 >= bytes;
    // A character that the end of the slice cuts belongs to the next slice.
    let whole = if last { slice } else { whole_characters(slice) };
    let text = std::str::from_utf8(whole)
        .ok()
        .filter(|text| !text.contains('\0'))
        .map(|text| context.fitting(text, RESERVED_TOKENS));
    let (base64, shown_bytes) = if let Some(text) = text {
        (None, text.len())
    } else {
        let mut encoded = STANDARD.encode(slice);
        // Four base64 letters encode three bytes.
        let letters = context.fitting(&encoded, RESERVED_TOKENS).len() / 4 * 4;
        encoded.truncate(letters);
        (Some(encoded), (letters / 4 * 3).min(slice.len()))
    };
    let next_offset = offset + shown_bytes as u64;
    let data = ReadArtifactData {
        offset,
        next_offset,
        bytes,
        eof: next_offset >= bytes,
        media_type: info.media_type,
        base64,
    };
    let summary = format!("bytes {offset}-{next_offset} of {}", with_separators(bytes));
    let result = match text {
        Some(text) => ToolResult::text(text),
        None => ToolResult::default(),
    };
    let mut result = result.with_summary(summary).with_data_for_programs(&data)?;
    if !data.eof {
        let total = with_separators(bytes);
        let note =
            format!("bytes {offset}-{next_offset} of {total}; offset={next_offset} continues");
        result.notes.push(note);
    }
    Ok(result)
}

fn whole_characters(slice: &[u8]) -> &[u8] {
    match std::str::from_utf8(slice) {
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => {
            slice.get(..error.valid_up_to()).unwrap_or(slice)
        }
        _ => slice,
    }
}
