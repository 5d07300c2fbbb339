//! The duties of every artifact store, over buckets in memory, in a folder and on a real S3 server.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::sync::Arc;

use bytes::Bytes;
use haft::artifact::{ArtifactError, ArtifactOwner, ArtifactRef, ArtifactStore};
use haft::call::{Principal, RunId};
use haft::future::BoxFuture;
use haft_store::artifacts::{Dial, Io, RetentionLimits};

use crate::places::{Place, open_s3_by};
use crate::server::Server;
use crate::waiting::wait;

pub(crate) fn owner(tenant: &str, subject: &str, run: &str) -> ArtifactOwner {
    ArtifactOwner {
        principal: Principal::new(tenant, subject),
        run: RunId::new(run),
    }
}

pub(crate) fn put(store: &dyn ArtifactStore, owner: &ArtifactOwner, text: &str) -> ArtifactRef {
    let bytes = Bytes::copy_from_slice(text.as_bytes());
    wait(store.put(owner, "text/plain", bytes)).unwrap()
}

/// Returns every available kind of bucket, each empty.
fn places() -> Vec<Place> {
    let mut places = vec![Place::memory(), Place::local()];
    places.extend(Server::start().map(|server| Place::s3(&Arc::new(server))));
    places
}

/// Runs a duty over every bucket, with a quota of 1,000 bytes.
fn check(duty: impl Fn(&Place, &dyn ArtifactStore)) {
    let terms = RetentionLimits {
        quota: 1000,
        ..RetentionLimits::default()
    };
    for place in places() {
        let store = place.open(terms);
        duty(&place, &store);
    }
}

#[test]
fn what_is_stored_is_read_back_whole_and_in_ranges_by_every_haft() {
    check(|place, store| {
        let ada = owner("t", "ada", "r");
        let reference = put(store, &ada, "0123456789");
        assert_eq!(reference, ArtifactRef::of(b"0123456789"));
        let empty = put(store, &ada, "");
        let other = place.open(RetentionLimits::default());
        for store in [store, &other] {
            #[expect(clippy::reversed_empty_ranges, reason = "a caller may ask for one")]
            for (range, expect) in [
                (3..5, "34"),
                (0..10, "0123456789"),
                (0..u64::MAX, "0123456789"),
                (3..5, "34"),
                (8..99, "89"),
                (10..20, ""),
                (50..60, ""),
                (4..4, ""),
                (6..2, ""),
            ] {
                let read = wait(store.read(&ada, &reference, range.clone())).unwrap();
                assert_eq!(read, expect, "{range:?} {place:?}");
            }
            let info = wait(store.info(&ada, &reference)).unwrap();
            assert_eq!(
                (info.bytes, info.media_type.as_str(), info.run.as_str()),
                (10, "text/plain", "r")
            );
            assert!(info.created.ends_with('Z'));
            assert_eq!(wait(store.read(&ada, &empty, 0..9)).unwrap(), "");
        }
    });
}

#[test]
fn f3_what_is_too_large_for_memory_is_stored_in_parts() {
    // Two parts of 8 MiB and a rest.
    let bytes: Vec<u8> = (0..17_u32 << 20).map(|n| (n % 251) as u8).collect();
    let bytes = Bytes::from(bytes);
    for place in places() {
        let store = place.open(RetentionLimits::default());
        let ada = owner("t", "ada", "r");
        let source = Arc::new(bytes.clone());
        let reference = wait(store.put_from(&ada, "text/plain", source)).unwrap();
        assert_eq!(reference, ArtifactRef::of(&bytes));
        let other = place.open(RetentionLimits::default());
        assert_eq!(wait(other.info(&ada, &reference)).unwrap().bytes, 17 << 20);
        let read = wait(other.read(&ada, &reference, 0..u64::MAX)).unwrap();
        assert!(read == bytes, "{place:?}");
    }
}

#[test]
fn a_media_type_of_any_form_comes_back() {
    check(|_, store| {
        let ada = owner("t", "ada", "r");
        let long = "x/".repeat(200);
        for (n, (given, kept)) in [
            ("", ""),
            ("text/html; charset=utf-8", "text/html; charset=utf-8"),
            ("../../a b%2F\n\u{202e}ü", "../../a b%2F\n\u{202e}ü"),
            (&long, &long[..128]),
        ]
        .into_iter()
        .enumerate()
        {
            let bytes = Bytes::from(vec![b'x'; n + 1]);
            let reference = wait(store.put(&ada, given, bytes)).unwrap();
            assert_eq!(wait(store.info(&ada, &reference)).unwrap().media_type, kept);
            let listed = wait(store.list(&ada.principal, None)).unwrap();
            assert_eq!(listed[0].media_type, kept);
        }
    });
}

