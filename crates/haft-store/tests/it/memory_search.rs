//! Search in the memory: what finds what, in which order, whatever the text and query contain.
#![expect(
    clippy::unwrap_used,
    reason = "a test's preparation that fails is a failed test"
)]

use haft::memory::{MemoryError, MemoryState, MemoryStore as _, Shelf};
use haft_store::sqlite::SqliteStore;

use crate::memory::{asker, draft, query};

/// Asserts what each query finds among these memories, the best first.
async fn check(memories: &[&str], rows: &[(&str, &[usize])]) {
    let home = tempfile::tempdir().unwrap();
    let store = SqliteStore::new(home.path());
    for (n, memory) in memories.iter().enumerate() {
        let at = asker("ada", i128::try_from(n).unwrap());
        store
            .put(&at, draft(memory, MemoryState::Accepted))
            .await
            .unwrap();
    }
    for (text, expect) in rows {
        let hits = store.search(&asker("ada", 99), &query(text)).await.unwrap();
        let position = |content: &str| memories.iter().position(|m| *m == content).unwrap();
        let found: Vec<usize> = hits
            .iter()
            .map(|hit| position(&hit.record.content))
            .collect();
        assert_eq!(found, *expect, "{text:?}");
        let falls = hits
            .windows(2)
            .all(|pair| pair[0].record.id != pair[1].record.id);
        assert!(falls, "{text:?}: one twice");
    }
}

#[tokio::test]
async fn words_are_found_in_any_form() {
    check(
        &[
            "Deploys run on Fridays only, says Ana",
            "the function getUserName lives in user_store.rs",
            "authentication uses OAuth tokens",
            "Das Passwort für Jürgen liegt im Tresor",
        ],
        &[
            ("deploy", &[0]),
            ("DEPLOYING", &[0]),
            ("user", &[1]),
            ("get_user_name", &[1]),
            ("getUserName", &[1]),
            ("username", &[]),
            ("user_name", &[1]),
            ("auth", &[2]),
            ("jurgen", &[3]),
            ("what are the tokens of oauth?", &[2]),
            ("nothing such", &[]),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_chinese_memory_is_found_by_a_chinese_word() {
    check(
        &[
            "生产数据库的地址是 db.internal，端口 5432",
            "部署服务之前先运行测试",
            "テストはデプロイの前に実行する",
            "배포하기 전에 테스트를 실행한다",
            "ทดสอบก่อนนำขึ้นระบบ",
        ],
        &[
            ("数据库", &[0]),
            ("部署", &[1]),
            ("测试", &[1]),
            ("端口 5432", &[0]),
            ("库", &[0]),
            ("据数", &[]),
            ("デプロイ", &[2]),
            ("테스트", &[3]),
            ("ทดสอบ", &[4]),
        ],
    )
    .await;
}

#[tokio::test]
async fn all_words_come_before_some_and_of_equals_the_newest_is_first() {
    check(
        &[
            "build with cargo",
            "cargo build cargo build cargo",
            "deploy the build with make",
            "build with make",
            "build with ninja",
        ],
        &[
            ("make deploy", &[2, 3]),
            ("ninja", &[4]),
            // A word that nearly all of them contain ranks none above another.
            ("with", &[4, 3, 2, 0]),
        ],
    )
    .await;
}

#[tokio::test]
async fn syntax_of_sql_and_of_the_index_is_only_text() {
    let memories = [
        "'; DROP TABLE memory; --",
        "words:secret OR NEAR(a b) NOT c* ^d \"quoted\"",
        "100% _under_ \\ back",
    ];
    check(
        &memories,
        &[
            ("'; DROP TABLE memory; --", &[0]),
            ("words:secret", &[1]),
            ("\"quoted", &[1]),
            ("NEAR(a b)", &[1]),
            ("NOT zebra", &[1]),
            ("c*", &[1]),
            ("secret AND", &[1]),
            ("under", &[2]),
            ("100%", &[2]),
        ],
    )
    .await;
    let home = tempfile::tempdir().unwrap();
    let store = SqliteStore::new(home.path());
    let who = asker("ada", 0);
    for text in memories {
        let put = store
            .put(&who, draft(text, MemoryState::Accepted))
            .await
            .unwrap();
        let mut shelf = draft(text, MemoryState::Accepted);
        shelf.shelf = Shelf::project(text);
        shelf.tags = vec![text.into()];
        let other = store.put(&who, shelf.clone()).await.unwrap();
        assert_eq!((put.content.as_str(), other.content.as_str()), (text, text));
        let mut on_it = query(text);
        on_it.shelves = vec![shelf.shelf];
        let hits = store.search(&who, &on_it).await.unwrap();
        assert_eq!(hits.len(), 1);
        assert_eq!(hits[0].record, other);
    }
}

#[tokio::test]
async fn a_query_without_words_or_without_end_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let store = SqliteStore::new(home.path());
    let who = asker("ada", 0);
    store
        .put(&who, draft("something", MemoryState::Accepted))
        .await
        .unwrap();
    for empty in ["", "   ", "\"*^()-:", "\0\u{7}", "…"] {
        let refused = store.search(&who, &query(empty)).await.unwrap_err();
        assert_eq!(refused, MemoryError::NoWords, "{empty:?}");
    }
    let long = store
        .search(&who, &query(&"word ".repeat(1_000)))
        .await
        .unwrap_err();
    assert!(long.to_string().contains("at most 1000"), "{long}");
    for odd in [
        "a\0b",
        &"x".repeat(900),
        &"界".repeat(900),
        &"(z".repeat(450),
    ] {
        store.search(&who, &query(odd)).await.unwrap();
    }
}
