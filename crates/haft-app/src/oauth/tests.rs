//! Validates tokens with the keys of a real authorization server, over HTTP on loopback.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use haft_builtins::web::http::Http;
use parking_lot::Mutex;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
};
use serde_json::{Value, json};

use super::jwks::{IssuerHttp, KeyRefresh, KeySet, KeySource, MAX_BYTES, limits};
use super::{OAuthSettings, ResourceServer, TokenError};

const AUDIENCE: &str = "https://haft.example/mcp";

/// An authorization server: its keys, its metadata, and how often it was asked for keys.
#[derive(Clone)]
struct Issuer {
    url: String,
    keys: Arc<Mutex<Vec<u8>>>,
    status: Arc<AtomicUsize>,
    asked: Arc<AtomicUsize>,
}

impl Issuer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let issuer = Self {
            url,
            keys: Arc::default(),
            status: Arc::new(AtomicUsize::new(200)),
            asked: Arc::default(),
        };
        let serving = issuer.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                serving.answer(stream);
            }
        });
        issuer
    }

    fn answer(&self, mut stream: TcpStream) {
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n == 1) {
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let path = head.split(' ').nth(1).unwrap_or_default();
        let (status, body) = match path {
            "/.well-known/openid-configuration" => {
                let jwks = format!("{}/jwks", self.url);
                let metadata = json!({"issuer": self.url, "jwks_uri": jwks});
                (200, metadata.to_string().into_bytes())
            }
            "/jwks" => {
                self.asked.fetch_add(1, Ordering::SeqCst);
                (self.status.load(Ordering::SeqCst), self.keys.lock().clone())
            }
            _ => (404, b"{}".to_vec()),
        };
        let head = format!(
            "HTTP/1.1 {status} OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        // A client that has read enough closes the connection.
        let _ = stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(&body));
    }

    fn publish(&self, keys: &[Value]) {
        *self.keys.lock() = json!({"keys": keys}).to_string().into_bytes();
    }

    fn server(&self, pace: KeyRefresh) -> ResourceServer {
        let http = Http::trusted().with_limits(limits());
        let reach = IssuerHttp {
            named: http.clone(),
            public: http,
        };
        let terms = OAuthSettings {
            issuer: self.url.clone(),
            audience: AUDIENCE.to_owned(),
            scopes: BTreeMap::from([
                ("all".to_owned(), None),
                ("read".to_owned(), Some("readers".to_owned())),
                ("write".to_owned(), Some("writers".to_owned())),
            ]),
            tenant: Arc::from("local"),
        };
        let source = KeySource::Issuer(self.url.clone());
        ResourceServer::new(terms, KeySet::new(reach, source, pace))
    }
}

/// A key that signs tokens.
enum Signer {
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl Signer {
    fn ec() -> Self {
        let random = SystemRandom::new();
        let alg = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let made = EcdsaKeyPair::generate_pkcs8(alg, &random).unwrap();
        Self::Ec(EcdsaKeyPair::from_pkcs8(alg, made.as_ref(), &random).unwrap())
    }

    fn ed() -> Self {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed(Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap())
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Ec(_) => "ES256",
            Self::Ed(_) => "EdDSA",
        }
    }

    fn jwk(&self, kid: &str) -> Value {
        match self {
            Self::Ec(key) => {
                let point = key.public_key().as_ref();
                let (x, y) = (encode(&point[1..33]), encode(&point[33..]));
                json!({"kty": "EC", "crv": "P-256", "kid": kid, "use": "sig", "x": x, "y": y})
            }
            Self::Ed(key) => {
                let x = encode(key.public_key().as_ref());
                json!({"kty": "OKP", "crv": "Ed25519", "kid": kid, "alg": "EdDSA", "x": x})
            }
        }
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        self.sign_text(&header.to_string(), &claims.to_string())
    }

