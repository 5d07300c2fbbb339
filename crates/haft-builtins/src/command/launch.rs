//! `Commands`: prepares and starts commands: their words, their folder, and what the jail shows and hides.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use haft::context::CallContext;
use haft::error::ToolError;
use haft::future::BoxFuture;
use haft::judgement::Judgement;
use haft::permission::{Condition, Effect, PathClaim, Permission};
use haft::policy::{CommandLine, RedirectTarget, join_words, protected};
use haft::session::ActiveSkill;
use haft::spec::Risk;
use haft::tool::{Depth, Intent};
use haft::workspace::{EntryKind, OutsideRepository, Workspace, WorkspaceError};
use haft_sandbox::{
    Backend, CommandSpec, Mounts, Network, PathGuard, Program, RunningCommand, Sandbox, Spool,
    direct_words,
};

use crate::command::RunCommandInput;
use crate::command::changes::{CommandChanges, OpenView, Views};
use crate::command::connect::CommandCall;
use crate::command::covers::{self, Covers};
use crate::command::git;
use crate::command::named_programs::named_programs;
use crate::command::network::{CommandConnections, CommandNetwork};
use crate::command::said_notes::SaidNotes;
use crate::command::screen::ClientInput;
use crate::command::start::{self, InputFeed, NotStarted};
use crate::command::surroundings::CommandSurroundings;
use crate::command::tasks::BackgroundTasks;
use crate::command::trusted;
use crate::command::variables::with_variables;
use crate::files::check::{Checker, CheckerFinding};
use crate::lexical::normalize;

/// What a request says of a command that nobody waits for.
const UNJUDGED: &str = "works in the workspace itself; what it changes is not judged when it ends, and cannot be undone";

/// The variable that names the folder of the most recently activated skill.
const SKILL_DIR: &str = "HAFT_SKILL_DIR";
/// Maximum bytes of each stream in a checker's finding.
const MAX_FINDING: usize = 2_000;
/// The sandbox, the workspace it mounts, and the tasks of all runs.
#[derive(Debug)]
pub struct Commands {
    pub(super) sandbox: Sandbox,
    pub(super) workspace: Workspace,
    /// Memory limit of one command, in MiB; `None` for the sandbox's default.
    memory_mb: Option<u64>,
    pub(super) network: CommandNetwork,
    pub(super) surroundings: CommandSurroundings,
    /// Storage for output that is too long for memory.
    spool: Option<Arc<Spool>>,
    /// The views that commands work on; `None` if they change the workspace directly.
    pub(super) views: Option<Arc<Views>>,
    pub(crate) tasks: BackgroundTasks,
    /// The notes that results have had.
    pub(super) said: SaidNotes,
}

/// The confinement of a command in the workspace.
struct Confinement<'a> {
    covers: Covers,
    judgement: &'a Judgement,
}

impl Commands {
    /// Creates the commands of this workspace, without a network.
    pub fn new(sandbox: Sandbox, workspace: Workspace, memory_mb: Option<u64>) -> Self {
        Self {
            sandbox,
            workspace,
            memory_mb,
            network: CommandNetwork::default(),
            surroundings: CommandSurroundings::default(),
            spool: None,
            views: None,
            tasks: BackgroundTasks::default(),
            said: SaidNotes::default(),
        }
    }

    /// Returns the workspace that commands run in.
    pub(crate) fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Sets the spool for long output.
    pub fn with_spool(mut self, spool: Option<Arc<Spool>>) -> Self {
        self.spool = spool;
        self
    }

    /// Judges and applies changes after a command has ended.
    pub fn with_changes(mut self, changes: Option<CommandChanges>) -> Self {
        self.views = changes.map(|changes| changes.views);
        self
    }

    /// Sets what commands can see outside the workspace.
    pub fn with_surroundings(mut self, surroundings: CommandSurroundings) -> Self {
        self.surroundings = surroundings;
        self
    }

    /// Sets the network. Checkers of written files still have none.
    pub fn with_network(mut self, network: CommandNetwork) -> Self {
        self.network = network;
        self
    }

    pub(crate) fn jailed(&self) -> bool {
        self.sandbox.config().backend == Backend::Jail
    }

