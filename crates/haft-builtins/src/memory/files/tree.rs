//! `MemoryTree`: the files of a project's memory as a run sees them, and the changes of its command.

use std::collections::BTreeMap;

use haft::context::CallContext;
use haft::error::ToolError;
use haft::memory::{
    MAX_LISTED, MemoryDraft, MemoryFilter, MemoryId, MemoryOperation, MemoryRecord, MemoryScope,
    MemoryState, MemoryUpdate, MemoryWriteMode, ReplacedRecord, Shelf,
};

use crate::memory::files::path::MemoryPath;
use crate::memory::files::text::{listing, number_lines, snippet};
use crate::memory::labels::{labels, note};
use crate::memory::{Memory, asker, to_tool_error};
use haft::text::clip;

/// Maximum number of files per project.
const MAX_FILES: usize = 500;
/// Maximum length of a text that an error repeats, in characters.
const MAX_QUOTED: usize = 1_000;

#[derive(Debug, Default)]
struct MemoryFile {
    content: String,
    /// The accepted record that a change replaces.
    base: Option<ReplacedRecord>,
    /// This run's candidate for the file, with its revision.
    own: Option<(MemoryId, u64)>,
    /// True if the file is deleted from this run's point of view.
    deleted: bool,
}

/// A change, made when the command is complete.
#[derive(Debug)]
enum MemoryEdit {
    Write(String),
    Remove(String),
    Move(String, String),
}

/// The accepted files, overlaid with this run's candidates.
#[derive(Debug)]
pub(super) struct MemoryTree {
    shelf: Shelf,
    files: BTreeMap<String, MemoryFile>,
    edits: Vec<MemoryEdit>,
}

impl MemoryTree {
    /// Loads the files as this run sees them.
    pub(super) async fn load(memory: &Memory, context: &CallContext) -> Result<Self, ToolError> {
        let shelf = memory.shelf(MemoryScope::Project, context).await?;
        let asker = asker(context.principal());
        let mut filter = MemoryFilter {
            shelves: vec![shelf.clone()],
            state: Some(MemoryState::Accepted),
            files: true,
            limit: MAX_LISTED,
            run: None,
        };
        let store = &memory.0.store;
        let mut tree = Self {
            shelf,
            files: BTreeMap::new(),
            edits: Vec::new(),
        };
        for record in store.list(&asker, &filter).await.map_err(to_tool_error)? {
            note(&record.tags, context);
            tree.overlay(record);
        }
        if memory.0.mode == MemoryWriteMode::Candidate {
            filter.state = Some(MemoryState::Candidate);
            filter.run = Some(context.run().clone());
            for record in store.list(&asker, &filter).await.map_err(to_tool_error)? {
                note(&record.tags, context);
                tree.overlay(record);
            }
        }
        Ok(tree)
    }

    /// Overlays the current files with a record.
    fn overlay(&mut self, record: MemoryRecord) {
        let Some(path) = record.path else { return };
        if record.state == MemoryState::Accepted && record.deletes {
            return;
        }
        let file = self.files.entry(path).or_default();
        let this = (record.id, record.revision);
        if record.state == MemoryState::Accepted {
            let (id, revision) = this;
            file.base = Some(ReplacedRecord { id, revision });
        } else {
            file.base = record.replaces;
            file.own = Some(this);
        }
        file.content = record.content;
        file.deleted = record.deletes;
    }

    fn current_files(&self) -> impl Iterator<Item = (&str, &MemoryFile)> {
        let live = self.files.iter().filter(|(_, file)| !file.deleted);
        live.map(|(path, file)| (path.as_str(), file))
    }

    fn file(&self, path: &MemoryPath) -> Option<&MemoryFile> {
        self.files.get(path.as_str()).filter(|file| !file.deleted)
    }

    fn is_dir(&self, path: &MemoryPath) -> bool {
        let prefix = path.prefix();
        path.is_root()
            || self
                .current_files()
                .any(|(name, _)| name.starts_with(&prefix))
    }

