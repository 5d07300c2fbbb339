//! The file tools for the registry: descriptions, permissions, and the work on a blocking thread.

use haft::context::CallContext;
use haft::error::ToolError;
use haft::permission::Permission;
use haft::result::ToolResult;
use haft::spec::{Risk, ToolSpec};
use haft::tool::{Depth, Intent, TypedTool};
use haft::workspace::Workspace;

use crate::describe::{builtin, known_as, read_only, writes};
use crate::files::edit::{EditFileData, EditFileInput};
use crate::files::patch::{ApplyPatchData, ApplyPatchInput};
use crate::files::read::{ReadFileData, ReadFileInput};
use crate::files::transfer::{DeleteFileData, DeleteFileInput, MoveFileData, MoveFileInput};
use crate::files::write::{WriteFileData, WriteFileInput};
use crate::files::{FileCaller, Files, edit, patch, preview, read, transfer, write};
use crate::work::blocking;

/// The name of the bundle, and the category of its tools.
pub(crate) const FILES: &str = "files";

/// The tool `read_file`.
#[derive(Debug)]
pub struct ReadFile(pub Files);

impl TypedTool for ReadFile {
    const NAME: &'static str = "read_file";
    const DESCRIPTION: &'static str = "Read lines of a text file, unchanged and without line numbers; by default the first 400. \
        data.total_lines is the number of lines; start_line and max_lines page through them. Lines over 16 \
        KiB are cut. For a file that is not text, returns its type and size. Paths are literal, below the \
        workspace.";
    type Input = ReadFileInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        let spec = read_only(builtin::<ReadFileData>(spec, FILES));
        known_as(spec, &["cat", "view", "open", "head"])
    }

    fn workspace(&self) -> Option<&Workspace> {
        Some(&self.0.workspace)
    }

    fn intent(&self, input: &Self::Input, _: Depth) -> Result<Intent, ToolError> {
        let claim = self.0.workspace.claim(&input.path)?;
        Ok(Intent::of([Permission::read(claim)]).with_stated(&["path", "start_line", "max_lines"]))
    }

    async fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let (files, caller) = (self.0.clone(), FileCaller::of(context, &self.0));
        blocking(move |stop| read::read_file(&files, &input, &caller, stop)).await
    }
}

/// The tool `write_file`.
#[derive(Debug)]
pub struct WriteFile(pub Files);

impl TypedTool for WriteFile {
    const NAME: &'static str = "write_file";
    const DESCRIPTION: &'static str = "Write a whole text file and create missing folders. The old text stays until the new one is on disk. \
        mode=append adds at the end, mode=create fails if the file exists. Read an existing file in this run \
        before you overwrite it. JSON, TOML and YAML are parsed afterwards: see data.check. To change parts \
        of a file, use edit_file.";
    type Input = WriteFileInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        let spec = writes(builtin::<WriteFileData>(spec, FILES), Risk::High);
        known_as(spec, &["save", "create_file"])
    }

    fn workspace(&self) -> Option<&Workspace> {
        Some(&self.0.workspace)
    }

    fn intent(&self, input: &Self::Input, depth: Depth) -> Result<Intent, ToolError> {
        let claim = self.0.workspace.claim(&input.path)?;
        Ok(Intent::of([Permission::write(claim)])
            .with_stated(&["path", "content"])
            .with_conditions(depth, || self.0.checks([input.path.as_str()]))
            .with_preview(depth, || {
                preview::changes_or_none(preview::write(&self.0, input))
            }))
    }

    async fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let (files, caller) = (self.0.clone(), FileCaller::of(context, &self.0));
        let work = move |_: &(dyn Fn() -> bool + Sync)| write::write_file(&files, &input, &caller);
        let (mut data, place) = blocking(work).await?;
        self.0.run_check(&place, &mut data.check, context).await;
        write::result(&data)
    }
}

/// The tool `edit_file`.
#[derive(Debug)]
pub struct EditFile(pub Files);

impl TypedTool for EditFile {
    const NAME: &'static str = "edit_file";
    const DESCRIPTION: &'static str = "Change parts of a text file that you have read in this run. Each edit replaces the exact text find \
        (which must occur once, or set all=true), or the lines start_line to end_line (end_line=start_line-1 \
        inserts). All edits refer to the file as it is before the call, must not overlap, and are applied \
        together or not at all. data.diff shows what changed.";
    type Input = EditFileInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        let spec = writes(builtin::<EditFileData>(spec, FILES), Risk::High);
        known_as(spec, &["replace", "str_replace"])
    }

    fn workspace(&self) -> Option<&Workspace> {
        Some(&self.0.workspace)
    }

    fn intent(&self, input: &Self::Input, depth: Depth) -> Result<Intent, ToolError> {
        let claim = self.0.workspace.claim(&input.path)?;
        // The diff shows lines around each change.
        let permissions = [Permission::write(claim.clone()), Permission::read(claim)];
        Ok(Intent::of(permissions)
            .with_stated(&["path", "edits"])
            .with_conditions(depth, || self.0.checks([input.path.as_str()]))
            .with_preview(depth, || {
                preview::changes_or_none(preview::edit(&self.0, input))
            }))
    }

    async fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let (files, caller) = (self.0.clone(), FileCaller::of(context, &self.0));
        let work = move |_: &(dyn Fn() -> bool + Sync)| edit::edit_file(&files, &input, &caller);
        let (mut data, place) = blocking(work).await?;
        self.0.run_check(&place, &mut data.check, context).await;
        edit::result(&data)
    }
}

