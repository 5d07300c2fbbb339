//! Shaping: what fits is unchanged; what does not is within the limit, whole in the store, and still shows its shape.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::future::ready;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{ArtifactKeeper, FittedResult, InlineLimits, fit, object, preview, texts};
use crate::artifact::{ArtifactError, ArtifactRef};
use crate::call::RunId;
use crate::error::ErrorKind;
use crate::future::BoxFuture;
use crate::result::{Artifact, Content};
use crate::spec::Overflow;
use crate::tokens::{Bytes as ByBytes, O200k, Tokenizer};
use crate::wait::wait;

const TOKENS: O200k = O200k;

/// Stored artifacts: media types and bytes.
type Stored = Vec<(String, Bytes)>;

/// Shapes with a real hash as ref, and returns what was stored.
fn run(
    content: Vec<Content>,
    data: Option<&Value>,
    tokenizer: &dyn Tokenizer,
    limit: usize,
    overflow: Overflow,
) -> (FittedResult, Stored) {
    let keep = InMemory::default();
    let run = RunId::new("r1");
    let bounds = InlineLimits {
        tokenizer,
        limit,
        media_bytes: 3_000,
        overflow,
        run: &run,
        typed: false,
    };
    let fitted = wait(fit(content, data.map(raw), &bounds, Some(&keep)));
    (fitted, keep.0.into_inner())
}

/// A store that remembers its artifacts.
#[derive(Default)]
struct InMemory(Mutex<Stored>);

impl ArtifactKeeper for InMemory {
    fn keep<'k>(
        &'k self,
        media_type: &'k str,
        bytes: Bytes,
    ) -> BoxFuture<'k, Result<Artifact, ArtifactError>> {
        let artifact = Artifact {
            reference: ArtifactRef::of(&bytes).as_str().to_owned(),
            media_type: media_type.to_owned(),
            bytes: bytes.len() as u64,
            preview: preview(&bytes),
        };
        self.0.lock().push((media_type.to_owned(), bytes));
        Box::pin(ready(Ok(artifact)))
    }
}

/// A store without room.
struct Full;

impl ArtifactKeeper for Full {
    fn keep<'k>(&'k self, _: &'k str, _: Bytes) -> BoxFuture<'k, Result<Artifact, ArtifactError>> {
        Box::pin(ready(Err(ArtifactError::Quota { bytes: 9, left: 1 })))
    }
}

fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap()
}

fn value(fitted: &FittedResult) -> Value {
    fitted
        .data
        .as_ref()
        .map_or(Value::Null, |raw| serde_json::from_str(raw.get()).unwrap())
}

fn cost(tokenizer: &dyn Tokenizer, fitted: &FittedResult) -> usize {
    let texts = fitted.content.iter().flat_map(texts);
    let all = texts.chain(fitted.data.as_deref().map(RawValue::get));
    let all = all.chain(fitted.notes.iter().map(String::as_str));
    all.map(|text| tokenizer.fits(text, usize::MAX).unwrap())
        .sum()
}

fn lines(count: usize) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    for n in 0..count {
        writeln!(text, "line {n} of the log says Grüße").unwrap();
    }
    text
}

#[test]
fn what_fits_is_untouched() {
    let data = json!({"a": [1, 2, 3]});
    let (fitted, kept) = run(
        vec![Content::text("short")],
        Some(&data),
        &TOKENS,
        100,
        Overflow::Store,
    );
    assert_eq!(
        (fitted.content, kept.len(), fitted.artifacts.len()),
        (vec![Content::text("short")], 0, 0)
    );
    assert_eq!(fitted.data.unwrap().get(), data.to_string());
    let words = "word ".repeat(99);
    let (fitted, kept) = run(
        vec![Content::text(words.clone())],
        None,
        &TOKENS,
        words.len(),
        Overflow::Fail,
    );
    assert!(fitted.error.is_none() && kept.is_empty());
}