    /// Returns how commands are confined and what they can reach.
    pub(crate) fn conditions(&self) -> Vec<Condition> {
        let config = self.sandbox.config();
        let sandbox = match config.backend {
            Backend::Jail => format!("jail, at least {}", config.require),
            Backend::Passthrough => "none: no jail".to_owned(),
        };
        let mut conditions = vec![
            Condition::new("sandbox", sandbox),
            Condition::new("network", self.network.reach()),
        ];
        conditions.extend(self.surroundings.conditions());
        conditions.extend(self.views.iter().flat_map(|views| views.conditions()));
        conditions
    }

    /// Returns the command line as the policy sees it, and the exact words that run if no shell is needed.
    pub(crate) fn words(
        input: &RunCommandInput,
    ) -> Result<(String, Option<Vec<String>>), ToolError> {
        match (&input.command, &input.argv) {
            (Some(line), None) if line.trim().is_empty() => {
                Err(ToolError::invalid_arguments("command is empty"))
            }
            (Some(line), None) => Ok((line.clone(), direct_words(line))),
            (None, Some(argv)) if argv.first().is_some_and(|name| !name.is_empty()) => {
                Ok((join_words(argv), Some(argv.clone())))
            }
            (None, Some(_)) => Err(ToolError::invalid_arguments("argv names no program")),
            _ => Err(ToolError::invalid_arguments(
                "give exactly one of command and argv",
            )),
        }
    }

    /// Returns what running the command would do.
    pub(crate) fn intent(
        &self,
        input: &RunCommandInput,
        depth: Depth,
    ) -> Result<Intent, ToolError> {
        let cwd = self.workspace.claim(&input.cwd)?;
        let (command, argv) = Self::words(input)?;
        // The words describe a command without shell syntax completely. A line with pipes, input or substitutions is more than its parts.
        let stated: &[&str] = match argv {
            Some(_) => &["command", "argv"],
            None => &[],
        };
        let line = self.rate(line_of(command, argv), input, &cwd.path);
        let risk = line.risk();
        let is_direct = risk > Risk::Safe && self.jailed() && !self.uses_view(input, risk);
        Ok(Intent::of(self.permissions(line, input, &cwd.path)?)
            .with_stated(stated)
            .with_conditions(depth, || {
                let mut conditions = self.conditions();
                if !input.ends() {
                    conditions.push(Condition::new(Condition::IN_BACKGROUND, UNJUDGED));
                } else if is_direct {
                    conditions.push(Condition::new(Condition::DIRECTLY, UNJUDGED));
                }
                conditions
            }))
    }

    /// Returns the permissions for what a line with these risks would do.
    fn permissions(
        &self,
        mut line: CommandLine,
        input: &RunCommandInput,
        cwd: &str,
    ) -> Result<Vec<Permission>, ToolError> {
        if !self.is_judged_after(input, line.risk()) {
            return self.workspace_permissions(line, cwd);
        }
        // On a view, the command can write only to the copy of the workspace.
        let mut files = self.named_secrets(&line, cwd);
        for target in &line.reads {
            files.push(Permission::read(self.target(cwd, target)?));
        }
        for part in line.parts.iter_mut().filter(|_| !line.writes.is_empty()) {
            part.risk = part.risk.max(Risk::High);
        }
        Ok(line.runs(true, true).chain(files).collect())
    }

    /// Returns the permissions for what a line would do to the workspace itself.
    pub(super) fn workspace_permissions(
        &self,
        line: CommandLine,
        cwd: &str,
    ) -> Result<Vec<Permission>, ToolError> {
        let mut files = self.named_secrets(&line, cwd);
        for target in &line.writes {
            files.push(Permission::write(self.target(cwd, target)?));
        }
        for target in &line.reads {
            files.push(Permission::read(self.target(cwd, target)?));
        }
        Ok(line.runs(self.jailed(), false).chain(files).collect())
    }

    /// Parses the command line.
    pub(crate) fn line(input: &RunCommandInput) -> Result<CommandLine, ToolError> {
        let (command, argv) = Self::words(input)?;
        Ok(line_of(command, argv))
    }

    /// Parses the command line and sets the risk of each part in this environment.
    fn parse_and_rate(&self, input: &RunCommandInput, cwd: &str) -> Result<CommandLine, ToolError> {
        Ok(self.rate(Self::line(input)?, input, cwd))
    }

