//! The lines of the Assuan protocol, bounded.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// Maximum length of a line with its end, in bytes (libassuan's own limit).
pub(super) const MAX_LINE: usize = 1_000;

/// Reads a line, without its end; `None` if the peer has closed. A line that is too long is an error.
pub(super) async fn read(reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut limited = reader.take(MAX_LINE as u64);
    limited.read_until(b'\n', &mut line).await?;
    match line.pop() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(line)),
        Some(_) => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Writes data as lines that begin with `D`, escaped.
pub(super) fn data(bytes: &[u8]) -> Vec<u8> {
    // A byte takes up to three.
    const PART: usize = (MAX_LINE - 4) / 3;
    let mut out = Vec::new();
    for part in bytes.chunks(PART) {
        out.extend(b"D ");
        for byte in part {
            match byte {
                b'%' | b'\r' | b'\n' => out.extend(format!("%{byte:02X}").bytes()),
                _ => out.push(*byte),
            }
        }
        out.push(b'\n');
    }
    out
}

/// Returns the bytes that the text of a line `D` stands for.
pub(super) fn unescape(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        if *byte == b'%' {
            let (digits, after) = after.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = after;
        } else {
            bytes.push(*byte);
            rest = after;
        }
    }
    Some(bytes)
}

/// Writes a text as an argument: spaces as `+`, everything but plain characters as `%XX`.
pub(super) fn argument(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._@<>():/,".contains(&byte);
    let each = text.bytes().map(|byte| match byte {
        b' ' => "+".to_owned(),
        byte if plain(byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::{MAX_LINE, argument, data, read, unescape};

    #[test]
    fn data_is_written_in_lines_and_read_back() {
        for bytes in [
            b"plain".to_vec(),
            b"a%b\r\nc".to_vec(),
            vec![b'%'; 2_000],
            (0..=255).collect(),
        ] {
            let lines = data(&bytes);
            let mut back = Vec::new();
            for line in lines
                .split(|byte| *byte == b'\n')
                .filter(|line| !line.is_empty())
            {
                assert!(line.len() < MAX_LINE, "{}", line.len());
                back.extend(unescape(line.strip_prefix(b"D ").unwrap()).unwrap());
            }
            assert_eq!(back, bytes);
        }
        assert_eq!(unescape(b"a%2"), None);
        assert_eq!(unescape(b"a%zz"), None);
        assert_eq!(argument("a b\n\"é\""), "a+b%0A%22%C3%A9%22");
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_bounded() {
        for (text, expect) in [
            (b"RESET\n".to_vec(), Ok(Some(b"RESET".to_vec()))),
            (Vec::new(), Ok(None)),
            (vec![b'x'; 5_000], Err(())),
            (b"RESET".to_vec(), Err(())),
        ] {
            let found = read(&mut text.as_slice()).await.map_err(drop);
            assert_eq!(found, expect, "{}", text.len());
        }
    }
}
