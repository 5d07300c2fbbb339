//! The host's logins for commands, from settings (`network.credentials.NAME`): which host, which header, which program prints the value.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use haft_builtins::proxy::logins::{Credential, LoginForm, Logins, SourceProgram};
use haft_sandbox::Places;

use crate::config::Settings;
use crate::problem::Problem;
use crate::site::Site;

/// The path of the table.
const TABLE: [&str; 2] = ["network", "credentials"];
/// The header of a credential that names none.
const BEARER: &str = "Authorization: Bearer {}";
/// The host and the header of GitHub's own program, its command, and the name by which it knows that host.
const GH: (&str, &str) = ("api.github.com", "Authorization: token {}");
const GH_TOKEN: [&str; 4] = ["gh", "auth", "token", "--hostname"];
const GH_NAME: &str = "github.com";

/// Returns the logins.
pub(crate) fn logins(at: &Site, settings: &Settings, places: &Places) -> Result<Logins, Problem> {
    let names = settings.iter().filter_map(|(path, _)| match path {
        [network, credentials, name, ..] if [&**network, credentials] == TABLE => {
            Some(name.as_str())
        }
        _ => None,
    });
    let names: BTreeSet<&str> = names.collect();
    let credential = |name| {
        let entry = CredentialEntry { settings, name };
        entry.credential(at, places)
    };
    let all: Vec<Credential> = names
        .into_iter()
        .map(credential)
        .collect::<Result<_, _>>()?;
    for (nth, one) in all.iter().enumerate() {
        let mut before = all[..nth].iter();
        if let Some(other) = before.find(|other| (&other.host, other.port) == (&one.host, one.port))
        {
            let what = format!(
                "`network.credentials.{}` and `.{}` are both for {}",
                other.name, one.name, one.host
            );
            let problem = Problem::settings(what);
            let problem = problem.advise("remove one of them: a request gets one login");
            return Err(settings.at_table(problem, &[TABLE[0], TABLE[1], &one.name]));
        }
    }
    Ok(Logins::new(all))
}

/// Returns the user's variables for the programs, without what tells git of a repository or of settings besides the user's own.
fn own_variables(at: &Site) -> Vec<(String, String)> {
    let own = at.environment.iter();
    let own = own.filter(|(name, _)| !name.starts_with("GIT_"));
    own.map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// The settings of one credential.
struct CredentialEntry<'a> {
    settings: &'a Settings,
    name: &'a str,
}

impl CredentialEntry<'_> {
    fn credential(&self, at: &Site, places: &Places) -> Result<Credential, Problem> {
        let source = self.text("source").unwrap_or("command");
        let (host, header) = match source {
            "gh" => (
                self.text("host").or(Some(GH.0)),
                self.text("header").unwrap_or(GH.1),
            ),
            _ => (self.text("host"), self.text("header").unwrap_or(BEARER)),
        };
        let host = host.ok_or_else(|| self.wrong("has no `host`"))?;
        let (host, port) =
            Credential::host(host).map_err(|error| self.wrong(&error.to_string()))?;
        let words = self.words();
        let argv: Vec<String> = match source {
            "git" => ["git", "credential", "fill"].map(str::to_owned).into(),
            "gh" => {
                let name = if host == GH.0 { GH_NAME } else { &host };
                let words = GH_TOKEN.into_iter().chain([name]);
                words.map(str::to_owned).collect()
            }
            _ => words.clone(),
        };
        if source != "command" && !words.is_empty() {
            return Err(self.wrong(&format!(
                "has a `command`, but its `source` is \"{source}\""
            )));
        }
        let Some(program) = argv.first() else {
            return Err(self.wrong("has no `command` that prints it"));
        };
        let shown = match source {
            "command" => format!("{program} …"),
            _ => argv.join(" "),
        };
        let form = match source {
            "git" => LoginForm::Git,
            _ => LoginForm::header(header).map_err(|error| self.wrong(&error.to_string()))?,
        };
        let path = at.environment.get("PATH").unwrap_or_default();
        let path = match places.program(program, OsStr::new(path)) {
            Some(found) => found.map_err(|refused| format!("is not started: {refused}")),
            None => Err("is not installed".to_owned()),
        };
        Ok(Credential {
            name: self.name.to_owned(),
            host,
            port,
            form,
            program: SourceProgram {
                path,
                shown,
                argv,
                variables: own_variables(at),
                places: places.clone(),
            },
        })
    }

    fn text(&self, key: &str) -> Option<&str> {
        let entry = self.settings.entry(&[TABLE[0], TABLE[1], self.name, key])?;
        entry.value.as_str()
    }

    fn words(&self) -> Vec<String> {
        let entry = self
            .settings
            .entry(&[TABLE[0], TABLE[1], self.name, "command"]);
        let list = entry.and_then(|entry| entry.value.as_array());
        let words = list.into_iter().flatten().filter_map(toml::Value::as_str);
        words.map(str::to_owned).collect()
    }

    fn wrong(&self, what: &str) -> Problem {
        let problem = Problem::settings(format!("`network.credentials.{}` {what}", self.name)).advise(
            "write network.credentials.NAME = { host = \"api.example.com\", command = [\"PROGRAM\", \"ARGUMENT\"] }",
        );
        self.settings
            .at_table(problem, &[TABLE[0], TABLE[1], self.name])
    }
}
