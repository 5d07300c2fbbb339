//! Measures what one hostile principal does to the others: `taskset --cpu-list 1 fairness HAFT SECONDS`.
//!
//! `HAFT` serves on processor 0, with four principals. Three of them have 50 clients each, each with a connection of its own, that
//! call `read_file` about five times a second. Their times are measured alone, then while 50 clients of the fourth pipeline requests
//! without reading the answers, open streams and sessions, hold bodies and call as fast as they can. The others' calls must all
//! succeed. The attackers are a process of their own (`fairness attack ADDRESS TOKEN`) that gets what the measured clients leave of
//! processor 1, so what is measured is the server and not who shares a processor with it.
#![expect(clippy::print_stdout, reason = "its output is the result")]
#![expect(
    clippy::disallowed_methods,
    reason = "it starts haft as its user would"
)]

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
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
    match &words[..] {
        [attack, address, token] if attack == "attack" => {
            let hostile = Client {
                address: address.clone(),
                token: token.clone(),
            };
            hostile.attackers().join_all().await;
            Ok(())
        }
        [haft, seconds] => compare(haft, Duration::from_secs_f64(seconds.parse()?)).await,
        _ => Err("fairness HAFT SECONDS".into()),
    }
}

/// Measures in turns, alone and beside the attack.
async fn compare(haft: &str, time: Duration) -> Result<(), Failure> {
    let home = Home::new(haft)?;
    let mut tokens = Vec::new();
    for name in ["eve", "ann", "bob", "cid"] {
        tokens.push(home.token(name).await?);
    }
    let (_serving, address) = home.serve().await?;
    let mut others = tokens.into_iter().map(|token| Client {
        address: address.clone(),
        token,
    });
    let hostile = others.next().ok_or("no principals")?;
    let others: Vec<Client> = others.collect();
    // The first round opens the runs and fills the caches.
    measure(&others, Duration::from_secs(2)).await?;
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let alone = measure(&others, time).await?;
        let attack = hostile.attack_process()?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let beside = measure(&others, time).await?;
        drop(attack);
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

/// haft, and a folder that is its home; the workspace is in it.
struct Home {
    haft: PathBuf,
    folder: tempfile::TempDir,
}

impl Home {
    fn new(haft: &str) -> Result<Self, Failure> {
        let haft = std::path::absolute(haft)?;
        let folder = tempfile::tempdir()?;
        std::fs::create_dir(folder.path().join("work"))?;
        std::fs::write(folder.path().join("work/hello.txt"), "hello there\n")?;
        Ok(Self { haft, folder })
    }

    /// Returns the token of a new principal.
    async fn token(&self, name: &str) -> Result<String, Failure> {
        let mut add = self.command(&[]);
        let output = add.args(["token", "add", name, "--json"]).output().await?;
        let told: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        Ok(told["token"].as_str().ok_or("no token")?.to_owned())
    }

    /// Serves on processor 0; returns the server and its address.
    async fn serve(&self) -> Result<(Child, String), Failure> {
        let mut serve = self.command(&["taskset", "--cpu-list", "0"]);
        serve.args(["serve", "--http", "127.0.0.1:0", "--json"]);
        serve.args(["-c", "limits.max_calls=100000000"]);
        let mut serving = serve.stdout(Stdio::piped()).spawn()?;
        let lines = serving.stdout.take().ok_or("no output")?;
        let line = BufReader::new(lines).lines().next_line().await?;
        let told: serde_json::Value = serde_json::from_str(&line.ok_or("haft did not start")?)?;
        let address = told["address"].as_str().ok_or("no address")?.to_owned();
        Ok((serving, address))
    }

    /// Returns a command of haft behind these words, which is ended with its handle.
    fn command(&self, before: &[&str]) -> Command {
        let mut words = before.iter().map(OsStr::new).chain([self.haft.as_os_str()]);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).kill_on_drop(true);
        let folder = self.folder.path();
        command.current_dir(folder.join("work")).env("HOME", folder);
        command
    }
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
    /// Starts the attackers as a process that runs when nothing else needs its processor.
    fn attack_process(&self) -> Result<Child, Failure> {
        let mut attack = Command::new("taskset");
        attack.args([
            "--cpu-list",
            "1",
            "chrt",
            "--other",
            "0",
            "nice",
            "-n",
            "19",
        ]);
        attack
            .arg(std::env::current_exe()?)
            .args(["attack", &self.address, &self.token]);
        Ok(attack.kill_on_drop(true).spawn()?)
    }

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