#[test]
fn the_same_bytes_are_kept_once_and_keep_their_time() {
    check(|place, store| {
        let ada = owner("t", "ada", "r");
        let reference = put(store, &ada, "same");
        let made = wait(store.info(&ada, &reference)).unwrap().created;
        put(store, &ada, "same");
        put(&place.open(RetentionLimits::default()), &ada, "same");
        assert_eq!(place.blobs().len(), 1, "{:?}", place.keys());
        assert_eq!(wait(store.info(&ada, &reference)).unwrap().created, made);
        assert_eq!(wait(store.list(&ada.principal, None)).unwrap().len(), 1);
    });
}

#[test]
fn a_ref_is_good_in_its_own_run_alone() {
    check(|place, store| {
        let ada = owner("t", "ada", "r");
        let reference = put(store, &ada, "mine");
        let strangers = [
            owner("t", "ada", "s"),
            owner("t", "bob", "r"),
            owner("u", "ada", "r"),
            owner("t", "adar", ""),
            owner("ta", "da", "r"),
            owner("../t", "ada", "r"),
            owner("t", "ada", "r/../r"),
        ];
        let not_found = |e: ArtifactError| matches!(e, ArtifactError::NotFound(_));
        for stranger in &strangers {
            let read = wait(store.read(stranger, &reference, 0..9)).unwrap_err();
            assert!(not_found(read), "{stranger:?}");
            let info = wait(store.info(stranger, &reference)).unwrap_err();
            assert!(not_found(info), "{stranger:?}");
        }
        let unknown = ArtifactRef::of(b"never stored");
        assert!(not_found(
            wait(store.read(&ada, &unknown, 0..1)).unwrap_err()
        ));
        // No key contains a name.
        let keys = place.keys().join("\n");
        assert!(!keys.contains("ada") && !keys.contains("/r/"), "{keys}");
    });
}

#[test]
fn runs_and_people_are_listed_apart_the_newest_first() {
    check(|place, store| {
        let (r, s, bob) = (
            owner("t", "ada", "r"),
            owner("t", "ada", "s"),
            owner("t", "bob", "r"),
        );
        let one = put(store, &r, "one");
        let two = put(store, &s, "two");
        put(store, &s, "one");
        put(store, &bob, "bob's");
        let other = place.open(RetentionLimits::default());
        for store in [store, &other, &other] {
            let list = |run: Option<&RunId>| {
                let found = wait(store.list(&r.principal, run)).unwrap();
                let made: Vec<_> = found.iter().map(|info| info.created.clone()).collect();
                assert!(made.is_sorted_by(|a, b| a >= b), "{made:?}");
                let told = |info: haft::artifact::ArtifactInfo| {
                    (info.reference, info.run.as_str().to_owned())
                };
                found.into_iter().map(told).collect::<Vec<_>>()
            };
            let at = |reference: &ArtifactRef, run: &str| (reference.clone(), run.to_owned());
            assert_eq!(list(None), [at(&one, "s"), at(&two, "s"), at(&one, "r")]);
            assert_eq!(list(Some(&r.run)), [at(&one, "r")]);
            assert_eq!(list(Some(&s.run)), [at(&one, "s"), at(&two, "s")]);
            assert!(list(Some(&RunId::new("none"))).is_empty());
        }
        let nobody = Principal::new("t", "nobody");
        assert!(wait(store.list(&nobody, None)).unwrap().is_empty());
    });
}

#[test]
fn more_than_a_page_of_artifacts_is_listed() {
    let Some(server) = Server::start() else {
        return;
    };
    let place = Place::s3(&Arc::new(server));
    let store = place.open(RetentionLimits::default());
    let ada = owner("t", "ada", "r");
    // The store writes one, the test adds the others: a listing has 1,000 per page.
    put(&store, &ada, "x");
    let folder = place.blobs()[0].rsplitn(3, '/').last().unwrap().to_owned();
    for n in 0..1010 {
        let digits =
            &ArtifactRef::of(&[n.to_string().as_bytes()].concat()).as_str()[7..].to_owned();
        place.write(&format!("{folder}/{digits}/{n:019}-1-dA"), b"x");
    }
    let listed = wait(store.list(&ada.principal, None)).unwrap();
    assert_eq!(listed.len(), 1011);
    assert_eq!(listed[0].reference, ArtifactRef::of(b"x"));
    assert_eq!(listed[1].media_type, "t");
}

