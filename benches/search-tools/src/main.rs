//! Finding a tool among 10,296: haft's index compared to tantivy's in memory, over the same terms, with the same requests.
//!
//! Tools and requests are the recorded ones if `HAFT_DATA` names their folder, otherwise a fixed generator makes them.

use std::collections::HashSet;
use std::hint::black_box;

use haft::spec::{ToolName, ToolSpec};
use haft::toolset::search::document;
use haft_search::Index;
use measure::{Row, Step, each, fact, interleave, wall_ms};

mod data;
mod peer;

use data::{Data, Tool};
use peer::Peer;

/// Number of copies of every tool, each under a name of its own.
const COPIES: usize = 8;
/// Number of tools returned.
const TOP: usize = 10;

fn main() {
    let data = Data::load();
    let tools = specs(&copies(&data.tools, COPIES));
    fact("tools", format!("{} from {}", tools.len(), data.source));
    fact("requests", data.requests.len());
    let (made, index) = wall_ms(|| ours(&tools));
    fact("index made in", format!("{made:.1} ms"));
    fact("index takes", format!("{} KiB", index.bytes() / 1024));
    let peer = Peer::new(&tools);
    compare(&data);

    let queries: Vec<&str> = data.requests.iter().map(|r| r.query.as_str()).collect();
    let count = queries.len();
    let steps: Vec<Step<'_>> = vec![
        (
            Row::new("haft/find tool/10296", "ns"),
            Box::new(|| {
                each(count, || {
                    for query in &queries {
                        black_box(index.search(query, TOP, |_| true));
                    }
                })
            }),
        ),
        (
            Row::new("tantivy/find tool/10296", "ns"),
            Box::new(|| {
                each(count, || {
                    for query in &queries {
                        black_box(peer.search(query, TOP));
                    }
                })
            }),
        ),
        (
            Row::new("haft/find tool/index", "ms"),
            Box::new(|| wall_ms(|| ours(&tools)).0),
        ),
    ];
    interleave(measure::rounds(9), steps);
}

/// Returns the same tools several times under numbered names.
fn copies(tools: &[Tool], times: usize) -> Vec<Tool> {
    let copy = |n: usize| {
        tools.iter().map(move |tool| Tool {
            name: format!("{}_{n}", tool.name),
            ..tool.clone()
        })
    };
    (0..times).flat_map(copy).collect()
}

fn ours(tools: &[ToolSpec]) -> Index {
    Index::new(tools.iter().map(document::of_tool).enumerate())
}

fn specs(tools: &[Tool]) -> Vec<ToolSpec> {
    let spec = |tool: &Tool| {
        let name = ToolName::new(&tool.name).expect("a tool's name");
        ToolSpec::new(name, &*tool.description, tool.parameters.clone())
    };
    tools.iter().map(spec).collect()
}

/// Checks that both find equally well among the original tools.
fn compare(data: &Data) {
    let tools = specs(&data.tools);
    let (index, peer) = (ours(&tools), Peer::new(&tools));
    let mine = data.recall(|query| {
        let hits = index.search(query, TOP, |_| true);
        hits.into_iter().map(|hit| hit.document).collect()
    });
    let theirs = data.recall(|query| peer.search(query, TOP));
    fact("recall at 10, haft", format!("{mine:.4}"));
    fact("recall at 10, tantivy", format!("{theirs:.4}"));
    // They may differ by ties and tantivy's coarse lengths.
    assert!((mine - theirs).abs() < 0.01, "{mine} beside {theirs}");
}

impl Data {
    /// Returns the average share of each request's tools among those found.
    fn recall(&self, find: impl Fn(&str) -> HashSet<usize>) -> f64 {
        let share = |request: &data::Request| {
            let found = find(&request.query);
            let names: HashSet<&str> = found.iter().map(|at| &*self.tools[*at].name).collect();
            let right = request.tools.iter().filter(|t| names.contains(t.as_str()));
            right.count() as f64 / request.tools.len() as f64
        };
        self.requests.iter().map(share).sum::<f64>() / self.requests.len() as f64
    }
}
