//! Texts and patches: how patches are parsed, and the results of applying them.

use proptest::prelude::*;
use similar::TextDiff;

use super::fit::fit;
use super::parse::parse;
use super::section::SectionAction;

/// Returns the new text or the error.
fn applied(old: &[u8], patch: &str) -> Result<Vec<u8>, String> {
    let sections = parse(patch).map_err(|e| e.to_string())?;
    let [section] = &sections[..] else {
        return Err(format!("{} sections", sections.len()));
    };
    match &section.action {
        SectionAction::Add { lines, ends } => Ok(super::plan::added(lines, *ends).text),
        SectionAction::Update { hunks, .. } | SectionAction::Delete { hunks } => {
            fit(old, hunks, &|| false)
                .map(|fitted| fitted.text)
                .map_err(|e| e.to_string())
        }
    }
}

#[track_caller]
fn check(old: &str, patch: &str, expect: Result<&str, &str>) {
    let got = applied(old.as_bytes(), patch).map(|text| String::from_utf8(text).unwrap());
    match (&got, expect) {
        (Ok(text), Ok(expect)) => assert_eq!(text, expect, "{patch}"),
        (Err(error), Err(expect)) => {
            assert!(
                error.contains(expect),
                "{error:?} lacks {expect:?}\n{patch}"
            );
        }
        _ => panic!("{got:?} instead of {expect:?}\n{patch}"),
    }
}

/// Returns a patch of file `f` with this body.
fn update(body: &str) -> String {
    format!("*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch\n")
}

const CLASSES: &str = "class A:\n    def run():\n        pass\n\nclass B:\n    def run():\n        pass\n    def end():\n        pass\n";

#[test]
fn hunks_by_context() {
    for (old, body, expect) in [
        ("a\nb\nc\n", "@@\n a\n-b\n+x\n c", Ok("a\nx\nc\n")),
        ("a\nb\nc\n", "-b", Ok("a\nc\n")),
        ("a\nb\nc\n", " a\n+x\n@@\n-c\n+z", Ok("a\nx\nb\nz\n")),
        ("a\n\nb\n", "@@\n a\n\n-b\n+c\n", Ok("a\n\nc\n")),
        // A blank line before the next header does not belong to the file.
        ("a\nb\n", "@@\n-a\n+x\n b\n\n", Ok("x\nb\n")),
        (
            "a\na\n",
            "@@\n-a\n+x",
            Err("fits in 2 places, at lines 1, 2"),
        ),
        ("a\na\n", "@@\n-a\n+x\n*** End of File", Ok("a\nx\n")),
        (
            "a\nb\n",
            "@@\n-a\n+x\n*** End of File",
            Err("not the file's last"),
        ),
        (
            "a\nb\n",
            "@@\n-z\n+x",
            Err("its first line is not in the file"),
        ),
        (
            "a\nb\nc\n",
            "@@\n a\n b\n-d\n+x",
            Err("nearest is line 1, but line 6 of the patch is not line 3 of the file"),
        ),
        (
            "a\nb\nc\n",
            "@@\n-c\n+z\n@@\n-a\n+x",
            Err("its lines are at line 1, before where the hunk above it ends"),
        ),
        ("a\nb\n", "@@\n+x", Ok("a\nb\nx\n")),
        ("a\nb\n", "@@ a\n+x", Ok("a\nx\nb\n")),
        ("", "@@\n+x", Ok("x\n")),
    ] {
        check(old, &update(body), expect);
    }
}