#[test]
fn data_is_always_an_object() {
    for (given, expect) in [
        ("[1]", r#"{"result":[1]}"#),
        ("null", r#"{"result":null}"#),
        ("\"{\"", r#"{"result":"{"}"#),
        ("{}", "{}"),
        (" {\"a\":1} ", "{\"a\":1}"),
    ] {
        let raw: Box<RawValue> = serde_json::from_str(given).unwrap();
        assert_eq!(object(raw).get(), expect);
    }
}

#[test]
fn a_long_text_is_kept_whole_and_shown_as_head_and_tail() {
    let text = lines(5_000);
    let (fitted, kept) = run(
        vec![Content::text(text.clone())],
        None,
        &TOKENS,
        500,
        Overflow::Store,
    );
    assert_eq!(kept, [("text/plain".to_owned(), Bytes::from(text.clone()))]);
    let [Content::Text { text: shown }] = fitted.content.as_slice() else {
        panic!()
    };
    let reference = &fitted.artifacts[0].reference;
    let (head, rest) = shown.split_once("\n… ").unwrap();
    let (notice, tail) = rest.split_once(" …\n").unwrap();
    assert!(text.starts_with(head) && text.ends_with(tail) && !head.is_empty() && !tail.is_empty());
    let bytes = text.len() - head.len() - tail.len();
    assert!(
        notice.starts_with(&format!("{bytes} bytes in ")),
        "{notice}"
    );
    let read = format!(
        r#"lines left out, read the rest with read_artifact {{"ref":"{reference}","offset":{}}}"#,
        head.len()
    );
    assert!(notice.ends_with(&read), "{notice}");
    let used = cost(&TOKENS, &fitted);
    assert!((400..=500).contains(&used), "{used} of 500 tokens");
    assert!(
        fitted.artifacts[0].preview.len() <= 1024 && text.starts_with(&fitted.artifacts[0].preview)
    );
}

#[test]
fn large_data_keeps_its_shape() {
    let items: Vec<Value> = (0..3_000)
        .map(|n| json!({"path": format!("src/{n}.rs"), "line": n}))
        .collect();
    let data = json!({"matches": items, "truncated": false, "note": "é".repeat(40_000), "count": 3_000, "deep": {"er": {"list": [[1, 2]]}}});
    let (fitted, kept) = run(
        vec![Content::text("3000 matches")],
        Some(&data),
        &TOKENS,
        1_000,
        Overflow::Store,
    );
    assert_eq!(
        kept,
        [("application/json".to_owned(), Bytes::from(data.to_string()))]
    );
    let shown = value(&fitted);
    assert_eq!(shown["count"], 3_000);
    assert_eq!(shown["truncated"], false);
    assert_eq!(shown["deep"], data["deep"]);
    assert_eq!(shown["matches"][0], data["matches"][0]);
    let list = shown["matches"].as_array().unwrap();
    assert_eq!(
        list.last().unwrap(),
        data["matches"].as_array().unwrap().last().unwrap()
    );
    let left_out = 3_000 - (list.len() - 1);
    assert!(
        list.contains(&json!(format!("… {left_out} items left out"))),
        "{list:?}"
    );
    let note = shown["note"].as_str().unwrap();
    assert!(
        note.starts_with("éé") && note.contains(" bytes left out …é") && note.ends_with("éé"),
        "{note}"
    );
    let ([Content::Text { text }], [notice]) = (fitted.content.as_slice(), &fitted.notes[..])
    else {
        panic!()
    };
    assert_eq!(text, "3000 matches");
    assert!(notice.contains(&fitted.artifacts[0].reference) && notice.contains("read_artifact"));
    let used = cost(&TOKENS, &fitted);
    assert!((300..=1_000).contains(&used), "{used} of 1000 tokens");
}

#[test]
fn clipping_keeps_nothing_and_says_so() {
    let data = json!({"x": vec![7; 5_000]});
    let (fitted, kept) = run(
        vec![Content::text(lines(999))],
        Some(&data),
        &TOKENS,
        300,
        Overflow::Clip,
    );
    assert!(kept.is_empty() && fitted.artifacts.is_empty());
    let text = format!("{:?} {:?}", fitted.content, fitted.notes);
    assert!(
        text.contains("lines cut …") && text.contains("the rest was cut"),
        "{text}"
    );
    assert!(cost(&TOKENS, &fitted) <= 300);
}

#[test]
fn failing_keeps_the_result_aside() {
    let data = json!({"x": vec![7; 5_000]});
    let (fitted, kept) = run(
        vec![Content::text("hi")],
        Some(&data),
        &ByBytes,
        300,
        Overflow::Fail,
    );
    let error = fitted.error.unwrap();
    assert_eq!(
        (error.kind, kept.len(), fitted.content.len()),
        (ErrorKind::Failed, 2, 0)
    );
    assert!(
        error
            .advice
            .unwrap()
            .contains(&fitted.artifacts[1].reference)
    );
    assert!(fitted.data.is_none());
}

#[test]
fn media_over_its_limit_is_linked() {
    let image = |bytes: usize| Content::Image {
        data: STANDARD.encode(vec![9_u8; bytes]),
        mime_type: "image/png".into(),
    };
    let (fitted, kept) = run(
        vec![image(2_400), Content::text("x"), image(1_200), image(300)],
        None,
        &TOKENS,
        900,
        Overflow::Store,
    );
    assert_eq!(
        kept,
        [("image/png".to_owned(), Bytes::from(vec![9_u8; 1_200]))]
    );
    let reference = &fitted.artifacts[0].reference;
    let Content::ResourceLink {
        uri,
        bytes: Some(1_200),
        ..
    } = &fitted.content[2]
    else {
        panic!()
    };
    assert_eq!(uri, &format!("artifact://r1/{reference}"));
    assert_eq!(
        (&fitted.content[0], &fitted.content[3]),
        (&image(2_400), &image(300))
    );
    let (fitted, kept) = run(vec![image(9_000)], None, &TOKENS, 900, Overflow::Clip);
    assert!(kept.is_empty());
    assert_eq!(
        fitted.content,
        [Content::text(
            "[image/png of 9000 bytes left out: over the limit of 3000 bytes]"
        )]
    );
}

#[test]
fn a_media_type_that_is_too_long_is_cut_before_a_character() {
    let image = Content::Image {
        data: STANDARD.encode([9; 9_000]),
        mime_type: format!("image/{}ü", "x".repeat(121)),
    };
    let (_, kept) = run(vec![image], None, &TOKENS, 900, Overflow::Store);
    assert_eq!(kept[0].0, format!("image/{}", "x".repeat(121)));
}

#[test]
fn without_a_store_or_with_a_full_one_it_is_cut() {
    let run = RunId::new("r1");
    let bounds = InlineLimits {
        tokenizer: &TOKENS,
        limit: 200,
        media_bytes: 0,
        overflow: Overflow::Store,
        run: &run,
        typed: false,
    };
    let fitted = wait(fit(vec![Content::text(lines(999))], None, &bounds, None));
    assert!(fitted.artifacts.is_empty() && format!("{:?}", fitted.content).contains("lines cut …"));
    let long = vec![Content::text(lines(999))];
    let fitted = wait(fit(long, None, &bounds, Some(&Full)));
    assert!(format!("{:?}", fitted.content).contains("cut and not stored (an artifact of 9 bytes"));
    assert!(cost(&TOKENS, &fitted) <= 200);
}

#[test]
fn previews_of_artifacts_end_at_a_character() {
    assert_eq!(preview("é".repeat(600).as_bytes()), "é".repeat(512));
    assert_eq!(
        preview(format!("x{}", "é".repeat(600)).as_bytes()).len(),
        1_023
    );
    assert_eq!(preview(&[0xff, 0xfe, 1]), "");
    assert_eq!(preview(b""), "");
}

#[test]
fn hostile_data_is_bounded() {
    let keys: serde_json::Map<String, Value> =
        (0..20_000).map(|n| (format!("key{n}"), json!(n))).collect();
    let mut deep = json!("end");
    for _ in 0..60 {
        deep = json!([deep, "x".repeat(500)]);
    }
    for data in [
        json!({"k".repeat(100_000): 1, format!("{}x", "k".repeat(100_000)): 2}),
        Value::Object(keys),
        json!({"deep": deep}),
        json!({"esc": "\u{1}\\\"\u{1F600}".repeat(9_000)}),
        json!({"a": vec![json!([]); 30_000]}),
    ] {
        for limit in [0, 1, 2, 10, 40, 100, 700] {
            for tokenizer in [&TOKENS as &dyn Tokenizer, &ByBytes] {
                let (fitted, _) = run(
                    vec![Content::text("t")],
                    Some(&data),
                    tokenizer,
                    limit,
                    Overflow::Store,
                );
                assert!(cost(tokenizer, &fitted) <= limit, "{limit}");
                assert!(fitted.data.is_none() && limit < 10 || value(&fitted).is_object());
            }
        }
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "(?s).{0,80}".prop_map(Value::from),
        (0_usize..2_000, "[a-zé\"\\\\\n😀]{1,3}").prop_map(|(n, s)| s.repeat(n).into()),
    ];
    // Only leaves are multiplied: the whole stays below a few megabytes.
    let many = (leaf.clone(), 0_usize..300).prop_map(|(one, n)| vec![one; n].into());
    prop_oneof![4 => leaf, 1 => many].prop_recursive(4, 48, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::hash_map(".{0,12}", inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_content() -> impl Strategy<Value = Vec<Content>> {
    let text =
        (0_usize..800, "(?s).{0,12}|[a-z \n]{0,30}").prop_map(|(n, s)| Content::text(s.repeat(n)));
    let link = "[a-z]{0,40}".prop_map(|name| Content::ResourceLink {
        uri: format!("file:///{name}"),
        name,
        mime_type: None,
        bytes: None,
    });
    prop::collection::vec(prop_oneof![4 => text, 1 => link], 0..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn what_is_shown_never_exceeds_the_limit(
        content in any_content(),
        data in prop::option::of(any_value()),
        limit in prop_oneof![0_usize..60, 60_usize..3_000],
        by_bytes in any::<bool>(),
        clip in any::<bool>(),
    ) {
        let tokenizer: &dyn Tokenizer = if by_bytes { &ByBytes } else { &TOKENS };
        let overflow = if clip { Overflow::Clip } else { Overflow::Store };
        let (fitted, kept) = run(content.clone(), data.as_ref(), tokenizer,
limit, overflow);
        prop_assert!(cost(tokenizer, &fitted) <= limit);
        if fitted.data.is_some() {
            prop_assert!(value(&fitted).is_object());
        }
        if clip {
            prop_assert!(kept.is_empty());
        } else if let Some(data) = &data {
            let whole = object(raw(data)).get().to_owned();
            let shown = fitted.data.as_ref().is_some_and(|raw| raw.get() == whole);
            prop_assert!(shown || kept.iter().any(|(_, bytes)| *bytes == whole.as_bytes()));
        }
    }
}
