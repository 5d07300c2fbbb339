//! Buckets in trouble: damaged objects, unreachable servers, wrong credentials and names.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use haft::artifact::{ArtifactError, ArtifactOwner, ArtifactRef, ArtifactStore};
use haft_store::artifacts::{ObjectArtifacts, RetentionLimits};
use serde_json::json;

use crate::objects::{owner, put};
use crate::places::{Place, open_s3};
use crate::server::Server;
use crate::waiting::wait;

fn check(trouble: impl Fn(&Place)) {
    trouble(&Place::memory());
    trouble(&Place::local());
    if let Some(server) = Server::start() {
        trouble(&Place::s3(&Arc::new(server)));
    }
}

fn is_damaged(read: &Result<Bytes, ArtifactError>) -> bool {
    matches!(read, Err(ArtifactError::Damaged(_)))
}

/// Returns the errors of all operations that ask the server; all of them must fail.
fn refusals(
    store: &ObjectArtifacts,
    owner: &ArtifactOwner,
    reference: &ArtifactRef,
) -> Vec<ArtifactError> {
    let errors = [
        wait(store.read(owner, reference, 0..9)).err(),
        wait(store.put(owner, "text/plain", Bytes::from_static(b"x"))).err(),
        wait(store.list(&owner.principal, None)).err(),
        wait(store.sweep()).err(),
    ];
    assert!(errors.iter().all(Option::is_some), "{errors:?}");
    errors.into_iter().flatten().collect()
}

#[test]
fn bytes_that_changed_in_the_bucket_are_found_out() {
    check(|place| {
        let store = place.open(RetentionLimits::default());
        let ada = owner("t", "ada", "r");
        let reference = put(&store, &ada, "as it was");
        wait(store.read(&ada, &reference, 0..99)).unwrap();
        let key = &place.blobs()[0];
        for harm in [&b"as it is."[..], b"as it", b"", b"as it was, and more"] {
            place.write(key, harm);
            for store in [&store, &place.open(RetentionLimits::default())] {
                for range in [0..4, 0..99] {
                    let read = wait(store.read(&ada, &reference, range));
                    assert!(is_damaged(&read), "{harm:?} {place:?}");
                }
            }
        }
        assert_eq!(put(&store, &ada, "as it was"), reference, "stored again");
        assert_eq!(&place.blobs(), std::slice::from_ref(key));
        assert_eq!(
            wait(store.read(&ada, &reference, 0..99)).unwrap(),
            "as it was"
        );
    });
}

#[test]
fn a_large_artifact_is_checked_when_it_is_read_whole() {
    check(|place| {
        let ada = owner("t", "ada", "r");
        let bytes = Bytes::from(vec![b'x'; 9 << 20]);
        let size = bytes.len() as u64;
        let writer = place.open(RetentionLimits::default());
        let reference = wait(writer.put(&ada, "text/plain", bytes.clone())).unwrap();
        let store = place.open(RetentionLimits::default());
        assert_eq!(wait(store.read(&ada, &reference, 7..9)).unwrap(), "xx");
        let key = &place.blobs()[0];
        let mut harm = bytes.to_vec();
        harm[5] = b'y';
        place.write(key, &harm);
        // A part shows what is there: only its size is known to be right.
        assert_eq!(wait(store.read(&ada, &reference, 4..7)).unwrap(), "xyx");
        assert!(is_damaged(&wait(store.read(&ada, &reference, 0..size))));
        place.write(key, &harm[1..]);
        assert!(is_damaged(&wait(store.read(&ada, &reference, 4..7))));
        wait(writer.put(&ada, "text/plain", bytes.clone())).unwrap();
        assert_eq!(wait(store.read(&ada, &reference, 0..size)).unwrap(), bytes);
    });
}

#[test]
fn a_server_that_is_gone_is_told_in_time_and_found_again() {
    let Some(server) = Server::start() else {
        return;
    };
    let server = Arc::new(server);
    let place = Place::s3(&server);
    let store = place.open(RetentionLimits::default());
    let ada = owner("t", "ada", "r");
    let reference = put(&store, &ada, "before");
    server.tell(&json!({"do": "stop"}));
    let began = Instant::now();
    let errors = refusals(&store, &ada, &reference);
    for error in &errors {
        let told = error.to_string();
        assert!(
            told.contains("s3://bucket-")
                && told.contains("Connection refused")
                && told.contains("try again")
                && !told.contains("not-to-be-seen"),
            "{told}"
        );
    }
    assert!(began.elapsed() < Duration::from_mins(2), "beyond the limit");
    // A pin does not wait for the server.
    store.pin(&ada);
    server.tell(&json!({"do": "start"}));
    assert_eq!(wait(store.read(&ada, &reference, 0..9)).unwrap(), "before");
    put(&store, &ada, "after");
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    // It accepts connections and never answers.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let store = open_s3(
        "s3://some-bucket",
        &[
            ("AWS_ACCESS_KEY_ID", "id".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
            (
                "AWS_ENDPOINT_URL",
                format!("http://{}", listener.local_addr().unwrap()),
            ),
            ("AWS_ALLOW_HTTP", "1".to_owned()),
        ],
        RetentionLimits::default(),
    )
    .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.unwrap();
    let began = Instant::now();
    let told = runtime.block_on(async {
        let ada = owner("t", "ada", "r");
        let asked = tokio::spawn(async move { store.info(&ada, &ArtifactRef::of(b"x")).await });
        let taken =
            tokio::task::spawn_blocking(move || listener.accept().map(|taken| (taken, listener)));
        let _taken = taken.await.unwrap().unwrap();
        // The read is waiting, and the runtime's one thread continues.
        tokio::spawn(async {}).await.unwrap();
        assert!(!asked.is_finished());
        asked.await.unwrap().unwrap_err().to_string()
    });
    assert!(told.contains("s3://some-bucket"), "{told}");
    assert!(began.elapsed() < Duration::from_mins(1), "beyond the limit");
}