#[test]
fn anchors_tell_places_apart() {
    for (body, expect) in [
        ("@@\n-        pass\n+        go", Err("fits in 3 places")),
        (
            "@@ class B:\n-        pass\n+        go",
            Ok(CLASSES.replacen(
                "class B:\n    def run():\n        pass",
                "class B:\n    def run():\n        go",
                1,
            )),
        ),
        (
            "@@ class B\n@@     def end():\n-        pass\n+        go",
            Ok(CLASSES.replacen("end():\n        pass", "end():\n        go", 1)),
        ),
        // The anchor line itself may be part of the hunk.
        (
            "@@ class B:\n class B:\n-    def run():\n+    def go():",
            Ok(CLASSES.replacen("class B:\n    def run", "class B:\n    def go", 1)),
        ),
        (
            "@@ def run():\n-        pass\n+        go",
            Err("fits in 3 places"),
        ),
        (
            "@@ def run():\n+        go",
            Err("fits in 2 places, at lines 2, 6"),
        ),
        (
            "@@ class C\n-        pass",
            Err("no line \"class C\" from line 1 on"),
        ),
        // Line numbers of the other format are used where they help.
        (
            "@@ -9,1 +9,1 @@\n-        pass\n+        go",
            Ok(CLASSES.replacen("end():\n        pass", "end():\n        go", 1)),
        ),
    ] {
        let expect: Result<String, &str> = expect;
        check(CLASSES, &update(body), expect.as_deref().map_err(|e| *e));
    }
}

#[test]
fn lines_fit_but_for_blanks_and_marks_and_stay_as_they_are() {
    for (old, body, expect) in [
        ("a  \nb\n", "@@\n a\n-b\n+c", Ok("a  \nc\n")),
        ("\ta\n\tb\n", "@@\n a\n-b\n+c", Ok("\ta\nc\n")),
        (
            "say “a” – b\nc\n",
            "@@\n say \"a\" - b\n-c\n+d",
            Ok("say “a” – b\nd\n"),
        ),
        // The closest match wins.
        ("a \na\n", "@@\n-a\n+x", Ok("a \nx\n")),
    ] {
        check(old, &update(body), expect);
    }
}

#[test]
fn ends_of_lines_stay() {
    for (old, patch, expect) in [
        (
            "a\r\nb\r\n",
            update("@@\n a\n-b\n+x\n+y"),
            "a\r\nx\r\ny\r\n",
        ),
        ("a\r\nb", update("@@\n a\n-b\n+x"), "a\r\nx"),
        ("a\r\nb", update("@@\n b\n+x"), "a\r\nb\r\nx"),
        ("a\nb", update("@@\n-b\n+x"), "a\nx"),
        ("a\nb", update("@@\n b\n+x"), "a\nb\nx"),
        ("a\r\nb\nc\r\n", update("@@\n-b\n+x"), "a\r\nx\r\nc\r\n"),
        // A patch whose own lines all end in CR LF.
        (
            "a\nb\n",
            update("@@\n-b\n+x").replace('\n', "\r\n"),
            "a\nx\n",
        ),
        (
            "a\r\nb\r\n",
            update("@@\n-b\n+x").replace('\n', "\r\n"),
            "a\r\nx\r\n",
        ),
        // A diff that shows the CRs changes them.
        (
            "a\r\nb\r\n",
            "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\r\n-b\r\n+b\n".to_owned(),
            "a\r\nb\n",
        ),
        (
            "a",
            "--- f\n+++ f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n".to_owned(),
            "b\n",
        ),
        (
            "a\n",
            "--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n".to_owned(),
            "b",
        ),
        ("a", "--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n".to_owned(), "b"),
        (
            "a",
            "--- f\n+++ f\n@@ -1 +1,2 @@\n+x\n a\n\\ No newline at end of file\n".to_owned(),
            "x\na",
        ),
    ] {
        check(old, &patch, Ok(expect));
    }
}

