//! `CommandNetwork`: what commands can reach over the network, and where packages for them are stored.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft::error::ToolError;
use haft::spec::{NameError, Risk};
use haft::tool::Tool;
use haft_sandbox::{CommandSpec, Mounts, Network, OUTLET_ADDRESS, PathGuard, RunningCommand};

use crate::command::agent::{self, AgentQuestions};
use crate::command::connect::{CommandCall, Connect, OpenCommands};
use crate::command::connections::judge::ConnectionsJudge;
use crate::command::connections::{AskingGuard, Connections};
use crate::command::listed::ListedConnections;
use crate::command::sign::Sign;
use crate::command::sockets::{self, SocketQuestions};
use crate::command::{CommandData, packages};
use crate::gpg_agent::{GpgAgent, GpgSocket};
use crate::host_sockets::{HostSockets, SocketInPlace};
use crate::proxy::{CommandOutlet, Proxy, taken_ports};
use crate::services::Services;
use crate::ssh_agent::{AgentSocket, SshAgent};

/// The network access of commands, and the packages they see. The default reaches nothing.
#[derive(Debug, Clone, Default)]
pub struct CommandNetwork {
    mode: NetworkMode,
    /// The folder for packages installed for this workspace.
    packages: Option<PathBuf>,
    /// The servers of commands, if those of one run reach each other.
    services: Option<Services>,
}

#[derive(Debug, Clone, Default)]
enum NetworkMode {
    #[default]
    None,
    /// Judges, and asks about, each connection when it is made.
    Ask(Proxy, OpenCommands),
    /// Allows the hosts of a list. Asks where a guard requires it.
    AllowList(Proxy, OpenCommands),
    Install(Proxy, PathBuf, OpenCommands),
    Full,
}

impl CommandNetwork {
    /// Judges each connection when it is made, by `Network` rules and the user. The proxy's list decides nothing: a host that needs no
    /// question has an allow rule. The executor needs [`tools`](Self::tools) for it.
    pub fn ask(proxy: Proxy) -> Self {
        Self::of(NetworkMode::Ask(proxy, OpenCommands::default()))
    }

    /// Returns the internal tools that ask about connections and logins, for
    /// [`Executor::with_internal_tools`](haft::Executor::with_internal_tools); none if nothing is asked about.
    ///
    /// # Errors
    /// If the tool cannot be described.
    pub fn tools(&self) -> Result<Vec<Arc<dyn Tool>>, NameError> {
        match &self.mode {
            NetworkMode::Ask(_, open)
            | NetworkMode::AllowList(_, open)
            | NetworkMode::Install(_, _, open) => {
                let tools = [Connect::tool(open.clone())?, Sign::tool(open.clone())?];
                Ok(tools.into())
            }
            NetworkMode::None | NetworkMode::Full => Ok(Vec::new()),
        }
    }

    /// Allows the hosts on this proxy's list and nothing else. A guard that asks because of what the run has read asks about these hosts,
    /// too: the executor needs [`tools`](Self::tools) for it, or such a connection is refused.
    pub fn allow_list(proxy: Proxy) -> Self {
        Self::of(NetworkMode::AllowList(proxy, OpenCommands::default()))
    }

    /// Allows the hosts on this proxy's list, for programs that install packages. They run in this folder instead of the workspace,
    /// which they do not see. Guards count as with [`allow_list`](Self::allow_list).
    pub fn install(proxy: Proxy, packages: PathBuf) -> Self {
        Self::of(NetworkMode::Install(
            proxy,
            packages,
            OpenCommands::default(),
        ))
    }

    /// Allows everything that this machine can reach, including its own services.
    pub fn full() -> Self {
        Self::of(NetworkMode::Full)
    }

    fn of(mode: NetworkMode) -> Self {
        Self {
            mode,
            packages: None,
            services: None,
        }
    }

    /// Shows commands the packages in this folder, if it exists.
    pub fn with_packages(mut self, folder: PathBuf) -> Self {
        self.packages = Some(folder);
        self
    }

    /// Lets the commands of one run reach each other's servers.
    pub fn with_services(mut self, services: Services) -> Self {
        self.services = Some(services);
        self
    }

