//! `mcp.servers.NAME.*`: checks the settings of external servers and builds the servers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use haft::audit::redact::Redactor;
use haft::policy::join_words;
use haft_builtins::command::CommandSurroundings;
use haft_builtins::web::http::Http;
use haft_mcp::client::ClientLimits;
use haft_mcp::client::http::Endpoint;
use haft_mcp::client::oauth::OAuthTerms;
use haft_mcp::client::pipe::LONGEST;
use haft_mcp::upstream::{
    Connector, MAX_SERVER_NAME, Root, ServerRequestPolicy, UpstreamTerms, is_server_name,
};
use haft_sandbox::{Backend, CommandSpec, Mounts, Network};
use http::{HeaderMap, HeaderName, HeaderValue};
use toml::Value;

use crate::config::{SettingEntry, Settings, value};
use crate::problem::Problem;
use crate::servers::endpoint::ServerAddress;
use crate::servers::process::ServerCommand;
use crate::servers::sign_in::{GrantFile, SignIn, SignInHttp};
use crate::servers::{ConfiguredServer, ServerDefinition, ServerTransport, Servers};
use crate::site::Site;
use crate::upstream::upstream;
use crate::wiring::parts::{self, CommandConfinement};
use crate::wiring::policy::PolicyInputs;
use crate::wiring::surroundings::PathCheck;

/// What servers are built from.
#[derive(Clone, Copy)]
pub(crate) struct ServerInputs<'a> {
    pub(crate) at: &'a Site,
    pub(crate) settings: &'a Settings,
    pub(crate) ground: &'a PolicyInputs,
    pub(crate) confined: &'a CommandConfinement,
    /// Redacts the tokens that signing in returned.
    pub(crate) redactor: &'a Redactor,
}

impl ServerInputs<'_> {
    /// Returns all servers from the settings, with their pins; unchanged servers of `before` are reused.
    ///
    /// # Errors
    /// The settings of a server are invalid.
    pub(crate) fn servers(self, before: Option<&Servers>) -> Result<Servers, Problem> {
        let made: Result<Vec<ServerDefinition>, Problem> = names(self.settings)
            .into_iter()
            .map(|name| ServerBuilder { basis: self, name }.to_server())
            .collect();
        let known = |made: ServerDefinition| {
            let before = before.and_then(|before| before.get(&made.name));
            ConfiguredServer::new(&self.at.home, made, before)
        };
        Ok(Servers::new(made?.into_iter().map(known)))
    }
}

fn names(settings: &Settings) -> BTreeSet<&str> {
    let named = settings.iter().filter_map(|(path, _)| match path {
        [mcp, servers, name, ..] if mcp == "mcp" && servers == "servers" => Some(name.as_str()),
        _ => None,
    });
    named.collect()
}

/// Builds the server of this name from the settings.
struct ServerBuilder<'a> {
    basis: ServerInputs<'a>,
    name: &'a str,
}

