//! `ChatArguments`: the arguments of one call, from pieces; says when their object has ended, without parsing it anew for each piece.

use serde::de::IgnoredAny;

/// The arguments received so far.
#[derive(Debug, Default)]
pub(crate) struct ChatArguments {
    /// All pieces, joined.
    text: String,
    scan: ObjectScan,
    pieces: usize,
    /// Where the last piece starts.
    last: usize,
    /// Whether each piece began with all of the piece before it: some servers send everything so far in each piece.
    grows: bool,
    /// Whether the last piece is a complete object by itself, and `grows` holds.
    is_snapshot: bool,
    /// Whether the pieces of a snapshot are JSON when they are joined, too.
    is_joined_json: bool,
}

/// The error for a second object of arguments after the first one has ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SecondObject;

impl ChatArguments {
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns whether the object of the arguments has ended. Text that is no object never ends.
    pub(crate) fn is_complete(&self) -> bool {
        self.scan.is_complete() || self.is_snapshot
    }

    /// Returns whether they came in more than one piece.
    pub(crate) fn is_split(&self) -> bool {
        self.pieces > 1
    }

    /// Returns whether they are the empty object, which some servers send at first and replace later.
    pub(crate) fn is_placeholder(&self) -> bool {
        self.text == "{}"
    }

    /// Returns whether a piece says everything again.
    pub(crate) fn is_repeated_by(&self, piece: &str) -> bool {
        self.is_complete() && piece.trim() == self.whole()
    }

    /// Adds a piece; returns whether it changed anything.
    ///
    /// # Errors
    /// If the object has ended, and the piece begins another one.
    pub(crate) fn add(&mut self, piece: &str) -> Result<bool, SecondObject> {
        if piece.is_empty() {
            return Ok(false);
        }
        if self.is_complete() {
            if piece.trim().is_empty() || self.is_repeated_by(piece) {
                return Ok(false);
            }
            if piece.trim_start().starts_with(['{', '"']) {
                if !self.is_placeholder() {
                    return Err(SecondObject);
                }
                *self = Self::default();
            }
        }
        self.append(piece);
        Ok(true)
    }

    /// Adds a piece of a freeform call, whose text has no end and no meaning here.
    pub(crate) fn add_text(&mut self, piece: &str) {
        self.text.push_str(piece);
    }

    /// Appends a piece. Blanks around the object are dropped, so that looking at its ends costs nothing, however many pieces follow.
    fn append(&mut self, piece: &str) {
        let piece = if self.text.is_empty() {
            piece.trim_start()
        } else {
            piece
        };
        if piece.is_empty() {
            return;
        }
        let before = &self.text[self.last..];
        self.grows = match self.pieces {
            0 => piece.starts_with('{'),
            _ => self.grows && piece.len() > before.len() && piece.starts_with(before),
        };
        self.is_snapshot = self.grows && self.pieces > 0 && {
            let mut alone = ObjectScan::default();
            alone.read(piece);
            alone.is_complete()
        };
        self.pieces += 1;
        self.last = self.text.len();
        self.text.push_str(piece);
        self.scan.read(piece);
        if self.is_complete() {
            self.text.truncate(self.text.trim_end().len());
        }
        // A snapshot ends the growth: this happens once.
        self.is_joined_json =
            self.is_snapshot && serde_json::from_str::<IgnoredAny>(&self.text).is_ok();
    }

    /// Returns the arguments as text.
    pub(crate) fn whole(&self) -> &str {
        if self.is_snapshot && !self.is_joined_json {
            return &self.text[self.last..];
        }
        &self.text
    }
}

/// Finds the end of an object, or of a string with one in it, by its brackets and strings.
#[derive(Debug, Default)]
struct ObjectScan {
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
    state: ScanState,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum ScanState {
    #[default]
    Before,
    Inside,
    Complete,
    /// It does not begin as an object.
    Other,
}

impl ObjectScan {
    fn is_complete(&self) -> bool {
        self.state == ScanState::Complete
    }

    fn read(&mut self, piece: &str) {
        for byte in piece.bytes() {
            match self.state {
                ScanState::Before if byte.is_ascii_whitespace() => {}
                // Some servers send the object as a string with JSON in it.
                ScanState::Before if matches!(byte, b'{' | b'"') => {
                    self.state = ScanState::Inside;
                    self.is_in_string = byte == b'"';
                    self.depth = usize::from(byte == b'{');
                }
                ScanState::Before => self.state = ScanState::Other,
                ScanState::Inside => self.inside(byte),
                ScanState::Complete | ScanState::Other => return,
            }
        }
    }

    fn inside(&mut self, byte: u8) {
        if self.is_in_string {
            if !std::mem::take(&mut self.is_escaped) {
                self.is_escaped = byte == b'\\';
                self.is_in_string = byte != b'"';
                if !self.is_in_string && self.depth == 0 {
                    self.state = ScanState::Complete;
                }
            }
            return;
        }
        match byte {
            b'"' => self.is_in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth -= 1;
                if self.depth == 0 {
                    self.state = ScanState::Complete;
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_arguments_come_together_as_their_server_meant_them() {
        type Row<'a> = (&'a [&'a str], Option<&'a str>, bool);
        let rows: [Row<'_>; 19] = [
            (&["{\"a\"", ":1}"], Some("{\"a\":1}"), true),
            (
                &["{\"a\":\"}\\\"", "}\"}"],
                Some("{\"a\":\"}\\\"}\"}"),
                true,
            ),
            (&["{\"a\":[1", "]"], Some("{\"a\":[1]"), false),
            (&[" ", "{", "}", "\n"], Some("{}"), true),
            (&["{}", "{\"a\"", ":1}"], Some("{\"a\":1}"), true),
            (&["{}", "{}"], Some("{}"), true),
            (&["{\"a\":1}", "{\"a\":1}"], Some("{\"a\":1}"), true),
            (&["{\"a\"", ":1}", "{\"a\":1}"], Some("{\"a\":1}"), true),
            (
                &["{\"a\"", "{\"a\":1", "{\"a\":1}"],
                Some("{\"a\":1}"),
                true,
            ),
            (&["{", "{\"a\":1}", "{\"a\":1}"], Some("{\"a\":1}"), true),
            (&["{", "{\"a\":1}", "}"], Some("{{\"a\":1}}"), true),
            // Valid only when joined: a member whose name begins like an object.
            (&["{\"", "{\":1}"], Some("{\"{\":1}"), true),
            (&["{\"a\":1}", "}"], Some("{\"a\":1}}"), true),
            (&["{\"a\":1}", "{\"a\":2}"], None, true),
            (&["{\"a\":1}", " {\"b\""], None, true),
            (&["\"{\\\"a\\\"", ":1}\""], Some("\"{\\\"a\\\":1}\""), true),
            (&["\"{}\"", "\"{}"], None, true),
            (&["[1]", "[1]"], Some("[1][1]"), false),
            (&["1", "2"], Some("12"), false),
        ];
        for (pieces, expect, is_complete) in rows {
            let mut arguments = ChatArguments::default();
            let added = pieces
                .iter()
                .try_for_each(|one| arguments.add(one).map(drop));
            assert_eq!(added.is_ok(), expect.is_some(), "{pieces:?}");
            assert_eq!(arguments.is_complete(), is_complete, "{pieces:?}");
            if let Some(expect) = expect {
                assert_eq!(arguments.whole(), expect, "{pieces:?}");
            }
        }
    }
}
