//! Tools with UI pages, one for each file of a folder: only for tests, as no tool of haft's own has a page.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft::arguments::Arguments;
use haft::error::ToolError;
use haft::future::BoxFuture;
use haft::spec::{ToolName, ToolPage, ToolSpec, ToolUi};
use haft::tool::{PreparedCall, Tool};
use haft::workspace::Workspace;
use haft_builtins::Builtin;
use serde_json::json;

/// Serves the current contents of the file as its page.
struct PageTool {
    spec: Arc<ToolSpec>,
    file: PathBuf,
}

impl Tool for PageTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn workspace(&self) -> Option<&Workspace> {
        None
    }

    fn prepare(self: Arc<Self>, _: &Arguments) -> Result<Box<dyn PreparedCall>, ToolError> {
        Err(ToolError::failed("it has a page and nothing else"))
    }

    fn page(&self, _most: usize) -> BoxFuture<'_, Result<ToolPage, ToolError>> {
        Box::pin(async {
            let html = self.file.extension().is_some_and(|ext| ext == "html");
            let media_type = if html { "text/html" } else { "text/plain" };
            let unavailable = |_| ToolError::unavailable("the page is gone");
            Ok(ToolPage {
                media_type: media_type.to_owned(),
                bytes: std::fs::read(&self.file).map_err(unavailable)?,
            })
        })
    }
}

/// Returns a tool for each file, named after the file without its extension.
pub(crate) fn tools(folder: &str) -> Vec<Builtin> {
    let files = std::fs::read_dir(Path::new(folder)).into_iter().flatten();
    let tool = |file: PathBuf| {
        let stem = file.file_stem()?.to_str()?;
        let schema = json!({"type": "object", "properties": {}});
        let mut spec = ToolSpec::new(ToolName::new(stem).ok()?, "Has a page.", schema);
        spec.ui = Some(ToolUi {
            resource_uri: format!("ui://tests/{stem}"),
            ..ToolUi::default()
        });
        let spec = Arc::new(spec);
        Some(Builtin {
            tool: Arc::new(PageTool { spec, file }),
            bundle: "",
            default: true,
        })
    };
    let files = files.flatten().map(|entry| entry.path());
    files.filter_map(tool).collect()
}