#[test]
fn a_tenants_quota_is_its_own_and_the_same_bytes_count_once() {
    check(|place, store| {
        let bytes = |n: usize| Bytes::from(vec![b'x'; n]);
        let ada = owner("t", "ada", "r");
        wait(store.put(&ada, "text/plain", bytes(600))).unwrap();
        wait(store.put(&ada, "text/plain", bytes(600))).unwrap();
        let terms = RetentionLimits {
            quota: 1000,
            ..RetentionLimits::default()
        };
        let bob = owner("t", "bob", "s");
        for store in [store, &place.open(terms)] {
            let full = wait(store.put(&bob, "text/plain", bytes(500))).unwrap_err();
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
        }
        let eve = owner("u", "eve", "r");
        let large = wait(store.put(&eve, "text/plain", bytes(1001))).unwrap_err();
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
        wait(store.put(&eve, "text/plain", bytes(1000))).unwrap();
        let full = wait(store.put(&bob, "text/plain", bytes(1))).unwrap_err();
        assert!(
            matches!(full, ArtifactError::Quota { bytes: 1, left: 0 }),
            "{full}"
        );
    });
}

#[test]
fn many_threads_and_runtimes_use_it_at_once() {
    check(|place, _| {
        let terms = RetentionLimits {
            quota: 4000,
            ..RetentionLimits::default()
        };
        let store = Arc::new(place.open(terms));
        let work = async |n: usize| {
            let ada = owner("t", "ada", &format!("r{}", n % 3));
            for m in 0..4 {
                let shared = format!("shared {m}");
                let own = format!("own {n} {m}");
                let reference = store.put(&ada, "text/plain", shared.clone().into()).await;
                store.put(&ada, "text/plain", own.into()).await.unwrap();
                let read = store.read(&ada, &reference.unwrap(), 0..99).await;
                assert_eq!(read.unwrap(), shared);
            }
        };
        std::thread::scope(|scope| {
            for n in 0..6 {
                let work = &work;
                scope.spawn(move || {
                    if n % 2 == 0 {
                        return wait(work(n));
                    }
                    let mut threads = tokio::runtime::Builder::new_multi_thread();
                    threads.worker_threads(2).build().unwrap().block_on(work(n));
                });
            }
        });
        let ada = Principal::new("t", "ada");
        assert_eq!(wait(store.list(&ada, None)).unwrap().len(), 3 * 4 + 6 * 4);
    });
}

/// Opens every connection itself, and notes the address.
#[derive(Debug, Default)]
struct Noted(parking_lot::Mutex<Vec<(String, u16)>>);

impl Dial for Noted {
    fn dial<'a>(
        &'a self,
        host: &'a str,
        port: u16,
        secure: bool,
    ) -> BoxFuture<'a, std::io::Result<Box<dyn Io>>> {
        assert!(!secure, "the endpoint is plain HTTP");
        self.0.lock().push((host.to_owned(), port));
        Box::pin(async move {
            let stream = tokio::net::TcpStream::connect((host, port)).await?;
            Ok(Box::new(stream) as Box<dyn Io>)
        })
    }
}

#[test]
fn a_bucket_is_reached_over_connections_that_its_host_opens() {
    let Some(server) = Server::start() else {
        return;
    };
    let server = Arc::new(server);
    let Place::S3(_, bucket) = Place::s3(&server) else {
        unreachable!("it is a bucket of that server")
    };
    let noted = Arc::new(Noted::default());
    let url = format!("s3://{bucket}/x");
    let store = open_s3_by(&url, &server, Arc::clone(&noted) as _).unwrap();
    let ada = owner("t", "ada", "r");
    let reference = put(&store, &ada, "by hand");
    let read = wait(store.read(&ada, &reference, 0..99)).unwrap();
    assert_eq!(read, "by hand");
    let endpoint = &server.variables()[2].1;
    let places = noted.0.lock();
    assert!(!places.is_empty());
    for (host, port) in places.iter() {
        assert_eq!(format!("http://{host}:{port}"), *endpoint);
    }
}
