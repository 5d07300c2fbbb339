//! `SettingsFault`: why settings that changed while haft serves do not load, for the screens that show it.

use parking_lot::Mutex;

/// Why changed settings do not load; `None` while they do.
#[derive(Debug, Default)]
pub(crate) struct SettingsFault(Mutex<Option<String>>);

impl SettingsFault {
    /// Returns the reason; `None` if they load.
    pub(crate) fn get(&self) -> Option<String> {
        self.0.lock().clone()
    }

    /// Replaces the reason and returns the previous one.
    pub(crate) fn replace(&self, fault: Option<String>) -> Option<String> {
        std::mem::replace(&mut *self.0.lock(), fault)
    }
}
