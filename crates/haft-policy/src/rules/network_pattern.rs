//! `NetworkPattern`: the hosts that commands connect to, as `Network(…)` rules name them.

use std::net::IpAddr;

use crate::address::port_of;
use crate::address::{check_host, socket_path};
use crate::commands::parts::{CommandLine, CommandPart};
use crate::network_bundle::{BUNDLES, NetworkBundle};
use crate::rules::pattern::DomainPattern;
use crate::rules::request_pattern::{RequestPattern, RequestView};

/// The ports that an allow rule covers if it names a host without port.
const DEFAULT_PORTS: [u16; 2] = [80, 443];

/// The prefix of a rule for a public name that permits the private address it resolves to.
const PRIVATE_PREFIX: &str = "private:";

impl NetworkBundle {
    /// Whether a part of this command line is one of its programs, by name: such a program connects to all its hosts.
    pub fn is_used_by(&self, line: &CommandLine) -> bool {
        line.parts.iter().any(|part| self.has_program(part))
    }

    /// Whether this command is one of its programs, by name.
    pub(crate) fn has_program(&self, part: &CommandPart) -> bool {
        let is_one = |name: &str| self.programs.contains(&strip_version(name));
        let module = || module_of(part.argv.as_deref()?);
        part.program().is_some_and(is_one) || module().is_some_and(is_one)
    }

    /// Returns the rule for all its hosts.
    fn rule(&self) -> String {
        format!("Network({})", self.name)
    }
}

/// Returns the name of a program without folders and version: `pip3.11` becomes `pip`.
fn strip_version(name: &str) -> &str {
    let name = name.rsplit('/').next().unwrap_or(name);
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// Returns the module that Python runs: `pip` for `python3 -m pip`.
fn module_of(argv: &[String]) -> Option<&str> {
    match argv {
        [program, option, module, ..] if option == "-m" => {
            (strip_version(program) == "python").then_some(module.as_str())
        }
        _ => None,
    }
}

/// Replaces the rules that together cover every host of a bundle with the bundle's rule.
pub(crate) fn with_bundles(rules: &[String]) -> Vec<String> {
    let whole = |bundle: &&NetworkBundle| {
        let mut hosts = bundle.hosts.iter();
        hosts.all(|host| rules.contains(&format!("Network({host})")))
    };
    let whole: Vec<&NetworkBundle> = BUNDLES.iter().filter(whole).collect();
    let is_in = |rule: &String| {
        let mut hosts = whole.iter().flat_map(|bundle| bundle.hosts);
        hosts.any(|host| *rule == format!("Network({host})"))
    };
    let others = rules.iter().filter(|rule| !is_in(rule)).cloned();
    let bundles = whole.iter().map(|bundle| bundle.rule());
    bundles.chain(others).collect()
}

/// A host with its port: `example.com`, `*.example.com`, `example.com:8443`, `private:example.com:443`, a bundle such as
/// `npm`, or one socket of this machine: `unix:/run/postgresql/.s.PGSQL.5432`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NetworkPattern {
    hosts: Box<[DomainPattern]>,
    port: Option<u16>,
    /// Whether it names one host and one port and marks the host as private: by its name, or by the prefix.
    opens_private: bool,
    /// The socket, as hosts are written.
    socket: Option<Box<str>>,
    /// The requests there that it covers; `None` for all, and for all else that a connection carries.
    request: Option<RequestPattern>,
}

/// A connection, or a request on one, as a rule is compared with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionView<'a> {
    /// The host in its canonical form.
    pub(crate) host: &'a str,
    pub(crate) port: Option<u16>,
    /// The request, if it is known.
    pub(crate) request: Option<&'a RequestView<'a>>,
}

