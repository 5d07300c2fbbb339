//! The session's memory: a run's own record, searched by words; read-only.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::Path;

use serde::Deserialize;

use crate::audit::runs::{self, RunsError};
use crate::memory::words;

/// Maximum number of a run's calls that are searched: the last ones.
const MAX_CALLS: usize = 10_000;
/// Maximum number of lines read from a record.
const MAX_LINES: usize = 1_000_000;

/// What the record says about one call: tool, arguments, summary, error, redacted as recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunText {
    /// The line's number in the record.
    pub seq: u64,
    /// When the call ended, RFC 3339 UTC.
    pub at: String,
    /// The tool.
    pub tool: String,
    /// The text to search.
    pub text: String,
}

#[derive(Deserialize)]
struct CallLine {
    seq: u64,
    ts: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    tool: String,
    #[serde(default)]
    arguments: String,
    #[serde(default)]
    summary: String,
    error: Option<CallLineError>,
}

#[derive(Deserialize)]
struct CallLineError {
    message: String,
}

/// Reads the texts of the last calls in a run's record below haft's state folder. Blocks.
///
/// Leaves out calls of the tools in `except`, so that a search does not find itself.
///
/// # Errors
/// [`RunsError::BadId`] if the id could lead elsewhere, [`RunsError::NotFound`] if there is no such run, [`RunsError::Io`] if its
/// record cannot be read.
pub fn read(home: &Path, run: &str, except: &[&str]) -> Result<Vec<RunText>, RunsError> {
    let mut texts = VecDeque::new();
    for line in runs::events(home, run)?.take(MAX_LINES) {
        let line = line?;
        let Ok(line) = serde_json::from_str::<CallLine>(&line) else {
            continue;
        };
        if line.kind != "call_ended" || except.contains(&line.tool.as_str()) {
            continue;
        }
        let error = line.error.map(|error| error.message).unwrap_or_default();
        let line_texts = [&line.tool, &line.arguments, &line.summary, &error];
        let line_texts: Vec<&str> = line_texts.into_iter().map(String::as_str).collect();
        if texts.len() == MAX_CALLS {
            texts.pop_front();
        }
        texts.push_back(RunText {
            seq: line.seq,
            at: line.ts,
            text: line_texts.join(" ").trim().to_owned(),
            tool: line.tool,
        });
    }
    Ok(texts.into())
}

/// Returns the texts that contain words of the query, best first, each with its rank (BM25, higher is better); of equal ranks, the
/// later one first.
pub fn search<'t>(texts: &'t [RunText], query: &str, limit: usize) -> Vec<(&'t RunText, f64)> {
    /// The usual constants of BM25: how fast repetitions saturate, and how much length counts.
    const K1: f64 = 1.2;
    const B: f64 = 0.75;
    let wanted: HashSet<String> = words::terms(query).into_iter().collect();
    let mut lengths = Vec::with_capacity(texts.len());
    let mut found: Vec<HashMap<&str, f64>> = Vec::with_capacity(texts.len());
    let mut holders: HashMap<&str, f64> = HashMap::new();
    for text in texts {
        let terms = words::terms(&text.text);
        let mut counts: HashMap<&str, f64> = HashMap::new();
        for term in &terms {
            if let Some(term) = wanted.get(term) {
                *counts.entry(term).or_default() += 1.0;
            }
        }
        for term in counts.keys() {
            *holders.entry(term).or_default() += 1.0;
        }
        lengths.push(count(terms.len()));
        found.push(counts);
    }
    let all = count(texts.len());
    let mean = (lengths.iter().sum::<f64>() / all.max(1.0)).max(1.0);
    let mut ranked: Vec<(&RunText, f64)> = Vec::new();
    for ((text, counts), length) in texts.iter().zip(&found).zip(&lengths) {
        let rank = counts.iter().map(|(term, count)| {
            let holders = holders.get(term).copied().unwrap_or_default();
            let rarity = ((all - holders + 0.5) / (holders + 0.5) + 1.0).ln();
            rarity * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length / mean))
        });
        let rank: f64 = rank.sum();
        if rank > 0.0 {
            ranked.push((text, rank));
        }
    }
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.seq.cmp(&a.0.seq)));
    ranked.truncate(limit);
    ranked
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of words are far below 2^53"
)]
fn count(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: &[&str]) -> Vec<RunText> {
        let text = |(n, text): (usize, &&str)| RunText {
            seq: n as u64,
            at: String::new(),
            tool: String::new(),
            text: (*text).to_owned(),
        };
        lines.iter().enumerate().map(text).collect()
    }

    fn check(lines: &[&str], query: &str, expect: &[u64]) {
        let texts = texts(lines);
        let found = search(&texts, query, 3);
        let seqs: Vec<u64> = found.iter().map(|(text, _)| text.seq).collect();
        assert_eq!(seqs, expect, "{query:?}");
    }

    #[test]
    fn rare_words_count_more_and_of_equals_the_later_comes_first() {
        let lines = [
            "read_file config.toml 40 lines",
            "read_file main.rs 10 lines",
            "grep_files handleRequest in main.rs",
            "read_file main.rs 10 lines",
            "部署服务",
        ];
        check(&lines, "config", &[0]);
        check(&lines, "main request", &[2, 3, 1]);
        check(&lines, "handle_request", &[2]);
        check(&lines, "部署", &[4]);
        check(&lines, "nothing such", &[]);
        check(&lines, "", &[]);
        check(&[], "x", &[]);
    }
}
