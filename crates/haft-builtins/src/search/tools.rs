//! The search tools for the registry.

use haft::context::CallContext;
use haft::error::ToolError;
use haft::permission::Permission;
use haft::result::ToolResult;
use haft::spec::ToolSpec;
use haft::tool::{Depth, Intent, TypedTool};
use haft::workspace::Workspace;

use crate::describe::{builtin, known_as, read_only};
use crate::files::tools::FILES;
use crate::files::{FileCaller, Files};
use crate::search::glob::GlobFilesInput;
use crate::search::grep::{GrepFilesData, GrepFilesInput};
use crate::search::list::ListFilesInput;
use crate::search::{EntriesData, glob, grep, list};
use crate::work::blocking;

/// The tool `list_files`.
#[derive(Debug)]
pub struct ListFiles(pub Files);

impl TypedTool for ListFiles {
    const NAME: &'static str = "list_files";
    const DESCRIPTION: &'static str = "List a folder, by default 2 levels deep and at most 200 entries, nearest first. Leaves out what \
        .gitignore names, and hidden files unless hidden=true.";
    type Input = ListFilesInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        let spec = read_only(builtin::<EntriesData>(spec, FILES));
        known_as(spec, &["ls", "dir", "tree", "list_directory"])
    }

    fn workspace(&self) -> Option<&Workspace> {
        Some(&self.0.workspace)
    }

    fn intent(&self, input: &Self::Input, _: Depth) -> Result<Intent, ToolError> {
        let claim = self.0.workspace.claim(&input.path)?;
        Ok(Intent::of([Permission::read(claim)]).with_stated(&["path"]))
    }

    async fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let caller = FileCaller::of(context, &self.0);
        blocking(move |stop| list::list_files(&input, &caller, stop)).await
    }
}

/// The tool `glob_files`.
#[derive(Debug)]
pub struct GlobFiles(pub Files);

impl TypedTool for GlobFiles {
    const NAME: &'static str = "glob_files";
    const DESCRIPTION: &'static str = "Find files by a glob on their path, for example `*.rs` or `src/**/*.{ts,tsx}`. `*.rs` matches at any \
        depth, `/Cargo.toml` only at the top of the folder. Sorted by path, at most 200. Leaves out what \
        .gitignore names, and hidden files unless the pattern names them.";
    type Input = GlobFilesInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        let spec = read_only(builtin::<EntriesData>(spec, FILES));
        known_as(spec, &["find", "fd", "search_files"])
    }

    fn workspace(&self) -> Option<&Workspace> {
        Some(&self.0.workspace)
    }

    fn intent(&self, input: &Self::Input, _: Depth) -> Result<Intent, ToolError> {
        let claim = self.0.workspace.claim(&input.path)?;
        Ok(Intent::of([Permission::read(claim)]).with_stated(&["path"]))
    }

    async fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let caller = FileCaller::of(context, &self.0);
        blocking(move |stop| glob::glob_files(&input, &caller, stop)).await
    }
}

/// The tool `grep_files`.
#[derive(Debug)]
pub struct GrepFiles(pub Files);

impl TypedTool for GrepFiles {
    const NAME: &'static str = "grep_files";
    const DESCRIPTION: &'static str = "Search file contents with a regular expression (Rust syntax). Returns at most 200 matching lines, \
        sorted by path; output=files returns only file names, output=count counts lines. Narrow the search \
        with glob or type. Leaves out binary files, hidden files and what .gitignore names.";
    type Input = GrepFilesInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        let spec = read_only(builtin::<GrepFilesData>(spec, FILES));
        known_as(spec, &["grep", "rg", "ripgrep", "search"])
    }

    fn workspace(&self) -> Option<&Workspace> {
        Some(&self.0.workspace)
    }

    fn intent(&self, input: &Self::Input, _: Depth) -> Result<Intent, ToolError> {
        let claim = self.0.workspace.claim(&input.path)?;
        Ok(Intent::of([Permission::read(claim)]).with_stated(&["path"]))
    }

    async fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let caller = FileCaller::of(context, &self.0);
        blocking(move |stop| grep::grep_files(&input, &caller, stop)).await
    }
}