impl NetworkPattern {
    /// Parses a pattern; `None` if the text names no host.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some(bundle) = BUNDLES.iter().find(|bundle| bundle.name == text) {
            let hosts = bundle.hosts.iter().map(|host| DomainPattern::parse(host));
            return Some(Self {
                hosts: hosts.collect::<Option<_>>()?,
                port: None,
                opens_private: false,
                socket: None,
                request: None,
            });
        }
        if socket_path(text).is_some() {
            return Some(Self {
                hosts: Box::default(),
                port: None,
                opens_private: true,
                socket: Some(text.into()),
                request: None,
            });
        }
        if let Some(place) = text.strip_prefix(PRIVATE_PREFIX) {
            let place = Self::host_and_port(place)?;
            return place.is_exact().then_some(Self {
                opens_private: true,
                ..place
            });
        }
        Self::host_and_port(text)
    }

    /// Parses a host with or without a port, but neither a bundle nor the prefix `private:`.
    pub(crate) fn host_and_port(text: &str) -> Option<Self> {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port.parse().ok()?)),
            _ => (text, None),
        };
        let pattern = DomainPattern::parse(host)?;
        let exact = port.is_some() && pattern.is_exact();
        Some(Self {
            opens_private: exact && check_host(host).is_err(),
            hosts: [pattern].into(),
            port,
            socket: None,
            request: None,
        })
    }

    /// Limits it to these requests; `None` for a socket, on which no request is known.
    pub(crate) fn with_request(self, request: RequestPattern) -> Option<Self> {
        self.socket.is_none().then_some(Self {
            request: Some(request),
            ..self
        })
    }

    /// Whether it covers some requests of its hosts and not others.
    pub(crate) fn judges_requests(&self) -> bool {
        self.request.is_some()
    }

    /// Whether it names a port.
    pub(crate) fn has_port(&self) -> bool {
        self.port.is_some()
    }

    /// Whether an allow rule covers a connection or a request on one.
    pub(crate) fn allows(&self, at: ConnectionView<'_>) -> bool {
        let of_request = || match &self.request {
            Some(own) => own.allows(at.request),
            None => true,
        };
        self.allows_at(at.host, at.port) && of_request()
    }

    /// Whether a deny or ask rule covers a connection or a request on one: at every port if it names none.
    pub(crate) fn forbids(&self, at: ConnectionView<'_>) -> bool {
        let of_request = || match &self.request {
            Some(own) => own.forbids(at.request),
            None => true,
        };
        self.forbids_at(at.host, at.port) && of_request()
    }

    /// Whether an allow rule names this place, with the host in its canonical form.
    pub(crate) fn allows_at(&self, host: &str, port: Option<u16>) -> bool {
        if self.socket.is_some() {
            return self.is_socket(host);
        }
        let fits = match self.port {
            Some(own) => port == Some(own),
            None => port.is_some_and(|port| DEFAULT_PORTS.contains(&port)),
        };
        fits && self.names(host)
    }

    /// Whether a deny or ask rule names this place, with the host in its canonical form.
    pub(crate) fn forbids_at(&self, host: &str, port: Option<u16>) -> bool {
        if self.socket.is_some() {
            return self.is_socket(host);
        }
        let fits = self.port.is_none() || port.is_none() || self.port == port;
        fits && self.names(host)
    }

    /// Whether it names one host and one port and marks the host as private: then it permits connecting to a private address.
    /// A rule for a public name does not, whatever the name may resolve to later.
    pub(crate) fn opens_private(&self) -> bool {
        self.opens_private
    }

    /// Whether a deny or ask rule with this pattern covers every connection that an allow with the other covers.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        if self.socket.is_some() || other.socket.is_some() {
            return self.socket == other.socket;
        }
        let names = |host: &DomainPattern| self.hosts.iter().any(|own| own.covers(host));
        let requests = match (&self.request, &other.request) {
            (None, _) => true,
            (Some(wide), Some(narrow)) => wide.covers(narrow),
            (Some(_), None) => false,
        };
        let at_port = self.port.is_none() || self.port == other.port;
        at_port && requests && other.hosts.iter().all(names)
    }

    /// Whether a connection to the one place that this pattern names may be one that the other covers.
    pub(crate) fn may_meet(&self, other: &Self) -> bool {
        if self.socket.is_some() || other.socket.is_some() {
            return self.socket == other.socket || !other.hosts.is_empty();
        }
        let at_port = other.port.is_none() || other.port == self.port;
        let meets = |host: &DomainPattern| other.hosts.iter().any(|wide| wide.covers(host));
        at_port && self.hosts.iter().any(meets)
    }

    /// Whether an allow rule with this pattern allows all that one with the other allows. Some `false` answers are wrong.
    pub(crate) fn allows_all_of(&self, other: &Self) -> bool {
        let is_default = |port: u16| DEFAULT_PORTS.contains(&port);
        let at_port = match self.port {
            None => other.port.is_none_or(is_default),
            port => other.port == port,
        };
        at_port && self.covers(other)
    }

    /// The same for deny and ask rules.
    pub(crate) fn forbids_all_of(&self, other: &Self) -> bool {
        let requests = match (&self.request, &other.request) {
            (Some(wide), Some(narrow)) => wide.forbids_all_of(narrow),
            (wide, _) => wide.is_none(),
        };
        requests && self.covers(other)
    }

    /// Whether it names one host and one port.
    pub(crate) fn is_exact(&self) -> bool {
        self.socket.is_some()
            || self.port.is_some() && matches!(&*self.hosts, [host] if host.is_exact())
    }

    /// Returns the hosts that it names; none for a socket.
    pub(crate) fn hosts(&self) -> &[DomainPattern] {
        &self.hosts
    }

    /// Returns the port that it names.
    pub(crate) fn port(&self) -> Option<u16> {
        self.port
    }

    /// Returns the socket that it names, as hosts are written.
    pub(crate) fn socket(&self) -> Option<&str> {
        self.socket.as_deref()
    }

    fn is_socket(&self, host: &str) -> bool {
        self.socket.as_deref() == Some(host)
    }

    /// Returns the port that it names, of hosts elsewhere: at those of this machine commands have servers of their own.
    pub(crate) fn port_elsewhere(&self) -> Option<u16> {
        let is_here = ["localhost", "127.0.0.1", "[::1]"]
            .iter()
            .any(|host| self.opens_private && self.names(host));
        self.port.filter(|_| !is_here)
    }

    fn names(&self, host: &str) -> bool {
        let mut hosts = self.hosts.iter();
        hosts.any(|pattern| pattern.matches_canonical(host))
    }
}

