//! What a request shows of files of all sizes, and that it costs no more than its budget.

use std::io::Write as _;

use super::{ChangeSide, FileChange, MAX_DETAILED, MAX_TEXT, Preview};

fn lines(count: usize, changed: &[usize]) -> String {
    let line = |nth| {
        let word = if changed.contains(&nth) {
            "changed"
        } else {
            "line"
        };
        format!("{word} {nth}\n")
    };
    (0..count).map(line).collect()
}

fn change(before: &[u8], after: &[u8]) -> FileChange {
    FileChange::new("a", Some(before), Some(after))
}

#[test]
fn a_short_file_is_shown_whole_with_its_counts() {
    let shown = change(b"a\nb\n", b"a\nc\nd\n");
    assert_eq!(shown.before.as_deref(), Some("a\nb\n"));
    assert_eq!(shown.after.as_deref(), Some("a\nc\nd\n"));
    assert_eq!(shown.lines(), Some((2, 1)));
    assert!(shown.hunks.is_empty() && !shown.clipped);
}

#[test]
fn a_change_past_256_kib_shows_the_changed_lines() {
    let (before, after) = (lines(60_000, &[]), lines(60_000, &[50_000]));
    assert!(before.len() > 512 << 10);
    let shown = change(before.as_bytes(), after.as_bytes());
    assert_eq!((&shown.before, &shown.after), (&None, &None));
    let [hunk] = &shown.hunks[..] else {
        panic!("{:?}", shown.hunks)
    };
    assert_eq!((hunk.before_line, hunk.after_line), (49_998, 49_998));
    assert!(hunk.after.contains("changed 50000\n") && hunk.before.contains("line 50000\n"));
    assert_eq!(hunk.before.lines().count(), 7);
    assert!(!shown.clipped && shown.lines() == Some((1, 1)));
}

#[test]
fn an_invalid_byte_is_escaped_and_nul_bytes_are_binary() {
    let shown = change(b"caf\xe9\n", b"caff\xe9\n");
    assert!(shown.escaped && !shown.binary);
    assert_eq!(shown.after.as_deref(), Some("caff\\xe9\n"));
    let shown = change(b"text\n", b"\0\0\0");
    assert!(shown.binary && shown.before.is_none() && shown.text_bytes() == 0);
    assert!(shown.after_sha256.is_some());
}

#[test]
fn every_file_gets_something_before_one_gets_all() {
    let long = lines(400_000, &[]);
    let mut preview = Preview::default();
    for nth in 0..500 {
        let text = if nth % 50 == 0 {
            long.clone()
        } else {
            format!("short {nth}\n")
        };
        let bytes = text.into_bytes();
        let change = FileChange::hashed(format!("f{nth}"), None, Some(&bytes));
        preview.add(change, ChangeSide::None, ChangeSide::Content(bytes.into()));
    }
    let shown = preview.into_changes();
    let spent: usize = shown.iter().map(FileChange::text_bytes).sum();
    assert!(spent <= MAX_TEXT && spent > MAX_TEXT / 2, "{spent}");
    for (nth, file) in shown.iter().enumerate() {
        assert_eq!(file.path, format!("f{nth}"));
        assert!(file.text_bytes() > 0, "{nth}");
        assert_eq!(file.clipped, nth % 50 == 0, "{nth}");
    }
}

#[test]
fn files_beyond_the_limit_are_named_with_size_and_hash() {
    let mut preview = Preview::default();
    for nth in 0..MAX_DETAILED + 5 {
        let bytes = format!("{nth}\n").into_bytes();
        let change = FileChange::hashed(format!("f{nth:05}"), None, Some(&bytes));
        preview.add(change, ChangeSide::None, ChangeSide::Content(bytes.into()));
    }
    let shown = preview.into_changes();
    let folded: Vec<_> = shown.iter().filter(|file| file.folded.is_some()).collect();
    assert_eq!(folded.len(), 5);
    let complete = |file: &&&FileChange| file.after_sha256.is_some() && file.after_bytes.is_some();
    assert!(folded.iter().all(|file| complete(&file)));
}

#[test]
fn a_huge_file_shows_where_it_begins_to_differ() {
    let file = |text: &str| {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.set_len(1 << 40).unwrap();
        file
    };
    let same = lines(100_000, &[]);
    let (was, is) = (format!("{same}old\n"), format!("{same}new\n"));
    let mut preview = Preview::default();
    let mut change = FileChange::unread("big");
    (change.before_bytes, change.after_bytes) = (Some(1 << 40), Some(1 << 40));
    let (was, is) = (file(&was), file(&is));
    preview.add(
        change,
        ChangeSide::File(Box::new(move || Some(was))),
        ChangeSide::File(Box::new(move || Some(is))),
    );
    let shown = preview.into_changes().pop().unwrap();
    assert!(shown.clipped && shown.text_bytes() <= 64 << 10);
    assert_eq!(shown.hunks[0].after_line, 100_001);
    assert!(shown.hunks[0].after.starts_with("new\n"));
}

#[test]
fn files_compare_by_hash_however_much_of_them_is_shown() {
    let long = lines(60_000, &[]);
    let whole = FileChange::new("a", None, Some(long.as_bytes()));
    let mut folded = whole.clone();
    folded.fold("there are too many files");
    assert!(whole != folded && whole.is_same(&folded) && folded.is_same(&whole));
    let other = FileChange::new("a", None, Some(lines(60_000, &[59_999]).as_bytes()));
    assert!(!folded.is_same(&other));
    let mut unhashed = folded.clone();
    unhashed.after_sha256 = None;
    assert!(!unhashed.is_same(&folded));
}
