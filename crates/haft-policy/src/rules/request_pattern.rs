//! `RequestPattern`: the requests that a rule for a host covers, by method, path and query: `GET,HEAD /repos/**?page=*`.

pub(crate) mod target;

mod path_glob;

use haft_files::glob::Glob;

use crate::rules::request_pattern::path_glob::{PathGlob, STAR};
use crate::rules::request_pattern::target::{
    PathReadings, RequestTarget, UnclearTarget, normal_query, spell,
};

/// Maximum number of methods in a rule.
const MAX_METHODS: usize = 16;
/// What a rule that cannot be read should look like.
pub(crate) const FORM: &str = "METHOD[,METHOD…] /path, e.g. GET,HEAD /repos/** or * /v1/*/items";

/// A request as rules see it, parsed at most once.
#[derive(Debug)]
pub(crate) struct RequestView<'a> {
    /// The method, if it is known.
    method: Option<&'a str>,
    target: Result<RequestTarget, UnclearTarget>,
    /// The readings of the path in lower case, for rules that deny or ask.
    folded: Vec<String>,
}

impl<'a> RequestView<'a> {
    /// Creates the request for this URL; `None` if it is `host:port`, which says nothing about what is sent.
    pub(crate) fn of(url: &str, method: Option<&'a str>) -> Option<Self> {
        let (_, rest) = url.split_once("://")?;
        let target = match rest.find(['/', '?', '#', '\\']).map(|at| &rest[at..]) {
            Some(target) if target.starts_with('/') => RequestTarget::parse(target),
            Some(target) => RequestTarget::parse(&format!("/{target}")),
            None => RequestTarget::parse("/"),
        };
        let folded = match &target {
            Ok(target) => {
                let readings = target.readings();
                let each = 0..readings.len();
                each.map(|at| readings.nth(at).to_ascii_lowercase())
                    .collect()
            }
            Err(_) => Vec::new(),
        };
        Some(Self {
            method,
            target,
            folded,
        })
    }
}

/// The requests that a rule covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestPattern {
    /// The methods, in upper case; empty for all.
    methods: Box<[Box<str>]>,
    /// The patterns for the readings of a path.
    paths: Box<[PathGlob]>,
    /// The same for rules that deny or ask.
    denied: Box<[PathGlob]>,
    /// A pattern for the query; `None` for any query.
    query: Option<Glob>,
}

impl RequestPattern {
    /// Parses methods and a path.
    ///
    /// # Errors
    /// What is wrong with the text, to follow "it never matches:".
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let Some((methods, path)) = text.split_once(char::is_whitespace) else {
            return Err(format!("{text:?} is not a method and a path"));
        };
        let path = path.trim_start();
        if path.contains(char::is_whitespace) {
            return Err(format!(
                "the path {path:?} has a blank, which URLs write as %20"
            ));
        }
        let (path, query) = split_query(path);
        let readings = readings(path)?;
        let each = || (0..readings.len()).map(|at| readings.nth(at));
        Ok(Self {
            methods: read_methods(methods)?,
            paths: each().map(PathGlob::compile).collect(),
            denied: each().map(PathGlob::for_denial).collect(),
            query: query.map(|query| Glob::parse(&normal_query(query))),
        })
    }

    /// Whether an allow rule covers the request: its method is known, and the path matches however it is read. A connection without a
    /// known request may carry any.
    pub(crate) fn allows(&self, request: Option<&RequestView<'_>>) -> bool {
        let Some(request) = request else {
            return false;
        };
        let (Some(method), Ok(target)) = (request.method, &request.target) else {
            return false;
        };
        let readings = target.readings();
        let count = readings.len().max(self.paths.len());
        let named = self.methods.is_empty() || self.methods.iter().any(|own| **own == *method);
        named
            && (0..count).all(|at| nth(&self.paths, at).matches(readings.nth(at)))
            && self.fits_query(target)
    }

    /// Whether a deny or ask rule covers the request, or may cover it: if nothing is known of its method or path, it does.
    pub(crate) fn forbids(&self, request: Option<&RequestView<'_>>) -> bool {
        let Some(request) = request else {
            return true;
        };
        let same = |method: &str| {
            let mut own = self.methods.iter();
            own.any(|own| own.eq_ignore_ascii_case(method))
        };
        if !self.methods.is_empty() && !request.method.is_none_or(same) {
            return false;
        }
        let Ok(target) = &request.target else {
            return true;
        };
        let count = request.folded.len().max(self.denied.len());
        let path = |at: usize| {
            let found = request.folded.get(at).or_else(|| request.folded.first());
            found.is_some_and(|path| nth(&self.denied, at).forbids(path))
        };
        (0..count).any(path) && self.fits_query(target)
    }

    /// Whether it covers every request that the other covers. Some `false` answers are wrong.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let methods = self.methods.is_empty()
            || !other.methods.is_empty()
                && other
                    .methods
                    .iter()
                    .all(|method| self.methods.contains(method));
        let query = match (&self.query, &other.query) {
            (None, _) => true,
            (Some(wide), Some(narrow)) => wide.covers(narrow),
            (Some(_), None) => false,
        };
        let count = self.paths.len().max(other.paths.len());
        let path = |at: usize| nth(&self.paths, at).covers(nth(&other.paths, at));
        methods && query && (0..count).all(path)
    }

    /// Whether a deny or ask rule with this pattern covers every request that one with the other covers. Some `false` answers are wrong.
    pub(crate) fn forbids_all_of(&self, other: &Self) -> bool {
        let count = self.denied.len().max(other.denied.len());
        let path = |at: usize| nth(&self.denied, at).covers(nth(&other.denied, at));
        self.covers(other) && (0..count).all(path)
    }

    fn fits_query(&self, target: &RequestTarget) -> bool {
        let own = self.query.as_ref();
        own.is_none_or(|own| own.matches(target.query().unwrap_or_default()))
    }
}