    /// Returns the content of a file, or fails if the path is not a file.
    fn content(&self, path: &MemoryPath) -> Result<&str, ToolError> {
        match self.file(path) {
            Some(file) => Ok(&file.content),
            None if self.is_dir(path) => {
                Err(ToolError::failed(format!("The path {path} is not a file.")))
            }
            None => Err(absent(path)),
        }
    }

    /// Runs `view`.
    pub(super) fn view(
        &self,
        path: &MemoryPath,
        range: Option<&[i64]>,
    ) -> Result<String, ToolError> {
        if self.file(path).is_none() && self.is_dir(path) {
            let prefix = path.prefix();
            let below = self
                .current_files()
                .filter_map(|(name, file)| Some((name.strip_prefix(&prefix)?, file.content.len())));
            return Ok(listing(path.as_str(), below));
        }
        let content = self.content(path)?;
        let lines: Vec<&str> = content.split('\n').collect();
        let (from, to) = span(range, lines.len())?;
        let shown = number_lines(&lines[from - 1..to], from);
        Ok(format!(
            "Here's the content of {path} with line numbers:\n{shown}"
        ))
    }

    /// Runs `create`.
    pub(super) fn create(&mut self, path: &MemoryPath, text: &str) -> Result<String, ToolError> {
        self.check_free(path, "File", path)?;
        if self.current_files().count() >= MAX_FILES {
            let message =
                format!("the project's memory holds {MAX_FILES} files, which is the most");
            return Err(ToolError::failed(message).with_advice("delete what is not needed"));
        }
        self.write(path, text.to_owned());
        Ok(format!("File created successfully at: {path}"))
    }

    /// Runs `str_replace`.
    pub(super) fn replace(
        &mut self,
        path: &MemoryPath,
        old: &str,
        new: &str,
    ) -> Result<String, ToolError> {
        let content = self.content(path)?;
        if old.is_empty() {
            return Err(ToolError::invalid_arguments("old_str is empty"));
        }
        let shown = clip(old, MAX_QUOTED);
        let line = |at: usize| content[..at].matches('\n').count();
        let found: Vec<usize> = content.match_indices(old).map(|(at, _)| at).collect();
        let changed = match found[..] {
            [] => {
                return Err(ToolError::failed(format!(
                    "No replacement was performed, old_str `{shown}` did not appear verbatim in {path}."
                )));
            }
            [at] => line(at),
            _ => {
                let lines: Vec<String> =
                    found.iter().map(|at| (line(*at) + 1).to_string()).collect();
                return Err(ToolError::failed(format!(
                    "No replacement was performed. Multiple occurrences of old_str `{shown}` in lines: {}. Please ensure it is unique",
                    lines.join(", ")
                )));
            }
        };
        let edited = content.replacen(old, new, 1);
        let shown = snippet(&edited, changed);
        self.write(path, edited);
        Ok(format!(
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{shown}"
        ))
    }

    /// Runs `insert`.
    pub(super) fn insert(
        &mut self,
        path: &MemoryPath,
        line: i64,
        text: &str,
    ) -> Result<String, ToolError> {
        let content = self.content(path)?;
        let mut lines: Vec<&str> = content.lines().collect();
        let at = usize::try_from(line).ok().filter(|at| *at <= lines.len());
        let at = at.ok_or_else(|| {
            ToolError::invalid_arguments(format!(
                "Invalid `insert_line` parameter: {line}. It should be within the range [0, {}].",
                lines.len()
            ))
        })?;
        lines.insert(at, text.trim_end_matches('\n'));
        let mut edited = lines.join("\n");
        if !edited.ends_with('\n') {
            edited.push('\n');
        }
        self.write(path, edited);
        Ok(format!("The file {path} has been edited."))
    }

    /// Runs `delete`.
    pub(super) fn delete(&mut self, path: &MemoryPath) -> Result<String, ToolError> {
        if path.is_root() {
            let message = format!("Cannot delete the {path} directory itself");
            return Err(ToolError::invalid_arguments(message));
        }
        for name in self.files_at(path, "delete")? {
            self.remove(&name);
            self.edits.push(MemoryEdit::Remove(name));
        }
        Ok(format!("Successfully deleted {path}"))
    }

