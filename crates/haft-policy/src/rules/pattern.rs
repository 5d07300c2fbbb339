//! The parts of a rule in parentheses: patterns for commands and domains.

use std::net::{IpAddr, Ipv4Addr};

use crate::address::socket_path;
use crate::rules::view::CommandView;
use crate::rules::words::{PlainWordsError, join_pieces, pattern_words};
use haft_files::glob::{Glob, GlobToken};

/// A pattern for command lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandPattern {
    /// The whole command, with minimal quoting.
    whole: Glob,
    /// The same followed by more words, for a trailing ` *` or `:*`.
    more: Option<Glob>,
    /// The same two without any quoting, for deny and ask.
    bare: Glob,
    bare_more: Option<Glob>,
}

impl CommandPattern {
    /// Parses a pattern; `Err` if it has shell syntax or an open quote.
    pub(crate) fn parse(text: &str) -> Result<Self, PlainWordsError> {
        let text = text.trim();
        let prefix = text
            .strip_suffix(":*")
            .or_else(|| text.strip_suffix(" *"))
            .filter(|prefix| !prefix.ends_with('\\'));
        let words = pattern_words(prefix.unwrap_or(text))?;
        let whole = join_pieces(&words);
        let bare: Vec<GlobToken> = words.join(&GlobToken::Literal(' '));
        let more = |pieces: &[GlobToken]| {
            let tail = [GlobToken::Literal(' '), GlobToken::Star];
            prefix.map(|_| Glob::from_pieces(pieces.iter().copied().chain(tail)))
        };
        Ok(Self {
            more: more(&whole),
            bare_more: more(&bare),
            whole: Glob::from_pieces(whole),
            bare: Glob::from_pieces(bare),
        })
    }

    /// Whether it matches one command alone.
    pub(crate) fn is_exact(&self) -> bool {
        self.more.is_none() && self.whole.is_exact()
    }

    pub(crate) fn allows(&self, command: &CommandView) -> bool {
        if self.is_exact() {
            return command.all_equal(&self.whole);
        }
        command.all_satisfy(|line| {
            self.whole.matches(line) || self.more.as_ref().is_some_and(|more| more.matches(line))
        })
    }

    pub(crate) fn forbids(&self, command: &CommandView) -> bool {
        command.any_satisfies(|form| self.spellings().any(|glob| glob.matches(form)))
    }

    /// Whether it could forbid the command once all of its words are known.
    pub(crate) fn could_forbid(&self, command: &CommandView) -> bool {
        command.any_could_satisfy(|form| self.spellings().any(|glob| glob.overlaps(form)))
    }

    /// Whether a deny or ask rule with this pattern covers every command that an allow rule with the other covers.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let allowed = std::iter::once(&other.whole).chain(&other.more);
        let mut covered = allowed.map(|narrow| {
            let mut own = std::iter::once(&self.whole).chain(&self.more);
            own.any(|wide| wide.covers(narrow))
        });
        covered.all(|covered| covered)
    }

    /// Returns what an allow rule matches: the whole command, and the same with more words.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &Glob> {
        std::iter::once(&self.whole).chain(&self.more)
    }

    /// Returns what deny and ask rules match.
    pub(crate) fn spellings(&self) -> impl Iterator<Item = &Glob> {
        [&self.whole, &self.bare]
            .into_iter()
            .chain(&self.more)
            .chain(&self.bare_more)
    }
}

/// A pattern for hosts: `example.com`, `*.example.com` (any depth, not the apex), `*`; any other `*` matches within its label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DomainPattern {
    below: bool,
    labels: Box<[Glob]>,
}

impl DomainPattern {
    /// Parses a pattern; `None` if the text is not a host, or one that no connection has: names are compared in their wire form, in
    /// ASCII only, and addresses as a URL writes them.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = canonical_host(text.trim());
        if !text.is_ascii() || ends_in_a_number(&text) && text.parse::<Ipv4Addr>().is_err() {
            return None;
        }
        let (below, rest) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None if text == "*" => (true, ""),
            None => (false, text.as_str()),
        };
        let fine = |c: char| !c.is_whitespace() && !"/@?#\\()".contains(c);
        if (rest.is_empty() && !below)
            || !rest.chars().all(fine)
            || rest.split('.').any(str::is_empty) && !rest.is_empty()
        {
            return None;
        }
        let labels = if rest.starts_with('[') {
            vec![rest]
        } else {
            rest.split('.').collect()
        };
        if !rest.starts_with('[') && rest.contains(':') {
            return None;
        }
        Some(Self {
            below,
            labels: labels
                .into_iter()
                .filter(|l| !l.is_empty())
                .map(Glob::parse)
                .collect(),
        })
    }

    /// Whether more labels must stand before its own.
    pub(crate) fn is_below(&self) -> bool {
        self.below
    }

    /// Returns the patterns of its labels.
    pub(crate) fn labels(&self) -> &[Glob] {
        &self.labels
    }

    /// Whether it names one host.
    pub(crate) fn is_exact(&self) -> bool {
        !self.below && self.labels.iter().all(Glob::is_exact)
    }

    /// Whether it matches every host that the other matches.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let fits = match other.labels.len().checked_sub(self.labels.len()) {
            Some(0) => self.below == other.below,
            Some(_) => self.below,
            None => false,
        };
        let labels = self.labels.iter().rev().zip(other.labels.iter().rev());
        fits && labels.into_iter().all(|(wide, narrow)| wide.covers(narrow))
    }

    pub(crate) fn matches(&self, host: &str) -> bool {
        self.matches_canonical(&canonical_host(host))
    }

    /// Whether it matches a host in its canonical form.
    pub(crate) fn matches_canonical(&self, host: &str) -> bool {
        let mut rest = Some(host);
        let mut last = || {
            let text = rest?;
            match text.rsplit_once('.') {
                Some((before, last)) if !text.starts_with('[') => {
                    rest = Some(before);
                    Some(last)
                }
                _ => {
                    rest = None;
                    Some(text)
                }
            }
        };
        let mut labels = self.labels.iter().rev();
        labels.all(|label| last().is_some_and(|part| label.matches(part)))
            && last().is_some() == self.below
    }
}

/// Returns a host in the canonical form for comparison: lower case, without the final dot; an address without redundant zeros and
/// brackets, an IPv4-mapped IPv6 address as IPv4. A socket is as it is written.
pub(crate) fn canonical_host(host: &str) -> String {
    if socket_path(host).is_some() {
        return host.to_owned();
    }
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let inner = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    match inner
        .unwrap_or(&host)
        .parse::<IpAddr>()
        .map(|address| address.to_canonical())
    {
        Ok(IpAddr::V4(address)) => address.to_string(),
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        Err(_) => host,
    }
}

/// Whether a URL parser takes the host for an IPv4 address, by its last label (WHATWG URL, "ends in a number checker").
fn ends_in_a_number(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or_default();
    let hex = last.strip_prefix("0x");
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    !last.is_empty()
        && (digits(last) || hex.is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit())))
}
