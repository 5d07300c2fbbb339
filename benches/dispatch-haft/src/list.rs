//! The tool list: unchanged, changed, and a copy of the same bytes for comparison.

use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use haft::toolset::list::join;
use haft::{ToolRegistry, Toolset};
use measure::{Row, Step, each};

use crate::bench::Kind;
use crate::tools;

/// Repetitions per round for work of nanoseconds.
const MANY: usize = 10_000;

/// A registry and its list.
pub(crate) struct List {
    registry: Arc<ToolRegistry>,
    bytes: Bytes,
}

impl List {
    pub(crate) fn new(tools: usize) -> Self {
        let registry = Kind::Value.registry(tools);
        let bytes = registry.snapshot().mcp_list();
        Self { registry, bytes }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn steps(&self) -> Vec<Step<'_>> {
        let unchanged = || {
            each(MANY, || {
                for _ in 0..MANY {
                    black_box(self.registry.snapshot().mcp_list());
                }
            })
        };
        let joined = || {
            let snapshot = self.registry.snapshot();
            let pieces = snapshot.listed().map(|entry| entry.mcp());
            each(1, || {
                black_box(join(pieces));
            })
        };
        let copied = || {
            each(1, || {
                black_box(self.bytes.to_vec());
            })
        };
        let mut warm = vec![0; self.bytes.len()];
        let copied_warm = move || {
            each(1, || {
                warm.copy_from_slice(&self.bytes);
                black_box(&mut warm);
            })
        };
        let mut turn = 0_u64;
        let changed = move || {
            turn += 1;
            let mut spec = tools::spec(500);
            spec.description = format!("Searches the files of the workspace, change {turn}.");
            let tool = tools::value_of(spec);
            each(1, || {
                self.registry.upsert(tool).expect("the same source");
                black_box(self.registry.snapshot().mcp_list());
            })
        };
        vec![
            (Row::new("haft/list/unchanged", "ns"), Box::new(unchanged)),
            (Row::new("haft/list/joined", "ns"), Box::new(joined)),
            (Row::new("haft/list/memcpy", "ns"), Box::new(copied)),
            (
                Row::new("haft/list/memcpy warm", "ns"),
                Box::new(copied_warm),
            ),
            (
                Row::new("haft/list/upsert and list", "ns"),
                Box::new(changed),
            ),
        ]
    }
}
