//! The memory: what it stores, what it refuses, who sees it, and several processes at once.
#![expect(
    clippy::unwrap_used,
    reason = "a test's preparation that fails is a failed test"
)]

use std::path::Path;
use std::time::Duration;

use haft::call::{CallId, Principal, RunId};
use haft::memory::{
    CandidateDecision, MAX_CANDIDATES, MAX_REVISIONS, MemoryAccess, MemoryCounts, MemoryDraft,
    MemoryError, MemoryFilter, MemoryId, MemoryOperation, MemoryQuery, MemoryRecord, MemoryState,
    MemoryStore as _, MemoryUpdate, Provenance, ReplacedRecord, Shelf,
};
use haft_store::sqlite::SqliteStore;

const SECOND: i128 = 1_000_000_000;

pub(crate) fn asker(subject: &str, seconds: i128) -> MemoryAccess {
    MemoryAccess {
        principal: Principal::local(subject),
        at: seconds * SECOND,
    }
}

pub(crate) fn from_run(run: &str) -> Provenance {
    Provenance {
        run: Some(RunId::new(run)),
        call: Some(CallId::new("call-1")),
        agent: Some("call".into()),
        author: "model".into(),
    }
}

pub(crate) fn draft(content: &str, state: MemoryState) -> MemoryDraft {
    let mut draft = MemoryDraft::new(Shelf::project("/w"), content, from_run("r1")).unwrap();
    draft.state = state;
    draft
}

fn file(path: &str, content: &str, state: MemoryState) -> MemoryDraft {
    MemoryDraft {
        path: Some(path.into()),
        ..draft(content, state)
    }
}

pub(crate) fn query(text: &str) -> MemoryQuery {
    MemoryQuery {
        text: text.into(),
        shelves: Vec::new(),
        run: None,
        limit: 10,
    }
}

fn all(state: Option<MemoryState>) -> MemoryFilter {
    MemoryFilter {
        state,
        limit: 100,
        ..MemoryFilter::default()
    }
}

async fn search(store: &SqliteStore, who: &MemoryAccess, text: &str) -> Vec<String> {
    let hits = store.search(who, &query(text)).await.unwrap();
    hits.into_iter().map(|hit| hit.record.content).collect()
}

fn accept(yes: bool) -> CandidateDecision {
    CandidateDecision {
        accept: yes,
        by: "ada".into(),
    }
}

#[tokio::test]
async fn a_candidate_is_recalled_once_a_person_accepted_it() {
    let home = tempfile::tempdir().unwrap();
    let store = SqliteStore::new(home.path());
    let who = asker("ada", 10);
    let mut wanted = draft("the staging server is called otter", MemoryState::Candidate);
    wanted.tags = vec!["servers".into()];
    let put = store.put(&who, wanted.clone()).await.unwrap();
    assert_eq!((put.state, put.revision), (MemoryState::Candidate, 1));
    assert_eq!(put.provenance, from_run("r1"));
    assert_eq!(put.created, "1970-01-01T00:00:10.000Z");
    assert!(search(&store, &who, "otter").await.is_empty());

    let accepted = store
        .decide(&asker("ada", 20), &put.id, &accept(true))
        .await
        .unwrap();
    assert_eq!(
        (accepted.state, accepted.revision),
        (MemoryState::Accepted, 2)
    );
    assert_eq!(accepted.decided_by.as_deref(), Some("ada"));
    assert_eq!(accepted.updated, "1970-01-01T00:00:20.000Z");
    assert_eq!(search(&store, &who, "otter").await.len(), 1);
    assert_eq!(search(&store, &who, "servers").await.len(), 1, "by its tag");

    let again = store.decide(&who, &put.id, &accept(false)).await;
    assert_eq!(
        again.unwrap_err(),
        MemoryError::Decided(put.id.clone(), MemoryState::Accepted)
    );
    let history = store.history(&who, &put.id).await.unwrap();
    let told: Vec<_> = history
        .iter()
        .map(|r| (r.revision, r.state, r.by.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (1, MemoryState::Candidate, "model"),
            (2, MemoryState::Accepted, "ada")
        ]
    );
}

