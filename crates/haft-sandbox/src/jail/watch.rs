//! Keeps guards in place while a command works in the live workspace.
//!
//! A cover is mounted on a name in the jail's mount namespace. If a program outside renames a file over that name or removes it,
//! the cover is lost, and an ordinary user has no means to prevent that. So the supervisor, which lives in that namespace, watches
//! for it (the kernel reports mount changes and events in folders) and mounts the cover again at once. A file that appears under a
//! guarded name without a cover is renamed. When the command has exited, the workspace is searched, unless all of it was watched.

mod aside;
mod covers;
mod events;
mod holders;
mod walk;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags, openat};

use self::aside::NewName;
use self::covers::{CoverContext, PathCovers};
use self::events::{FileEvent, FileEvents};
use self::walk::{FolderWalk, WalkScope};
use super::guarded_names::GuardedNames;
use super::plan::SupervisorPlan;
use super::root::path_fd;
use crate::guard_event::GuardEvent;

/// How long to wait before watching folders. Shorter commands are not slowed down: their workspace is searched when they exit.
const EVENTS_AFTER: Duration = Duration::from_millis(250);
/// How long to wait before walking the workspace again after events were lost.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// Maximum number of workspace entries examined before the supervisor attends to other events.
const STEP: usize = 512;
/// Maximum number of events reported.
const MOST_EVENTS: usize = 100;

/// Maximum number of event reads after the command has exited, before the workspace is searched instead.
const LAST_READS: usize = 256;

/// Watches over one jail's guards.
#[derive(Debug)]
pub(super) struct GuardWatch<'a> {
    plan: &'a SupervisorPlan,
    names: &'a GuardedNames,
    proc: OwnedFd,
    /// Readable once the jail has been built.
    built: Option<File>,
    live: Option<WatchState>,
    told: GuardReport,
    /// New entries of folders that get none: where each is now, and where it appeared.
    entries: HashMap<PathBuf, PathBuf>,
}

/// The state of the watch over a jail that has been built.
#[derive(Debug)]
struct WatchState {
    workspace: OwnedFd,
    covers: PathCovers,
    events: Option<FileEvents>,
    /// Signals pollers when mounts have changed.
    mounts: Option<OwnedFd>,
    walk: Option<FolderWalk>,
    /// When the next walk starts.
    walk_at: Option<Instant>,
}

impl<'a> GuardWatch<'a> {
    /// Waits for a byte in `built`; `proc` is the `/proc` in which this process sees its own IDs.
    pub(super) fn new(
        plan: &'a SupervisorPlan,
        names: &'a GuardedNames,
        proc: OwnedFd,
        built: OwnedFd,
    ) -> Self {
        Self {
            plan,
            names,
            proc,
            built: Some(built.into()),
            live: None,
            told: GuardReport::default(),
            entries: HashMap::new(),
        }
    }

