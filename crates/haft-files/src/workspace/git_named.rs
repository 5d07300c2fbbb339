//! `NamedByGit`: what the settings of a workspace's repositories name in the workspace: hooks, further settings, programs.
//!
//! Git runs or obeys these files as it obeys the settings themselves, so they are judged like them, whichever tool changes them.
//! The user's own settings count for every repository: `core.hooksPath = tools/hooks` in `~/.gitconfig` runs what any workspace brings.

use std::collections::{BTreeMap, HashMap};
use std::path::{Component, Path, PathBuf};

use super::git_settings::{FoundSetting, GitSettingsReader, expand};
use super::{Workspace, canonical_prefix, is_git};

mod words;

use words::{HOOKS, SettingTarget, Word, naming, program_words};

/// The variable that names what `init.templateDir` does.
const TEMPLATE_VARIABLE: &str = "GIT_TEMPLATE_DIR";
/// Maximum number of paths.
const MAX_NAMED: usize = 1_000;

/// A path that settings name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPath {
    /// The settings that name it, as their path would be if the repository's folder was called `.git`.
    pub settings: PathBuf,
    /// Whether git looks for a folder there.
    pub is_folder: bool,
    /// Whether git only reads it, or takes it for absent, if it is empty. Of a program that is not known.
    pub may_be_empty: bool,
}

/// The paths below the root that the settings of repositories name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedByGit {
    paths: BTreeMap<PathBuf, NamedPath>,
    unread: Option<String>,
}

impl NamedByGit {
    /// Reads the settings of the repositories in these folders, and those of the user. `pointers` are the `.git` files and `commondir`
    /// files, each with the folder that it names.
    pub(super) fn read(
        workspace: &Workspace,
        repositories: impl Iterator<Item = PathBuf>,
        pointers: &[(PathBuf, PathBuf)],
    ) -> Self {
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        let mut of_user = GitSettingsReader::of_everything(home.as_deref());
        of_user.read_user(&|name| std::env::var_os(name));
        let mut collector = NameCollector {
            workspace,
            home: home.as_deref(),
            found: Self::default(),
        };
        if let Some(template) = std::env::var_os(TEMPLATE_VARIABLE) {
            let alias = Path::new(super::GIT).join("config");
            collector.template(workspace.root(), &template.to_string_lossy(), &alias);
        }
        collector.read(repositories, pointers, &of_user)
    }

    /// Returns each path, sorted.
    pub fn paths(&self) -> impl Iterator<Item = (&PathBuf, &NamedPath)> {
        self.paths.iter()
    }
    /// Returns what names a path, something in it or a folder above it.
    pub fn at(&self, path: &Path) -> Option<&NamedPath> {
        let mut above = path.ancestors().filter(|at| *at != Path::new(""));
        let below = || {
            let next = self.paths.range(path.to_owned()..).next();
            next.filter(|(named, _)| named.starts_with(path) && path != Path::new(""))
                .map(|(_, named)| named)
        };
        above.find_map(|at| self.paths.get(at)).or_else(below)
    }

    /// Returns why there may be more, as a clause; `None` if all are known.
    pub fn unread(&self) -> Option<&str> {
        self.unread.as_deref()
    }
}

/// Returns the working trees of each repository's folder, for the settings that its worktrees and submodules share too.
fn working_trees(pointers: &[(PathBuf, PathBuf)]) -> HashMap<PathBuf, Vec<PathBuf>> {
    let mut trees: HashMap<PathBuf, Vec<PathBuf>> = HashMap::new();
    let is_git = |pointer: &Path| pointer.file_name().is_some_and(|name| name == super::GIT);
    for (pointer, target) in pointers.iter().filter(|(pointer, _)| is_git(pointer)) {
        let tree = pointer.parent().unwrap_or(Path::new("")).to_owned();
        trees.entry(target.clone()).or_default().push(tree);
    }
    for (pointer, common) in pointers.iter().filter(|(pointer, _)| !is_git(pointer)) {
        let folder = pointer.parent().unwrap_or(Path::new(""));
        if let Some(own) = trees.get(folder).cloned() {
            trees.entry(common.clone()).or_default().extend(own);
        }
    }
    trees
}

