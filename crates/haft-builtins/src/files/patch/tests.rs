//! Texts and patches: how patches are parsed, and the results of applying them.

use proptest::prelude::*;
use similar::TextDiff;

use super::fit::fit;
use super::parse::parse;
use super::section::SectionAction;

mod sections;

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
        ("a\nb\nc\n", "@@\n-c\n+z\n@@\n-a\n+x", Ok("x\nb\nz\n")),
        ("a\nb\n", "@@\n+x", Ok("a\nb\nx\n")),
        ("a\nb\n", "@@ a\n+x", Ok("a\nx\nb\n")),
        ("", "@@\n+x", Ok("x\n")),
    ] {
        check(old, &update(body), expect);
    }
}

/// Text, hunks → the new text or the error, in the format with sections.
#[test]
fn hunks_in_any_order_that_do_not_overlap() {
    for (old, body, expect) in [
        (
            "a\nb\nc\n",
            "@@\n-c\n+z\n@@\n-a\n+x\n@@\n-b\n+y",
            Ok("x\ny\nz\n"),
        ),
        (
            "a\nb\nc\nd\n",
            "@@\n d\n+e\n@@ a\n+x\n@@\n b\n-c",
            Ok("a\nx\nb\nd\ne\n"),
        ),
        // Twice after the first hunk, so not the one before it.
        (
            "x\na\nx\nx\n",
            "@@\n-a\n+b\n@@\n-x\n+y",
            Err("fits in 2 places, at lines 3, 4"),
        ),
        (
            "x\nx\na\n",
            "@@\n-a\n+b\n@@\n-x\n+y",
            Err("fits in 2 places, at lines 1, 2"),
        ),
        (
            "a\nb\nc\n",
            "@@\n a\n-b\n+x\n@@\n-b\n+y\n c",
            Err("the hunks at lines 3 and 7 of the patch overlap, at line 2"),
        ),
        (
            "a\nb\nc\n",
            "@@\n a\n-b\n+x\n c\n@@\n-c\n+y",
            Err("overlap, at line 3"),
        ),
        ("a\nb\nc\n", "@@\n-b\n+x\n@@\n a\n-b\n c", Err("overlap")),
        (
            "a\nb\nc\n",
            "@@ a\n+x\n@@\n-a\n-b\n+z",
            Err("overlap, at line 2"),
        ),
        (
            "a\nb\nc\n",
            "@@\n-a\n-b\n+z\n@@ a\n+x",
            Err("overlap, at line 2"),
        ),
        ("a\nb\nc\n", "@@\n-b\n+z\n@@ a\n+x", Ok("a\nx\nz\nc\n")),
        ("a\nb\nc\n", "@@ a\n+x\n@@ a\n+y", Ok("a\nx\ny\nb\nc\n")),
        // Exactly above, inexactly below: not certain.
        (
            "a\nm\n  a\n",
            "@@\n-m\n+n\n@@\n-a\n+b",
            Err("fits in 2 places, at lines 1, 3"),
        ),
    ] {
        check(old, &update(body), expect);
    }
}

