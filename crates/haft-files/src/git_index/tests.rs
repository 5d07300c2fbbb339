//! Indexes that git reads otherwise than they look, beside those that git writes.

use super::{Index, MODE, ObjectHash, STAT};

/// An entry of a made index.
#[derive(Clone)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) object: u8,
    /// The extended flags.
    pub(super) more: u16,
    pub(super) mode: u32,
    pub(super) stage: u16,
    /// The stated length, if it is another one than that of the name.
    pub(super) length: Option<u16>,
    /// What stands between this entry and the next one, if not zeros.
    pub(super) filler: u8,
}

impl Row {
    pub(super) fn of(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            object: 1,
            more: 0,
            mode: 0o100_644,
            stage: 0,
            length: None,
            filler: 0,
        }
    }
}

/// Makes an index without extensions and hash.
pub(super) fn made_index(version: u32, rows: &[Row]) -> Vec<u8> {
    let mut out = b"DIRC".to_vec();
    out.extend(version.to_be_bytes());
    out.extend(u32::try_from(rows.len()).unwrap().to_be_bytes());
    let mut last = "";
    for row in rows {
        let begin = out.len();
        let mut fixed = vec![0; STAT];
        fixed[MODE..MODE + 4].copy_from_slice(&row.mode.to_be_bytes());
        out.extend(fixed);
        out.extend([row.object; 20]);
        let length = u16::try_from(row.name.len().min(0xfff)).unwrap();
        let extended: u16 = if row.more == 0 { 0 } else { 0x4000 };
        let flags = extended | row.stage << 12 | row.length.unwrap_or(length);
        out.extend(flags.to_be_bytes());
        if row.more != 0 {
            out.extend(row.more.to_be_bytes());
        }
        if version == 4 {
            let pairs = last.bytes().zip(row.name.bytes());
            let same = pairs.take_while(|(a, b)| a == b).count();
            out.push(u8::try_from(last.len() - same).unwrap());
            out.extend(row.name.as_bytes().iter().skip(same));
            out.push(0);
            last = &row.name;
        } else {
            out.extend(row.name.as_bytes());
            let padding = 8 - (out.len() - begin) % 8;
            out.push(0);
            out.resize(out.len() + padding - 1, row.filler);
        }
    }
    out
}

/// Returns the names in an index, or `None` if it is refused.
fn names(bytes: &[u8]) -> Option<String> {
    let index = Index::of(bytes, ObjectHash::Sha1)?;
    let mut found = Vec::new();
    let end = index.each(&mut |entry| {
        found.push(String::from_utf8_lossy(entry.name()).into_owned());
        true
    })?;
    index.extensions(end)?;
    Some(found.join(" "))
}

