//! Cutting long texts at 12,000 tokens: CPU time, and the cut itself compared to tiktoken's.

use std::hint::black_box;

use haft_tokens::{O200k, Tokenizer};
use measure::{Row, Step, cpu_ms, fact, interleave, rounds};
use tiktoken_rs::{CoreBPE, o200k_base_singleton};

mod texts;

/// Number of tokens to keep: the inline limit of a direct call.
const LIMIT: usize = 12_000;

fn main() {
    fact("tiktoken-rs", "0.12.1");
    let texts = [
        ("code", texts::code()),
        ("log", texts::log()),
        ("json", texts::json()),
    ];
    let tiktoken = o200k_base_singleton();
    for (name, text) in &texts {
        assert!(text.len() >= texts::SIZE, "the {name} text is too short");
        let (ours, theirs) = (O200k.head(text, LIMIT), whole(tiktoken, text));
        assert_eq!(ours, theirs, "the cuts of the {name} text differ");
        fact(
            &format!("cut of {name}"),
            format!("{ours} bytes, identical"),
        );
    }
    let rounds = rounds(5);
    let ours = texts.iter().map(|(name, text)| step(name, text));
    interleave(rounds * 5, ours.collect());
    let piece = "a".repeat(1 << 20);
    let row = Row::new("haft/cut/one piece of 1 MiB", "ms");
    let hostile = || cpu_ms(|| black_box(O200k.head(&piece, LIMIT))).0;
    interleave(rounds, vec![(row, Box::new(hostile))]);
    let theirs = texts
        .iter()
        .flat_map(|(name, text)| peers(tiktoken, name, text));
    interleave(rounds.min(5), theirs.collect());
}

fn step<'t>(name: &str, text: &'t str) -> Step<'t> {
    let row = Row::new(format!("haft/cut/{name}"), "ms");
    (
        row,
        Box::new(|| cpu_ms(|| black_box(O200k.head(text, LIMIT))).0),
    )
}

/// tiktoken-rs has no cut: the usual way encodes everything; the careful one encodes a prefix, doubled until it suffices.
fn peers<'t>(tiktoken: &'t CoreBPE, name: &str, text: &'t str) -> [Step<'t>; 2] {
    let all = move || cpu_ms(|| black_box(whole(tiktoken, text))).0;
    let some = move || cpu_ms(|| black_box(window(tiktoken, text))).0;
    [
        (
            Row::new(format!("tiktoken/cut/{name}/whole"), "ms"),
            Box::new(all),
        ),
        (
            Row::new(format!("tiktoken/cut/{name}/window"), "ms"),
            Box::new(some),
        ),
    ]
}

/// Cuts by encoding the whole text.
fn whole(tiktoken: &CoreBPE, text: &str) -> usize {
    let mut tokens = tiktoken.encode_ordinary(text);
    tokens.truncate(LIMIT);
    end(tiktoken, &tokens, text)
}

/// Cuts by encoding a prefix, doubled until it holds enough tokens.
fn window(tiktoken: &CoreBPE, text: &str) -> usize {
    let mut size = LIMIT * 4;
    loop {
        let begin = &text[..text.floor_char_boundary(size)];
        let mut tokens = tiktoken.encode_ordinary(begin);
        // The last tokens of a prefix may differ in the whole text.
        if tokens.len() >= LIMIT + 64 || begin.len() == text.len() {
            tokens.truncate(LIMIT);
            return end(tiktoken, &tokens, text);
        }
        size *= 2;
    }
}

fn end(tiktoken: &CoreBPE, tokens: &[u32], text: &str) -> usize {
    let bytes = tiktoken.decode_bytes(tokens).expect("its own tokens");
    text.floor_char_boundary(bytes.len())
}