/// Text, hunks → the new text.
#[test]
fn added_lines_are_indented_as_the_file_is() {
    let tabs = "def a():\n\tif x:\n\t\treturn 1\n";
    let two = "def a():\n  if x:\n    return 1\n";
    let spaces = "def a():\n    if x:\n        return 1\n";
    for (old, body, expect) in [
        (
            tabs,
            "     if x:\n-        return 1\n+        return 2",
            "def a():\n\tif x:\n\t\treturn 2\n",
        ),
        (
            tabs,
            "     if x:\n+        y = 1\n         return 1",
            "def a():\n\tif x:\n\t\ty = 1\n\t\treturn 1\n",
        ),
        (
            tabs,
            "-    if x:\n+    if y:\n+        if x:\n+            z",
            "def a():\n\tif y:\n\t\tif x:\n\t\t\tz\n\t\treturn 1\n",
        ),
        (
            tabs,
            "-  if x:\n-    return 1\n+  if y:\n+    return f(1,\n+           2)",
            "def a():\n\tif y:\n\t\treturn f(1,\n\t\t\t\t\t 2)\n",
        ),
        (
            tabs,
            "-if x:\n-    return 1\n+if y:\n+    return 2\n+return 3",
            "def a():\n\tif y:\n\t\treturn 2\n\treturn 3\n",
        ),
        (
            two,
            "     if x:\n-        return 1\n+        if y:\n+            z\n+\n+    w",
            "def a():\n  if x:\n    if y:\n      z\n\n  w\n",
        ),
        (
            spaces,
            " \tif x:\n-\t\treturn 1\n+\t\tif y:\n+\t\t\tz",
            "def a():\n    if x:\n        if y:\n            z\n",
        ),
        (
            spaces,
            " if x:\n-    return 1\n+    if y:\n+        z\n+w",
            "def a():\n    if x:\n        if y:\n            z\n    w\n",
        ),
        // What fits exactly is meant as it is written.
        (
            tabs,
            " \tif x:\n+    y",
            "def a():\n\tif x:\n    y\n\t\treturn 1\n",
        ),
        ("a:  \n\tb\n", " a:\n+    y\n \tb", "a:  \n    y\n\tb\n"),
    ] {
        check(old, &update(&format!("@@\n{body}")), Ok(expect));
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
            "@@ class B: @@\n-        pass\n+        go\n@@\n class A:\n-    def run():\n+    def go():",
            Ok(CLASSES
                .replacen(
                    "class B:\n    def run():\n        pass",
                    "class B:\n    def run():\n        go",
                    1,
                )
                .replacen("class A:\n    def run", "class A:\n    def go", 1)),
        ),
        (
            "@@ class B @@\n@@ def end(): @@\n-        pass\n+        go",
            Ok(CLASSES.replacen("end():\n        pass", "end():\n        go", 1)),
        ),
        (
            "@@ -9,1 @@\n-        pass\n+        go",
            Ok(CLASSES.replacen("end():\n        pass", "end():\n        go", 1)),
        ),
        ("@@ ... @@\n-        pass", Err("fits in 3 places")),
        ("@@ def run(): @@\n-        pass", Err("fits in 3 places")),
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
        ("\ta\n\tb\n", "@@\n a\n-b\n+c", Ok("\ta\n\tc\n")),
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
    ("a\n", "@@ -1 @@\n-a\n+b\n", Ok("b\n")),
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
    ("a\nb\nc\n", "@@\n a\n-b\n+x\n c\n", Ok("a\nx\nc\n")),
    (
        "a\nb\nc\n",
        "@@ @@\n-c\n+z\n\n@@\n-a\n+x\n\n",
        Ok("x\nb\nz\n"),
    ),
    ("a\nb\nc\n", "@@ b @@\n-c\n+z\n", Ok("a\nb\nz\n")),
    ("a\nb\nc\n", " a\n-b\n+x\n", Ok("a\nx\nc\n")),
    ("y\nx\ny\n", "@@ -3 +3 @@\n x\n-y\n+z\n", Ok("y\nx\nz\n")),
    (
        "a\nb\n",
        "@@\n-b\n\\ No newline at end of file\n+c\n",
        Ok("a\nc\n"),
    ),
    (
        "a\nb",
        "@@\n-b\n+c\n\\ No newline at end of file\n-- \n2.43.0\n",
        Ok("a\nc"),
    ),
    ("a\nb  \nc\n", "@@\n a\n b\n-c\n+z\n", Ok("a\nb  \nz\n")),
    (
        "a\n",
        "@@\n-a\n+b\nnot marked\n",
        Err("line 6 of the patch: expected a line beginning"),
    ),
    (
        "a\nb\nc\n",
        "@@ -3 +3 @@\n-c\n+z\n@@ -1 +1 @@\n-a\n+x\n",
        Ok("x\nb\nz\n"),
    ),
    (
        "a\nb\nc\n",
        "@@ -1,2 +1,2 @@\n a\n-b\n+x\n@@ -2,2 +2,2 @@\n-b\n+y\n c\n",
        Err("overlap"),
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

    /// Hunks in the wrong order give the same text, unless where they go is no longer certain.
    #[test]
    fn the_order_of_hunks_changes_nothing(old in text(), new in text()) {
        let diff = TextDiff::from_lines(&old, &new);
        let diff = diff.unified_diff().context_radius(1).to_string();
        let hunks: Vec<&str> = diff.split_inclusive('\n').collect();
        let hunks = hunks.chunk_by(|_, next| !next.starts_with("@@"));
        let reversed: Vec<String> = hunks.rev().map(<[_]>::concat).collect();
        if reversed.is_empty() {
            return Ok(());
        }
        let patch = format!("--- a/f\n+++ b/f\n{}", reversed.concat());
        match applied(old.as_bytes(), &patch) {
            Ok(text) => prop_assert_eq!(String::from_utf8(text).unwrap(), new, "{}", patch),
            Err(error) => prop_assert!(error.contains("fit") || error.contains("overlap"), "{}", error),
        }
    }

    #[test]
    fn reading_never_panics(patch in "(\\*\\*\\* (Begin Patch|End Patch|Add File: a|Update File: b|End of File)\n|@@ ?(-1,?[0-9]? \\+1 @@)?\n|[-+ \\\\]a?\n|diff --git a/a b/a\n|--- a/a\n|\\+\\+\\+ b/a\n|rename from a\n|\r){0,20}") {
        let _ = applied(b"a\nb\na\n", &patch);
    }
}
