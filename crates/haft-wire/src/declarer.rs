//! `Declarer`: writes declarations, and of what changed only that.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::declarations::{Declarations, Sort, Written};
use crate::declared::Declared;
use crate::dialect::Dialect;
use crate::dispatch::fragment;
use crate::names::Names;

/// A tool to declare, at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'t> {
    /// Tells apart what one name stood for at different times: the hash of the tool's spec. Two tools never share one.
    pub version: &'t str,
    /// The tool.
    pub tool: &'t Declared,
}

/// Writes declarations of one dialect, and keeps what it wrote of each tool: when one tool of a thousand changes, one is written.
#[derive(Debug)]
pub struct Declarer {
    written: Vec<Arc<Written>>,
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

    /// What was declared last, for a host that knows that its tools have not changed since.
    pub fn last(&self) -> Arc<Declarations> {
        Arc::clone(&self.last)
    }

    /// The words of these tools, in this order; the same bytes for the same tools. Tools that the dialect has no words for are left
    /// out and stand in [`Declarations::lost`].
    pub fn declare(&mut self, tools: &[Entry<'_>]) -> Arc<Declarations> {
        let kept = self.kept(tools);
        let same = self.written.len() == tools.len();
        if same
            && kept
                .iter()
                .zip(&self.written)
                .all(|(kept, old)| kept.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, old)))
        {
            return self.last();
        }
        let own: Vec<Option<Vec<String>>> = tools
            .iter()
            .zip(&kept)
            .map(|(entry, kept)| kept.is_none().then(|| entry.tool.names()))
            .collect();
        let own_of = |at: usize| match (&own[at], &kept[at]) {
            (Some(own), _) => own.as_slice(),
            (None, Some(kept)) => kept.own.as_slice(),
            (None, None) => &[],
        };
        let same = same
            && self
                .written
                .iter()
                .enumerate()
                .all(|(at, old)| old.own == own_of(at));
        let dialect = self.last.dialect;
        let names = if same {
            Arc::clone(&self.last.names)
        } else {
            let all = (0..tools.len()).flat_map(|at| own_of(at).iter().map(String::as_str));
            Arc::new(Names::new(dialect, all))
        };
        let mut written = Vec::with_capacity(tools.len());
        for (at, (entry, kept)) in tools.iter().zip(&kept).enumerate() {
            let fits = |kept: &&Arc<Written>| same || kept.wire == wire(&names, &kept.own);
            written.push(match kept.as_ref().filter(fits) {
                Some(kept) => Arc::clone(kept),
                None => Arc::new(Written {
                    version: entry.version.to_owned(),
                    own: own_of(at).to_vec(),
                    wire: wire(&names, own_of(at)),
                    sort: sort(entry.tool),
                    fragment: fragment(dialect, entry.tool, &names),
                }),
            });
        }
        self.written = written;
        self.last = Arc::new(Declarations::join(dialect, names, &self.written));
        self.last()
    }

    /// What was written of each of these tools: mostly it stands where it stood.
    fn kept(&self, tools: &[Entry<'_>]) -> Vec<Option<Arc<Written>>> {
        let mut moved: Option<HashMap<&str, &Arc<Written>>> = None;
        let mut find = |at: usize, version: &str| {
            let here = self.written.get(at).filter(|old| old.version == version);
            here.or_else(|| {
                let by_version = || self.written.iter().map(|old| (old.version.as_str(), old));
                let moved = moved.get_or_insert_with(|| by_version().collect());
                moved.get(version).copied()
            })
        };
        tools
            .iter()
            .enumerate()
            .map(|(at, entry)| find(at, entry.version).cloned())
            .collect()
    }
}

fn wire(names: &Names, own: &[String]) -> Vec<String> {
    own.iter()
        .map(|name| names.wire(name).unwrap_or_default().to_owned())
        .collect()
}

/// What a choice of tools calls this one.
fn sort(tool: &Declared) -> Sort {
    match tool {
        Declared::Function(_) => Sort::Function,
        Declared::Namespace { .. } => Sort::Namespace,
        Declared::Freeform(_) => Sort::Freeform,
        Declared::Provider { spec, .. } => Sort::Provider(words(spec)),
        Declared::ToolSearch(_) => Sort::Provider(vec!["tool_search".to_owned()]),
    }
}

/// The type of a provider's declaration, and its name or label, as far as it has them.
fn words(spec: &RawValue) -> Vec<String> {
    #[derive(Deserialize)]
    struct Words {
        #[serde(rename = "type")]
        kind: Option<String>,
        #[serde(alias = "server_label")]
        name: Option<String>,
    }
    serde_json::from_str(spec.get()).map_or_else(
        |_| Vec::new(),
        |words: Words| [words.kind, words.name].into_iter().flatten().collect(),
    )
}
