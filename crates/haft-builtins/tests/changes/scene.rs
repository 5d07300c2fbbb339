//! A workspace whose commands work on copies, and a user who answers the approval requests.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft::approval::{ApprovalRequest, Approver, ApproverReply, Decision};
use haft::artifact::ArtifactStore;
use haft::artifact::memory::MemoryArtifacts;
use haft::budget::{Budgets, EffectLimits};
use haft::call::{Origin, ToolCall};
use haft::change::ChangeLog;
use haft::future::BoxFuture;
use haft::policy::{CommandPolicy, Policy, PolicyBuilder, Profile, RuleSet, RuleText};
use haft::session::Session;
use parking_lot::Mutex;

use haft::tool::TypedTool as _;
use haft::toolset::registry::ToolRegistry;
use haft::workspace::Workspace;
use haft::{Executor, Outcome};
use haft_builtins::Builtins;
use haft_builtins::command::changes::{
    BuildOutputs, ChangeMode, ChangeOptions, CommandChanges, IgnoredChanges, OnPartial,
};
use haft_builtins::files::undo::UndoChanges;
use haft_sandbox::Sandbox;
use serde_json::{Value, json};

/// A user who gives the same answer to every request and remembers the requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Person {
    says_no: bool,
    asked: Arc<Mutex<Vec<ApprovalRequest>>>,
    /// What the user does in the workspace before answering.
    acts: Option<Act>,
}

/// An action in a folder.
type Act = (fn(&Path), PathBuf);

impl Approver for Person {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        self.asked.lock().push(request.clone());
        if let Some((act, root)) = &self.acts {
            act(root);
        }
        let decision = if self.says_no {
            Decision::deny("ada", "test")
        } else {
            Decision::approve("ada", "test")
        };
        Box::pin(async move { decision.into() })
    }
}

/// The settings in which scenes differ.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) profile: Profile,
    pub(crate) allow: &'static [&'static str],
    pub(crate) ask: &'static [&'static str],
    pub(crate) deny: &'static [&'static str],
    pub(crate) mode: ChangeMode,
    pub(crate) on_partial: OnPartial,
    pub(crate) says_no: bool,
    pub(crate) asks_before: bool,
    /// How much the session may delete before it is asked about.
    pub(crate) deletions: Option<u64>,
    /// What the user does in the workspace before answering.
    pub(crate) acts: Option<fn(&Path)>,
    /// The workspace, below the scene's folder.
    pub(crate) place: &'static str,
    /// Files of a user's home below the scene's folder.
    pub(crate) home: &'static [(&'static str, &'static str)],
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            profile: Profile::Workspace,
            allow: &[],
            ask: &[],
            deny: &[],
            mode: ChangeMode::Copy,
            on_partial: OnPartial::Apply,
            says_no: false,
            asks_before: false,
            deletions: None,
            acts: None,
            place: "ws",
            home: &[],
        }
    }
}

pub(crate) struct Scene {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) changes: CommandChanges,
    place: &'static str,
    person: Person,
    pub(crate) session: Session,
    executor: Executor,
    tools: Arc<ToolRegistry>,
}

impl Scene {
    pub(crate) fn new(sandbox: &Sandbox) -> Self {
        Self::with(sandbox, &Settings::default())
    }

    pub(crate) fn with(sandbox: &Sandbox, settings: &Settings) -> Self {
        Self::placed(sandbox, settings, &std::env::temp_dir(), |_| {})
    }

