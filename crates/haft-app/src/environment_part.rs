//! `EnvironmentPart`: what commands get of the environment of the process that starts them, as digests. An agent's shell may have another one
//! than haft's server, and a request must show what will run.

use std::collections::{BTreeMap, BTreeSet};

use haft_builtins::command::AUTHORITY_VARIABLES;
use haft_builtins::files::sha256;
use serde::{Deserialize, Serialize};
use toml::Value;

use crate::config::Settings;
use crate::environment::Environment;

/// The variables that commands get something of, each with the digest of its value; `None` if it is not set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentPart(BTreeMap<String, Option<String>>);

impl EnvironmentPart {
    /// Reads what commands get under these settings: the files of certificates, and what settings of the sandbox refer to.
    pub(crate) fn of_settings(settings: &Settings, environment: &Environment) -> Self {
        let mut names: BTreeSet<String> = AUTHORITY_VARIABLES.map(str::to_owned).into();
        for (path, entry) in settings.iter() {
            if path.first().is_some_and(|first| first == "sandbox") {
                add_references(&entry.written, &mut names);
            }
        }
        Self::of(names, environment)
    }

    /// Reads the variables of these names.
    pub(crate) fn of(names: impl IntoIterator<Item = String>, environment: &Environment) -> Self {
        let digests = names.into_iter().map(|name| {
            let value = environment.get(&name);
            let digest = value.map(|value| sha256(value.as_bytes()));
            (name, digest)
        });
        Self(digests.collect())
    }

    /// Reads it from the text that another process of haft made of its own. `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Returns the text for [`parse`](Self::parse).
    pub(crate) fn to_text(&self) -> String {
        // A map of texts always serializes.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the names of its variables.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}

/// Adds the variables that the texts in a value refer to as `${env:NAME}`.
fn add_references(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            let after = text.split("${env:").skip(1);
            let named = after.filter_map(|rest| Some(rest.split_once('}')?.0.to_owned()));
            names.extend(named);
        }
        Value::Array(items) => items.iter().for_each(|item| add_references(item, names)),
        Value::Table(table) => {
            let values = table.iter().map(|(_, value)| value);
            values.for_each(|value| add_references(value, names));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_in_settings_of_the_sandbox_and_certificates_count() {
        let environment = Environment::from(
            &[
                ("A", "1"),
                ("B", "2"),
                ("SSL_CERT_FILE", "/c.pem"),
                ("C", "3"),
            ][..],
        );
        let written = "env = {X = \"a${env:A}b${env:B}\", Y = \"${env:unset}${A}${file:f}${env:\"}\nl = [[\"${env:A}\"]]";
        let value: Value = toml::from_str(written).unwrap();
        let mut names = BTreeSet::new();
        add_references(&value, &mut names);
        let part = EnvironmentPart::of(names, &environment);
        assert_eq!(part.names(), ["A", "B", "unset"]);
        assert!(part.0["unset"].is_none() && part.0["A"] != part.0["B"]);
        assert!(!part.to_text().contains("\"1\""));
        assert_eq!(EnvironmentPart::parse(&part.to_text()), Some(part));
        let certificates = EnvironmentPart::of_settings(&Settings::default(), &environment);
        assert!(certificates.0["SSL_CERT_FILE"].is_some());
        assert!(certificates.0["PIP_CERT"].is_none());
        for text in ["", "null", "[]", "{\"A\":1}", "{\"A\":\"x\"", "\"A\""] {
            assert_eq!(EnvironmentPart::parse(text), None, "{text}");
        }
    }
}
