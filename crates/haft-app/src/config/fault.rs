//! `SettingsFault`: why settings that changed while haft serves do not load, for the screens that show it.

use parking_lot::Mutex;

/// Why changed settings do not load, as long as they do not.
#[derive(Debug, Default)]
pub(crate) struct SettingsFault(Mutex<Option<String>>);

impl SettingsFault {
    /// Why they do not; none where they do.
    pub(crate) fn get(&self) -> Option<String> {
        self.0.lock().clone()
    }

    /// Puts another in its place; the one before is returned.
    pub(crate) fn replace(&self, fault: Option<String>) -> Option<String> {
        std::mem::replace(&mut *self.0.lock(), fault)
    }
}
