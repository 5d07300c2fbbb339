//! Recall among 100,000 memories of one project: rare words, words of one in ten, sentences; milliseconds per search.

use haft::call::Principal;
use haft::memory::{
    MemoryAccess, MemoryDraft, MemoryOperation, MemoryQuery, MemoryState, MemoryStore, Provenance,
    Shelf,
};
use haft_store::sqlite::SqliteStore;
use measure::random::Random;
use measure::{Row, Step as Measured, fact, interleave, wall_ms};
use tokio::runtime::{Builder, Runtime};

/// The maximum that one principal may have.
const MEMORIES: usize = 100_000;
/// Number of memories written in one transaction.
const BATCH: usize = 1_000;
/// Number of distinct words; the nth is about n times rarer than the first.
const VOCABULARY: usize = 20_000;
/// Number of searches per round.
const SEARCHES: usize = 20;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = Builder::new_current_thread().build().expect("a runtime");
    let store = SqliteStore::new(folder.path());
    let (ms, ()) = wall_ms(|| runtime.block_on(fill(&store)));
    fact("memories", MEMORIES);
    fact("filled in seconds", format!("{:.1}", ms / 1e3));
    let file = std::fs::metadata(folder.path().join("haft.db")).expect("the database");
    fact("MiB on disk", file.len() >> 20);

    let here = Here { runtime, store };
    let kinds: [(&str, fn(&mut Random) -> String); 4] = [
        ("rare word", |random| word(5_000 + random.below(10_000))),
        ("common word", |random| word(random.below(10))),
        ("three words", |random| {
            let words = [
                50 + random.below(500),
                500 + random.below(2_000),
                3_000 + random.below(9_000),
            ];
            words.map(word).join(" ")
        }),
        ("question", |random| {
            let words: Vec<String> = (0..8).map(|_| word(draw(random))).collect();
            format!("what about {} ?", words.join(" "))
        }),
    ];
    let mut steps: Vec<Measured<'_>> = Vec::new();
    for (name, ask) in kinds {
        let row = Row::new(format!("haft/recall/{name}"), "ms");
        let here = &here;
        let mut random = Random::new(7);
        steps.push((row, Box::new(move || here.search(&mut random, ask))));
    }
    interleave(measure::rounds(9), steps);
}

struct Here {
    runtime: Runtime,
    store: SqliteStore,
}

impl Here {
    /// Returns the milliseconds per search, over a round of different ones.
    fn search(&self, random: &mut Random, ask: fn(&mut Random) -> String) -> f64 {
        let asker = asker(1);
        let queries: Vec<MemoryQuery> = (0..SEARCHES)
            .map(|_| MemoryQuery {
                text: ask(random),
                shelves: vec![Shelf::project("/w"), Shelf::user(), Shelf::agent("call")],
                run: None,
                limit: 5,
            })
            .collect();
        let (ms, found) = wall_ms(|| {
            let found = queries.iter().map(|query| {
                let hits = self.store.search(&asker, query);
                self.runtime.block_on(hits).expect("a search").len()
            });
            found.sum::<usize>()
        });
        assert!(found >= SEARCHES, "{found} hits only");
        ms / SEARCHES as f64
    }
}

fn asker(at: i128) -> MemoryAccess {
    MemoryAccess {
        principal: Principal::local("ada"),
        at,
    }
}

async fn fill(store: &SqliteStore) {
    let mut random = Random::new(1);
    for batch in 0..MEMORIES / BATCH {
        let steps = (0..BATCH).map(|_| MemoryOperation::Put(memory(&mut random)));
        let at = asker(i128::try_from(batch).unwrap_or_default());
        store.apply(&at, steps.collect()).await.expect("a write");
    }
}

fn memory(random: &mut Random) -> MemoryDraft {
    let length = 10 + random.below(30);
    let words: Vec<String> = (0..length).map(|_| word(draw(random))).collect();
    let provenance = Provenance {
        run: None,
        call: None,
        agent: Some("call".into()),
        author: "model".into(),
    };
    let draft = MemoryDraft::new(Shelf::project("/w"), words.join(" "), provenance);
    MemoryDraft {
        state: MemoryState::Accepted,
        ..draft.expect("an id")
    }
}

/// Returns a word's number, small ones more often, as in a language (Zipf).
fn draw(random: &mut Random) -> usize {
    let share = random.below(1 << 30) as f64 / f64::from(1 << 30);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "below the vocabulary"
    )]
    let number = (VOCABULARY as f64).powf(share) as usize;
    number - 1
}

/// Returns the word of a number: syllables, so that none stems to another.
fn word(number: usize) -> String {
    const SYLLABLES: [&str; 28] = [
        "ba", "ko", "mi", "tu", "ra", "lo", "ni", "pu", "ga", "do", "fi", "su", "wa", "jo", "ki",
        "mu", "ta", "ro", "li", "nu", "pa", "go", "di", "fu", "sa", "wo", "ji", "ku",
    ];
    let mut rest = number + 28 * 28;
    let mut word = String::new();
    while rest > 0 {
        word.push_str(SYLLABLES[rest % SYLLABLES.len()]);
        rest /= SYLLABLES.len();
    }
    word
}