/// Returns the work tree of a repository by the place of its folder: the folder above `.git`.
fn base_above(workspace: &Workspace, folder: &Path) -> Option<PathBuf> {
    if let Some(outside) = workspace.repository()
        && (folder == Path::new(super::GIT) || folder == outside.own_part())
    {
        return Some(outside.tree().to_owned());
    }
    let is_git = folder.file_name().is_some_and(|name| name == super::GIT);
    let above = is_git.then(|| folder.parent()).flatten()?;
    Some(workspace.host_path(above))
}

/// Collects the paths that settings name. All bases are absolute.
struct NameCollector<'a> {
    workspace: &'a Workspace,
    home: Option<&'a Path>,
    found: NamedByGit,
}

impl NameCollector<'_> {
    fn read(
        mut self,
        repositories: impl Iterator<Item = PathBuf>,
        pointers: &[(PathBuf, PathBuf)],
        of_user: &GitSettingsReader<'_>,
    ) -> NamedByGit {
        // A workspace may hold the user's own files, as one of dotfiles does.
        let alias = Path::new(super::GIT).join("config");
        for file in of_user.files() {
            let file = self.below(file);
            self.add(file, &alias, NamedKind::File);
        }
        let trees = working_trees(pointers);
        for folder in repositories {
            let alias = if is_git(&folder) {
                folder.join("config")
            } else {
                folder.join(super::GIT).join("config")
            };
            let mut bases: Vec<PathBuf> = trees
                .get(&folder)
                .into_iter()
                .flatten()
                .map(|tree| self.workspace.host_path(tree))
                .collect();
            bases.extend(base_above(self.workspace, &folder));
            bases.push(self.workspace.host_path(&folder));
            let mut own = GitSettingsReader::of_everything(self.home);
            for name in ["config", "config.worktree"] {
                own.read(&self.workspace.host_path(&folder.join(name)));
            }
            self.add_all(of_user, &bases, &alias);
            self.add_all(&own, &bases, &alias);
            self.add_linked(&folder, &alias);
        }
        self.found
    }

    /// Notes what the settings name, from each folder to which their paths may be relative.
    fn add_all(&mut self, read: &GitSettingsReader<'_>, bases: &[PathBuf], alias: &Path) {
        if let Some(why) = read.unread() {
            self.found.unread.get_or_insert(why.to_owned());
        }
        for found in read.settings() {
            self.setting(found, bases, alias);
        }
    }

    /// Notes where links lead from what git obeys in a repository outside of the workspace.
    fn add_linked(&mut self, folder: &Path, alias: &Path) {
        if self.workspace.repository().is_none() || !is_git(folder) {
            return;
        }
        for (name, kind) in [
            ("hooks", NamedKind::Folder),
            ("config", NamedKind::File),
            ("config.worktree", NamedKind::File),
            ("info/attributes", NamedKind::File),
        ] {
            let host = self.workspace.host_path(&folder.join(name));
            let real = canonical_prefix(&host);
            if real != host && real.starts_with(self.workspace.root()) {
                let at = self.workspace.below(&real);
                self.add(at, alias, kind);
            }
        }
    }

    /// Notes what a setting names.
    fn setting(&mut self, found: &FoundSetting, bases: &[PathBuf], alias: &Path) {
        let setting = &found.setting;
        match naming(setting) {
            SettingTarget::Nothing => {}
            SettingTarget::Hooks => {
                for base in bases {
                    self.hooks(base, &setting.value, alias);
                }
            }
            SettingTarget::Template => {
                for base in bases {
                    self.template(base, &setting.value, alias);
                }
            }
            SettingTarget::File => {
                for base in bases {
                    let at = self.place(base, &setting.value);
                    self.add(at, alias, NamedKind::File);
                }
            }
            SettingTarget::Settings => {
                let at = found.path(self.home);
                let at = at.and_then(|at| self.below(&at));
                self.add(at, alias, NamedKind::File);
            }
            SettingTarget::Programs => {
                for word in program_words(&setting.value) {
                    for base in bases {
                        self.program(base, &word, alias);
                    }
                }
            }
        }
    }

    fn hooks(&mut self, base: &Path, value: &str, alias: &Path) {
        let Some(at) = self.place(base, value) else {
            return;
        };
        if at == Path::new("") {
            // The root holds other files, too.
            for hook in HOOKS {
                self.add(Some(PathBuf::from(hook)), alias, NamedKind::Hook);
            }
        } else {
            self.add(Some(at), alias, NamedKind::Folder);
        }
    }

    /// Notes a folder from which git fills each new repository.
    fn template(&mut self, base: &Path, value: &str, alias: &Path) {
        let Some(at) = self.place(base, value) else {
            return;
        };
        if at == Path::new("") {
            // The root holds other files, too.
            for folder in ["hooks", "info", "config"] {
                self.add(Some(PathBuf::from(folder)), alias, NamedKind::Folder);
            }
        } else {
            self.add(Some(at), alias, NamedKind::Folder);
        }
    }

    /// Notes a word of a command line.
    fn program(&mut self, base: &Path, word: &Word, alias: &Path) {
        let Some(at) = self.place(base, &word.text) else {
            return;
        };
        let found = self.workspace.host_path(&at).metadata().ok();
        let counts = match &found {
            Some(meta) if meta.is_dir() => word.is_interpreted,
            Some(_) => true,
            None => word.is_certain,
        };
        if counts {
            self.add(Some(at), alias, NamedKind::Program);
        }
    }

    /// Returns the path below the root that a setting means. Links are only followed from outside.
    fn place(&self, base: &Path, value: &str) -> Option<PathBuf> {
        self.below(&base.join(expand(value, self.home)?))
    }

    /// Returns the path below the root of an absolute path, or where links lead from there.
    fn below(&self, path: &Path) -> Option<PathBuf> {
        let named = normalize(path);
        let of_given = || self.workspace.below_root(&named).map(Path::to_owned);
        let of_links = || self.workspace.below(&normalize(&end_of_links(path)));
        let found = self.workspace.below(&named).or_else(of_given);
        found.or_else(of_links)
    }

    /// Adds a path, and where links lead from it.
    fn add(&mut self, at: Option<PathBuf>, alias: &Path, named: NamedKind) {
        let Some(at) = at.filter(|at| *at != Path::new("")) else {
            return;
        };
        let real = canonical_prefix(&self.workspace.host_path(&at));
        let real = self.workspace.below(&real);
        for path in real.into_iter().chain([at]) {
            if path == Path::new("") {
                continue;
            }
            if self.found.paths.len() >= MAX_NAMED {
                let why = "git's settings name too many files";
                self.found.unread.get_or_insert(why.to_owned());
                return;
            }
            let entry = self.found.paths.entry(path);
            entry.or_insert_with(|| NamedPath {
                settings: alias.to_owned(),
                is_folder: named == NamedKind::Folder,
                may_be_empty: matches!(
                    named,
                    NamedKind::Folder | NamedKind::File | NamedKind::Hook
                ),
            });
        }
    }
}

