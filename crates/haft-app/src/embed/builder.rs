//! `HaftBuilder`: configures and creates an embedded application.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use haft::approval::{ApprovalRequest, Approver, Decision};
use haft::policy::{CommandPolicy, PolicyBuilder, PolicyParts, RuleText};
use haft::tool::Tool;
use haft::tool::into_tool::{IntoTool, IntoTools};
use haft::toolset::registry::RegistryError;
use toml::Value;

use crate::app::App;
use crate::config::program::ProgramSettings;
use crate::embed::deciding::FunctionApprover;
use crate::embed::standard::Standard;
use crate::embed::{Haft, Inner};
use crate::environment::Environment;
use crate::home::Home;
use crate::host::{Host, MakeApprover, PendingCallMode};
use crate::notices::Notices;
use crate::plain_file;
use crate::problem::{Problem, SourceLocation};
use crate::site::Site;

/// Builds a [`Haft`]. The defaults are safe: no tools, no approver and so calls that need approval are denied, the profile `workspace`, no
/// settings of the machine, state in a private folder that is removed with the application.
#[derive(Default)]
#[must_use]
pub struct HaftBuilder {
    workspace: Option<PathBuf>,
    state: Option<PathBuf>,
    standard: Standard,
    tools: Vec<Arc<dyn Tool>>,
    /// The first error in adding a tool.
    wrong: Option<RegistryError>,
    policy: Option<PolicyParts>,
    approver: Option<Arc<dyn Approver>>,
    when_asked: Option<PendingCallMode>,
    settings: ProgramSettings,
    environment: Option<Environment>,
    notices: Notices,
}

impl fmt::Debug for HaftBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools = self.tools.iter().map(|tool| tool.spec().name.as_str());
        f.debug_struct("HaftBuilder")
            .field("workspace", &self.workspace)
            .field("state", &self.state)
            .field("standard", &self.standard)
            .field("tools", &tools.collect::<Vec<_>>())
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

impl HaftBuilder {
    /// Adds a tool of the program: a `#[tool]` function by its name, a [`TypedTool`](haft::TypedTool), or a tool in an `Arc`.
    pub fn tool<Form>(mut self, tool: impl IntoTool<Form>) -> Self {
        self.add(tool.into_dyn_tool().map(|tool| vec![tool]));
        self
    }

    /// Adds several tools of the program: a value with `#[tools]` methods, an `Arc` of it, or a list of tools.
    pub fn tools<Form>(mut self, tools: impl IntoTools<Form>) -> Self {
        self.add(tools.into_dyn_tools());
        self
    }

    fn add(&mut self, tools: Result<Vec<Arc<dyn Tool>>, RegistryError>) {
        match tools {
            Ok(tools) => self.tools.extend(tools),
            Err(wrong) => {
                self.wrong.get_or_insert(wrong);
            }
        }
    }

    /// Sets the folder that tools work in, which must exist. It applies to tools, policy, lists and sandbox, and approvals are bound to it.
    /// A program's own tools need none.
    pub fn workspace(mut self, folder: impl Into<PathBuf>) -> Self {
        self.workspace = Some(folder.into());
        self
    }

    /// Sets the folder for records, requests, artifacts and memory, which no tool reads or changes, even inside the workspace. It is
    /// created if missing. Without one, all of that is removed with the application.
    pub fn state(mut self, folder: impl Into<PathBuf>) -> Self {
        self.state = Some(folder.into());
        self
    }

    /// Selects the standard tools, by bundle; the default is none.
    pub fn standard(mut self, wanted: Standard) -> Self {
        self.standard = wanted;
        self
    }

    /// Sets the policy: a profile, or a [`Policy::builder`](haft::Policy::builder) with rules and guards, for the application's workspace.
    pub fn policy(mut self, policy: impl Into<PolicyBuilder>) -> Self {
        self.policy = Some(policy.into().into_parts());
        self
    }

    /// Sets the approver for calls that need approval: a queue of the program ([`haft::approval::channel`]), or a custom one.
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Sets a function that decides about calls that need approval, in place of a person or on their behalf. It must not block; an approver
    /// that asks and waits belongs in [`approver`](Self::approver), as do tools' questions, which no function answers.
    pub fn decide(
        self,
        decide: impl Fn(&ApprovalRequest) -> Decision + Send + Sync + 'static,
    ) -> Self {
        self.approver(FunctionApprover(decide))
    }