/// Returns the port of a URL if it is not its scheme's default. Without a scheme, both `http` and `https` count as the scheme.
pub(crate) fn unusual_port(url: &str) -> Option<u16> {
    let usual = match url.split_once("://") {
        Some(("http", _)) => &DEFAULT_PORTS[..1],
        Some(("https", _)) => &DEFAULT_PORTS[1..],
        Some(_) => &[],
        None => &DEFAULT_PORTS[..],
    };
    port_of(url).filter(|port| !usual.contains(port))
}

/// Returns the rule that allows a connection to this host and port, and to the private addresses in `leads_to`.
pub(crate) fn rule_for(host: &str, port: Option<u16>, leads_to: &[IpAddr]) -> String {
    format!("Network({})", place_for(host, port, leads_to))
}

/// Returns how a rule names this host and port, and the private addresses in `leads_to`.
pub(crate) fn place_for(host: &str, port: Option<u16>, leads_to: &[IpAddr]) -> String {
    let private = check_host(host).is_err();
    match port {
        _ if socket_path(host).is_some() => host.to_owned(),
        Some(port) if private => format!("{host}:{port}"),
        Some(port) if !leads_to.is_empty() => format!("{PRIVATE_PREFIX}{host}:{port}"),
        Some(port) if !DEFAULT_PORTS.contains(&port) => format!("{host}:{port}"),
        _ => host.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{BUNDLES, NetworkBundle, NetworkPattern, port_of, rule_for, with_bundles};
    use crate::commands::parts::CommandLine;
    use crate::rules::pattern::canonical_host;

    #[test]
    fn hosts_ports_and_bundles_are_read() {
        for (text, host, port, allows, forbids) in [
            ("example.com", "example.com", 443, true, true),
            ("example.com", "EXAMPLE.com.", 80, true, true),
            ("example.com", "example.com", 22, false, true),
            ("example.com", "www.example.com", 443, false, false),
            ("*.example.com", "a.b.example.com", 443, true, true),
            ("*.example.com", "example.com", 443, false, false),
            ("example.com:8443", "example.com", 8443, true, true),
            ("example.com:8443", "example.com", 443, false, false),
            ("npm", "registry.npmjs.org", 443, true, true),
            ("npm", "npm", 443, false, false),
            ("[2001:db8::1]:8443", "[2001:db8::1]", 8443, true, true),
            ("*", "example.com", 443, true, true),
            ("unix:/run/x.sock", "unix:/run/x.sock", 0, true, true),
            ("unix:/run/X.sock", "unix:/run/X.sock", 0, true, true),
            ("unix:/run/x.sock", "unix:/run/X.sock", 0, false, false),
            ("unix:/run/x.sock", "unix:/run/y.sock", 0, false, false),
            ("unix:/run/x.sock", "x.sock", 443, false, false),
            ("*", "unix:/run/x.sock", 0, false, true),
            // An address matches however it is spelled.
            ("1.1.1.1", "[::ffff:1.1.1.1]", 443, true, true),
            ("1.1.1.1", "[::ffff:101:101]", 443, true, true),
            ("[::ffff:1.1.1.1]", "1.1.1.1", 443, true, true),
            ("[2001:0db8:0::1]", "[2001:db8::1]", 443, true, true),
            (
                "xn--bcher-kva.example",
                "XN--bcher-kva.example",
                443,
                true,
                true,
            ),
        ] {
            let pattern = NetworkPattern::parse(text).unwrap();
            assert_eq!(
                pattern.allows_at(&canonical_host(host), Some(port)),
                allows,
                "{text} {host}:{port}"
            );
            assert_eq!(
                pattern.forbids_at(&canonical_host(host), Some(port)),
                forbids,
                "{text} {host}:{port}"
            );
        }
        for text in [
            "",
            "https://example.com/",
            "example.com:x",
            "a b",
            "example.com:99999",
            "private:example.com",
            "private:*.example.com:443",
            "private:npm",
            "unix:x",
            "unix:/run/../x",
            "unix:/run/*/",
            "private:unix:/run/x",
        ] {
            assert_eq!(NetworkPattern::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_suggested_rule_covers_the_connection_and_every_bundle_can_be_read() {
        for (host, port) in [
            ("example.com", 443),
            ("example.com", 8443),
            ("pypi.org", 443),
        ] {
            let rule = rule_for(host, Some(port), &[]);
            let inner = rule
                .strip_prefix("Network(")
                .unwrap()
                .strip_suffix(')')
                .unwrap();
            assert!(
                NetworkPattern::parse(inner)
                    .unwrap()
                    .allows_at(host, Some(port)),
                "{rule}"
            );
        }
        for (address, port) in [
            ("example.com:8443", Some(8443)),
            ("https://example.com/a:1", Some(443)),
            ("http://localhost:3000/x?y=z:4", Some(3000)),
            ("http://[::1]/", Some(80)),
            ("[::1]:5", Some(5)),
            ("example.com", None),
        ] {
            assert_eq!(port_of(address), port, "{address}");
        }
        for bundle in BUNDLES {
            let pattern = NetworkPattern::parse(bundle.name);
            assert!(pattern.is_some(), "{}", bundle.name);
        }
    }

    #[test]
    fn only_a_rule_that_says_so_opens_a_private_address() {
        for (text, opens) in [
            ("localhost:3000", true),
            ("10.0.0.7:443", true),
            ("[fd12::1]:443", true),
            ("registry.internal:443", true),
            ("unix:/run/x.sock", true),
            ("private:registry.example.com:443", true),
            ("registry.example.com:443", false),
            ("registry.example.com:8443", false),
            ("localhost", false),
            ("*.internal:1", false),
            ("npm", false),
            ("*", false),
        ] {
            let pattern = NetworkPattern::parse(text).unwrap();
            assert_eq!(pattern.opens_private(), opens, "{text}");
        }
        let private = ["10.0.0.7".parse().unwrap()];
        for (host, leads_to, rule) in [
            (
                "registry.example.com",
                &private[..],
                "Network(private:registry.example.com:443)",
            ),
            ("registry.example.com", &[], "Network(registry.example.com)"),
            (
                "registry.internal",
                &private,
                "Network(registry.internal:443)",
            ),
            ("10.0.0.7", &[], "Network(10.0.0.7:443)"),
        ] {
            assert_eq!(rule_for(host, Some(443), leads_to), rule);
        }
    }

    #[test]
    fn a_bundle_is_used_by_its_programs_however_they_are_started() {
        for (line, host, used) in [
            ("npm ci && npm test", "registry.npmjs.org", true),
            ("timeout 60 pnpm install", "registry.npmjs.org", true),
            (".venv/bin/pip3.11 install x", "pypi.org", true),
            (
                "python3 -m venv v && v/bin/python -m pip install x",
                "pypi.org",
                true,
            ),
            ("python3 -m http.server", "pypi.org", false),
            ("make", "pypi.org", false),
            ("npm ci", "pypi.org", false),
            ("cargo build", "static.crates.io", true),
            ("go mod tidy", "sum.golang.org", true),
            ("curl https://github.com", "github.com", false),
            ("./mvnw -q verify", "repo.maven.apache.org", true),
            ("./gradlew build", "repo1.maven.org", true),
            ("./gradlew build", "plugins-artifacts.gradle.org", true),
            ("dotnet restore", "api.nuget.org", true),
            ("bundle install", "index.rubygems.org", true),
            ("composer install", "repo.packagist.org", true),
            ("rebar3 get-deps", "repo.hex.pm", true),
            (
                "Rscript -e 'install.packages(\"x\")'",
                "cloud.r-project.org",
                true,
            ),
            ("micromamba create -n x", "conda.anaconda.org", true),
            ("java -jar app.jar", "repo1.maven.org", false),
        ] {
            let bundle = NetworkBundle::of_host(host).unwrap();
            assert_eq!(bundle.is_used_by(&CommandLine::new(line)), used, "{line}");
        }
        assert_eq!(NetworkBundle::of_host("example.com"), None);
        // A host of two bundles would be found in one alone.
        let mut hosts: Vec<_> = BUNDLES.iter().flat_map(|bundle| bundle.hosts).collect();
        let all = hosts.len();
        hosts.sort_unstable();
        hosts.dedup();
        assert_eq!(hosts.len(), all);
    }

    #[test]
    fn rules_for_all_hosts_of_a_bundle_become_one() {
        let rules = |rules: &[&str]| rules.iter().map(|rule| (*rule).to_owned()).collect();
        for (given, folded) in [
            (
                &[
                    "Network(pypi.org)",
                    "Network(a.example)",
                    "Network(files.pythonhosted.org)",
                ][..],
                &["Network(pypi)", "Network(a.example)"][..],
            ),
            (&["Network(pypi.org)"], &["Network(pypi.org)"]),
            (
                &[
                    "Network(private:pypi.org:443)",
                    "Network(files.pythonhosted.org)",
                ],
                &[
                    "Network(private:pypi.org:443)",
                    "Network(files.pythonhosted.org)",
                ],
            ),
        ] {
            let given: Vec<String> = rules(given);
            assert_eq!(with_bundles(&given), rules(folded));
        }
    }
}
