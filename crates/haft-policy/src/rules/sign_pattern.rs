//! `SignPattern`: what the host's logins are used for, as `Sign(…)` rules name it.

use crate::rules::pattern::DomainPattern;
use crate::sign_purpose::{OF_HOSTS, parts};

/// The purposes without a host or a key.
const BARE: [&str; 1] = ["git"];
/// The kind of signatures by keys of gpg, of which it cannot be known what they are for.
const GPG: &str = "gpg";
/// Lengths of a fingerprint of a key of gpg, in hexadecimal digits (RFC 4880 §12.2, RFC 9580 §5.5.4).
const PRINTS: [usize; 2] = [40, 64];

/// What a login is used for: `https:example.com`, `ssh:*.example.com:2222`, `git`, `gpg:FINGERPRINT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignPattern {
    kind: &'static str,
    scope: SignScope,
}

/// What a purpose is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SignScope {
    /// Of a kind that has no parts.
    Whole,
    Place(SignPlace),
    /// The fingerprint, in upper case; `None` for every key.
    Key(Option<String>),
}

/// The server of a purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignPlace {
    pub(crate) host: DomainPattern,
    pub(crate) usual: u16,
    /// The port, if the rule names one.
    pub(crate) port: Option<u16>,
}

impl SignPattern {
    /// Parses a pattern; `None` if the text names no purpose.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some(kind) = BARE.into_iter().find(|kind| *kind == text) {
            let scope = SignScope::Whole;
            return Some(Self { kind, scope });
        }
        if let Some(key) = key_of(text) {
            let print = match key {
                "*" => None,
                key => Some(fingerprint(key)?),
            };
            let scope = SignScope::Key(print);
            return Some(Self { kind: GPG, scope });
        }
        let (kind, host, port) = parts(text)?;
        let (kind, usual) = OF_HOSTS.into_iter().find(|(name, _)| *name == kind)?;
        let place = SignPlace {
            host: DomainPattern::parse(host)?,
            usual,
            port,
        };
        let scope = SignScope::Place(place);
        Some(Self { kind, scope })
    }

    /// Returns the kind of purposes that it names.
    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    /// Returns what its purposes are about.
    pub(crate) fn scope(&self) -> &SignScope {
        &self.scope
    }

    /// Whether an allow rule covers this purpose. A server that is not known has no host that a rule could name.
    pub(crate) fn allows(&self, purpose: &str) -> bool {
        self.fits(purpose, |place, port| {
            place.port.unwrap_or(place.usual) == port
        })
    }

    /// Whether a deny or ask rule covers this purpose: at every port if it names none. A server that is not known may be any.
    pub(crate) fn forbids(&self, purpose: &str) -> bool {
        let unknown = purpose.strip_suffix(":?") == Some(self.kind);
        unknown
            || self.fits(purpose, |place, port| {
                place.port.is_none_or(|own| own == port)
            })
    }

    /// Whether a deny or ask rule with this pattern covers every purpose that an allow rule with the other covers.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.kind == other.kind
            && match (&self.scope, &other.scope) {
                (SignScope::Place(wide), SignScope::Place(narrow)) => {
                    let port = narrow.port.unwrap_or(narrow.usual);
                    wide.port.is_none_or(|own| own == port) && wide.host.covers(&narrow.host)
                }
                (SignScope::Key(wide), SignScope::Key(narrow)) => wide.is_none() || wide == narrow,
                (SignScope::Whole, SignScope::Whole) => true,
                _ => false,
            }
    }

    /// Whether it names one purpose.
    pub(crate) fn is_exact(&self) -> bool {
        match &self.scope {
            SignScope::Whole => true,
            SignScope::Place(place) => place.host.is_exact(),
            SignScope::Key(key) => key.is_some(),
        }
    }

    fn fits(&self, purpose: &str, port_fits: impl Fn(&SignPlace, u16) -> bool) -> bool {
        let place = match &self.scope {
            SignScope::Whole => return purpose == self.kind,
            SignScope::Key(own) => {
                let key = key_of(purpose).and_then(fingerprint);
                return key.is_some() && (own.is_none() || *own == key);
            }
            SignScope::Place(place) => place,
        };
        let Some((kind, host, port)) = parts(purpose) else {
            return false;
        };
        kind == self.kind
            && host != "?"
            && place.host.matches(host)
            && port_fits(place, port.unwrap_or(place.usual))
    }
}

