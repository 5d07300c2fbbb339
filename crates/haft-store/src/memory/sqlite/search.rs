//! Search in the memory: plain words, never query syntax, ranked by BM25, the newest first among equals.

use std::collections::{HashMap, HashSet};

use haft::call::RunId;
use haft::memory::words::{self, SearchWord, pairs};
use haft::memory::{MAX_LISTED, MAX_QUERY, MemoryAccess, MemoryError, MemoryHit, MemoryQuery};
use rusqlite::{Connection, params};

use super::{MemoryJobError, row};
use crate::number::nanoseconds;

/// Maximum number of a query's words that count.
const MAX_WORDS: usize = 16;
/// Words too frequent to be significant; left out unless the query has no others.
const STOP_WORDS: [&str; 40] = [
    "a", "about", "an", "and", "are", "as", "at", "be", "by", "can", "did", "do", "does", "for",
    "from", "has", "have", "how", "i", "in", "is", "it", "me", "my", "of", "on", "or", "our",
    "that", "the", "this", "to", "was", "we", "what", "when", "where", "which", "with", "you",
];

/// Maximum number of memories that contain a word used for ranking; a more frequent word says little, and ranking by it is slow.
const MAX_MATCHES_PER_WORD: i64 = 1_000;
/// Approximate maximum number of memories ranked per search: the rarest words come first.
const MAX_RANKED: i64 = 1_500;
/// Number of the newest memories with all words that are put first.
const MAX_FULL_MATCHES: i64 = 50;

/// Counts no further than necessary.
const COUNT: &str = "SELECT count(*) FROM \
    (SELECT 1 FROM memory_words WHERE memory_words MATCH ?1 LIMIT ?2)";
/// `CROSS JOIN` prevents reordering, so the index is queried once and not for each memory. Ranks are compared to three decimals:
/// closer ones count as equal, and the newest comes first.
const RANK: &str = "SELECT m.row, f.rank AS rank FROM memory_words f CROSS JOIN memory m ON m.row = f.rowid \
    WHERE f.memory_words MATCH ?1 AND m.tenant = ?2 AND m.subject = ?3 \
    AND m.state = 'accepted' AND m.deletes = 0 \
    AND (m.expires IS NULL OR m.expires > ?4) AND (?5 IS NULL OR m.run = ?5) \
    AND (?6 IS NULL OR m.scope || ':' || m.key IN (SELECT value FROM json_each(?6))) \
    ORDER BY round(f.rank, 3), m.updated DESC LIMIT ?7";
/// The same without ranks: the index yields the newest first and stops when there are enough.
const NEWEST: &str = "SELECT m.row, 0.0 AS rank FROM memory_words f CROSS JOIN memory m ON m.row = f.rowid \
    WHERE f.memory_words MATCH ?1 AND m.tenant = ?2 AND m.subject = ?3 \
    AND m.state = 'accepted' AND m.deletes = 0 \
    AND (m.expires IS NULL OR m.expires > ?4) AND (?5 IS NULL OR m.run = ?5) \
    AND (?6 IS NULL OR m.scope || ':' || m.key IN (SELECT value FROM json_each(?6))) \
    ORDER BY f.rowid DESC LIMIT ?7";
const ROWS: &str = "SELECT * FROM memory WHERE row IN (SELECT value FROM json_each(?1))";

/// A memory's row and its rank in the index: lower is better.
type RowRank = (i64, f64);

/// Returns the hits of a query.
pub(super) fn run(
    connection: &Connection,
    asker: &MemoryAccess,
    query: &MemoryQuery,
) -> Result<Vec<MemoryHit>, MemoryJobError> {
    let length = query.text.chars().count();
    if length > MAX_QUERY {
        let long = format!("the query has {length} characters; one has at most {MAX_QUERY}");
        return Err(MemoryError::Invalid(long).into());
    }
    let wanted = wanted(&query.text);
    if wanted.is_empty() {
        return Err(MemoryError::NoWords.into());
    }
    let search = MemorySearch {
        connection,
        asker,
        query,
    };
    let most = i64::from(query.limit.min(MAX_LISTED));
    let mut found = search.rank_memories(&wanted, most)?;
    let limit = usize::try_from(most).unwrap_or(usize::MAX);
    if found.len() < limit {
        let known: HashSet<i64> = found.iter().map(|(row, _)| *row).collect();
        let more = search.newest(&wanted, most)?;
        found.extend(more.into_iter().filter(|(row, _)| !known.contains(row)));
    }
    found.truncate(limit);
    Ok(search.hits(&found)?)
}

/// A search in progress.
struct MemorySearch<'s> {
    connection: &'s Connection,
    asker: &'s MemoryAccess,
    query: &'s MemoryQuery,
}

