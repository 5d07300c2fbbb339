//! `GitSettingsReader`: the one reader of git's settings, with the files that they include, the user's and the system's.
//!
//! Everything that asks what git would obey reads through this: which files of the workspace settings name, whether git's reading commands
//! run anything, and which of the user's settings commands get. It follows `include.path` and `includeIf` as git does, within limits, and
//! opens nothing that is not a regular file. What it cannot read it reports: then its callers take the worst for true.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use haft_types::text::visible;
use rustix::fs::OFlags;

use super::git_file::{Setting, parse};

/// Maximum size of a file of settings, in bytes.
pub const MAX_SETTINGS: u64 = 256 * 1024;
/// Maximum number of files that are read, with those that they include.
const MAX_FILES: usize = 2_000;
/// Maximum depth of includes, as in git.
const MAX_DEPTH: usize = 10;
/// Maximum number of settings in variables.
const MAX_PAIRS: usize = 256;

/// The system's settings, wherever a package of git puts them.
const SYSTEM_FILES: &[&str] = &[
    "/etc/gitconfig",
    "/usr/local/etc/gitconfig",
    "/opt/homebrew/etc/gitconfig",
    "/home/linuxbrew/.linuxbrew/etc/gitconfig",
    "/Library/Developer/CommandLineTools/usr/share/git-core/gitconfig",
    "/Applications/Xcode.app/Contents/Developer/usr/share/git-core/gitconfig",
];

/// Variables that name a file of settings.
const FILE_VARIABLES: [&str; 2] = ["GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL"];

/// A setting, and the file that it stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSetting {
    /// The setting.
    pub setting: Setting,
    /// The file as it was named, which relative includes start from; `None` for a variable.
    pub file: Option<PathBuf>,
}

impl FoundSetting {
    /// Returns whether the setting includes a file of settings.
    pub fn is_include(&self) -> bool {
        let Setting {
            section, name, key, ..
        } = &self.setting;
        matches!(
            (&**section, name.is_some(), &**key),
            ("include", false, "path") | ("includeif", true, "path")
        )
    }

    /// Returns the file that a setting with a path names: absolute, or relative to the folder of its own file. `None` if that cannot be
    /// known: a path in git's own folder, or in another user's home.
    pub fn path(&self, home: Option<&Path>) -> Option<PathBuf> {
        expand(&self.setting.value, home).and_then(|path| {
            let folder = || self.file.as_ref()?.parent();
            if path.is_absolute() {
                Some(path)
            } else {
                Some(folder()?.join(path))
            }
        })
    }
}

/// Replaces `~/` at the start of a path by the home folder.
pub fn expand(value: &str, home: Option<&Path>) -> Option<PathBuf> {
    match value.strip_prefix('~') {
        Some(rest) => Some(home?.join(rest.strip_prefix('/')?)),
        None if value.starts_with("%(") || value.is_empty() => None,
        None => Some(PathBuf::from(value)),
    }
}

/// Whether to read a file that a setting includes.
type IncludeFilter<'a> = dyn Fn(&Setting) -> bool + 'a;

/// Reads files of settings, one after the other.
pub struct GitSettingsReader<'a> {
    home: Option<&'a Path>,
    includes: &'a IncludeFilter<'a>,
    files: usize,
    looked_for: Vec<PathBuf>,
    found: Vec<FoundSetting>,
    unread: Option<String>,
}

impl std::fmt::Debug for GitSettingsReader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GitSettingsReader")
            .field("found", &self.found)
            .field("unread", &self.unread)
            .finish_non_exhaustive()
    }
}

impl<'a> GitSettingsReader<'a> {
    /// Creates a reader; `home` is what `~` stands for, and `includes` says which conditional includes to follow.
    pub fn new(home: Option<&'a Path>, includes: &'a IncludeFilter<'a>) -> Self {
        Self {
            home,
            includes,
            files: 0,
            looked_for: Vec::new(),
            found: Vec::new(),
            unread: None,
        }
    }

    /// Creates a reader that follows every include, whatever its condition: it may hold where git reads it.
    pub fn of_everything(home: Option<&'a Path>) -> Self {
        Self::new(home, &|_| true)
    }

    /// Reads a file of settings with those that it includes, if it exists.
    pub fn read(&mut self, path: &Path) {
        let mut above = HashSet::new();
        self.file(path, &mut above, 0);
    }

    /// Reads the system's settings and the user's, in git's order. Variables may name other files to haft than to git, so the usual
    /// ones count, too.
    pub fn read_user(&mut self, variable: &dyn Fn(&str) -> Option<OsString>) {
        for file in user_files(self.home, variable) {
            if file.is_absolute() {
                self.read(&file);
            } else {
                let shown = visible::path(&file.to_string_lossy());
                self.note(format!("git's settings in {shown} start where git does"));
            }
        }
        match pairs(variable) {
            Some(pairs) => {
                for setting in pairs {
                    self.add(setting, None, &mut HashSet::new(), 0);
                }
            }
            None => self.note("git's settings in variables cannot be read".to_owned()),
        }
    }

    /// Reads the system's settings and the user's as git itself does here: what a variable names takes the place of the usual file.
    pub fn read_user_as_git(&mut self, variable: &dyn Fn(&str) -> Option<OsString>) {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let system = match set("GIT_CONFIG_SYSTEM") {
            _ if set("GIT_CONFIG_NOSYSTEM").is_some() => Vec::new(),
            Some(named) => vec![PathBuf::from(named)],
            None => SYSTEM_FILES.iter().map(PathBuf::from).collect(),
        };
        let user = if let Some(named) = set("GIT_CONFIG_GLOBAL") {
            vec![PathBuf::from(named)]
        } else {
            let config = git_folder(self.home, variable).map(|folder| folder.join("config"));
            let own = self.home.map(|home| home.join(".gitconfig"));
            config.into_iter().chain(own).collect()
        };
        for file in system
            .into_iter()
            .chain(user)
            .filter(|file| file.is_absolute())
        {
            self.read(&file);
        }
    }

