//! `AgentFolders`: the folders in which agents work, with an application for each, built when the first call comes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::hook::folder::AgentFolder;
use crate::hook::key::SessionKey;
use crate::problem::Problem;
use crate::site::Site;

/// Maximum number of folders that are open at a time.
const MOST: usize = 64;
/// How long a folder's application outlives its last session.
const IDLE: Duration = Duration::from_secs(60 * 60);

/// The place of a folder, empty while its application is being built.
type FolderSlot = Arc<OnceCell<Arc<AgentFolder>>>;

/// The open folders of one user.
#[derive(Debug)]
pub(super) struct AgentFolders {
    /// Where the user's state and variables are.
    pub(super) site: Site,
    slots: Mutex<HashMap<PathBuf, FolderSlot>>,
}

impl AgentFolders {
    /// Creates the set; no folder is open yet.
    pub(super) fn new(site: &Site) -> Self {
        Self {
            site: site.clone(),
            slots: Mutex::default(),
        }
    }

    /// Opens a folder, or returns it if it is open.
    ///
    /// # Errors
    /// Its settings do not load, or calls wait for decisions in as many folders as can be open.
    pub(super) async fn open(&self, path: &Path) -> Result<Arc<AgentFolder>, Problem> {
        self.close_idle();
        let slot = self.slot(path)?;
        let open = || async { AgentFolder::open(&self.site, path).map(Arc::new) };
        match slot.get_or_try_init(open).await {
            Ok(folder) => Ok(Arc::clone(folder)),
            Err(problem) => {
                self.remove_empty(path);
                Err(problem)
            }
        }
    }

    /// The folders in which a session of an agent is open, `first` before the others: an agent may work in several.
    pub(super) fn of_session(
        &self,
        key: &SessionKey,
        first: Option<&Path>,
    ) -> Vec<Arc<AgentFolder>> {
        let slots = self.slots.lock();
        let open = slots
            .iter()
            .filter_map(|(path, slot)| Some((path, slot.get()?)));
        let open = open.filter(|(_, folder)| folder.known(key).is_some());
        let mut open: Vec<_> = open.collect();
        open.sort_by_key(|(path, _)| first.is_none_or(|first| first != **path));
        open.into_iter()
            .map(|(_, folder)| Arc::clone(folder))
            .collect()
    }

    /// Whether no folder is open, once those that were idle for long are closed.
    pub(super) fn is_empty(&self) -> bool {
        self.close_idle();
        self.slots.lock().is_empty()
    }

    /// Closes all folders. Their sessions end.
    pub(super) async fn shut_down(&self) {
        let all = std::mem::take(&mut *self.slots.lock());
        for slot in all.into_values() {
            close(slot).await;
        }
    }

    /// The folder's slot, made if there is none.
    fn slot(&self, path: &Path) -> Result<FolderSlot, Problem> {
        let mut slots = self.slots.lock();
        if !slots.contains_key(path) && slots.len() >= MOST && !make_room(&mut slots) {
            let what = format!("calls in {MOST} folders already wait for decisions");
            return Err(Problem::failed(what).advise("decide some of them: `haft approvals`"));
        }
        Ok(Arc::clone(slots.entry(path.to_owned()).or_default()))
    }

    /// Removes the slot of a folder that could not be opened.
    fn remove_empty(&self, path: &Path) {
        let mut slots = self.slots.lock();
        if slots.get(path).is_some_and(|slot| slot.get().is_none()) {
            slots.remove(path);
        }
    }

    /// Closes the folders in which no agent has worked for [`IDLE`].
    fn close_idle(&self) {
        let mut slots = self.slots.lock();
        let is_idle = |slot: &FolderSlot| {
            let idle = slot.get().and_then(|folder| folder.idle());
            idle.is_some_and(|idle| idle > IDLE)
        };
        for (_, slot) in slots.extract_if(|_, slot| is_idle(slot)) {
            tokio::spawn(close(slot));
        }
    }
}

/// Closes the folder that has had no call for the longest time. False if calls wait for decisions in every folder.
fn make_room(slots: &mut HashMap<PathBuf, FolderSlot>) -> bool {
    let quiet = slots
        .iter()
        .filter_map(|(path, slot)| Some((slot.get()?.quiet()?, path)));
    let longest = quiet.max_by_key(|(quiet, _)| *quiet);
    let longest = longest.map(|(_, path)| path.clone());
    let slot = longest.and_then(|path| slots.remove(&path));
    slot.map(|slot| tokio::spawn(close(slot))).is_some()
}

async fn close(slot: FolderSlot) {
    if let Some(folder) = slot.get() {
        folder.shut_down().await;
    }
}
