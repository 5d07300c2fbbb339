//! `Listing`: a tool as its own server lists it, so that haft can list it again without loss.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use crate::spec::{Annotations, ToolSpec};

/// A tool's entry in its server's `tools/list` (MCP), with the values that haft read from it. It is listed byte for byte except
/// for its name and the members that the host changed since.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    text: Box<str>,
    title: Option<String>,
    description: String,
    input_schema: Arc<Value>,
    output_schema: Option<Arc<Value>>,
    annotations: Annotations,
    is_only_task: bool,
}

impl Listing {
    /// Creates a listing from the text of one JSON object, from which this spec was read.
    pub fn new(text: impl Into<Box<str>>, read: &ToolSpec) -> Self {
        let text = text.into();
        Self {
            is_only_task: is_only_task(&text),
            text,
            title: read.title.clone(),
            description: read.description.clone(),
            input_schema: Arc::clone(&read.input_schema),
            output_schema: read.output_schema.clone(),
            annotations: read.annotations,
        }
    }

    /// Returns the text of the JSON object, as the server sent it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether its server only runs it as a task (`execution.taskSupport`), so that clients without tasks cannot call it.
    pub fn is_only_task(&self) -> bool {
        self.is_only_task
    }

    /// Returns whether the spec's value of this member still equals the text's.
    pub fn holds(&self, member: SpecMember, spec: &ToolSpec) -> bool {
        match member {
            SpecMember::Title => self.title == spec.title,
            SpecMember::Description => self.description == spec.description,
            SpecMember::InputSchema => self.input_schema == spec.input_schema,
            SpecMember::OutputSchema => self.output_schema == spec.output_schema,
            SpecMember::Annotations => self.annotations == spec.annotations,
        }
    }
}

fn is_only_task(text: &str) -> bool {
    #[derive(Deserialize)]
    struct ListedTool {
        execution: Option<Execution>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Execution {
        task_support: Option<String>,
    }
    let tool = serde_json::from_str::<ListedTool>(text).ok();
    let support = tool.and_then(|tool| tool.execution?.task_support);
    support.as_deref() == Some("required")
}

/// The members of a listed tool that a spec also holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpecMember {
    /// `title`.
    Title,
    /// `description`.
    Description,
    /// `inputSchema`.
    InputSchema,
    /// `outputSchema`.
    OutputSchema,
    /// `annotations`.
    Annotations,
}

impl SpecMember {
    /// Every member.
    pub const ALL: [Self; 5] = [
        Self::Title,
        Self::Description,
        Self::InputSchema,
        Self::OutputSchema,
        Self::Annotations,
    ];

    /// Returns the name used on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::Description => "description",
            Self::InputSchema => "inputSchema",
            Self::OutputSchema => "outputSchema",
            Self::Annotations => "annotations",
        }
    }
}
