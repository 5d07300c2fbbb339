//! `robots.txt` (RFC 9309): fetched once per host, matched by the longest rule.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use memchr::memmem;
use parking_lot::Mutex;

use crate::web::http::{FetchLimits, Http, HttpError};
use crate::web::redirects::Redirects;
use crate::web::target::WebUrl;

/// Maximum bytes read of a file (RFC 9309 §2.5 requires at least 500 KiB).
const MAX_BYTES: usize = 500 * 1024;
/// Maximum number of hosts whose rules are cached.
const MAX_HOSTS: usize = 256;
/// Maximum time for a file.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// The rules of the hosts fetched so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Robots(Arc<Mutex<HashMap<String, Arc<RobotsRules>>>>);

impl Robots {
    /// Checks whether a page may be fetched; the error names the rule that forbids it.
    pub(crate) async fn check(
        &self,
        http: &Http,
        redirects: &Redirects,
        target: &WebUrl,
    ) -> Result<(), HttpError> {
        let url = target.url();
        if url.path() == "/robots.txt" {
            return Ok(());
        }
        let place = url.origin().ascii_serialization();
        let cached = self.lookup(&place);
        let rules = match cached {
            Some(rules) => rules,
            None => self.keep(&place, fetch(http, redirects, &place).await?),
        };
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        match rules.forbids(&path) {
            None => Ok(()),
            Some(rule) => Err(HttpError::Robots {
                url: url.to_string(),
                host: target.host().to_owned(),
                rule,
            }),
        }
    }

    fn lookup(&self, place: &str) -> Option<Arc<RobotsRules>> {
        let hosts = self.0.lock();
        hosts.get(place).cloned()
    }

    fn keep(&self, place: &str, rules: RobotsRules) -> Arc<RobotsRules> {
        let rules = Arc::new(rules);
        let mut hosts = self.0.lock();
        if hosts.len() >= MAX_HOSTS {
            hosts.clear();
        }
        hosts.insert(place.to_owned(), Arc::clone(&rules));
        rules
    }
}

/// Fetches a host's file. It may redirect only to hosts that a page of that host may redirect to, since both are connections.
async fn fetch(http: &Http, redirects: &Redirects, place: &str) -> Result<RobotsRules, HttpError> {
    let limits = FetchLimits {
        whole: FETCH_TIMEOUT,
        max_bytes: MAX_BYTES,
        redirects: 5,
        ..http.limits().clone()
    };
    let client = http.clone().with_limits(limits);
    let url = format!("{place}/robots.txt");
    let own = WebUrl::parse(&url).map_err(|why| HttpError::refused(&url, why))?;
    let reply = match client.follow(&url, &[], &redirects.from(own)).await {
        Ok(reply) => reply,
        // RFC 9309 §2.3.1.2: with too many redirects, the file counts as missing.
        Err(HttpError::Redirects { .. }) => return Ok(RobotsRules::default()),
        Err(error) => return Err(error),
    };
    Ok(match reply.status {
        200..=299 => RobotsRules::parse(&String::from_utf8_lossy(&reply.body), http.user_agent()),
        // §2.3.1.4: a server error forbids everything.
        status @ 500..=599 => RobotsRules::unreachable(status),
        _ => RobotsRules::default(),
    })
}

/// One line of the file.
#[derive(Debug)]
struct RobotsRule {
    allow: bool,
    pattern: String,
}

/// The rules of one host for this robot.
#[derive(Debug, Default)]
struct RobotsRules {
    rules: Vec<RobotsRule>,
    /// The server's status, if it failed so that the rules could not be read.
    failed: Option<u16>,
}

impl RobotsRules {
    fn unreachable(status: u16) -> Self {
        Self {
            rules: Vec::new(),
            failed: Some(status),
        }
    }

