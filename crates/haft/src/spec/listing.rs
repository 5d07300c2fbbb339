//! `Listing`: a tool as its own server lists it, so that it can be listed again without losing anything.

use std::sync::Arc;

use serde_json::Value;

use crate::spec::{Annotations, ToolSpec};

/// What a tool's own server says of it in MCP's `tools/list`, with what haft read out of it. A list shows it byte for byte but
/// for its name and for what the host made otherwise since.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    text: Box<str>,
    title: Option<String>,
    description: String,
    input_schema: Arc<Value>,
    output_schema: Option<Arc<Value>>,
    annotations: Annotations,
}

impl Listing {
    /// The text of one JSON object, out of which this spec was read.
    pub fn new(text: impl Into<Box<str>>, read: &ToolSpec) -> Self {
        Self {
            text: text.into(),
            title: read.title.clone(),
            description: read.description.clone(),
            input_schema: Arc::clone(&read.input_schema),
            output_schema: read.output_schema.clone(),
            annotations: read.annotations,
        }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the spec says of this member of the list what the text says.
    pub(crate) fn holds(&self, member: Described, spec: &ToolSpec) -> bool {
        match member {
            Described::Title => self.title == spec.title,
            Described::Description => self.description == spec.description,
            Described::InputSchema => self.input_schema == spec.input_schema,
            Described::OutputSchema => self.output_schema == spec.output_schema,
            Described::Annotations => self.annotations == spec.annotations,
        }
    }
}

/// The members of a listed tool that a spec speaks of, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Described {
    Title,
    Description,
    InputSchema,
    OutputSchema,
    Annotations,
}

impl Described {
    pub(crate) const ALL: [Self; 5] = [
        Self::Title,
        Self::Description,
        Self::InputSchema,
        Self::OutputSchema,
        Self::Annotations,
    ];

    /// The name on the wire.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::Description => "description",
            Self::InputSchema => "inputSchema",
            Self::OutputSchema => "outputSchema",
            Self::Annotations => "annotations",
        }
    }
}
