//! Measures what one hostile principal does to the others: `fairness HOST:PORT SECONDS HOSTILE_TOKEN TOKEN…`.
//!
//! Each other token has 50 clients, each with a connection of its own, that call `read_file` with the path `hello.txt` about five times
//! a second. Their times are measured alone, then while 50 clients of the hostile token pipeline requests without reading the answers,
//! open streams and sessions, hold bodies and call as fast as they can. The other clients' calls must all succeed.
#![expect(clippy::print_stdout, reason = "its output is the result")]

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Rounds of one measurement alone and one beside the attack.
const ROUNDS: usize = 5;
/// Clients of each principal.
const CLIENTS: u64 = 50;
/// How long a client waits between two calls.
const THINK: Duration = Duration::from_millis(200);
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// A principal's clients and where they connect.
#[derive(Clone)]
struct Client {
    address: String,
    token: String,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, seconds, hostile, others @ ..] = &words[..] else {
        return Err("fairness HOST:PORT SECONDS HOSTILE_TOKEN TOKEN…".into());
    };
    let time = Duration::from_secs_f64(seconds.parse()?);
    let client = |token: &String| Client {
        address: address.clone(),
        token: token.clone(),
    };
    let others: Vec<Client> = others.iter().map(client).collect();
    // The first round opens the runs and fills the caches.
    measure(&others, Duration::from_secs(2)).await?;
    let hostile = client(hostile);
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let alone = measure(&others, time).await?;
        let mut attackers = hostile.attackers();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let beside = measure(&others, time).await?;
        attackers.shutdown().await;
        for (name, times) in [("alone", &alone), ("beside", &beside)] {
            println!(
                "{name:<7} p50={:.1}ms p99={:.1}ms max={:.1}ms n={}",
                at(times, 50),
                at(times, 99),
                at(times, 100),
                times.len()
            );
        }
        ratios.push(at(&beside, 99) / at(&alone, 99));
        // What the attack has left is gone before the next round.
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    ratios.sort_unstable_by(f64::total_cmp);
    println!("p99 beside/alone, median: {:.2}", ratios[ROUNDS / 2]);
    Ok(())
}

/// Returns a percentile in milliseconds.
fn at(times: &[Duration], percent: usize) -> f64 {
    let index = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    let time = times.get(index).copied().unwrap_or_default();
    time.as_secs_f64() * 1e3
}

/// Returns the times of all these principals' calls, sorted.
async fn measure(principals: &[Client], time: Duration) -> Result<Vec<Duration>, Failure> {
    let until = Instant::now() + time;
    let mut working = JoinSet::new();
    for (nth, client) in (0_u64..).zip(principals) {
        for one in 0..CLIENTS {
            let start = THINK.mul_f64(f64::from(u32::try_from(nth * CLIENTS + one)?) / 150.0);
            working.spawn(client.clone().work(start, until));
        }
    }
    let mut times = Vec::new();
    while let Some(done) = working.join_next().await {
        times.extend(done??);
    }
    times.sort_unstable();
    Ok(times)
}

impl Client {
    /// Starts the clients that attack until they are stopped.
    fn attackers(&self) -> JoinSet<()> {
        let mut attackers = JoinSet::new();
        for nth in 0..CLIENTS {
            let hostile = self.clone();
            attackers.spawn(async move {
                loop {
                    // Refusals and closed connections are what it is there for.
                    let _refused = hostile.attack(nth).await;
                }
            });
        }
        attackers
    }

    /// Calls in sequence until the time is over; returns the times.
    async fn work(self, start: Duration, until: Instant) -> Result<Vec<Duration>, Failure> {
        tokio::time::sleep(start).await;
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let mut times = Vec::new();
        for id in 1_u64.. {
            let start = Instant::now();
            if start >= until {
                break;
            }
            let answer = sender.send_request(self.read(id)?).await?;
            let status = answer.status();
            let body = answer.into_body().collect().await?.to_bytes();
            times.push(start.elapsed());
            let has_failed = body.windows(14).any(|w| w == b"\"isError\":true");
            if status != StatusCode::OK || has_failed {
                return Err(format!("{status}: {}", String::from_utf8_lossy(&body)).into());
            }
            tokio::time::sleep(THINK).await;
        }
        Ok(times)
    }

    fn read(&self, id: u64) -> Result<Request<Full<Bytes>>, Failure> {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"read_file","arguments":{{"path":"hello.txt"}},{META}}}}}"#
        );
        let request = Request::builder()
            .method("POST")
            .uri("/mcp")
            .header("host", &self.address)
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "read_file");
        Ok(request.body(Full::new(body.into()))?)
    }

    /// Returns a whole request of the stateless era; `named` are further headers.
    fn request(&self, method: &str, params: &str, named: &str) -> String {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}{META}}}}}"#
        );
        let headers =
            format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n{named}");
        self.post(&headers, body.len()) + &body
    }

    fn post(&self, headers: &str, length: usize) -> String {
        format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n{headers}content-length: {length}\r\n\r\n",
            self.address, self.token
        )
    }

    /// Attacks once, in the way of this client.
    async fn attack(&self, nth: u64) -> Result<(), Failure> {
        let mut stream = TcpStream::connect(&self.address).await?;
        match nth % 5 {
            0 => {
                let list = self.request("tools/list", "", "");
                stream.write_all(list.repeat(100).as_bytes()).await?;
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
            1 => {
                let listen = r#""notifications":{"toolsListChanged":true},"#;
                let listen = self.request("subscriptions/listen", listen, "");
                let mut held = Vec::new();
                for _ in 0..40 {
                    let mut stream = TcpStream::connect(&self.address).await?;
                    stream.write_all(listen.as_bytes()).await?;
                    held.push(stream);
                }
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
            2 => {
                let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#;
                let hello = self.post("", body.len()) + body;
                stream.write_all(hello.repeat(50).as_bytes()).await?;
                drain(stream, 50).await?;
            }
            3 => {
                stream.write_all(self.post("", 4 << 20).as_bytes()).await?;
                stream.write_all(&vec![b' '; 3 << 20]).await?;
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
            _ => {
                let read = r#""name":"read_file","arguments":{"path":"hello.txt"},"#;
                let read = self.request("tools/call", read, "mcp-name: read_file\r\n");
                stream.write_all(read.repeat(20).as_bytes()).await?;
                drain(stream, 20).await?;
            }
        }
        Ok(())
    }
}

/// Reads that many answers.
async fn drain(mut stream: TcpStream, answers: usize) -> Result<(), Failure> {
    let (mut buffer, mut begun) = (vec![0; 64 << 10], 0);
    while begun < answers {
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            break;
        }
        let lines = buffer[..length].windows(9);
        begun += lines.filter(|text| *text == b"HTTP/1.1 ").count();
    }
    Ok(())
}
