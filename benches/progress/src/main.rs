//! 100 MB of a command's output: read raw, through the coalescing channel, and through it as JSON; megabytes per second that
//! reach the reader. Output that is dropped because the reader is too slow does not count.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use haft::progress::hub::{Hub, Listener};
use haft::progress::{Pace, Progress, ProgressStream};
use haft::testing::TestTool;
use haft::toolset::registry::ToolRegistry;
use haft::{Executor, Policy, Session, ToolCall, ToolResult};
use measure::{Row, Step, fact, interleave, wall_ms};
use tokio::runtime::{Builder, Runtime};

/// Bytes of output.
const BYTES: usize = 100_000_000;
/// Number of bytes read from the pipe at once: its capacity.
const CHUNK: usize = 64 << 10;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("output");
    fill(&file);
    let workers = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let here = Here {
        runtime: workers.expect("a runtime"),
        file: file.display().to_string(),
    };
    fact("bytes of output", BYTES);
    let here = &here;
    let steps: Vec<Step<'_>> = vec![
        (Row::new("raw/read", "MB/s"), Box::new(move || here.raw())),
        (
            Row::new("haft/channel", "MB/s"),
            Box::new(move || here.channel(false)),
        ),
        (
            Row::new("haft/channel and JSON", "MB/s"),
            Box::new(move || here.channel(true)),
        ),
    ];
    let rows = interleave(measure::rounds(9), steps);
    let median = |nth: usize| {
        let mut rounds = rows[nth].rounds.clone();
        rounds.sort_by(f64::total_cmp);
        rounds[rounds.len() / 2]
    };
    if rows.len() == 3 {
        fact(
            "channel beside raw",
            format!("{:.2}", median(1) / median(0)),
        );
        fact(
            "channel and JSON beside raw",
            format!("{:.2}", median(2) / median(0)),
        );
    }
}

struct Here {
    runtime: Runtime,
    file: String,
}

impl Here {
    fn raw(&self) -> f64 {
        let (ms, read) = wall_ms(|| {
            let mut all = 0;
            pieces(&self.file, |piece| all += piece.len());
            all
        });
        assert_eq!(read, BYTES);
        BYTES as f64 / 1e3 / ms
    }

    /// Measures the same pipe, read by a tool that shows it to one reader of the run.
    fn channel(&self, json: bool) -> f64 {
        let hub = Hub::new(Pace::default());
        let listener = hub.listen(None);
        let file = self.file.clone();
        let tool = TestTool::with_body(TestTool::echo("shows"), move |_, context| {
            let (progress, file) = (context.progress(), file.clone());
            Box::pin(async move {
                let shown = tokio::task::spawn_blocking(move || show(&file, &progress));
                shown.await.expect("a thread");
                Ok(ToolResult::text("done"))
            })
        });
        let registry = ToolRegistry::new();
        registry.add_all([tool.arc()]).expect("a tool");
        let session = Session::new(Arc::new(registry)).watched_by(hub);
        let (ms, heard) = wall_ms(|| {
            self.runtime.block_on(async {
                let reading = tokio::spawn(hear(listener, json));
                let executor = Executor::new(Policy::trusted());
                let outcome = executor
                    .execute(&session, ToolCall::new("shows", "{}"))
                    .await;
                assert!(outcome.is_ok(), "{outcome:?}");
                reading.await.expect("a reader")
            })
        });
        assert!(heard <= BYTES, "the reader heard something twice");
        if heard < BYTES {
            fact("bytes left out of a round", BYTES - heard);
        }
        heard as f64 / 1e3 / ms
    }
}

/// Runs the command and passes its output on as it arrives.
fn pieces(file: &str, mut take: impl FnMut(&[u8])) {
    let mut command = Command::new("cat");
    let mut child = command
        .arg(file)
        .stdout(Stdio::piped())
        .spawn()
        .expect("cat");
    let mut pipe = child.stdout.take().expect("a pipe");
    let mut buffer = vec![0; CHUNK];
    loop {
        match pipe.read(&mut buffer).expect("a read") {
            0 => break,
            n => take(&buffer[..n]),
        }
    }
    child.wait().expect("its end");
}

/// Shows the command's output; a character that is split over two pieces waits for its rest.
fn show(file: &str, progress: &Progress) {
    let mut rest: Vec<u8> = Vec::new();
    pieces(file, |piece| {
        let mut bytes = Vec::with_capacity(rest.len() + piece.len());
        bytes.append(&mut rest);
        bytes.extend_from_slice(piece);
        let text = String::from_utf8(bytes).unwrap_or_else(|error| {
            let whole = error.utf8_error().valid_up_to();
            let mut bytes = error.into_bytes();
            rest = bytes.split_off(whole);
            String::from_utf8(bytes).expect("text")
        });
        progress.send(ProgressStream::Stdout, text);
    });
    assert!(rest.is_empty(), "half a character is left");
}

/// Returns the bytes of output that a reader receives.
async fn hear(mut listener: Listener, json: bool) -> usize {
    let (mut heard, mut line) = (0, Vec::new());
    loop {
        let event = listener.next().await;
        if json {
            line.clear();
            event.write_json(&mut line);
            assert!(line.len() > event.text.len());
        }
        if event.stream == ProgressStream::Stdout {
            heard += event.text.len();
            if event.closed {
                return heard;
            }
        }
    }
}

/// Writes lines like those of a build.
fn fill(path: &Path) {
    let mut file = File::create(path).expect("a file");
    let line =
        "   Compiling something v0.1.0 (registry+https://example.com/index) [release] in 0.42s\n";
    // As in most output, few characters are not ASCII.
    let block = format!("{}   größe → 7\n", line.repeat(50));
    let mut text = block.repeat(BYTES / block.len());
    text.push_str(&"x".repeat(BYTES - text.len()));
    file.write_all(text.as_bytes()).expect("a write");
}