#[test]
fn wrong_credentials_and_buckets_are_told_without_showing_a_key() {
    let Some(server) = Server::start() else {
        return;
    };
    let server = Arc::new(server);
    server.tell(&json!({"do": "bucket", "bucket": "guarded"}));
    let user = server.tell(&json!({"do": "bolt"}));
    let text = |name: &str| user[name].as_str().unwrap().to_owned();
    let open = |bucket: &str, id: &str, secret: &str| {
        let mut variables = server.variables();
        variables[0].1 = id.to_owned();
        variables[1].1 = secret.to_owned();
        open_s3(
            &format!("s3://{bucket}"),
            &variables,
            RetentionLimits::default(),
        )
        .unwrap()
    };
    let (id, secret) = (text("id"), text("secret"));
    let ada = owner("t", "ada", "r");
    let reference = put(&open("guarded", &id, &secret), &ada, "let in");
    let wrong = "wrong-secret-of-forty-characters-in-all-";
    for (bucket, id, secret, expect) in [
        (
            "guarded",
            "AKIAIOSFODNN7EXAMPLE",
            secret.as_str(),
            "InvalidAccessKeyId",
        ),
        ("guarded", id.as_str(), wrong, "SignatureDoesNotMatch"),
        (
            "missing-one",
            id.as_str(),
            secret.as_str(),
            "there is no such bucket",
        ),
    ] {
        let store = open(bucket, id, secret);
        let errors = refusals(&store, &ada, &reference);
        for error in &errors {
            let told = error.to_string();
            assert!(told.contains(&format!("s3://{bucket}")), "{told}");
            assert!(told.contains(expect), "{told}");
            assert!(!told.contains(id) && !told.contains(secret), "{told}");
        }
        let shown = format!("{store:?}");
        assert!(!shown.contains(id) && !shown.contains(secret), "{shown}");
    }
}

/// The values of variables that a row does not set.
const SOUND: [(&str, &str); 2] = [
    ("AWS_ACCESS_KEY_ID", "id"),
    ("AWS_SECRET_ACCESS_KEY", "hush"),
];

fn opened(url: &str, given: &[(&'static str, &str)]) -> Result<(), String> {
    let all: Vec<_> = given
        .iter()
        .chain(&SOUND)
        .map(|(name, value)| (*name, (*value).to_owned()))
        .collect();
    let opened = open_s3(url, &all, RetentionLimits::default());
    opened.map(drop).map_err(|e| e.to_string())
}

#[test]
fn what_cannot_be_a_bucket_is_refused_before_anybody_is_asked() {
    let long = format!("s3://bucket/{}", "x".repeat(501));
    let name = "the bucket's name has";
    let prefix = "its prefix has";
    for (url, expect) in [
        ("", "it is not of the form s3://"),
        ("http://host/bucket", "it is not of the form s3://"),
        ("S3://bucket", "it is not of the form s3://"),
        ("s3:bucket", "it is not of the form s3://"),
        ("s3://", name),
        ("s3:///x", name),
        ("s3://ab", name),
        ("s3://Bucket", name),
        ("s3://-bucket", name),
        ("s3://bucket:9000/x", name),
        ("s3://bucket?region=x", name),
        ("s3://id:hush@bucket/x", "credentials do not belong in it"),
        ("s3://bucket/a//b", prefix),
        ("s3://bucket//", prefix),
        ("s3://bucket/../x", prefix),
        ("s3://bucket/a b", prefix),
        ("s3://bucket/x?y=1", prefix),
        (&long, prefix),
    ] {
        let told = opened(url, &[]).unwrap_err();
        assert!(
            told.contains(expect) && !told.contains("hush"),
            "{url}: {told}"
        );
    }
    for url in ["s3://bucket", "s3://bucket/", "s3://my.bucket-1/a/b_c/d.e"] {
        opened(url, &[]).unwrap();
    }
}

#[test]
fn variables_that_do_not_do_are_refused_before_anybody_is_asked() {
    let endpoint = "AWS_ENDPOINT_URL";
    for (name, value, expect) in [
        ("AWS_ACCESS_KEY_ID", "", "set AWS_ACCESS_KEY_ID"),
        ("AWS_SECRET_ACCESS_KEY", "", "set AWS_SECRET_ACCESS_KEY"),
        (endpoint, "localhost", "AWS_ENDPOINT_URL is not a URL"),
        (endpoint, "ftp://h", "neither https"),
        (endpoint, "https://u:hush@h", "holds more than"),
        (endpoint, "http://127.0.0.1:1", "set AWS_ALLOW_HTTP=true"),
        ("AWS_ENDPOINT_URL_S3", "http://h", "_S3 is not encrypted"),
    ] {
        let told = opened("s3://bucket", &[(name, value), ("AWS_ALLOW_HTTP", "no")]).unwrap_err();
        assert!(
            told.contains(expect) && !told.contains("hush"),
            "{name}={value}: {told}"
        );
    }
    let own = [(endpoint, "http://127.0.0.1:1"), ("AWS_ALLOW_HTTP", "true")];
    opened("s3://bucket", &own).unwrap();
    opened("s3://bucket", &[(endpoint, "https://objects.example")]).unwrap();
}
