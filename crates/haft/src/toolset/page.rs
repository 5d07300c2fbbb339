//! `ToolEntry::page`: a tool's own page as shown to the user: complete HTML within a size limit; or the reason there is none.

use crate::error::ToolError;
use crate::spec::ToolSpec;
use crate::toolset::{ToolBackend, ToolEntry};

/// Maximum page size in bytes: many times what a form or chart needs, but small enough to hold for every viewer.
pub const LARGEST: usize = 1024 * 1024;

/// The URI scheme of pages (MCP Apps).
const SCHEME: &str = "ui://";

/// Maximum number of characters of a wrong media type that an error shows.
const MAX_SHOWN_TYPE: usize = 80;

impl ToolEntry {
    /// Reads the page that the tool's `ui` names. This is not a call: nothing is judged or recorded, because only the user sees the
    /// page. The code that shows it must isolate it from everything else.
    ///
    /// # Errors
    /// The tool names no page or cannot provide it, or the page is not HTML, not UTF-8, or larger than [`LARGEST`].
    pub async fn page(&self) -> Result<String, ToolError> {
        let spec = self.spec();
        let named = spec.ui.as_ref();
        let named = named.is_some_and(|ui| ui.resource_uri.starts_with(SCHEME));
        let ToolBackend::Local(tool) = &self.run else {
            return Err(no_page(spec));
        };
        if !named {
            return Err(no_page(spec));
        }
        let page = tool.page(LARGEST).await?;
        let wrong = |what: String| ToolError::failed(format!("the page of {} {what}", spec.name));
        let essence = page.media_type.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("text/html") {
            let shown_type: String = essence.chars().take(MAX_SHOWN_TYPE).collect();
            return Err(wrong(format!("is `{shown_type}`, not `text/html`")));
        }
        if page.bytes.len() > LARGEST {
            return Err(wrong("is larger than 1 MiB".to_owned()));
        }
        String::from_utf8(page.bytes).map_err(|_| wrong("is not UTF-8".to_owned()))
    }
}

/// Returns the error of a tool without a page.
pub(crate) fn no_page(spec: &ToolSpec) -> ToolError {
    ToolError::not_found(format!("the tool {} has no page of its own", spec.name))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::LARGEST;
    use crate::arguments::Arguments;
    use crate::error::{ErrorKind, ToolError};
    use crate::future::BoxFuture;
    use crate::spec::{ToolName, ToolPage, ToolSpec, ToolUi};
    use crate::tool::{PreparedCall, Tool};
    use crate::toolset::Toolset;
    use crate::toolset::registry::ToolRegistry;
    use crate::workspace::Workspace;

    /// A tool that has a page but cannot be called.
    struct Paged {
        spec: Arc<ToolSpec>,
        page: Option<ToolPage>,
    }

    impl Tool for Paged {
        fn spec(&self) -> &Arc<ToolSpec> {
            &self.spec
        }

        fn workspace(&self) -> Option<&Workspace> {
            None
        }

        fn prepare(self: Arc<Self>, _: &Arguments) -> Result<Box<dyn PreparedCall>, ToolError> {
            Err(ToolError::failed("nobody calls it"))
        }

        fn page(&self, most: usize) -> BoxFuture<'_, Result<ToolPage, ToolError>> {
            assert_eq!(most, LARGEST);
            let page = self.page.clone();
            Box::pin(async { page.ok_or_else(|| ToolError::unavailable("its server has ended")) })
        }
    }

    async fn read(
        uri: Option<&str>,
        page: Option<ToolPage>,
    ) -> Result<String, (ErrorKind, String)> {
        let name = ToolName::new("paged").unwrap();
        let mut spec = ToolSpec::new(name, "has a page", json!({"type": "object"}));
        spec.ui = uri.map(|uri| ToolUi {
            resource_uri: uri.to_owned(),
            ..ToolUi::default()
        });
        let spec = Arc::new(spec);
        let registry = ToolRegistry::new();
        let paged: Arc<dyn Tool> = Arc::new(Paged { spec, page });
        registry.add_all([paged]).unwrap();
        let snapshot = registry.snapshot();
        let page = snapshot.entry("paged").unwrap().page().await;
        page.map_err(|e| (e.kind(), e.message().to_owned()))
    }

    #[expect(clippy::unnecessary_wraps, reason = "a row may have no page")]
    fn typed(media_type: &str, bytes: impl Into<Vec<u8>>) -> Option<ToolPage> {
        let (media_type, bytes) = (media_type.to_owned(), bytes.into());
        Some(ToolPage { media_type, bytes })
    }

    #[tokio::test]
    async fn a_page_is_html_in_bounds_or_there_is_none() {
        let at = Some("ui://a/b");
        let largest = "x".repeat(LARGEST);
        for (uri, page, expect) in [
            (at, typed("text/html", "<p>hi"), Ok("<p>hi")),
            (at, typed("text/html;profile=mcp-app", "hi"), Ok("hi")),
            (at, typed("Text/HTML ; charset=utf-8", "hi"), Ok("hi")),
            (at, typed("text/html", ""), Ok("")),
            (at, typed("text/html", largest.clone()), Ok(&*largest)),
            (
                at,
                typed("text/html", format!("{largest}x")),
                Err((ErrorKind::Failed, "larger than 1 MiB")),
            ),
            (
                at,
                typed("text/html", vec![0xff]),
                Err((ErrorKind::Failed, "not UTF-8")),
            ),
            (
                at,
                typed("text/plain", "hi"),
                Err((ErrorKind::Failed, "`text/plain`, not")),
            ),
            (
                at,
                typed("text/htmlx", "hi"),
                Err((ErrorKind::Failed, "not `text/html`")),
            ),
            (
                at,
                typed("", "hi"),
                Err((ErrorKind::Failed, "not `text/html`")),
            ),
            (
                at,
                None,
                Err((ErrorKind::Unavailable, "its server has ended")),
            ),
            (
                Some("https://a/b"),
                typed("text/html", "hi"),
                Err((ErrorKind::NotFound, "no page")),
            ),
            (
                None,
                typed("text/html", "hi"),
                Err((ErrorKind::NotFound, "no page")),
            ),
        ] {
            let got = read(uri, page.clone()).await;
            let same = match (&got, &expect) {
                (Ok(text), Ok(expect)) => text == expect,
                (Err((kind, message)), Err((expect, part))) => {
                    kind == expect && message.contains(part)
                }
                _ => false,
            };
            let page = page.map(|page| (page.media_type, page.bytes.len()));
            assert!(same, "{uri:?} {page:?}: {:?}", got.map(|text| text.len()));
        }
    }
}
