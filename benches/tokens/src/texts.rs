//! Texts of ten megabytes: source code of the dependencies, and a log and JSON from a fixed generator.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use measure::random::Random;
use measure::sources;

/// Minimum size of each text in bytes.
pub(crate) const SIZE: usize = 10_000_000;

/// Returns Rust source code, files sorted by path.
pub(crate) fn code() -> String {
    let mut text = String::with_capacity(SIZE + (1 << 20));
    for path in sources::files("rs") {
        if text.len() >= SIZE {
            break;
        }
        text.push_str(&read(&path));
    }
    text
}

fn read(path: &PathBuf) -> String {
    // Test files of some crates are not UTF-8; they are skipped.
    fs::read_to_string(path).unwrap_or_default()
}

const WORDS: [&str; 24] = [
    "connection",
    "accepted",
    "closed",
    "timeout",
    "retry",
    "worker",
    "queue",
    "upstream",
    "flushed",
    "checkpoint",
    "request",
    "response",
    "GET",
    "POST",
    "/api/v1/items",
    "/healthz",
    "cache",
    "miss",
    "hit",
    "étage",
    "größe",
    "スレッド",
    "panic:",
    "backoff",
];

/// Returns the lines of a service's log.
pub(crate) fn log() -> String {
    let mut random = Random::new(11);
    let mut text = String::with_capacity(SIZE + 256);
    let mut n = 0_u64;
    while text.len() < SIZE {
        n += random.draw() % 900;
        let (h, m, s, ms) = (n / 3_600_000 % 24, n / 60_000 % 60, n / 1000 % 60, n % 1000);
        let level = random.pick(&["INFO", "INFO", "INFO", "DEBUG", "WARN", "ERROR"]);
        let _ = write!(text, "2026-11-21T{h:02}:{m:02}:{s:02}.{ms:03}Z {level:>5} ");
        let _ = write!(text, "srv::pool[{}] ", random.below(64));
        for _ in 0..3 + random.below(9) {
            let _ = write!(text, "{} ", random.pick(&WORDS));
        }
        let (id, took) = (random.draw(), random.below(90_000));
        let _ = writeln!(
            text,
            "id={id:016x} took={took}us status={}",
            200 + random.below(4) * 100
        );
    }
    text
}

/// Returns an array of records, compact.
pub(crate) fn json() -> String {
    let mut random = Random::new(13);
    let mut text = String::with_capacity(SIZE + 512);
    text.push('[');
    let mut n = 0;
    while text.len() < SIZE {
        n += 1;
        let (a, b) = (random.pick(&WORDS), random.pick(&WORDS));
        let price = random.below(1_000_000);
        let _ = write!(
            text,
            r#"{{"id":{n},"uuid":"{:016x}","name":"{a} {b}","price":{}.{:02},"active":{},"tags":["{}","{}"],"note":null}},"#,
            random.draw(),
            price / 100,
            price % 100,
            random.below(2) == 0,
            random.pick(&WORDS),
            random.pick(&WORDS),
        );
    }
    text.push_str("{}]");
    text
}
