//! `Declarations`: all tools in the words of one dialect, as a request carries them.

use std::sync::Arc;

use bytes::Bytes;

use crate::declared::Fragment;
use crate::dialect::Dialect;
use crate::names::Names;
use crate::reply::Call;
use crate::strict::Lost;

/// All tools in the words of one dialect.
#[derive(Debug, Clone)]
pub struct Declarations {
    /// The dialect.
    pub dialect: Dialect,
    /// The names on this wire.
    pub names: Arc<Names>,
    /// What was lost of strict schemas, and which tools are not strict because their schema cannot be.
    pub lost: Vec<Lost>,
    /// The value of the request's member for tools, JSON text; empty where there are none.
    json: Bytes,
    written: Vec<Arc<Written>>,
}

/// What was written of one tool.
#[derive(Debug)]
pub(crate) struct Written {
    /// The version of the tool that it was written of.
    pub(crate) version: String,
    /// The tool's names, as the host knows them.
    pub(crate) own: Vec<String>,
    /// Its names on the wire when it was written.
    pub(crate) wire: Vec<String>,
    /// What a choice of tools calls it: a function, a freeform tool or one of the provider's.
    pub(crate) sort: Sort,
    /// `None` for a tool that the dialect has no words for.
    pub(crate) fragment: Option<Fragment>,
}

/// What a choice of tools calls a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sort {
    /// A function.
    Function,
    /// Functions in a namespace.
    Namespace,
    /// A freeform tool.
    Freeform,
    /// One that the provider defines, by the type of its declaration, and its name or label, where it has one.
    Provider(Vec<String>),
}

impl Declarations {
    /// No tools.
    pub fn none(dialect: Dialect) -> Self {
        Self {
            dialect,
            names: Arc::default(),
            lost: Vec::new(),
            json: Bytes::new(),
            written: Vec::new(),
        }
    }

    /// What was written, as one list.
    pub(crate) fn join(dialect: Dialect, names: Arc<Names>, written: &[Arc<Written>]) -> Self {
        let fragments = || written.iter().filter_map(|one| one.fragment.as_ref());
        let bytes = fragments().map(|f| f.json.len() + 1).sum::<usize>();
        let mut json = Vec::with_capacity(bytes + 40);
        json.push(b'[');
        if dialect == Dialect::Gemini {
            json.extend_from_slice(b"{\"functionDeclarations\":[");
            let before = json.len();
            list(
                &mut json,
                fragments().filter(|fragment| fragment.is_function),
            );
            if json.len() == before {
                json.truncate(1);
            } else {
                json.extend_from_slice(b"]}");
            }
            list(
                &mut json,
                fragments().filter(|fragment| !fragment.is_function),
            );
        } else {
            list(&mut json, fragments());
        }
        json.push(b']');
        if json.len() == 2 {
            json.clear();
        }
        Self {
            dialect,
            names,
            lost: fragments().flat_map(|f| f.lost.iter().cloned()).collect(),
            json: json.into(),
            written: written.to_vec(),
        }
    }

    /// The value of the request's member for tools, as it is sent; empty where there are none.
    pub fn json(&self) -> &[u8] {
        &self.json
    }

    /// The tool that a call is for, as the host knows it; `None` for one that was not declared.
    pub fn called(&self, call: &Call) -> Option<&str> {
        self.names.called(call.namespace.as_deref(), &call.name)
    }

    /// The declaration of the tool with this name on the wire, and what a choice calls it.
    pub(crate) fn of(&self, wire: &str) -> Option<&Written> {
        let mut all = self.written.iter();
        all.find(|one| match &one.sort {
            Sort::Provider(words) => words.iter().any(|word| word == wire),
            Sort::Function | Sort::Namespace | Sort::Freeform => {
                one.wire.iter().any(|name| name == wire)
            }
        })
        .map(AsRef::as_ref)
    }
}

/// Adds declarations to a list, with commas between them.
fn list<'f>(json: &mut Vec<u8>, fragments: impl Iterator<Item = &'f Fragment>) {
    for fragment in fragments.filter(|fragment| !fragment.json.is_empty()) {
        if !matches!(json.last(), Some(b'[')) {
            json.push(b',');
        }
        json.extend_from_slice(&fragment.json);
    }
}
