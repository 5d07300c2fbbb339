//! Patches of both formats, and the sections that they are read as.

use super::super::parse::parse;
use super::super::section::SectionAction;

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
    (
        "\n```bash\napply_patch << 'EOF'\n\n*** Begin Patch\n*** Delete File: c\n*** End Patch\n\nEOF\n```\n\n",
        "delete c",
    ),
    (
        "apply_patch <<-\"P\"\n*** Begin Patch\n*** Delete File: c\n*** End Patch\nP\n",
        "delete c",
    ),
    (
        "apply_patch <<\\EOF 2>&1\n*** Begin Patch\n*** Delete File: c\n*** End Patch\nEOF",
        "delete c",
    ),
    (
        "apply_patch <<EOF\n*** Begin Patch\n*** Delete File: c\n*** End Patch\n",
        "delete c",
    ),
    (
        "apply_patch\n*** Begin Patch\n*** Delete File: c\n*** End Patch\n",
        "delete c",
    ),
    (
        "git apply <<'EOF'\n--- a/f\n+++ b/f\n@@\n-a\n+b\nEOF\n",
        "update f",
    ),
    (
        "cd sub && apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: c\n*** End Patch\nEOF",
        "line 1 of the patch: the command around the patch changes the folder",
    ),
    (
        "*** Begin Patch\n*** Add File: a\n+x\n\n+y\n\n*** Delete File: c\n*** End Patch",
        "add a; delete c",
    ),
    ("--- /dev/null\n+++ b/n\n@@\n+x\n\n", "add n"),
    (
        "diff --git a/p b/p\nold mode 100644\nnew mode 100755\ndiff --git a/z b/z\n--- a/z\n+++ b/z\n@@\n-a\n+b\n",
        "update p; update z",
    ),
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