impl MemorySearch<'_> {
    /// Returns the memories ranked by the most significant words; those with all words come first.
    fn rank_memories(&self, wanted: &[SearchWord], most: i64) -> rusqlite::Result<Vec<RowRank>> {
        let mut counted = Vec::new();
        for word in wanted {
            let count = self.count(&word_expression(word))?;
            counted.push((count, word));
        }
        counted.retain(|(count, _)| *count > 0);
        let everywhere = counted.len() == wanted.len();
        counted.sort_by_key(|(count, _)| *count);
        let (mut telling, mut rows) = (Vec::new(), 0);
        for (count, word) in counted {
            rows += count;
            if count <= MAX_MATCHES_PER_WORD && rows <= MAX_RANKED {
                telling.push(word.clone());
            }
        }
        if telling.is_empty() {
            return Ok(Vec::new());
        }
        let any = expression(&telling, " OR ");
        let found = self.matching(RANK, &any, MAX_RANKED)?;
        if wanted.len() == 1 || !everywhere {
            return Ok(found);
        }
        let all = expression(wanted, " AND ");
        let whole = self.matching(NEWEST, &all, MAX_FULL_MATCHES.max(most))?;
        let whole: HashSet<i64> = whole.into_iter().map(|(row, _)| row).collect();
        let (mut first, rest): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|(row, _)| whole.contains(row));
        first.extend(rest);
        Ok(first)
    }

    /// Returns matches for words too frequent for ranking: the newest with all words, then the newest with any.
    fn newest(&self, wanted: &[SearchWord], most: i64) -> rusqlite::Result<Vec<RowRank>> {
        let all = expression(wanted, " AND ");
        let mut found = self.matching(NEWEST, &all, most)?;
        let any = expression(wanted, " OR ");
        let more = self.matching(NEWEST, &any, most)?;
        let known: HashSet<i64> = found.iter().map(|(row, _)| *row).collect();
        found.extend(more.into_iter().filter(|(row, _)| !known.contains(row)));
        Ok(found)
    }

    fn count(&self, expression: &str) -> rusqlite::Result<i64> {
        let mut query = self.connection.prepare_cached(COUNT)?;
        query.query_row(params![expression, MAX_MATCHES_PER_WORD + 1], |row| {
            row.get(0)
        })
    }

    fn matching(
        &self,
        statement: &'static str,
        expression: &str,
        most: i64,
    ) -> rusqlite::Result<Vec<RowRank>> {
        let mut query = self.connection.prepare_cached(statement)?;
        let values = params![
            expression,
            &*self.asker.principal.tenant,
            &*self.asker.principal.subject,
            nanoseconds(self.asker.at),
            self.query.run.as_ref().map(RunId::as_str),
            row::shelves(&self.query.shelves),
            most
        ];
        let ranked = query.query_map(values, |row| Ok((row.get("row")?, row.get("rank")?)))?;
        ranked.collect()
    }

    /// Returns the records of the rows, in the same order.
    fn hits(&self, found: &[RowRank]) -> rusqlite::Result<Vec<MemoryHit>> {
        let wanted: Vec<i64> = found.iter().map(|(row, _)| *row).collect();
        let mut query = self.connection.prepare_cached(ROWS)?;
        let mut rows = query.query([serde_json::Value::from(wanted).to_string()])?;
        let mut records = HashMap::new();
        while let Some(read) = rows.next()? {
            records.insert(read.get::<_, i64>("row")?, row::record(read)?);
        }
        let hit = |(row, rank): &RowRank| {
            let record = records.remove(row)?;
            Some(MemoryHit {
                record,
                score: 0.0 - rank,
            })
        };
        Ok(found.iter().filter_map(hit).collect())
    }
}

/// Returns the distinct words to search for.
fn wanted(text: &str) -> Vec<SearchWord> {
    let mut words: Vec<SearchWord> = Vec::new();
    for word in words::split(text) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    let stops = |word: &SearchWord| matches!(word, SearchWord::Plain(w) if STOP_WORDS.contains(&w.as_str()));
    if !words.iter().all(stops) {
        words.retain(|word| !stops(word));
    }
    words.truncate(MAX_WORDS);
    words
}

/// Returns an FTS5 expression with every word quoted, so that none can be an operator. There is no prefix search: it takes a
/// second where many words share a prefix, and stemming already covers the common case.
fn expression(words: &[SearchWord], joint: &str) -> String {
    let each: Vec<String> = words.iter().map(word_expression).collect();
    each.join(joint)
}

fn word_expression(word: &SearchWord) -> String {
    let all = |terms: &[String]| {
        let terms: Vec<String> = terms.iter().map(|term| quote(term)).collect();
        terms.join(" AND ")
    };
    match word {
        SearchWord::Plain(word) => quote(word),
        SearchWord::Joined { whole, parts } => format!("({} OR ({}))", quote(whole), all(parts)),
        SearchWord::Run(run) => format!("({})", all(&pairs(run))),
    }
}

fn quote(word: &str) -> String {
    format!("\"{}\"", word.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        assert_eq!(expression(&wanted(text), " AND "), expect, "{text:?}");
    }

    #[test]
    fn no_query_is_an_expression() {
        check("deploy", "\"deploy\"");
        check("the api key", "\"api\" AND \"key\"");
        check("to be or", "\"to\" AND \"be\" AND \"or\"");
        check("getName", "(\"getname\" OR (\"get\" AND \"name\"))");
        check("数据库", "(\"数据\" AND \"据库\")");
        check(
            "a* NEAR(b) \"c\" -d",
            "\"near\" AND \"b\" AND \"c\" AND \"d\"",
        );
        check("words:x ^y", "\"words\" AND \"x\" AND \"y\"");
        check(
            "'; DROP TABLE memory; --",
            "\"drop\" AND \"table\" AND \"memory\"",
        );
    }
}
