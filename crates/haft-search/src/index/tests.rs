//! Compares the index with textbook BM25, and tests bad input.
#![expect(
    clippy::cast_precision_loss,
    reason = "counts of words, far below 2^52"
)]

use proptest::prelude::*;

use super::*;

/// Computes BM25 by the formula, with one list of terms per document.
fn plain(documents: &[&str], query: &str) -> Vec<f64> {
    let of = |text: &str| {
        let mut found = Vec::new();
        words::terms(text, |term| found.push(term.to_owned()));
        found
    };
    // Each document here consists only of its name, which counts twice.
    let documents: Vec<Vec<String>> = documents
        .iter()
        .map(|text| [of(text), of(text)].concat())
        .collect();
    let count = documents.len() as f64;
    let average = documents.iter().map(Vec::len).sum::<usize>() as f64 / count;
    let score = |document: &Vec<String>| {
        let mut score = 0.0;
        for term in of(query) {
            let having = documents.iter().filter(|d| d.contains(&term)).count() as f64;
            let idf = (1.0 + (count - having + 0.5) / (having + 0.5)).ln();
            let times = document.iter().filter(|t| **t == term).count() as f64;
            let length = document.len() as f64 / average.max(1.0);
            score += idf * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * length));
        }
        score
    };
    documents.iter().map(score).collect()
}

proptest! {
    #[test]
    fn scores_are_those_of_plain_bm25_and_the_best_come_first(
        documents in proptest::collection::vec("[a-e_ ]{0,12}", 1..40),
        query in "[a-f ]{0,10}",
        limit in 0_usize..50,
    ) {
        // A label match is not a word match: avoid exact names.
        let texts: Vec<String> = documents.iter().map(|d| format!("{d} zz")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let index = Index::new(texts.iter().map(|text| Document::new(text)).enumerate());
        let expect = plain(&texts, &query);
        let hits = index.search(&query, limit, |_| true);
        let fitting = expect.iter().filter(|score| **score > 0.0).count();
        prop_assert_eq!(hits.len(), fitting.min(limit));
        for hit in &hits {
            let wanted = expect[hit.document];
            prop_assert!((f64::from(hit.score) - wanted).abs() < 1e-3 * wanted.max(1.0));
        }
        prop_assert!(hits.is_sorted_by(|a, b| (b.score, a.document) <= (a.score, b.document) || a.score > b.score));
        if let Some(last) = hits.last().filter(|_| hits.len() == limit) {
            let better = expect.iter().filter(|s| **s > f64::from(last.score) + 1e-3).count();
            prop_assert!(better < limit);
        }
    }

    #[test]
    fn any_text_can_be_looked_for(text in "\\PC{0,200}", query in "\\PC{0,200}") {
        let index = Index::new([(3, Document::new("a_tool").with_text(&text))]);
        let hits = index.search(&query, 5, |_| true);
        prop_assert!(hits.iter().all(|hit| hit.document == 3 && hit.score > 0.0));
        let mut said = false;
        words::terms(&text, |_| said = true);
        prop_assert_eq!(!index.search(&text, 5, |_| true).is_empty(), said);
    }
}

#[test]
fn a_query_that_is_a_name_or_an_alias_finds_it_first() {
    let aliases = ["forecast".to_owned(), "find_users".to_owned()];
    let documents = [
        Document::new("weather.current").with_aliases(&aliases),
        Document::new("getBMI").with_text("body mass"),
        Document::new("getbmi").with_text("body mass"),
        Document::new("find_users").with_text("Finds people"),
        Document::new("tenki").with_text("現在の天気を調べる"),
    ];
    let index = Index::new(documents.into_iter().enumerate());
    let rows: [(&str, &[usize]); 7] = [
        ("getBMI", &[1, 2]),
        ("getbmi", &[2, 1]),
        (" GETBMI\n", &[2, 1]),
        ("forecast", &[0]),
        ("find_users", &[3, 0]),
        ("今の天気は？", &[4]),
        ("the of and", &[]),
    ];
    for (query, expect) in rows {
        let hits = index.search(query, 5, |_| true);
        let found: Vec<usize> = hits.iter().map(|hit| hit.document).collect();
        assert_eq!(found, expect, "{query:?}");
        let named = hits.first().is_some_and(|hit| hit.score >= NAMED);
        assert_eq!(named, !query.starts_with(['今', 't']), "{query:?}");
    }
}

#[test]
fn ten_thousand_long_documents_and_a_huge_query_stay_bounded() {
    // Names of about 300 characters without spaces, and texts with spaces.
    let documents: Vec<(String, String)> = (0..10_000)
        .map(|n| {
            (
                format!("{}{n}", "n".repeat(296)),
                format!("word{n} ").repeat(40),
            )
        })
        .collect();
    let of = |(place, (name, text)): (usize, &'static (String, String))| {
        (place, Document::new(name).with_text(text))
    };
    let documents: &'static [_] = documents.leak();
    let index = Index::new(documents.iter().enumerate().map(of));
    assert!(index.bytes() < 4 << 20, "{}", index.bytes());
    let hits = index.search("word77", 5, |_| true);
    assert_eq!(
        hits.iter().map(|hit| hit.document).collect::<Vec<_>>(),
        [77]
    );
    let words: Vec<String> = (0..130_000).map(|n| format!("word{n}")).collect();
    let huge = words.join(" ");
    assert!(huge.len() > 1 << 20);
    assert_eq!(index.search(&huge, usize::MAX, |_| true).len(), MAX_TERMS);
    assert_eq!(index.search(&"n".repeat(1 << 20), 5, |_| true).len(), 5);

    let long = "w ".repeat(1 << 20);
    let index = Index::new([
        (0, Document::new("one").with_text(&long)),
        (7, Document::new("two")),
    ]);
    assert!(index.bytes() < 4096);
    assert_eq!(index.search("two", 5, |_| true)[0].document, 7);
    assert!(Index::default().search("two", 5, |_| true).is_empty());
}
