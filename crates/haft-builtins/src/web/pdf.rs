//! The text of PDF files, extracted in a process of its own under the jail: a file can make its reader use any amount
//! of memory.

use std::fmt;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;
use haft_sandbox::{CommandSpec, Limits, Mounts, Sandbox};
use lopdf::Document;
use thiserror::Error;

use crate::web::network::BoxFuture;

/// The word that makes a program a reader of PDF files: its first argument.
pub const WORKER: &str = "__pdf-text";

/// Memory of a reader, in MiB.
const MEMORY_MB: u64 = 512;
/// How long one file may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Most text of one file, in bytes.
const MAX_TEXT: usize = 4 * 1024 * 1024;
/// Most pages that are read.
const MAX_PAGES: usize = 2_000;
/// Most bytes of one page's content, unpacked.
const MAX_PAGE: usize = 16 * 1024 * 1024;

/// Why there is no text.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct PdfError(String);

/// Extracts the text of PDF files.
pub trait PdfText: Send + Sync + fmt::Debug {
    /// The text of a file, its pages parted by form feeds.
    fn extract(&self, file: Bytes) -> BoxFuture<'_, Result<String, PdfError>>;
}

/// Runs a program, whose `main` calls `worker` when its first argument is `WORKER`, in the jail.
#[derive(Debug, Clone)]
pub struct JailedPdf {
    sandbox: Sandbox,
    program: PathBuf,
}

impl JailedPdf {
    /// In this sandbox, by this program: an absolute path.
    pub fn new(sandbox: Sandbox, program: PathBuf) -> Self {
        Self { sandbox, program }
    }

    async fn run(&self, file: Bytes) -> Result<String, PdfError> {
        let told = |why: &dyn fmt::Display| PdfError(why.to_string());
        let mounts = Mounts {
            read_only: vec![self.program.clone()],
            ..Mounts::default()
        };
        let argv = [self.program.as_os_str(), WORKER.as_ref()];
        let mut spec = CommandSpec::argv(argv, "/tmp")
            .with_mounts(mounts)
            .with_timeout(PATIENCE)
            .with_stdin(file);
        spec.limits = Limits {
            memory_mb: Some(MEMORY_MB),
            pids: Some(16),
            file_mb: Some(1),
            cpu_s: Some(PATIENCE.as_secs()),
            tmp_mb: 1,
            ..Limits::default()
        };
        spec.log_cap = MAX_TEXT;
        let running = self
            .sandbox
            .start_jailed(spec)
            .await
            .map_err(|e| told(&e))?;
        let exit = running.wait().await;
        if exit.success() {
            return Ok(running.stdout().text(0, MAX_TEXT).text);
        }
        let said = running.stderr().text(0, 300).text;
        let why = said.lines().last().unwrap_or_default().trim();
        Err(PdfError(if why.is_empty() {
            "its reader ended at a limit".to_owned()
        } else {
            why.to_owned()
        }))
    }
}

impl PdfText for JailedPdf {
    fn extract(&self, file: Bytes) -> BoxFuture<'_, Result<String, PdfError>> {
        Box::pin(self.run(file))
    }
}

/// The reader's `main`: a file on standard input, its text on standard output. Call it in a confined process alone.
pub fn worker() -> ExitCode {
    let mut file = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut file);
    let text = match read {
        Ok(_) => text_of(&file),
        Err(error) => Err(error.to_string()),
    };
    let told = match &text {
        Ok(text) => std::io::stdout().lock().write_all(text.as_bytes()),
        Err(why) => std::io::stderr().lock().write_all(why.as_bytes()),
    };
    if text.is_ok() && told.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn text_of(file: &[u8]) -> Result<String, String> {
    let document = Document::load_mem(file).map_err(|e| e.to_string())?;
    if document.is_encrypted() {
        return Err("it is encrypted".to_owned());
    }
    let mut out = String::new();
    for number in document.get_pages().into_keys().take(MAX_PAGES) {
        // A page that cannot be read is left out; the others are not.
        if let Ok(text) = document.extract_text_with_limit(&[number], MAX_PAGE) {
            if !out.is_empty() {
                out.push('\u{c}');
            }
            out.push_str(&text);
        }
        if out.len() > MAX_TEXT {
            out.truncate(out.floor_char_boundary(MAX_TEXT));
            break;
        }
    }
    Ok(out)
}
