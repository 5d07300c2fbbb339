//! Questions for names: well-formed, malformed and endless ones.

use proptest::prelude::*;

use super::{NameTable, answer};

fn question(name: &str, kind: u16) -> Vec<u8> {
    let mut bytes = vec![7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.').filter(|label| !label.is_empty()) {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes.extend(kind.to_be_bytes());
    bytes.extend([0, 1]);
    bytes
}

/// Returns the code of an answer and the address in it.
fn read(answer: &[u8]) -> (u8, Option<String>) {
    assert_eq!(answer[..2], [7, 9]);
    assert_eq!(answer[2] & 0x80, 0x80);
    let data = (answer[7] == 1).then(|| match answer[answer.len() - 5] {
        4 => format!("{:?}", &answer[answer.len() - 4..]),
        _ => format!("{:?}", &answer[answer.len() - 16..]),
    });
    (answer[3] & 15, data)
}

#[test]
fn a_name_of_a_host_has_one_address_and_every_other_has_none() {
    let names = NameTable::default();
    let long = format!(
        "{}.example.com",
        ["a"; 3].map(|label| label.repeat(60)).join(".")
    );
    let local = Some("[127, 0, 0, 1]".to_owned());
    for (name, kind, code, found) in [
        ("example.com", 1, 0, true),
        ("EXAMPLE.com", 1, 0, true),
        ("_dmarc.xn--bcher-kva.example.com", 1, 0, true),
        ("registry.internal", 1, 0, true),
        (&long, 1, 0, true),
        ("example.com", 28, 0, false),
        ("example.com", 16, 0, false),
        ("example.com", 65, 0, false),
        ("example.com", 255, 0, false),
        ("printer", 1, 3, false),
        ("printer.local", 1, 3, false),
        ("x.onion", 1, 3, false),
        ("nothing.invalid", 1, 3, false),
        ("7.0.0.10.in-addr.arpa", 12, 3, false),
        ("", 1, 3, false),
        // Addresses are not names.
        ("127.0.0.1", 1, 3, false),
        ("0x7f.1", 1, 3, false),
        ("10.1", 1, 3, false),
        ("a b.example.com", 1, 3, false),
        ("bücher.example.com", 1, 3, false),
    ] {
        let (answered, data) = read(&answer(&question(name, kind), &names).unwrap());
        assert_eq!((answered, data.is_some()), (code, found), "{name} {kind}");
    }
    let (_, one) = read(&answer(&question("example.com", 1), &names).unwrap());
    let (_, other) = read(&answer(&question("Example.COM", 1), &names).unwrap());
    assert_eq!(one, other);
    assert!(one.unwrap().starts_with("[198, 1"));
    assert_eq!(
        read(&answer(&question("app.localhost", 1), &names).unwrap()).1,
        local
    );
}

#[test]
fn what_is_no_question_is_malformed_or_not_answered() {
    let names = NameTable::default();
    let plain = question("example.com", 1);
    let with = |at: usize, byte: u8| {
        let mut bytes = plain.clone();
        bytes[at] = byte;
        bytes
    };
    // A name that refers to itself, and one that refers beyond the message.
    let pointer = |to: u8| [&plain[..12], &[0xc0, to, 0, 1, 0, 1]].concat();
    let long = [
        &plain[..12],
        &[1, b'a'].repeat(127),
        &[1, b'a', 0, 0, 1, 0, 1],
    ]
    .concat();
    for (what, bytes, expect) in [
        ("nothing", Vec::new(), None),
        ("a part of a head", plain[..11].to_vec(), None),
        ("an answer", with(2, 0x81), None),
        ("another operation", with(2, 0x10), Some(4)),
        ("no question", with(5, 0), Some(1)),
        ("two questions", with(5, 2), Some(1)),
        ("another class", with(plain.len() - 1, 3), Some(5)),
        ("a cut question", plain[..plain.len() - 1].to_vec(), Some(1)),
        ("a long label", with(12, 64), Some(1)),
        ("a label beyond the end", with(12, 63), Some(1)),
        ("a loop", pointer(12), Some(1)),
        ("a reference", pointer(200), Some(1)),
        ("a name of 257 bytes", long, Some(1)),
        ("a zero in a name", with(13, 0), Some(3)),
        (
            "more behind it",
            [&plain[..], &[0, 0, 41, 16, 0]].concat(),
            Some(0),
        ),
    ] {
        let code = answer(&bytes, &names).map(|answer| answer[3] & 15);
        assert_eq!(code, expect, "{what}");
    }
}

proptest! {
    #[test]
    fn any_message_is_answered_briefly(bytes in prop::collection::vec(any::<u8>(), 0..700), at in 0_usize..29, byte: u8) {
        let names = NameTable::default();
        let mut near = question("example.com", 1);
        near[at] = byte;
        for message in [bytes, near] {
            if let Some(answer) = answer(&message, &names) {
                prop_assert!(answer.len() <= 12 + 259 + 28);
                prop_assert_eq!(answer[2] & 0x80, 0x80);
            }
        }
    }
}
