//! The files that a patch in the format of `apply_patch` names.

use crate::action::{CallAction, EditKind};

/// The lines of a patch that name a file, and what happens to it.
const HEADERS: [(&str, EditKind); 4] = [
    ("*** Add File:", EditKind::Write),
    ("*** Update File:", EditKind::Write),
    ("*** Delete File:", EditKind::Remove),
    ("*** Move to:", EditKind::Write),
];

/// Returns an action for every file of a patch. Readers of patches differ in how they treat blanks, so a line counts as a header if the
/// most lenient of them takes it for one: a file too many may be judged, but none is missed. A patch that names no file is unknown.
pub(crate) fn files(patch: &str) -> Vec<CallAction> {
    let mut actions = Vec::new();
    let mut updated: Option<String> = None;
    for line in patch.lines() {
        let line = line.trim();
        let header = HEADERS
            .iter()
            .find_map(|(mark, change)| Some((line.strip_prefix(mark)?, *mark, *change)));
        let Some((rest, mark, change)) = header else {
            continue;
        };
        // One blank belongs to the header. Others may belong to the path.
        let exact = rest.strip_prefix(' ').unwrap_or(rest);
        for path in [exact, rest.trim()] {
            if path.is_empty() {
                return vec![CallAction::other("a patch names a file without a path")];
            }
            push(&mut actions, path, change);
        }
        if mark == "*** Move to:"
            && let Some(old) = updated.take()
        {
            push(&mut actions, &old, EditKind::Remove);
        }
        updated = (mark == "*** Update File:").then(|| rest.trim().to_owned());
    }
    if actions.is_empty() {
        return vec![CallAction::other("a patch that names no file")];
    }
    actions
}

/// Adds a file unless it is there with the same change.
fn push(actions: &mut Vec<CallAction>, path: &str, change: EditKind) {
    let same = |action: &CallAction| matches!(action, CallAction::Edit { path: other, change: its } if other == path && *its == change);
    // Only the last few can be the same file in another spelling, so a patch of many files need not be compared in full.
    if !actions.iter().rev().take(4).any(same) {
        actions.push(CallAction::Edit {
            path: path.to_owned(),
            change,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::files;

    #[test]
    fn every_file_of_a_patch_is_named() {
        let rows = [
            (
                "*** Begin Patch\n*** Add File: a.txt\n+hi\n*** End Patch",
                r#"[{"action":"edit","path":"a.txt","change":"write"}]"#,
            ),
            (
                "*** Begin Patch\r\n*** Update File: a\r\n*** Move to: b\r\n@@\r\n-x\r\n+y\r\n  *** Delete File: c\r\n*** End Patch",
                r#"[{"action":"edit","path":"a","change":"write"},{"action":"edit","path":"b","change":"write"},{"action":"edit","path":"a","change":"remove"},{"action":"edit","path":"c","change":"remove"}]"#,
            ),
            (
                "*** Add File:  /etc/x\n+*** Delete File: no",
                r#"[{"action":"edit","path":" /etc/x","change":"write"},{"action":"edit","path":"/etc/x","change":"write"}]"#,
            ),
            (
                "*** Delete File:\n",
                r#"[{"action":"other","why":"a patch names a file without a path"}]"#,
            ),
            (
                "--- a/x\n+++ b/x\n",
                r#"[{"action":"other","why":"a patch that names no file"}]"#,
            ),
            (
                "",
                r#"[{"action":"other","why":"a patch that names no file"}]"#,
            ),
        ];
        for (patch, expect) in rows {
            assert_eq!(
                serde_json::to_string(&files(patch)).unwrap(),
                expect,
                "{patch}"
            );
        }
    }
}
