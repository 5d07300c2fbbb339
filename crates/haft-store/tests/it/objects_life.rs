//! How long artifacts live in a bucket: the tests move the clock by making objects older.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use haft::artifact::{ArtifactError, ArtifactRef, ArtifactStore as _};
use haft::call::Principal;
use haft_store::artifacts::RetentionLimits;

use crate::objects::{owner, put};
use crate::places::{PREFIX, Place};
use crate::server::Server;
use crate::waiting::wait;

const DAY: Duration = Duration::from_hours(24);

/// Runs the test on the buckets whose objects can be made older.
fn check(life: impl Fn(&Place)) {
    life(&Place::local());
    if let Some(server) = Server::start() {
        life(&Place::s3(&Arc::new(server)));
    }
}

#[test]
fn an_artifact_lives_seven_days_from_the_end_of_its_run_and_a_day_at_most() {
    check(|place| {
        let store = place.open(RetentionLimits::default());
        let (ada, eve) = (owner("t", "ada", "r"), owner("t", "eve", "s"));
        let old = put(&store, &ada, "old");
        put(&store, &eve, "other");
        place.age(PREFIX, 6);
        assert_eq!(wait(store.sweep()).unwrap(), 0, "six days");
        place.age(PREFIX, 1);
        assert_eq!(wait(store.sweep()).unwrap(), 0, "seven days");
        let young = put(&store, &ada, "young");
        place.age(PREFIX, 2);
        assert_eq!(
            wait(store.sweep()).unwrap(),
            2,
            "nine days: {:?}",
            place.keys()
        );
        let gone = wait(store.read(&ada, &old, 0..9)).unwrap_err();
        assert!(matches!(gone, ArtifactError::NotFound(_)), "{gone}");
        assert_eq!(wait(store.read(&ada, &young, 0..9)).unwrap(), "young");
        place.age(PREFIX, 9);
        assert_eq!(wait(store.sweep()).unwrap(), 1);
        let left = place.keys();
        assert!(
            left.iter()
                .all(|key| key.ends_with("/clock") || key.ends_with("/swept")),
            "{left:?}"
        );
    });
}

#[test]
fn what_a_session_of_another_haft_holds_stays() {
    check(|place| {
        let (ada, bob) = (owner("t", "ada", "r"), owner("t", "bob", "r"));
        let first = place.open(RetentionLimits::default());
        let held = put(&first, &ada, "held");
        let loose = put(&first, &bob, "loose");
        drop(first);
        place.age(PREFIX, 20);
        // A session continues the run: the store marks it as used by itself, though it stores nothing.
        let holder = place.open(RetentionLimits::default());
        holder.pin(&ada);
        wait_until(|| place.fresh().iter().any(|key| key.ends_with("/run.json")));
        let sweeper = place.open(RetentionLimits::default());
        assert_eq!(wait(sweeper.sweep()).unwrap(), 1);
        assert_eq!(wait(sweeper.read(&ada, &held, 0..9)).unwrap(), "held");
        let gone = wait(sweeper.read(&bob, &loose, 0..9)).unwrap_err();
        assert!(matches!(gone, ArtifactError::NotFound(_)), "{gone}");
        // A holder never sweeps its own artifacts, whatever the clocks say.
        place.age(PREFIX, 20);
        assert_eq!(wait(holder.sweep()).unwrap(), 0);
        holder.pin(&ada);
        holder.unpin(&ada);
        assert_eq!(
            wait(holder.sweep()).unwrap(),
            0,
            "one of two sessions ended"
        );
        holder.unpin(&ada);
        assert_eq!(wait(holder.sweep()).unwrap(), 1);
        assert!(place.blobs().is_empty());
    });
}

/// Polls, because nothing reports what a thread of the store does.
fn wait_until(done: impl Fn() -> bool) {
    for _ in 0..200 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("never came");
}

#[test]
fn a_full_quota_makes_room_of_what_expired() {
    check(|place| {
        let terms = RetentionLimits {
            quota: 10,
            ..RetentionLimits::default()
        };
        put(&place.open(terms), &owner("t", "ada", "r"), "12345678");
        let bytes = Bytes::from_static(b"abc");
        let bob = owner("t", "bob", "s");
        let store = place.open(terms);
        let full = wait(store.put(&bob, "text/plain", bytes.clone())).unwrap_err();
        assert!(
            matches!(full, ArtifactError::Quota { bytes: 3, left: 2 }),
            "{full}"
        );
        place.age(PREFIX, 9);
        wait(store.put(&bob, "text/plain", bytes)).unwrap();
        assert_eq!(place.blobs().len(), 1);
    });
}