    /// Sets the risk of each part of a line by its words.
    pub(super) fn rate_words(
        &self,
        mut line: CommandLine,
        input: &RunCommandInput,
        cwd: &str,
    ) -> CommandLine {
        for part in &mut line.parts {
            // A variable can make a reading command run anything; without a jail, a reading command can read the whole machine.
            let plain = input.env.is_empty() && (self.jailed() || stays(part.argv.as_deref(), cwd));
            // On a terminal, a reading command starts a pager, which starts anything.
            if !plain || input.tty.is_some() {
                part.risk = part.risk.max(Risk::High);
            }
            // A command can send away what it reads.
            part.risk = part.risk.max(self.network.min_risk());
        }
        line
    }

    /// Returns the risk of a command.
    pub(super) fn risk(&self, input: &RunCommandInput) -> Result<Risk, ToolError> {
        let cwd = self.workspace.claim(&input.cwd)?;
        Ok(self.parse_and_rate(input, &cwd.path)?.risk())
    }

    /// Returns the permissions that the command would need to work on the workspace itself.
    pub(super) fn intended_permissions(
        &self,
        input: &RunCommandInput,
    ) -> Result<Vec<Permission>, ToolError> {
        let cwd = self.workspace.claim(&input.cwd)?;
        let line = self.parse_and_rate(input, &cwd.path)?;
        self.workspace_permissions(line, &cwd.path)
    }

    /// Resolves the file that a redirection names, from the folder that the command starts in.
    fn target(&self, cwd: &str, target: &RedirectTarget) -> Result<PathClaim, ToolError> {
        if !target.known {
            // As written: the policy asks about it.
            return Ok(PathClaim::plain(target.path.clone()));
        }
        if let Some(folder) = self.network.packages_workdir() {
            // Not in the workspace, so its rules do not apply.
            return Ok(PathClaim::plain(
                normalize(&folder.join(&target.path)).to_string_lossy(),
            ));
        }
        let path = Path::new(cwd).join(&target.path);
        match self.workspace.claim(&path.to_string_lossy()) {
            // The jail prevents the access; the policy asks about it or denies it.
            Err(WorkspaceError::Outside(_)) => {
                let whole = self.workspace.root().join(path);
                Ok(PathClaim::plain(normalize(&whole).to_string_lossy()))
            }
            claim => Ok(claim?),
        }
    }

    /// Returns the protected paths that a command writes by redirections. They were judged, because the policy asked about each.
    fn approved_paths(
        &self,
        line: &str,
        cwd: &str,
        judgement: &Judgement,
    ) -> Result<Vec<PathBuf>, ToolError> {
        let read = CommandLine::new(line);
        let stays = read.stays_in_its_folder();
        let mut paths = Vec::new();
        for target in read.writes.iter().filter(|target| target.known && stays) {
            let claim = self.target(cwd, target)?;
            judgement.cleared(&Effect::Write(claim.clone()))?;
            let path = claim.target.unwrap_or(claim.path);
            let inside = !path.starts_with('/') && !path.starts_with("..");
            if inside && protected(&path).is_some() {
                paths.push(PathBuf::from(path));
            }
        }
        Ok(paths)
    }

    /// Returns the command to start and its network connections.
    pub(crate) fn spec(
        &self,
        input: &RunCommandInput,
        view: Option<&OpenView>,
        covers: Covers,
        context: &CallContext,
    ) -> Result<(CommandSpec, CommandConnections), ToolError> {
        let (line, argv) = Self::words(input)?;
        let program = match &argv {
            Some(argv) => Program::Argv(argv.iter().map(OsString::from).collect()),
            None => Program::Shell(line.clone().into()),
        };
        let mut spec = if let Some(folder) = self.network.packages_workdir() {
            self.spec_in_folder(program, folder, input)?
        } else {
            // On a view, the command may change every file.
            let line = (argv.is_none() && view.is_none()).then_some(&*line);
            let confinement = Confinement {
                covers,
                judgement: context.judgement(),
            };
            let mut spec = self.spec_in_workspace(program, input, line, confinement)?;
            spec.mounts.view = view.map(OpenView::layers);
            spec.mounts.home = view.map(OpenView::home).unwrap_or_default();
            if view.is_some() {
                spec = without_byte_code(spec);
            }
            self.with_skills(spec, &context.active_skills())
        };
        let first = argv.as_ref().and_then(|argv| argv.first());
        let program = first.map_or_else(|| named_programs(&line), Clone::clone);
        let whole = whole(input, &line);
        let call = CommandCall {
            context,
            line: &line,
            whole: &whole,
            program: &program,
            sets_variables: !input.env.is_empty(),
        };
        let mut connected = self
            .network
            .connect(&mut spec, self.workspace.root(), &call);
        if let Some(certificate) = self.network.certificate(&connected)
            && matches!(spec.network, Network::Outlet(_))
        {
            trusted::trust(&mut spec, &self.surroundings.certificates, &certificate);
        }
        connected.offer_agent(self.surroundings.agent.as_ref(), &mut spec);
        connected.offer_sockets(&self.surroundings.sockets, &mut spec);
        Ok((spec.with_spool(self.spool.clone()), connected))
    }