    /// Returns the servers of commands, if those of one run reach each other.
    pub fn services(&self) -> Option<&Services> {
        self.services.as_ref()
    }

    /// Returns true if commands reach nothing, or each connection is judged when it is made.
    pub(crate) fn is_judged_when_used(&self) -> bool {
        matches!(self.mode, NetworkMode::None | NetworkMode::Ask(..))
    }

    /// Returns true if commands may run without a network when the jail cannot restrict them to the outlet.
    pub(crate) fn allows_no_network(&self) -> bool {
        matches!(self.mode, NetworkMode::Ask(..))
    }

    /// Returns the name of the mode in the settings.
    pub fn word(&self) -> &'static str {
        match self.mode {
            NetworkMode::None => "none",
            NetworkMode::Ask(..) => "ask",
            NetworkMode::AllowList(..) => "allow-list",
            NetworkMode::Install(..) => "install",
            NetworkMode::Full => "full",
        }
    }

    /// Describes the mode in one line for the user.
    pub fn meaning(&self) -> String {
        match &self.mode {
            NetworkMode::None => "commands have no network".to_owned(),
            NetworkMode::Ask(..) => {
                "haft asks when a command connects, unless a Network rule decides".to_owned()
            }
            NetworkMode::AllowList(proxy, _) => format!(
                "commands reach {} hosts of sandbox.allow_hosts",
                proxy.hosts()
            ),
            NetworkMode::Install(proxy, folder, _) => format!(
                "commands reach {} hosts of package registries and run in {} without the workspace",
                proxy.hosts(),
                folder.display()
            ),
            NetworkMode::Full => {
                "commands reach everything this machine can; each command is critical".to_owned()
            }
        }
    }

    /// Returns the complete reach of commands: an approval of a command holds for exactly this.
    pub(crate) fn reach(&self) -> String {
        match &self.mode {
            NetworkMode::None => "none".to_owned(),
            NetworkMode::Ask(..) => "each connection is judged".to_owned(),
            NetworkMode::AllowList(proxy, _) => format!("only {}", proxy.allowed()),
            NetworkMode::Install(proxy, folder, _) => format!(
                "only {}; runs in {} without the workspace",
                proxy.allowed(),
                folder.display()
            ),
            NetworkMode::Full => "everything this machine can reach".to_owned(),
        }
    }

    /// Returns the minimum risk of any command, whatever it runs.
    pub(crate) fn min_risk(&self) -> Risk {
        match self.mode {
            // Each connection has a risk of its own.
            NetworkMode::None | NetworkMode::Ask(..) => Risk::Safe,
            NetworkMode::AllowList(..) | NetworkMode::Install(..) => Risk::High,
            NetworkMode::Full => Risk::Critical,
        }
    }

    /// Returns the certificate by which a command with these connections knows haft as the hosts of credentials, and as those whose
    /// requests are judged, if there are any.
    pub(super) fn certificate(&self, connected: &CommandConnections) -> Option<String> {
        match &self.mode {
            NetworkMode::Ask(proxy, _)
            | NetworkMode::AllowList(proxy, _)
            | NetworkMode::Install(proxy, ..) => {
                proxy.logins().certificate(connected.judges_requests)
            }
            NetworkMode::None | NetworkMode::Full => None,
        }
    }

    /// Returns the folder that commands run in instead of the workspace, if there is one.
    pub(crate) fn packages_workdir(&self) -> Option<&Path> {
        match &self.mode {
            NetworkMode::Install(_, folder, _) => Some(folder),
            _ => None,
        }
    }

    /// Returns the packages folder and creates it if needed. It is the only place that such a command can write to.
    pub(crate) fn packages_folder(folder: &Path) -> Result<PathBuf, ToolError> {
        use std::os::unix::fs::DirBuilderExt;
        let made = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .and_then(|()| folder.canonicalize());
        made.map_err(|error| {
            let message = format!("make the folder of packages {}: {error}", folder.display());
            ToolError::unavailable(message).for_operator("XDG_CACHE_HOME chooses another place")
        })
    }

    /// Sets up the network of a command. Variables that the caller set are kept.
    pub(crate) fn connect(
        &self,
        spec: &mut CommandSpec,
        workspace: &Path,
        call: &CommandCall<'_>,
    ) -> CommandConnections {
        let mut connected = CommandConnections {
            mode: self.word(),
            way: None,
            connections: None,
            judges_requests: false,
            agent: None,
            gpg: None,
            sockets: Vec::new(),
        };
        // A command that only reads has no need to connect.
        if let NetworkMode::Ask(proxy, open) = &self.mode
            && !spec.mounts.only_reads
        {
            let connections = Connections::new(proxy, open, call);
            let rules = call.context.rules();
            connected.judges_requests = rules.judges_requests_of_commands();
            let judge = Arc::new(ConnectionsJudge {
                connections: Arc::clone(&connections),
                trusts: connected.judges_requests,
            });
            let named = rules.named_ports().into_iter();
            let ports = taken_ports(named.chain(proxy.logins().ports()));
            connected.lead(spec, proxy.outlet_judged_by(judge, ports), connections);
            for (name, value) in patience().chain(no_updates()) {
                spec.env.entry(name.into()).or_insert(value.into());
            }
        }
        if let NetworkMode::AllowList(proxy, open) | NetworkMode::Install(proxy, _, open) =
            &self.mode
        {
            let connections = Connections::new(proxy, open, call);
            let judge = Arc::new(ListedConnections {
                list: proxy.list(),
                connections: Arc::clone(&connections),
                rules: call.context.rules(),
            });
            let named = proxy.list();
            let ports = taken_ports(named.ports().chain(proxy.logins().ports()));
            connected.lead(spec, proxy.outlet_judged_by(judge, ports), connections);
        }
        if matches!(self.mode, NetworkMode::Full) {
            spec.network = Network::Host;
        }
        if matches!(self.mode, NetworkMode::Install(..)) {
            packages::set_up_install(spec);
        } else if let Some(folder) = self.packages.as_deref().and_then(|f| f.canonicalize().ok()) {
            let offline = matches!(self.mode, NetworkMode::None);
            show(&mut spec.mounts, &folder, workspace);
            packages::set_up_use(spec, &folder, offline);
        }
        connected
    }
}