#[test]
fn j14_the_oldest_that_no_run_in_use_holds_makes_room() {
    check(|place| {
        let terms = RetentionLimits {
            quota: 10,
            ..RetentionLimits::default()
        };
        let (old, used) = (owner("t", "ada", "old"), owner("t", "ada", "used"));
        let first = place.open(terms);
        let gone = put(&first, &old, "123");
        let held = put(&first, &used, "456");
        let usage = wait(first.usage(&old.principal)).unwrap();
        assert_eq!((usage.used, usage.limit), (6, 10));
        place.age(PREFIX, 2);
        // Another haft has a session of the one run; no process has one of the other.
        let store = place.open(terms);
        store.pin(&used);
        wait_until(|| place.fresh().iter().any(|key| key.ends_with("/run.json")));
        let new = put(&store, &owner("t", "bob", "new"), "789ab");
        assert!(wait(store.info(&old, &gone)).is_err(), "{:?}", place.keys());
        assert!(wait(store.info(&used, &held)).is_ok());
        let full = wait(store.put(&old, "text/plain", Bytes::from_static(b"cdefg")));
        let full = full.unwrap_err();
        assert!(
            matches!(full, ArtifactError::Quota { bytes: 5, left: 2 }),
            "{full}"
        );
        assert!(wait(store.info(&owner("t", "bob", "new"), &new)).is_ok());
    });
}

#[test]
fn a_sweep_is_due_once_in_a_while_whoever_made_the_last() {
    check(|place| {
        let store = || place.open(RetentionLimits::default());
        put(&store(), &owner("t", "ada", "r"), "old");
        let swept = || wait(store().sweep_if_due(DAY)).unwrap();
        assert_eq!(swept(), Some(0), "never swept before");
        assert_eq!(swept(), None, "just swept");
        assert_eq!(place.age("/swept", 2), 1);
        assert_eq!(
            place.age("/run.json", 9) + place.age("/v1/", 9) - place.keys().len(),
            1
        );
        assert_eq!(swept(), Some(1));
        assert_eq!(swept(), None);
        place.age("/swept", -2);
        assert_eq!(swept(), Some(0), "a clock was set back");
    });
}

#[test]
fn a_store_that_is_used_sweeps_by_itself() {
    check(|place| {
        put(
            &place.open(RetentionLimits::default()),
            &owner("t", "ada", "r"),
            "old",
        );
        place.age(PREFIX, 9);
        let terms = RetentionLimits {
            sweep: Some(DAY),
            ..RetentionLimits::default()
        };
        let store = place.open(terms);
        let bob = Principal::new("t", "bob");
        assert!(wait(store.list(&bob, None)).unwrap().is_empty());
        wait_until(|| place.blobs().is_empty());
    });
}

#[test]
fn what_others_keep_in_the_bucket_is_left_alone() {
    check(|place| {
        let hash = "0a".repeat(16);
        let others = [
            "elsewhere/a.txt".to_owned(),
            format!("{PREFIX}/mine.txt"),
            format!("{PREFIX}/v1/notes"),
            format!("{PREFIX}/v1/a/b/c/run.json"),
            format!("{PREFIX}/v1/{hash}/{hash}/{hash}/more/1-2-3"),
        ];
        for key in &others {
            place.write(key, b"theirs");
        }
        let store = place.open(RetentionLimits::default());
        let ada = owner("t", "ada", "r");
        put(&store, &ada, "ours");
        let all = place.age("", 30);
        assert_eq!(all, others.len() + 2, "{:?}", place.keys());
        assert_eq!(wait(store.sweep()).unwrap(), 1);
        let left = place.keys();
        for key in &others {
            assert!(left.contains(key), "{key}: {left:?}");
        }
        assert!(!left.iter().any(|key| key.ends_with("-dGV4dC9wbGFpbg")));
        assert!(wait(store.list(&ada.principal, None)).unwrap().is_empty());
    });
}

#[test]
fn what_is_being_stored_is_stored_where_nothing_waits_for_it() {
    check(|place| {
        let store = place.open(RetentionLimits::default());
        let ada = owner("t", "ada", "r");
        drop(store.put(&ada, "text/plain", Bytes::from_static(b"whole")));
        let reference = ArtifactRef::of(b"whole");
        wait_until(|| wait(store.info(&ada, &reference)).is_ok());
        assert_eq!(wait(store.read(&ada, &reference, 0..99)).unwrap(), "whole");
    });
}
