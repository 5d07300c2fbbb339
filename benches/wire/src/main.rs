//! Streams of the four dialects read in pieces as from a network, and the declaration of a thousand tools with none or one changed.

use std::hint::black_box;
use std::sync::Arc;

use haft_wire::declared::Function;
use haft_wire::declarer::VersionedTool;
use haft_wire::{Declarer, Dialect, Reply, ReplyLimits, ToolDeclaration};
use measure::{Row, Step, cpu_ms, each, fact, interleave, rounds};
use serde_json::Value;
use serde_json::value::RawValue;

mod streams;

/// Size of a piece in bytes.
const PIECE: usize = 16 << 10;

/// Repetitions per round for work of microseconds.
const MANY: usize = 100;

/// Number of declared tools.
const TOOLS: usize = 1_000;

fn read(dialect: Dialect, sse: &str) -> Reply {
    let mut reader = dialect.reader(ReplyLimits::default());
    let mut deltas = Vec::new();
    for piece in sse.as_bytes().chunks(PIECE) {
        deltas.clear();
        reader.push(piece, &mut deltas).expect("the stream is fine");
        black_box(&deltas);
    }
    reader.finish().expect("the stream is whole")
}

/// The plain way: split the lines, parse each event into a tree.
fn trees(sse: &str) -> usize {
    let data = sse.lines().filter_map(|line| line.strip_prefix("data: "));
    let trees = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    trees
        .filter(|tree| !tree["type"].is_string() || !tree["delta"].is_null())
        .count()
}

fn tool(at: usize, description: &str) -> ToolDeclaration {
    let parameters = r#"{"type":"object","properties":{"query":{"type":"string","description":"what to look for"},"limit":{"type":"integer","minimum":1,"description":"the most to find"},"sort":{"enum":["new","old"],"description":"the order of what is found"}},"required":["query"]}"#;
    let parameters = RawValue::from_string(parameters.to_owned()).expect("it is JSON");
    ToolDeclaration::Function(Function {
        name: format!("server{}.tool_{at}", at % 20),
        description: format!(
            "{description} number {at}, which finds things of one kind among all that there are"
        ),
        parameters: Arc::from(parameters),
        strict: true,
        deferred: false,
    })
}

fn steps<'a>(all: &'a [(&str, Dialect, String)]) -> Vec<Step<'a>> {
    let mut steps: Vec<Step<'a>> = Vec::new();
    for (name, dialect, sse) in all {
        let (dialect, sse) = (*dialect, sse.as_str());
        let reply = read(dialect, sse);
        fact(
            &format!("stream of {name}"),
            format!("{} bytes, {} of text", sse.len(), reply.turn.text().len()),
        );
        steps.push((
            Row::new(format!("haft/wire/{name}"), "ms"),
            Box::new(move || cpu_ms(|| black_box(read(dialect, sse))).0),
        ));
        steps.push((
            Row::new(format!("serde_json/wire/{name}"), "ms"),
            Box::new(move || cpu_ms(|| black_box(trees(sse))).0),
        ));
    }
    steps
}

/// Returns the microseconds of CPU time of work done many times.
fn micros(mut work: impl FnMut(usize)) -> f64 {
    let all = || (0..MANY).for_each(&mut work);
    cpu_ms(all).0 * 1e3 / MANY as f64
}

fn main() {
    let rounds = rounds(9);
    let all = [
        ("chat", Dialect::OpenAiChat, streams::chat()),
        ("responses", Dialect::OpenAiResponses, streams::responses()),
        ("anthropic", Dialect::Anthropic, streams::anthropic()),
        ("gemini", Dialect::Gemini, streams::gemini()),
    ];
    interleave(rounds, steps(&all));

    let tools: Vec<ToolDeclaration> = (0..TOOLS).map(|at| tool(at, "tool")).collect();
    let versions: Vec<String> = (0..TOOLS).map(|at| format!("{at:064x}")).collect();
    let other = tool(500, "another tool");
    let entries: Vec<VersionedTool<'_>> = tools
        .iter()
        .zip(&versions)
        .map(|(tool, version)| VersionedTool { version, tool })
        .collect();
    let mut changed = entries.clone();
    changed[500] = VersionedTool {
        version: "other",
        tool: &other,
    };
    let mut kept = Declarer::new(Dialect::OpenAiChat);
    let mut same = Declarer::new(Dialect::OpenAiChat);
    let json = kept.declare(&entries);
    same.declare(&entries);
    fact(
        "declarations of 1,000 tools",
        format!("{} bytes", json.json().len()),
    );
    let mut again = Declarer::new(Dialect::OpenAiChat);
    again.declare(&entries);
    let last = || {
        each(MANY * MANY, || {
            for _ in 0..MANY * MANY {
                black_box(same.last());
            }
        })
    };
    let compared = || micros(|_| drop(black_box(again.declare(&entries))));
    let joined = || {
        micros(|at| {
            let tools = if at % 2 == 0 { &changed } else { &entries };
            drop(black_box(kept.declare(tools)));
        })
    };
    // The previous copy exists while the next is made, as with declarations.
    let mut held = json.json().to_vec();
    let memcpy = || micros(|_| held = black_box(black_box(json.json()).to_vec()));
    let first =
        || cpu_ms(|| black_box(Declarer::new(Dialect::OpenAiChat).declare(&entries))).0 * 1e3;
    interleave(
        rounds,
        vec![
            (Row::new("haft/declared/unchanged", "ns"), Box::new(last)),
            (Row::new("haft/declared/compared", "us"), Box::new(compared)),
            (Row::new("haft/declared/changed", "us"), Box::new(joined)),
            (Row::new("haft/declared/memcpy", "us"), Box::new(memcpy)),
            (Row::new("haft/declared/first", "us"), Box::new(first)),
        ],
    );
}
