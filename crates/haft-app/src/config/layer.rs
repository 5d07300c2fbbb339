//! `SettingsLayer`: the sources of settings, weakest first, and how each is read.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::config::FILE_NAME;
use crate::config::document::{self, LayerEntry, MAX_BYTES};
use crate::config::keys::PROFILES;
use crate::environment::Environment;
use crate::plain_file;
use crate::problem::{Problem, SourceLocation};

/// A source of settings; a later one overrides earlier ones, key by key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingsLayer {
    /// Compiled in.
    BuiltIn,
    /// `/etc/haft/config.toml`.
    System,
    /// `$XDG_CONFIG_HOME/haft/config.toml`.
    User,
    /// `haft.toml` of a folder that is not trusted: it may only make settings stricter.
    Untrusted,
    /// `haft.toml` of a trusted folder.
    Workspace,
    /// The rules for which the user chose "always" in this workspace: a file in haft's state folder.
    Always,
    /// `--config FILE`.
    File,
    /// `HAFT_SECTION__KEY`.
    Environment,
    /// `-c key=value`.
    Option,
    /// `--profile NAME`.
    Profile,
    /// The program that embeds the application ([`ProgramSettings`](super::program::ProgramSettings)).
    Program,
}

impl SettingsLayer {
    /// Returns the name in `config explain` and `policy explain`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::System => "system",
            Self::User => "user",
            Self::Untrusted => "untrusted workspace",
            Self::Workspace => "workspace",
            Self::Always => "always",
            Self::File => "--config",
            Self::Environment => "environment",
            Self::Option => "-c",
            Self::Profile => "--profile",
            Self::Program => "program",
        }
    }
}

impl fmt::Display for SettingsLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A file that settings were read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsFile {
    /// The absolute path: guards compare it with what tools are asked to open.
    pub path: PathBuf,
    /// Whether it is blank.
    pub empty: bool,
}

impl SettingsFile {
    /// Returns the file at this path, which holds this text.
    pub(crate) fn new(path: &Path, text: &str) -> Self {
        Self {
            path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
            empty: is_empty(text),
        }
    }
}

/// Returns whether a text is blank, apart from a byte order mark.
pub(crate) fn is_empty(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim().is_empty()
}

/// The contents of a layer.
#[derive(Debug)]
pub struct LayerContent {
    /// The layer.
    pub layer: SettingsLayer,
    /// The file, if it is one.
    pub file: Option<SettingsFile>,
    /// Its keys.
    pub given: Vec<LayerEntry>,
}

impl LayerContent {
    /// Returns the folder that references in it are relative to.
    pub fn base<'a>(&'a self, workspace: &'a Path) -> &'a Path {
        self.file
            .as_ref()
            .and_then(|file| file.path.parent())
            .unwrap_or(workspace)
    }
}

/// Reads a settings file; returns `None` if there is none.
///
/// # Errors
/// A [`Problem`] that names the position, the key and the values it takes.
pub fn from_file(
    layer: SettingsLayer,
    path: &Path,
    shown: &str,
) -> Result<Option<LayerContent>, Problem> {
    let text = plain_file::read(path, MAX_BYTES);
    read_layer(layer, path, shown, text)
}

/// Reads the settings file of the workspace. The folder may belong to someone else: no link in it is followed, and if it is not trusted, no
/// error quotes the file, now or when its keys are checked later.
///
/// # Errors
/// A [`Problem`] that names the position, the key and the values it takes.
pub fn from_workspace(
    layer: SettingsLayer,
    workspace: &Path,
) -> Result<Option<LayerContent>, Problem> {
    let text = plain_file::read_beneath(workspace, FILE_NAME, MAX_BYTES);
    read_layer(layer, &workspace.join(FILE_NAME), FILE_NAME, text)
}

fn read_layer(
    layer: SettingsLayer,
    path: &Path,
    shown: &str,
    text: io::Result<String>,
) -> Result<Option<LayerContent>, Problem> {
    let text = match text {
        Ok(text) => text,
        // If the home is a file, there can be no settings in it.
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(e) => {
            return Err(Problem::settings(format!("cannot read the settings: {e}"))
                .at(SourceLocation::named(shown))
                .advise("make it a readable UTF-8 file, or move it away"));
        }
    };
    Ok(Some(LayerContent {
        layer,
        file: Some(SettingsFile::new(path, &text)),
        given: match layer {
            SettingsLayer::Untrusted => document::parse_unquoted(shown, &text)?,
            _ => document::parse(shown, &text)?,
        },
    }))
}

/// Reads the variables `HAFT_SECTION__KEY`; ignores others.
///
/// # Errors
/// A [`Problem`] that names the position, the key and the values it takes.
pub fn from_environment(environment: &Environment) -> Result<LayerContent, Problem> {
    let mut given = Vec::new();
    for (name, value) in environment.iter() {
        let Some(rest) = name
            .strip_prefix("HAFT_")
            .filter(|rest| rest.contains("__"))
        else {
            continue;
        };
        let path = rest.split("__").map(str::to_lowercase).collect();
        given.push(document::parse_single(name, path, value)?);
    }
    Ok(LayerContent {
        layer: SettingsLayer::Environment,
        file: None,
        given,
    })
}

/// Reads the options `-c key=value`.
///
/// # Errors
/// A [`Problem`] that names the position, the key and the values it takes.
pub fn from_options(options: &[String]) -> Result<LayerContent, Problem> {
    let mut given = Vec::new();
    for option in options {
        let shown = format!("-c {option}");
        let (path, value) = split(option).ok_or_else(|| {
            Problem::usage(format!("`-c {option}` is not key=value"))
                .advise("write the key as in haft.toml: -c limits.max_calls=50")
        })?;
        given.push(document::parse_single(&shown, path, value)?);
    }
    Ok(LayerContent {
        layer: SettingsLayer::Option,
        file: None,
        given,
    })
}

/// Splits an option at the first `=` outside quotes.
fn split(option: &str) -> Option<(Vec<String>, &str)> {
    option.match_indices('=').find_map(|(at, _)| {
        let path = document::dotted(option[..at].trim())?;
        Some((path, option[at + 1..].trim()))
    })
}

/// Reads `--profile`.
///
/// # Errors
/// A [`Problem`] that names the position, the key and the values it takes.
pub fn from_profile(profile: &str) -> Result<LayerContent, Problem> {
    if !PROFILES.contains(&profile) {
        let near = PROFILES
            .iter()
            .max_by(|a, b| strsim::jaro(a, profile).total_cmp(&strsim::jaro(b, profile)));
        return Err(
            Problem::usage(format!("unknown profile `{profile}`")).advise(format!(
                "did you mean `{}`? The profiles are read-only, workspace and trusted",
                near.copied().unwrap_or_default()
            )),
        );
    }
    let path = vec!["policy".to_owned(), "profile".to_owned()];
    Ok(LayerContent {
        layer: SettingsLayer::Profile,
        file: None,
        given: vec![document::parse_single(
            &format!("--profile {profile}"),
            path,
            profile,
        )?],
    })
}