/// Returns the pattern for a reading; all are the same where there is one.
fn nth(patterns: &[PathGlob], at: usize) -> &PathGlob {
    patterns.get(at).unwrap_or(&patterns[0])
}

/// Parses the methods, in upper case as they are sent; `*` means all.
fn read_methods(text: &str) -> Result<Box<[Box<str>]>, String> {
    if text == "*" {
        return Ok(Box::default());
    }
    let token = |method: &str| {
        let fine = |byte: u8| byte.is_ascii_alphabetic() || byte == b'-';
        !method.is_empty() && method.len() <= 32 && method.bytes().all(fine)
    };
    let methods: Vec<&str> = text.split(',').collect();
    if methods.len() > MAX_METHODS {
        return Err(format!("it names more than {MAX_METHODS} methods"));
    }
    match methods.iter().find(|method| !token(method)) {
        Some(wrong) => Err(format!("{wrong:?} is not a method")),
        None => Ok(methods
            .iter()
            .map(|method| method.to_ascii_uppercase().into())
            .collect()),
    }
}

/// Splits a pattern at the question mark that begins its query.
fn split_query(pattern: &str) -> (&str, Option<&str>) {
    match pattern.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (pattern, None),
    }
}

/// Returns the readings of a pattern's path, in which [`STAR`] stands for each star that is not escaped.
fn readings(path: &str) -> Result<PathReadings, String> {
    if !path.starts_with('/') {
        return Err(format!("the path {path:?} does not begin with a slash"));
    }
    if path.contains("//") {
        return Err("servers read // in different ways".to_owned());
    }
    if path.contains([STAR, '#']) {
        return Err(format!("no request has the path {path:?}"));
    }
    let mut normal = String::new();
    for (nth, part) in stars_apart(path).iter().enumerate() {
        normal.extend((nth > 0).then_some(STAR));
        normal.push_str(&spell(part).map_err(|why| why.to_string())?);
    }
    if normal.split('/').any(|name| matches!(name, "." | "..")) {
        return Err("paths of requests are judged without . and ..".to_owned());
    }
    PathReadings::of(normal).map_err(|why| why.to_string())
}

