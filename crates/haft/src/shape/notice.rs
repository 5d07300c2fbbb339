//! The sentences that say what was left out and how to read it.

/// What became of the whole of something that is shown in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Whole {
    /// Kept under this ref.
    Kept(String),
    /// Not kept: the tool or the host wants it cut.
    Cut,
    /// It should have been kept and could not be.
    Lost(String),
}

/// Longest reason why something could not be kept.
const MAX_REASON: usize = 160;

/// The call that reads an artifact on from a byte.
pub(super) fn read(reference: &str, offset: usize) -> String {
    if offset == 0 {
        return format!(r#"read_artifact {{"ref":"{reference}"}}"#);
    }
    format!(r#"read_artifact {{"ref":"{reference}","offset":{offset}}}"#)
}

impl Whole {
    fn rest(&self, offset: usize) -> String {
        match self {
            Self::Kept(reference) => {
                format!("left out, read the rest with {}", read(reference, offset))
            }
            Self::Cut => "cut".to_owned(),
            Self::Lost(reason) => {
                let end = reason.floor_char_boundary(MAX_REASON);
                let reason = reason.get(..end).unwrap_or_default();
                format!("cut and not kept ({reason})")
            }
        }
    }
}

/// Stands between the head and the tail of a text of which not all was kept.
pub(super) fn of_cut(total: u64, kept: u64, offset: usize, whole: &Whole) -> String {
    match whole {
        Whole::Kept(reference) => {
            let read = read(reference, offset);
            format!(
                "\n… cut: of {total} bytes the first {kept} are kept, read them with {read} …\n"
            )
        }
        Whole::Cut | Whole::Lost(_) => of_text(total, 0, offset, whole),
    }
}

/// Stands between the head and the tail of a text, `offset` being where the head ends.
pub(super) fn of_text(bytes: u64, lines: usize, offset: usize, whole: &Whole) -> String {
    let rest = whole.rest(offset);
    if lines > 1 {
        return format!("\n… {bytes} bytes in {lines} lines {rest} …\n");
    }
    format!("\n… {bytes} bytes {rest} …\n")
}

/// Goes with data of which a preview is shown.
pub(super) fn of_data(bytes: usize, whole: &Whole) -> String {
    match whole {
        Whole::Kept(reference) => {
            let read = read(reference, 0);
            format!("The data is a preview of {bytes} bytes, read the whole with {read}.")
        }
        Whole::Cut | Whole::Lost(_) => {
            format!(
                "The data is a preview of {bytes} bytes, the rest was {}.",
                whole.rest(0)
            )
        }
    }
}
