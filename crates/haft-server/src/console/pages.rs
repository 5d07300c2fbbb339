//! `Pages`: the built user interface, embedded: one document for all pages, a script and a style sheet.

use std::path::Path;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use sha2::{Digest, Sha256};

/// What the pages may do: run and show what this server sent, and nothing else.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The first path segments that are states of the one document.
const PAGES: [&str; 8] = [
    "overview", "waiting", "runs", "tools", "skills", "memory", "policy", "health",
];

/// The first path segments that programs use: these get JSON, or whatever their routes return.
const PROGRAMS: [&str; 4] = ["api", "mcp", "healthz", "metrics"];

const INDEX: &str = "index.html";

/// Name, type and bytes of the built-in files.
const BUILT: [(&str, &str, &[u8]); 4] = [
    (
        INDEX,
        "text/html; charset=utf-8",
        include_bytes!("../../ui/dist/index.html"),
    ),
    (
        "app.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../../ui/dist/app.js"),
    ),
    (
        "app.css",
        "text/css; charset=utf-8",
        include_bytes!("../../ui/dist/app.css"),
    ),
    (
        "icon.svg",
        "image/svg+xml",
        include_bytes!("../../ui/dist/icon.svg"),
    ),
];

#[derive(Debug)]
struct PageFile {
    name: &'static str,
    media_type: &'static str,
    bytes: Bytes,
    tag: HeaderValue,
}

/// The files, each with an entity tag for conditional requests.
#[derive(Debug)]
pub(crate) struct Pages(Vec<PageFile>);

impl Pages {
    /// Loads the built-in files, replaced by those found in `folder` if it is given.
    pub(crate) fn new(folder: Option<&Path>) -> Self {
        let file = |(name, media_type, built): (&'static str, &'static str, &'static [u8])| {
            let other = folder.and_then(|folder| std::fs::read(folder.join(name)).ok());
            let bytes = other.map_or(Bytes::from_static(built), Bytes::from);
            let digest = Sha256::digest(&bytes);
            let tag = format!("\"{:016x}\"", u64::from_be_bytes(first_eight(&digest)));
            let tag = HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\""));
            PageFile {
                name,
                media_type,
                bytes,
                tag,
            }
        };
        Self(BUILT.into_iter().map(file).collect())
    }

    /// Returns whether a path is a file or a state of the document.
    pub(crate) fn is_page(path: &str) -> bool {
        let path = path.strip_prefix('/').unwrap_or(path);
        let first = path.split('/').next().unwrap_or_default();
        path.is_empty() || PAGES.contains(&first) || BUILT.iter().any(|(name, ..)| *name == path)
    }

    /// Returns whether a browser is opening an address that is not, or no longer, a page, so that a user will read the answer.
    pub(crate) fn is_wrong_address(method: &Method, path: &str, headers: &HeaderMap) -> bool {
        let first = path.strip_prefix('/').unwrap_or(path);
        let first = first.split('/').next().unwrap_or_default();
        let accepts = headers
            .get(ACCEPT)
            .and_then(|accepts| accepts.to_str().ok());
        *method == Method::GET
            && accepts.is_some_and(|accepts| accepts.contains("text/html"))
            && !PROGRAMS.contains(&first)
            && !Self::is_page(path)
    }

    /// Returns the document, which tells the user that there is no such page.
    pub(crate) fn answer_wrong_address(&self, asked: &HeaderMap) -> Response {
        let mut response = self.answer(INDEX, asked);
        if *response.status_mut() == StatusCode::OK {
            *response.status_mut() = StatusCode::NOT_FOUND;
        }
        response
    }

    /// Returns the routes of the pages, other than `/`.
    pub(crate) fn paths() -> impl Iterator<Item = String> {
        let files = BUILT.iter().map(|(name, ..)| format!("/{name}"));
        let states = PAGES
            .iter()
            .flat_map(|page| [format!("/{page}"), format!("/{page}/{{*rest}}")]);
        files.chain(states)
    }

    /// Returns the file at a path, or the document; without a body if the browser already has it.
    pub(crate) fn answer(&self, path: &str, asked: &HeaderMap) -> Response {
        let name = path.strip_prefix('/').unwrap_or(path);
        let exact = self.0.iter().find(|file| file.name == name);
        let index = self.0.iter().find(|file| file.name == INDEX);
        let Some(file) = exact.or(index) else {
            return StatusCode::NOT_FOUND.into_response();
        };
        let has = asked.get(IF_NONE_MATCH).is_some_and(|tag| *tag == file.tag);
        let mut response = if has {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            Body::from(file.bytes.clone()).into_response()
        };
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(file.media_type));
        headers.insert(ETAG, file.tag.clone());
        // Revalidated every time, so that older pages never drive a newer haft.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        add_security_headers(headers);
        response
    }
}