/// Shows a folder read-only.
fn show(mounts: &mut Mounts, folder: &Path, workspace: &Path) {
    match folder.strip_prefix(workspace) {
        Ok(inside) => mounts.guards.push(PathGuard::protect_dir(inside)),
        Err(_) => mounts.read_only.push(folder.to_owned()),
    }
}

/// Names and addresses of the jail's own loopback.
const LOOPBACK_HOSTS: &str = "localhost,127.0.0.1,0.0.0.0,::1,[::1]";

/// Timeouts, each in its installer's units, for installers that give up a silent connection before the user can decide.
fn patience() -> impl Iterator<Item = (&'static str, String)> {
    [
        ("PIP_DEFAULT_TIMEOUT", "600"),
        ("NPM_CONFIG_FETCH_TIMEOUT", "600000"),
        ("CARGO_HTTP_TIMEOUT", "600"),
        ("UV_HTTP_TIMEOUT", "600"),
    ]
    .into_iter()
    .map(|(name, value)| (name, value.to_owned()))
}

/// Turns off update checks: the user would be asked about a host that the command does not need.
fn no_updates() -> impl Iterator<Item = (&'static str, String)> {
    [
        ("NPM_CONFIG_UPDATE_NOTIFIER", "false"),
        ("NO_UPDATE_NOTIFIER", "1"),
        ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ]
    .into_iter()
    .map(|(name, value)| (name, value.to_owned()))
}

/// Returns the variables that point programs to the proxy. A program that ignores them reaches nothing.
fn proxy_variables() -> impl Iterator<Item = (&'static str, String)> {
    let named = [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
    ];
    let named = named.map(|name| (name, format!("http://{OUTLET_ADDRESS}")));
    // The jail's own loopback, where a test may run its server.
    let none = ["NO_PROXY", "no_proxy"].map(|name| (name, LOOPBACK_HOSTS.to_owned()));
    // Node's own client uses the proxy only with this variable.
    let node = [("NODE_USE_ENV_PROXY", "1".to_owned())];
    named.into_iter().chain(none).chain(node)
}

