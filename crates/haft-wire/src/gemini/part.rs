//! A part of what the model sent.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::borrowed::BorrowedText;

/// The members of a part that are read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GeminiPart<'a> {
    #[serde(borrow, default)]
    pub(crate) text: Option<BorrowedText<'a>>,
    #[serde(default)]
    pub(crate) thought: Option<bool>,
    #[serde(borrow, default)]
    pub(crate) thought_signature: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) function_call: Option<FunctionCall<'a>>,
}

/// A call of a function.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FunctionCall<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Option<BorrowedText<'a>>,
    #[serde(borrow, default)]
    pub(crate) name: Option<BorrowedText<'a>>,
    #[serde(borrow, default)]
    pub(crate) args: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) partial_args: Option<Vec<PartialArg<'a>>>,
    #[serde(default)]
    pub(crate) will_continue: Option<bool>,
}

/// A piece of one argument (Vertex, `streamFunctionCallArguments`).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PartialArg<'a> {
    /// Its path: `$.a.b[0]`.
    #[serde(borrow)]
    pub(crate) json_path: BorrowedText<'a>,
    #[serde(borrow, default)]
    pub(crate) string_value: Option<BorrowedText<'a>>,
    #[serde(borrow, default)]
    pub(crate) number_value: Option<&'a RawValue>,
    #[serde(default)]
    pub(crate) bool_value: Option<bool>,
}

/// Returns the member that determines a part's kind: hosted kinds, and those that this crate does not know.
pub(crate) fn kind(raw: &RawValue) -> String {
    const BESIDE: [&str; 5] = [
        "thought",
        "thoughtSignature",
        "videoMetadata",
        "mediaResolution",
        "partMetadata",
    ];
    let members = haft_json::members::members(raw.get()).unwrap_or_default();
    let names = members
        .iter()
        .filter_map(|member| serde_json::from_str::<String>(member.key()).ok());
    let mut names = names.filter(|name| !BESIDE.contains(&name.as_str()));
    names.next().unwrap_or_else(|| "part".to_owned())
}

/// Returns whether a part of this kind reports something that the provider itself ran.
pub(crate) fn is_hosted(kind: &str) -> bool {
    matches!(
        kind,
        "executableCode" | "codeExecutionResult" | "toolCall" | "toolResponse"
    )
}