/// What a setting names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamedKind {
    Folder,
    File,
    Hook,
    Program,
}

/// Returns where links lead from a path, also those to what is not there yet.
fn end_of_links(path: &Path) -> PathBuf {
    const MAX_LINKS: usize = 40;
    let mut end = canonical_prefix(path);
    for _ in 0..MAX_LINKS {
        let target = |at: &Path| Some((at.to_owned(), at.read_link().ok()?));
        let Some((link, to)) = end.ancestors().find_map(target) else {
            break;
        };
        let rest = end.strip_prefix(&link).unwrap_or(Path::new(""));
        let whole = link.parent().unwrap_or(Path::new("/")).join(to).join(rest);
        end = canonical_prefix(&whole);
    }
    end
}

/// Resolves `.` and `..` of an absolute path by text alone.
fn normalize(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            part => clean.push(part),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::{GitSettingsReader, NameCollector, NamedByGit};
    use crate::workspace::Workspace;

    /// What the user's files say, and the paths of the workspace that they name. K5.
    const ROWS: &[(&str, &str, &[&str])] = &[
        (
            ".gitconfig",
            "[core]\nhooksPath = tools/hooks",
            &["tools/hooks"],
        ),
        (
            ".config/git/config",
            "[core]\nhooksPath = tools/hooks",
            &["tools/hooks"],
        ),
        (".gitconfig", "[include]\npath = more", &["tools/other"]),
        (
            ".gitconfig",
            "[includeIf \"onbranch:x\"]\npath = ~/more",
            &["tools/other"],
        ),
        (
            ".gitconfig",
            "[diff]\nexternal = ./tools/hooks/d.sh",
            &["tools/hooks/d.sh"],
        ),
        (
            ".gitconfig",
            "[filter \"x\"]\nclean = sh tools/hooks/c",
            &["tools/hooks/c"],
        ),
        (
            ".gitconfig",
            "[core]\neditor = code --wait\npager = less",
            &[],
        ),
        (".gitconfig", "[init]\ntemplateDir = tools", &["tools"]),
        (
            ".gitconfig",
            "[init]\ntemplateDir = WS",
            &["config", "hooks", "info"],
        ),
        (".gitconfig", "[user]\nname = A", &[]),
        (
            ".gitconfig",
            "[include]\npath = WS/shared",
            &["shared", "tools/third"],
        ),
    ];

    /// Links of the user, to below `ws` or the home folder; the user's settings, and the paths of the workspace that they lead to.
    type LinksRow = (
        &'static [(&'static str, &'static str)],
        &'static str,
        &'static [&'static str],
    );

    /// K5.
    const LINKS: &[LinksRow] = &[
        (
            &[(".config/git/hooks", "ws/tools/hooks")],
            "[core]\nhooksPath = ~/.config/git/hooks",
            &["tools/hooks"],
        ),
        (
            &[("a", "home/b"), ("b", "ws/tools")],
            "[core]\nhooksPath = ~/a/new",
            &["tools/new"],
        ),
        (
            &[("t", "ws/tools")],
            "[init]\ntemplateDir = ~/t",
            &["tools"],
        ),
        (
            &[("p", "ws/tools/hooks/d.sh")],
            "[diff]\nexternal = ~/p",
            &["tools/hooks/d.sh"],
        ),
        (&[(".config/git/config", "ws/empty")], "", &["empty"]),
        (&[(".config/git", "ws/none")], "", &["none/config"]),
        (&[("x", "ws/none")], "[include]\npath = ~/x", &["none"]),
        (&[("x", "home/x")], "[core]\nhooksPath = ~/x/hooks", &[]),
    ];

    #[test]
    fn what_the_users_settings_lead_to_over_links_is_known() {
        for (links, text, expect) in LINKS {
            let folder = tempfile::tempdir().unwrap();
            let base = folder.path().canonicalize().unwrap();
            let (home, root) = (base.join("home"), base.join("ws"));
            fs::create_dir_all(root.join(".git")).unwrap();
            fs::create_dir_all(root.join("tools/hooks")).unwrap();
            fs::create_dir_all(&home).unwrap();
            fs::write(home.join(".gitconfig"), text).unwrap();
            fs::write(root.join("empty"), "[core]\n").unwrap();
            fs::write(root.join("tools/hooks/d.sh"), "").unwrap();
            for (link, to) in *links {
                let link = home.join(link);
                fs::create_dir_all(link.parent().unwrap()).unwrap();
                std::os::unix::fs::symlink(base.join(to), link).unwrap();
            }
            assert_eq!(named(&root, &home), *expect, "{text} {links:?}");
        }
    }

    /// Returns the paths outside of `.git` that the user's settings name.
    fn named(root: &Path, home: &Path) -> Vec<String> {
        let workspace = Workspace::open(root).unwrap();
        let mut of_user = GitSettingsReader::of_everything(Some(home));
        of_user.read_user(&|_| None);
        let collector = NameCollector {
            workspace: &workspace,
            home: Some(home),
            found: NamedByGit::default(),
        };
        let found = collector.read([PathBuf::from(".git")].into_iter(), &[], &of_user);
        assert_eq!(found.unread(), None);
        let paths = found
            .paths()
            .map(|(path, _)| path.to_string_lossy().into_owned());
        paths.filter(|path| !path.starts_with(".git")).collect()
    }

    #[test]
    fn what_the_users_settings_name_in_the_workspace_is_known() {
        for (file, text, expect) in ROWS {
            let folder = tempfile::tempdir().unwrap();
            let base = folder.path().canonicalize().unwrap();
            let (home, root) = (base.join("home"), base.join("ws"));
            let put = |path: PathBuf, text: &str| {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text.replace("WS", root.to_str().unwrap())).unwrap();
            };
            put(home.join(file), text);
            put(home.join("more"), "[core]\nhooksPath = tools/other");
            put(root.join("shared"), "[core]\nhooksPath = tools/third");
            put(root.join(".git/HEAD"), "");
            assert_eq!(named(&root, &home), *expect, "{text}");
        }
    }
}
