//! Tokens: counts and cuts agree with the full encoding of a reference encoder, on friendly and hostile texts.

use super::{Bytes, Tokenizer};

#[test]
fn bytes_count_bytes_and_cut_at_characters() {
    assert_eq!(Bytes.fits("abc", 3), Some(3));
    assert_eq!(Bytes.fits("abcd", 3), None);
    assert_eq!((Bytes.head("aéé", 2), Bytes.tail("aéé", 3)), (1, 3));
    assert_eq!(
        (Bytes.head("", 2), Bytes.tail("", 3), Bytes.head("é", 0)),
        (0, 0, 0)
    );
}

#[cfg(feature = "o200k")]
mod o200k {
    use proptest::prelude::*;

    use crate::Tokenizer;
    use crate::o200k::O200k;

    /// Returns the byte positions where the tokens of the reference encoder end.
    fn ends(text: &str) -> Vec<usize> {
        let known = bpe_openai::o200k_base();
        let lengths = known
            .encode(text)
            .into_iter()
            .map(|id| known.bpe.token_len(id));
        lengths
            .scan(0, |end, length| {
                *end += length;
                Some(*end)
            })
            .collect()
    }

    #[track_caller]
    fn check(text: &str) {
        let ends = ends(text);
        let count = ends.len();
        let name = &text[..text.floor_char_boundary(60)];
        assert_eq!(O200k.fits(text, usize::MAX), Some(count), "{name:?}");
        assert_eq!(O200k.fits(text, count), Some(count), "{name:?}");
        if count > 0 {
            assert_eq!(O200k.fits(text, count - 1), None, "{name:?}");
        }
        for limit in [
            0,
            1,
            2,
            3,
            count / 3,
            count / 2,
            count.saturating_sub(1),
            count,
        ] {
            let cut = ends[..limit.min(count)].last().copied().unwrap_or_default();
            let head = if text.len() <= limit {
                text.len()
            } else {
                text.floor_char_boundary(cut)
            };
            assert_eq!(
                O200k.head(text, limit),
                head,
                "{limit} of {count} tokens: {name:?}"
            );
            let tail = &text[O200k.tail(text, limit)..];
            assert!(ends_len(tail) <= limit, "tail of {limit}: {name:?}");
        }
    }

    fn ends_len(text: &str) -> usize {
        ends(text).len()
    }

    /// Returns a text of about `bytes` bytes, made of numbered lines.
    fn lines(bytes: usize, line: impl Fn(usize) -> String) -> String {
        let mut text = String::new();
        for n in 0.. {
            if text.len() >= bytes {
                break;
            }
            text.push_str(&line(n));
        }
        text
    }

    #[test]
    fn cuts_are_those_of_the_full_encoding() {
        check("");
        check("hello world");
        check("I'll we've DON'T it's  x\n\n\n  y   ");
        check(" \t \n /\n//\r\n\r\n a");
        check("Ünïcödé 漢字かな交じり文 한국어 العربية हिन्दी 🏳️‍🌈👩‍👩‍👧‍👦 e\u{301}");
        check(include_str!("encode.rs"));
        check(include_str!("o200k.rs"));
        check(&lines(60_000, |n| {
            format!(
                "2026-11-21T10:{:02}:{:02}Z INFO worker-{n} took {}ms\n",
                n % 60,
                n * 7 % 60,
                n * n % 9_973
            )
        }));
        check(&lines(60_000, |n| {
            format!(
                "{{\"id\":{n},\"name\":\"käse {n}\",\"ok\":{},\"x\":[{}.5,null]}},",
                n % 2 == 0,
                n * 31
            )
        }));
    }

    #[test]
    fn hostile_pieces_are_encoded_exactly() {
        for piece in [
            "a",
            "ab",
            "aA",
            "=",
            "-",
            " ",
            "\n",
            " \n",
            "é",
            "漢",
            "👩",
            "\u{301}",
            "/",
            "!?",
            "abcdefghij",
        ] {
            check(&piece.repeat(2_000));
        }
        check(&"=".repeat(9_000));
        let mut state = 7_u64;
        let mut letter = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            char::from(b'a' + u8::try_from((state >> 33) % 26).unwrap())
        };
        check(&(0..40_000).map(|_| letter()).collect::<String>());
    }

    #[test]
    fn a_megabyte_in_one_piece_is_cut() {
        let text = "a".repeat(1 << 20);
        let head = O200k.head(&text, 12_000);
        assert_eq!(O200k.fits(&text[..head], 12_000), Some(12_000));
        assert_eq!(ends(&text)[11_999], head);
    }

    proptest! {
        #[test]
        fn any_text_is_cut_as_the_full_encoding(text in "(?s).{0,200}") {
            check(&text);
        }

        #[test]
        fn any_plain_text_is_cut_as_the_full_encoding(text in "[ a-eA-E0-9'\n\r\t/.=éß漢]{0,300}") {
            check(&text);
        }

        #[test]
        fn any_word_is_cut_as_the_full_encoding(text in "[a-z]{0,400}") {
            check(&text);
        }
    }
}
