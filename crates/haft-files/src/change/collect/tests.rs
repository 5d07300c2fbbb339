//! Runs commands on real overlays and on handmade upper folders; collects, applies and undoes their changes.

mod budget;
mod conflicts;
mod crash;
mod matrix;
mod names;
mod random;
mod times;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;

use super::*;
use crate::change::net::net_changes;
use crate::change::undo::{LaterChangePolicy, UndoSteps, plan};
use crate::change::{ChangeLog, Changer};
use haft_types::call::{CallId, RunId};

/// The options of a view's overlay.
const OPTIONS: &str = "userxattr,index=off,xino=off,metacopy=off,redirect_dir=nofollow";

/// A workspace and a view of it.
struct Scene {
    base: TempDir,
    workspace: Workspace,
    log: Arc<ChangeLog>,
    since: Option<ViewCreation>,
}

impl Scene {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        for folder in [
            "work",
            "view",
            "view/upper",
            "view/work",
            "view/merged",
            "home",
        ] {
            fs::create_dir(base.path().join(folder)).unwrap();
        }
        for run in ["r1", "r2", "r3"] {
            fs::create_dir_all(base.path().join("home/runs").join(run)).unwrap();
        }
        Self {
            workspace: Workspace::open(&base.path().join("work")).unwrap(),
            log: Arc::new(ChangeLog::new(base.path().join("home"))),
            base,
            since: None,
        }
    }

    /// Returns a path in the workspace.
    fn work(&self, path: &str) -> PathBuf {
        self.base.path().join("work").join(path)
    }

    /// Returns a path in the upper folder.
    fn upper(&self, path: &str) -> PathBuf {
        self.base.path().join("view/upper").join(path)
    }

    /// Runs a script in the workspace itself.
    fn prepare(&self, script: &str) {
        assert!(shell(&self.work(""), script), "{script}");
    }

    /// Starts the view: from now on, changes in the workspace happen while the command runs.
    fn begin(&mut self) {
        let since = ViewCreation::of(&self.base.path().join("view")).unwrap();
        let probe = self.base.path().join("home/probe");
        // The clock of a file system may not advance for some milliseconds.
        let passed = |than: ViewCreation| {
            while ViewCreation::of(&probe).map_or(true, |now| now <= than) {
                fs::write(&probe, "").unwrap();
            }
            ViewCreation::of(&probe).unwrap()
        };
        let since = passed(since);
        passed(since);
        self.since = Some(since);
    }

    /// Runs a script on the view, and copies what it saw at the end; returns false if overlays cannot be mounted.
    fn run(&mut self, script: &str) -> bool {
        self.begin();
        let base = self.base.path();
        let mount = format!(
            "mount -t overlay -o {OPTIONS},lowerdir=work,upperdir=view/upper,workdir=view/work o view/merged"
        );
        let probe = format!("{mount} && cd view/merged && ls > /dev/null");
        if !in_namespace(base, &probe) {
            eprintln!("SKIPPED: overlays cannot be mounted here");
            return false;
        }
        let script = format!("{mount} && cd view/merged && ( {script}\n ); cp -a . ../../copy");
        assert!(in_namespace(base, &script), "{script}");
        true
    }

    fn collect(&self) -> CollectedChanges {
        let upper = self.base.path().join("view/upper");
        CollectedChanges::collect(&self.workspace, &upper, self.since.unwrap()).unwrap()
    }

    /// Collects again, when some of the changes may already be applied.
    fn collect_again(&self) -> CollectedChanges {
        let upper = self.base.path().join("view/upper");
        let known = GitStates::default();
        CollectedChanges::collect_again(&self.workspace, &upper, self.since.unwrap(), &known)
            .unwrap()
    }

    fn changer(&self, run: &str) -> Changer {
        let (run, call) = (RunId::new(run), CallId::new("call-1"));
        Changer::of(&self.workspace, &self.log, &run, &call)
    }

    fn apply(&self, collected: &CollectedChanges) -> Result<(), WorkspaceError> {
        collected.apply(&self.workspace, &self.changer("r1"), &|_| true)
    }

    fn plan(&self, run: &str) -> UndoSteps {
        let run = RunId::new(run);
        let nets = net_changes(&self.log.read(&run).unwrap());
        plan(
            &nets,
            &self.workspace,
            &self.log,
            &run,
            LaterChangePolicy::Refuse,
        )
        .unwrap()
    }

    fn tree(&self) -> BTreeMap<PathBuf, String> {
        tree(&self.work(""))
    }

    /// Returns the view as the script left it.
    fn copy(&self) -> BTreeMap<PathBuf, String> {
        tree(&self.base.path().join("copy"))
    }

    /// Undoes the applied changes, and redoes them.
    fn undo_and_redo(&self, before: &BTreeMap<PathBuf, String>) {
        let after = self.tree();
        for (of, by, expect) in [("r1", "r2", before), ("r2", "r3", &after)] {
            let plan = self.plan(of);
            assert!(plan.conflicts.is_empty(), "{:?}", plan.conflicts);
            plan.apply(&self.workspace, &self.changer(by)).unwrap();
            assert_eq!(&self.tree(), expect, "{plan:?}");
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "mounting an overlay takes a process of its own"
)]
fn program(name: &str) -> Command {
    Command::new(name)
}

fn shell(folder: &Path, script: &str) -> bool {
    status(program("bash").args(["-c", script]).current_dir(folder))
}

fn in_namespace(folder: &Path, script: &str) -> bool {
    let mut unshare = program("unshare");
    if !rustix::process::geteuid().is_root() {
        unshare.arg("-r");
    }
    status(
        unshare
            .args(["-m", "bash", "-c", script])
            .current_dir(folder),
    )
}

fn status(command: &mut Command) -> bool {
    let output = command.env("LC_ALL", "C").output();
    let output = output.unwrap();
    let _ = std::io::stderr().write_all(&output.stderr);
    output.status.success()
}

/// Returns every path below a folder with its kind: files with mode and content, links with their target.
fn tree(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut todo = vec![root.to_owned()];
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let mode = meta.permissions().mode() & 0o777;
            let what = if meta.is_dir() {
                todo.push(path.clone());
                format!("folder {mode:o}")
            } else if meta.is_symlink() {
                format!("link {:?}", fs::read_link(&path).unwrap())
            } else if meta.is_file() {
                let text = fs::read(&path).unwrap();
                format!("{mode:o} {}", text.escape_ascii())
            } else {
                "special".to_owned()
            };
            all.insert(path.strip_prefix(root).unwrap().to_owned(), what);
        }
    }
    all
}

fn actions(collected: &CollectedChanges) -> Vec<String> {
    let line = |change: ViewChange<'_>| {
        let conflict = if change.conflict.is_some() { "!" } else { "" };
        format!(
            "{}{} {}",
            conflict,
            change.action.as_str(),
            change.path.display()
        )
    };
    collected.changes.iter().map(line).collect()
}
