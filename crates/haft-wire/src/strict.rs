//! Strict schemas: what a dialect can enforce, and what is lost of a schema in the conversion.

pub(crate) mod anthropic;
pub(crate) mod budget;
pub mod openai;
pub(crate) mod tree;

/// What was lost of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclarationLoss {
    /// The tool's name, as the host knows it.
    pub tool: String,
    /// The place in the schema: a JSON pointer; empty for the whole tool.
    pub at: String,
    /// What was lost: a keyword that was moved into the description, the reason why the tool is declared without
    /// `strict`, or the reason why it is left out.
    pub what: String,
}
