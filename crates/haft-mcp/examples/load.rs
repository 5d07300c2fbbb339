//! Measures echo calls to an MCP server over HTTP and prints their times: `load HOST:PORT legacy|modern|none CONNECTIONS SECONDS [TOKEN]`.
//!
//! One thread, raw hyper, one connection (and session) per worker, one request at a time on each. `none` sends a request
//! that the server rejects immediately: the lower bound from hyper, loopback and this program.
#![expect(clippy::print_stdout, reason = "its output is the result")]

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const TEXT: &str = "a text of some sixty bytes that the server is to give back!!";

#[derive(Clone)]
struct Plan {
    address: String,
    era: String,
    token: Option<String>,
    until: Instant,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, era, connections, seconds, rest @ ..] = &words[..] else {
        return Err("load HOST:PORT legacy|modern|none CONNECTIONS SECONDS [TOKEN]".into());
    };
    let (connections, seconds): (usize, f64) = (connections.parse()?, seconds.parse()?);
    let warm = Duration::from_millis(500);
    let plan = Plan {
        address: address.clone(),
        era: era.clone(),
        token: rest.first().cloned(),
        until: Instant::now() + warm + Duration::from_secs_f64(seconds),
    };
    let begin = Instant::now() + warm;
    let mut workers = JoinSet::new();
    for _ in 0..connections {
        workers.spawn(work(plan.clone(), begin));
    }
    let mut times = Vec::new();
    while let Some(done) = workers.join_next().await {
        times.extend(done??);
    }
    times.sort_unstable();
    let at = |share: f64| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index into as many times as fit in memory"
        )]
        let index = (times.len() as f64 * share) as usize;
        times.get(index.min(times.len() - 1)).copied()
    };
    let micros = |share| at(share).unwrap_or_default().as_secs_f64() * 1e6;
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = times.len() as f64 / seconds;
    println!(
        "{era} connections={connections} p50={:.1}us p90={:.1}us p99={:.1}us max={:.1}us rate={rate:.0}/s n={}",
        micros(0.5),
        micros(0.9),
        micros(0.99),
        micros(1.0),
        times.len()
    );
    Ok(())
}

/// Sends one connection's requests in sequence; returns the times of those that started after `begin`.
async fn work(plan: Plan, begin: Instant) -> Result<Vec<Duration>, Failure> {
    let stream = TcpStream::connect(&plan.address).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let session = if plan.era == "legacy" {
        Some(open(&mut sender, &plan).await?)
    } else {
        None
    };
    let mut times = Vec::new();
    for id in 1_u64.. {
        let request = echo(&plan, id, session.as_deref())?;
        let start = Instant::now();
        if start >= plan.until {
            break;
        }
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        let taken = start.elapsed();
        let echoed = body.windows(TEXT.len()).any(|w| w == TEXT.as_bytes());
        let fine = if plan.era == "none" {
            status == StatusCode::METHOD_NOT_ALLOWED
        } else {
            status == StatusCode::OK && echoed
        };
        if !fine {
            return Err(format!("{status}: {}", String::from_utf8_lossy(&body)).into());
        }
        if start >= begin {
            times.push(taken);
        }
    }
    Ok(times)
}

fn post(plan: &Plan, body: &str) -> http::request::Builder {
    let mut request = Request::builder()
        .method(if plan.era == "none" { "PUT" } else { "POST" })
        .uri("/mcp")
        .header("host", &plan.address)
        .header("content-type", "application/json")
        .header("content-length", body.len())
        .header("accept", "application/json, text/event-stream");
    if let Some(token) = &plan.token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    request
}

fn echo(plan: &Plan, id: u64, session: Option<&str>) -> Result<Request<Full<Bytes>>, Failure> {
    let meta = if plan.era == "modern" {
        r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#
    } else {
        ""
    };
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{TEXT}"}}{meta}}}}}"#
    );
    let mut request = post(plan, &body);
    if plan.era == "modern" {
        request = request
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "echo");
    }
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    Ok(request.body(Full::new(body.into()))?)
}

async fn open(sender: &mut SendRequest<Full<Bytes>>, plan: &Plan) -> Result<String, Failure> {
    let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"load","version":"1"}}}"#;
    let request = post(plan, body).body(Full::new(body.into()))?;
    let answer = sender.send_request(request).await?;
    let session = answer.headers().get("mcp-session-id");
    let session = session.ok_or("no session")?.to_str()?.to_owned();
    answer.into_body().collect().await?;
    Ok(session)
}
