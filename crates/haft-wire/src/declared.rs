//! `Declared`: a tool as a host declares it; `Declarations`: all of them in the words of one dialect, written once.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::dialect::Dialect;
use crate::names::Names;
use crate::strict::Lost;
use crate::{chat, gemini, messages, responses};

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
    fn names(&self) -> Vec<String> {
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

/// All tools in the words of one dialect.
#[derive(Debug, Clone)]
pub struct Declarations {
    /// The dialect.
    pub dialect: Dialect,
    /// The value of the request's member for tools, JSON text; empty where there are none.
    json: Bytes,
    /// The names on this wire.
    pub names: Names,
    /// What was lost of strict schemas, and which tools are not strict because their schema cannot be.
    pub lost: Vec<Lost>,
}

impl Declarations {
    /// No tools.
    pub fn none(dialect: Dialect) -> Self {
        Self {
            dialect,
            json: Bytes::new(),
            names: Names::default(),
            lost: Vec::new(),
        }
    }

    /// The value of the request's member for tools, as it is sent; empty where there are none.
    pub fn json(&self) -> &[u8] {
        &self.json
    }
}

/// One tool in the words of a dialect.
#[derive(Debug, Clone)]
pub(crate) struct Fragment {
    /// Its declaration; several with commas between them for a namespace that the dialect has no word for.
    pub(crate) json: Vec<u8>,
    /// Whether it is a function: Gemini lists those within one tool.
    pub(crate) is_function: bool,
    /// What was lost of its schema.
    pub(crate) lost: Vec<Lost>,
}

/// A tool to declare, at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'t> {
    /// Tells apart what one name stood for at different times: the hash of the tool's spec. Two tools never share one.
    pub version: &'t str,
    /// The tool.
    pub tool: &'t Declared,
}

#[derive(Debug)]
struct Written {
    version: String,
    /// Its names on the wire when it was written.
    wire: Vec<String>,
    /// `None` for a tool that the dialect has no words for.
    fragment: Option<Fragment>,
}

/// Writes declarations of one dialect, and keeps what it wrote of each tool: when one tool of a thousand changes, one is written.
#[derive(Debug)]
pub struct Declarer {
    written: Vec<Written>,
    last: Arc<Declarations>,
}

impl Declarer {
    /// A declarer that has written nothing yet.
    pub fn new(dialect: Dialect) -> Self {
        Self {
            written: Vec::new(),
            last: Arc::new(Declarations::none(dialect)),
        }
    }

    /// The words of these tools, in this order; the same bytes for the same tools. Tools that the dialect has no words for are left
    /// out and stand in [`Declarations::lost`].
    pub fn declare(&mut self, tools: &[Entry<'_>]) -> Arc<Declarations> {
        let versions = self.written.iter().map(|written| written.version.as_str());
        if versions.eq(tools.iter().map(|entry| entry.version)) {
            return Arc::clone(&self.last);
        }
        let dialect = self.last.dialect;
        let all: Vec<Vec<String>> = tools.iter().map(|entry| entry.tool.names()).collect();
        let names = Names::new(dialect, all.iter().flatten().map(String::as_str));
        let mut old: HashMap<String, Written> = std::mem::take(&mut self.written)
            .into_iter()
            .map(|written| (written.version.clone(), written))
            .collect();
        for (entry, own) in tools.iter().zip(&all) {
            let wire: Vec<String> = own
                .iter()
                .map(|name| names.wire(name).unwrap_or_default().to_owned())
                .collect();
            let kept = old.remove(entry.version).filter(|kept| kept.wire == wire);
            self.written.push(kept.unwrap_or_else(|| Written {
                version: entry.version.to_owned(),
                fragment: fragment(dialect, entry.tool, &names),
                wire,
            }));
        }
        self.last = Arc::new(self.join(dialect, names));
        Arc::clone(&self.last)
    }

    /// All that was written, as one list.
    fn join(&self, dialect: Dialect, names: Names) -> Declarations {
        let written = || {
            self.written
                .iter()
                .filter_map(|written| written.fragment.as_ref())
        };
        let mut json = Vec::with_capacity(written().map(|f| f.json.len() + 1).sum::<usize>() + 40);
        let functions = written().filter(|fragment| fragment.is_function);
        if dialect == Dialect::Gemini {
            list(&mut json, functions);
            if !json.is_empty() {
                json.splice(..0, *b"{\"functionDeclarations\":[");
                json.extend_from_slice(b"]}");
            }
            list(
                &mut json,
                written().filter(|fragment| !fragment.is_function),
            );
        } else {
            list(&mut json, written());
        }
        if !json.is_empty() {
            json.insert(0, b'[');
            json.push(b']');
        }
        Declarations {
            dialect,
            json: json.into(),
            names,
            lost: written()
                .flat_map(|fragment| fragment.lost.clone())
                .collect(),
        }
    }
}

/// Adds declarations to a list, with commas between them.
fn list<'f>(json: &mut Vec<u8>, fragments: impl Iterator<Item = &'f Fragment>) {
    for fragment in fragments.filter(|fragment| !fragment.json.is_empty()) {
        if !json.is_empty() {
            json.push(b',');
        }
        json.extend_from_slice(&fragment.json);
    }
}

fn fragment(dialect: Dialect, tool: &Declared, names: &Names) -> Option<Fragment> {
    match dialect {
        Dialect::OpenAiChat => chat::fragment(tool, names),
        Dialect::OpenAiResponses => responses::fragment(tool, names),
        Dialect::Anthropic => messages::fragment(tool, names),
        Dialect::Gemini => gemini::fragment(tool, names),
    }
}
