//! Server-sent events, read according to the HTML standard (9.2.6), each of limited size. `haft-mcp` reads the
//! streams of servers with it, too.

use std::time::Duration;

use memchr::{memchr, memchr2};

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// Its data, lines joined by line feeds.
    pub data: Vec<u8>,
    /// Its kind; empty if it names none, which means `message`.
    pub kind: String,
}

/// The error for an event that exceeds the limit.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is over the limit")]
pub struct TooLong;

/// Reads events from pieces of a stream.
#[derive(Debug, Default)]
pub struct SseParser {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    kind: String,
    /// The last event's id, from which to resume.
    pub last_id: Option<String>,
    /// How long to wait before resuming, if the server says so.
    pub retry: Option<Duration>,
    longest: usize,
    /// Whether the last piece ended in a carriage return: a line feed after it belongs to the same line end.
    after_return: bool,
    begun: bool,
}

/// Maximum length of an id that is kept.
const LONGEST_ID: usize = 1024;
/// The longest wait that a server may request.
const LONGEST_RETRY: Duration = Duration::from_secs(30);

impl SseParser {
    /// Creates a reader for events of at most `longest` bytes.
    pub fn new(longest: usize) -> Self {
        Self {
            longest,
            ..Self::default()
        }
    }

    /// Returns a reader for the stream that follows: it drops partial data, but keeps the position from which to resume.
    pub fn resumed(self) -> Self {
        Self {
            last_id: self.last_id,
            retry: self.retry,
            ..Self::new(self.longest)
        }
    }

    /// Takes a piece; returns the events that it completes.
    ///
    /// # Errors
    /// If an event exceeds the limit.
    pub fn push(&mut self, piece: &[u8]) -> Result<Vec<SseEvent>, TooLong> {
        let mut events = Vec::new();
        self.each(piece, |data, kind| {
            events.push(SseEvent {
                data: data.to_vec(),
                kind: kind.to_owned(),
            });
            Ok::<(), TooLong>(())
        })?;
        Ok(events)
    }

    /// Takes a piece and passes on data and kind of each event that it completes, without copying if the data is a single line that is
    /// complete in the piece.
    ///
    /// # Errors
    /// If an event exceeds the limit, or `take` fails; nothing more must be read then.
    pub fn each<E: From<TooLong>>(
        &mut self,
        mut piece: &[u8],
        mut take: impl FnMut(&[u8], &str) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut held: &[u8] = &[];
        while !piece.is_empty() {
            if std::mem::take(&mut self.after_return) && piece[0] == b'\n' {
                piece = &piece[1..];
                continue;
            }
            let end = memchr2(b'\n', b'\r', piece);
            let part = &piece[..end.unwrap_or(piece.len())];
            if self.line.len() + self.data.len() + held.len() + part.len() > self.longest {
                return Err(TooLong.into());
            }
            let Some(end) = end else {
                self.line.extend_from_slice(part);
                break;
            };
            self.after_return = piece[end] == b'\r';
            piece = &piece[end + 1..];
            if self.line.is_empty() {
                self.end_line(part, &mut held, &mut take)?;
                continue;
            }
            let mut line = std::mem::take(&mut self.line);
            line.extend_from_slice(part);
            self.spill(&mut held);
            let mut own: &[u8] = &[];
            self.end_line(&line, &mut own, &mut take)?;
            self.spill(&mut own);
            line.clear();
            self.line = line;
        }
        self.spill(&mut held);
        Ok(())
    }

    /// Copies data that borrows from a piece, so that it outlives the piece.
    fn spill(&mut self, held: &mut &[u8]) {
        self.data.extend_from_slice(std::mem::take(held));
    }

    /// Processes a line, and passes on the event that a blank line completes. Data that need not be copied stays in `held`.
    fn end_line<'p, E>(
        &mut self,
        mut line: &'p [u8],
        held: &mut &'p [u8],
        take: &mut impl FnMut(&[u8], &str) -> Result<(), E>,
    ) -> Result<(), E> {
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            let data = if self.data.is_empty() {
                *held
            } else {
                &self.data
            };
            if std::mem::take(&mut self.has_data) {
                take(data, &self.kind)?;
            }
            *held = &[];
            self.data.clear();
            self.kind.clear();
            return Ok(());
        }
        let (field, value) = match memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        if field == b"data" && !self.has_data {
            self.has_data = true;
            *held = value;
            return Ok(());
        }
        if field == b"data" {
            self.spill(held);
            self.data.push(b'\n');
            self.data.extend_from_slice(value);
            return Ok(());
        }
        self.field(field, value);
        Ok(())
    }

    fn field(&mut self, field: &[u8], value: &[u8]) {
        match field {
            b"event" => {
                self.kind.clear();
                self.kind.push_str(&String::from_utf8_lossy(value));
            }
            b"id" if value.len() <= LONGEST_ID && !value.contains(&0) => {
                self.last_id = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"retry" => {
                let millis = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok());
                let wait = millis.map(Duration::from_millis);
                self.retry = wait.map(|wait| wait.min(LONGEST_RETRY)).or(self.retry);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, size: usize) -> (Vec<(String, String)>, Option<String>) {
        let mut events = SseParser::new(1000);
        let mut found = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            for event in events.push(piece).unwrap() {
                found.push((event.kind, String::from_utf8(event.data).unwrap()));
            }
        }
        (found, events.last_id)
    }

    #[test]
    fn events_are_the_same_however_they_are_cut() {
        type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], Option<&'a str>);
        let rows: [Row<'_>; 8] = [
            ("data: a\n\n", &[("", "a")], None),
            ("data:a\r\ndata: b\r\n\r\n", &[("", "a\nb")], None),
            ("event: endpoint\rdata: /x\r\r", &[("endpoint", "/x")], None),
            (": note\n\nid: 7\ndata\n\n", &[("", "")], Some("7")),
            (
                "\u{feff}data: a\n\ndata: b\n\n",
                &[("", "a"), ("", "b")],
                None,
            ),
            ("id: 1\n\nid\ndata: x\n\n", &[("", "x")], Some("")),
            ("data: unfinished\n", &[], None),
            (
                "retry: 5\nweird: 1\ndata:  two spaces\n\n",
                &[("", " two spaces")],
                None,
            ),
        ];
        for (text, expect, id) in rows {
            for size in [1, 2, 3, 1000] {
                let (found, last) = read(text, size);
                let found: Vec<_> = found
                    .iter()
                    .map(|(k, d)| (k.as_str(), d.as_str()))
                    .collect();
                assert_eq!(
                    (found.as_slice(), last.as_deref()),
                    (expect, id),
                    "{text:?}"
                );
            }
        }
    }

    #[test]
    fn an_event_over_the_limit_is_an_error_and_a_wait_has_a_limit() {
        let mut events = SseParser::new(10);
        assert_eq!(events.push(b"data: 0123456789"), Err(TooLong));
        let mut events = SseParser::new(100);
        events.push(b"retry: 99999999\nretry: x\n").unwrap();
        assert_eq!(events.retry, Some(LONGEST_RETRY));
    }
}
