//! `CommandNote`: the record of an ended command on disk while its changes are being decided.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use std::sync::Arc;

use haft::approval::meaning::Meaning;
use haft::call::{CallId, RunId};
use haft::change::PathText;
use haft::change::collect::{ChangeList, GitStates, ViewCreation};
use haft::error::ToolError;
use haft::result::{Artifact, Failure, ToolResult};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::command::CommandData;
use crate::command::changes::data::{self, AppliedChange, TimesReport, UnappliedChange};
use crate::command::changes::failed;
use crate::command::changes::fate_table::{Fate, FateTable};
use crate::command::changes::ignored_set::IgnoredSummary;
use crate::command::changes::incoming_name::IncomingName;

/// The file with the record of an ended command, next to its changes.
pub(super) const NOTE: &str = "view.json";
/// Maximum size of a note, in bytes.
const MAX_NOTE: u64 = 256 << 20;
/// The record of an ended command. On disk its fates are a map by paths.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CommandNote<F = FateTable> {
    pub(super) v: u32,
    pub(super) run: RunId,
    pub(super) call: CallId,
    /// The command line as shown to the user.
    pub(super) command: String,
    pub(super) since: ViewCreation,
    /// True if the command was approved before it ran, so that ordinary changes need no decision.
    pub(super) approved: bool,
    /// Why rules that seem to allow it do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) uncovered: Option<String>,
    pub(super) said: CommandReport,
    /// The fate of each change.
    pub(super) fates: F,
    /// What changed files of repositories recorded when they were shown.
    #[serde(default, skip_serializing_if = "GitStates::is_empty")]
    pub(super) git: GitStates,
    /// Further names by which links reach changed files, as far as the policy does not allow changing them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) names: BTreeMap<PathText, Vec<PathText>>,
    /// Why there may be more of these names, if there may: then everything is asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) names_unknown: Option<String>,
    /// Files that repositories get or lose in commits and indexes, as far as the policy does not allow changing them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) incoming: Vec<IncomingName>,
    /// Why repositories may get more of these, if they may: then their changes are asked about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) incoming_unknown: Vec<String>,
    /// What the user decides about of that which git ignores.
    #[serde(default, skip_serializing_if = "IgnoredSummary::is_empty")]
    pub(super) ignored: IgnoredSummary,
    /// Changes that were applied so far, as far as a result names them.
    pub(super) applied: Vec<AppliedChange>,
    /// Number of other changes that were applied so far.
    #[serde(default)]
    pub(super) more_applied: u64,
    /// What the changes amount to that the user decides about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) meanings: Vec<Meaning>,
    /// What became of the times of files that were only touched; `None` if that is not decided, or there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) times: Option<TimesReport>,
    /// Number of bytes that could be saved for an undo when the command ended.
    #[serde(default)]
    pub(super) room: u64,
    /// Changes that are never applied.
    pub(super) dropped: Vec<UnappliedChange>,
    /// The workspace's repository if it lies outside: what changes below `.git` was collected from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) repository: Option<PathText>,
}

/// The output and exit of a command, without its changes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct CommandReport {
    pub(super) data: CommandData,
    pub(super) artifacts: Vec<Artifact>,
    #[serde(default)]
    pub(super) notes: Vec<String>,
    pub(super) summary: Option<String>,
    pub(super) strength: Option<String>,
    failure: Option<Failure>,
    operator: Option<String>,
}

impl CommandReport {
    /// Creates the report from a command's result, whose data is a [`CommandData`].
    pub(super) fn of(result: ToolResult) -> Result<Self, ToolError> {
        let data = result.data.as_deref().map_or("{}", RawValue::get);
        let data = serde_json::from_str(data);
        let error = result.error.as_ref();
        Ok(Self {
            data: data.map_err(|error| failed("read the result of", error))?,
            failure: error.map(|error| Failure {
                kind: error.kind(),
                message: error.message().to_owned(),
                advice: error.advice().map(str::to_owned),
            }),
            operator: error.and_then(|error| error.operator_advice().map(str::to_owned)),
            artifacts: result.artifacts,
            notes: result.notes,
            summary: result.summary,
            strength: result.strength,
        })
    }

    /// Returns the command's connections and refusals as lines of bounded length.
    pub(super) fn network(&self) -> Vec<String> {
        let (reached, refused) = (&self.data.network_reached, &self.data.network_refused);
        let reached = reached.iter().map(|place| format!("connected to {place}"));
        reached.chain(refused.iter().cloned()).collect()
    }

    pub(super) fn error(&self) -> Option<ToolError> {
        let failure = self.failure.as_ref()?;
        let mut error = ToolError::new(failure.kind, failure.message.clone());
        if let Some(advice) = &failure.advice {
            error = error.with_advice(advice.clone());
        }
        if let Some(operator) = &self.operator {
            error = error.for_operator(operator.clone());
        }
        Some(error)
    }
}

/// A note as it is on disk.
pub(super) type StoredNote = CommandNote<BTreeMap<PathText, Fate>>;

impl StoredNote {
    /// Returns the note about these changes.
    pub(super) fn about(self, changes: &Arc<ChangeList>) -> CommandNote {
        CommandNote {
            fates: FateTable::of_stored(changes, self.fates),
            v: self.v,
            run: self.run,
            call: self.call,
            command: self.command,
            since: self.since,
            approved: self.approved,
            uncovered: self.uncovered,
            said: self.said,
            git: self.git,
            names: self.names,
            names_unknown: self.names_unknown,
            incoming: self.incoming,
            incoming_unknown: self.incoming_unknown,
            ignored: self.ignored,
            applied: self.applied,
            more_applied: self.more_applied,
            meanings: self.meanings,
            times: self.times,
            room: self.room,
            dropped: self.dropped,
            repository: self.repository,
        }
    }
}

impl CommandNote {
    /// Adds changes that were applied.
    pub(super) fn add_applied(&mut self, changes: impl Iterator<Item = AppliedChange>) {
        self.more_applied += data::add_named(&mut self.applied, changes);
    }
}

/// Reads the note in a view's folder.
pub(super) fn read(folder: &Path) -> io::Result<StoredNote> {
    read_as(folder)
}

/// Reads only when the command of a view started.
pub(super) fn read_since(folder: &Path) -> io::Result<ViewCreation> {
    #[derive(Deserialize)]
    struct NoteHead {
        since: ViewCreation,
    }
    read_as::<NoteHead>(folder).map(|head| head.since)
}

fn read_as<T: DeserializeOwned>(folder: &Path) -> io::Result<T> {
    let file = File::open(folder.join(NOTE))?;
    if file.metadata()?.len() > MAX_NOTE {
        return Err(io::Error::other("its note is too long"));
    }
    Ok(serde_json::from_reader(BufReader::new(file))?)
}