/// Text, hunks → the new text or the error.
const NUMBERED: &[(&str, &str, Result<&str, &str>)] = &[
    ("a\nb\nc\n", "@@ -2 +2 @@\n-b\n+x\n", Ok("a\nx\nc\n")),
    ("a\nb\nc\n", "@@ -1,0 +2 @@\n+x\n", Ok("a\nx\nb\nc\n")),
    ("a\nb\nc\n", "@@ -0,0 +1 @@\n+x\n", Ok("x\na\nb\nc\n")),
    (
        "a\nb\nc\n",
        "@@ -99,1 +99,1 @@ fn\n-c\n+z\n",
        Ok("a\nb\nz\n"),
    ),
    (
        "y\nx\ny\n",
        "@@ -2 +2 @@\n-y\n+z\n",
        Err("fits in 2 places, at lines 1, 3"),
    ),
    (
        "a\n",
        "@@ -99999999999999999999,1 +1,1 @@\n-a\n+b\n",
        Ok("b\n"),
    ),
    (
        "a\n",
        "@@ -99999999999999999999,0 +1,1 @@\n+b\n",
        Err("goes after line"),
    ),
    (
        "a\n",
        "@@ -1,2 +1,1 @@\n-a\n+b\n",
        Err("says 2 old and 1 new lines, but 1 and 1"),
    ),
    (
        "a\n",
        "@@ -1,1 +1,1 @@\n-a\n+b\n+c\n",
        Err("but 1 and 2 follow it before the end"),
    ),
    (
        "a\n",
        "@@ -1,99999999999999999999 +1 @@\n-a\n+b\n",
        Err("but 1 and 1 follow"),
    ),
    (
        "a\n",
        "@@ -1 @@\n-a\n+b\n",
        Err("expected a hunk's numbers"),
    ),
    (
        "a\nb\n",
        "@@ -1,2 +1,2 @@\n-a\n+x\n b\n-- \n2.43.0\n",
        Ok("x\nb\n"),
    ),
    (
        "a\n\nb\n",
        "@@ -1,3 +1,3 @@\n-a\n+x\n\n b\n",
        Ok("x\n\nb\n"),
    ),
];

#[test]
fn unified_hunks_are_counted_and_found_nearest_to_where_they_say() {
    let diff = |hunks: &str| format!("--- a/f\n+++ b/f\n{hunks}");
    for (old, hunks, expect) in NUMBERED {
        check(old, &diff(hunks), *expect);
    }
    let many = "x\ny\n".repeat(20);
    let far = format!("{}x\nz\n{}", "x\ny\n".repeat(15), "x\ny\n".repeat(4));
    for hunks in [
        "@@ -32,1 +32,1 @@\n-y\n+z\n",
        "@@ -31,2 +31,2 @@\n x\n-y\n+z\n",
        "@@ -33,1 +33,1 @@\n x\n",
    ] {
        let expect = if hunks.contains('z') { &far } else { &many };
        check(
            &many,
            &diff(&format!("{hunks}@@ -40,0 +41,1 @@\n+e\n")),
            Ok(&format!("{expect}e\n")),
        );
    }
}

