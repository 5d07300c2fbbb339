//! Search in the memory: words made an expression that cannot be one, ranked by BM25, of equals the newest first.

use std::collections::BTreeSet;

use haft::memory::words::{self, Word, pairs};
use haft::memory::{Asker, Hit, MAX_LISTED, MAX_QUERY, MemoryError, Query};
use sqlx::{Row as _, SqliteConnection};

use super::super::nanoseconds;
use super::{row, store};

/// Most words of a query that count.
const MOST_WORDS: usize = 32;
/// Shortest word that also stands for longer ones that begin with it.
const SHORTEST_PREFIX: usize = 4;

/// Words too frequent to tell anything, left out where others remain.
const STOP: [&str; 40] = [
    "a", "about", "an", "and", "are", "as", "at", "be", "by", "can", "did", "do", "does", "for",
    "from", "has", "have", "how", "i", "in", "is", "it", "me", "my", "of", "on", "or", "our",
    "that", "the", "this", "to", "was", "we", "what", "when", "where", "which", "with", "you",
];

/// Ranks are compared to three decimals: what differs less is equal, and the newest comes first.
const SEARCH: &str = "SELECT m.*, f.rank AS score FROM memory_words f JOIN memory m ON m.row = f.rowid \
    WHERE f.memory_words MATCH ?1 AND m.tenant = ?2 AND m.subject = ?3 \
    AND m.state = 'accepted' AND m.deletes = 0 \
    AND (m.expires IS NULL OR m.expires > ?4) AND (?5 IS NULL OR m.run = ?5) \
    AND (?6 IS NULL OR m.scope || ':' || m.key IN (SELECT value FROM json_each(?6))) \
    ORDER BY round(f.rank, 3), m.updated DESC LIMIT ?7";

/// The hits of a query.
pub(super) async fn run(
    connection: &mut SqliteConnection,
    asker: &Asker,
    query: &Query,
) -> Result<Vec<Hit>, MemoryError> {
    let length = query.text.chars().count();
    if length > MAX_QUERY {
        return Err(MemoryError::Invalid(format!(
            "the query has {length} characters; one has at most {MAX_QUERY}"
        )));
    }
    let wanted = wanted(&query.text);
    if wanted.is_empty() {
        return Err(MemoryError::NoWords);
    }
    let limit = usize::try_from(query.limit.min(MAX_LISTED)).unwrap_or(usize::MAX);
    let all = expression(&wanted, " AND ", false);
    let mut hits = matching(connection, asker, query, &all).await?;
    if hits.len() < limit {
        let any = expression(&wanted, " OR ", true);
        if any != all {
            let mut known: BTreeSet<_> = hits.iter().map(|hit| hit.record.id.clone()).collect();
            let more = matching(connection, asker, query, &any).await?;
            hits.extend(
                more.into_iter()
                    .filter(|hit| known.insert(hit.record.id.clone())),
            );
        }
    }
    hits.truncate(limit);
    Ok(hits)
}

async fn matching(
    connection: &mut SqliteConnection,
    asker: &Asker,
    query: &Query,
    expression: &str,
) -> Result<Vec<Hit>, MemoryError> {
    let rows = sqlx::query(SEARCH)
        .bind(expression)
        .bind(&*asker.principal.tenant)
        .bind(&*asker.principal.subject)
        .bind(nanoseconds(asker.at))
        .bind(query.run.as_ref().map(haft::call::RunId::as_str))
        .bind(row::shelves(&query.shelves))
        .bind(i64::from(query.limit.min(MAX_LISTED)))
        .fetch_all(connection)
        .await;
    let hit = |found: &sqlx::sqlite::SqliteRow| {
        // FTS5's rank is lower for what fits better.
        let rank: f64 = found.try_get("score")?;
        Ok(Hit {
            record: row::record(found)?,
            score: -rank,
        })
    };
    let hits: Result<Vec<Hit>, sqlx::Error> = rows.map_err(store)?.iter().map(hit).collect();
    hits.map_err(store)
}

/// The words that are looked for, each once.
fn wanted(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    for word in words::split(text) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    let stops = |word: &Word| matches!(word, Word::Plain(w) if STOP.contains(&w.as_str()));
    if !words.iter().all(stops) {
        words.retain(|word| !stops(word));
    }
    words.truncate(MOST_WORDS);
    words
}

/// An expression of FTS5 in which every word stands in quotes: none can be an operator.
fn expression(words: &[Word], joint: &str, prefixes: bool) -> String {
    let each: Vec<String> = words.iter().map(|word| one(word, prefixes)).collect();
    each.join(joint)
}

fn one(word: &Word, prefixes: bool) -> String {
    let all = |terms: &[String]| {
        let terms: Vec<String> = terms.iter().map(|term| quoted(term)).collect();
        terms.join(" AND ")
    };
    match word {
        Word::Plain(word) if prefixes && word.chars().count() >= SHORTEST_PREFIX => {
            format!("({} OR {}*)", quoted(word), quoted(word))
        }
        Word::Plain(word) => quoted(word),
        Word::Joined { whole, parts } => format!("({} OR ({}))", quoted(whole), all(parts)),
        Word::Run(run) => format!("({})", all(&pairs(run))),
    }
}

fn quoted(word: &str) -> String {
    format!("\"{}\"", word.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, all: &str, any: &str) {
        let words = wanted(text);
        assert_eq!(expression(&words, " AND ", false), all, "{text:?}");
        assert_eq!(expression(&words, " OR ", true), any, "{text:?}");
    }

    #[test]
    fn no_query_is_an_expression() {
        check("deploy", "\"deploy\"", "(\"deploy\" OR \"deploy\"*)");
        check("the api key", "\"api\" AND \"key\"", "\"api\" OR \"key\"");
        check(
            "to be or",
            "\"to\" AND \"be\" AND \"or\"",
            "\"to\" OR \"be\" OR \"or\"",
        );
        check(
            "getName",
            "(\"getname\" OR (\"get\" AND \"name\"))",
            "(\"getname\" OR (\"get\" AND \"name\"))",
        );
        check(
            "数据库",
            "(\"数据\" AND \"据库\")",
            "(\"数据\" AND \"据库\")",
        );
        check(
            "a* NEAR(b) \"c\" -d",
            "\"near\" AND \"b\" AND \"c\" AND \"d\"",
            "(\"near\" OR \"near\"*) OR \"b\" OR \"c\" OR \"d\"",
        );
        check(
            "words:x ^y",
            "\"words\" AND \"x\" AND \"y\"",
            "(\"words\" OR \"words\"*) OR \"x\" OR \"y\"",
        );
        check(
            "'; DROP TABLE memory; --",
            "\"drop\" AND \"table\" AND \"memory\"",
            "(\"drop\" OR \"drop\"*) OR (\"table\" OR \"table\"*) OR (\"memory\" OR \"memory\"*)",
        );
    }
}