    /// Prepares a command in the workspace; `line` is the text for the shell, if there is one.
    fn spec_in_workspace(
        &self,
        program: Program,
        input: &RunCommandInput,
        line: Option<&str>,
        confinement: Confinement<'_>,
    ) -> Result<CommandSpec, ToolError> {
        let Confinement { covers, judgement } = confinement;
        let place = self.workspace.existing(&input.cwd)?;
        if place.kind() != Some(EntryKind::Directory) {
            return Err(WorkspaceError::NotADirectory(place.display()).into());
        }
        let spec = CommandSpec::new(program, self.workspace.root().join(place.real()));
        // True if the command was judged to only read.
        let reads = judgement
            .permissions()
            .iter()
            .all(|wanted| wanted.risk == Risk::Safe);
        let outside = self.workspace.repository();
        let top = outside.map_or(self.workspace.root(), OutsideRepository::tree);
        let spec = git::with_settings(with_variables(spec, input)?, reads, top);
        let mut spec = self.confined(spec, covers);
        // A command that was judged to only read cannot do more, even if the judgement was wrong.
        spec.mounts.only_reads = reads;
        if let Some(line) = line {
            spec.mounts.writable =
                self.approved_paths(line, &self.workspace.claim(&input.cwd)?.path, judgement)?;
            let open = &spec.mounts.writable;
            let is_open = |link: &Path| open.iter().any(|open| link.starts_with(open));
            spec.mounts.pinned.retain(|link| !is_open(link));
        }
        Ok(spec)
    }

    /// Prepares a command in another folder, which is all that it sees.
    fn spec_in_folder(
        &self,
        program: Program,
        folder: &Path,
        input: &RunCommandInput,
    ) -> Result<CommandSpec, ToolError> {
        if input.cwd != "." {
            let message = "cwd: with sandbox.network = \"install\" a command runs in the folder of packages, without the workspace";
            return Err(ToolError::invalid_arguments(message).with_advice("omit cwd"));
        }
        let folder = CommandNetwork::packages_folder(folder)?;
        let spec = with_variables(CommandSpec::new(program, &folder), input)?;
        let mut spec = spec.with_mounts(Mounts::workspace(folder));
        self.surroundings.add_to(&mut spec);
        Ok(self.with_memory_limit(spec))
    }

    /// Mounts the workspace with these guards ([`covers::of`]).
    pub(crate) fn confined(&self, spec: CommandSpec, covers: Covers) -> CommandSpec {
        let mut mounts = Mounts::workspace(self.workspace.root());
        mounts.guards = covers.guards;
        mounts.pinned = covers.pinned;
        let mut spec = spec.with_mounts(mounts);
        self.surroundings.add_to(&mut spec);
        self.with_memory_limit(spec)
    }

    /// Returns the guards of the workspace for a command of this call.
    ///
    /// # Errors
    /// If the workspace is too large to find all paths to cover.
    pub(crate) async fn covers(
        &self,
        context: &CallContext,
        on_view: bool,
    ) -> Result<Covers, ToolError> {
        // Without a jail nothing can be covered, and a packages folder has nothing to cover.
        if !self.jailed() || self.network.packages_workdir().is_some() {
            return Ok(Covers::default());
        }
        covers::of(context, &self.workspace, on_view).await
    }

    fn with_memory_limit(&self, mut spec: CommandSpec) -> CommandSpec {
        if self.memory_mb.is_some() {
            spec.limits.memory_mb = self.memory_mb;
        }
        spec
    }