/// Sets the headers that restrict a browser to what this server sent.
pub(crate) fn add_security_headers(headers: &mut HeaderMap) {
    const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
    headers.insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(PAGE_POLICY),
    );
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
}

fn first_eight(bytes: &[u8]) -> [u8; 8] {
    let mut first = [0; 8];
    for (to, from) in first.iter_mut().zip(bytes) {
        *to = *from;
    }
    first
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use http::header::{ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
    use http::{HeaderMap, Method};

    use super::{BUILT, PAGES, Pages};

    #[test]
    fn files_and_states_are_pages_and_nothing_else_is() {
        for (path, expect) in [
            ("/", true),
            ("/app.js", true),
            ("/app.css", true),
            ("/icon.svg", true),
            ("/overview", true),
            ("/waiting", true),
            ("/waiting/ap-1", true),
            ("/runs/r-1/call-2", true),
            ("/tools/fs.read", true),
            ("/nope", false),
            ("/waitingroom", false),
            ("/api/v1/runs", false),
            ("/mcp", false),
            ("/healthz", false),
            ("//evil.example", false),
            ("/app.js.map", false),
            ("/../app.js", false),
        ] {
            assert_eq!(Pages::is_page(path), expect, "{path}");
        }
    }

    #[test]
    fn the_documents_router_has_the_same_pages() {
        let table = include_str!("../../ui/src/routes.json");
        let table: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(table).unwrap();
        let (mut routed, mut served) = (table.keys().collect::<Vec<_>>(), PAGES.to_vec());
        routed.sort_unstable();
        served.sort_unstable();
        assert_eq!(routed, served);
    }

    #[test]
    fn only_a_browser_that_opens_an_address_gets_a_page_for_a_wrong_one() {
        let mut browser = HeaderMap::new();
        browser.insert(ACCEPT, "text/html,*/*;q=0.8".parse().unwrap());
        let mut program = HeaderMap::new();
        program.insert(ACCEPT, "application/json".parse().unwrap());
        for (method, path, headers, expect) in [
            (Method::GET, "/nope", &browser, true),
            (Method::GET, "/run/r-1", &browser, true),
            (Method::GET, "/nope", &program, false),
            (Method::GET, "/nope", &HeaderMap::new(), false),
            (Method::POST, "/nope", &browser, false),
            (Method::GET, "/api/v1/nope", &browser, false),
            (Method::GET, "/mcp", &browser, false),
            (Method::GET, "/metrics", &browser, false),
            (Method::GET, "/runs/r-1", &browser, false),
        ] {
            let is = Pages::is_wrong_address(&method, path, headers);
            assert_eq!(is, expect, "{method} {path}");
        }
        let answer = Pages::new(None).answer_wrong_address(&browser);
        assert_eq!(answer.status(), 404);
        assert!(
            answer.headers()[CONTENT_TYPE]
                .to_str()
                .unwrap()
                .starts_with("text/html")
        );
    }

    #[test]
    fn a_file_is_sent_once_and_then_known_by_its_tag() {
        let pages = Pages::new(None);
        let (none, mut known) = (HeaderMap::new(), HeaderMap::new());
        for path in ["/", "/waiting/ap-1", "/app.js", "/app.css"] {
            let first = pages.answer(path, &none);
            assert_eq!(first.status(), 200, "{path}");
            let policy = first.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
            assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"));
            known.insert(IF_NONE_MATCH, first.headers()[ETAG].clone());
            assert_eq!(pages.answer(path, &known).status(), 304, "{path}");
        }
    }

    #[test]
    fn all_of_it_is_at_most_150_kib_compressed() {
        let mut all = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
        for (_, _, bytes) in BUILT {
            all.write_all(bytes).unwrap();
        }
        let size = all.finish().unwrap().len();
        assert!(size <= 150 * 1024, "{size} bytes");
    }
}