    /// Returns the descriptors to poll.
    pub(super) fn files(&self) -> Vec<PollFd<'_>> {
        let built = self.built.iter();
        let mut files: Vec<_> = built.map(|file| PollFd::new(file, PollFlags::IN)).collect();
        if let Some(live) = &self.live {
            let events = live.events.iter().map(FileEvents::file);
            files.extend(events.map(|file| PollFd::new(file, PollFlags::IN)));
            let mounts = live.mounts.iter();
            files.extend(mounts.map(|file| PollFd::new(file, PollFlags::PRI)));
        }
        files
    }

    /// Returns when to check even if nothing happens.
    pub(super) fn due(&self) -> Option<Instant> {
        let live = self.live.as_ref()?;
        let walks = live.walk.as_ref().is_some_and(|walk| !walk.is_done());
        let walk = walks.then(Instant::now).or(live.walk_at);
        walk.into_iter().chain(live.covers.due()).min()
    }

    /// Handles what happened; returns whether the command must be killed. Only one poll reports that mounts have changed, so the
    /// caller has to pass it on.
    pub(super) fn look(&mut self, mounts_changed: bool) -> bool {
        self.begin();
        if mounts_changed || self.live.as_ref().is_some_and(WatchState::is_due) {
            self.restore();
        }
        self.read();
        self.step(STEP);
        self.told.ends
    }

    /// Starts watching once the jail has been built.
    fn begin(&mut self) {
        let Some(mut built) = self.built.take() else {
            return;
        };
        match built.read(&mut [0]) {
            Ok(1) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.built = Some(built);
                return;
            }
            // The jail could not be built: these mounts are not its own.
            _ => return,
        }
        let Ok(workspace) = path_fd(&self.plan.workspace) else {
            return;
        };
        let covers = PathCovers::new(self.plan);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let mounts = openat(&self.proc, "self/mountinfo", flags, Mode::empty()).ok();
        self.live = Some(WatchState {
            workspace,
            covers,
            events: None,
            mounts,
            walk: None,
            walk_at: Some(Instant::now() + EVENTS_AFTER),
        });
        // Covers that were lost before the watch started.
        self.restore();
    }

    /// Mounts lost covers again.
    fn restore(&mut self) {
        let Some(live) = &mut self.live else { return };
        let around = CoverContext {
            plan: self.plan,
            names: self.names,
            workspace: live.workspace.as_fd(),
            proc: &self.proc,
        };
        let events = live.covers.restore(&around);
        for event in events {
            self.told.add(event);
        }
    }

    /// Reads the events and acts on them; returns whether there were any.
    fn read(&mut self) -> bool {
        let Some(live) = &mut self.live else {
            return false;
        };
        let events = live.events.as_mut().map_or_else(Vec::new, FileEvents::read);
        let any = !events.is_empty();
        let (mut appeared, mut covers_changed) = (Vec::new(), false);
        for event in events {
            match event {
                FileEvent::Appeared(path, is_folder) => {
                    covers_changed |= live.covers.holds(&path);
                    if self.entries.contains_key(&path) {
                        // It was renamed here.
                    } else if self.names.holds(&path) {
                        appeared.push(path);
                    } else if is_folder && let Some(walk) = &mut live.walk {
                        walk.add(path);
                    }
                }
                FileEvent::Went(path) => covers_changed |= live.covers.holds(&path),
                FileEvent::Lost => {
                    covers_changed = true;
                    live.walk_again();
                }
            }
        }
        // What a program outside put over a cover belongs to that program: covered first, it is not moved.
        if covers_changed || !appeared.is_empty() {
            self.restore();
        }
        self.move_aside(&appeared);
        any
    }

    /// Renames what appeared under guarded names, unless it is covered.
    fn move_aside(&mut self, paths: &[PathBuf]) {
        let Some(live) = &self.live else { return };
        let workspace = live.workspace.as_fd();
        for path in paths {
            if !covers::is_bare(workspace, path) {
                continue;
            }
            let is_entry = self.names.holds_as_new_entry(path);
            let (appeared, new) = match self.entries.get(path) {
                Some(appeared) => (appeared.clone(), NewName::Unforeseen),
                None if is_entry => (path.clone(), NewName::Unforeseen),
                None => (path.clone(), NewName::First),
            };
            match aside::move_aside(workspace, path, &appeared, new) {
                Ok(Some(event)) => {
                    if is_entry && let GuardEvent::MovedAside { to, .. } = &event {
                        self.entries.remove(path);
                        self.entries.insert(to.clone(), appeared);
                        // It could tell git the new name.
                        self.told.ends = true;
                    }
                    self.told.add(event);
                }
                Ok(None) => {}
                Err(_) => self.told.add(GuardEvent::Exposed { path: path.clone() }),
            }
        }
    }

    /// Starts watching folders when it is time to: at first those that contain covers.
    fn begin_walk(&mut self) {
        let Some(live) = &mut self.live else { return };
        if live.walk_at.is_none_or(|at| at > Instant::now()) {
            return;
        }
        live.walk_at = None;
        if live.events.is_none() {
            live.events = FileEvents::new(&self.plan.workspace);
            for folder in live.covers.folders() {
                let _ = live.events.as_mut().map(|events| events.watch(&folder));
            }
        }
        let deep = live.events.is_some() && !self.names.guarded.is_empty();
        live.walk = deep.then(FolderWalk::new);
        // A guarded name that was renamed away keeps its cover, and none is lost.
        self.restore();
    }

    /// Continues the walk through the workspace.
    fn step(&mut self, entries: usize) {
        self.begin_walk();
        let Some(live) = &mut self.live else { return };
        let Some(walk) = live.walk.as_mut().filter(|walk| !walk.is_done()) else {
            return;
        };
        let (names, covers, moved) = (self.names, &live.covers, &self.entries);
        let mut through = WalkScope {
            workspace: &live.workspace,
            events: live.events.as_mut(),
            skips: &|path| covers.closes(path),
            wants: &|path| {
                let is_new = names.holds(path) && !moved.contains_key(path);
                is_new && covers::is_bare(live.workspace.as_fd(), path)
            },
        };
        let found = walk.step(&mut through, entries);
        if !found.is_empty() {
            self.restore();
            self.move_aside(&found);
        }
    }

    /// Checks a last time after the command has exited; returns all that happened.
    pub(super) fn finish(mut self) -> Vec<GuardEvent> {
        self.look(true);
        let mut reads = 0;
        while self.read() && reads < LAST_READS {
            self.step(usize::MAX);
            reads += 1;
        }
        self.step(usize::MAX);
        let read_all = reads < LAST_READS;
        if let Some(live) = &mut self.live
            && !self.names.guarded.is_empty()
            && !(read_all && live.is_watched())
        {
            // No more events will come, so nothing needs to be watched.
            live.events = None;
            live.walk = Some(FolderWalk::new());
            live.walk_at = None;
            self.step(usize::MAX);
        }
        // The command may have announced the names that they got while it ran.
        let entries: Vec<PathBuf> = self.entries.keys().cloned().collect();
        self.told.forget(&entries);
        self.move_aside(&entries);
        if let Some(live) = &mut self.live {
            live.covers.let_go();
            if live.walk.as_ref().is_some_and(|walk| !walk.is_complete()) {
                self.told.add(GuardEvent::Unsearched);
            }
        }
        self.told.events
    }
}