    /// Runs `rename`.
    pub(super) fn rename(
        &mut self,
        from: &MemoryPath,
        to: &MemoryPath,
    ) -> Result<String, ToolError> {
        if from.is_root() || to.as_str().starts_with(&from.prefix()) {
            let message = format!("{from} cannot be moved into itself");
            return Err(ToolError::invalid_arguments(message));
        }
        let names = self.files_at(from, "rename")?;
        self.check_free(to, "The destination", from)?;
        for name in names {
            let below = name.strip_prefix(from.as_str()).unwrap_or_default();
            let new = MemoryPath::parse(&format!("{to}{below}"))?.to_string();
            let content = self.remove(&name);
            let file = self.files.entry(new.clone()).or_default();
            (file.content, file.deleted) = (content, false);
            self.edits.push(MemoryEdit::Move(name, new));
        }
        Ok(format!("Successfully renamed {from} to {to}"))
    }

    /// Returns the files that a path refers to: the path itself or everything below it.
    fn files_at(&self, path: &MemoryPath, verb: &str) -> Result<Vec<String>, ToolError> {
        let prefix = path.prefix();
        let meant = |name: &str| name == path.as_str() || name.starts_with(&prefix);
        let names: Vec<String> = self
            .current_files()
            .filter(|(name, _)| meant(name))
            .map(|(name, _)| name.to_owned())
            .collect();
        if names.is_empty() {
            let message = format!("The path {path} does not exist");
            let advice = format!("view /memories shows what there is to {verb}");
            return Err(ToolError::not_found(message).with_advice(advice));
        }
        Ok(names)
    }

    /// Fails if something is at a path, or one of its parents is a file other than `moved`.
    fn check_free(
        &self,
        path: &MemoryPath,
        what: &str,
        moved: &MemoryPath,
    ) -> Result<(), ToolError> {
        if self.file(path).is_some() || self.is_dir(path) {
            let message = format!("{what} {path} already exists");
            return Err(ToolError::conflict(message));
        }
        let is_file = |parent: &&str| {
            let file = self.files.get(*parent).is_some_and(|file| !file.deleted);
            file && *parent != moved.as_str()
        };
        match path.parents().find(is_file) {
            Some(file) => Err(ToolError::conflict(format!(
                "{file} is a file, not a directory"
            ))),
            None => Ok(()),
        }
    }

    fn write(&mut self, path: &MemoryPath, content: String) {
        let file = self.files.entry(path.to_string()).or_default();
        (file.content, file.deleted) = (content, false);
        self.edits.push(MemoryEdit::Write(path.to_string()));
    }

    /// Marks a file as deleted and returns its content.
    fn remove(&mut self, name: &str) -> String {
        let file = self.files.entry(name.to_owned()).or_default();
        file.deleted = true;
        std::mem::take(&mut file.content)
    }

    /// Stores all changes or none. Returns their state, or `None` if nothing changed.
    pub(super) async fn save(
        self,
        memory: &Memory,
        context: &CallContext,
    ) -> Result<Option<MemoryState>, ToolError> {
        let mut steps = Vec::new();
        let at_once = memory.0.mode == MemoryWriteMode::External;
        for edit in &self.edits {
            let new = match edit {
                MemoryEdit::Write(path) | MemoryEdit::Move(_, path) => path,
                MemoryEdit::Remove(_) => "",
            };
            if memory.redact(new) != new {
                let message = "the path looks as if it held a secret";
                return Err(ToolError::invalid_arguments(message));
            }
            if at_once {
                steps.push(self.accepted(edit, memory, context).await?);
            } else {
                steps.extend(self.proposed_steps(edit, memory, context).await?);
            }
        }
        if steps.is_empty() {
            return Ok((!self.edits.is_empty()).then_some(MemoryState::Candidate));
        }
        memory.apply(steps, context).await?;
        let state = if at_once {
            MemoryState::Accepted
        } else {
            MemoryState::Candidate
        };
        Ok(Some(state))
    }

