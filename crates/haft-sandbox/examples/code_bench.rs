//! Measures what a locked Python costs: from the warm pool, on demand, per call over the bridge, and in sequence.
//!
//! `cargo run --release -p haft-sandbox --example code_bench [ROUNDS [PYTHON]]`

use std::io::Write;
use std::time::{Duration, Instant};

use haft_sandbox::code::{CodeConfig, CodeJail, LibrarySet, Script};
use haft_sandbox::{Config, Sandbox};

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// Receives a number, makes that many calls, then sends `done`.
const RUNTIME: &str = "
import json, socket, traceback
BUFFER = memoryview(bytearray(1 << 16))
class Echo:
    def send(self, data): return len(data)
    def recv_into(self, buffer): buffer[:2] = b'10'; return 2
def serve(bridge):
    count = int(bytes(BUFFER[:bridge.recv_into(BUFFER)]))
    for number in range(count):
        bridge.send(json.dumps({'call': number}).encode())
        json.loads(bytes(BUFFER[:bridge.recv_into(BUFFER)]))
    bridge.send(b'done')
def warm():
    serve(Echo())
    try:
        exec(compile('1 / 0', 'warm', 'exec'), {})
    except ZeroDivisionError:
        traceback.format_exc()
def main(bridge, folder):
    serve(socket.socket(fileno=bridge))
";

fn main() -> Fallible<()> {
    haft_sandbox::enter();
    let rounds = std::env::args()
        .nth(1)
        .map_or(Ok(200), |word| word.parse())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(measure(rounds))
}

fn jail(idle: usize, force_fresh: bool) -> CodeJail {
    let config = CodeConfig {
        runtime: RUNTIME.into(),
        idle,
        force_fresh,
        python: std::env::args().nth(2).map(Into::into),
        ..CodeConfig::default()
    };
    CodeJail::new(&Sandbox::new(Config::default()), config)
}

/// Requests this many calls and answers each at once.
async fn job(script: &Script, calls: &str) -> Fallible<()> {
    script.send(calls.as_bytes()).await?;
    let mut frame = [0; 4096];
    loop {
        let length = script.recv(&mut frame).await?;
        match &frame[..length] {
            b"done" => return Ok(()),
            b"" => return Err("the script ended early".into()),
            call => script.send(call).await?,
        }
    }
}

fn say(name: &str, times: &mut [Duration]) -> Fallible<()> {
    times.sort_unstable();
    let at = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64() * 1e3;
    let mut out = std::io::stdout().lock();
    let (min, p50, p99) = (at(0), at(50), at(99));
    writeln!(
        out,
        "{name:28} min {min:8.3} ms  p50 {p50:8.3} ms  p99 {p99:8.3} ms"
    )?;
    Ok(())
}

async fn measure(rounds: usize) -> Fallible<()> {
    let started = Instant::now();
    let warm = jail(2, false);
    let probe = warm.probe().await;
    let mut out = std::io::stdout().lock();
    let version = &probe.version;
    writeln!(out, "{version}, {}, {:?}", probe.strength, probe.why_not)?;
    drop(out);
    say("first zygote ready", &mut [started.elapsed()])?;
    for (name, calls) in [
        ("warm, no call", "0"),
        ("warm, 10 calls", "10"),
        ("warm, 50 calls", "50"),
    ] {
        let mut times = Vec::new();
        for _ in 0..rounds {
            // The pool fills meanwhile.
            tokio::time::sleep(Duration::from_millis(15)).await;
            let started = Instant::now();
            let script = warm.take(LibrarySet::Plain).await?;
            job(&script, calls).await?;
            times.push(started.elapsed());
        }
        say(name, &mut times)?;
    }
    idle_memory(&warm).await?;
    sustained(&warm, rounds).await?;
    warm.shut_down().await;
    on_demand(rounds).await?;
    let fresh = jail(0, true);
    fresh.probe().await;
    let mut times = Vec::new();
    for _ in 0..rounds.min(20) {
        let started = Instant::now();
        let script = fresh.take(LibrarySet::Plain).await?;
        job(&script, "10").await?;
        times.push(started.elapsed());
    }
    say("fresh, 10 calls", &mut times)
}

/// Prints the private memory of a warmed child.
async fn idle_memory(jail: &CodeJail) -> Fallible<()> {
    let script = jail.take(LibrarySet::Plain).await?;
    let path = format!("/proc/{}/smaps_rollup", script.pid());
    let text = std::fs::read_to_string(path)?;
    let mut out = std::io::stdout().lock();
    for line in text
        .lines()
        .filter(|line| line.starts_with("Private_Dirty"))
    {
        writeln!(out, "idle child, {line}")?;
    }
    Ok(())
}

/// Runs scripts in sequence from two tasks, each with one call.
async fn sustained(jail: &CodeJail, rounds: usize) -> Fallible<()> {
    let started = Instant::now();
    let many = rounds * 5;
    let takers: Vec<_> = (0..2)
        .map(|_| {
            let jail = jail.clone();
            tokio::spawn(async move {
                for _ in 0..many {
                    let script = jail
                        .take(LibrarySet::Plain)
                        .await
                        .map_err(|error| error.to_string())?;
                    job(&script, "1").await.map_err(|error| error.to_string())?;
                }
                Ok::<_, String>(())
            })
        })
        .collect();
    for taker in takers {
        taker.await??;
    }
    let rate = many as u128 * 2_000_000 / started.elapsed().as_micros().max(1);
    writeln!(
        std::io::stdout().lock(),
        "sustained: {rate} scripts a second"
    )?;
    Ok(())
}

/// Measures starts without a pool, and costs that do not depend on it.
async fn on_demand(rounds: usize) -> Fallible<()> {
    let cold = jail(0, false);
    cold.probe().await;
    let mut times = Vec::new();
    for _ in 0..rounds {
        let started = Instant::now();
        let script = cold.take(LibrarySet::Plain).await?;
        job(&script, "10").await?;
        times.push(started.elapsed());
    }
    say("on demand, 10 calls", &mut times)?;
    if cold.probe().await.data {
        data(&cold, rounds).await?;
    }
    let script = cold.take(LibrarySet::Plain).await?;
    let started = Instant::now();
    job(&script, "20000").await?;
    say("one call of 20,000", &mut [started.elapsed() / 20_000])?;
    let mut times = Vec::new();
    for _ in 0..rounds {
        let script = cold.take(LibrarySet::Plain).await?;
        let started = Instant::now();
        script.kill();
        script.ended().await;
        times.push(started.elapsed());
    }
    say("kill to the end of its tree", &mut times)?;
    cold.shut_down().await;
    Ok(())
}

/// Measures starts with numpy and pandas imported beforehand.
async fn data(jail: &CodeJail, rounds: usize) -> Fallible<()> {
    let started = Instant::now();
    jail.take(LibrarySet::Data).await?;
    say("first data zygote ready", &mut [started.elapsed()])?;
    let mut times = Vec::new();
    for _ in 0..rounds {
        let started = Instant::now();
        let script = jail.take(LibrarySet::Data).await?;
        if !script.engine().ends_with("(zygote)") {
            return Err(script.engine().into());
        }
        job(&script, "10").await?;
        times.push(started.elapsed());
    }
    say("data on demand, 10 calls", &mut times)
}
