//! tantivy's index in memory, with exactly the terms of haft's index.

use std::collections::HashSet;

use haft::spec::ToolSpec;
use haft::toolset::search::document;
use haft_search::terms;
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{
    FAST, Field, IndexRecordOption, STORED, Schema, TextFieldIndexing, TextOptions, Value,
};
use tantivy::tokenizer::{TextAnalyzer, WhitespaceTokenizer};
use tantivy::{Index, Searcher, TantivyDocument, Term};

pub(crate) struct Peer {
    searcher: Searcher,
    text: Field,
    number: Field,
}

impl Peer {
    pub(crate) fn new(tools: &[ToolSpec]) -> Self {
        let mut schema = Schema::builder();
        let indexing = TextFieldIndexing::default()
            .set_tokenizer("blanks")
            .set_index_option(IndexRecordOption::WithFreqs);
        let text = schema.add_text_field(
            "text",
            TextOptions::default().set_indexing_options(indexing),
        );
        let number = schema.add_u64_field("number", STORED | FAST);
        let index = Index::create_in_ram(schema.build());
        let blanks = TextAnalyzer::from(WhitespaceTokenizer::default());
        index.tokenizers().register("blanks", blanks);
        let mut writer = index
            .writer_with_num_threads(1, 50_000_000)
            .expect("a writer");
        for (place, tool) in tools.iter().enumerate() {
            let mut words: Vec<String> = Vec::new();
            document::of_tool(tool).terms(|term| words.push(term.to_owned()));
            let mut document = TantivyDocument::default();
            document.add_text(text, words.join(" "));
            document.add_u64(number, place as u64);
            writer.add_document(document).expect("a document");
        }
        writer.commit().expect("a commit");
        let searcher = index.reader().expect("a reader").searcher();
        Self {
            searcher,
            text,
            number,
        }
    }

    /// Returns the positions of the best.
    pub(crate) fn search(&self, query: &str, limit: usize) -> HashSet<usize> {
        let mut parts: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        terms(query, |term| {
            let term = Term::from_field_text(self.text, term);
            let part = TermQuery::new(term, IndexRecordOption::WithFreqs);
            parts.push((Occur::Should, Box::new(part)));
        });
        let query = BooleanQuery::new(parts);
        let found = self
            .searcher
            .search(&query, &TopDocs::with_limit(limit).order_by_score())
            .expect("an answer");
        let place = |(_, address)| {
            let document: TantivyDocument = self.searcher.doc(address).expect("a document");
            let number = document.get_first(self.number).and_then(|v| v.as_u64());
            usize::try_from(number.expect("a number")).expect("a place")
        };
        found.into_iter().map(place).collect()
    }
}