    /// Returns a scene in a folder; `prepare` runs once the folders `ws` and `home` are there.
    pub(crate) fn placed(
        sandbox: &Sandbox,
        settings: &Settings,
        folder: &Path,
        prepare: impl FnOnce(&Path),
    ) -> Self {
        let dir = tempfile::tempdir_in(folder).unwrap();
        for folder in ["ws", "home"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        prepare(dir.path());
        let workspace = Workspace::open(&dir.path().join(settings.place)).unwrap();
        let workspace = workspace.with_repository();
        let log = Arc::new(ChangeLog::new(dir.path().join("home")));
        // As if the user ran programs of `out/bin` by name.
        let programs = [workspace.root().join("out/bin")];
        let outputs = BuildOutputs::new([], workspace.root(), programs).unwrap();
        let options = ChangeOptions {
            ignored: IgnoredChanges::Outputs(Box::new(outputs)),
            mode: settings.mode,
            on_partial: settings.on_partial,
            ask_before: settings.asks_before,
            home: (!settings.home.is_empty()).then(|| user(dir.path(), settings.home)),
            ..ChangeOptions::new(Arc::clone(&log))
        };
        let changes = CommandChanges::new(options, workspace.clone(), sandbox.clone());
        let limits = EffectLimits {
            deletions: settings.deletions,
            ..EffectLimits::default()
        };
        let policy = policy(settings, &workspace).build().unwrap();
        let policy = policy.with_budgets(Budgets::of_run(limits));
        let mut builtins = Builtins::new(workspace);
        builtins.sandbox = Some(sandbox.clone());
        builtins.changes = Some(changes.clone());
        let (tools, own) = (ToolRegistry::new(), ToolRegistry::new());
        let all = builtins.tools().unwrap().into_iter();
        tools.add_all(all.map(|builtin| builtin.tool)).unwrap();
        let undo = UndoChanges::new(builtins.workspace.clone(), Arc::clone(&log));
        tools.add_all([undo.into_tool().unwrap()]).unwrap();
        own.add_all([changes.tool().unwrap()]).unwrap();
        let person = Person {
            says_no: settings.says_no,
            acts: settings
                .acts
                .map(|act| (act, dir.path().join(settings.place))),
            ..Person::default()
        };
        let artifacts: Arc<dyn ArtifactStore> = Arc::new(MemoryArtifacts::new());
        let executor = Executor::new(policy)
            .with_changes(log)
            .with_artifacts(Arc::clone(&artifacts))
            .with_internal_tools(Arc::new(own))
            .with_approver(person.clone());
        let tools = Arc::new(tools);
        Self {
            session: Session::builder(tools.clone()).build().unwrap(),
            tools,
            executor,
            person,
            changes,
            place: settings.place,
            dir,
        }
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(self.place).join(path)
    }

    pub(crate) fn put(&self, path: &str, text: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    pub(crate) async fn call(&self, tool: &str, args: Value) -> Outcome {
        let call = ToolCall::new(tool, args.to_string()).from_origin(Origin::Model);
        self.executor.execute(&self.session, call).await
    }

    pub(crate) async fn run(&self, line: &str) -> Outcome {
        self.call("run_command", json!({"command": line})).await
    }

    /// Runs a command in a session of its own, which waits for no other.
    pub(crate) async fn run_beside(&self, line: &str) -> Outcome {
        let session = Session::builder(self.tools.clone()).build().unwrap();
        let args = json!({"command": line}).to_string();
        let call = ToolCall::new("run_command", args).from_origin(Origin::Model);
        self.executor.execute(&session, call).await
    }

    pub(crate) fn questions(&self) -> Vec<ApprovalRequest> {
        std::mem::take(&mut *self.person.asked.lock())
    }

    /// Returns every path of the workspace with its kind, mode and content.
    pub(crate) fn tree(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        walk(&self.at(""), Path::new(""), &mut found);
        found
    }

    /// Returns the number of views that were not removed.
    pub(crate) fn views_left(&self) -> usize {
        self.views().len()
    }

    /// Returns the views that were not removed.
    pub(crate) fn views(&self) -> Vec<PathBuf> {
        self.in_runs("changes/views")
    }

    /// Returns the files that were saved for an undo.
    pub(crate) fn saved_files(&self) -> Vec<PathBuf> {
        self.in_runs("changes/files")
    }

    /// Lists the contents of a folder of each run.
    fn in_runs(&self, folder: &str) -> Vec<PathBuf> {
        let runs = fs::read_dir(self.dir.path().join("home/runs"));
        let runs = runs.into_iter().flatten().flatten();
        let all = runs.filter_map(|run| fs::read_dir(run.path().join(folder)).ok());
        all.flatten().flatten().map(|entry| entry.path()).collect()
    }
}

/// Creates the home of a user.
fn user(below: &Path, files: &[(&str, &str)]) -> PathBuf {
    let home = below.join("user");
    for (path, text) in files {
        let path = home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    home
}

/// Returns the data of a result.
pub(crate) fn data(outcome: &Outcome) -> Value {
    let data = outcome.data.as_ref();
    data.map_or(Value::Null, |data| {
        serde_json::from_str(data.get()).unwrap()
    })
}

fn policy(settings: &Settings, workspace: &Workspace) -> PolicyBuilder {
    let texts = |rules: &[&str]| rules.iter().map(|rule| RuleText::new(*rule)).collect();
    let rules = RuleSet {
        allow: texts(settings.allow),
        ask: texts(settings.ask),
        deny: texts(settings.deny),
    };
    let commands = if settings.asks_before {
        CommandPolicy::Ask
    } else {
        CommandPolicy::Copy
    };
    Policy::builder(settings.profile)
        .commands(commands)
        .workspace(workspace)
        .rules(rules)
}

fn walk(root: &Path, at: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(root.join(at)).unwrap().flatten() {
        let path = at.join(entry.file_name());
        let meta = entry.metadata().unwrap();
        let mode = meta.permissions().mode() & 0o7777;
        let what = if meta.is_symlink() {
            format!("-> {}", fs::read_link(entry.path()).unwrap().display())
        } else if meta.is_dir() {
            walk(root, &path, found);
            format!("{mode:o}/")
        } else if meta.is_file() {
            let bytes = fs::read(entry.path()).unwrap();
            format!("{mode:o} {}", String::from_utf8_lossy(&bytes))
        } else {
            "other".to_owned()
        };
        found.insert(path, what);
    }
}
