//! Prints what the hot kernels cost: checking arguments, and cutting 10 MB of text at 12,000 tokens.
#![expect(clippy::print_stdout, reason = "it exists to print")]

use std::error::Error;
use std::fmt::Write;
use std::hint::black_box;
use std::time::Duration;

use haft::json::scan;
use haft::json::schema::Schema;
use haft::tokens::{O200k, Tokenizer};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

/// A call of a search tool with seven properties, 173 bytes.
const ARGUMENTS: &str = r#"{"query": "fn main handler", "path": "crates/core/src", "mode": "content", "limit": 50, "ignore_case": true, "types": ["rust", "toml"], "context": {"before": 2, "after": 3}}"#;

/// Returns the lowest processor time of several rounds, which other work on the machine disturbs least.
fn fastest(rounds: usize, mut run: impl FnMut()) -> Duration {
    let once = |_| {
        let start = processor();
        run();
        processor().saturating_sub(start)
    };
    (0..rounds).map(once).min().unwrap_or_default()
}

fn processor() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(now).unwrap_or_default()
}

fn main() -> Result<(), Box<dyn Error>> {
    let schema = Schema::compile(&json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "maxLength": 200},
            "path": {"type": "string", "maxLength": 4096},
            "mode": {"enum": ["content", "files", "count"]},
            "limit": {"type": "integer", "minimum": 1, "maximum": 1000},
            "ignore_case": {"type": "boolean"},
            "types": {"type": "array", "items": {"type": "string"}},
            "context": {"type": "object", "properties": {"before": {"type": "integer"}, "after": {"type": "integer"}}},
        },
        "required": ["query"],
        "additionalProperties": false,
    }))?;
    let loops = 20_000;
    let nanos = |time: Duration| time.as_nanos() / loops;
    let scanning = fastest(30, || {
        for _ in 0..loops {
            black_box(scan::scan_object(black_box(ARGUMENTS)).is_ok());
        }
    });
    let admitting = fastest(30, || {
        for _ in 0..loops {
            black_box(schema.admit(black_box(ARGUMENTS), true).is_ok());
        }
    });
    println!(
        "arguments: {} bytes, single pass: {}",
        ARGUMENTS.len(),
        schema.is_single_pass()
    );
    println!(
        "strict scan {} ns, scan and schema {} ns",
        nanos(scanning),
        nanos(admitting)
    );

    let loading = fastest(1, || {
        black_box(O200k.fits("x x", 2));
    });
    println!("token table loaded in {loading:?}; {}", resident());
    for (name, text) in texts()? {
        let mut head = 0;
        let time = fastest(9, || head = O200k.head(black_box(&text), 12_000));
        println!(
            "cut {name} of {} bytes at 12,000 tokens = {head} bytes: {time:?}",
            text.len()
        );
        let time = fastest(3, || head = O200k.tail(black_box(&text), 3_000));
        println!(
            "  tail of 3,000 tokens = {} bytes: {time:?}",
            text.len() - head
        );
    }
    println!("{}", resident());
    Ok(())
}

fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    line.unwrap_or("memory unknown").to_owned()
}

fn texts() -> Result<Vec<(&'static str, String)>, std::fmt::Error> {
    const SIZE: usize = 10_000_000;
    let code = include_str!("kernel_cost.rs").repeat(SIZE / 4_000);
    let mut log = String::new();
    let mut json = String::new();
    let mut random = String::new();
    let mut state = 7_u64;
    for n in 0_u64.. {
        if log.len() > SIZE && json.len() > SIZE && random.len() >= 1 << 20 {
            break;
        }
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let (hash, ms) = (state >> 20, n * 31 % 997);
        let second = n % 60;
        writeln!(
            log,
            "2026-11-21T10:15:{second:02}.{ms:03}Z INFO worker-{n} request {hash:x} took {ms} ms path=/api/v1/items/{n}"
        )?;
        write!(
            json,
            r#"{{"id":{n},"name":"item {hash:x}","price":{ms}.25,"tags":["a","b"],"active":true}},"#
        )?;
        for shift in [10, 20, 30, 40, 50] {
            let letter = u8::try_from((state >> shift) % 26).unwrap_or_default();
            random.push(char::from(b'a' + letter));
        }
    }
    Ok(vec![
        ("code", code),
        ("log", log),
        ("json", json),
        ("one word of a", "a".repeat(1 << 20)),
        ("one word of ab", "ab".repeat(1 << 19)),
        ("one run of spaces", " ".repeat(1 << 20)),
        ("one run of =", "=".repeat(1 << 20)),
        ("one random word", random),
    ])
}
