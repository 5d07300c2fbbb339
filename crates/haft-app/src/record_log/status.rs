//! How the log fares, for `haft doctor`: whether it can be written, how much of it is signed, and whether the anchor has it.

use crate::record_log::anchor::AnchorState;
use crate::record_log::folder::OpenLog;
use crate::record_log::key::{self, SigningKeyError};
use crate::record_log::{LogSettings, RecordLog, checkpoint, folder};

/// The state of the log.
#[derive(Debug)]
pub(crate) struct LogStatus {
    /// Number of runs in it.
    pub(crate) size: u64,
    /// Number of finished runs that are not in it yet.
    pub(crate) pending: usize,
    /// Why it cannot be written, and what mends that.
    pub(crate) fault: Option<(String, String)>,
    /// Where checkpoints go besides, and why the last one did not get there.
    pub(crate) anchor: Option<(String, Option<String>)>,
}

impl RecordLog {
    /// Looks at the log as it is now. A log that does not exist yet is not made.
    pub(crate) fn status(&self) -> LogStatus {
        let LogSettings { place, anchor, .. } = self.settings();
        let exists = place.leaves().symlink_metadata().is_ok();
        let has_head = matches!(folder::head(place), Ok(Some(_)))
            || place.seen(None).is_ok_and(|seen| !seen.is_empty());
        let opened = if exists || has_head {
            OpenLog::open(place).map(drop)
        } else {
            match key::load(place.key.as_deref()) {
                // It is made with the log.
                Ok(_) | Err(SigningKeyError::Missing(_)) => Ok(()),
                Err(error) => Err(error.into()),
            }
        };
        let fault = opened.err();
        let head = folder::head(place).ok().flatten();
        let head = head.and_then(|note| checkpoint::unproved(&note));
        LogStatus {
            size: head.map_or(0, |head| head.size),
            pending: place.pending().list().map_or(0, |runs| runs.len()),
            fault: fault.map(|fault| (fault.to_string(), fault.advice(place))),
            anchor: anchor.as_ref().map(|anchor| {
                let state = AnchorState::read(&place.folder());
                (anchor.describe(), state.fault)
            }),
        }
    }
}
