//! `CriticalPaths`: the paths whose removal is critical.

use haft_command::{PathShape, ShapePart, matches};

use crate::commands::folders::{RunFolders, within};
use crate::places::PolicyContext;
use haft_files::paths::clean;

/// Folders of a system's root, in lower case.
const ROOT_FOLDERS: &[&str] = &[
    "/applications",
    "/library",
    "/system",
    "/users",
    "/volumes",
    "/bin",
    "/boot",
    "/data",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib64",
    "/mnt",
    "/nix",
    "/opt",
    "/private",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/snap",
    "/srv",
    "/sys",
    "/tmp",
    "/usr",
    "/var",
];
/// Folders that hold the homes of users, in lower case.
const HOMES: &[&str] = &["home", "users"];

/// Critical paths, for a command in these folders: the root, its direct children, a home, the working directory, the workspace, their
/// parents, and what leads to other folders through a process. Letters count without their case, as in the file systems of macOS.
#[derive(Debug)]
pub(crate) struct CriticalPaths<'a> {
    folders: &'a RunFolders,
    workspace: Option<String>,
    home: Option<String>,
}

impl<'a> CriticalPaths<'a> {
    pub(crate) fn new(places: &PolicyContext, folders: &'a RunFolders) -> Self {
        let folded = |path: &Option<String>| Some(path.as_ref()?.chars().map(fold).collect());
        Self {
            folders,
            workspace: folded(&places.workspace),
            home: folded(&places.home),
        }
    }

    /// Whether a path is one of them. Programs may expand a `~` or `*`.
    pub(crate) fn hold(&self, path: &str) -> bool {
        let expands = path.starts_with('~') || matches!(path, "*" | "./*");
        expands || self.may_hold(&PathShape::known(path))
    }

    /// Whether one of the paths of a shape may be one of them. Everything in a folder counts as the folder: `a/*`.
    pub(crate) fn may_hold(&self, shape: &PathShape) -> bool {
        let parts = shape.parts.iter().map(|part| match part {
            ShapePart::Char(c) => ShapePart::Char(fold(*c)),
            open => *open,
        });
        let parts: Vec<ShapePart> = parts.collect();
        !parts.is_empty() && self.may_hold_parts(&parts)
    }

    fn may_hold_parts(&self, shape: &[ShapePart]) -> bool {
        let mut shape = shape;
        loop {
            while let [before @ .., ShapePart::Char('/')] = shape
                && !before.is_empty()
            {
                shape = before;
            }
            let slash = shape.iter().rposition(|part| *part == ShapePart::Char('/'));
            let name = &shape[slash.map_or(0, |at| at + 1)..];
            let is_same = slash.is_some() && name == [ShapePart::Char('.')];
            if !is_same && !is_any_name(name) {
                break;
            }
            match slash {
                None => return true,
                // The slash stays: what is before it may be empty.
                Some(at) => shape = &shape[..=at],
            }
        }
        match shape.iter().rposition(|part| *part == ShapePart::Any) {
            Some(last) => self.may_hold_open(shape, &shape[last + 1..]),
            None => self.may_hold_closed(shape),
        }
    }

    /// The same for a shape with a text of which nothing is known, and the rest behind the last such text.
    fn may_hold_open(&self, shape: &[ShapePart], rest: &[ShapePart]) -> bool {
        let says = |part: &ShapePart| !matches!(part, ShapePart::Name | ShapePart::Char('/' | '.'));
        let climbs = rest
            .split(|part| *part == ShapePart::Char('/'))
            .any(|name| name == [ShapePart::Char('.'); 2]);
        let is_known = |name: &&Vec<ShapePart>| !name.contains(&ShapePart::Any);
        let path = components(shape);
        let begins: Vec<_> = path.iter().take_while(is_known).cloned().collect();
        let process = shape.first() == Some(&ShapePart::Char('/'))
            && (leads_through_process(&path) && !begins.is_empty());
        if !rest.iter().any(says) || climbs || process {
            return true;
        }
        // The text may be empty.
        let without: Vec<ShapePart> = shape
            .iter()
            .copied()
            .filter(|part| *part != ShapePart::Any)
            .collect();
        let open = [&[ShapePart::Any], rest].concat();
        self.may_hold_closed(&without) || self.are_named_by(&open)
    }

