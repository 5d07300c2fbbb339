//! HTTP/1.1 as far as both ends of this measurement need it: one request per connection, everything in memory.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Maximum size of a message's body, in bytes.
const MAX_BODY: u64 = 16 << 20;
/// How long a peer may say nothing. Longer than a call waits for a decision.
const SILENCE: Duration = Duration::from_secs(120);

/// A request as it arrived.
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    /// Without a port, in lower case.
    pub(crate) host: String,
    /// The request line, the headers and the body: all that its receiver learns.
    pub(crate) whole: String,
    pub(crate) body: String,
}

/// A reply.
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// In lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Reads one request.
pub(crate) fn read_request(stream: &TcpStream) -> io::Result<Request> {
    stream.set_read_timeout(Some(SILENCE))?;
    let (head, body) = read_message(stream)?;
    let mut words = head.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let target = words.next().unwrap_or_default().to_owned();
    let named = header(&head, "host").unwrap_or_default();
    let host = named.split(':').next().unwrap_or_default();
    Ok(Request {
        method,
        host: host.trim_end_matches('.').to_ascii_lowercase(),
        whole: format!("{head}\n{body}"),
        target,
        body,
    })
}

/// Answers a request and ends the connection.
pub(crate) fn respond(mut stream: &TcpStream, head: &str, body: &[u8]) -> io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(body)
}

/// Sends a request to a program of this machine and returns its reply.
pub(crate) fn ask(address: &str, line: &str, headers: &str, body: &str) -> io::Result<Reply> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(SILENCE))?;
    write!(
        stream,
        "{line} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let (head, body) = read_message(&stream)?;
    let status = head.split_whitespace().nth(1);
    let status = status.and_then(|word| word.parse().ok()).unwrap_or(0);
    Ok(Reply {
        status,
        head: head.to_ascii_lowercase(),
        body,
    })
}

/// Returns the value of a header.
pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = head.lines().filter_map(|line| line.split_once(':'));
    let found = pairs.find(|(key, _)| key.eq_ignore_ascii_case(name))?;
    Some(found.1.trim())
}

fn read_message(stream: &TcpStream) -> io::Result<(String, String)> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    loop {
        let before = head.len();
        if reader.by_ref().take(64 << 10).read_line(&mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if head[before..].trim().is_empty() || head.len() > 256 << 10 {
            break;
        }
    }
    let mut body = Vec::new();
    let is_chunked = header(&head, "transfer-encoding").is_some();
    if is_chunked {
        read_chunks(&mut reader, &mut body)?;
    } else if let Some(length) = header(&head, "content-length") {
        let length: u64 = length.parse().unwrap_or(0);
        reader.take(length.min(MAX_BODY)).read_to_end(&mut body)?;
    } else if head.starts_with("HTTP/") {
        reader.take(MAX_BODY).read_to_end(&mut body)?;
    }
    Ok((head, String::from_utf8_lossy(&body).into_owned()))
}

fn read_chunks(reader: &mut BufReader<&TcpStream>, body: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let size = u64::from_str_radix(line.trim(), 16).unwrap_or(0);
        if size == 0 || body.len() as u64 > MAX_BODY {
            return Ok(());
        }
        reader.by_ref().take(size).read_to_end(body)?;
        reader.read_line(&mut line)?;
    }
}
