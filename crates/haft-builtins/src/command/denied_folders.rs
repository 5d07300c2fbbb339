//! `DeniedFolders`: which folders outside of the workspace are, or hold, what a deny rule names. Commands see none of them.

use std::path::{Path, PathBuf};

use haft::policy::Denials;

/// The deny rules on files, as they concern folders outside of a workspace.
#[derive(Debug)]
pub struct DeniedFolders<'a> {
    denials: &'a Denials,
    /// Where links in the workspace lead from the paths that rules name.
    led_to: Vec<PathBuf>,
}

impl<'a> DeniedFolders<'a> {
    /// Follows the paths that rules name in the workspace at `root`.
    pub fn new(denials: &'a Denials, root: &Path) -> Self {
        let real_root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let ends = denials.exact_names().map(|name| end_of(&root.join(name)));
        let led_to = ends.filter(|end| !end.starts_with(&real_root)).collect();
        Self { denials, led_to }
    }

    /// Whether a folder or file is, or holds, what a rule denies reading; with `changed`, also changing.
    pub fn contain(&self, path: &Path, changed: bool) -> bool {
        let leads = |end: &PathBuf| end.starts_with(path) || path.starts_with(end);
        let text = path.to_string_lossy();
        self.denials.denies_reading(&text)
            || changed && self.denials.denies_changing(&text)
            || self.denials.may_name_elsewhere(&text)
            || self.led_to.iter().any(leads)
    }
}

/// Returns the path that a path leads to, as far as it exists.
fn end_of(path: &Path) -> PathBuf {
    let real = |at: &'_ Path| Some((at.to_owned(), at.canonicalize().ok()?));
    match path.ancestors().find_map(real) {
        Some((at, end)) => path
            .strip_prefix(at)
            .map_or(end.clone(), |rest| end.join(rest)),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use haft::policy::{Policy, Profile};

    use super::*;

    /// A rule for a file of the workspace once kept every folder outside of it from commands: toolchains, caches, `sandbox.path`.
    #[test]
    fn a_folder_elsewhere_is_denied_only_by_rules_that_may_name_something_in_it() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let (work, tools) = (home.join("work"), home.join("tools"));
        fs::create_dir_all(work.join("sub")).unwrap();
        fs::create_dir_all(tools.join("bin")).unwrap();
        symlink(&tools, work.join("link")).unwrap();
        let shown = tools.display();
        for (rule, expect) in [
            ("Read(/secret.txt)".to_owned(), false),
            ("Read(/sub/secret.txt)".to_owned(), false),
            ("Edit(/sub/a/b)".to_owned(), false),
            ("Read(conf/keys/a.pem)".to_owned(), false),
            ("Read(secret.txt)".to_owned(), false),
            ("Read(//etc/shadow)".to_owned(), false),
            // What is named through a link, or may be.
            ("Read(/link/bin/x)".to_owned(), true),
            ("Read(/link)".to_owned(), true),
            ("Edit(/link/bin)".to_owned(), true),
            ("Read(/*/bin/x)".to_owned(), true),
            ("Read(**/bin/x)".to_owned(), true),
            ("Read(/link/other/x)".to_owned(), false),
            (format!("Read(/{shown}/bin/x)"), true),
            (format!("Read(/{shown}/bin)"), true),
            (format!("Read(/{shown}/other)"), false),
        ] {
            let policy = Policy::builder(Profile::Workspace)
                .workspace_root(&work)
                .deny(rule.as_str())
                .build()
                .unwrap();
            let denials = policy.denials();
            let found = DeniedFolders::new(&denials, &work).contain(&tools.join("bin"), true);
            assert_eq!(found, expect, "{rule}");
            assert!(
                !rule.contains("secret")
                    || DeniedFolders::new(&denials, &work).contain(&home, true)
                    || rule == "Read(secret.txt)",
                "{rule}: the folder above the workspace holds it"
            );
        }
    }
}
