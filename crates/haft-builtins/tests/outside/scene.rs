//! A workspace and a home beside it, and a policy's verdicts on calls there.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use haft::permission::{Permission, Verdict};
use haft::policy::{Policy, Profile, RuleSet, RuleText};
use haft::testing::stated_verdict;
use haft::workspace::Workspace;
use haft_builtins::outside::Outside;

/// A developer's workspace: a repository with secrets, links and settings of agents.
#[derive(Debug)]
pub(crate) struct Scene {
    _folder: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) outside: Outside,
    workspace: Workspace,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (root, home) = (base.join("home/app"), base.join("home"));
        for name in [
            "app/src",
            "app/notes",
            "app/linked",
            "app/.claude",
            "app/.git",
            ".ssh",
            "other",
        ] {
            fs::create_dir_all(home.join(name)).unwrap();
        }
        for name in [
            ".env",
            ".pgpass",
            ".boto",
            "id_rsa",
            "src/lib.rs",
            "src/main.rs",
            "README.md",
            "package.json",
            "notes/a.txt",
            ".claude/settings.json",
        ] {
            fs::write(root.join(name), "text\n").unwrap();
        }
        fs::write(home.join(".ssh/id_rsa"), "secret\n").unwrap();
        fs::write(home.join("other/file"), "text\n").unwrap();
        fs::write(root.join(".git/config"), "[core]\n").unwrap();
        symlink("../../other", root.join("linked/away")).unwrap();
        symlink(".env", root.join("plain.txt")).unwrap();
        symlink("../other/file", root.join("-x")).unwrap();
        let workspace = Workspace::open(&root).unwrap();
        let outside = Outside::new(workspace.clone()).with_home(Some(home.clone()));
        Self {
            _folder: folder,
            root,
            home,
            outside,
            workspace,
        }
    }

    pub(crate) fn policy(&self, profile: Profile, allow: &[&str]) -> Policy {
        let rules = RuleSet {
            allow: allow.iter().map(|rule| RuleText::new(*rule)).collect(),
            ..RuleSet::default()
        };
        let builder = Policy::builder(profile)
            .workspace(&self.workspace)
            .home(&self.home);
        builder.rules(rules).build().unwrap()
    }

    /// Returns the verdict on a line under the profile `workspace` and these rules.
    pub(crate) fn line(&self, line: &str, allow: &[&str]) -> Verdict {
        self.verdict(allow, &self.outside.line(line, None).unwrap())
    }

    pub(crate) fn verdict(&self, allow: &[&str], stated: &[Permission]) -> Verdict {
        stated_verdict(&self.policy(Profile::Workspace, allow), stated)
    }
}