/// Patch → one line per section: action, path, new path; or the error.
const SECTIONS: &[(&str, &str)] = &[
    (
        "*** Begin Patch\n*** Add File: a b.txt\n+x\n*** Delete File: c\n*** Update File: d\n*** Move to: e\n*** End Patch",
        "add a b.txt; delete c; update d to e",
    ),
    (
        "\n```diff\n*** Begin Patch\n*** Delete File: c\n*** End Patch\n```\n",
        "delete c",
    ),
    (
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: c\n*** End Patch\nEOF",
        "delete c",
    ),
    (
        "diff --git a/n b/n\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n",
        "add n",
    ),
    (
        "diff --git a/e e b/e e\nnew file mode 100644\nindex 0..0\n",
        "add e e",
    ),
    (
        "diff --git a/o b/o\ndeleted file mode 100644\n--- a/o\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
        "delete o",
    ),
    (
        "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\ndiff --git a/z b/z\n--- a/z\n+++ b/z\n@@ -1 +1 @@\n-a\n+b\n",
        "update x to y; update z",
    ),
    (
        "From 123\nSubject: x\n\n---\n f | 2 +-\n\ndiff --git \"a/\\303\\251\" \"b/\\303\\251\"\n--- \"a/\\303\\251\"\n+++ \"b/\\303\\251\"\n@@ -1 +1 @@\n-a\n+b\n-- \n2.4\n",
        "update é",
    ),
    (
        "--- f.orig\t2024-01-01\n+++ f\t2024-01-02\n@@ -1 +1 @@\n-a\n+b\n",
        "update f",
    ),
    ("--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n", "add n"),
    ("", "line 1 of the patch: the patch is empty"),
    (" \n\n", "the patch is empty"),
    (
        "hello",
        "line 1 of the patch: expected `*** Begin Patch`, `diff --git`",
    ),
    ("*** Update File: x\n", "expected `*** Begin Patch`, found"),
    (
        "*** Begin Patch\n*** End Patch\n",
        "the patch names no file",
    ),
    (
        "*** Begin Patch\n*** Delete File: x\n",
        "line 3 of the patch: expected `*** End Patch`: the patch is cut off",
    ),
    (
        "*** Begin Patch\n*** Add File: x\nfoo\n*** End Patch",
        "line 3 of the patch: expected a line of the new file",
    ),
    (
        "*** Begin Patch\n*** Add File:\n+x\n*** End Patch",
        "line 2 of the patch: expected a path",
    ),
    (
        "*** Begin Patch\n*** Update File: x\n*** End Patch",
        "line 2 of the patch: the section changes nothing",
    ),
    (
        "*** Begin Patch\n*** Update File: x\n@@\n a\n*** End Patch",
        "the section changes nothing",
    ),
    (
        "*** Begin Patch\n*** Update File: x\n@@ a\n*** End Patch",
        "expected a hunk's lines",
    ),
    (
        "*** Begin Patch\n*** Update File: x\n@@\n a\nfoo\n+b\n*** End Patch",
        "line 5 of the patch: expected a line beginning with",
    ),
    (
        "*** Begin Patch\n*** Delete File: x\n*** End Patch\nmore",
        "line 4 of the patch: expected nothing after",
    ),
    (
        "*** Begin Patch\n*** Rename File: x\n*** End Patch",
        "line 2 of the patch: expected `*** Add File:`",
    ),
    (
        "@@ -1 +1 @@\n-a\n+b\n",
        "line 1 of the patch: expected `--- `",
    ),
    (
        "diff --git a/p b/p\nindex 1..2\nGIT binary patch\nliteral 3\n",
        "line 3 of the patch: binary patches are not applied",
    ),
    (
        "diff --git a/p b/p\nBinary files a/p and b/p differ\n",
        "binary patches are not applied",
    ),
    (
        "diff --git a/p b/p\nold mode 100644\nnew mode 100755\n",
        "the section changes no lines",
    ),
    (
        "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+x\n",
        "links are not patched",
    ),
    (
        "diff --git a/x b/y\ncopy from x\ncopy to y\n",
        "copies are not applied",
    ),
    (
        "diff --git a/x b/y\nrename from x\n",
        "expected both `rename from` and `rename to`",
    ),
    (
        "--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n",
        "expected one file, found \"a/x\" and \"b/y\"",
    ),
    (
        "--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n",
        "expected the file's path",
    ),
    (
        "--- /dev/null\n+++ b/n\n@@ -1 +1 @@\n-a\n+b\n",
        "a new file has added lines only",
    ),
];

#[test]
fn sections_of_both_formats() {
    for (patch, expect) in SECTIONS {
        let said = match parse(patch) {
            Err(error) => error.to_string(),
            Ok(sections) => {
                let said = sections.iter().map(|section| match &section.action {
                    SectionAction::Add { .. } => format!("add {}", section.path),
                    SectionAction::Delete { .. } => format!("delete {}", section.path),
                    SectionAction::Update { to: Some(to), .. } => {
                        format!("update {} to {to}", section.path)
                    }
                    SectionAction::Update { to: None, .. } => format!("update {}", section.path),
                });
                said.collect::<Vec<_>>().join("; ")
            }
        };
        assert!(said.contains(*expect), "{said:?} lacks {expect:?}\n{patch}");
    }
}

