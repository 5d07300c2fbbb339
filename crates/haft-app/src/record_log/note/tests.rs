//! Notes of the reference implementation (`golang.org/x/mod/sumdb/note`), whole and damaged.

use super::*;

/// The published example: the verifier key, the seed behind its type, the text and the signature.
const VERIFIER: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const SEED: &str = "AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
const TEXT: &str = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
const SIGNATURE: &str = "\u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";

fn pair() -> Ed25519KeyPair {
    let seed = STANDARD.decode(SEED).unwrap();
    Ed25519KeyPair::from_seed_unchecked(&seed[1..]).unwrap()
}

#[test]
fn notes_are_signed_as_the_reference_does() {
    let note = sign(TEXT, "PeterNeumann", &pair());
    assert_eq!(note, format!("{TEXT}\n{SIGNATURE}"));
    let key = verifier("PeterNeumann", &pair());
    assert_eq!(key.to_string(), VERIFIER);
    assert_eq!(VerifierKey::parse(VERIFIER), Ok(key.clone()));
    assert_eq!(key.verify(&note), Ok(TEXT));
}

#[test]
fn a_verifier_key_with_any_byte_changed_is_refused() {
    for at in 0..VERIFIER.len() {
        let mut other = VERIFIER.as_bytes().to_vec();
        other[at] ^= 1;
        let other = String::from_utf8(other).unwrap();
        // The last character has two bits that base64 does not use; the decoder wants them to be zero.
        assert!(VerifierKey::parse(&other).is_err(), "{other}");
        assert!(VerifierKey::parse(&VERIFIER[..at]).is_err(), "{at}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn a_note_counts_only_if_the_known_key_signed_exactly_this_text() {
    use NoteError::{Foreign, Forged, Malformed};
    let key = VerifierKey::parse(VERIFIER).unwrap();
    let note = format!("{TEXT}\n{SIGNATURE}");
    let other = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
    let by_other = sign(TEXT, "other", &other);
    let line_of_other = by_other.rsplit_once("\n\n").unwrap().1;
    let many = line_of_other.repeat(16);
    let rows: Vec<(&str, String, Result<&str, NoteError>)> = vec![
        ("whole", note.clone(), Ok(TEXT)),
        ("beside another", format!("{note}{line_of_other}"), Ok(TEXT)),
        (
            "behind 16 others",
            format!("{TEXT}\n{many}{SIGNATURE}"),
            Ok(TEXT),
        ),
        (
            "behind 1,600 others",
            format!("{TEXT}\n{}{SIGNATURE}", many.repeat(100)),
            Err(Malformed),
        ),
        ("by another alone", by_other.clone(), Err(Foreign)),
        (
            "of the same name",
            sign(TEXT, "PeterNeumann", &other),
            Err(Foreign),
        ),
        (
            "of another text",
            note.replace("answer", "question"),
            Err(Forged),
        ),
        (
            "once right, once wrong",
            format!("{}{SIGNATURE}", sign("x\n", "PeterNeumann", &pair())),
            Err(Forged),
        ),
        ("without a signature", format!("{TEXT}\n"), Err(Malformed)),
        (
            "without the end of a line",
            note.trim_end().to_owned(),
            Err(Malformed),
        ),
        (
            "with a hyphen",
            note.replace('\u{2014}', "-"),
            Err(Malformed),
        ),
        (
            "with a control character",
            note.replace("you think", "you\tthink"),
            Err(Malformed),
        ),
        (
            "with no base64",
            note.replace("x08go", "x08g!"),
            Err(Malformed),
        ),
        (
            "with an id alone",
            format!("{TEXT}\n\u{2014} PeterNeumann x08gow==\n"),
            Err(Malformed),
        ),
        (
            "with a plus in the name",
            note.replace("PeterNeumann", "Peter+Neumann"),
            Err(Malformed),
        ),
        ("nothing", String::new(), Err(Malformed)),
    ];
    for (name, note, expect) in rows {
        assert_eq!(key.verify(&note), expect, "{name}");
    }
    for end in 0..note.len() {
        if note.is_char_boundary(end) {
            assert!(key.verify(&note[..end]).is_err(), "{end}");
        }
    }
}
