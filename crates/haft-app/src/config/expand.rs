//! `${env:X}` and `${file:PATH}`: inserts secrets from outside the settings, and remembers them so that records can hide them.

use std::path::{Path, PathBuf};

use toml::Value;

use crate::config::document::LayerEntry;
use crate::config::keys::SettingType;
use crate::environment::Environment;
use crate::plain_file;
use crate::problem::Problem;

/// Maximum size of a secret, in bytes: secrets are keys or tokens, so a larger one is a mistake.
const MAX_SECRET: u64 = 64 * 1024;

/// The results of expansion: values to hide, files to guard.
#[derive(Debug, Default, Clone)]
pub struct Secrets {
    /// The inserted values.
    pub values: Vec<String>,
    /// The files that they were read from.
    pub files: Vec<PathBuf>,
}

/// The sources of references.
#[derive(Debug, Clone, Copy)]
pub struct Expander<'a> {
    /// The process's environment.
    pub environment: &'a Environment,
    /// The folder that relative paths refer to: that of the settings file.
    pub base: &'a Path,
}

impl Expander<'_> {
    /// Returns the value with its references replaced.
    ///
    /// # Errors
    /// A [`Problem`] that names the variable or file that cannot be read.
    pub fn expand(&self, given: &LayerEntry, secrets: &mut Secrets) -> Result<Value, Problem> {
        let mut used = Secrets::default();
        let expanded = self.value(&given.value, &mut used).and_then(|value| {
            collect_logins(given, &value, &mut used);
            // Rules are shown in full: in denials, explanations and records.
            if given.key.kind == SettingType::Rules && !used.values.is_empty() {
                return Err("a rule cannot contain a secret: rules are shown in full".to_owned());
            }
            Ok(value)
        });
        secrets.values.extend(used.values);
        secrets.files.extend(used.files);
        expanded.map_err(|what| {
            Problem::settings(format!("`{}`: {what}", given.path.join(".")))
                .at(given.place.clone())
                .advise("set the variable, create the file, or remove the reference")
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

    /// Expands `${word:rest}`; leaves `${NAME}` and `${NAME:-default}` to the program that uses the value.
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
                        "unknown reference `${{{word}:…}}`: use ${{env:X}} or ${{file:PATH}}"
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
    add_login(secrets, value);
}

/// The login in a URL and its password alone are also secrets by themselves.
fn add_login(secrets: &mut Secrets, url: &str) {
    let login = url
        .split_once("://")
        .and_then(|(_, rest)| rest.rsplit_once('@'));
    if let Some((login, _)) = login
        && let Some((_, password)) = login.split_once(':')
    {
        for secret in [login, password] {
            // Neither is a URL, so there is no recursion.
            if !secret.is_empty() && !secrets.values.iter().any(|known| known == secret) {
                secrets.values.push(secret.to_owned());
            }
        }
    }
}

/// Words in names of headers or variables whose values are secrets, even in plain text.
const SECRET_WORDS: [&str; 8] = [
    "auth",
    "cookie",
    "credential",
    "key",
    "passw",
    "pwd",
    "secret",
    "token",
];

/// Learns secrets from the whole value: the login of a URL that contains references; from a server's headers and variables, those that log
/// in, without the scheme (`Bearer`, `Basic`) before them.
fn collect_logins(given: &LayerEntry, value: &Value, used: &mut Secrets) {
    if let (Value::String(url), false) = (value, used.values.is_empty()) {
        add_login(used, url);
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
        if SECRET_WORDS.iter().any(|word| name.contains(word)) && may_be_login(token) {
            keep(used, token);
            keep(used, value);
        }
    }
}

/// Returns whether a value with such a name is more than a word, a number or a path, which ordinary text also contains.
fn may_be_login(value: &str) -> bool {
    value.len() >= 8 && !value.starts_with('/') && !value.bytes().all(|b| b.is_ascii_digit())
}