    fn sign_text(&self, header: &str, claims: &str) -> String {
        let signed = format!(
            "{}.{}",
            encode(header.as_bytes()),
            encode(claims.as_bytes())
        );
        let signature = match self {
            Self::Ec(key) => {
                let signature = key.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
                encode(signature.as_ref())
            }
            Self::Ed(key) => encode(key.sign(signed.as_bytes()).as_ref()),
        };
        format!("{signed}.{signature}")
    }
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn now() -> i64 {
    super::seconds()
}

fn claims(issuer: &Issuer) -> Value {
    json!({"iss": issuer.url, "sub": "ann", "aud": AUDIENCE, "exp": now() + 60, "scope": "read openid"})
}

/// Returns the claims with one of them changed; null removes it.
fn with(mut claims: Value, name: &str, value: Value) -> Value {
    let map = claims.as_object_mut().unwrap();
    match value {
        Value::Null => map.remove(name),
        value => map.insert(name.to_owned(), value),
    };
    claims
}

/// Returns the token's view, or why it is rejected.
async fn check(server: &ResourceServer, token: &str) -> Result<Option<String>, String> {
    match server.person(token).await {
        Ok(person) => Ok(person.view),
        Err(TokenError::Invalid(why)) => Err(why),
        Err(TokenError::Scope(why)) => Err(format!("scope: {why}")),
        Err(TokenError::Unavailable(why)) => Err(format!("unavailable: {why}")),
    }
}

/// A case: its name, a token, and the expected result, with the beginning of the error.
type Row = (&'static str, String, Result<Option<String>, &'static str>);

async fn check_all(server: &ResourceServer, rows: Vec<Row>) {
    for (name, token, expect) in rows {
        let came = check(server, &token).await;
        match (&came, &expect) {
            (Ok(view), Ok(expect)) => assert_eq!(view, expect, "{name}"),
            (Err(why), Err(begins)) => assert!(why.starts_with(begins), "{name}: {why}"),
            _ => panic!("{name}: {came:?}, not {expect:?}"),
        }
    }
}

/// Returns a secret key that anyone with the public key would know, and keys that verify nothing here.
fn unusable_keys(ec: &Signer) -> [Value; 4] {
    [
        json!({"kty": "oct", "kid": "secret", "k": encode(b"0123456789abcdef0123456789abcdef")}),
        json!({"kty": "EC", "crv": "P-256", "kid": "enc", "use": "enc", "x": "", "y": ""}),
        json!({"kty": 5}),
        with(
            with(ec.jwk("ops"), "use", Value::Null),
            "key_ops",
            json!(["deriveKey"]),
        ),
    ]
}

#[tokio::test]
async fn tokens_count_where_this_issuer_made_them_for_this_server_and_no_others() {
    let issuer = Issuer::start();
    let (ec, ed) = (Signer::ec(), Signer::ed());
    issuer.publish(&[&[ec.jwk("one"), ed.jwk("two")][..], &unusable_keys(&ec)].concat());
    let server = issuer.server(KeyRefresh::default());
    let good = claims(&issuer);
    let header = |alg: &str, kid: &str| json!({"alg": alg, "kid": kid, "typ": "at+jwt"});
    let ok = header("ES256", "one");
    let signed = |claims: &Value| ec.sign(&ok, claims);
    let stranger = Signer::ec();

    let person = server.person(&signed(&good)).await.unwrap();
    let named = format!("local/{}#ann", issuer.url);
    assert_eq!(person.principal.to_string(), named);
    let view = |name: &str| Ok(Some(name.to_owned()));
    let rows: Vec<Row> = vec![
        ("good", signed(&good), view("readers")),
        ("another key", ed.sign(&header("EdDSA", "two"), &good), view("readers")),
        ("several audiences", signed(&with(good.clone(), "aud", json!(["x", AUDIENCE]))), view("readers")),
        ("scp", signed(&with(with(good.clone(), "scope", Value::Null), "scp", json!(["write"]))), view("writers")),
        ("all tools", signed(&with(good.clone(), "scope", json!("read all"))), Ok(None)),
        ("two views", signed(&with(good.clone(), "scope", json!("read write"))), Err("scope: its scopes are of several views (readers, writers)")),
        ("no scope", signed(&with(good.clone(), "scope", json!("openid"))), Err("scope: it has none of the scopes all read write")),
        ("wrong audience", signed(&with(good.clone(), "aud", json!("https://other.example"))), Err("it was made for another server")),
        ("audience as a beginning", signed(&with(good.clone(), "aud", json!(format!("{AUDIENCE}/x")))), Err("it was made for another server")),
        ("no audience", signed(&with(good.clone(), "aud", Value::Null)), Err("a claim is missing")),
        ("expired", signed(&with(good.clone(), "exp", json!(now() - 60))), Err("it has expired")),
        ("never expires", signed(&with(good.clone(), "exp", Value::Null)), Err("a claim is missing")),
        ("expires as a text", signed(&with(good.clone(), "exp", json!("9999999999"))), Err("a claim is missing")),
        ("not yet", signed(&with(good.clone(), "nbf", json!(now() + 600))), Err("it does not count yet")),
        ("not before as a text", signed(&with(good.clone(), "nbf", json!("0"))), Err("a claim is missing")),
        ("foreign issuer", signed(&with(good.clone(), "iss", json!("https://evil.example"))), Err("another issuer made it")),
        ("issuer with a slash", signed(&with(good.clone(), "iss", json!(format!("{}/", issuer.url)))), Err("another issuer made it")),
        ("no subject", signed(&with(good.clone(), "sub", json!(""))), Err("its subject is not")),
        ("subject with a line break", signed(&with(good.clone(), "sub", json!("a\nb"))), Err("its subject is not")),
        ("unknown kid", ec.sign(&header("ES256", "nope"), &good), Err("its issuer has no key")),
        ("kid that is a URL", ec.sign(&header("ES256", "https://evil.example/k.json"), &good), Err("its issuer has no key")),
        ("kid that is a path", ec.sign(&header("ES256", "../../dev/null"), &good), Err("its issuer has no key")),
        ("kid of another kind", ec.sign(&header("ES256", "two"), &good), Err("its issuer has no key")),
        ("kid of a key for something else", ec.sign(&header("ES256", "ops"), &good), Err("its issuer has no key")),
        ("kid of a secret", ec.sign(&header("ES256", "secret"), &good), Err("its issuer has no key")),
        ("another's key", stranger.sign(&ok, &good), Err("its signature is wrong")),
        ("none", format!("{}.{}.", encode(json!({"alg": "none"}).to_string().as_bytes()), encode(good.to_string().as_bytes())), Err("its algorithm is not accepted")),
        ("None", ec.sign(&header("None", "one"), &good), Err("its algorithm is not accepted")),
        ("HS256 by the public key", ec.sign(&header("HS256", "one"), &good), Err("its algorithm is not accepted")),
        ("no signature", signed(&good).rsplit_once('.').unwrap().0.to_owned() + ".", Err("its signature is wrong")),
        ("crit", ec.sign(&json!({"alg": "ES256", "kid": "one", "crit": ["exp"]}), &good), Err("its header has `crit`")),
        ("a key of its own", stranger.sign(&json!({"alg": "ES256", "kid": "nope", "jwk": stranger.jwk("nope"), "jku": "https://evil.example"}), &good), Err("its issuer has no key")),
        ("another type", ec.sign(&json!({"alg": "ES256", "kid": "one", "typ": "logout+jwt"}), &good), Err("its type is not")),
        ("a claim twice", ec.sign_text(&ok.to_string(), &good.to_string().replacen('{', r#"{"aud":"x","#, 1)), Err("its payload is not a JSON object")),
        ("no JWT", "abc".to_owned(), Err("it is not a signed JWT")),
        ("five parts", "a.b.c.d.e".to_owned(), Err("it is not a signed JWT")),
        ("no base64", "!.b.c".to_owned(), Err("its header is not base64url")),
        ("long", "a".repeat(20_000), Err("it is longer than")),
    ];
    check_all(&server, rows).await;
    // Made-up key names do not make haft ask again and again.
    assert_eq!(issuer.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_new_key_counts_when_it_is_there_and_an_old_one_while_the_issuer_is_down() {
    let issuer = Issuer::start();
    let (old, new) = (Signer::ec(), Signer::ed());
    issuer.publish(&[old.jwk("old")]);
    let eager = KeyRefresh {
        retry: Duration::ZERO,
        ..KeyRefresh::default()
    };
    let server = issuer.server(eager);
    let token = |signer: &Signer, kid: &str| {
        let header = json!({"alg": signer.algorithm(), "kid": kid});
        signer.sign(&header, &claims(&issuer))
    };
    let readers = Ok(Some("readers".to_owned()));
    assert_eq!(check(&server, &token(&old, "old")).await, readers);
    issuer.publish(&[new.jwk("new")]);
    assert_eq!(check(&server, &token(&new, "new")).await, readers);
    let gone = check(&server, &token(&old, "old")).await.unwrap_err();
    assert!(gone.starts_with("its issuer has no key"), "{gone}");
    // N10: an empty list withdraws all keys, also those that would be used while the issuer is down.
    let again = issuer.server(KeyRefresh {
        fresh: Duration::ZERO,
        retry: Duration::ZERO,
        ..KeyRefresh::default()
    });
    assert_eq!(check(&again, &token(&new, "new")).await, readers);
    issuer.publish(&[]);
    let none = check(&again, &token(&new, "new")).await.unwrap_err();
    assert!(none.starts_with("its issuer has no key"), "{none}");
    issuer.publish(&[new.jwk("new")]);
    assert_eq!(check(&server, &token(&new, "new")).await, readers);
    issuer.status.store(503, Ordering::SeqCst);
    assert_eq!(check(&server, &token(&new, "new")).await, readers);
    let expired = KeyRefresh {
        fresh: Duration::ZERO,
        stale: Duration::ZERO,
        retry: Duration::ZERO,
    };
    let cold = check(&issuer.server(expired), &token(&new, "new")).await;
    let cold = cold.unwrap_err();
    assert!(
        cold.starts_with("unavailable: ") && cold.contains("status 503"),
        "{cold}"
    );
}

#[tokio::test]
async fn keys_that_are_too_many_too_long_or_none_make_tokens_uncheckable() {
    let issuer = Issuer::start();
    let key = Signer::ec();
    let header = json!({"alg": "ES256", "kid": "one"});
    let token = key.sign(&header, &claims(&issuer));
    let padded = |bytes: usize| {
        let keys = json!({"keys": [key.jwk("one")], "pad": "x".repeat(bytes)});
        keys.to_string().into_bytes()
    };
    let many: Vec<Value> = (0..101).map(|n| key.jwk(&n.to_string())).collect();
    for (body, says) in [
        (padded(10 << 20), "answered with more than"),
        (padded(MAX_BYTES), "answered with more than"),
        (
            json!({"keys": many}).to_string().into_bytes(),
            "more than 100 keys",
        ),
        (b"{\"keys\": [], \"keys\": []}".to_vec(), "no JSON object"),
        (b"<html>".to_vec(), "no JSON object"),
        (vec![0xff], "not UTF-8"),
    ] {
        *issuer.keys.lock() = body;
        let why = check(&issuer.server(KeyRefresh::default()), &token).await;
        let why = why.unwrap_err();
        assert!(
            why.starts_with("unavailable: ") && why.contains(says),
            "{says}: {why}"
        );
    }
    *issuer.keys.lock() = padded(1000);
    assert!(
        check(&issuer.server(KeyRefresh::default()), &token)
            .await
            .is_ok()
    );
    let nowhere = Issuer {
        url: "http://127.0.0.1:1".to_owned(),
        ..issuer.clone()
    };
    let why = check(&nowhere.server(KeyRefresh::default()), &token)
        .await
        .unwrap_err();
    assert!(why.starts_with("unavailable: "), "{why}");
}

#[test]
fn a_client_is_told_where_the_metadata_stand() {
    let issuer = Issuer::start();
    let server = issuer.server(KeyRefresh::default());
    assert_eq!(
        server.metadata_url(),
        "https://haft.example/.well-known/oauth-protected-resource/mcp"
    );
    assert_eq!(
        server.metadata_path(),
        "/.well-known/oauth-protected-resource/mcp"
    );
    assert_eq!(
        server.metadata()["authorization_servers"],
        json!([issuer.url])
    );
    assert_eq!(server.scopes(), "all read write");
}
