//! The duties of every artifact store, in memory and on disk.

use super::dir::DirArtifacts;
use super::memory::MemoryArtifacts;
use super::*;
use crate::future::run_blocking;
use crate::wait::wait;

fn owner(tenant: &str, subject: &str, run: &str) -> ArtifactOwner {
    ArtifactOwner {
        principal: Principal::new(tenant, subject),
        run: RunId::new(run),
    }
}

/// Runs a test on both stores, with a quota of 1,000 bytes.
fn check(duty: impl Fn(&dyn ArtifactStore)) {
    duty(&MemoryArtifacts::new().with_quota(1000));
    let root = tempfile::tempdir().unwrap();
    duty(&DirArtifacts::new(root.path().join("artifacts")).with_quota(1000));
}

fn put(store: &dyn ArtifactStore, owner: &ArtifactOwner, text: &'static str) -> ArtifactRef {
    wait(store.put(owner, "text/plain", Bytes::from_static(text.as_bytes()))).unwrap()
}

#[test]
fn what_is_stored_is_read_back_whole_and_in_ranges() {
    check(|store| {
        let ada = owner("t", "ada", "r");
        let reference = put(store, &ada, "0123456789");
        assert_eq!(reference, ArtifactRef::of(b"0123456789"));
        #[expect(clippy::reversed_empty_ranges, reason = "a caller may ask for one")]
        for (range, expect) in [
            (0..10, "0123456789"),
            (0..u64::MAX, "0123456789"),
            (3..5, "34"),
            (8..99, "89"),
            (10..20, ""),
            (50..60, ""),
            (4..4, ""),
            (6..2, ""),
        ] {
            assert_eq!(
                wait(store.read(&ada, &reference, range.clone())).unwrap(),
                expect,
                "{range:?}"
            );
        }
        let info = wait(store.info(&ada, &reference)).unwrap();
        assert_eq!(
            (info.bytes, info.media_type.as_str(), info.run.as_str()),
            (10, "text/plain", "r")
        );
        assert!(info.created.ends_with('Z'));
        let empty = put(store, &ada, "");
        assert_eq!(wait(store.read(&ada, &empty, 0..9)).unwrap(), "");
    });
}

#[test]
fn a_ref_is_good_in_its_own_run_alone() {
    check(|store| {
        let ada = owner("t", "ada", "r");
        let reference = put(store, &ada, "mine");
        let strangers = [
            owner("t", "ada", "s"),
            owner("t", "bob", "r"),
            owner("u", "ada", "r"),
            owner("t", "adar", ""),
            owner("ta", "da", "r"),
            owner("../t", "ada", "r"),
        ];
        for stranger in &strangers {
            let not_found = |e: ArtifactError| matches!(e, ArtifactError::NotFound(_));
            assert!(
                not_found(wait(store.read(stranger, &reference, 0..9)).unwrap_err()),
                "{stranger:?}"
            );
            assert!(
                not_found(wait(store.info(stranger, &reference)).unwrap_err()),
                "{stranger:?}"
            );
        }
        let unknown = ArtifactRef::of(b"never stored");
        assert!(wait(store.read(&ada, &unknown, 0..1)).is_err());
    });
}

#[test]
fn runs_and_people_are_listed_apart() {
    check(|store| {
        let (r, s, bob) = (
            owner("t", "ada", "r"),
            owner("t", "ada", "s"),
            owner("t", "bob", "r"),
        );
        let one = put(store, &r, "one");
        let two = put(store, &s, "two");
        put(store, &s, "one");
        put(store, &bob, "bob's");
        let list = |run: Option<&RunId>| {
            let found = wait(store.list(&r.principal, run)).unwrap();
            let mut refs: Vec<_> = found.into_iter().map(|info| info.reference).collect();
            refs.sort();
            refs
        };
        let mut of_s = vec![one.clone(), two.clone()];
        of_s.sort();
        let mut all = vec![one.clone(), one.clone(), two];
        all.sort();
        assert_eq!(list(None), all);
        assert_eq!(list(Some(&r.run)), [one]);
        assert_eq!(list(Some(&s.run)), of_s);
        assert!(list(Some(&RunId::new("none"))).is_empty());
    });
}

