//! `Source`: where a package comes from.

use std::collections::BTreeMap;

/// Where a package comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Source {
    /// The lockfile does not say: the registry that the settings name.
    #[default]
    Unknown,
    /// It is part of the workspace.
    Own,
    /// A registry, by its host.
    Registry(String),
    /// A git repository.
    Git(String),
    /// A file or folder.
    File(String),
    /// An address without encryption.
    Plain(String),
}

impl Source {
    /// Reads an address such as `registry+https://host/path`, `git+ssh://…`, `https://…` or `file:…`.
    pub(super) fn of(text: &str) -> Self {
        let text = text.trim();
        let lower = text.to_ascii_lowercase();
        let is_git = lower.starts_with("git+")
            || lower.starts_with("git:")
            || lower.starts_with("git@")
            || lower.starts_with("ssh:")
            || lower.starts_with("github:")
            || lower
                .split(['#', '?'])
                .next()
                .is_some_and(|address| address.strip_suffix(".git").is_some());
        if text.is_empty() {
            return Self::Unknown;
        }
        if is_git {
            return Self::Git(text.to_owned());
        }
        let address = text.strip_prefix("registry+").unwrap_or(text);
        let address = address.strip_prefix("sparse+").unwrap_or(address);
        match address.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => {
                let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
                let host = host.rsplit('@').next().unwrap_or(host);
                Self::Registry(host.to_ascii_lowercase())
            }
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("http") => {
                Self::Plain(text.to_owned())
            }
            _ => Self::File(text.to_owned()),
        }
    }

    /// Returns it in a few words; `None` if there is nothing to say.
    pub(super) fn words(&self) -> Option<String> {
        match self {
            Self::Unknown => None,
            Self::Own => Some("part of this workspace".to_owned()),
            Self::Registry(host) => Some(host.clone()),
            Self::Git(text) | Self::File(text) | Self::Plain(text) => Some(text.clone()),
        }
    }

    /// Returns what is unusual about it, if packages usually come from the host `usual`.
    pub(super) fn oddity(&self, usual: Option<&str>) -> Option<String> {
        match self {
            Self::Unknown | Self::Own => None,
            Self::Registry(host) => {
                let usual = usual.filter(|usual| usual != host)?;
                Some(format!("{host}, the others from {usual}"))
            }
            Self::Git(text) => Some(format!("a git repository, {text}")),
            Self::File(text) => Some(format!("a file, {text}")),
            Self::Plain(text) => Some(format!("an address without encryption, {text}")),
        }
    }

    /// Returns true if the lockfile is expected to have a hash of it.
    pub(super) fn has_hashes(&self) -> bool {
        matches!(self, Self::Registry(_) | Self::Plain(_))
    }
}

/// Returns the host that most packages come from.
pub(super) fn usual<'s>(all: impl Iterator<Item = &'s Source>) -> Option<String> {
    let mut hosts: BTreeMap<&str, usize> = BTreeMap::new();
    for source in all {
        if let Source::Registry(host) = source {
            *hosts.entry(host).or_default() += 1;
        }
    }
    let most = hosts.into_iter().max_by_key(|(_, number)| *number)?;
    Some(most.0.to_owned())
}
