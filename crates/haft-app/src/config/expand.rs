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
    if !value.is_empty() {
        secrets.values.push(value.to_owned());
    }
    // The password of a URL is a secret by itself, too.
    let login = value
        .split_once("://")
        .and_then(|(_, rest)| rest.rsplit_once('@'));
    if let Some((_, password)) = login.and_then(|(login, _)| login.split_once(':')) {
        secrets.values.push(password.to_owned());
    }
}