#[test]
fn a_tenants_quota_is_its_own_and_the_same_bytes_count_once() {
    check(|store| {
        let bytes = |n: usize| Bytes::from(vec![b'x'; n]);
        let ada = owner("t", "ada", "r");
        store.pin(&ada);
        wait(store.put(&ada, "text/plain", bytes(600))).unwrap();
        wait(store.put(&ada, "text/plain", bytes(600))).unwrap();
        let full = wait(store.put(&owner("t", "bob", "s"), "text/plain", bytes(500))).unwrap_err();
        assert!(
            matches!(
                full,
                ArtifactError::Quota {
                    bytes: 500,
                    left: 400
                }
            ),
            "{full}"
        );
        let large =
            wait(store.put(&owner("u", "eve", "r"), "text/plain", bytes(1001))).unwrap_err();
        assert!(
            matches!(
                large,
                ArtifactError::Quota {
                    bytes: 1001,
                    left: 1000
                }
            ),
            "{large}"
        );
        wait(store.put(&ada, "text/plain", bytes(400))).unwrap();
        wait(store.put(&owner("u", "eve", "r"), "text/plain", bytes(1000))).unwrap();
    });
}

#[test]
fn j14_what_no_run_in_use_holds_makes_room_the_oldest_first() {
    check(|store| {
        let bytes = |n: u8, size: usize| Bytes::from(vec![n; size]);
        let put = |owner: &ArtifactOwner, n: u8, size: usize| {
            let put = wait(store.put(owner, "text/plain", bytes(n, size)));
            put.unwrap_or_else(|e| panic!("{n}: {e}"))
        };
        let (old, held, new) = (
            owner("t", "ada", "old"),
            owner("t", "ada", "held"),
            owner("t", "bob", "new"),
        );
        store.pin(&held);
        let first = put(&old, 1, 300);
        let kept = put(&held, 2, 300);
        let second = put(&old, 3, 300);
        // The first is removed; the second fits, with a tenth of the quota to spare.
        let third = put(&new, 4, 200);
        let has = |owner: &ArtifactOwner, reference: &ArtifactRef| {
            wait(store.info(owner, reference)).is_ok()
        };
        assert!(!has(&old, &first) && has(&old, &second) && has(&held, &kept));
        assert_eq!(
            wait(store.usage(&old.principal)).unwrap(),
            QuotaUsage {
                used: 800,
                limit: 1000
            }
        );
        // What a run in use holds is never removed: an artifact that cannot fit removes nothing.
        let full = wait(store.put(&new, "text/plain", bytes(5, 701))).unwrap_err();
        assert!(
            matches!(
                full,
                ArtifactError::Quota {
                    bytes: 701,
                    left: 700
                }
            ),
            "{full}"
        );
        assert!(full.to_string().contains("of the quota"), "{full}");
        assert!(has(&old, &second) && has(&new, &third));
        put(&new, 6, 700);
        assert!(!has(&old, &second) && !has(&new, &third) && has(&held, &kept));
    });
}

#[test]
fn a_ref_is_a_hash_and_nothing_else() {
    let good = format!("sha256-{}", "0a".repeat(32));
    assert_eq!(ArtifactRef::parse(&good).unwrap().as_str(), good);
    for bad in [
        "",
        "sha256-",
        "sha256-../../../../etc/passwd",
        &good[1..],
        &good.to_uppercase(),
        &format!("{good}0"),
    ] {
        assert!(ArtifactRef::parse(bad).is_none(), "{bad}");
    }
}

#[test]
fn what_is_being_stored_is_stored_where_nothing_waits_for_it() {
    // A single thread for blocking work runs its jobs in order.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(1)
        .build()
        .unwrap();
    check(|store| {
        let ada = owner("t", "ada", "r");
        runtime.block_on(async {
            drop(store.put(&ada, "text/plain", Bytes::from_static(b"whole")));
            let source = Arc::new(Bytes::from_static(b"of any length"));
            drop(store.put_from(&ada, "text/plain", source));
            run_blocking(|| ()).await.unwrap();
            for text in ["whole", "of any length"] {
                let reference = ArtifactRef::of(text.as_bytes());
                let read = store.read(&ada, &reference, 0..99).await;
                assert_eq!(read.unwrap(), text);
            }
        });
    });
}