impl ServerBuilder<'_> {
    fn to_server(&self) -> Result<ServerDefinition, Problem> {
        if !is_server_name(self.name) {
            let name = self.name;
            return Err(self
                .wrong(&format!("`{name}` cannot be a server's name"))
                .advise(format!(
                    "use 1 to {MAX_SERVER_NAME} of letters, digits, `_` and `-`"
                )));
        }
        let mut address = None;
        let (transport, place, open) = match (self.text("command"), self.text("url")) {
            (Some(command), None) => (
                ServerTransport::Stdio,
                self.command_line(),
                Arc::new(self.command(command)?) as Arc<dyn Connector>,
            ),
            (None, Some(url)) => {
                let at = Arc::new(self.address(url)?);
                address = Some(Arc::clone(&at));
                (
                    ServerTransport::Http,
                    self.written("url"),
                    at as Arc<dyn Connector>,
                )
            }
            _ => {
                return Err(self
                    .wrong("has neither `command` nor `url`, or both")
                    .advise("set exactly one of them"));
            }
        };
        Ok(ServerDefinition {
            name: self.name.to_owned(),
            transport,
            place,
            enabled: self.flag("enabled").unwrap_or(true),
            terms: self.terms()?,
            open,
            said: self.own_settings(),
            address,
        })
    }

    /// Returns all of its settings, with values as used.
    fn own_settings(&self) -> BTreeMap<Vec<String>, Value> {
        let own = self.basis.settings.iter().filter(|(path, _)| {
            matches!(path, [mcp, servers, name, ..] if mcp == "mcp" && servers == "servers" && name == self.name)
        });
        own.map(|(path, entry)| (path.to_vec(), entry.value.clone()))
            .collect()
    }

    fn entry(&self, key: &str) -> Option<&SettingEntry> {
        let mut path = vec!["mcp", "servers", self.name];
        path.extend(key.split('.'));
        self.basis.settings.entry(&path)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.entry(key)?.value.as_str()
    }

    fn flag(&self, key: &str) -> Option<bool> {
        self.entry(key)?.value.as_bool()
    }

    fn seconds(&self, key: &str, otherwise: Duration) -> Duration {
        let seconds = self
            .entry(key)
            .and_then(|entry| value::seconds(&entry.value));
        seconds.map_or(otherwise, Duration::from_secs_f64)
    }

    /// Returns a text as written: references to secrets stay references.
    fn written(&self, key: &str) -> String {
        let entry = self.entry(key);
        let text = entry.and_then(|entry| entry.written.as_str());
        text.unwrap_or_default().to_owned()
    }

    fn items(&self, key: &str) -> Vec<String> {
        let items = self.entry(key).and_then(|entry| entry.value.as_array());
        let texts = items.into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    }

    fn pairs(&self, key: &str) -> Vec<(String, String)> {
        let table = self.entry(key).and_then(|entry| entry.value.as_table());
        let pair =
            |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
        table.into_iter().flatten().filter_map(pair).collect()
    }

    fn wrong(&self, why: &str) -> Problem {
        let problem = Problem::settings(format!("`mcp.servers.{}` {why}", self.name));
        let first = self.basis.settings.iter().find_map(|(path, entry)| {
            let ours = path.get(2).is_some_and(|name| name == self.name);
            (ours && path[0] == "mcp").then_some(entry)
        });
        let place = first.and_then(|entry| entry.sources.first()?.place.clone());
        match place {
            Some(place) => problem.at(place),
            None => problem,
        }
    }

    fn terms(&self) -> Result<UpstreamTerms, Problem> {
        let usual = ClientLimits::default();
        let at_once = self
            .entry("max_calls")
            .and_then(|entry| entry.value.as_integer());
        let at_once = at_once.and_then(|count| usize::try_from(count).ok());
        let terms = UpstreamTerms::default();
        Ok(UpstreamTerms {
            limits: ClientLimits {
                connect: self.seconds("connect_timeout_s", usual.connect),
                list: self.seconds("list_timeout_s", usual.list),
                call: self.seconds("call_timeout_s", usual.call),
                ..usual
            },
            trusted: self.flag("trusted").unwrap_or(false),
            strict: self.flag("strict").unwrap_or(false),
            is_confined: self.text("command").is_some() && self.is_jailed() && !self.has_network(),
            concurrency: at_once.unwrap_or(terms.concurrency),
            prefix: self.prefix()?,
            passing: ServerRequestPolicy {
                elicitation: self.text("elicitation") != Some("deny"),
                sampling: self.text("sampling") == Some("pass"),
                client_roots: self.text("roots") == Some("pass"),
                roots: self.roots()?,
            },
            ..terms
        })
    }

    /// Returns the prefix of its tools' names, if the settings have one.
    fn prefix(&self) -> Result<Option<String>, Problem> {
        let Some(prefix) = self.text("prefix") else {
            return Ok(None);
        };
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
        if prefix.len() > MAX_SERVER_NAME || !prefix.bytes().all(plain) {
            let why = format!("`prefix`: `{prefix}` cannot be the prefix of a tool's name");
            return Err(self.wrong(&why).advise(format!(
                "use at most {MAX_SERVER_NAME} of letters, digits, `_`, `.` and `-`, or `\"\"`"
            )));
        }
        Ok(Some(prefix.to_owned()))
    }

    /// Returns the folders that it is told about: the workspace, or what its jail shows.
    fn roots(&self) -> Result<Vec<Root>, Problem> {
        let folders = match self.text("roots") {
            Some("none" | "pass") => Vec::new(),
            Some("workspace") => vec![self.basis.ground.workspace.root().to_owned()],
            _ if self.text("command").is_none() || !self.is_jailed() => Vec::new(),
            _ => {
                let mut shown = self.folders("sandbox.write", true)?;
                shown.extend(self.folders("sandbox.read", false)?);
                shown
            }
        };
        let folders = folders.iter().filter(|folder| folder.is_dir());
        Ok(folders.map(|folder| Root::folder(folder)).collect())
    }

    /// Returns the command line for display, and to distinguish servers.
    fn command_line(&self) -> String {
        let mut words = vec![self.written("command")];
        let arguments = self
            .entry("args")
            .and_then(|entry| entry.written.as_array());
        let arguments = arguments.into_iter().flatten().filter_map(Value::as_str);
        words.extend(arguments.map(str::to_owned));
        let mut line = join_words(&words);
        // Its variables and its folder can make it a different program.
        for (name, _) in self.pairs("env") {
            line.extend([" ", &name, "=…"]);
        }
        if let Some(folder) = self.entry("cwd").and_then(|entry| entry.written.as_str()) {
            line.extend([" in ", &*join_words(&[folder.to_owned()])]);
        }
        line
    }

    fn is_jailed(&self) -> bool {
        self.text("sandbox.backend") != Some("passthrough")
    }

    /// Returns whether its jail has the machine's network.
    fn has_network(&self) -> bool {
        self.text("sandbox.network") == Some("host")
    }

    fn command(&self, program: &str) -> Result<ServerCommand, Problem> {
        let ServerInputs {
            at,
            settings,
            confined,
            ..
        } = self.basis;
        let is_jailed = self.is_jailed();
        let backend = if is_jailed {
            Backend::Jail
        } else {
            Backend::Passthrough
        };
        let mut spec = CommandSpec::argv([program], self.folder(is_jailed)?);
        for (name, value) in self.pairs("env") {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return Err(self.wrong(&format!("`env`: `{name}` cannot be a variable")));
            }
            spec = spec.with_env(name, value);
        }
        if is_jailed {
            spec.mounts = Mounts {
                read_only: self.folders("sandbox.read", false)?,
                read_write: self.folders("sandbox.write", true)?,
                ..Mounts::default()
            };
            if self.has_network() {
                spec.network = Network::Host;
            }
        }
        let path = at.environment.get("PATH").unwrap_or_default();
        let mut words = vec![program.to_owned()];
        words.extend(self.items("args"));
        Ok(ServerCommand {
            sandbox: parts::sandbox_of_server(settings, backend, confined.places.clone())?,
            is_jailed,
            places: confined.places.clone(),
            words,
            path: std::env::split_paths(path)
                .filter(|folder| folder.is_absolute())
                .collect(),
            spec,
            // What the settings add for commands, including secrets, is not for servers.
            surroundings: CommandSurroundings {
                toolchains: Arc::clone(&confined.surroundings.toolchains),
                ..CommandSurroundings::default()
            },
            redactor: self.basis.redactor.clone(),
        })
    }

    /// Returns the folder that it starts in.
    fn folder(&self, is_jailed: bool) -> Result<PathBuf, Problem> {
        let home = self.basis.at.environment.folder("HOME");
        let folder = match self.text("cwd") {
            Some(cwd) => match (cwd.strip_prefix("~/"), home) {
                (Some(rest), Some(home)) => home.join(rest),
                _ => PathBuf::from(cwd),
            },
            None if is_jailed => PathBuf::from("/tmp"),
            None => self.basis.ground.workspace.root().to_owned(),
        };
        if !folder.is_absolute() {
            let why = format!("`cwd`: `{}` is not an absolute path", folder.display());
            return Err(self.wrong(&why));
        }
        Ok(folder)
    }

    fn folders(&self, key: &str, changed: bool) -> Result<Vec<PathBuf>, Problem> {
        let key = format!("mcp.servers.{}.{key}", self.name);
        let check = PathCheck {
            at: self.basis.at,
            ground: self.basis.ground,
            places: &self.basis.confined.places,
            key: &key,
            changed,
        };
        check.with_workspace(self.basis.settings)
    }

    fn address(&self, url: &str) -> Result<ServerAddress, Problem> {
        // The value may contain a key, so it is not shown.
        let wrong = |why: &str| {
            self.wrong(&format!("`url`: {why}")).advise(
                "write https://HOST/PATH, or http://HOST:PORT/PATH for a server of this machine",
            )
        };
        let endpoint = Endpoint::new(url, self.headers()?, LONGEST);
        let endpoint = endpoint.map_err(|why| wrong(&why.to_string()))?;
        let proxy = upstream(self.basis.settings)?;
        let http = Http::trusted().with_upstream(proxy.clone());
        let public = Http::guarded().with_upstream(proxy);
        let reach = SignInHttp::new(http.clone(), public, endpoint.host());
        // haft does not sign in to a server that has its own key.
        let has_key = self
            .pairs("headers")
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        let terms = self.oauth()?;
        let sign_in = (!has_key).then(|| {
            let Site {
                home, environment, ..
            } = self.basis.at;
            let principal = parts::principal(environment);
            let file = GrantFile::new(home, endpoint.url(), &principal, self.basis.redactor);
            SignIn::new(endpoint.url(), terms, reach, file)
        });
        ServerAddress::new(http, endpoint, sign_in).map_err(|why| wrong(&why))
    }

    /// Reads the settings for signing in.
    fn oauth(&self) -> Result<OAuthTerms, Problem> {
        let text = |key: &str| self.text(key).map(str::to_owned);
        let terms = OAuthTerms {
            client_id: text("oauth.client_id"),
            client_secret: text("oauth.client_secret"),
            issuer: text("oauth.issuer"),
            scopes: self.items("oauth.scopes"),
        };
        // The server names its authorization server: it could name any, to which haft would then send the secret.
        if terms.client_secret.is_some() && terms.issuer.is_none() {
            let why = "has an `oauth.client_secret` and no `oauth.issuer` that it is for";
            return Err(self.wrong(why).advise(
                "name the authorization server as it names itself: oauth.issuer = \"https://login.example\"",
            ));
        }
        Ok(terms)
    }

    fn headers(&self) -> Result<HeaderMap, Problem> {
        let mut headers = HeaderMap::new();
        for (name, value) in self.pairs("headers") {
            let wrong = || self.wrong(&format!("`headers`: `{name}` is not valid in a header"));
            let key = HeaderName::try_from(&name).map_err(|_| wrong())?;
            let mut value = HeaderValue::try_from(value).map_err(|_| wrong())?;
            value.set_sensitive(true);
            headers.insert(key, value);
        }
        Ok(headers)
    }
}
