//! Server-sent events, read as the HTML standard says (9.2.6), each of a bounded size.

use std::time::Duration;

use memchr::memchr2;

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Its data, lines joined by line feeds.
    pub data: Vec<u8>,
    /// Its kind; `message` where it names none.
    pub kind: String,
}

/// An event is over the limit.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is over the limit")]
pub struct TooLong;

/// Events out of pieces of a stream.
#[derive(Debug, Default)]
pub struct Events {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    kind: String,
    /// The last event's id, to go on from.
    pub last_id: Option<String>,
    /// How long to wait before going on, where the server says it.
    pub retry: Option<Duration>,
    longest: usize,
    /// The last piece ended in a carriage return: a line feed behind it is part of the same line end.
    after_return: bool,
    begun: bool,
}

/// The longest id that is kept.
const LONGEST_ID: usize = 1024;
/// The longest wait that a server may ask for.
const LONGEST_RETRY: Duration = Duration::from_secs(30);

impl Events {
    /// Events of at most so many bytes.
    pub fn new(longest: usize) -> Self {
        Self {
            longest,
            ..Self::default()
        }
    }

    /// The same for the stream that follows: what was half read is gone, the place to go on from is known.
    pub fn resumed(self) -> Self {
        Self {
            last_id: self.last_id,
            retry: self.retry,
            ..Self::new(self.longest)
        }
    }

    /// Takes a piece in; the events that it ends.
    ///
    /// # Errors
    /// One event is over the limit.
    pub fn push(&mut self, mut piece: &[u8]) -> Result<Vec<Event>, TooLong> {
        let mut events = Vec::new();
        while !piece.is_empty() {
            if std::mem::take(&mut self.after_return) && piece[0] == b'\n' {
                piece = &piece[1..];
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', piece) else {
                self.take(piece)?;
                break;
            };
            self.take(&piece[..end])?;
            self.after_return = piece[end] == b'\r';
            piece = &piece[end + 1..];
            events.extend(self.end_line());
        }
        Ok(events)
    }

    fn take(&mut self, part: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + self.data.len() + part.len() > self.longest {
            return Err(TooLong);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    /// Reads a line; the event that it ends, where it is blank.
    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            let kind = std::mem::take(&mut self.kind);
            let data = std::mem::take(&mut self.data);
            let has_data = std::mem::take(&mut self.has_data);
            return has_data.then_some(Event { data, kind });
        }
        let (field, value) = match line.iter().position(|b| *b == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        self.field(field, value.strip_prefix(b" ").unwrap_or(value));
        None
    }

    fn field(&mut self, field: &[u8], value: &[u8]) {
        match field {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => self.kind = String::from_utf8_lossy(value).into_owned(),
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
        let mut events = Events::new(1000);
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
        let mut events = Events::new(10);
        assert_eq!(events.push(b"data: 0123456789"), Err(TooLong));
        let mut events = Events::new(100);
        events.push(b"retry: 99999999\nretry: x\n").unwrap();
        assert_eq!(events.retry, Some(LONGEST_RETRY));
    }
}