    /// Parses the groups of this robot, or those of `*` if none names it.
    fn parse(text: &str, agent: &str) -> Self {
        let word = |c: char| c.is_ascii_alphabetic() || c == '-' || c == '_';
        let own: String = agent.chars().take_while(|c| word(*c)).collect();
        let (mut named, mut others) = (Vec::new(), Vec::new());
        let (mut mine, mut all, mut met) = (false, false, false);
        // A line that names a robot begins a new group if rules came before it.
        let mut rules_came = false;
        for line in text.trim_start_matches('\u{feff}').lines() {
            let line = line.split('#').next().unwrap_or(line);
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let value = value.trim();
            let allow = match key.trim().to_ascii_lowercase().as_str() {
                "user-agent" => {
                    if rules_came {
                        (mine, all, rules_came) = (false, false, false);
                    }
                    let token: String = value.chars().take_while(|c| word(*c)).collect();
                    let is_own = !token.is_empty() && token.eq_ignore_ascii_case(&own);
                    mine |= is_own;
                    met |= is_own;
                    all |= value.starts_with('*');
                    continue;
                }
                "allow" => true,
                "disallow" => false,
                _ => continue,
            };
            rules_came = true;
            let pattern = normalize(value);
            if pattern.is_empty() {
                continue;
            }
            if mine {
                named.push(RobotsRule { allow, pattern });
            } else if all {
                others.push(RobotsRule { allow, pattern });
            }
        }
        Self {
            rules: if met { named } else { others },
            failed: None,
        }
    }

    /// Returns the rule that forbids a path. The longest matching rule decides; of two equally long ones, the one that allows.
    fn forbids(&self, path: &str) -> Option<String> {
        if let Some(status) = self.failed {
            return Some(format!("nothing: it was answered with status {status}"));
        }
        let path = normalize(path);
        let matching = self.rules.iter().filter(|rule| fits(&rule.pattern, &path));
        let longest = matching.max_by_key(|rule| (rule.pattern.len(), rule.allow))?;
        (!longest.allow).then(|| {
            let pattern: String = longest.pattern.chars().take(200).collect();
            format!("Disallow: {pattern}")
        })
    }
}

/// Normalizes the spelling: everything beyond ASCII percent-encoded, escapes in uppercase.
fn normalize(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                out.push('%');
                for digit in bytes.by_ref().take(2) {
                    out.push(char::from(digit.to_ascii_uppercase()));
                }
            }
            byte if byte.is_ascii_graphic() => out.push(char::from(byte)),
            byte => {
                const HEX_DIGITS: &[u8; 16] = b"0123456789ABCDEF";
                out.push('%');
                out.push(char::from(HEX_DIGITS[usize::from(byte >> 4)]));
                out.push(char::from(HEX_DIGITS[usize::from(byte & 15)]));
            }
        }
    }
    out
}

/// Returns true if a pattern, with `*` for anything and a final `$` for the path's end, matches from the start of the path.
fn fits(pattern: &str, path: &str) -> bool {
    let (pattern, whole) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| path.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return !whole || rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if whole && parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match memmem::find(rest.as_bytes(), part.as_bytes()) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::{RobotsRules, fits};

    #[test]
    fn patterns_match_as_the_standard_says() {
        let rows = [
            ("/", "/x", true),
            ("/fish", "/fish.html", true),
            ("/fish", "/catfish", false),
            ("/fish*", "/fishheads/x", true),
            ("/fish/", "/fish", false),
            ("/*.php", "/folder/a.php?x=1", true),
            ("/*.php$", "/a.php?x=1", false),
            ("/*.php$", "/a.php/b.php", true),
            ("/a*b*c", "/a-b-x-c-", true),
            ("/a*b*c", "/a-c-b", false),
            ("/$", "/", true),
            ("/$", "/x", false),
            ("*", "/x", true),
        ];
        for (pattern, path, expect) in rows {
            assert_eq!(fits(pattern, path), expect, "{pattern} {path}");
        }
    }

    #[test]
    fn groups_are_chosen_by_name_and_the_longest_rule_decides() {
        let text = "\u{feff}# a comment\nUser-agent: *\nDisallow: /\n\nuser-agent: other\nUser-Agent: Haft\n\
            Disallow: /private # why\nAllow: /private/open\nDisallow:\nAllow: /same\nDisallow: /same\n\
            User-agent: third\nDisallow: /third\n\nUser-agent: haft/1.0\nDisallow: /gr\u{fc}n\nCrawl-delay: 7\n";
        let rules = RobotsRules::parse(text, "haft/0.1");
        let rows = [
            ("/", None),
            ("/private/x", Some("Disallow: /private")),
            ("/private/open/x", None),
            ("/same", None),
            ("/third", None),
            ("/gr%c3%bcn", Some("Disallow: /gr%C3%BCn")),
        ];
        for (path, expect) in rows {
            assert_eq!(rules.forbids(path).as_deref(), expect, "{path}");
        }
        let others = RobotsRules::parse(text, "curious");
        assert_eq!(others.forbids("/x").as_deref(), Some("Disallow: /"));
        assert_eq!(RobotsRules::parse("Disallow: /", "haft").forbids("/"), None);
        assert!(RobotsRules::unreachable(503).forbids("/").is_some());
    }
}
