//! `PackageSource`: where a package comes from.

use std::collections::BTreeMap;

/// Where a package comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PackageSource {
    /// The lockfile does not say: the registry that the settings name.
    #[default]
    Unknown,
    /// It is part of the workspace.
    Own,
    /// A registry: its host, with the path of its index if it is not the only one there.
    Registry(String),
    /// A git repository.
    Git(String),
    /// A file or folder.
    File(String),
    /// An address without encryption.
    Plain(String),
}

impl PackageSource {
    /// Reads the address of a file, such as `git+ssh://…`, `https://…` or `file:…`.
    pub(super) fn of(text: &str) -> Self {
        Self::read(text, |host, _| host)
    }

    /// Reads the address of an index of packages, such as `registry+https://host/path`. Two on one host are two.
    pub(super) fn index(text: &str) -> Self {
        Self::read(text, |host, path| {
            let path = path.trim_matches('/');
            match path {
                "" => host,
                path => format!("{host}/{path}"),
            }
        })
    }

    fn read(text: &str, registry: impl Fn(String, &str) -> String) -> Self {
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
                let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
                let (host, path) = rest.split_at(end);
                let host = host.rsplit('@').next().unwrap_or(host);
                Self::Registry(registry(host.to_ascii_lowercase(), path))
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
            Self::Registry(text) | Self::Git(text) | Self::File(text) | Self::Plain(text) => {
                Some(text.clone())
            }
        }
    }

    /// Returns what is unusual about it, if packages usually come from `usual`.
    pub(super) fn oddity(&self, usual: Option<&str>) -> Option<String> {
        match self {
            Self::Unknown | Self::Own => None,
            Self::Registry(place) => {
                let usual = usual.filter(|usual| usual != place)?;
                Some(format!("{place}, the others from {usual}"))
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

/// Reads the address of a package's file in a registry of npm's kind, `https://host/path/NAME/-/FILE`. Returns the registry and, if the
/// address names another package, that one's name.
pub(super) fn tarball(name: &str, address: &str) -> (PackageSource, Option<String>) {
    let Some((folder, _)) = address.split_once("/-/") else {
        return (PackageSource::of(address), None);
    };
    let plain = folder.replace("%2f", "/").replace("%2F", "/");
    let (index, real) = match plain.strip_suffix(name) {
        Some(index) if index.ends_with('/') => (index.to_owned(), None),
        _ => {
            let (index, last) = plain.rsplit_once('/').unwrap_or(("", &plain));
            match index.rsplit_once('/') {
                Some((index, scope)) if scope.starts_with('@') => {
                    (index.to_owned(), Some(format!("{scope}/{last}")))
                }
                _ => (index.to_owned(), Some(last.to_owned())),
            }
        }
    };
    match PackageSource::of(address) {
        PackageSource::Registry(_) => (PackageSource::index(&index), real),
        other => (other, real),
    }
}

/// Returns where most packages come from.
pub(super) fn usual<'s>(all: impl Iterator<Item = &'s PackageSource>) -> Option<String> {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for source in all {
        if let PackageSource::Registry(place) = source {
            *places.entry(place).or_default() += 1;
        }
    }
    let most = places.into_iter().max_by_key(|(_, number)| *number)?;
    Some(most.0.to_owned())
}
