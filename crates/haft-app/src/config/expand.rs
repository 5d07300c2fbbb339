//! `${env:X}` and `${file:PATH}`: secrets put in from outside the settings, and remembered so that records can hide them.

use std::path::{Path, PathBuf};

use toml::Value;

use crate::config::document::Given;
use crate::config::keys::Kind;
use crate::environment::Environment;
use crate::plain_file;
use crate::problem::Problem;

/// A secret is a key or a token; what is larger is a mistake.
const MAX_SECRET: u64 = 64 * 1024;

/// What expansion learnt: values to hide, files to guard.
#[derive(Debug, Default, Clone)]
pub struct Secrets {
    /// The values put in.
    pub values: Vec<String>,
    /// The files they came from.
    pub files: Vec<PathBuf>,
}

/// Where references lead.
#[derive(Debug, Clone, Copy)]
pub struct Expander<'a> {
    /// The process's environment.
    pub environment: &'a Environment,
    /// What relative paths are relative to: the settings file's folder.
    pub base: &'a Path,
}

impl Expander<'_> {
    /// The value with its references replaced.
    ///
    /// # Errors
    /// A [`Problem`] names the variable or file that cannot be read.
    pub fn expand(&self, given: &Given, secrets: &mut Secrets) -> Result<Value, Problem> {
        let mut used = Secrets::default();
        let expanded = self.value(&given.value, &mut used).and_then(|value| {
            learn_logins(given, &value, &mut used);
            // Rules are shown whole: in denials, explanations and records.
            if given.key.kind == Kind::Rules && !used.values.is_empty() {
                return Err("a rule takes no secret: rules are shown as they are".to_owned());
            }
            Ok(value)
        });
        secrets.values.extend(used.values);
        secrets.files.extend(used.files);
        expanded.map_err(|what| {
            Problem::settings(format!("`{}`: {what}", given.path.join(".")))
                .at(given.place.clone())
                .advise("set the variable or write the file, or take the reference out")
        })
    }

    fn value(&self, value: &Value, secrets: &mut Secrets) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => Value::String(self.text(text, secrets)?),
            Value::Array(items) => {
                let items: Result<_, _> = items.iter().map(|v| self.value(v, secrets)).collect();
                Value::Array(items?)
            }
            Value::Table(table) => {
                let expanded = table
                    .iter()
                    .map(|(name, v)| Ok((name.clone(), self.value(v, secrets)?)));
                Value::Table(expanded.collect::<Result<_, String>>()?)
            }
            plain => plain.clone(),
        })
    }

    /// `${word:rest}` is a reference; `${NAME}` and `${NAME:-default}` are left for whoever reads the value.
    fn text(&self, text: &str, secrets: &mut Secrets) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let (head, tail) = rest.split_at(at);
            out.push_str(head);
            let Some(end) = tail.find('}') else {
                rest = tail;
                break;
            };
            let inner = &tail[2..end];
            rest = &tail[end + 1..];
            match inner.split_once(':') {
                Some(("env", name)) => out.push_str(&self.variable(name, secrets)?),
                Some(("file", path)) => out.push_str(&self.file(path, secrets)?),
                Some((word, after)) if !after.starts_with('-') => {
                    return Err(format!(
                        "`${{{word}:…}}` is not known: ${{env:X}} and ${{file:PATH}} are"
                    ));
                }
                _ => out.push_str(&tail[..=end]),
            }
        }
        out.push_str(rest);
        Ok(out)
    }

    fn variable(&self, name: &str, secrets: &mut Secrets) -> Result<String, String> {
        let value = self
            .environment
            .get(name)
            .ok_or_else(|| format!("the variable {name} is not set"))?;
        keep(secrets, value);
        Ok(value.to_owned())
    }

    fn file(&self, path: &str, secrets: &mut Secrets) -> Result<String, String> {
        let path = self.base.join(path);
        let shown = path.display();
        let text = plain_file::read(&path, MAX_SECRET).map_err(|e| format!("{shown}: {e}"))?;
        let secret = text.trim_end_matches(['\n', '\r']);
        keep(secrets, secret);
        secrets.files.push(path.clone());
        Ok(secret.to_owned())
    }
}

fn keep(secrets: &mut Secrets, value: &str) {
    if !value.is_empty() && !secrets.values.iter().any(|known| known == value) {
        secrets.values.push(value.to_owned());
    }
    keep_login(secrets, value);
}

/// The login of a URL, and its password alone, are secrets by themselves, too.
fn keep_login(secrets: &mut Secrets, url: &str) {
    let login = url
        .split_once("://")
        .and_then(|(_, rest)| rest.rsplit_once('@'));
    if let Some((login, _)) = login
        && let Some((_, password)) = login.split_once(':')
    {
        for secret in [login, password] {
            // Neither is a URL.
            if !secret.is_empty() && !secrets.values.iter().any(|known| known == secret) {
                secrets.values.push(secret.to_owned());
            }
        }
    }
}

/// Words in the name of a header or a variable whose value is a secret, also where it is written out.
const TELLING: [&str; 8] = [
    "auth",
    "cookie",
    "credential",
    "key",
    "passw",
    "pwd",
    "secret",
    "token",
];

/// What the whole value holds: the login of a URL that references stand in; of a server's headers and variables those that
/// log in, without the scheme (`Bearer`, `Basic`) before them.
fn learn_logins(given: &Given, value: &Value, used: &mut Secrets) {
    if let (Value::String(url), false) = (value, used.values.is_empty()) {
        keep_login(used, url);
    }
    let of_service = [
        "mcp.servers.*.headers",
        "mcp.servers.*.env",
        "web.search.headers",
    ];
    let (true, Value::Table(table)) = (of_service.contains(&given.key.path), value) else {
        return;
    };
    for (name, value) in table {
        let name = name.to_ascii_lowercase();
        let value = value.as_str().unwrap_or_default().trim();
        let token = value
            .split_once(' ')
            .map_or(value, |(_, token)| token.trim());
        if TELLING.iter().any(|word| name.contains(word)) && may_be_login(token) {
            keep(used, token);
            keep(used, value);
        }
    }
}

/// Whether a value under a telling name is more than a word, a number or a path, which ordinary text holds, too.
fn may_be_login(value: &str) -> bool {
    value.len() >= 8 && !value.starts_with('/') && !value.bytes().all(|b| b.is_ascii_digit())
}