#[tokio::test]
async fn a_rejected_one_is_kept_for_seven_days_and_proposing_it_again_says_so() {
    let home = tempfile::tempdir().unwrap();
    let store = SqliteStore::new(home.path());
    let who = asker("ada", 0);
    let put = store
        .put(&who, draft("always push to main", MemoryState::Candidate))
        .await
        .unwrap();
    store.decide(&who, &put.id, &accept(false)).await.unwrap();
    assert!(search(&store, &who, "push").await.is_empty());
    let again = store
        .put(&who, draft("always push to main", MemoryState::Candidate))
        .await
        .unwrap();
    assert_eq!(
        (again.id.clone(), again.state),
        (put.id.clone(), MemoryState::Rejected)
    );
    let late = asker("ada", 8 * 86_400);
    assert_eq!(store.get(&late, &put.id).await.unwrap(), None);
    let fresh = store
        .put(&late, draft("always push to main", MemoryState::Candidate))
        .await
        .unwrap();
    assert_ne!(fresh.id, put.id);
}

#[tokio::test]
async fn the_same_again_is_the_record_that_is_there() {
    let home = tempfile::tempdir().unwrap();
    let store = SqliteStore::new(home.path());
    let who = asker("ada", 0);
    let one = store
        .put(&who, draft("same", MemoryState::Candidate))
        .await
        .unwrap();
    let two = store
        .put(&who, draft("same", MemoryState::Candidate))
        .await
        .unwrap();
    assert_eq!(one, two);
    let elsewhere = MemoryDraft {
        shelf: Shelf::user(),
        ..draft("same", MemoryState::Candidate)
    };
    assert_ne!(store.put(&who, elsewhere).await.unwrap().id, one.id);
    // A candidate does not hold back a direct write.
    let at_once = store
        .put(&who, draft("same", MemoryState::Accepted))
        .await
        .unwrap();
    assert_eq!(at_once.state, MemoryState::Accepted);
    let counts = store.counts(&who).await.unwrap();
    assert_eq!(
        counts,
        MemoryCounts {
            candidate: 2,
            accepted: 1,
            rejected: 0
        }
    );
}

#[tokio::test]
async fn nobody_sees_changes_or_decides_about_another_principals() {
    let home = tempfile::tempdir().unwrap();
    let store = SqliteStore::new(home.path());
    let (ada, bob) = (asker("ada", 0), asker("bob", 0));
    let secret = store
        .put(&ada, draft("ada likes tea", MemoryState::Accepted))
        .await
        .unwrap();
    let waits = store
        .put(&ada, draft("ada likes rain", MemoryState::Candidate))
        .await
        .unwrap();
    assert_eq!(store.get(&bob, &secret.id).await.unwrap(), None);
    assert!(store.list(&bob, &all(None)).await.unwrap().is_empty());
    assert!(search(&store, &bob, "tea").await.is_empty());
    assert_eq!(store.counts(&bob).await.unwrap(), MemoryCounts::default());
    let gone = |id: &MemoryId| MemoryError::NotFound(id.clone());
    let no = store
        .decide(&bob, &waits.id, &accept(true))
        .await
        .unwrap_err();
    assert_eq!(no, gone(&waits.id));
    let no = store.delete(&bob, secret.id.clone(), 1).await.unwrap_err();
    assert_eq!(no, gone(&secret.id));
    let no = store
        .update(&bob, secret.id.clone(), 1, MemoryUpdate::default())
        .await
        .unwrap_err();
    assert_eq!(no, gone(&secret.id));
    assert_eq!(
        store.history(&bob, &secret.id).await.unwrap_err(),
        gone(&secret.id)
    );
    let other = MemoryAccess {
        principal: Principal::new("elsewhere", "ada"),
        at: 0,
    };
    assert_eq!(
        store.get(&other, &secret.id).await.unwrap(),
        None,
        "another tenant"
    );
    assert_eq!(search(&store, &ada, "tea").await.len(), 1);
}

