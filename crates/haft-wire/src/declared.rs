//! `ToolDeclaration`: a tool as a host declares it.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::dialect::Dialect;

/// A tool as a host declares it, independent of any dialect.
#[derive(Debug, Clone)]
pub enum ToolDeclaration {
    /// A function with a JSON Schema.
    Function(Function),
    /// A tool with a text argument.
    Freeform(Freeform),
    /// Tools in a namespace (Responses); other dialects get them as `name.tool`.
    Namespace {
        /// Its name.
        name: String,
        /// What its tools are for.
        description: String,
        /// Its tools.
        tools: Vec<Function>,
    },
    /// A provider-defined declaration: a hosted tool, or one that the provider defines and the host runs. It is sent unchanged, and only
    /// to its own dialect.
    Provider {
        /// The dialect.
        dialect: Dialect,
        /// The exact declaration.
        spec: Box<RawValue>,
    },
    /// A search for deferred tools, run by the provider or by the host.
    ToolSearch(SearchRunner),
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
    /// Whether the provider should enforce the schema, if it can.
    pub strict: bool,
    /// Whether it is only found by search; a dialect without a search gets it like the others.
    pub deferred: bool,
}

/// A tool with a text argument.
#[derive(Debug, Clone)]
pub struct Freeform {
    /// Its name, as the host knows it.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The grammar of the text; `None` = any text. A dialect without grammars gets a function with a single argument
    /// `input`.
    pub grammar: Option<Grammar>,
}

/// The grammar of a freeform argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grammar {
    /// `lark` or `regex`.
    pub syntax: String,
    /// The grammar.
    pub definition: String,
}

/// Where the search for deferred tools runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchRunner {
    /// At the provider.
    Provider,
    /// At the host, which answers with the names of the tools found.
    Host,
}

impl ToolDeclaration {
    /// Returns the names that it declares, as the host knows them.
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