/// The network connections of one command.
#[derive(Debug, Clone)]
pub(crate) struct CommandConnections {
    mode: &'static str,
    /// The way out, if there is one.
    way: Option<Arc<CommandOutlet>>,
    /// Decides about the connections if any may be asked about.
    connections: Option<Arc<Connections>>,
    /// Whether rules judge requests at some hosts, so that the command must take haft for these.
    judges_requests: bool,
    /// The socket of the user's agent, which is there as long as this value.
    agent: Option<Arc<AgentSocket>>,
    /// That of the user's gpg-agent.
    gpg: Option<Arc<GpgSocket>>,
    /// Those in place of the host's services'.
    sockets: Vec<Arc<SocketInPlace>>,
}

/// Maximum number of names in the advice for a command that reached nothing.
const MAX_UNREACHED: usize = 3;

/// Messages of programs that found no address for a name, or no way to one.
const UNREACHABLE_MESSAGES: [&str; 11] = [
    "Network is unreachable",
    "network is unreachable",
    "ENETUNREACH",
    "ENOTFOUND",
    "EAI_AGAIN",
    "Could not resolve host",
    "name resolution",
    "Name or service not known",
    "UnknownHostException",
    "no such host",
    "NXDOMAIN",
];

/// Messages of programs that found nothing at a port, which may be one of their own.
const REFUSED_MESSAGES: [&str; 3] = ["Connection refused", "connection refused", "ECONNREFUSED"];

/// Messages of programs that found a port taken.
const TAKEN_MESSAGES: [&str; 3] = [
    "Address already in use",
    "address already in use",
    "EADDRINUSE",
];

impl CommandConnections {
    /// Gives a command this way out. Variables that the caller set are kept.
    fn lead(&mut self, spec: &mut CommandSpec, way: CommandOutlet, asking: Arc<Connections>) {
        spec.network = Network::Outlet(Arc::clone(&way.outlet));
        for (name, value) in proxy_variables() {
            spec.env.entry(name.into()).or_insert(value.into());
        }
        self.way = Some(Arc::new(way));
        self.connections = Some(asking);
    }

    /// Offers the command the user's agent, about whose signatures it can ask.
    pub(super) fn offer_agent(&mut self, agent: Option<&SshAgent>, spec: &mut CommandSpec) {
        if let (Some(agent), Some(questions)) = (agent, self.agent_questions()) {
            self.agent = agent::offer(agent, spec, questions);
        }
    }

    /// Offers the command the user's gpg-agent with the keys of these names. Returns why it cannot sign with them, as a sentence.
    pub(super) async fn offer_gpg(
        &mut self,
        agent: Option<&GpgAgent>,
        names: &[String],
        spec: &mut CommandSpec,
    ) -> Option<String> {
        let (agent, questions) = (agent?, self.agent_questions()?);
        if names.is_empty() {
            return None;
        }
        match agent::offer_gpg(agent, names, spec, questions).await {
            Ok(socket) => {
                self.gpg = socket;
                None
            }
            Err(why) => Some(format!("Commands cannot sign with your gpg key: {why}.")),
        }
    }

    /// Offers the command these sockets of the host's services, about which it can ask.
    pub(super) fn offer_sockets(&mut self, sockets: &HostSockets, spec: &mut CommandSpec) {
        let (Some(way), Some(connections)) = (&self.way, &self.connections) else {
            return;
        };
        let questions = SocketQuestions {
            connections: Arc::clone(connections),
            refusals: Arc::clone(&way.refusals),
        };
        self.sockets = sockets::offer(sockets, spec, questions);
    }

    fn agent_questions(&self) -> Option<AgentQuestions> {
        let (way, connections) = (self.way.as_ref()?, self.connections.as_ref()?);
        Some(AgentQuestions {
            connections: Arc::clone(connections),
            refusals: Arc::clone(&way.refusals),
        })
    }

    /// Describes the confinement of the command, including its network if it has one.
    pub(crate) fn strength(&self, running: &RunningCommand) -> String {
        let judged = self.connections.as_ref();
        match self.mode {
            "none" => running.strength().word().to_owned(),
            // The command connected to nothing.
            "ask" if judged.is_none_or(|judged| judged.reached_places().is_empty()) => {
                running.strength().word().to_owned()
            }
            mode => format!("{}, network {mode}", running.strength()),
        }
    }

