//! Fuzzes the codec: frames in any order, as datagrams and as a stream.

use std::path::Path;

use haft_chain::bridge::FRAME;
use haft_chain::bridge::frame::{Frame, prefixed, unprefixed};
use haft_chain::bridge::message::Assembler;
use haft_fuzz::fuzz;

use crate::runner::Test;

pub(crate) const TESTS: &[Test] = &[("no_bytes_confuse_the_codec", any_bytes)];

fn any_bytes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/frames");
    let words = [
        "c\0\x01\0\0\0",
        "c\x01\x02\0\0\0",
        "d\0\0\0\0\0{}",
        "p\0\x03\0\0\0text/plain\n",
        "r\0\x04\0\0\0sha256- 0 1",
        "o\0\0\0\0\0",
        "i\0\x05\0\0\0",
        "A\0\x01\0\0\0",
        "\n",
        "{\"value\":",
        "[",
        "18446744073709551615",
    ];
    fuzz(&corpus, &words, |input| {
        // As one datagram: encoding what was decoded gives the same bytes.
        if let Ok(frame) = Frame::decode(input) {
            assert_eq!(frame.encode(), input);
            let stream = prefixed(input);
            let (datagram, taken) = unprefixed(&stream).unwrap().unwrap();
            assert_eq!((datagram, taken), (input, stream.len()));
        }
        // As a stream of frames, one after another, until one is invalid.
        let (mut rest, mut assembler) = (input, Assembler::default());
        while let Ok(Some((datagram, taken))) = unprefixed(rest) {
            assert!(datagram.len() <= FRAME && taken > 0);
            rest = &rest[taken..];
            if assembler.take(datagram).is_err() {
                break;
            }
        }
        // As datagrams separated by 0xfe bytes.
        let mut assembler = Assembler::default();
        for datagram in input.split(|byte| *byte == 0xfe) {
            if assembler.take(datagram).is_err() {
                break;
            }
        }
    });
}
