//! Taking changes back: only the paths that were changed, only where nobody changed them since, and noted like any change.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::call::RunId;
use crate::change::log::{ChangeLog, LogError};
use crate::change::net::{Lies, Net};
use crate::change::state::{read, state};
use crate::change::{Changer, State};
use crate::workspace::{Change, FileStamp, Kind, Place, Workspace, WorkspaceError, draft_name};

/// Most bytes of files that are brought back at once.
const MOST_AT_ONCE: u64 = 512 << 20;

/// Why some changes cannot be taken back.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// What they were cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A file cannot be read or changed.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
}

/// A file, link or folder that stands in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Where.
    pub path: PathBuf,
    /// Why it is not touched.
    pub why: &'static str,
}

/// What lies at a path once the changes are taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing.
    Nothing,
    /// A file of these bytes.
    File {
        /// Them.
        bytes: Arc<[u8]>,
        /// Who may do what with it.
        mode: Option<u32>,
    },
    /// A link with this text.
    Link(PathBuf),
    /// A folder with this mode; that of a new one where none is known.
    Folder(Option<u32>),
}

/// What takes some changes back.
#[derive(Debug, Default)]
pub struct Plan {
    /// What goes from folders before they are moved back: new files in them, and changed ones, which come again.
    pub inside: BTreeMap<PathBuf, Wanted>,
    /// What is to lie at each path outside them; all there is where no folder is moved.
    pub first: BTreeMap<PathBuf, Wanted>,
    /// Folders that are moved back, from where they are to where they were.
    pub moves: Vec<(PathBuf, PathBuf)>,
    /// What is to lie at each path in them, once they are back.
    pub then: BTreeMap<PathBuf, Wanted>,
    /// What stands in the way; then nothing may be touched.
    pub conflicts: Vec<Conflict>,
    /// The files as they were compared: one in any other state is not replaced or deleted.
    compared: HashMap<PathBuf, FileStamp>,
}

/// Works out what takes these changes of a run back. Nothing is touched.
///
/// # Errors
/// A file or what is kept of it cannot be read.
pub fn plan(
    nets: &[Net],
    workspace: &Workspace,
    log: &ChangeLog,
    run: &RunId,
) -> Result<Plan, UndoError> {
    let mut planning = Planning {
        workspace,
        log,
        run,
        nets,
        plan: Plan::default(),
        bytes: 0,
    };
    let mut standing = Vec::with_capacity(nets.len());
    for net in nets {
        if planning.stands(net)? {
            standing.push(net);
        }
    }
    let moved = standing.iter().filter_map(|net| net.moved_folder());
    let moved = moved.map(|(is, was)| (is.to_owned(), was.to_owned()));
    planning.plan.moves = moved.collect();
    for net in standing {
        planning.one(net)?;
    }
    Ok(planning.plan)
}

struct Planning<'a> {
    workspace: &'a Workspace,
    log: &'a ChangeLog,
    run: &'a RunId,
    nets: &'a [Net],
    plan: Plan,
    bytes: u64,
}

