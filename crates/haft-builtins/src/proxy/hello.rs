//! Parses the TLS hello that begins a tunnel, by hand and only for the name of the host; nothing else in it is trusted.

/// Maximum bytes read before the hello must be complete; real ones, with today's keys, stay below 3 KiB.
const MAX_HELLO: usize = 16 << 10;
/// Record and handshake types (RFC 8446 §4, §5.1), extensions (IANA).
const HANDSHAKE_RECORD: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME_EXTENSION: u16 = 0;
const ENCRYPTED_HELLO_EXTENSION: u16 = 0xfe0d;

/// The result of parsing the bytes so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HelloParse {
    /// The beginning of a hello.
    More,
    /// A complete hello, with the host that it names in lowercase, if any.
    Names(Option<String>),
    /// Not a hello, or one whose host cannot be determined.
    Wrong(&'static str),
}

const NO_TLS: HelloParse = HelloParse::Wrong("it does not begin with TLS");
const BROKEN: HelloParse = HelloParse::Wrong("its TLS hello is malformed");

/// Parses what a client has sent.
pub(super) fn parse_hello(bytes: &[u8]) -> HelloParse {
    let (mut message, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        match rest {
            [HANDSHAKE_RECORD]
            | [HANDSHAKE_RECORD, 3]
            | [HANDSHAKE_RECORD, 3, _]
            | [HANDSHAKE_RECORD, 3, _, _] => break,
            [HANDSHAKE_RECORD, 3, _, high, low, after @ ..] => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                if !(1..=1 << 14).contains(&length) {
                    return BROKEN;
                }
                let (part, after) = after.split_at(length.min(after.len()));
                message.extend_from_slice(part);
                rest = after;
            }
            _ => return NO_TLS,
        }
        if let Some(whole) = whole(&message) {
            return whole;
        }
    }
    if bytes.len() >= MAX_HELLO {
        return HelloParse::Wrong("its TLS hello is too long");
    }
    HelloParse::More
}

/// Parses the handshake message once it is complete.
fn whole(message: &[u8]) -> Option<HelloParse> {
    let (&kind, rest) = message.split_first()?;
    if kind != CLIENT_HELLO {
        return Some(NO_TLS);
    }
    let (length, rest) = rest.split_at_checked(3)?;
    let length = length
        .iter()
        .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    if length > MAX_HELLO {
        return Some(HelloParse::Wrong("its TLS hello is too long"));
    }
    if rest.len() < length {
        return None;
    }
    // Nothing can follow a hello before the server has answered it.
    if rest.len() > length {
        return Some(BROKEN);
    }
    Some(HelloReader(rest).parse_body().unwrap_or(BROKEN))
}

/// Reads length-prefixed data from the front.
struct HelloReader<'a>(&'a [u8]);

impl<'a> HelloReader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn number(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn read_short_vector(&mut self) -> Option<&'a [u8]> {
        let count = self.byte()?;
        self.take(count.into())
    }

    fn long(&mut self) -> Option<HelloReader<'a>> {
        let count = self.number()?;
        self.take(count.into()).map(HelloReader)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Parses the body of a hello. Returns `None` if it is not exactly one.
    fn parse_body(&mut self) -> Option<HelloParse> {
        // Version and random number, session, ciphers, compressions.
        self.take(2 + 32)?;
        self.read_short_vector()?;
        self.long()?;
        self.read_short_vector()?;
        if self.is_empty() {
            return Some(HelloParse::Names(None));
        }
        let mut extensions = self.long()?;
        if !self.is_empty() {
            return None;
        }
        let mut name = None;
        while !extensions.is_empty() {
            let (kind, data) = (extensions.number()?, extensions.long()?);
            match kind {
                // If the name appears twice, a server may choose a different one than this parser.
                SERVER_NAME_EXTENSION if name.is_some() => return None,
                SERVER_NAME_EXTENSION => name = Some(server_name(data)?),
                ENCRYPTED_HELLO_EXTENSION => {
                    return Some(HelloParse::Wrong("its TLS hello hides the host (ECH)"));
                }
                _ => {}
            }
        }
        Some(HelloParse::Names(name))
    }
}

