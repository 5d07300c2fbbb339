//! A workspace with an executor whose commands work in it or on copies of it.

use std::sync::Arc;

use haft::call::ToolCall;
use haft::change::ChangeLog;
use haft::policy::{Policy, Profile};
use haft::session::Session;
use haft::tool::TypedTool as _;
use haft::toolset::registry::ToolRegistry;
use haft::workspace::Workspace;
use haft::{Executor, Outcome};
use haft_builtins::Builtins;
use haft_builtins::command::changes::{ChangeMode, ChangeOptions, CommandChanges};
use haft_builtins::files::undo::UndoChanges;
use haft_sandbox::{Config, Sandbox};
use measure::wall_ms;
use serde_json::json;
use tokio::runtime::Runtime;

pub(crate) struct House {
    runtime: Runtime,
    executor: Executor,
    session: Session,
    changes: CommandChanges,
    _folder: tempfile::TempDir,
}

impl House {
    pub(crate) fn new(direct: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| {
            std::fs::create_dir(folder.path().join(name)).expect("a folder");
            folder.path().join(name)
        };
        let workspace = Workspace::open(&at("ws")).expect("a workspace");
        let log = Arc::new(ChangeLog::new(at("home")));
        let sandbox = Sandbox::new(Config::default());
        let options = ChangeOptions {
            mode: if direct {
                ChangeMode::Direct
            } else {
                ChangeMode::Copy
            },
            ..ChangeOptions::new(Arc::clone(&log))
        };
        let changes = CommandChanges::new(options, workspace.clone(), sandbox.clone());
        let policy = Policy::builder(Profile::Trusted).workspace(&workspace);
        let undo = UndoChanges::new(workspace.clone(), Arc::clone(&log));
        let mut builtins = Builtins::new(workspace);
        builtins.sandbox = Some(sandbox);
        builtins.changes = Some(changes.clone());
        let (tools, own) = (ToolRegistry::new(), ToolRegistry::new());
        let all = builtins.tools().expect("tools").into_iter();
        tools
            .add_all(all.map(|builtin| builtin.tool))
            .expect("tools");
        tools
            .add_all([undo.into_tool().expect("a tool")])
            .expect("a tool");
        own.add_all([changes.tool().expect("a tool")])
            .expect("a tool");
        let executor = Executor::new(policy.build().expect("a policy"))
            .with_changes(log)
            .with_internal_tools(Arc::new(own));
        Self {
            runtime: tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .expect("a runtime"),
            executor,
            session: Session::builder(Arc::new(tools))
                .build()
                .expect("a session"),
            changes,
            _folder: folder,
        }
    }

    /// Returns `works` if commands can work on copies here, otherwise the reason.
    pub(crate) fn usable(&self) -> String {
        self.changes
            .usable()
            .map_or_else(|why| why, |()| "works".to_owned())
    }

    pub(crate) fn run(&self, line: &str) {
        self.call("run_command", &json!({"command": line}));
    }

    fn call(&self, tool: &str, arguments: &serde_json::Value) -> Outcome {
        let call = ToolCall::new(tool, arguments.to_string());
        let outcome = self
            .runtime
            .block_on(self.executor.execute(&self.session, call));
        assert!(outcome.is_ok(), "{tool}: {:?}", outcome.error);
        outcome
    }

    /// Runs a command that rewrites `files` files, and undoes it: returns the milliseconds of the undo.
    pub(crate) fn undo_of(&self, files: usize) -> f64 {
        let write = |word: &str| format!("for i in $(seq {files}); do echo {word} $i > f$i; done");
        self.run(&write("before"));
        let changed = self.call("run_command", &json!({"command": write("after")}));
        let arguments = json!({"run": changed.run.as_str(), "call": changed.call.as_str()});
        wall_ms(|| self.call("undo_changes", &arguments)).0
    }
}