    /// Returns the step for an edit that takes effect at once.
    async fn accepted(
        &self,
        edit: &MemoryEdit,
        memory: &Memory,
        context: &CallContext,
    ) -> Result<MemoryOperation, ToolError> {
        let (at, to) = match edit {
            MemoryEdit::Write(path) | MemoryEdit::Remove(path) => (path, path),
            MemoryEdit::Move(from, to) => (from, to),
        };
        let by = context.origin().as_str().to_owned();
        let base = self.files.get(at).and_then(|file| file.base.clone());
        Ok(match (base, edit) {
            (Some(ReplacedRecord { id, revision }), MemoryEdit::Remove(_)) => {
                MemoryOperation::Delete { id, revision }
            }
            (Some(ReplacedRecord { id, revision }), _) => MemoryOperation::Update {
                id,
                revision,
                change: MemoryUpdate {
                    content: Some(memory.redact(self.text(to))),
                    path: Some(to.clone()),
                    // Its labels were recorded when it was read; they stay, together with those of this run.
                    tags: Some(labels(context)).filter(|labels| !labels.is_empty()),
                    by,
                },
            },
            (None, _) => MemoryOperation::Put(self.draft(to, memory, context).await?),
        })
    }

    /// Returns the steps for an edit that the user decides about. A new candidate replaces this run's earlier one for the file.
    async fn proposed_steps(
        &self,
        edit: &MemoryEdit,
        memory: &Memory,
        context: &CallContext,
    ) -> Result<Vec<MemoryOperation>, ToolError> {
        let mut steps = Vec::new();
        let (written, removed) = match edit {
            MemoryEdit::Write(path) => (Some(path), None),
            MemoryEdit::Remove(path) => (None, Some(path)),
            MemoryEdit::Move(from, to) => (Some(to), Some(from)),
        };
        for (path, deletes) in [(removed, true), (written, false)] {
            let Some(path) = path else { continue };
            let file = self.files.get(path);
            if let Some((id, revision)) = file.and_then(|file| file.own.clone()) {
                steps.push(MemoryOperation::Delete { id, revision });
            }
            let base = file.and_then(|file| file.base.clone());
            if deletes && base.is_none() {
                continue;
            }
            let mut draft = self.draft(path, memory, context).await?;
            draft.replaces = base;
            draft.deletes = deletes;
            steps.push(MemoryOperation::Put(draft));
        }
        Ok(steps)
    }

    fn text(&self, path: &str) -> &str {
        self.files.get(path).map_or("", |file| &file.content)
    }

    async fn draft(
        &self,
        path: &str,
        memory: &Memory,
        context: &CallContext,
    ) -> Result<MemoryDraft, ToolError> {
        let shelf = self.shelf.clone();
        let mut draft = memory.draft(shelf, self.text(path), context).await?;
        draft.path = Some(path.to_owned());
        Ok(draft)
    }
}

/// Returns the first and last line of a range, counted from 1, both within the file.
fn span(range: Option<&[i64]>, lines: usize) -> Result<(usize, usize), ToolError> {
    let Some(range) = range else {
        return Ok((1, lines));
    };
    let wrong = || {
        ToolError::invalid_arguments(format!(
            "Invalid `view_range` parameter: {range:?}. It should be within the range of lines of the file: [1, {lines}]"
        ))
    };
    let &[from, to] = range else {
        return Err(wrong());
    };
    let from = usize::try_from(from).map_err(|_| wrong())?;
    let to = match to {
        -1 => lines,
        to => usize::try_from(to).map_err(|_| wrong())?.min(lines),
    };
    if from == 0 || from > to {
        return Err(wrong());
    }
    Ok((from, to))
}

fn absent(path: &MemoryPath) -> ToolError {
    ToolError::not_found(format!(
        "The path {path} does not exist. Please provide a valid path."
    ))
}
