//! `DialectFragment`: the declaration of one tool in one dialect.

use crate::strict::DeclarationLoss;
use crate::strict::budget::StrictCost;

/// The declaration of one tool in a dialect.
#[derive(Debug, Clone, Default)]
pub(crate) struct DialectFragment {
    /// The declaration; several, separated by commas, for a namespace that the dialect cannot express.
    pub(crate) json: Vec<u8>,
    /// Whether it is a function: Gemini lists functions inside one tool.
    pub(crate) is_function: bool,
    /// What was lost of its schema.
    pub(crate) lost: Vec<DeclarationLoss>,
    /// If its declaration is strict: what it uses of a request's limits.
    pub(crate) strict: Option<StrictCost>,
}