impl Planning<'_> {
    /// Whether a file is as the changes left it, so that it is to be brought back. One that is as it was already is left alone;
    /// any other is in the way.
    fn stands(&mut self, net: &Net) -> Result<bool, UndoError> {
        let now = match &net.is {
            Some(is) => self.state(&is.path)?,
            None => None,
        };
        let is = |lies: Option<&Lies>, now: Option<&State>| match (lies, now) {
            (Some(lies), Some(now)) => lies.state.is_same(now),
            (None, None) => true,
            _ => false,
        };
        if !is(net.is.as_ref(), now.as_ref()) {
            let back = match &net.was {
                Some(was) => {
                    let elsewhere = was.path != net.path();
                    let before = self.state(&was.path)?;
                    is(Some(was), before.as_ref()) && !(elsewhere && now.is_some())
                }
                None => now.is_none(),
            };
            if !back {
                let why = match net.is.as_ref().map(|is| &is.state) {
                    Some(State::File { sha256: None, .. }) => "it is too large to be compared",
                    _ => "it changed since",
                };
                self.conflict(net.path(), why);
            }
            return Ok(false);
        }
        if let Some(was) = net
            .was
            .as_ref()
            .filter(|was| net.is.is_none() || was.path != net.path())
            && !self.is_taken(&was.path)
            && let Some(lies) = self.state(&was.path)?
        {
            if net.is.is_some() || !lies.is_same(&was.state) {
                self.conflict(&was.path, "something else lies there now");
            }
            return Ok(false);
        }
        if net.foreign {
            self.conflict(net.path(), "somebody else changed it between these changes");
        }
        Ok(!net.foreign)
    }

    /// Whether what lies at a path now was put there by these changes.
    fn is_taken(&self, path: &Path) -> bool {
        let by = |net: &Net| match (&net.is, net.moved_folder()) {
            (_, Some((is, _))) => path.starts_with(is),
            (Some(is), None) => is.path == path,
            (None, None) => false,
        };
        self.nets.iter().any(by)
    }

    fn one(&mut self, net: &Net) -> Result<(), UndoError> {
        if net.moved_folder().is_some() {
            return Ok(());
        }
        if let Some(was) = &net.was {
            let wanted = self.wanted(was, net.is.as_ref())?;
            let folders = self.plan.moves.iter();
            let folder = folders
                .filter(|(_, folder)| was.path.starts_with(folder))
                .max_by_key(|(_, folder)| folder.components().count());
            let now = folder.map(|(is, folder)| {
                is.join(was.path.strip_prefix(folder).unwrap_or(Path::new("")))
            });
            match (wanted, now) {
                (Err(why), _) => self.conflict(&was.path, why),
                (Ok(wanted), None) => _ = self.plan.first.insert(was.path.clone(), wanted),
                (Ok(wanted), Some(now)) => {
                    // The folder brings along what was put there since.
                    let ours = self.nets.iter().any(|net| net.is_at(&now));
                    if !ours && self.state(&now)?.is_some() {
                        self.conflict(&now, "something else lies there now");
                    }
                    self.plan.then.insert(was.path.clone(), wanted);
                }
            }
        }
        if let Some(is) = &net.is {
            let mut folders = self.plan.moves.iter();
            let inside = folders.any(|(folder, _)| is.path.starts_with(folder));
            let gone = if inside {
                &mut self.plan.inside
            } else {
                &mut self.plan.first
            };
            gone.entry(is.path.clone()).or_insert(Wanted::Nothing);
        }
        Ok(())
    }

    /// What lay somewhere, from what is kept or from where it lies now; or why it cannot be brought back.
    fn wanted(
        &mut self,
        was: &Lies,
        is: Option<&Lies>,
    ) -> Result<Result<Wanted, &'static str>, UndoError> {
        let (sha256, mode) = match &was.state {
            State::Folder { mode } => return Ok(Ok(Wanted::Folder(*mode))),
            State::Link { target } => return Ok(Ok(Wanted::Link(target.0.clone()))),
            State::Other => return Ok(Err("it was a pipe, a socket, a device or unreadable")),
            State::File { sha256: None, .. } => return Ok(Err("it was too large to be kept")),
            State::File {
                sha256: Some(sha256),
                bytes,
                mode,
            } => {
                self.bytes = self.bytes.saturating_add(*bytes);
                (sha256, *mode)
            }
        };
        if self.bytes > MOST_AT_ONCE {
            return Ok(Err(
                "it is more than 512 MiB at once: undo one call after the other",
            ));
        }
        let found = match self.log.kept(self.run, sha256)? {
            Some(kept) => Some(kept),
            None => self.moved(was, is)?,
        };
        Ok(match found {
            Some(bytes) => Ok(Wanted::File {
                bytes: bytes.into(),
                mode,
            }),
            None => Err("what it was is not kept"),
        })
    }

    /// The bytes of a file that was moved and not changed.
    fn moved(&self, was: &Lies, is: Option<&Lies>) -> Result<Option<Vec<u8>>, UndoError> {
        let Some(is) = is.filter(|is| is.state.is_same(&was.state)) else {
            return Ok(None);
        };
        let mut open = self.workspace.open_file(&is.path)?;
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut open.file, &mut bytes)
            .map_err(|e| WorkspaceError::io("read", &is.path.to_string_lossy(), e))?;
        Ok(Some(bytes))
    }

    fn state(&mut self, path: &Path) -> Result<Option<State>, WorkspaceError> {
        let compared = &mut self.plan.compared;
        state(self.workspace, path, &mut |open| {
            compared.insert(path.to_owned(), open.stamp);
            read(open, path)
        })
    }

    fn conflict(&mut self, path: &Path, why: &'static str) {
        let path = path.to_owned();
        self.plan.conflicts.push(Conflict { path, why });
    }
}