/// The tool `apply_patch`.
#[derive(Debug)]
pub struct ApplyPatch(pub Files);

impl TypedTool for ApplyPatch {
    const NAME: &'static str = "apply_patch";
    const DESCRIPTION: &'static str = "Add, change, move and delete several text files with one patch. All of it is applied, or nothing. \
        Send a unified diff as git writes it, or `*** Begin Patch`, sections, `*** End Patch`. A section is \
        `*** Add File: PATH` with + lines; `*** Update File: PATH`, perhaps `*** Move to: PATH`, then hunks: \
        `@@` or `@@ a line above the change`, then lines that begin with a blank (stays), - (removed) or + \
        (added); or `*** Delete File: PATH`. Show about three lines around each change, as they are in the \
        file. Read a file in this run before you change, move or delete it. data.files has the result for \
        each file.";
    type Input = ApplyPatchInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        let spec = writes(builtin::<ApplyPatchData>(spec, FILES), Risk::High);
        known_as(spec, &["patch", "diff", "multi_edit"])
    }

    fn workspace(&self) -> Option<&Workspace> {
        Some(&self.0.workspace)
    }

    fn intent(&self, input: &Self::Input, depth: Depth) -> Result<Intent, ToolError> {
        Ok(Intent::of(patch::permissions(&self.0, input)?)
            .with_stated(&["patch"])
            .with_conditions(depth, || patch::checks(&self.0, input))
            .with_preview(depth, || {
                preview::changes_or_none(preview::patch(&self.0, input))
            }))
    }

    async fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let (files, caller) = (self.0.clone(), FileCaller::of(context, &self.0));
        let work = move |stop: &(dyn Fn() -> bool + Sync)| {
            patch::apply_patch(&files, &input, &caller, stop)
        };
        let (mut data, places) = blocking(work).await?;
        for (file, place) in data.files.iter_mut().zip(&places) {
            if let Some(place) = place {
                self.0.run_check(place, &mut file.check, context).await;
            }
        }
        patch::result(&data)
    }
}

/// The tool `move_file`.
#[derive(Debug)]
pub struct MoveFile(pub Files);

impl TypedTool for MoveFile {
    const NAME: &'static str = "move_file";
    const DESCRIPTION: &'static str = "Move or rename a file, link or folder within the workspace and create missing folders. \
        overwrite=true replaces an existing file; a folder is never replaced.";
    type Input = MoveFileInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        let spec = writes(builtin::<MoveFileData>(spec, FILES), Risk::High);
        known_as(spec, &["rename", "mv"])
    }

    fn workspace(&self) -> Option<&Workspace> {
        Some(&self.0.workspace)
    }

    fn intent(&self, input: &Self::Input, depth: Depth) -> Result<Intent, ToolError> {
        Ok(Intent::of(transfer::move_permissions(&self.0, input)?)
            .with_stated(&["from", "to"])
            .with_preview(depth, || {
                preview::changes_or_none(preview::transfer(&self.0, input))
            }))
    }

    async fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let (files, caller) = (self.0.clone(), FileCaller::of(context, &self.0));
        blocking(move |_| transfer::move_file(&files, &input, &caller)).await
    }
}

/// The tool `delete_file`; off by default.
#[derive(Debug)]
pub struct DeleteFile(pub Files);

impl TypedTool for DeleteFile {
    const NAME: &'static str = "delete_file";
    const DESCRIPTION: &'static str = "Delete a file or link permanently; with recursive=true a folder and everything in it. Of a link, \
        only the link is deleted.";
    type Input = DeleteFileInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        let spec = writes(builtin::<DeleteFileData>(spec, FILES), Risk::Critical);
        known_as(spec, &["remove", "rm", "unlink"])
    }

    fn workspace(&self) -> Option<&Workspace> {
        Some(&self.0.workspace)
    }

    fn intent(&self, input: &Self::Input, depth: Depth) -> Result<Intent, ToolError> {
        Ok(Intent::of(transfer::delete_permissions(&self.0, input)?)
            .with_stated(&["path"])
            .with_preview(depth, || {
                preview::changes_or_none(preview::delete(&self.0, input))
            }))
    }

    async fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let (files, caller) = (self.0.clone(), FileCaller::of(context, &self.0));
        blocking(move |_| transfer::delete_file(&files, &input, &caller)).await
    }
}
