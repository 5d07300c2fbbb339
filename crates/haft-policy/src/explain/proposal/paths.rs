//! Path rules that may be proposed: below a named folder, and without a pattern that could match a protected path or a
//! secret.

use crate::protected::{protected, protected_names};
use haft_files::glob::Glob;
use haft_files::paths::PathPattern;
use haft_files::secret_names::SecretNames;

/// Says why a pattern for paths may not be proposed.
pub(crate) fn refuse(pattern: &PathPattern, secrets: &SecretNames) -> Option<String> {
    let samples = pattern.samples();
    let any = |holds: &dyn Fn(&str) -> bool| samples.iter().any(|sample| holds(sample));
    let runs = pattern.literal_runs();
    let named = |holds: &dyn Fn(&str) -> bool| runs.iter().any(|run| holds(run));
    let is_secret = |path: &str| secrets.covers(path) || secrets.covers_folder(path);
    if pattern.is_any() {
        return Some("it covers every path: name a file or a folder".to_owned());
    }
    if secrets.are_named_by(pattern) || any(&|path| secrets.covers(path)) || named(&is_secret) {
        return Some(
            "it names files that may hold secrets: the user has to decide each call".to_owned(),
        );
    }
    let is_protected = |path: &str| protected(path).is_some();
    if any(&is_protected) || named(&is_protected) {
        return Some("it names a protected path".to_owned());
    }
    if pattern.is_absolute() {
        return Some("it names a path outside the workspace".to_owned());
    }
    if !pattern.begins_with_name() {
        return Some(
            "it begins with a pattern: write a folder or a file first, as in Edit(src/*.rs)"
                .to_owned(),
        );
    }
    pattern
        .wild_names()
        .iter()
        .find_map(|wild| could_mean(wild, secrets))
}

/// Returns the reason if a name with wildcards could match a protected path or a secret.
fn could_mean(wild: &Glob, secrets: &SecretNames) -> Option<String> {
    let shown = wild.to_text();
    let name = protected_names().find(|name| {
        let mut parts = name.path.split('/');
        parts
            .next()
            .is_some_and(|first| wild.matches(&first.to_lowercase()))
    });
    if let Some(name) = name {
        return Some(format!(
            "{shown} could be {}, a protected path: write the name out",
            name.path
        ));
    }
    let secret = secrets.matching_entry(wild)?;
    Some(format!(
        "{shown} could be {secret}, which may hold secrets: write the name out"
    ))
}
