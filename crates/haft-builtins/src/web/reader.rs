//! `PageReader`: converts untrusted pages and PDF files to text, in a separate process in the jail, because a file can make its
//! reader use any amount of memory and time.

use std::fmt;

use bytes::Bytes;
use haft::bounds::ShareKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::web::network::BoxFuture;

mod html;
#[cfg(feature = "commands")]
mod jailed;
#[cfg(feature = "pdf")]
mod pdf;
mod slots;
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

/// Maximum size of a file's text, in bytes.
const MAX_TEXT: usize = 8 << 20;
/// Stack size of a thread that converts HTML. Walking the deepest tree needs part of it.
const STACK_BYTES: usize = 64 << 20;

/// The reason why a file could not be read, as the end of a sentence.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct ReadError(String);

/// How a page is given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PageFormat {
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

/// A file to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ReadTask {
    /// A PDF file.
    Pdf,
    /// A page in UTF-8.
    Html {
        /// The address of the page, which relative links start from.
        url: String,
        /// The format to convert to.
        format: PageFormat,
    },
    /// A picture, to be made smaller: the text is a PNG file in base64.
    Picture,
}

/// A file that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadPage {
    /// The text, or the requested markup. Form feeds separate the pages of a PDF file.
    pub text: String,
    /// The title of the page, if it has one.
    pub title: Option<String>,
    /// What is missing, as the end of a sentence.
    pub cut: Option<String>,
}

impl ReadPage {
    fn bounded(mut self) -> Self {
        if self.text.len() > MAX_TEXT {
            self.text.truncate(self.text.floor_char_boundary(MAX_TEXT));
            let why = format!("its text is over {} MiB", MAX_TEXT >> 20);
            self.cut.get_or_insert(why);
        }
        self
    }
}

/// Reads untrusted files.
pub trait PageReader: Send + Sync + fmt::Debug {
    /// Reads one file for this caller, who waits only for its own principal's other files.
    ///
    /// # Errors
    /// The reason why the file could not be read.
    fn read(
        &self,
        task: ReadTask,
        file: Bytes,
        who: ShareKey,
    ) -> BoxFuture<'_, Result<ReadPage, ReadError>>;
}

/// Reads a file on this thread, without limits on time and memory.
fn read_here(task: &ReadTask, file: &[u8]) -> Result<ReadPage, String> {
    let read = match task {
        #[cfg(feature = "pdf")]
        ReadTask::Pdf => ReadPage {
            text: pdf::text_of(file)?,
            ..ReadPage::default()
        },
        #[cfg(not(feature = "pdf"))]
        ReadTask::Pdf => {
            return Err("PDF files are not read here (feature `pdf` is off)".to_owned());
        }
        #[cfg(feature = "images")]
        ReadTask::Picture => ReadPage {
            text: crate::picture::fit::thumbnail(file)?,
            ..ReadPage::default()
        },
        #[cfg(not(feature = "images"))]
        ReadTask::Picture => {
            return Err("pictures are not read here (feature `images` is off)".to_owned());
        }
        ReadTask::Html { url, format } => {
            let html = std::str::from_utf8(file).map_err(|e| e.to_string())?;
            html::convert(html, url, *format)
        }
    };
    Ok(read.bounded())
}