#[tokio::test]
async fn lists_are_of_state_shelf_run_and_newest_first() {
    let home = tempfile::tempdir().unwrap();
    let store = SqliteStore::new(home.path());
    for (n, shelf) in [
        Shelf::user(),
        Shelf::project("/w"),
        Shelf::project("/x"),
        Shelf::agent("mcp"),
    ]
    .into_iter()
    .enumerate()
    {
        let state = if n == 1 {
            MemoryState::Accepted
        } else {
            MemoryState::Candidate
        };
        let mut draft = draft(&format!("m{n}"), state);
        draft.shelf = shelf;
        draft.provenance = from_run(&format!("r{}", n % 2));
        store.put(&asker("ada", n as i128), draft).await.unwrap();
    }
    let check = async |filter: MemoryFilter, expect: &[&str]| {
        let records = store.list(&asker("ada", 9), &filter).await.unwrap();
        let contents: Vec<_> = records.iter().map(|r| r.content.as_str()).collect();
        assert_eq!(contents, expect, "{filter:?}");
    };
    check(all(None), &["m3", "m2", "m1", "m0"]).await;
    check(all(Some(MemoryState::Accepted)), &["m1"]).await;
    check(
        MemoryFilter {
            shelves: vec![Shelf::user(), Shelf::project("/x")],
            ..all(None)
        },
        &["m2", "m0"],
    )
    .await;
    check(
        MemoryFilter {
            run: Some(RunId::new("r1")),
            ..all(None)
        },
        &["m3", "m1"],
    )
    .await;
    check(
        MemoryFilter {
            limit: 2,
            ..all(None)
        },
        &["m3", "m2"],
    )
    .await;
    check(
        MemoryFilter {
            files: true,
            ..all(None)
        },
        &[],
    )
    .await;
}

#[tokio::test]
async fn what_has_expired_is_gone_at_once_and_swept_later() {
    let home = tempfile::tempdir().unwrap();
    let store = SqliteStore::new(home.path());
    let short = MemoryDraft {
        ttl: Some(Duration::from_secs(5)),
        ..draft("short lived", MemoryState::Accepted)
    };
    let put = store.put(&asker("ada", 0), short).await.unwrap();
    assert_eq!(put.expires.as_deref(), Some("1970-01-01T00:00:05.000Z"));
    store
        .put(&asker("ada", 0), draft("stays", MemoryState::Accepted))
        .await
        .unwrap();
    assert_eq!(search(&store, &asker("ada", 4), "lived").await.len(), 1);
    let late = asker("ada", 5);
    assert!(search(&store, &late, "lived").await.is_empty());
    assert_eq!(store.get(&late, &put.id).await.unwrap(), None);
    assert_eq!(store.list(&late, &all(None)).await.unwrap().len(), 1);
    assert_eq!(store.sweep(late.at).await.unwrap(), 1);
    assert_eq!(store.sweep(late.at).await.unwrap(), 0);
    assert_eq!(store.counts(&late).await.unwrap().accepted, 1);
    // A write also sweeps.
    let short = MemoryDraft {
        ttl: Some(Duration::from_secs(1)),
        ..draft("also short", MemoryState::Accepted)
    };
    store.put(&late, short).await.unwrap();
    store
        .put(&asker("ada", 60), draft("later", MemoryState::Accepted))
        .await
        .unwrap();
    assert_eq!(store.counts(&late).await.unwrap().accepted, 2);
}

#[tokio::test]
async fn bad_input_is_refused_whole() {
    let home = tempfile::tempdir().unwrap();
    let store = SqliteStore::new(home.path());
    let who = asker("ada", 0);
    let good = draft("good", MemoryState::Accepted);
    for (bad, says) in [
        (draft("bell \u{7}", MemoryState::Accepted), "U+0007"),
        (
            draft(&"x".repeat(1 << 20), MemoryState::Accepted),
            "1048576 bytes",
        ),
        (draft("", MemoryState::Accepted), "no content"),
        (
            MemoryDraft {
                tags: vec!["t".into(); 1_000],
                ..good.clone()
            },
            "1000 tags",
        ),
        (
            MemoryDraft {
                ttl: Some(Duration::ZERO),
                ..good.clone()
            },
            "above 0",
        ),
        (
            MemoryDraft {
                ttl: Some(Duration::MAX),
                ..good.clone()
            },
            "above 0",
        ),
    ] {
        let steps = vec![
            MemoryOperation::Put(draft("before", MemoryState::Accepted)),
            MemoryOperation::Put(bad),
        ];
        let error = store.apply(&who, steps).await.unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(
            store.counts(&who).await.unwrap(),
            MemoryCounts::default(),
            "all or none"
        );
    }
}