    /// Returns the setting that would allow the first refused connection, for the operator.
    pub(crate) fn allowing_setting(&self, data: &CommandData) -> Option<String> {
        let way = self.way.as_ref();
        let refused = way.and_then(|way| way.refusals.allowing_setting());
        let ask = || {
            let none = self.mode == "none" && has_message(data, &UNREACHABLE_MESSAGES);
            none.then(|| "`sandbox.network = \"ask\"` asks when a command connects".to_owned())
        };
        let port = || {
            let name = self.unreached(data).into_iter().next()?;
            let ask = self.mode == "ask";
            ask.then(|| {
                format!("`Network({name}:PORT)` in `policy.allow` opens another port of it")
            })
        };
        refused.or_else(ask).or_else(port)
    }

    /// Returns advice for a server that found a port taken which haft itself takes for connections.
    fn taken_port(&self, data: &CommandData) -> Option<String> {
        let way = self.way.as_ref();
        let way = way.filter(|_| has_message(data, &TAKEN_MESSAGES))?;
        let is_number = |text: &str, port: u16| {
            let mut numbers = text.split(|c: char| !c.is_ascii_digit());
            numbers.any(|number| number == port.to_string())
        };
        let is_named =
            |port: &u16| is_number(&data.stdout, *port) || is_number(&data.stderr, *port);
        let port = way.ports.iter().find(|port| is_named(port))?;
        Some(format!(
            "in the network of commands, haft takes connections to hosts elsewhere at port {port}, because settings or a rule name that port: \
             a server of a command listens at another one"
        ))
    }

    /// Returns advice for a command that failed because it could not reach the network.
    pub(crate) fn hint(&self, data: &CommandData) -> Option<String> {
        if let Some(taken) = self.taken_port(data) {
            return Some(taken);
        }
        let names = self.unreached(data);
        if names.is_empty() && !has_message(data, &UNREACHABLE_MESSAGES) {
            return None;
        }
        let way = match (self.mode, &self.way) {
            ("none", _) => return Some("commands have no network here".to_owned()),
            ("full", _) => return None,
            (_, None) => return Some("a command that only reads has no network".to_owned()),
            (_, Some(way)) => way,
        };
        let ports: Vec<String> = way.ports.iter().map(ToString::to_string).collect();
        let names = if names.is_empty() {
            String::new()
        } else {
            format!(
                "; looked up, but not connected to there: {}",
                names.join(", ")
            )
        };
        Some(format!(
            "connections leave by TCP at ports {}, and at others by the HTTP proxy http://{OUTLET_ADDRESS}, which HTTP_PROXY and \
             HTTPS_PROXY name{names}",
            ports.join(", ")
        ))
    }

    /// Returns the first names that a command asked for and did not connect to, if it says that it found nothing there.
    fn unreached(&self, data: &CommandData) -> Vec<String> {
        let says = has_message(data, &REFUSED_MESSAGES) || has_message(data, &UNREACHABLE_MESSAGES);
        let way = self.way.as_ref().filter(|_| says);
        way.map(|way| way.names.unreached(MAX_UNREACHED))
            .unwrap_or_default()
    }

    /// Returns a value during whose lifetime the command asks about its connections.
    pub(crate) fn begin_asking(&self) -> Option<AskingGuard> {
        self.connections.as_ref().map(Connections::begin_asking)
    }

    /// Returns what decides about the connections if any may be asked about.
    pub(crate) fn connections(&self) -> Option<&Arc<Connections>> {
        self.connections.as_ref()
    }

    /// Returns the places connected to so far, if each connection is judged.
    pub(crate) fn reached_places(&self) -> Vec<String> {
        let judged = self.connections.as_ref();
        judged
            .map(|judged| judged.reached_places())
            .unwrap_or_default()
    }

    /// Returns what was refused so far.
    pub(crate) fn refused(&self) -> Vec<String> {
        let way = self.way.as_ref();
        way.map(|way| way.refusals.lines()).unwrap_or_default()
    }
}

fn has_message(data: &CommandData, messages: &[&str]) -> bool {
    let has = |text: &str| messages.iter().any(|words| text.contains(words));
    has(&data.stderr) || has(&data.stdout)
}
