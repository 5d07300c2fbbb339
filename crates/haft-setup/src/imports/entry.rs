//! Converts a server in a client's settings to a server of haft's: every member is imported or reported.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use crate::imports::env_file;
use crate::imports::texts::ConversionContext;
use crate::imports::{ImportCandidate, ImportOptions, ImportSource};
use crate::literal::{is_secret, is_shaped};
use crate::programs;
use crate::server::{NewServer, ServerTarget};

/// Members that do not affect how a server is reached or used.
const IGNORED_MEMBERS: [&str; 13] = [
    "$schema",
    "bundled",
    "description",
    "display_name",
    "gallery",
    "icon",
    "icons",
    "name",
    "note",
    "source",
    "title",
    "type",
    "version",
];

/// Types of servers that are not processes or addresses that another program can use.
const UNSUPPORTED_TYPES: [&str; 7] = [
    "builtin",
    "frontend",
    "inline_python",
    "platform",
    "sdk",
    "websocket",
    "ws",
];

/// Members with which a client lets tools run without approval, or lists only some of them.
const APPROVAL_MEMBERS: [&str; 13] = [
    "available_tools",
    "alwaysAllow",
    "autoApprove",
    "default_tools_approval_mode",
    "disabledTools",
    "disabled_tools",
    "enabled_tools",
    "excludeTools",
    "includeTools",
    "tools",
    "toolConfiguration",
    "trust",
    "autoApproveAll",
];

/// The member under which the variables of a file are read.
const ENV_FILE_MEMBER: &str = "\0envFile";

/// The prefix of a token in a header.
const BEARER: &str = "Bearer ";

/// What replaces a secret: a variable, and the text before it.
#[derive(Clone, Copy)]
struct SecretReplacement<'a> {
    before: &'a str,
    variable: &'a str,
}

/// Reads one entry.
pub(super) fn candidate(
    source: &ImportSource<'_>,
    name: &str,
    entry: Map<String, Value>,
    context: &ConversionContext<'_>,
    wishes: &ImportOptions,
) -> ImportCandidate {
    let mut reader = EntryReader {
        entry: flatten(entry),
        context,
        wishes,
        notes: Vec::new(),
        refused: None,
    };
    let server = reader.server(name);
    reader.report_unread();
    ImportCandidate {
        original: name.to_owned(),
        client: source.client,
        file: source.file.to_owned(),
        server,
        notes: reader.notes,
        refused: reader.refused,
    }
}

/// Flattens an entry: older settings of goose have a server's own members one level deeper.
fn flatten(mut entry: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Object(inner)) = entry.get("config") {
        let inner = inner.clone();
        entry.remove("config");
        entry.extend(inner);
    }
    entry
}

struct EntryReader<'a> {
    /// What has not been read yet.
    entry: Map<String, Value>,
    context: &'a ConversionContext<'a>,
    wishes: &'a ImportOptions,
    notes: Vec<String>,
    refused: Option<String>,
}

