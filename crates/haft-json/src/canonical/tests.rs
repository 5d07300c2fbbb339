//! Tests of the canonical form: RFC 8785's own examples, and what it leaves open.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::scan::scan;

fn check(text: &str, expect: &str) {
    assert_eq!(canonical(text).unwrap(), expect, "of {text}");
}

#[test]
fn the_examples_of_rfc_8785_come_out_as_printed_there() {
    // §3.2.2 and §3.2.3.
    check(
        r#"{
          "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
          "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
          "literals": [null, true, false]
        }"#,
        "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],\
         \"string\":\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}",
    );
    // §3.2.3: sorting by UTF-16 units puts the emoji (surrogates) before U+FB33.
    check(
        r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh",
            "1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#,
        "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\"\u{f6}\":\"Latin Small Letter O With Diaeresis\",\
         \"\u{20ac}\":\"Euro Sign\",\"\u{1f600}\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}",
    );
}

#[test]
fn the_doubles_of_rfc_8785_appendix_b_print_as_there() {
    for (bits, expect) in [
        (0x0000_0000_0000_0000_u64, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ] {
        // Seventeen digits with an exponent read back as exactly this double, and never as an integer.
        check(&format!("{:.17e}", f64::from_bits(bits)), expect);
    }
}

#[test]
fn an_integer_that_no_double_holds_keeps_its_digits() {
    for (text, expect) in [
        ("9007199254740991", "9007199254740991"),
        ("9007199254740993", "9007199254740993"),
        ("-9007199254740993", "-9007199254740993"),
        ("18446744073709551615", "18446744073709551615"),
        (
            "123456789012345678901234567890",
            "123456789012345678901234567890",
        ),
        ("-0", "0"),
        ("-12", "-12"),
        ("1.0", "1"),
        ("1e2", "100"),
        ("-0.0", "0"),
    ] {
        check(text, expect);
    }
    assert_ne!(
        args_digest(r#"{"id":9007199254740992}"#),
        args_digest(r#"{"id":9007199254740993}"#)
    );
}

#[test]
fn what_differs_only_in_writing_has_one_digest() {
    let one = args_digest(r#"{"b":[1.0,"\u0041"],"a":null}"#);
    assert_eq!(one, args_digest(" {\n\"a\" : null, \"b\": [1, \"A\"] } "));
    // printf '{"a":null,"b":[1,"A"]}' | sha256sum
    assert_eq!(
        one,
        "350b198d4a303fedbbaa30072c3b6d0cf6a4d246e4a4c1fed4a325f34672e4f9"
    );
    assert_eq!(args_digest(""), args_digest("{}"));
    assert_ne!(args_digest("{"), args_digest("{}"));
}

#[test]
fn text_that_is_no_strict_json_has_no_canonical_form() {
    let deep = "[".repeat(65) + &"]".repeat(65);
    for text in [
        "",
        "{",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "01",
        "1.",
        "1e",
        "+1",
        ".5",
        "-",
        "tru",
        "\"\\x\"",
        "\"a",
        "\"\u{1}\"",
        "1 2",
        "\"\\ud800\"",
        "\"\\ud800\\u0041\"",
        "\"\\udc00\"",
        "{\"a\":1,\"\\u0061\":2}",
        "\"\\u00g0\"",
        "\"\\u+123\"",
        "1e400",
        "\u{feff}1",
        "1\0",
        &deep,
    ] {
        assert!(canonical(text).is_err(), "{text} has a canonical form");
        assert_eq!(canonical(text).err(), scan(text).err(), "{text}");
        assert_eq!(args_digest_without(text, &["a"]), args_digest(text));
    }
}

#[test]
fn the_canonical_form_is_its_own_canonical_form_and_means_the_same() {
    let value =
        serde_json::json!({"z": [{"b": 1, "a": 2.5e-9}, "\u{7f}\u{2028}"], "": {"é": {}, "e": []}});
    let once = canonical(&value.to_string()).unwrap();
    assert_eq!(canonical(&once).unwrap(), once);
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&once).unwrap(),
        value
    );
}

#[test]
fn recorded_forms_stay_what_they_are() {
    // Pairs of a text and its form, recorded when the canonical form had its own reader: digests in records depend on them.
    let recorded = include_str!("../../tests/corpus/canonical.jsonl");
    let mut count = 0;
    for line in recorded.lines() {
        let pair: [String; 2] = serde_json::from_str(line).unwrap();
        let [text, expect] = pair;
        check(&text, &expect);
        assert_eq!(args_digest(&text), hex(&Sha256::digest(&expect)), "{text}");
        count += 1;
    }
    assert!(count >= 400, "{count} pairs only");
}

#[test]
fn members_that_are_left_out_change_no_other() {
    for (text, names, expect) in [
        (r#"{"a":1,"b":2,"c":3}"#, &["b"][..], r#"{"a":1,"c":3}"#),
        (r#"{"c":1,"b":2,"a":3}"#, &["c", "a"], r#"{"b":2}"#),
        (r#"{"\u0061":1}"#, &["a"], "{}"),
        (r#"{"b":{"a":1},"a":[{"a":2}]}"#, &["a"], r#"{"b":{"a":1}}"#),
        (r#"{"a":1}"#, &[], r#"{"a":1}"#),
        (r#"{"a":1}"#, &["b"], r#"{"a":1}"#),
        ("", &["a"], "{}"),
        // Not an object: nothing is left out.
        (r#"[{"a":1}]"#, &["a"], r#"[{"a":1}]"#),
    ] {
        let digest = args_digest_without(text, names);
        assert_eq!(digest, args_digest(expect), "{text} without {names:?}");
    }
}

/// Pieces of JSON, valid and invalid.
const PIECES: [&str; 24] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    " ",
    "\n",
    "\"a\"",
    "\"\\u0061\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud83d\"",
    "\"é\u{fb33}\"",
    "0",
    "-0",
    "01",
    "1.50",
    "1e400",
    "18446744073709551616",
    "true",
    "null",
    "nul",
    "{\"b\":1,\"a\":2}",
    "[[],{}]",
];

fn any_pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(PIECES.as_slice());
    prop::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}

/// Generates a valid value with one piece inserted into its text, or replacing a part of it.
fn any_damaged() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(PIECES.as_slice());
    let place = (any::<prop::sample::Index>(), 0..3_usize);
    (crate::tests::any_value(), piece, place).prop_map(|(value, piece, (at, over))| {
        let text = value.to_string();
        let start = text.floor_char_boundary(at.index(text.len() + 1));
        let end = text.ceil_char_boundary((start + over).min(text.len()));
        [&text[..start], piece, &text[end..]].concat()
    })
}

fn check_agreement(text: &str) {
    assert_eq!(canonical(text).err(), scan(text).err(), "{text}");
    if let Ok(form) = canonical(text) {
        assert_eq!(canonical(&form).as_ref(), Ok(&form), "{text}");
    }
}

proptest! {
    #[test]
    fn the_scan_accepts_what_has_a_canonical_form_and_nothing_else(
        pieces in any_pieces(),
        damaged in any_damaged(),
    ) {
        check_agreement(&pieces);
        check_agreement(&damaged);
    }

    #[test]
    fn every_value_has_one_canonical_form_that_means_the_same(value in crate::tests::any_value()) {
        let form = canonical(&value.to_string()).unwrap();
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        prop_assert_eq!(&canonical(&pretty).unwrap(), &form);
        let read: Value = serde_json::from_str(&form).unwrap();
        prop_assert_eq!(canonical(&read.to_string()).unwrap(), form);
    }
}
