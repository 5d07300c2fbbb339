//! The goals, and the table that says which are met.

use crate::figures::{Figures, Row};

/// The condition on our figure.
#[derive(Debug, Clone, Copy)]
enum Rule {
    /// At most this many times the peer's.
    Times(f64),
    /// At most this much more than the peer's, in the row's unit.
    Plus(f64),
    /// At most this; the peer's is shown for comparison.
    Most(f64),
    /// At most this, and less than the peer's.
    Both(f64),
    /// At least this; the peer's is shown for comparison.
    Least(f64),
    /// At least this many times the peer's.
    Share(f64),
}

/// The table's text for a missing figure.
pub(crate) const MISSING: &str = "**MISSING**";

/// A goal: the subject, our series, the peer's (`""` for none), and the rule.
type Goal = (&'static str, &'static str, &'static str, Rule);

const GOALS: &[Goal] = &[
    (
        "a coding agent's hook, start to answer, p50 (Node beside)",
        "haft/hook/p50",
        "node/hook",
        Rule::Both(5.0),
    ),
    ("the same, p99", "haft/hook/p99", "", Rule::Most(10.0)),
    (
        "the same without a server, p50 (Python beside)",
        "haft/hook/without a server",
        "python/hook",
        Rule::Most(25.0),
    ),
    (
        "a request written on SQLite, one writer, beside a bare insert (0.9x the rate)",
        "haft/sqlite/1",
        "bare/sqlite/1",
        Rule::Times(1.0 / 0.9),
    ),
    (
        "the same with 32 writers, beside one bare writer (10x the rate)",
        "haft/sqlite/32",
        "bare/sqlite/1",
        Rule::Times(0.1),
    ),
    (
        "the same with 32 writers, beside PostgreSQL's inbox (2.5x the rate)",
        "haft/sqlite/32",
        "haft/postgres/32",
        Rule::Times(1.0 / 2.5),
    ),
    (
        "a request written on PostgreSQL, one client, beside a raw insert",
        "haft/postgres/1",
        "raw/postgres/1",
        Rule::Times(1.0 / 0.85),
    ),
    (
        "the same with 32 clients",
        "haft/postgres/32",
        "raw/postgres/32",
        Rule::Times(1.0),
    ),
    (
        "decided by one process, claimed by the one that waits",
        "haft/sqlite/decided to claimed p50",
        "",
        Rule::Most(5.0),
    ),
    (
        "10,000 that wait, listed",
        "haft/sqlite/list 10000",
        "",
        Rule::Most(50.0),
    ),
    (
        "dispatch, JSON-value tools, 1,000",
        "haft/value/1000",
        "agentkit/value/1000",
        Rule::Times(1.0 / 3.0),
    ),
    (
        "dispatch, typed tools, 1,000",
        "haft/typed/1000",
        "agentkit/value/1000",
        Rule::Times(0.22),
    ),
    (
        "dispatch, JSON-value tools, 10,000 beside 10",
        "haft/value/10000",
        "haft/value/10",
        Rule::Times(1.5),
    ),
    (
        "dispatch, typed tools, 10,000 beside 10",
        "haft/typed/10000",
        "haft/typed/10",
        Rule::Times(1.5),
    ),
    (
        "the same with the archive, JSON-value",
        "haft/value/1000/audit in a row",
        "haft/value/1000/beside",
        Rule::Plus(1_500.0),
    ),
    (
        "the same with the archive, typed",
        "haft/typed/1000/audit in a row",
        "haft/typed/1000/beside",
        Rule::Plus(1_500.0),
    ),
    (
        "the same with the archive, its queue full",
        "haft/value/1000/audit sustained",
        "haft/value/1000/beside",
        Rule::Plus(2_000.0),
    ),
    (
        "an audit line that no call waits for",
        "haft/audit line",
        "",
        Rule::Most(1_000.0),
    ),
    (
        "tool list of 1,000, unchanged",
        "haft/list/unchanged",
        "",
        Rule::Most(100.0),
    ),
    (
        "tool list of 1,000, changed, beside memcpy",
        "haft/list/joined",
        "haft/list/memcpy",
        Rule::Times(2.0),
    ),
    (
        "10 MB of a stream of OpenAI Chat read, CPU (300 MB/s)",
        "haft/wire/chat",
        "serde_json/wire/chat",
        Rule::Most(33.3),
    ),
    (
        "10 MB of a stream of OpenAI Responses read, CPU (300 MB/s)",
        "haft/wire/responses",
        "serde_json/wire/responses",
        Rule::Most(33.3),
    ),
    (
        "10 MB of a stream of Anthropic Messages read, CPU (300 MB/s)",
        "haft/wire/anthropic",
        "serde_json/wire/anthropic",
        Rule::Most(33.3),
    ),
    (
        "10 MB of a stream of Gemini read, CPU (300 MB/s)",
        "haft/wire/gemini",
        "serde_json/wire/gemini",
        Rule::Most(33.3),
    ),
    (
        "declarations of 1,000 tools, unchanged",
        "haft/declared/unchanged",
        "",
        Rule::Most(100.0),
    ),
    (
        "declarations of 1,000 tools, one changed, beside memcpy",
        "haft/declared/changed",
        "haft/declared/memcpy",
        Rule::Times(2.0),
    ),
    (
        "cut of 10 MB code at 12,000 tokens, CPU",
        "haft/cut/code",
        "tiktoken/cut/code/whole",
        Rule::Most(1.5),
    ),
    (
        "cut of 10 MB log at 12,000 tokens, CPU",
        "haft/cut/log",
        "tiktoken/cut/log/whole",
        Rule::Most(1.5),
    ),
    (
        "cut of 10 MB JSON at 12,000 tokens, CPU",
        "haft/cut/json",
        "tiktoken/cut/json/whole",
        Rule::Most(1.5),
    ),
    (
        "recall among 100,000 memories, rare word",
        "haft/recall/rare word",
        "",
        Rule::Most(10.0),
    ),
    (
        "recall among 100,000 memories, common word",
        "haft/recall/common word",
        "",
        Rule::Most(10.0),
    ),
    (
        "recall among 100,000 memories, three words",
        "haft/recall/three words",
        "",
        Rule::Most(10.0),
    ),
    (
        "recall among 100,000 memories, question",
        "haft/recall/question",
        "",
        Rule::Most(10.0),
    ),
    (
        "grep, rare",
        "haft/grep/rare",
        "rg/grep/rare",
        Rule::Times(0.75),
    ),
    (
        "grep, some",
        "haft/grep/some",
        "rg/grep/some",
        Rule::Times(0.75),
    ),
    (
        "grep, common",
        "haft/grep/common",
        "rg/grep/common",
        Rule::Times(0.75),
    ),
    (
        "grep capped at 250 common hits, beside full",
        "haft/grep/common/capped",
        "haft/grep/common",
        Rule::Times(0.1),
    ),
    (
        "list of all files",
        "haft/list",
        "rg/list",
        Rule::Times(0.6),
    ),
    (
        "finding a tool among 10,296",
        "haft/find tool/10296",
        "tantivy/find tool/10296",
        Rule::Times(1.0 / 3.0),
    ),
    (
        "start of a process, no jail",
        "haft/true/passthrough",
        "posix_spawn/true",
        Rule::Times(1.15),
    ),
    (
        "start of a process, jailed",
        "haft/true/jail",
        "posix_spawn/true",
        Rule::Plus(2_500.0),
    ),
    (
        "a command that changes nothing, on a copy beside in the workspace",
        "haft/run_command/copy",
        "haft/run_command/direct",
        Rule::Plus(1_000.0),
    ),
    (
        "reading what changed: 10,000 files",
        "haft/collect/10000 files",
        "",
        Rule::Most(150.0),
    ),
    (
        "applying it, a file",
        "haft/apply/10000 files, each",
        "",
        Rule::Most(30.0),
    ),
    (
        "rendering a command's output of 12,000 tokens",
        "haft/render/command",
        "",
        Rule::Most(1_000_000.0),
    ),
    (
        "rendering a text that repeats its data, 12,000 tokens",
        "haft/render/repeated",
        "",
        Rule::Most(1_000_000.0),
    ),
    (
        "the request about changes of 1,000 files",
        "haft/request/1000 files",
        "",
        Rule::Most(200.0),
    ),
    (
        "what a commit of 100 files means",
        "haft/meaning/commit of 100 files",
        "",
        Rule::Most(20.0),
    ),
    (
        "undoing changes of 1,000 files",
        "haft/undo/1000 files",
        "",
        Rule::Most(200.0),
    ),
    (
        "100 MB of output through the live channel",
        "haft/channel",
        "raw/read",
        Rule::Share(0.75),
    ),
    (
        "the same as JSON",
        "haft/channel and JSON",
        "raw/read",
        Rule::Share(0.5),
    ),
    (
        "script of 10 calls, warm, p50",
        "haft/chain/10 calls/p50",
        "monty/chain/10 calls/p50",
        Rule::Both(900.0),
    ),
    (
        "the same, beside monty",
        "haft/chain/10 calls/p50",
        "monty/chain/10 calls/p50",
        Rule::Times(0.3),
    ),
    (
        "the same, p99",
        "haft/chain/10 calls/p99",
        "",
        Rule::Most(3_000.0),
    ),
    (
        "the same, on demand, p50",
        "haft/chain/10 calls on demand/p50",
        "bwrap/chain/10 calls/p50",
        Rule::Most(4_500.0),
    ),
    (
        "script of 50 calls, p50",
        "haft/chain/50 calls/p50",
        "",
        Rule::Most(1_700.0),
    ),
    (
        "a call's way over the bridge",
        "haft/chain/bridge beyond the executor",
        "",
        Rule::Most(20.0),
    ),
    (
        "a nested call with its trace",
        "haft/chain/nested call recorded",
        "",
        Rule::Most(30.0),
    ),
    (
        "scripts a second, sustained",
        "haft/chain/sustained",
        "",
        Rule::Least(400.0),
    ),
    (
        "an idle interpreter, private memory",
        "haft/chain/idle child",
        "",
        Rule::Most(2_560.0),
    ),
    (
        "a script over its deadline is gone after",
        "haft/chain/deadline",
        "",
        Rule::Most(50.0),
    ),
    (
        "MCP call over HTTP, alone, p50",
        "haft/http/p50 alone",
        "rmcp/http/p50 alone",
        Rule::Most(60.0),
    ),
    (
        "MCP calls over HTTP, 32 clients",
        "haft/http/rate at 32",
        "rmcp/http/rate at 32",
        Rule::Least(10_000.0),
    ),
    (
        "MCP call through haft to a server, HTTP on both sides, added p50",
        "haft/gateway/added p50",
        "mcp-proxy/gateway/added p50",
        Rule::Both(60.0),
    ),
    (
        "the same, processor time of a call",
        "haft/gateway/cpu alone",
        "mcp-proxy/gateway/cpu alone",
        Rule::Both(60.0),
    ),
    (
        "the same, 32 clients",
        "haft/gateway/cpu at 32",
        "mcp-proxy/gateway/cpu at 32",
        Rule::Both(40.0),
    ),
    (
        "calls through haft to a server, 32 clients",
        "haft/gateway/rate at 32",
        "mcp-proxy/gateway/rate at 32",
        Rule::Least(10_000.0),
    ),
    (
        "the same over stdio on both sides, added p50",
        "haft/gateway/stdio added",
        "",
        Rule::Most(60.0),
    ),
    (
        "first answer with 20 known servers",
        "haft/gateway/first answer of 20 servers",
        "",
        Rule::Most(30.0),
    ),
    (
        "idle with 20 known servers, private memory",
        "haft/gateway/private idle",
        "",
        Rule::Most(8.0),
    ),
    (
        "1,000 sessions more, private memory",
        "haft/gateway/1000 sessions",
        "",
        Rule::Most(25.0),
    ),
    (
        "1,000 skills discovered",
        "haft/skills/discovered",
        "",
        Rule::Most(100.0),
    ),
    (
        "1,000 skills, unchanged",
        "haft/skills/unchanged",
        "",
        Rule::Most(2.0),
    ),
    ("haft --version", "haft/--version", "", Rule::Most(5.0)),
    ("haft serve ready", "haft/serve/ready", "", Rule::Most(50.0)),
    (
        "haft serve, idle memory",
        "haft/serve/rss idle",
        "",
        Rule::Most(15.0),
    ),
    (
        "haft serve, idle memory, private",
        "haft/serve/private idle",
        "",
        Rule::Most(8.0),
    ),
    (
        "haft serve, memory with the token table",
        "haft/serve/rss with token table",
        "",
        Rule::Most(100.0),
    ),
    ("release binary", "haft/binary", "", Rule::Most(36.0)),
];

/// Returns the table, in Markdown.
pub(crate) fn table(figures: &Figures) -> String {
    let head = "| what | goal | haft | peer | ratio | |\n|---|---|---|---|---|---|\n";
    let lines = GOALS.iter().map(|goal| line(figures, goal));
    lines.fold(head.to_owned(), |table, line| table + &line)
}

fn line(figures: &Figures, row: &Goal) -> String {
    let (what, ours, peer, rule) = row;
    let (found, beside) = (figures.row(ours), figures.row(peer));
    let missing = if found.is_none() { ours } else { peer };
    let (Some(ours), true) = (found, peer.is_empty() || beside.is_some()) else {
        return format!("| {what} | | | | | {MISSING} {missing} |\n");
    };
    let (goal, unit) = (goal(*rule, ours, beside), &ours.unit);
    let peer = beside.map_or_else(|| "–".to_owned(), |p| with_median(p) + " · " + &owner(p));
    let ratio = beside.map_or_else(|| "–".to_owned(), |p| ratio(ours.best() / p.best()));
    let verdict = if met(ours, beside, *rule) {
        "ok"
    } else {
        "**MISSED**"
    };
    let figure = with_median(ours);
    format!("| {what} | {goal} | {figure} {unit} | {peer} | {ratio} | {verdict} |\n")
}

fn met(ours: &Row, peer: Option<&Row>, rule: Rule) -> bool {
    let beside = peer.map_or(f64::NAN, Row::best);
    match rule {
        Rule::Times(most) => ours.best() <= most * beside,
        Rule::Plus(most) => ours.best() <= most + beside,
        Rule::Most(most) => ours.best() <= most,
        Rule::Both(most) => ours.best() <= most && ours.best() < beside,
        Rule::Least(least) => ours.best() >= least,
        Rule::Share(least) => ours.best() >= least * beside,
    }
}

fn goal(rule: Rule, ours: &Row, peer: Option<&Row>) -> String {
    let unit = &ours.unit;
    let beside = peer.map_or_else(String::new, owner);
    match rule {
        Rule::Times(most) => format!("≤ {} of {beside}", ratio(most)),
        Rule::Plus(most) => format!("≤ {beside} + {} {unit}", figure(most)),
        Rule::Most(most) => format!("≤ {} {unit}", figure(most)),
        Rule::Both(most) => format!("≤ {} {unit}, < {beside}", figure(most)),
        Rule::Least(least) => format!("≥ {} {unit}", figure(least)),
        Rule::Share(least) => format!("≥ {least} of {beside}"),
    }
}

/// Returns whose series it is: the first word of its name, plus what was measured if it is ours.
fn owner(row: &Row) -> String {
    match row.name.split_once('/') {
        Some(("haft", what)) => what.to_owned(),
        Some((peer, _)) => peer.to_owned(),
        None => row.name.clone(),
    }
}

/// Formats the best value, with the median in brackets.
pub(crate) fn with_median(row: &Row) -> String {
    let (best, median) = (figure(row.best()), figure(row.median()));
    if row.rounds.len() < 2 {
        best
    } else {
        format!("{best} ({median})")
    }
}

fn ratio(value: f64) -> String {
    if value < 0.1 {
        format!("{value:.4}x")
    } else {
        format!("{value:.2}x")
    }
}

/// Formats a number with at least three digits and separated thousands.
fn figure(value: f64) -> String {
    if value >= 100.0 {
        let digits = format!("{value:.0}");
        let mut apart = String::new();
        for (n, digit) in digits.chars().enumerate() {
            if n > 0 && (digits.len() - n) % 3 == 0 {
                apart.push(',');
            }
            apart.push(digit);
        }
        return apart;
    }
    if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}