    /// Returns the settings in git's order, later ones overriding earlier ones.
    pub fn settings(&self) -> &[FoundSetting] {
        &self.found
    }

    /// Returns the files that git looks for, whether they are there and hold settings or not.
    pub fn files(&self) -> &[PathBuf] {
        &self.looked_for
    }

    /// Returns why there may be more, as a clause; `None` if all are known.
    pub fn unread(&self) -> Option<&str> {
        self.unread.as_deref()
    }

    fn note(&mut self, why: String) {
        self.unread.get_or_insert(why);
    }

    /// `above` holds the files that include this one.
    fn file(&mut self, path: &Path, above: &mut HashSet<PathBuf>, depth: usize) {
        if self.looked_for.len() < MAX_FILES {
            self.looked_for.push(path.to_owned());
        }
        let opened = match path.canonicalize() {
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return;
            }
            Ok(real) if real == Path::new("/dev/null") => return,
            // Git stops at the depth.
            Ok(real) if above.contains(&real) => Err("it includes itself".to_owned()),
            Ok(_) if depth > MAX_DEPTH || self.files >= MAX_FILES => {
                Err("there are too many".to_owned())
            }
            Ok(real) => read(&real).map(|text| (real, text)),
            Err(error) => Err(error.to_string()),
        };
        let parsed = opened.and_then(|(real, text)| {
            let settings = parse(&text).ok_or_else(|| "git would refuse it".to_owned())?;
            Ok((real, settings))
        });
        let (real, settings) = match parsed {
            Ok(parsed) => parsed,
            Err(why) => {
                let shown = visible::path(&path.to_string_lossy());
                return self.note(format!("git's settings in {shown} cannot be read: {why}"));
            }
        };
        self.files += 1;
        above.insert(real.clone());
        for setting in settings {
            self.add(setting, Some(path), above, depth);
        }
        above.remove(&real);
    }

    fn add(
        &mut self,
        setting: Setting,
        file: Option<&Path>,
        above: &mut HashSet<PathBuf>,
        depth: usize,
    ) {
        let found = FoundSetting {
            setting,
            file: file.map(Path::to_owned),
        };
        let included = found.is_include() && (self.includes)(&found.setting);
        let at = included.then(|| found.path(self.home));
        let value = visible::line(&found.setting.value);
        self.found.push(found);
        match at {
            Some(Some(at)) => self.file(&at, above, depth + 1),
            Some(None) => self.note(format!("git's settings include {value}")),
            None => {}
        }
    }
}

/// Returns the folder with git's files of the user: `$XDG_CONFIG_HOME/git` or `~/.config/git`.
pub fn git_folder(
    home: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Option<PathBuf> {
    let named = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let named = named.filter(|folder| folder.is_absolute());
    let folder = named.or_else(|| Some(home?.join(".config")));
    folder.map(|folder| folder.join("git"))
}

/// Returns the files in which git looks for the system's and the user's settings.
fn user_files(home: Option<&Path>, variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let mut files: Vec<PathBuf> = SYSTEM_FILES.iter().map(PathBuf::from).collect();
    files.extend(set("XDG_CONFIG_HOME").map(|folder| PathBuf::from(folder).join("git/config")));
    files.extend(home.map(|home| home.join(".config/git/config")));
    files.extend(home.map(|home| home.join(".gitconfig")));
    files.extend(
        FILE_VARIABLES
            .into_iter()
            .filter_map(set)
            .map(PathBuf::from),
    );
    let mut seen = HashSet::new();
    files.retain(|file| seen.insert(file.clone()));
    files
}

/// Returns the settings in variables, or `None` if they cannot be read.
fn pairs(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<Vec<Setting>> {
    if variable("GIT_CONFIG_PARAMETERS").is_some_and(|value| !value.is_empty()) {
        return None;
    }
    let text = |name: &str| variable(name)?.into_string().ok();
    let count = match variable("GIT_CONFIG_COUNT") {
        None => 0,
        Some(count) if count.is_empty() => 0,
        Some(count) => count.to_str()?.trim().parse().ok()?,
    };
    let each = (0..count).take(MAX_PAIRS + 1).map(|at: usize| {
        let within = at < MAX_PAIRS;
        let key = within.then(|| text(&format!("GIT_CONFIG_KEY_{at}")))??;
        Setting::from_pair(&key, text(&format!("GIT_CONFIG_VALUE_{at}"))?)
    });
    each.collect()
}

/// Reads a regular file of at most [`MAX_SETTINGS`] bytes, without waiting for a pipe in its place.
fn read(path: &Path) -> Result<String, String> {
    read_bounded(path, MAX_SETTINGS)
}

/// Reads a regular file of at most `most` bytes as text, whatever bytes it has, without waiting for a pipe in its place.
///
/// # Errors
/// Why it was not read.
pub fn read_bounded(path: &Path, most: u64) -> Result<String, String> {
    let flags = OFlags::NONBLOCK.bits();
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(flags.cast_signed());
    let file: File = options.open(path).map_err(|error| error.to_string())?;
    let meta = file.metadata().map_err(|error| error.to_string())?;
    if !meta.is_file() {
        return Err("it is no file".to_owned());
    }
    if meta.len() > most {
        return Err(format!("it is longer than {} KiB", most / 1024));
    }
    let mut bytes = Vec::new();
    let read = file.take(most).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