/// A name, and the entries of an index.
type IndexCase = (&'static str, Vec<Row>);

fn plain(names: &[&str]) -> Vec<Row> {
    names.iter().map(|name| Row::of(name)).collect()
}

/// Three entries, of which the second is another one.
fn with(change: fn(&mut Row)) -> Vec<Row> {
    let mut rows = plain(&["a", "b", "c"]);
    change(&mut rows[1]);
    rows
}

/// An entry with these stages.
fn stages(all: &[u16]) -> Vec<Row> {
    let of = |stage: &u16| Row {
        stage: *stage,
        ..Row::of("a")
    };
    all.iter().map(of).collect()
}

fn long_name() -> String {
    "x".repeat(5_000)
}

/// Indexes that git reads as they look.
fn sound() -> Vec<IndexCase> {
    vec![
        ("none", plain(&[])),
        ("plain", plain(&["a", "a-b", "a/c", "b"])),
        ("a long name", plain(&["a", &long_name()])),
        ("conflict", stages(&[1, 2, 3])),
        ("link", with(|row| row.mode = 0o120_000)),
        ("submodule", with(|row| row.mode = 0o160_000)),
        ("merged and in conflict", stages(&[0, 1])),
    ]
}

/// Indexes that git might read otherwise.
fn ambiguous() -> Vec<IndexCase> {
    vec![
        ("a longer name stated", with(|row| row.length = Some(9))),
        ("a shorter name stated", with(|row| row.length = Some(0))),
        (
            "the longest name stated",
            with(|row| row.length = Some(0xfff)),
        ),
        ("a long name's end stated", {
            let mut rows = plain(&["a", &long_name()]);
            rows[1].length = Some(0x388);
            rows
        }),
        ("no name", plain(&[""])),
        ("a name twice", plain(&["a", "a"])),
        ("out of order", plain(&["b", "a"])),
        ("stages out of order", stages(&[2, 1])),
        ("a stage twice", stages(&[2, 2])),
        ("permissions", with(|row| row.mode = 0o100_600)),
        ("link with permissions", with(|row| row.mode = 0o120_777)),
        ("folder with permissions", with(|row| row.mode = 0o040_755)),
        ("folder without a slash", with(|row| row.mode = 0o040_000)),
        ("file with a slash", with(|row| row.name = "b/".to_owned())),
        (
            "folder, and no sparse index",
            with(|row| {
                row.mode = 0o040_000;
                row.name = "b/".to_owned();
            }),
        ),
    ]
}

#[test]
fn index_that_git_might_read_otherwise_is_refused() {
    let sound = sound().into_iter().map(|case| (case, true));
    let ambiguous = ambiguous().into_iter().map(|case| (case, false));
    for ((what, rows), is_read) in sound.chain(ambiguous) {
        for version in [2, 3, 4] {
            let mut bytes = made_index(version, &rows);
            bytes.extend([0; 20]);
            assert_eq!(
                names(&bytes).is_some(),
                is_read,
                "{what}, version {version}"
            );
        }
    }
    for (version, more, filler, is_read) in [
        (2, 0, b'x', false),
        (2, 0x4000, 0, false),
        (3, 0x4000, 0, true),
        (3, 0x6000, 0, true),
        (3, 0x8000, 0, false),
        (4, 0x1000, 0, false),
    ] {
        let mut rows = plain(&["aa", "b"]);
        (rows[0].more, rows[0].filler) = (more, filler);
        let mut bytes = made_index(version, &rows);
        bytes.extend([0; 20]);
        assert_eq!(
            names(&bytes).is_some(),
            is_read,
            "{version} {more:x} {filler}"
        );
    }
}

/// An extension: its name, and numbers, where `E` is the end of the entries and a letter the beginning of an entry.
type MadeExtension = (&'static str, &'static str);

#[test]
fn extensions_that_lead_to_other_entries_are_refused() {
    let end = ("EOIE", "E 0 0 0 0 0");
    let rows: &[(&[MadeExtension], bool)] = &[
        (&[], true),
        (
            &[("TREE", ""), ("REUC", ""), ("UNTR", ""), ("FSMN", "")],
            true,
        ),
        (&[("IEOT", "1 a 2 c 1"), end], true),
        (&[("IEOT", "1 a 1 b 1 c 1"), end], true),
        (&[("IEOT", "1 a 1 b 0 b 2"), end], true),
        (&[("sdir", ""), end], true),
        (&[("link", "")], true),
        (&[("XXXX", "")], false),
        (&[("xxxx", "")], false),
        (&[("TREE", ""), ("TREE", "")], false),
        (&[("EOIE", "0 0 0 0 0 0")], false),
        (&[("EOIE", "b 0 0 0 0 0")], false),
        (&[("EOIE", "E")], true),
        (&[end, ("TREE", "")], false),
        // What git takes for one lies in another.
        (&[("TREE", "1162824005 24 a 0 0 0 0 0")], false),
        (&[("IEOT", "2 a 3"), end], false),
        (&[("IEOT", "1 a 2"), end], false),
        (&[("IEOT", "1 a 4"), end], false),
        (&[("IEOT", "1 b 3"), end], false),
        (&[("IEOT", "1 a 1 c 2"), end], false),
        (&[("IEOT", "1 a 3 E 0"), end], false),
        (&[("IEOT", "1 a 3 9"), end], false),
        (&[("IEOT", "1 9 0 a 3"), end], false),
        (&[("IEOT", ""), end], false),
    ];
    for version in [2, 4] {
        for (extensions, is_read) in rows {
            let mut bytes = made_index(version, &["a", "b", "c"].map(Row::of));
            let end = bytes.len();
            let begins = |entry: usize| 12 + entry * (end - 12) / 3;
            for (name, numbers) in *extensions {
                let number = |word: &str| match word {
                    "E" => end,
                    "a" | "b" | "c" => begins(usize::from(word.as_bytes()[0] - b'a')),
                    digits => digits.parse().unwrap(),
                };
                let words = numbers.split_whitespace().map(number);
                let words = words.map(|word| u32::try_from(word).unwrap().to_be_bytes());
                let content: Vec<u8> = words.flatten().collect();
                bytes.extend(name.as_bytes());
                bytes.extend(u32::try_from(content.len()).unwrap().to_be_bytes());
                bytes.extend(content);
            }
            bytes.extend([0; 20]);
            assert_eq!(
                names(&bytes).is_some(),
                *is_read,
                "{extensions:?}, version {version}"
            );
        }
    }
}

#[test]
fn table_of_a_part_that_needs_the_name_before_it_is_refused() {
    let mut bytes = made_index(4, &["aa", "ab"].map(Row::of));
    let end = u32::try_from(bytes.len()).unwrap();
    let second = end - (end - 12) / 2;
    bytes.extend(*b"IEOT\0\0\0\x14\0\0\0\x01");
    for word in [12, 1, second, 1] {
        bytes.extend(u32::to_be_bytes(word));
    }
    bytes.extend([0; 20]);
    assert_eq!(names(&bytes), None);
}