#[tokio::test]
async fn a_file_is_replaced_by_a_candidate_only_as_its_writer_saw_it() {
    let home = tempfile::tempdir().unwrap();
    let store = SqliteStore::new(home.path());
    let who = asker("ada", 0);
    let old = store
        .put(&who, file("/memories/a", "one", MemoryState::Accepted))
        .await
        .unwrap();
    let twice = store
        .put(&who, file("/memories/a", "again", MemoryState::Accepted))
        .await;
    assert_eq!(
        twice.unwrap_err(),
        MemoryError::Exists("/memories/a".into())
    );

    let replacing = |content: &str, old: &MemoryRecord, deletes| MemoryDraft {
        replaces: Some(ReplacedRecord {
            id: old.id.clone(),
            revision: old.revision,
        }),
        deletes,
        ..file("/memories/a", content, MemoryState::Candidate)
    };
    let first = store
        .put(&who, replacing("two", &old, false))
        .await
        .unwrap();
    let second = store
        .put(&who, replacing("three", &old, false))
        .await
        .unwrap();
    store.decide(&who, &first.id, &accept(true)).await.unwrap();
    let late = store
        .decide(&who, &second.id, &accept(true))
        .await
        .unwrap_err();
    assert_eq!(
        late,
        MemoryError::Changed(old.id.clone()),
        "it saw another text"
    );
    assert_eq!(
        store.get(&who, &second.id).await.unwrap().unwrap().state,
        MemoryState::Candidate
    );
    assert_eq!(search(&store, &who, "two").await, ["two"]);
    assert!(search(&store, &who, "one").await.is_empty());

    let now = store.get(&who, &first.id).await.unwrap().unwrap();
    let removal = store.put(&who, replacing("", &now, true)).await.unwrap();
    let yes = accept(true);
    store.decide(&who, &removal.id, &yes).await.unwrap();
    assert!(search(&store, &who, "two").await.is_empty());
    let free = store
        .put(&who, file("/memories/a", "four", MemoryState::Accepted))
        .await
        .unwrap();
    assert_eq!(
        free.path.as_deref(),
        Some("/memories/a"),
        "the name is free again"
    );
}