/// Returns what follows `gpg:`.
fn key_of(text: &str) -> Option<&str> {
    text.strip_prefix(GPG)?.strip_prefix(':')
}

/// Returns a whole fingerprint in upper case; shorter ids are those of many keys.
fn fingerprint(text: &str) -> Option<String> {
    let is_one = PRINTS.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_one.then(|| text.to_ascii_uppercase())
}

/// Returns the rule that allows exactly this purpose; `None` if none does.
pub(crate) fn rule_for(purpose: &str) -> Option<String> {
    let pattern = SignPattern::parse(purpose)?;
    let exact = pattern.is_exact() && pattern.allows(purpose);
    exact.then(|| format!("Sign({purpose})"))
}

#[cfg(test)]
mod tests {
    use super::{SignPattern, rule_for};

    const PRINT: &str = "gpg:9DB163C3B5314D2D1519C27D20327E4CAFE743A3";
    const OTHER: &str = "gpg:0000000000000000000000000000000000000000";

    #[test]
    fn a_purpose_is_allowed_by_its_kind_host_and_port() {
        for (rule, purpose, allows, forbids) in [
            ("https:github.com", "https:github.com", true, true),
            ("https:github.com", "https:GitHub.com", true, true),
            ("https:github.com", "ssh:github.com", false, false),
            ("https:github.com", "https:api.github.com", false, false),
            ("https:*.github.com", "https:api.github.com", true, true),
            ("https:github.com", "https:github.com:8443", false, true),
            ("https:github.com:8443", "https:github.com:8443", true, true),
            ("ssh:github.com", "ssh:github.com", true, true),
            ("ssh:github.com:22", "ssh:github.com", true, true),
            ("ssh:github.com", "ssh:github.com:2222", false, true),
            ("ssh:[2001:db8::1]", "ssh:[2001:db8::1]", true, true),
            // No rule for a host allows a server that is not known, and each that forbids one forbids it.
            ("ssh:*", "ssh:?", false, true),
            ("ssh:github.com", "ssh:?", false, true),
            ("https:*", "ssh:?", false, false),
            ("git", "git", true, true),
            ("git", "ssh:git", false, false),
            ("git", PRINT, false, false),
            (PRINT, PRINT, true, true),
            (PRINT, OTHER, false, false),
            ("gpg:*", OTHER, true, true),
            ("gpg:*", "gpg:*", false, false),
            (
                "gpg:9db163c3b5314d2d1519c27d20327e4cafe743a3",
                PRINT,
                true,
                true,
            ),
        ] {
            let pattern = SignPattern::parse(rule).unwrap();
            assert_eq!(pattern.allows(purpose), allows, "{rule} {purpose}");
            assert_eq!(pattern.forbids(purpose), forbids, "{rule} {purpose}");
        }
        for text in [
            "",
            "github.com",
            "ftp:x.org",
            "ssh:",
            "ssh:?",
            "ssh:a b",
            "git:x.org",
            "https:x.org:y",
            "gpg:",
            "gpg:20327E4CAFE743A3",
            "gpg:ann@example.com",
        ] {
            assert_eq!(SignPattern::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_rule_is_offered_for_one_purpose() {
        for (purpose, expect) in [
            ("https:github.com", Some("Sign(https:github.com)")),
            (
                "ssh:git.example.com:2222",
                Some("Sign(ssh:git.example.com:2222)"),
            ),
            ("git", Some("Sign(git)")),
            (
                PRINT,
                Some("Sign(gpg:9DB163C3B5314D2D1519C27D20327E4CAFE743A3)"),
            ),
            ("ssh:?", None),
        ] {
            assert_eq!(rule_for(purpose).as_deref(), expect, "{purpose}");
        }
    }

    #[test]
    fn a_wider_rule_covers_a_narrower_one() {
        for (wide, narrow, covers) in [
            ("ssh:*.example.com", "ssh:git.example.com", true),
            ("ssh:*.example.com", "ssh:git.example.com:2222", true),
            ("ssh:git.example.com:22", "ssh:git.example.com", true),
            ("ssh:git.example.com", "https:git.example.com", false),
            ("git", "git", true),
            ("gpg:*", PRINT, true),
            (PRINT, "gpg:*", false),
            ("git", PRINT, false),
        ] {
            let read = |text| SignPattern::parse(text).unwrap();
            assert_eq!(read(wide).covers(&read(narrow)), covers, "{wide} {narrow}");
        }
    }
}