    /// Shows the folders of the active skills read-only. `HAFT_SKILL_DIR` names the newest one.
    pub(crate) fn with_skills(
        &self,
        mut spec: CommandSpec,
        skills: &[Arc<ActiveSkill>],
    ) -> CommandSpec {
        let root = self.workspace.root();
        for folder in skills
            .iter()
            .filter_map(|skill| skill.folder())
            .filter(|folder| folder.is_dir())
        {
            // The command already sees a folder that contains the workspace, which must not become read-only.
            if !root.starts_with(folder) {
                match folder.strip_prefix(root) {
                    Ok(inside) => spec.mounts.guards.push(PathGuard::protect_dir(inside)),
                    Err(_) => spec.mounts.read_only.push(folder.to_path_buf()),
                }
            }
            spec = spec.with_env(SKILL_DIR, folder);
        }
        spec
    }

    async fn run_checker(
        &self,
        argv: Vec<String>,
        time: Duration,
        context: &CallContext,
    ) -> Result<CheckerFinding, ToolError> {
        // Nobody wants the checker's changes, so it works on a view that is discarded.
        let view = self.scratch_view(context).await?;
        let covers = covers::of(context, &self.workspace, view.is_some()).await?;
        let spec = CommandSpec::argv(argv, self.workspace.root()).with_timeout(time);
        let mut spec = self.confined(spec, covers);
        spec.mounts.view = view.as_ref().map(OpenView::layers);
        spec.mounts.home = view.as_ref().map(OpenView::home).unwrap_or_default();
        let running = self.sandbox.start_jailed(spec).await;
        let running = running.map_err(|error| NotStarted { error, line: false }.into_error())?;
        let exit = running.wait().await;
        let (out, err) = (
            running.stdout().text(0, MAX_FINDING),
            running.stderr().text(0, MAX_FINDING),
        );
        let mut finding = format!("{}{}", out.text, err.text);
        if exit.timed_out {
            finding.push_str("[it took too long and was stopped]");
        }
        Ok(CheckerFinding {
            ok: exit.success(),
            message: finding.trim().to_owned(),
        })
    }

    /// Starts a command; it reads what its client pipes in.
    pub(crate) async fn start(
        &self,
        spec: CommandSpec,
        client: ClientInput,
    ) -> Result<(RunningCommand, Option<InputFeed>), NotStarted> {
        start::start(
            &self.sandbox,
            spec,
            client,
            self.network.allows_no_network(),
        )
        .await
    }
}

impl Checker for Commands {
    fn check<'a>(
        &'a self,
        argv: Vec<String>,
        time: Duration,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<CheckerFinding, ToolError>> {
        Box::pin(self.run_checker(argv, time, context))
    }
}

/// Keeps Python from writing byte code beside its sources, unless the call or the settings say otherwise: the user would be asked about
/// each such file, as the host runs it in place of the source. A folder of its own (`PYTHONPYCACHEPREFIX`) would hide the byte code of
/// installed packages, too.
fn without_byte_code(mut spec: CommandSpec) -> CommandSpec {
    let name = "PYTHONDONTWRITEBYTECODE".into();
    spec.env.entry(name).or_insert("1".into());
    spec
}

/// Returns a command from its line and, if it needs no shell, its exact words.
fn line_of(command: String, argv: Option<Vec<String>>) -> CommandLine {
    match argv {
        Some(argv) => CommandLine::of_argv(command, argv),
        None => CommandLine::new(&command),
    }
}

/// Returns true if no word names a path outside the workspace.
fn stays(argv: Option<&[String]>, cwd: &str) -> bool {
    let outside = |word: &String| {
        let value = word
            .rsplit_once('=')
            .map_or(word.as_str(), |(_, value)| value);
        value.starts_with(['/', '~']) || value.split('/').any(|part| part == "..")
    };
    cwd == "." && argv.is_some_and(|argv| !argv.iter().any(outside))
}

/// Returns a line with the variables and the folder of its call, in shell syntax.
fn whole(input: &RunCommandInput, line: &str) -> String {
    let mut out = String::new();
    if input.cwd != "." {
        out.extend(["cd ", &join_words(&[&input.cwd]), " && "]);
    }
    for (name, value) in &input.env {
        out.extend([name, "=", &join_words(&[value]), " "]);
    }
    out + line
}
