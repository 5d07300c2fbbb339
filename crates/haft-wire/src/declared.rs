//! `Declared`: a tool as a host declares it, and `Fragment`: the same in one dialect's words.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::dialect::Dialect;
use crate::strict::Lost;
use crate::strict::budget::Strict;

/// A tool as a host declares it, in no dialect's words.
#[derive(Debug, Clone)]
pub enum Declared {
    /// A function by its JSON Schema.
    Function(Function),
    /// A tool whose argument is a text.
    Freeform(Freeform),
    /// Tools under one name (Responses); other dialects are given them as `name.tool`.
    Namespace {
        /// Its name.
        name: String,
        /// What they are for.
        description: String,
        /// Its tools.
        tools: Vec<Function>,
    },
    /// A declaration that the provider defines: a hosted tool, or one that the provider defines and the host runs. It is sent as it is,
    /// to the dialect that it is for, and to no other one.
    Provider {
        /// The dialect.
        dialect: Dialect,
        /// The exact declaration.
        spec: Box<RawValue>,
    },
    /// Search for deferred tools, run by the provider or by the host.
    ToolSearch(Search),
}

/// A function.
#[derive(Debug, Clone)]
pub struct Function {
    /// Its name, as the host knows it.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub parameters: Arc<RawValue>,
    /// Whether the provider shall hold the model to the schema, where it can.
    pub strict: bool,
    /// Whether it is found by search alone; a dialect that has no search is given it like the others.
    pub deferred: bool,
}

/// A tool whose argument is a text.
#[derive(Debug, Clone)]
pub struct Freeform {
    /// Its name, as the host knows it.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// What the text may be; any text where there is none. A dialect without grammars is given a function with the one argument
    /// `input`.
    pub grammar: Option<Grammar>,
}

/// What a freeform argument may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grammar {
    /// `lark` or `regex`.
    pub syntax: String,
    /// The grammar.
    pub definition: String,
}

/// Who searches for deferred tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    /// The provider.
    Provider,
    /// The host, which answers with the names of what it found.
    Host,
}

impl Declared {
    /// The names that it brings, as the host knows them.
    pub(crate) fn names(&self) -> Vec<String> {
        match self {
            Self::Function(function) => vec![function.name.clone()],
            Self::Freeform(freeform) => vec![freeform.name.clone()],
            Self::Namespace { name, tools, .. } => tools
                .iter()
                .map(|tool| format!("{name}.{}", tool.name))
                .collect(),
            Self::Provider { .. } | Self::ToolSearch(_) => Vec::new(),
        }
    }
}

/// One tool in the words of a dialect.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fragment {
    /// Its declaration; several with commas between them for a namespace that the dialect has no word for.
    pub(crate) json: Vec<u8>,
    /// Whether it is a function: Gemini lists those within one tool.
    pub(crate) is_function: bool,
    /// What was lost of its schema.
    pub(crate) lost: Vec<Lost>,
    /// Where its declaration is strict: what that takes of a request's limits.
    pub(crate) strict: Option<Strict>,
}