    /// The same for a shape of which at most names are unknown.
    fn may_hold_closed(&self, shape: &[ShapePart]) -> bool {
        let path = components(shape);
        if shape.first() == Some(&ShapePart::Char('/')) {
            return self.may_be_place(&path);
        }
        // The working directory, or one of its parents.
        if path.iter().all(|name| is_up(name)) {
            return true;
        }
        if self.folders.anywhere || self.folders.climbs {
            if path.first().is_some_and(|name| is_up(name)) {
                return true;
            }
            let mut open = vec![ShapePart::Any];
            for name in &path {
                open.push(ShapePart::Char('/'));
                open.extend_from_slice(name);
            }
            if self.are_named_by(&open) {
                return true;
            }
        }
        let workspace = self.workspace.as_deref();
        self.folders.paths.iter().any(|folder| {
            let folder: String = folder.chars().map(fold).collect();
            let folder = workspace.map_or_else(|| clean(&folder), |root| within(root, &folder));
            let mut whole = PathShape::known(&folder).parts;
            whole.push(ShapePart::Char('/'));
            whole.extend_from_slice(shape);
            folder.starts_with('/') && self.may_be_place(&components(&whole))
        })
    }

    /// Whether an absolute path, in its components, may be critical.
    fn may_be_place(&self, path: &[Vec<ShapePart>]) -> bool {
        let is_home = || path.len() == 2 && HOMES.iter().any(|name| matches(&path[0], name));
        let holds = |place: &str| {
            let mut names = place.split('/').filter(|name| !name.is_empty());
            path.iter()
                .all(|shape| names.next().is_some_and(|name| matches(shape, name)))
        };
        path.len() < 2
            || is_home()
            || leads_through_process(path)
            || self.own().into_iter().any(holds)
    }

    /// Whether the parts, which begin with any text, may stand for a place that is critical on this machine.
    fn are_named_by(&self, open: &[ShapePart]) -> bool {
        let parents = self.own().into_iter().flat_map(|place| {
            let ends = place.match_indices('/').map(|(at, _)| at);
            let ends = ends.skip(1).chain([place.len()]);
            ends.map(move |end| &place[..end])
        });
        let mut all = parents.chain(ROOT_FOLDERS.iter().copied());
        all.any(|place| matches(open, place))
    }

    fn own(&self) -> [&str; 2] {
        let places = [&self.workspace, &self.home];
        places.map(|place| place.as_deref().unwrap_or("/"))
    }
}

fn fold(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

/// Returns the names that a path goes through, without `.`, and without each name that a `..` leaves again.
fn components(shape: &[ShapePart]) -> Vec<Vec<ShapePart>> {
    let mut found: Vec<Vec<ShapePart>> = Vec::new();
    let absolute = shape.first() == Some(&ShapePart::Char('/'));
    for name in shape.split(|part| *part == ShapePart::Char('/')) {
        if name.is_empty() || name == [ShapePart::Char('.')] {
            continue;
        }
        match found.last() {
            Some(last) if is_up(name) && !is_up(last) => drop(found.pop()),
            None if is_up(name) && absolute => {}
            _ => found.push(name.to_vec()),
        }
    }
    found
}

fn is_up(name: &[ShapePart]) -> bool {
    name == [ShapePart::Char('.'); 2]
}

/// Whether the path may lead to another folder through a process.
fn leads_through_process(path: &[Vec<ShapePart>]) -> bool {
    let is = |at: usize, name: &str| path.get(at).is_some_and(|shape| matches(shape, name));
    (path.len() > 1 && is(0, "proc")) || (is(0, "dev") && is(1, "fd"))
}

/// Whether the parts match nearly every name: no letter, or one that may be anywhere in it.
fn is_any_name(name: &[ShapePart]) -> bool {
    let is_open = |part: &ShapePart| matches!(part, ShapePart::Name | ShapePart::Any);
    let letters = name.iter().filter(|part| match part {
        ShapePart::Char(c) => *c != '.',
        ShapePart::Name | ShapePart::Any => false,
    });
    let around = || name.first().is_some_and(is_open) && name.last().is_some_and(is_open);
    name.contains(&ShapePart::Name)
        && match letters.count() {
            0 => true,
            1 => around(),
            _ => false,
        }
}