    /// Sets what happens to calls that need approval. By default they wait if there is an approver, and are denied at once otherwise.
    pub fn when_asked(mut self, when: PendingCallMode) -> Self {
        self.when_asked = Some(when);
        self
    }

    /// Sets a setting by its key in `haft.toml`: `set("limits.max_calls", 50)`. The last value wins; lists are combined.
    pub fn set(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.settings = self.settings.set(key, value);
        self
    }

    /// Also applies the settings of the machine: `/etc/haft`, the user's file, the workspace's `haft.toml` as far as the folder is trusted,
    /// `HAFT_…` variables. The program's settings override them; a deny rule in any of them holds.
    pub fn machine_settings(mut self) -> Self {
        self.settings = self.settings.with_machine();
        self
    }

    /// Sets the variables that commands, interpreters and settings see, instead of this process's.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = Some(environment);
        self
    }

    /// Sets the receiver of warnings, instead of the log.
    pub fn notices(mut self, notices: Notices) -> Self {
        self.notices = notices;
        self
    }

    /// Creates the application. Needs a tokio runtime.
    ///
    /// # Errors
    /// A tool is invalid or has the name of another, a folder is missing or unsuitable, a rule or setting is wrong, or requests are to
    /// outlive the process without a state folder.
    pub fn build(mut self) -> Result<Haft, Problem> {
        if let Some(wrong) = self.wrong.take() {
            return Err(Problem::usage(format!(
                "cannot offer the program's tools: {wrong}"
            )));
        }
        let when_asked = self.effective_when_asked();
        if when_asked == PendingCallMode::Suspend && self.state.is_none() {
            let what = "calls are to be suspended, and there is no state folder for their requests";
            return Err(Problem::usage(what).advise("name one: `.state(folder)`"));
        }
        let site = self.site()?;
        let program = self.program(when_asked)?;
        let trusted = program.reads_machine() && site.trust()?.trusts(&site.workspace);
        let settings = site.settings_of(&program, trusted)?;
        for warning in &settings.warnings {
            self.notices.warn(warning);
        }
        let approver = self
            .approver
            .map(|approver| -> MakeApprover { Box::new(move |_| approver) });
        let host = Host {
            approver,
            when_asked: Some(when_asked),
            tools: self.tools,
            guards: self.policy.map(|policy| policy.guards).unwrap_or_default(),
            notices: self.notices,
            // How a program notifies its users is up to the program.
            desktop: false,
            starts_command: false,
        };
        let app = App::build(&site, &settings, host)?;
        let sweeps = self.standard.contains(Standard::COMMANDS);
        Ok(Haft(Arc::new(Inner {
            sweeping: sweeps.then(|| app.sweep()),
            app,
            settings,
        })))
    }

    fn effective_when_asked(&self) -> PendingCallMode {
        self.when_asked.unwrap_or(if self.approver.is_some() {
            PendingCallMode::Wait
        } else {
            PendingCallMode::Deny
        })
    }

    /// Returns the site that the application works at.
    fn site(&mut self) -> Result<Site, Problem> {
        let environment = self.environment.take().unwrap_or_else(Environment::read);
        let home = match &self.state {
            Some(folder) => Home::locate(Some(folder), &environment)?,
            None => Home::temporary()?,
        };
        let named = self.workspace.is_some();
        let workspace = match self.workspace.take() {
            Some(folder) => folder,
            None => self.empty_workspace(&home)?,
        };
        if !workspace.is_dir() {
            return Err(Problem::usage("the workspace is not a folder")
                .at(SourceLocation::file(&workspace))
                .advise("make it first"));
        }
        let site = Site::new(&workspace, home, environment)?;
        let state = site.home.path();
        let state = state.canonicalize().unwrap_or_else(|_| state.to_owned());
        if named && site.workspace.starts_with(state) {
            let what = "the workspace lies in the state folder, which no tool may touch";
            return Err(Problem::usage(what)
                .at(SourceLocation::file(&site.workspace))
                .advise("keep the two apart, or the state folder in the workspace"));
        }
        Ok(site)
    }

    /// Creates a folder without files, for a program's own tools. It is always the same for a state folder: approvals are bound to it.
    fn empty_workspace(&self, home: &Home) -> Result<PathBuf, Problem> {
        let works_in_one = Standard::FILES | Standard::COMMANDS | Standard::SKILLS;
        if self.standard.intersects(works_in_one) {
            let what = "the standard tools need a folder to work in";
            return Err(Problem::usage(what).advise("name it: `.workspace(folder)`"));
        }
        let folder = home.join("workspace");
        plain_file::private_folder(&folder).map_err(|e| {
            Problem::failed(format!("cannot create an empty workspace: {e}"))
                .at(SourceLocation::file(&folder))
        })?;
        Ok(folder)
    }

    /// Converts the builder's options to settings. Those that the program set itself come last, so that they win.
    fn program(&mut self, when_asked: PendingCallMode) -> Result<ProgramSettings, Problem> {
        let mode = if when_asked == PendingCallMode::Deny {
            "deny"
        } else {
            "ask"
        };
        let mut program = ProgramSettings::default()
            .set("approval.mode", mode)
            .set("tools.disable", self.standard.unselected());
        if let Some(policy) = &mut self.policy {
            if policy.workspace.is_some() {
                let what = "the policy names a workspace, and the application has one";
                return Err(Problem::usage(what)
                    .advise("set it only once: `Haft::builder().workspace(folder)`"));
            }
            let commands = match policy.commands {
                CommandPolicy::Copy => "copy",
                CommandPolicy::Ask => "ask",
            };
            let rules = std::mem::take(&mut policy.rules);
            program = program
                .set("policy.profile", policy.profile.as_str())
                .set("policy.commands", commands)
                .set("policy.allow", written(&rules.allow)?)
                .set("policy.ask", written(&rules.ask)?)
                .set("policy.deny", written(&rules.deny)?);
        }
        Ok(program.then(std::mem::take(&mut self.settings)))
    }
}

