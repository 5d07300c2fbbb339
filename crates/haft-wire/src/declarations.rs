//! `Declarations`: all tools in the format of one dialect, as a request carries them.

use std::num::NonZeroUsize;
use std::sync::Arc;

use bytes::Bytes;

use crate::dialect::Dialect;
use crate::fragment::DialectFragment;
use crate::names::ToolNames;
use crate::reply::Call;
use crate::strict::DeclarationLoss;
use crate::strict::budget::StrictBudget;

mod pieces;
mod splice;

use pieces::DeclarationList;

/// All tools in the format of one dialect.
#[derive(Debug, Clone)]
pub struct Declarations {
    /// The dialect.
    pub dialect: Dialect,
    /// The names of the tools on this wire.
    pub names: Arc<ToolNames>,
    /// What the dialect cannot express: what was lost of schemas and grammars, which tools are not strict although they
    /// should be (because of their schema or of a request's limits), and which tools are left out.
    pub lost: Arc<[DeclarationLoss]>,
    /// Whether at least one of them is strict.
    pub(crate) strict: bool,
    /// The value of the request's member for tools, JSON text; empty if there are none.
    json: Bytes,
    /// The offset of each tool's declaration in it; `None` for a tool that is not sent. Nothing starts before the list's own bracket.
    places: Arc<[Option<NonZeroUsize>]>,
    pub(crate) written: DeclarationList,
}

/// The written declaration of one tool.
#[derive(Debug)]
pub(crate) struct EncodedDeclaration {
    /// The version of the tool from which it was written.
    pub(crate) version: String,
    /// The tool's names, as the host knows them.
    pub(crate) own: Vec<String>,
    /// Its names on the wire when it was written.
    pub(crate) wire: Vec<String>,
    /// How a choice of tools refers to it: as a function, a freeform tool or a provider-defined one.
    pub(crate) sort: DeclarationKind,
    /// The declaration; `None` for a tool that the dialect cannot express.
    pub(crate) fragment: Option<DialectFragment>,
}

impl EncodedDeclaration {
    /// Returns whether its names on the wire are still these.
    pub(crate) fn has_names(&self, names: &ToolNames) -> bool {
        let mut all = self.own.iter().zip(&self.wire);
        all.all(|(own, wire)| names.wire(own).unwrap_or_default() == wire)
    }
}

/// How a choice of tools refers to a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DeclarationKind {
    Function,
    /// Functions in a namespace.
    Namespace,
    Freeform,
    /// A provider-defined tool: the type of its declaration, and its name or label, if it has one.
    Provider(Vec<String>),
}

impl Declarations {
    /// Creates empty declarations.
    pub fn none(dialect: Dialect) -> Self {
        Self {
            dialect,
            names: Arc::default(),
            lost: Arc::default(),
            strict: false,
            json: Bytes::new(),
            places: Arc::default(),
            written: DeclarationList::default(),
        }
    }

    /// Joins the written declarations into one list.
    pub(crate) fn join(dialect: Dialect, names: Arc<ToolNames>, written: DeclarationList) -> Self {
        let (fitted, lost) = fit(dialect, &written);
        let mut json =
            Vec::with_capacity(fitted.iter().map(|f| f.json.len() + 1).sum::<usize>() + 40);
        let mut places = vec![None; written.len()];
        json.push(b'[');
        if dialect == Dialect::Gemini {
            json.extend_from_slice(b"{\"functionDeclarations\":[");
            let before = json.len();
            list(
                &mut json,
                &mut places,
                fitted.iter().filter(|one| one.is_function),
            );
            if json.len() == before {
                json.truncate(1);
            } else {
                json.extend_from_slice(b"]}");
            }
            list(
                &mut json,
                &mut places,
                fitted.iter().filter(|one| !one.is_function),
            );
        } else {
            list(&mut json, &mut places, fitted.iter());
        }
        json.push(b']');
        if json.len() == 2 {
            json.clear();
        }
        let strict = fitted.iter().any(|one| one.strict);
        Self {
            dialect,
            names,
            lost: lost.into(),
            strict,
            json: json.into(),
            places: places.into(),
            written,
        }
    }

    /// Returns the value of the request's member for tools, as it is sent; empty if there are none.
    pub fn json(&self) -> &[u8] {
        &self.json
    }

    /// Returns the tool that a call is for, as the host knows it; `None` if it was not declared.
    pub fn called(&self, call: &Call) -> Option<&str> {
        self.names.called(call.namespace.as_deref(), &call.name)
    }

    /// Returns the declaration of the tool with this name on the wire, and how a choice refers to it.
    pub(crate) fn of(&self, wire: &str) -> Option<&EncodedDeclaration> {
        let mut all = self.written.iter();
        all.find(|one| match &one.sort {
            DeclarationKind::Provider(words) => words.iter().any(|word| word == wire),
            DeclarationKind::Function | DeclarationKind::Namespace | DeclarationKind::Freeform => {
                one.wire.iter().any(|name| name == wire)
            }
        })
        .map(AsRef::as_ref)
    }
}

/// A declaration as it is sent.
struct RequestDeclaration<'f> {
    /// Its position among the tools.
    at: usize,
    json: &'f [u8],
    is_function: bool,
    strict: bool,
}

/// Returns the declarations to send, and what is lost: in order, tools are strict as long as the request's limits allow.
fn fit(
    dialect: Dialect,
    written: &DeclarationList,
) -> (Vec<RequestDeclaration<'_>>, Vec<DeclarationLoss>) {
    let mut budget = StrictBudget::of(dialect);
    let mut lost = Vec::new();
    let mut fitted = Vec::with_capacity(written.len());
    for (at, one, fragment) in written
        .iter()
        .enumerate()
        .filter_map(|(at, one)| Some((at, one, one.fragment.as_ref()?)))
    {
        let over = fragment
            .strict
            .as_ref()
            .and_then(|strict| Some((strict, budget.take(strict).err()?)));
        let json = match over {
            None => {
                lost.extend_from_slice(&fragment.lost);
                &fragment.json
            }
            Some((strict, limit)) => {
                lost.push(DeclarationLoss {
                    tool: one.own.first().cloned().unwrap_or_default(),
                    at: String::new(),
                    what: format!("`strict`: the request would be over the limit of {limit}"),
                });
                &strict.plain
            }
        };
        if !json.is_empty() {
            fitted.push(RequestDeclaration {
                at,
                json,
                is_function: fragment.is_function,
                strict: fragment.strict.is_some() && over.is_none(),
            });
        }
    }
    (fitted, lost)
}

/// Appends declarations to a list, separated by commas, and records the offset of each.
fn list<'f>(
    json: &mut Vec<u8>,
    places: &mut [Option<NonZeroUsize>],
    fitted: impl Iterator<Item = &'f RequestDeclaration<'f>>,
) {
    for one in fitted {
        if !matches!(json.last(), Some(b'[')) {
            json.push(b',');
        }
        if let Some(place) = places.get_mut(one.at) {
            *place = NonZeroUsize::new(json.len());
        }
        json.extend_from_slice(one.json);
    }
}

#[cfg(test)]
mod tests;
