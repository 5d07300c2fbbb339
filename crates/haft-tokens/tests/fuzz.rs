//! The fuzz target for the tokenizer: runs for a few seconds over its corpus, and longer with `make fuzz`.

use std::path::Path;

use haft_fuzz::fuzz;
use haft_tokens::{O200k, Tokenizer};

const WORDS: &[&str] = &[
    " ",
    "\n",
    "\r\n",
    "\t\t\t",
    "'ll",
    "123456",
    "aaaaaaaaaaaaaaaa",
    "é",
    "\u{1f600}",
    "\u{301}",
    "ſ",
    "\u{3000}",
    "ABCd",
    "::",
    "    }",
    "\u{0}",
    "語語",
];

/// Counts equal those of the reference encoder, and cuts leave complete tokens and complete characters.
#[test]
fn fuzz_texts_are_counted_and_cut_as_the_known_encoder_has_it() {
    let known = bpe_openai::o200k_base();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    fuzz(&corpus, WORDS, |input| {
        let text = String::from_utf8_lossy(input);
        let count = known.count(&text);
        assert_eq!(O200k.fits(&text, count), Some(count));
        if let Some(less) = count.checked_sub(1) {
            assert_eq!(O200k.fits(&text, less), None);
        }
        let limit = count / 2;
        let (head, tail) = (O200k.head(&text, limit), O200k.tail(&text, limit));
        assert!(text.is_char_boundary(head) && text.is_char_boundary(tail));
        assert!(known.count(&text[tail..]) <= limit);
    });
}
