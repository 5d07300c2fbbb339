//! Notices that tell what was left out and how to read it.

/// What happened to the whole of something that is shown in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FullCopy {
    /// It is stored under this ref.
    Kept(String),
    /// It is not stored: the tool or the host wants it cut.
    Cut,
    /// It should have been stored, but that failed.
    Lost(String),
}

/// Maximum length, in bytes, of the reason for a failure to store.
const MAX_REASON: usize = 160;

/// Returns the call that reads an artifact from a byte offset.
pub(super) fn read(reference: &str, offset: usize) -> String {
    if offset == 0 {
        return format!(r#"read_artifact {{"ref":"{reference}"}}"#);
    }
    format!(r#"read_artifact {{"ref":"{reference}","offset":{offset}}}"#)
}

impl FullCopy {
    fn rest(&self, offset: usize) -> String {
        match self {
            Self::Kept(reference) => {
                format!("left out, read the rest with {}", read(reference, offset))
            }
            Self::Cut => "cut".to_owned(),
            Self::Lost(reason) => {
                let end = reason.floor_char_boundary(MAX_REASON);
                let reason = reason.get(..end).unwrap_or_default();
                format!("cut and not stored ({reason})")
            }
        }
    }
}

/// Returns the notice between the head and the tail of a text that was not kept whole.
pub(super) fn of_cut(total: u64, kept: u64, offset: usize, whole: &FullCopy) -> String {
    match whole {
        FullCopy::Kept(reference) => {
            let read = read(reference, offset);
            format!(
                "\n… cut: the first {kept} of {total} bytes are stored, read them with {read} …\n"
            )
        }
        FullCopy::Cut | FullCopy::Lost(_) => of_text(total, 0, offset, whole),
    }
}

/// Returns the notice between the head and the tail of a text; `offset` is where the head ends.
pub(super) fn of_text(bytes: u64, lines: usize, offset: usize, whole: &FullCopy) -> String {
    let rest = whole.rest(offset);
    if lines > 1 {
        return format!("\n… {bytes} bytes in {lines} lines {rest} …\n");
    }
    format!("\n… {bytes} bytes {rest} …\n")
}

/// Returns the notice for data that is shown as a preview.
pub(super) fn of_data(bytes: usize, whole: &FullCopy) -> String {
    match whole {
        FullCopy::Kept(reference) => {
            let read = read(reference, 0);
            format!("The data is a preview of {bytes} bytes, read the whole with {read}.")
        }
        FullCopy::Cut | FullCopy::Lost(_) => {
            format!(
                "The data is a preview of {bytes} bytes, the rest was {}.",
                whole.rest(0)
            )
        }
    }
}
