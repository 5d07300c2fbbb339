//! Whether the condition of an `includeIf` holds for the workspace's repository (git-config(1), "Conditional includes").

use std::path::Path;

use globset::GlobBuilder;
use haft::workspace::git_settings::expand;

/// Returns whether a condition holds; `None` for one that haft does not know.
///
/// `repository` is the real path of the repository's folder, the work tree's own part of it.
pub(super) fn holds(
    condition: &str,
    repository: Option<&Path>,
    home: Option<&Path>,
) -> Option<bool> {
    let (kind, pattern) = condition.split_once(':')?;
    let any_case = match kind {
        "gitdir" => false,
        "gitdir/i" => true,
        _ => return None,
    };
    let Some(repository) = repository else {
        return Some(false);
    };
    let whole = if pattern.starts_with("./") {
        // Relative to the file of the setting.
        return None;
    } else if pattern.starts_with('~') {
        expand(pattern, home)?.to_str()?.to_owned()
    } else if pattern.starts_with('/') {
        pattern.to_owned()
    } else {
        format!("**/{pattern}")
    };
    let whole = if pattern.ends_with('/') {
        format!("{}/**", whole.trim_end_matches('/'))
    } else {
        whole
    };
    let glob = GlobBuilder::new(&whole)
        .literal_separator(true)
        .case_insensitive(any_case)
        .build();
    Some(glob.ok()?.compile_matcher().is_match(repository))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::holds;

    #[test]
    fn conditions_hold_as_git_says() {
        let (repository, home) = (Path::new("/users/u/source/a/.git"), Path::new("/users/u"));
        for (condition, expect) in [
            ("gitdir:~/source/", Some(true)),
            ("gitdir:~/other/", Some(false)),
            ("gitdir:/users/u/source/a/.git", Some(true)),
            ("gitdir:/users/u/source/a", Some(false)),
            ("gitdir:source/", Some(true)),
            ("gitdir:SOURCE/", Some(false)),
            ("gitdir/i:SOURCE/", Some(true)),
            ("gitdir:a/.git", Some(true)),
            ("gitdir:/users/*/source/**", Some(true)),
            ("gitdir:/users/*/a/.git", Some(false)),
            ("gitdir:./x/", None),
            ("onbranch:main", None),
            ("hasconfig:remote.*.url:x", None),
        ] {
            assert_eq!(
                holds(condition, Some(repository), Some(home)),
                expect,
                "{condition}"
            );
        }
        assert_eq!(holds("gitdir:~/", None, Some(home)), Some(false));
    }
}
