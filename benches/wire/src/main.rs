//! Streams of OpenAI's two dialects read in pieces as a network brings them, and a thousand tools declared of which none or one changed.

use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;

use haft_wire::declared::Function;
use haft_wire::declarer::Entry;
use haft_wire::{Declared, Declarer, Dialect, Limits, Reply};
use measure::{Row, Step, cpu_ms, each, fact, interleave, rounds};
use serde_json::Value;
use serde_json::value::RawValue;

/// Bytes of a stream.
const SIZE: usize = 10_000_000;

/// Bytes of a piece.
const PIECE: usize = 16 << 10;

/// Repeats within a round of what takes microseconds.
const MANY: usize = 100;

/// Tools declared.
const TOOLS: usize = 1_000;

/// Words that a model writes, a piece each: plain ones, one with an escape, one that is not ASCII.
const WORDS: [&str; 6] = [" capital", " of", " the", "\\n- ", " käse", " framework"];

/// A stream of Chat: text, then a call whose arguments come in pieces.
fn chat() -> String {
    let head = r#"data: {"id":"chatcmpl-Dx0Xq5Xx9rHB2ehcHZCRDsnuymUXc","object":"chat.completion.chunk","created":1782955818,"model":"gpt-4o-mini-2024-07-18","service_tier":"default","system_fingerprint":"fp_d0469e1700","choices":[{"index":0,"delta":"#;
    let tail = |finish: &str| {
        format!(
            r#","logprobs":null,"finish_reason":{finish}}}],"usage":null,"obfuscation":"HM7mrUsjk"}}"#
        )
    };
    let mut sse = String::with_capacity(SIZE + 1024);
    let mut at = 0;
    while sse.len() < SIZE / 2 {
        let word = WORDS[at % WORDS.len()];
        write!(sse, "{head}{{\"content\":\"{word}\"}}{}\n\n", tail("null")).expect("a String");
        at += 1;
    }
    let begin = r#"{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"write","arguments":"{\"text\":\""}}]}"#;
    write!(sse, "{head}{begin}{}\n\n", tail("null")).expect("a String");
    while sse.len() < SIZE {
        let word = WORDS[at % WORDS.len()].replace('\\', "\\\\");
        let delta =
            format!(r#"{{"tool_calls":[{{"index":0,"function":{{"arguments":"{word}"}}}}]}}"#);
        write!(sse, "{head}{delta}{}\n\n", tail("null")).expect("a String");
        at += 1;
    }
    let end = r#"{"tool_calls":[{"index":0,"function":{"arguments":"\"}"}}]}"#;
    write!(
        sse,
        "{head}{end}{}\n\n{head}{{}}{}\n\ndata: [DONE]\n\n",
        tail("null"),
        tail("\"tool_calls\"")
    )
    .expect("a String");
    sse
}

/// A stream of Responses: a text in pieces, then whole, once as an item and once in the response.
fn responses() -> String {
    let mut sse = String::with_capacity(SIZE + (1 << 20));
    let mut text = String::new();
    let mut at = 0;
    while sse.len() + 2 * text.len() < SIZE {
        let word = WORDS[at % WORDS.len()];
        write!(sse, "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\"sequence_number\":{},\"item_id\":\"msg_00b9cc7a23d047270068faa0f63798819f83c5348ca838d252\",\"output_index\":0,\"content_index\":0,\"delta\":\"{word}\",\"logprobs\":[],\"obfuscation\":\"Vk0HCjd5u0Ukrjt\"}}\n\n", at + 1).expect("a String");
        text += word;
        at += 1;
    }
    let item = format!(
        r#"{{"id":"msg_1","type":"message","status":"completed","content":[{{"type":"output_text","annotations":[],"logprobs":[],"text":"{text}"}}],"role":"assistant"}}"#
    );
    write!(sse, "event: response.output_item.done\ndata: {{\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{item}}}\n\n").expect("a String");
    write!(sse, "event: response.completed\ndata: {{\"type\":\"response.completed\",\"response\":{{\"id\":\"resp_1\",\"model\":\"m\",\"status\":\"completed\",\"output\":[{item}]}}}}\n\n").expect("a String");
    sse
}

fn read(dialect: Dialect, sse: &str) -> Reply {
    let mut reader = dialect.reader(Limits::default());
    let mut deltas = Vec::new();
    for piece in sse.as_bytes().chunks(PIECE) {
        deltas.clear();
        reader.push(piece, &mut deltas).expect("the stream is fine");
        black_box(&deltas);
    }
    reader.finish().expect("the stream is whole")
}

/// The plain way: the lines cut, each event a tree.
fn trees(sse: &str) -> usize {
    let data = sse.lines().filter_map(|line| line.strip_prefix("data: "));
    let trees = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    trees
        .filter(|tree| !tree["type"].is_string() || !tree["delta"].is_null())
        .count()
}

fn tool(at: usize, description: &str) -> Declared {
    let parameters = r#"{"type":"object","properties":{"query":{"type":"string","description":"what to look for"},"limit":{"type":"integer","minimum":1,"description":"the most to find"},"sort":{"enum":["new","old"],"description":"the order of what is found"}},"required":["query"]}"#;
    let parameters = RawValue::from_string(parameters.to_owned()).expect("it is JSON");
    Declared::Function(Function {
        name: format!("server{}.tool_{at}", at % 20),
        description: format!(
            "{description} number {at}, which finds things of one kind among all that there are"
        ),
        parameters: Arc::from(parameters),
        strict: true,
        deferred: false,
    })
}

fn streams<'a>(chat: &'a str, responses: &'a str) -> Vec<Step<'a>> {
    let mut steps: Vec<Step<'a>> = Vec::new();
    for (name, dialect, sse) in [
        ("chat", Dialect::OpenAiChat, chat),
        ("responses", Dialect::OpenAiResponses, responses),
    ] {
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

/// Microseconds of CPU time of what is done many times.
fn micros(mut work: impl FnMut(usize)) -> f64 {
    let all = || (0..MANY).for_each(&mut work);
    cpu_ms(all).0 * 1e3 / MANY as f64
}

fn main() {
    let rounds = rounds(9);
    let (chat, responses) = (chat(), responses());
    interleave(rounds, streams(&chat, &responses));

    let tools: Vec<Declared> = (0..TOOLS).map(|at| tool(at, "tool")).collect();
    let versions: Vec<String> = (0..TOOLS).map(|at| format!("{at:064x}")).collect();
    let other = tool(500, "another tool");
    let entries: Vec<Entry<'_>> = tools
        .iter()
        .zip(&versions)
        .map(|(tool, version)| Entry { version, tool })
        .collect();
    let mut changed = entries.clone();
    changed[500] = Entry {
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
    // What was copied before is there while the next is copied, as with declarations.
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
