//! `PageReader`: what turns pages and PDF files that strangers wrote into text, in a process of its own under the jail: a
//! file can make its reader use any amount of memory and time.

use std::fmt;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::web::network::BoxFuture;

mod html;
#[cfg(feature = "commands")]
mod jailed;
#[cfg(feature = "pdf")]
mod pdf;
mod tags;
mod tree;
mod unconfined;
#[cfg(feature = "commands")]
mod worker;

#[cfg(feature = "commands")]
pub use jailed::JailedReader;
pub use unconfined::UnconfinedReader;
#[cfg(feature = "commands")]
pub use worker::{WORKER, worker};

/// Readers at work at one time; a file that takes forever holds one of them.
const AT_ONCE: usize = 4;
/// Most text of one file, in bytes.
const MAX_TEXT: usize = 8 << 20;
/// Stack of a thread that converts HTML: what walks a tree of the deepest nesting needs a part of it.
const STACK: usize = 64 << 20;

/// Why a file could not be read, as the end of a sentence.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct ReadError(String);

/// How a page is given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Its article, or its whole text, as Markdown.
    #[default]
    Markdown,
    /// The same without markup.
    Text,
    /// The same as cleaned HTML.
    Html,
    /// What the server sent.
    Raw,
}

/// What is to be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Task {
    /// A PDF file.
    Pdf,
    /// A page as UTF-8.
    Html {
        /// Its address: what relative links start from.
        url: String,
        /// What it becomes.
        format: Format,
    },
}

/// What a file became.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Read {
    /// The text, or the markup that was asked for. The pages of a PDF file are parted by form feeds.
    pub text: String,
    /// The title of a page that has one.
    pub title: Option<String>,
    /// What is missing, as the end of a sentence.
    pub cut: Option<String>,
}

impl Read {
    fn bounded(mut self) -> Self {
        if self.text.len() > MAX_TEXT {
            self.text.truncate(self.text.floor_char_boundary(MAX_TEXT));
            let why = format!("its text is over {} MiB", MAX_TEXT >> 20);
            self.cut.get_or_insert(why);
        }
        self
    }
}

/// Reads files that strangers wrote.
pub trait PageReader: Send + Sync + fmt::Debug {
    /// Reads one file.
    ///
    /// # Errors
    /// Why the file could not be read.
    fn read(&self, task: Task, file: Bytes) -> BoxFuture<'_, Result<Read, ReadError>>;
}

/// Reads a file here and now, in whatever time and memory that takes.
fn read_here(task: &Task, file: &[u8]) -> Result<Read, String> {
    let read = match task {
        #[cfg(feature = "pdf")]
        Task::Pdf => Read {
            text: pdf::text_of(file)?,
            ..Read::default()
        },
        #[cfg(not(feature = "pdf"))]
        Task::Pdf => return Err("PDF files are not read here (feature `pdf` is off)".to_owned()),
        Task::Html { url, format } => {
            let html = std::str::from_utf8(file).map_err(|e| e.to_string())?;
            html::convert(html, url, *format)
        }
    };
    Ok(read.bounded())
}