/// Returns the only name in the extension (RFC 6066 §3).
fn server_name(mut data: HelloReader<'_>) -> Option<String> {
    let mut list = data.long()?;
    let (kind, name) = (list.byte()?, list.long()?);
    let plain = name
        .0
        .iter()
        .all(|byte| matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_'));
    let one = kind == 0 && list.is_empty() && data.is_empty() && plain && !name.is_empty();
    let name = one.then(|| String::from_utf8_lossy(name.0).to_ascii_lowercase())?;
    Some(name)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, ClientConnection, RootCertStore};

    use super::{BROKEN, HelloParse, MAX_HELLO, NO_TLS, parse_hello};

    /// Returns the first message of a real client.
    fn real(name: &'static str) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        let name = ServerName::try_from(name).unwrap();
        let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        bytes
    }

    fn extension(kind: u16, data: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes(), &counted(data)[..]].concat()
    }

    fn counted(data: &[u8]) -> Vec<u8> {
        let length = u16::try_from(data.len()).unwrap().to_be_bytes();
        [&length, data].concat()
    }

    fn name(kind: u8, name: &str) -> Vec<u8> {
        [&[kind], &counted(name.as_bytes())[..]].concat()
    }

    /// Builds a hello with these extensions, in records of at most `cut` bytes.
    fn made(extensions: &[u8], cut: usize) -> Vec<u8> {
        let mut body = [&[3, 3][..], &[7; 32], &[0], &counted(&[19, 1]), &[1, 0]].concat();
        body.extend(counted(extensions));
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        let message = [&[1], &length[1..], &body].concat();
        let record = |part: &[u8]| [&[22, 3, 1], &counted(part)[..]].concat();
        message.chunks(cut).flat_map(record).collect()
    }

    fn named(names: &[u8]) -> Vec<u8> {
        extension(0, &counted(names))
    }

    #[test]
    fn a_real_hello_names_its_host_however_it_is_cut() {
        let bytes = real("www.Example.com");
        let names = HelloParse::Names(Some("www.example.com".into()));
        assert_eq!(parse_hello(&bytes), names);
        for end in 0..bytes.len() {
            assert_eq!(parse_hello(&bytes[..end]), HelloParse::More, "{end}");
        }
        assert_eq!(parse_hello(&real("93.184.216.34")), HelloParse::Names(None));
        let extensions = named(&name(0, "a.example.com"));
        for cut in [1, 5, 40, 1 << 14] {
            let names = HelloParse::Names(Some("a.example.com".into()));
            assert_eq!(parse_hello(&made(&extensions, cut)), names, "{cut}");
        }
    }

    #[test]
    fn what_is_no_hello_or_hides_its_host_is_refused() {
        let two = [name(0, "a.example.com"), name(0, "b.example.com")].concat();
        let again = [
            named(&name(0, "a.example.com")),
            named(&name(0, "b.example.com")),
        ]
        .concat();
        let hidden = [named(&name(0, "a.example.com")), extension(0xfe0d, &[0; 9])].concat();
        let hides = HelloParse::Wrong("its TLS hello hides the host (ECH)");
        for (what, bytes, expect) in [
            ("http", b"GET / HTTP/1.1\r\n".to_vec(), NO_TLS),
            ("ssh", b"SSH-2.0-x\r\n".to_vec(), NO_TLS),
            ("an SSL 2 hello", vec![0x80, 0x2e, 1, 3, 1], NO_TLS),
            ("an alert", vec![21, 3, 3, 0, 2, 1, 0], NO_TLS),
            ("another version", vec![22, 2, 0, 0, 1, 1], NO_TLS),
            ("a server's hello", vec![22, 3, 3, 0, 4, 2, 0, 0, 0], NO_TLS),
            ("an empty record", vec![22, 3, 3, 0, 0], BROKEN),
            ("a long record", vec![22, 3, 3, 0x40, 1], BROKEN),
            ("two names", made(&named(&two), 900), BROKEN),
            ("two extensions", made(&again, 900), BROKEN),
            (
                "another kind of name",
                made(&named(&name(1, "a.example.com")), 900),
                BROKEN,
            ),
            ("no name", made(&named(&[]), 900), BROKEN),
            ("an empty name", made(&named(&name(0, "")), 900), BROKEN),
            (
                "a zero in a name",
                made(&named(&name(0, "a\0.example.com")), 900),
                BROKEN,
            ),
            (
                "a name in UTF-8",
                made(&named(&name(0, "bücher.example.com")), 900),
                BROKEN,
            ),
            ("a cut extension", made(&[0, 0, 0], 900), BROKEN),
            ("an encrypted hello", made(&hidden, 900), hides),
            ("no extension", made(&[], 900), HelloParse::Names(None)),
        ] {
            assert_eq!(parse_hello(&bytes), expect, "{what}");
        }
        let long = made(&extension(21, &vec![0; MAX_HELLO]), 1 << 14);
        assert_eq!(
            parse_hello(&long),
            HelloParse::Wrong("its TLS hello is too long")
        );
        let slow = made(&extension(21, &[0; 5_000]), 1);
        assert_eq!(
            parse_hello(&slow[..MAX_HELLO]),
            HelloParse::Wrong("its TLS hello is too long")
        );
        let mut more = made(&named(&name(0, "a.example.com")), 900);
        let length = u16::from_be_bytes([more[3], more[4]]) + 1;
        more[3..5].copy_from_slice(&length.to_be_bytes());
        more.push(0);
        assert_eq!(parse_hello(&more), BROKEN);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..600), at in 0_usize..200, byte: u8) {
            let _ = parse_hello(&bytes);
            let mut near = made(&named(&name(0, "a.example.com")), 900);
            let at = at % near.len();
            near[at] = byte;
            if let HelloParse::Names(Some(name)) = parse_hello(&near) {
                prop_assert!(name.len() <= near.len());
            }
        }
    }
}