impl EntryReader<'_> {
    fn refuse(&mut self, why: impl Into<String>) {
        self.refused.get_or_insert_with(|| why.into());
    }

    fn take(&mut self, names: &[&str]) -> Option<Value> {
        let found: Vec<Value> = names
            .iter()
            .filter_map(|name| self.entry.remove(*name))
            .collect();
        found.into_iter().find(|value| !value.is_null())
    }

    fn server(&mut self, name: &str) -> Option<NewServer> {
        let kind = self.take(&["type", "transport", "transportType"]);
        let kind = kind.as_ref().and_then(Value::as_str).unwrap_or_default();
        let kind = kind.to_lowercase();
        if UNSUPPORTED_TYPES.contains(&kind.as_str()) {
            self.entry.clear();
            self.refuse(format!(
                "`{kind}` is a part of the client, or a transport that haft does not speak"
            ));
            return None;
        }
        let reach = self.reach(name, &kind)?;
        let is_process = matches!(reach, ServerTarget::Command { .. });
        let mut server = NewServer::new(name, reach);
        server.network = self.wishes.network && is_process;
        let off = self.take(&["disabled"]);
        let on = self.take(&["enabled"]);
        server.enabled = !off.is_some_and(|value| is(&value, "true"))
            && !on.is_some_and(|value| is(&value, "false"));
        self.timeouts(&mut server);
        if let Some(package) = self.context.package.filter(|_| is_process) {
            // Otherwise, the jail shows nothing of it.
            server.read.push(package.to_string_lossy().into_owned());
        }
        self.jail_notes(&server);
        Some(server)
    }

    fn reach(&mut self, name: &str, kind: &str) -> Option<ServerTarget> {
        let quirks = programs::imports(self.context.client);
        let is_old = kind == "sse" || quirks.url_is_sse && self.entry.contains_key("url");
        let url = self.take(&["httpUrl", "url", "serverUrl", "uri"]);
        let command = self.take(&["command", "cmd"]);
        match (command, url) {
            (Some(command), None) => self.command(command),
            (None, Some(url)) => {
                if is_old {
                    self.notes.push(
                        "the client speaks HTTP+SSE (2024-11-05) to it: `haft mcp inspect` shows whether haft reaches it".to_owned(),
                    );
                }
                self.address(name, &url)
            }
            (None, None) => {
                self.refuse("it names neither a command nor an address");
                None
            }
            (Some(_), Some(_)) => {
                self.refuse("it names a command and an address");
                None
            }
        }
    }

    fn command(&mut self, command: Value) -> Option<ServerTarget> {
        let words = self.words(command);
        let Some((program, args)) = words
            .split_first()
            .filter(|(program, _)| !program.is_empty())
        else {
            self.refuse("it names no program");
            return None;
        };
        self.check_words(args);
        let mut env = self.pairs(&["env", "envs", "environment"], None);
        self.named_variables(&mut env);
        for (name, value) in self.read_env_file() {
            env.entry(name).or_insert(value);
        }
        Some(ServerTarget::Command {
            program: self.program(program),
            args: args.to_vec(),
            env,
            cwd: self.cwd(),
        })
    }

    /// Returns the program and its arguments.
    fn words(&mut self, command: Value) -> Vec<String> {
        let mut words = match command {
            Value::String(program) => vec![program],
            Value::Array(words) => texts(&words),
            // Older settings of Zed.
            Value::Object(mut inner) => {
                for key in ["args", "env"] {
                    if let Some(value) = inner.remove(key) {
                        self.entry.entry(key).or_insert(value);
                    }
                }
                let path = inner.remove("path");
                let path = path.and_then(|path| path.as_str().map(str::to_owned));
                path.into_iter().collect()
            }
            _ => Vec::new(),
        };
        if let Some(Value::Array(args)) = self.take(&["args"]) {
            words.extend(texts(&args));
        }
        words.iter().filter_map(|word| self.text(word)).collect()
    }

    /// Returns the folder that it starts in: a relative path refers to the package or the workspace.
    fn cwd(&mut self) -> Option<String> {
        let cwd = self.take(&["cwd"]);
        let cwd = cwd.as_ref().and_then(Value::as_str);
        let cwd = cwd.and_then(|cwd| self.text(cwd))?;
        if cwd.starts_with("~/") {
            return Some(cwd);
        }
        let folder = self.context.package.unwrap_or(self.context.at.workspace);
        Some(folder.join(cwd).to_string_lossy().into_owned())
    }

    /// Returns a program's name or absolute path: a relative path refers to the package or the workspace.
    fn program(&self, program: &str) -> String {
        if !program.contains('/') || program.starts_with(['/', '$']) {
            return program.to_owned();
        }
        if let (Some(rest), Some(home)) = (
            program.strip_prefix("~/"),
            self.context.at.environment.folder("HOME"),
        ) {
            return home.join(rest).to_string_lossy().into_owned();
        }
        let folder = self.context.package.unwrap_or(self.context.at.workspace);
        let plain = program.strip_prefix("./").unwrap_or(program);
        folder.join(plain).to_string_lossy().into_owned()
    }

    fn address(&mut self, name: &str, url: &Value) -> Option<ServerTarget> {
        let url = self.text(url.as_str().unwrap_or_default())?;
        if is_shaped(&url) && !self.wishes.copy_secrets {
            self.refuse("its address holds a secret: put that into a header, or copy it with --copy-secrets");
        }
        let mut headers = self.pairs(&["headers", "http_headers"], Some(name));
        if let Some(Value::Object(named)) = self.take(&["env_http_headers"]) {
            for (header, variable) in named {
                self.header(
                    &mut headers,
                    &header,
                    variable.as_str().unwrap_or_default(),
                    "",
                );
            }
        }
        if let Some(variable) = self.take(&["bearer_token_env_var"]) {
            let variable = variable.as_str().unwrap_or_default();
            self.header(&mut headers, "Authorization", variable, "Bearer ");
        }
        Some(ServerTarget::Address { url, headers })
    }

    fn header(
        &mut self,
        headers: &mut BTreeMap<String, String>,
        header: &str,
        variable: &str,
        before: &str,
    ) {
        match self.context.variable(variable) {
            Ok(reference) => {
                headers.insert(header.to_owned(), format!("{before}{reference}"));
            }
            Err(why) => self.refuse(why),
        }
    }

    /// Reads variables that the client takes from its own, or from the system's keyring.
    fn named_variables(&mut self, env: &mut BTreeMap<String, String>) {
        for (key, is_needed) in [("env_keys", true), ("env_vars", false)] {
            let Some(Value::Array(names)) = self.take(&[key]) else {
                continue;
            };
            for name in names {
                let name = name
                    .as_str()
                    .or_else(|| name.get("name")?.as_str())
                    .unwrap_or_default();
                match self.context.variable(name) {
                    Ok(reference) => {
                        env.entry(name.to_owned()).or_insert(reference);
                    }
                    Err(why) if is_needed => self.refuse(why),
                    Err(_) => self.notes.push(format!(
                        "not carried over: the variable {name}, which is not set here"
                    )),
                }
            }
        }
    }

    /// Reads variables from the file that the client reads, and treats them as if they were in the settings.
    fn read_env_file(&mut self) -> BTreeMap<String, String> {
        let file = self.take(&["envFile", "env_file"]);
        let file = file.as_ref().and_then(Value::as_str);
        let Some(file) = file.and_then(|file| self.text(file)) else {
            return BTreeMap::new();
        };
        let folder = self.context.package.unwrap_or(self.context.at.workspace);
        let file = folder.join(file);
        match env_file::read(&file) {
            Ok(variables) => {
                self.notes.push(format!(
                    "the variables of {} are copied as they are now: later changes there have no effect",
                    file.display()
                ));
                let variables = variables.into_iter();
                let table = variables.map(|(name, value)| (name, Value::String(value)));
                self.entry
                    .insert(ENV_FILE_MEMBER.to_owned(), Value::Object(table.collect()));
                self.pairs(&[ENV_FILE_MEMBER], None)
            }
            Err(why) => {
                self.refuse(why);
                BTreeMap::new()
            }
        }
    }

    /// Reads a table of texts. A secret in plain text becomes a reference to a variable, is copied if the user wants that, or else the
    /// server is not imported. A header's variable is named after the server, since other servers have headers of the same name.
    fn pairs(&mut self, names: &[&str], server: Option<&str>) -> BTreeMap<String, String> {
        let mut pairs = BTreeMap::new();
        let Some(Value::Object(table)) = self.take(names) else {
            return pairs;
        };
        for (name, value) in table {
            let value = match value {
                Value::String(text) => text,
                Value::Null => continue,
                other => other.to_string(),
            };
            let Some(mut text) = self.text(&value) else {
                continue;
            };
            if is_secret(&name, &text) {
                let is_bearer = server.is_some() && text.starts_with(BEARER);
                let before = if is_bearer { BEARER } else { "" };
                let variable = match server {
                    Some(server) if is_bearer => format!("{server}_TOKEN"),
                    Some(server) => format!("{server}_{name}"),
                    None => name.clone(),
                };
                text = self.secret(
                    &name,
                    text,
                    SecretReplacement {
                        before,
                        variable: &variable_name(&variable),
                    },
                );
            }
            pairs.insert(name, text);
        }
        pairs
    }

    fn secret(&mut self, name: &str, text: String, instead: SecretReplacement<'_>) -> String {
        if self.wishes.copy_secrets {
            self.notes.push(format!(
                "the secret of `{name}` is copied into haft's settings in plain text"
            ));
            return text;
        }
        let SecretReplacement { before, variable } = instead;
        let Ok(reference) = self.context.variable(variable) else {
            self.refuse(format!(
                "`{name}` holds a secret in plain text: put it into the variable {variable} and import again (haft writes {before}${{env:{variable}}}), or copy it with --copy-secrets"
            ));
            return String::new();
        };
        self.notes.push(format!(
            "the secret of `{name}` is not copied: haft uses the variable {variable}"
        ));
        format!("{before}{reference}")
    }

    fn check_words(&mut self, args: &[String]) {
        let pairs = args.iter().zip(args.iter().skip(1));
        let mut named = pairs.filter(|(name, _)| name.starts_with('-'));
        let holds = args.iter().any(|arg| is_shaped(arg))
            || named.any(|(name, value)| !value.starts_with('-') && is_secret(name, value));
        if holds && !self.wishes.copy_secrets {
            self.refuse(
                "its arguments hold a secret in plain text: put it into a variable there (${env:NAME}), or copy it with --copy-secrets",
            );
        }
    }

    fn text(&mut self, text: &str) -> Option<String> {
        match self.context.convert(text) {
            Ok(carried) => {
                for note in carried.notes {
                    if !self.notes.contains(&note) {
                        self.notes.push(note);
                    }
                }
                Some(carried.text)
            }
            Err(why) => {
                self.refuse(why);
                None
            }
        }
    }

    fn timeouts(&mut self, server: &mut NewServer) {
        let quirks = programs::imports(self.context.client);
        let unit = if quirks.in_milliseconds { 1000.0 } else { 1.0 };
        let seconds = |value: Option<Value>, unit: f64| {
            let number =
                value.and_then(|value| value.as_f64().or_else(|| value.as_str()?.parse().ok()));
            number
                .map(|number| number / unit)
                .filter(|seconds| *seconds > 0.0)
        };
        let call = self.take(&["tool_timeout_sec", "tool_timeout"]);
        let start = self.take(&["startup_timeout_sec", "startup_timeout"]);
        let start_ms = self.take(&["startup_timeout_ms"]);
        let any = self.take(&["timeout"]);
        server.call_timeout = seconds(call, 1.0).or(seconds(any, unit));
        server.connect_timeout = seconds(start, 1.0).or(seconds(start_ms, 1000.0));
    }

    /// Notes what a server that ran without a jail may miss in one.
    fn jail_notes(&mut self, server: &NewServer) {
        let ServerTarget::Command { args, .. } = &server.reach else {
            return;
        };
        let is_there = |arg: &&String| {
            Path::new(arg.as_str()).is_absolute() && Path::new(arg.as_str()).exists()
        };
        for arg in args.iter().filter(is_there) {
            if !server
                .read
                .iter()
                .any(|folder| Path::new(arg).starts_with(folder))
            {
                self.notes.push(format!(
                    "the jail does not show it {arg}: sandbox.read or sandbox.write name what it may see"
                ));
            }
        }
    }

    /// Reports the members that were not read.
    fn report_unread(&mut self) {
        let names: Vec<String> = self
            .entry
            .iter()
            .filter(|(name, value)| {
                !IGNORED_MEMBERS.contains(&name.as_str()) && !is_empty_value(value)
            })
            .map(|(name, _)| name.clone())
            .collect();
        let (of_tools, others): (Vec<String>, Vec<String>) = names
            .into_iter()
            .partition(|name| APPROVAL_MEMBERS.contains(&name.as_str()));
        for name in of_tools {
            let value = self
                .entry
                .get(&name)
                .map(Value::to_string)
                .unwrap_or_default();
            let value = haft::text::clip(&value, 200);
            self.notes.push(format!(
                "not carried over: {name} = {value}; policy.allow and tools.disable say which tools run, as `server.tool`"
            ));
        }
        if !others.is_empty() {
            self.notes
                .push(format!("not carried over: {}", others.join(", ")));
        }
    }
}

/// Converts a name to that of a variable.
fn variable_name(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    name.chars().map(plain).collect()
}

fn texts(values: &[Value]) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    values.iter().map(text).collect()
}

/// Returns whether a member has no content.
fn is_empty_value(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// Returns whether a flag is this word; YAML's flags are texts here.
fn is(value: &Value, word: &str) -> bool {
    value.as_str() == Some(word) || value.as_bool().is_some_and(|flag| flag.to_string() == word)
}
