//! The run index: what it stores, what it refuses, and several processes at once.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use haft::audit::RunStart;
use haft::audit::index::{ClosedEvent, IndexError, RunFilter, RunIndex as _, RunState};
use haft::call::{Principal, RunId};
use haft_store::sqlite::SqliteStore;

fn start(subject: &str) -> RunStart {
    RunStart {
        principal: Principal::local(subject),
        entry_point: "call".into(),
        workspace: Some("/w".into()),
        profile: "workspace".into(),
    }
}

fn closed() -> ClosedEvent {
    ClosedEvent {
        count: 5,
        head: "aa".into(),
        calls: 2,
        seal: "bb".into(),
    }
}

#[tokio::test]
async fn a_run_is_kept_from_its_beginning_to_its_end() {
    let home = tempfile::tempdir().unwrap();
    let store = SqliteStore::new(home.path());
    let run = RunId::new("r1");
    assert_eq!(store.get(&run).await.unwrap(), None);
    store
        .open(&run, &start("ada"), 1_000_000_000)
        .await
        .unwrap();
    let exists = store.open(&run, &start("bob"), 2).await.unwrap_err();
    assert_eq!(exists, IndexError::Exists(run.clone()));

    store.progress(&run, 1, true).await.unwrap();
    let entry = store.get(&run).await.unwrap().unwrap();
    assert_eq!(
        (entry.state, entry.calls, entry.closed),
        (RunState::Suspended, 1, None)
    );

    store.close(&run, &closed(), 2_500_000_000).await.unwrap();
    let entry = store.get(&run).await.unwrap().unwrap();
    assert_eq!((entry.state, entry.calls), (RunState::Closed, 2));
    assert_eq!((entry.start, entry.closed), (start("ada"), Some(closed())));
    assert_eq!(entry.started, "1970-01-01T00:00:01.000Z");
    assert_eq!(entry.ended.as_deref(), Some("1970-01-01T00:00:02.500Z"));

    let no = IndexError::NotOpen(run.clone());
    let other = ClosedEvent {
        seal: "cc".into(),
        ..closed()
    };
    assert_eq!(
        store.close(&run, &other, 3).await.unwrap_err(),
        no,
        "sealed once"
    );
    assert_eq!(store.progress(&run, 9, false).await.unwrap_err(), no);
    let unknown = RunId::new("r2");
    assert_eq!(
        store.close(&unknown, &closed(), 3).await.unwrap_err(),
        IndexError::NotOpen(unknown)
    );
}

#[tokio::test]
async fn runs_are_listed_newest_first_of_whom_it_is_asked() {
    let home = tempfile::tempdir().unwrap();
    let store = SqliteStore::new(home.path());
    for (n, subject) in ["ada", "bob", "ada", "ada"].into_iter().enumerate() {
        let run = RunId::new(format!("r{n}"));
        store
            .open(&run, &start(subject), 10 + n as i128)
            .await
            .unwrap();
    }
    let ids = |entries: Vec<haft::audit::index::RunEntry>| -> Vec<String> {
        entries.iter().map(|entry| entry.run.to_string()).collect()
    };
    assert_eq!(
        ids(store.list(&RunFilter::newest(3)).await.unwrap()),
        ["r3", "r2", "r1"]
    );
    let of = |principal| RunFilter {
        principal: Some(principal),
        ..RunFilter::newest(9)
    };
    let ada = Principal::local("ada");
    assert_eq!(ids(store.list(&of(ada)).await.unwrap()), ["r3", "r2", "r0"]);
    let stranger = Principal::new("other", "ada");
    assert!(store.list(&of(stranger)).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_was_kept_is_there_after_a_restart_and_private() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().join("state/haft");
    let run = RunId::new("r1");
    let first = SqliteStore::new(&home);
    assert!(!home.exists(), "made before it is needed");
    first.open(&run, &start("ada"), 1).await.unwrap();
    // As a killed process leaves it: the log is not checkpointed.
    drop(first);
    let second = SqliteStore::new(&home);
    assert!(second.get(&run).await.unwrap().is_some());
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home), 0o700);
    for entry in std::fs::read_dir(&home).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    second.shut_down().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_stores_on_one_file_wait_for_one_another() {
    // Separate stores share no memory: SQLite sees them as processes. All of them make the schema.
    let home = tempfile::tempdir().unwrap();
    let tasks: Vec<_> = (0..12)
        .map(|n| {
            let store = SqliteStore::new(home.path());
            tokio::spawn(async move {
                for m in 0..10 {
                    let run = RunId::new(format!("r{n}-{m}"));
                    store.open(&run, &start("ada"), n * 100 + m).await?;
                    store.close(&run, &closed(), n * 100 + m).await?;
                }
                Ok::<_, IndexError>(())
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let store = SqliteStore::new(home.path());
    assert_eq!(
        store.list(&RunFilter::newest(1000)).await.unwrap().len(),
        120
    );
}

#[tokio::test]
async fn a_database_that_is_none_or_newer_is_an_error_and_stays_as_it_is() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("haft.db");
    std::fs::write(
        &file,
        "no database, though long enough to be looked at".repeat(10),
    )
    .unwrap();
    let before = std::fs::read(&file).unwrap();
    let store = SqliteStore::new(home.path());
    let error = store.list(&RunFilter::newest(1)).await.unwrap_err();
    assert!(error.to_string().contains("not a database"), "{error}");
    assert_eq!(std::fs::read(&file).unwrap(), before);

    let home = tempfile::tempdir().unwrap();
    let store = SqliteStore::new(home.path());
    store.list(&RunFilter::newest(1)).await.unwrap();
    store.shut_down().await.unwrap();
    // The schema's version is the big-endian word at byte 60 of the file's header.
    let file = home.path().join("haft.db");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[63] = 99;
    std::fs::write(&file, bytes).unwrap();
    let error = SqliteStore::new(home.path())
        .list(&RunFilter::newest(1))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("newer haft"), "{error}");
}
