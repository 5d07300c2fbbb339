//! Fuzz target for the index: names, texts and queries of any kind. Runs for a few seconds over its corpus, and longer with `make fuzz`.

use std::path::{Path, PathBuf};

use haft_fuzz::fuzz;
use haft_search::{Document, Hit, Index};

const WORDS: &[&str] = &[
    "\n",
    "_",
    "HTTPServer",
    "URLs",
    "the of and",
    "ing",
    "tion",
    "ies",
    "天気",
    "ก\u{e31}",
    "e\u{301}",
    "\u{fb01}",
    "\u{130}",
    "\u{0}",
    "\u{ffff}",
    "123",
];

/// Maximum number of terms stored per document, and maximum bytes of one: 64, which may grow in lower case.
const MAX_TERMS: usize = 1_024;
const MAX_TERM: usize = 3 * 64;

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus")
        .join(name)
}

#[test]
fn fuzz_what_any_query_finds_in_any_text_is_bounded_and_in_order() {
    fuzz(&corpus("search"), WORDS, |input| {
        let text = String::from_utf8_lossy(input);
        // The first line is the query; each further line is a document, with its name before the first space.
        let (query, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let pairs = rest
            .lines()
            .map(|line| line.split_once(' ').unwrap_or((line, "")));
        let documents: Vec<Document<'_>> = pairs
            .map(|(name, text)| Document::new(name).with_text(text))
            .collect();
        for document in &documents {
            let mut terms = 0;
            document.terms(|term| {
                terms += 1;
                assert!(!term.is_empty() && term.len() <= MAX_TERM, "{term:?}");
            });
            assert!(terms <= MAX_TERMS, "{terms} terms");
        }
        let index = Index::new(documents.iter().cloned().enumerate());
        let all = index.search(query, usize::MAX, |_| true);
        assert!(all.len() <= documents.len());
        assert!(
            all.iter()
                .all(|hit| hit.score > 0.0 && hit.score.is_finite()),
            "{all:?}"
        );
        assert!(
            all.is_sorted_by(|a, b| (b.score, a.document) < (a.score, b.document)),
            "{all:?}"
        );
        // A limit cuts off the same order, and a filter does not change the other hits.
        assert_eq!(
            index.search(query, 2, |_| true)[..],
            all[..all.len().min(2)]
        );
        let odd = |document: usize| document % 2 == 1;
        let rest: Vec<Hit> = all.into_iter().filter(|hit| odd(hit.document)).collect();
        assert_eq!(index.search(query, usize::MAX, odd), rest);
    });
}