impl Plan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.moves.is_empty() && self.wanted().next().is_none()
    }

    /// Everything that is to lie somewhere, in the order in which it is made so.
    pub fn wanted(&self) -> impl Iterator<Item = (&PathBuf, &Wanted)> {
        self.inside.iter().chain(&self.first).chain(&self.then)
    }

    /// What is to lie at each path in the end, by its path once folders are back; nothing for what only comes again there.
    pub fn files(&self) -> impl Iterator<Item = (&PathBuf, &Wanted)> {
        let again = |path: &Path| {
            let moved = self.moves.iter();
            let mut there =
                moved.filter_map(|(is, was)| Some(was.join(path.strip_prefix(is).ok()?)));
            there.any(|path| self.then.contains_key(&path))
        };
        let gone = self.inside.iter().filter(move |(path, _)| !again(path));
        gone.chain(&self.first).chain(&self.then)
    }

    /// Takes the changes back. Files are written and deleted together or not at all, unless folders are moved back between
    /// them. A folder in which somebody else put something stays.
    ///
    /// # Errors
    /// Something cannot be changed, or changed since this was planned.
    pub fn apply(&self, workspace: &Workspace, changer: &Changer) -> Result<(), WorkspaceError> {
        // Out of the way first, inner ones before those around them: then they may change places.
        let mut moves: Vec<_> = self
            .moves
            .iter()
            .map(|(is, was)| (is, was, aside()))
            .collect();
        moves.sort_by(|a, b| b.0.cmp(a.0));
        for path in self.inside.keys() {
            if kind(workspace, path) == Some(Kind::Link) {
                changer.remove(&entry(workspace, path)?, false)?;
            }
        }
        let compared = &self.compared;
        files(workspace, changer, Step::deletes(&self.inside, compared))?;
        for (is, _, aside) in &moves {
            empty(workspace, changer, &self.inside)?;
            changer.rename(&entry(workspace, is)?, &entry(workspace, aside)?, false)?;
        }
        make(workspace, changer, &self.first, compared)?;
        moves.sort_by(|a, b| a.1.cmp(b.1));
        for (_, was, aside) in &moves {
            changer.rename(&entry(workspace, aside)?, &entry(workspace, was)?, false)?;
        }
        make(workspace, changer, &self.then, compared)
    }
}

/// A name in the root that nothing else has.
fn aside() -> PathBuf {
    format!("{}.undo", draft_name()).into()
}

/// Sees to it that this lies at each path.
fn make(
    workspace: &Workspace,
    changer: &Changer,
    all: &BTreeMap<PathBuf, Wanted>,
    compared: &HashMap<PathBuf, FileStamp>,
) -> Result<(), WorkspaceError> {
    // What makes room first: then a folder may become a file or a link, and the other way round.
    for (path, wanted) in all {
        if kind(workspace, path) == Some(Kind::Link) && !is_there(workspace, path, wanted) {
            changer.remove(&entry(workspace, path)?, false)?;
        }
    }
    let in_the_way = |(path, wanted): (&PathBuf, &Wanted)| match wanted {
        Wanted::File { .. } => kind(workspace, path) == Some(Kind::Directory),
        Wanted::Folder(_) | Wanted::Link(_) => kind(workspace, path) == Some(Kind::File),
        Wanted::Nothing => false,
    };
    if all.iter().any(in_the_way) {
        files(workspace, changer, Step::deletes(all, compared))?;
        empty(workspace, changer, all)?;
    }
    // Folders before what is in them, with their modes at last: one may be closed to its user, too.
    let mut made = Vec::new();
    for (path, wanted) in all {
        let Wanted::Folder(mode) = wanted else {
            continue;
        };
        match state(workspace, path, &mut |_| Ok(None))? {
            Some(State::Folder { mode: now }) if mode.is_none() || now == *mode => {}
            Some(State::Folder { .. }) => made.push((path, *mode)),
            _ => {
                changer.make_folder(&entry(workspace, path)?, *mode)?;
                made.push((path, *mode));
            }
        }
    }
    files(workspace, changer, Step::all(all, compared))?;
    empty(workspace, changer, all)?;
    for (path, wanted) in all {
        if let Wanted::Link(target) = wanted
            && !is_there(workspace, path, wanted)
        {
            changer.make_link(&entry(workspace, path)?, target)?;
        }
    }
    for (path, mode) in made.into_iter().rev() {
        changer.set_mode(&entry(workspace, path)?, mode)?;
    }
    Ok(())
}

