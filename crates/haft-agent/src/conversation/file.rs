//! `FileConversation`: a conversation as lines of JSON in an append-only file; a line torn by a crash is dropped.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft::future::{BoxFuture, run_blocking};
use parking_lot::Mutex;

use crate::conversation::{Conversation, ConversationEntry, line};

/// Maximum size of a file that is read: 1 GiB.
const MAX_FILE: u64 = 1 << 30;

/// Stores entries in a file, one per line. Only one process at a time may append: the lock of its run's folder ensures that.
#[derive(Debug, Clone)]
pub struct FileConversation {
    path: PathBuf,
    file: Arc<Mutex<AppendFile>>,
}

#[derive(Debug)]
struct AppendFile {
    file: File,
    /// Bytes of complete lines.
    len: u64,
    /// Whether anything was appended since the last sync.
    dirty: bool,
}

impl FileConversation {
    /// Opens a file, or creates it with access for its owner only. Cuts off an incomplete last line that a crash left.
    ///
    /// # Errors
    /// If the file cannot be opened, read or cut.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        let mut file = options.open(&path)?;
        let len = whole_lines(&read(&mut file, &path)?);
        file.set_len(len)?;
        let open = AppendFile {
            file,
            len,
            dirty: false,
        };
        Ok(Self {
            path,
            file: Arc::new(Mutex::new(open)),
        })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn read(file: &mut File, path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        let message = format!("{} is over {MAX_FILE} bytes", path.display());
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Returns the length up to the end of the last complete line: one that is terminated and can be read.
fn whole_lines(bytes: &[u8]) -> u64 {
    let end = bytes
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    let before = &bytes[..end.saturating_sub(1)];
    let start = before
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    let last = &bytes[start..end];
    let whole = if last.is_empty() || line::read(last.trim_ascii()).is_ok() {
        end
    } else {
        start
    };
    whole as u64
}

impl Conversation for FileConversation {
    fn entries(&self) -> BoxFuture<'_, io::Result<Vec<ConversationEntry>>> {
        let path = self.path.clone();
        let read = run_blocking(move || {
            let bytes = read(&mut File::open(&path)?, &path)?;
            let lines = bytes.split(|b| *b == b'\n').enumerate();
            let lines = lines.filter(|(_, text)| !text.trim_ascii().is_empty());
            let entries = lines.map(|(number, text)| {
                line::read(text).map_err(|error| {
                    let place = format!("{}:{}: {error}", path.display(), number + 1);
                    io::Error::new(io::ErrorKind::InvalidData, place)
                })
            });
            entries.collect::<io::Result<Vec<ConversationEntry>>>()
        });
        Box::pin(async move { read.await? })
    }

    fn append(&self, entry: &ConversationEntry) -> io::Result<()> {
        let text = line::write(entry)?;
        let mut open = self.file.lock();
        if let Err(error) = open.file.write_all(&text) {
            // A partial line would be joined with the next one.
            let len = open.len;
            let _ = open.file.set_len(len);
            return Err(error);
        }
        open.len += text.len() as u64;
        open.dirty = true;
        Ok(())
    }

    fn sync(&self) -> BoxFuture<'_, io::Result<()>> {
        let file = Arc::clone(&self.file);
        Box::pin(async move {
            let synced = run_blocking(move || {
                let mut open = file.lock();
                if std::mem::take(&mut open.dirty) {
                    open.file.sync_data()?;
                }
                Ok(())
            });
            synced.await?
        })
    }
}

#[cfg(test)]
mod tests {
    use haft_wire::ContentPart;

    use super::*;

    fn user(text: &str) -> ConversationEntry {
        ConversationEntry::User(vec![ContentPart::Text(text.to_owned())])
    }

    #[tokio::test]
    async fn a_torn_last_line_is_dropped_and_a_damaged_one_before_it_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("conversation.jsonl");
        let first = FileConversation::open(&path).unwrap();
        first.append(&user("a")).unwrap();
        first.append(&user("b")).unwrap();
        first.sync().await.unwrap();
        let whole = std::fs::read(&path).unwrap();
        for (tail, entries) in [
            (&b""[..], 2),
            (b"{\"v\":1,\"us", 2),
            (b"{\"v\":1,\"us\n", 2),
            (b"\xff\xfe\n", 2),
            (b"\n", 2),
        ] {
            std::fs::write(&path, [&whole[..], tail].concat()).unwrap();
            let again = FileConversation::open(&path).unwrap();
            assert_eq!(again.entries().await.unwrap().len(), entries, "{tail:?}");
            again.append(&user("c")).unwrap();
            assert_eq!(
                again.entries().await.unwrap().len(),
                entries + 1,
                "{tail:?}"
            );
        }
        std::fs::write(&path, [&b"{}\n"[..], &whole].concat()).unwrap();
        let damaged = FileConversation::open(&path).unwrap().entries().await;
        let error = damaged.unwrap_err().to_string();
        assert!(error.contains("conversation.jsonl:1: "), "{error}");
    }
}