/// Converts rules to a setting's value.
fn written(rules: &[RuleText]) -> Result<Vec<Value>, Problem> {
    let rule = |rule: &RuleText| {
        if *rule == RuleText::new(rule.rule.as_str()) {
            return Ok(Value::from(rule.rule.as_str()));
        }
        Value::try_from(rule).map_err(|e| Problem::settings(format!("cannot read a rule: {e}")))
    };
    rules.iter().map(rule).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use haft::toolset::Toolset as _;

    use crate::embed::Haft;
    use crate::embed::standard::Standard;
    use crate::environment::Environment;

    #[tokio::test]
    async fn no_settings_of_the_machine_bring_a_tool_that_the_program_does_not_want() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        fs::create_dir(at.join("ws")).unwrap();
        let config = at.join("config/haft");
        fs::create_dir_all(&config).unwrap();
        fs::write(
            config.join("config.toml"),
            "[tools]\nenable = [\"todo_write\"]\n[tools.run_command]\nenabled = true\n[tools.fetch_url]\nenabled = true\n",
        )
        .unwrap();
        let xdg = at.join("config");
        let given = [
            ("HOME", at.to_str().unwrap()),
            ("XDG_CONFIG_HOME", xdg.to_str().unwrap()),
        ];
        let build = || {
            let environment = Environment::from(given.as_slice());
            Haft::builder()
                .workspace(at.join("ws"))
                .environment(environment)
                .standard(Standard::FILES)
                .machine_settings()
        };
        let names = |haft: &Haft| -> Vec<String> {
            let snapshot = haft.tools().snapshot();
            let names = snapshot.listed().map(|entry| entry.spec().name.to_string());
            names.collect()
        };
        let haft = build().build().unwrap();
        let on = names(&haft);
        assert!(on.contains(&"read_file".to_owned()), "{on:?}");
        for name in [
            "run_command",
            "await_command",
            "command_input",
            "kill_command",
            "fetch_url",
            "todo_write",
        ] {
            assert!(!on.contains(&name.to_owned()), "{name}: {on:?}");
        }
        haft.shut_down().await;
        // A tool that the program names itself is on.
        let haft = build().set("tools.fetch_url.enabled", true);
        let haft = haft.build().unwrap();
        assert!(names(&haft).contains(&"fetch_url".to_owned()));
        haft.shut_down().await;
    }
}