/// Splits a pattern at its stars; `\*` is a star of the path itself, `\\` a backslash.
fn stars_apart(pattern: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut signs = pattern.chars().peekable();
    while let Some(sign) = signs.next() {
        let last = parts.last_mut();
        match (sign, last) {
            ('*', _) | (_, None) => parts.push(String::new()),
            ('\\', Some(last)) => {
                last.push(
                    signs
                        .next_if(|next| matches!(next, '*' | '\\'))
                        .unwrap_or(sign),
                );
            }
            (sign, Some(last)) => last.push(sign),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::{RequestPattern, RequestView};

    fn view<'a>(url: &str, method: &'a str) -> Option<RequestView<'a>> {
        RequestView::of(url, (!method.is_empty()).then_some(method))
    }

    #[test]
    fn a_request_is_covered_by_method_path_and_query() {
        for (rule, method, target, allows, forbids) in [
            ("GET /repos/**", "GET", "/repos/a/b?x=1", true, true),
            ("GET /repos/**", "HEAD", "/repos/a", false, false),
            ("GET,HEAD /repos/**", "HEAD", "/repos/a", true, true),
            ("get /repos/**", "GET", "/repos/a", true, true),
            ("GET /repos/**", "get", "/repos/a", false, true),
            ("* /repos/**", "QUERY", "/repos/a", true, true),
            ("DELETE /**", "DELETE", "/", true, true),
            ("GET /repos/**", "", "/repos/a", false, true),
            ("GET /repos/**", "", "/users", false, false),
            ("GET /repos/**", "GET", "/repos/../admin", false, false),
            ("GET /repos/**", "GET", "/repos/%2e%2e/admin", false, false),
            ("GET /admin/**", "GET", "/repos/../admin/x", true, true),
            ("GET /repos/**", "GET", "/repos/..%2fadmin", false, true),
            ("GET /admin/**", "GET", "/repos/..%2fadmin/x", false, true),
            ("GET /admin/**", "GET", "/repos/..;/admin/x", false, true),
            ("GET /admin/**", "GET", "/repos/..%5cadmin/x", false, true),
            ("GET /admin/**", "GET", "/%2561dmin/x", false, true),
            ("GET /admin/**", "GET", "//admin/x", false, true),
            ("GET /admin/**", "GET", "/ADMIN/x", false, true),
            ("GET /admin", "GET", "/admin/", false, true),
            ("GET /admin", "GET", "/admin;v=1", false, true),
            ("GET /repos/**", "GET", "/repos//x", true, true),
            ("GET /p/*/issues", "GET", "/p/a%2Fb/issues", false, true),
            ("GET /p/a%2fb/issues", "GET", "/p/a%2Fb/issues", true, true),
            ("GET /p/a%2Fb/issues", "GET", "/p/a/b/issues", false, true),
            ("GET /p/**", "GET", "/p/a%2Fb/issues", true, true),
            ("GET /a\\*b", "GET", "/a*b", true, true),
            ("GET /a\\*b", "GET", "/axb", false, false),
            ("GET /stra\u{df}e", "GET", "/stra%c3%9fe", true, true),
            ("GET /%61", "GET", "/a", true, true),
            ("GET /a", "GET", "/a%00", false, true),
            ("GET /a", "POST", "/a%00", false, false),
            ("GET /a", "GET", "/%zz", false, true),
            ("GET /a?page=*", "GET", "/a?page=2", true, true),
            ("GET /a?page=*", "GET", "/a?p%61ge=2", true, true),
            ("GET /a?page=*", "GET", "/a", false, false),
            ("GET /a?", "GET", "/a", true, true),
            ("GET /a?", "GET", "/a?x", false, false),
        ] {
            let pattern = RequestPattern::parse(rule).unwrap();
            let request = view(&format!("https://example.com:8443{target}"), method);
            let got = (
                pattern.allows(request.as_ref()),
                pattern.forbids(request.as_ref()),
            );
            assert_eq!(got, (allows, forbids), "{rule}: {method} {target}");
        }
        let pattern = RequestPattern::parse("GET /**").unwrap();
        for (url, allows) in [
            ("https://example.com", true),
            ("https://example.com?x", true),
            ("example.com:443", false),
        ] {
            let request = view(url, "GET");
            assert_eq!(pattern.allows(request.as_ref()), allows, "{url}");
            assert!(pattern.forbids(request.as_ref()), "{url}");
        }
        let long = format!("https://example.com/{}", "a".repeat(1 << 20));
        let request = view(&long, "GET");
        assert!(!pattern.allows(request.as_ref()) && pattern.forbids(request.as_ref()));
    }

    #[test]
    fn a_pattern_that_no_request_matches_is_not_read() {
        for text in [
            "",
            "GET",
            "/repos",
            "GET repos",
            "GET /a b",
            "GET /a/../b",
            "GET /%2e%2e/b",
            "GET /a//b",
            "GET /%",
            "GET /%zz",
            "GET /%00",
            "G(T /a",
            "GET, /a",
            ",GET /a",
            "GET,,POST /a",
            "*,GET /a",
            "GET /a#b",
            "GET https://example.com/",
        ] {
            assert!(RequestPattern::parse(text).is_err(), "{text}");
        }
        let many = vec!["GET"; 17].join(",");
        assert!(RequestPattern::parse(&format!("{many} /a")).is_err());
    }

    #[test]
    fn a_wider_pattern_covers_a_narrower_one() {
        for (wide, narrow, covers) in [
            ("* /**", "GET /a", true),
            ("GET /a/**", "GET /a/b?x=1", true),
            ("GET,POST /a/**", "POST /a/b", true),
            ("GET /a/**", "* /a/b", false),
            ("GET /a?x=*", "GET /a", false),
            ("GET /a?x=*", "GET /a?x=1", true),
            ("GET /a%2Fb/**", "GET /a%2Fb/c", true),
            ("GET /a", "GET /b", false),
        ] {
            let read = |text| RequestPattern::parse(text).unwrap();
            assert_eq!(read(wide).covers(&read(narrow)), covers, "{wide} {narrow}");
        }
    }
}