impl WatchState {
    /// Returns whether a placeholder is due.
    fn is_due(&self) -> bool {
        self.covers.due().is_some_and(|due| due <= Instant::now())
    }

    /// Schedules another walk through the workspace, because events were missed.
    fn walk_again(&mut self) {
        self.walk = None;
        let soon = || Instant::now() + AGAIN_AFTER;
        self.walk_at.get_or_insert_with(soon);
    }

    /// Returns whether no name can have appeared unnoticed.
    fn is_watched(&self) -> bool {
        self.walk.as_ref().is_some_and(FolderWalk::is_complete)
    }
}

/// The events to report.
#[derive(Debug, Default)]
struct GuardReport {
    events: Vec<GuardEvent>,
    /// The number of names moved aside.
    moved: usize,
    /// Whether the command must be killed.
    ends: bool,
}

impl GuardReport {
    /// Forgets that something was moved to these paths, where it does not stay.
    fn forget(&mut self, paths: &[PathBuf]) {
        let stays = |event: &GuardEvent| match event {
            GuardEvent::MovedAside { to, .. } => !paths.contains(to),
            _ => true,
        };
        self.events.retain(stays);
    }

    fn add(&mut self, event: GuardEvent) {
        self.ends |= matches!(event, GuardEvent::Exposed { .. });
        if matches!(event, GuardEvent::MovedAside { .. }) {
            self.moved += 1;
            self.ends |= self.moved > MOST_EVENTS;
        }
        if self.events.contains(&event) {
            return;
        }
        match self.events.len() {
            MOST_EVENTS.. if matches!(event, GuardEvent::Exposed { .. }) => self.events.push(event),
            MOST_EVENTS => self.events.push(GuardEvent::TooMany),
            ..MOST_EVENTS => self.events.push(event),
            _ => {}
        }
    }
}