#[test]
fn a_patch_is_bounded() {
    let long = format!("*** Begin Patch\n{}", "x".repeat(super::parse::MAX_PATCH));
    let files = (0..201).map(|n| format!("*** Delete File: {n}\n"));
    let files = format!(
        "*** Begin Patch\n{}*** End Patch",
        files.collect::<String>()
    );
    let hunks = format!("--- f\n+++ f\n{}", "@@ -1 +1 @@\n-a\n+b\n".repeat(10_001));
    for (patch, expect) in [
        (long, "more than 4 MiB"),
        (files, "more than 200 files"),
        (hunks, "more than 10000 hunks"),
    ] {
        assert!(parse(&patch).unwrap_err().to_string().contains(expect));
    }
    let lines = "\n".repeat(crate::files::lines::MAX_LINES + 1);
    check(&lines, &update("@@\n+x"), Err("more than 2000000 lines"));
}

/// Many similar lines, for which comparing at every position would take hours.
#[test]
fn searching_takes_one_pass() {
    let old = "a\n".repeat(500_000);
    let body = format!("@@\n{}-b\n+c", " a\n".repeat(200_000));
    check(&old, &update(&body), Err("is not line"));
}

#[test]
fn notes_say_what_fitted_not_quite() {
    let patch = "--- f\n+++ f\n@@ -5,2 +5,2 @@\n a\n-b\n+c\n";
    let sections = parse(patch).unwrap();
    let SectionAction::Update { hunks, .. } = &sections[0].action else {
        panic!("{sections:?}");
    };
    let fitted = fit(b"x\na \nb\n", hunks, &|| false).unwrap();
    assert_eq!(
        fitted.notes,
        [
            "the hunk at line 3 of the patch fits but for trailing blanks and was put -3 lines from where it says, at line 2"
        ]
    );
    assert_eq!((fitted.added, fitted.removed), (1, 1));
}

/// Texts of few different lines, so that many repeat, with all kinds of line endings.
fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("a"),
        Just("b"),
        Just(""),
        Just(" "),
        Just("-- x"),
        Just("+"),
        Just("@@")
    ];
    let end = prop_oneof![8 => Just("\n"), 1 => Just("\r\n")];
    let lines = proptest::collection::vec((line, end).prop_map(|(l, e)| format!("{l}{e}")), 0..30);
    (lines, prop_oneof![Just(""), Just("z")]).prop_map(|(lines, last)| lines.concat() + last)
}

proptest! {
    #[test]
    fn a_diff_applied_gives_the_new_text(old in text(), new in text(), radius in 0usize..4) {
        prop_assume!(old != new);
        let diff = TextDiff::from_lines(&old, &new);
        let patch = diff.unified_diff().context_radius(radius).header("a/f", "b/f").to_string();
        // Without a context line, a new line cannot tell how the file's lines end.
        prop_assume!(radius > 0 || !old.contains('\r'));
        let got = applied(old.as_bytes(), &patch).map(|text| String::from_utf8(text).unwrap());
        prop_assert_eq!(got, Ok(new), "{}", patch);
    }

    #[test]
    fn reading_never_panics(patch in "(\\*\\*\\* (Begin Patch|End Patch|Add File: a|Update File: b|End of File)\n|@@ ?(-1,?[0-9]? \\+1 @@)?\n|[-+ \\\\]a?\n|diff --git a/a b/a\n|--- a/a\n|\\+\\+\\+ b/a\n|rename from a\n|\r){0,20}") {
        let _ = applied(b"a\nb\na\n", &patch);
    }
}