#[tokio::test]
async fn history_keeps_the_last_revisions() {
    let home = tempfile::tempdir().unwrap();
    let store = SqliteStore::new(home.path());
    let who = asker("ada", 0);
    let mut record = store
        .put(&who, draft("v1", MemoryState::Accepted))
        .await
        .unwrap();
    for n in 2..=40 {
        let change = MemoryUpdate {
            content: Some(format!("v{n}")),
            by: "ada".into(),
            ..MemoryUpdate::default()
        };
        record = store
            .update(&who, record.id, record.revision, change)
            .await
            .unwrap();
    }
    let history = store.history(&who, &record.id).await.unwrap();
    assert_eq!(history.len() as u64, MAX_REVISIONS + 1);
    assert_eq!(history.last().unwrap().content, "v40");
    assert_eq!(search(&store, &who, "v40").await, ["v40"]);
    assert!(
        search(&store, &who, "v39").await.is_empty(),
        "old words are not found"
    );
    store.delete(&who, record.id.clone(), 40).await.unwrap();
    let gone = store.history(&who, &record.id).await.unwrap_err();
    assert_eq!(gone, MemoryError::NotFound(record.id));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_racing_updates_and_decisions_exactly_one_wins() {
    let home = tempfile::tempdir().unwrap();
    let store = SqliteStore::new(home.path());
    let who = asker("ada", 0);
    let record = store
        .put(&who, draft("v1", MemoryState::Accepted))
        .await
        .unwrap();
    let waits = store
        .put(&who, draft("waits", MemoryState::Candidate))
        .await
        .unwrap();
    let mut races = Vec::new();
    for n in 0..8 {
        // Each with a connection of its own, as another process would have.
        let store = SqliteStore::new(home.path());
        let (record, waits) = (record.clone(), waits.clone());
        races.push(tokio::spawn(async move {
            let who = asker("ada", 1);
            let change = MemoryUpdate {
                content: Some(format!("by {n}")),
                by: n.to_string(),
                ..MemoryUpdate::default()
            };
            let updated = store.update(&who, record.id, record.revision, change).await;
            let decided = store.decide(&who, &waits.id, &accept(n % 2 == 0)).await;
            (updated, decided)
        }));
    }
    let (mut updates, mut decisions) = (0, 0);
    for race in races {
        let (updated, decided) = race.await.unwrap();
        match updated {
            Ok(_) => updates += 1,
            Err(error) => assert_eq!(error, MemoryError::Changed(record.id.clone())),
        }
        match decided {
            Ok(_) => decisions += 1,
            Err(error) => assert!(matches!(error, MemoryError::Decided(..)), "{error}"),
        }
    }
    assert_eq!((updates, decisions), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_processes_write_and_search_one_file() {
    let home = tempfile::tempdir().unwrap();
    let write = async |home: &Path, who: usize| {
        let store = SqliteStore::new(home);
        for n in 0..50 {
            let text = format!("note {n} of writer{who}");
            store
                .put(&asker("ada", 0), draft(&text, MemoryState::Accepted))
                .await
                .unwrap();
            assert!(!search(&store, &asker("ada", 0), &text).await.is_empty());
        }
    };
    tokio::join!(
        write(home.path(), 1),
        write(home.path(), 2),
        write(home.path(), 3)
    );
    let store = SqliteStore::new(home.path());
    assert_eq!(store.counts(&asker("ada", 0)).await.unwrap().accepted, 150);
}

#[tokio::test]
async fn ten_thousand_on_one_key_are_kept_and_the_queue_has_an_end() {
    let home = tempfile::tempdir().unwrap();
    let store = SqliteStore::new(home.path());
    let who = asker("ada", 0);
    let many = |count: u64, word: &str, state: MemoryState| {
        let put = |n| MemoryOperation::Put(draft(&format!("{word} number {n}"), state));
        (0..count).map(put).collect::<Vec<_>>()
    };
    let notes = many(10_000, "note", MemoryState::Accepted);
    store.apply(&who, notes).await.unwrap();
    let hits = store.search(&who, &query("number 9999")).await.unwrap();
    assert_eq!(hits[0].record.content, "note number 9999");
    assert_eq!(hits.len(), 10);
    // A known text makes no candidate.
    let known = draft("note number 1", MemoryState::Candidate);
    let known = store.put(&who, known).await.unwrap();
    assert_eq!(known.state, MemoryState::Accepted);
    let ideas = many(MAX_CANDIDATES, "idea", MemoryState::Candidate);
    store.apply(&who, ideas).await.unwrap();
    let more = store
        .put(&who, draft("one more", MemoryState::Candidate))
        .await;
    let full = more.unwrap_err();
    assert_eq!(full, MemoryError::Full("candidates", MAX_CANDIDATES));
    assert!(full.to_string().contains("1000 candidates"), "{full}");
}

#[tokio::test]
async fn n6_the_operator_sees_the_candidates_of_its_whole_tenant() {
    let home = tempfile::tempdir().unwrap();
    let store = SqliteStore::new(home.path());
    let (ada, ann) = (asker("ada", 1), asker("token:ann", 2));
    let stranger = MemoryAccess {
        principal: Principal::new("elsewhere", "eve"),
        at: ada.at,
    };
    for (who, content, state) in [
        (&ada, "mine", MemoryState::Candidate),
        (&ann, "hers", MemoryState::Candidate),
        (&ann, "known", MemoryState::Accepted),
        (&stranger, "of another tenant", MemoryState::Candidate),
    ] {
        store.put(who, draft(content, state)).await.unwrap();
    }
    let found = store.candidates(&asker("ada", 3)).await.unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|one| (&*one.record.content, &*one.principal.subject))
        .collect();
    assert_eq!(found, [("hers", "token:ann"), ("mine", "ada")]);
}
