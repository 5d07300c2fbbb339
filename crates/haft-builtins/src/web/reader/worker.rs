//! The worker process of a jailed reader: a task and a file on standard input, the text on standard output.

use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{ReadPage, ReadTask, STACK_BYTES, read_here};

/// The first argument that makes a program a reader of files.
pub const WORKER: &str = "__read-page";

/// Maximum size of an answer's header, in bytes. A title has at most 300 characters.
pub(super) const HEADER: usize = 16 << 10;

/// The first line of an answer.
#[derive(Debug, Default, Serialize, Deserialize)]
struct WorkerHeader {
    title: Option<String>,
    cut: Option<String>,
}

/// Encodes the standard input of a worker.
pub(super) fn encode_task(task: &ReadTask, file: &[u8]) -> Bytes {
    let mut input = serde_json::to_vec(task).unwrap_or_default();
    input.push(b'\n');
    input.extend_from_slice(file);
    input.into()
}

/// Decodes the standard output of a worker. Returns `None` if it is not an answer.
pub(super) fn decode_answer(answer: &str) -> Option<ReadPage> {
    let (header, text) = answer.split_once('\n')?;
    let WorkerHeader { title, cut } = serde_json::from_str(header).ok()?;
    Some(ReadPage {
        text: text.to_owned(),
        title,
        cut,
    })
}

/// The reader's `main`. Call it only in a confined process.
pub fn worker() -> ExitCode {
    let mut input = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut input);
    let read = read.map_err(|e| e.to_string()).and_then(|_| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let started = thread.spawn(move || work(&input));
        let ended = started.map_err(|e| e.to_string())?.join();
        ended.unwrap_or_else(|_| Err("its reader failed".to_owned()))
    });
    let written = match &read {
        Ok(answer) => io::stdout().lock().write_all(answer),
        Err(why) => io::stderr().lock().write_all(why.as_bytes()),
    };
    if read.is_ok() && written.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn work(input: &[u8]) -> Result<Vec<u8>, String> {
    let end = memchr::memchr(b'\n', input).ok_or("it was given no task")?;
    let (task, file) = (&input[..end], &input[end + 1..]);
    let task: ReadTask = serde_json::from_slice(task).map_err(|e| e.to_string())?;
    let ReadPage { text, title, cut } = read_here(&task, file)?;
    let mut answer = serde_json::to_vec(&WorkerHeader { title, cut }).map_err(|e| e.to_string())?;
    answer.push(b'\n');
    answer.extend_from_slice(text.as_bytes());
    Ok(answer)
}
