//! A workspace whose commands run in the jail and are judged by the policy alone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use haft::call::ToolCall;
use haft::policy::{Policy, Profile};
use haft::toolset::registry::ToolRegistry;
use haft::workspace::Workspace;
use haft::{Executor, Outcome, Session};
use haft_builtins::Builtins;
use haft_sandbox::Sandbox;
use serde_json::Value;

pub(crate) struct Scene {
    dir: tempfile::TempDir,
    executor: Executor,
    session: Session,
}

impl Scene {
    /// Creates an empty workspace under this profile, without an approver.
    pub(crate) fn new(sandbox: &Sandbox, profile: Profile) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("ws")).unwrap();
        let workspace = Workspace::open(&dir.path().join("ws")).unwrap();
        let policy = Policy::builder(profile).workspace(&workspace);
        let mut builtins = Builtins::new(workspace);
        builtins.sandbox = Some(sandbox.clone());
        let registry = ToolRegistry::new();
        let tools = builtins.tools().unwrap();
        registry
            .replace_all("builtin", tools.into_iter().map(|t| t.tool))
            .unwrap();
        Self {
            executor: Executor::new(policy.build().unwrap()),
            session: Session::builder(Arc::new(registry)).build().unwrap(),
            dir,
        }
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join("ws").join(path)
    }

    pub(crate) fn put(&self, path: &str, text: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    /// Writes a program to the workspace.
    pub(crate) fn put_program(&self, path: &str, script: &str) {
        self.put(path, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs a script in the workspace, outside the jail.
    #[expect(clippy::disallowed_methods, reason = "sets the scene")]
    pub(crate) fn prepare(&self, script: &str) {
        let output = Command::new("/bin/sh")
            .args(["-ec", script])
            .current_dir(self.at(""))
            .env("HOME", self.dir.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "{script}: {output:?}");
    }

    pub(crate) async fn run(&self, arguments: Value) -> Outcome {
        let call = ToolCall::new("run_command", arguments.to_string());
        self.executor.execute(&self.session, call).await
    }
}