fn kind(workspace: &Workspace, path: &Path) -> Option<Kind> {
    workspace.look(path).map(|(kind, _)| kind)
}

/// Whether a link is as it is to be.
fn is_there(workspace: &Workspace, path: &Path, wanted: &Wanted) -> bool {
    let now = state(workspace, path, &mut |_| Ok(None));
    match (wanted, now) {
        (Wanted::Link(text), Ok(Some(State::Link { target }))) => target.0 == *text,
        _ => false,
    }
}

/// The place of a path, if it leads nowhere else.
fn entry(workspace: &Workspace, path: &Path) -> Result<Place, WorkspaceError> {
    let text = path.to_str().ok_or_else(|| {
        let shown = path.to_string_lossy().into_owned();
        WorkspaceError::Malformed(shown, "its name is not UTF-8")
    })?;
    let place = workspace.entry(text)?;
    if place.real() == path {
        Ok(place)
    } else {
        Err(WorkspaceError::Changed(place.shown()))
    }
}

/// Files that are changed together.
#[derive(Clone, Copy)]
struct Step<'a> {
    all: &'a BTreeMap<PathBuf, Wanted>,
    compared: &'a HashMap<PathBuf, FileStamp>,
    /// Those that are to be there are left for a later step.
    deletes: bool,
}

impl<'a> Step<'a> {
    fn all(all: &'a BTreeMap<PathBuf, Wanted>, compared: &'a HashMap<PathBuf, FileStamp>) -> Self {
        Self {
            all,
            compared,
            deletes: false,
        }
    }

    fn deletes(
        all: &'a BTreeMap<PathBuf, Wanted>,
        compared: &'a HashMap<PathBuf, FileStamp>,
    ) -> Self {
        Self {
            deletes: true,
            ..Self::all(all, compared)
        }
    }
}

/// Makes all files of a step what they are to be, or none. One that is there and was not compared, or changed since, is an error.
fn files(workspace: &Workspace, changer: &Changer, step: Step<'_>) -> Result<(), WorkspaceError> {
    let mut places = Vec::new();
    for (path, wanted) in step.all {
        let is_file = kind(workspace, path) == Some(Kind::File);
        match wanted {
            Wanted::File { bytes, mode } if !step.deletes => {
                places.push((entry(workspace, path)?, Some(&**bytes), *mode));
            }
            Wanted::Nothing | Wanted::Link(_) | Wanted::Folder(_) if is_file => {
                places.push((entry(workspace, path)?, None, None));
            }
            _ => {}
        }
    }
    let mut changes = Vec::with_capacity(places.len());
    for (place, content, mode) in &places {
        changes.push(Change {
            place,
            content: *content,
            expected: place
                .kind()
                .and_then(|_| step.compared.get(place.real()).copied()),
            like: None,
            mode: *mode,
        });
    }
    if !changes.is_empty() {
        changer.change(&changes)?;
    }
    Ok(())
}

/// Removes folders that are to be gone, the innermost first, where nothing is in them.
fn empty(
    workspace: &Workspace,
    changer: &Changer,
    all: &BTreeMap<PathBuf, Wanted>,
) -> Result<(), WorkspaceError> {
    for (path, wanted) in all.iter().rev() {
        if matches!(wanted, Wanted::Folder(_)) || kind(workspace, path) != Some(Kind::Directory) {
            continue;
        }
        let place = entry(workspace, path)?;
        if workspace.is_empty(&place) {
            changer.remove(&place, false)?;
        }
    }
    Ok(())
}
