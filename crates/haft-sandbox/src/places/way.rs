//! Resolves where a path leads, and every path passed on the way.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Maximum number of symbolic links followed; the kernel's own limit.
const LINKS: usize = 40;

/// Returns every path that is examined from `path` to the file it names, the file itself last: a process that can
/// change one of them decides which file the path refers to.
pub(super) fn to(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut passed = Vec::new();
    walk(path, &mut passed)?.map_or(Ok(passed), Err)
}

/// Returns the same for a path that may lead to nothing, or in a circle: as far as it leads, and then as it is written. Whoever can create
/// what is missing decides, too.
pub(super) fn as_far_as_it_leads(path: &Path) -> Vec<PathBuf> {
    let mut passed = Vec::new();
    // What cannot be followed further is what was passed.
    let _ = walk(path, &mut passed);
    passed
}

/// Adds every path that is passed; returns the first error of one that is not there.
fn walk(path: &Path, passed: &mut Vec<PathBuf>) -> io::Result<Option<io::Error>> {
    let path = std::path::absolute(path)?;
    let mut missing = None;
    let mut todo: Vec<_> = path.components().rev().map(own).collect();
    let mut at = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = todo.pop() {
        match part.components().next() {
            Some(Component::ParentDir) => {
                at.pop();
                continue;
            }
            Some(Component::Normal(name)) => at.push(name),
            Some(Component::RootDir) => {
                at = PathBuf::from("/");
                continue;
            }
            _ => continue,
        }
        passed.push(at.clone());
        match fs::symlink_metadata(&at) {
            Ok(meta) if meta.is_symlink() => {}
            Ok(_) => continue,
            Err(error) => {
                missing.get_or_insert(error);
                continue;
            }
        }
        links += 1;
        if links > LINKS {
            return Err(io::Error::from(rustix::io::Errno::LOOP));
        }
        let to = fs::read_link(&at)?;
        at.pop();
        todo.extend(to.components().rev().map(own));
    }
    // A link at the end of the path was pushed before its target.
    passed.push(at);
    Ok(missing)
}

fn own(component: Component<'_>) -> PathBuf {
    PathBuf::from(component.as_os_str())
}

/// Returns the canonical paths; if a path does not exist, its existing part is resolved and the rest kept.
pub(super) fn resolved(paths: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = paths
        .into_iter()
        .filter_map(|path| std::path::absolute(path).ok())
        .map(|path| existing(&path).unwrap_or(path))
        .collect();
    all.sort();
    all.dedup();
    all
}

fn existing(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|above| {
        let real = above.canonicalize().ok()?;
        let rest = path.strip_prefix(above).ok()?;
        Some(if rest == Path::new("") {
            real
        } else {
            real.join(rest)
        })
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    use super::{as_far_as_it_leads, resolved, to};

    #[test]
    fn every_path_on_the_way_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("real/bin")).unwrap();
        fs::write(root.join("real/bin/tool"), "").unwrap();
        fs::create_dir(root.join("a")).unwrap();
        symlink("../real/bin", root.join("a/b")).unwrap();
        symlink(root.join("a/b/tool"), root.join("c")).unwrap();
        let way = to(&root.join("c")).unwrap();
        for passed in ["c", "a", "a/b", "real", "real/bin", "real/bin/tool"] {
            assert!(way.contains(&root.join(passed)), "{passed}: {way:?}");
        }
        assert_eq!(way.last(), Some(&root.join("real/bin/tool")));
        symlink("loop", root.join("loop")).unwrap();
        assert!(to(&root.join("loop")).is_err());
        assert!(to(&root.join("absent")).is_err());
        symlink(root.join("real/new"), root.join("dangling")).unwrap();
        for (path, passed) in [
            ("dangling/x", "real/new/x"),
            ("absent/../a/b/tool", "real/bin/tool"),
            ("loop/x", "loop"),
        ] {
            let way = as_far_as_it_leads(&root.join(path));
            assert!(way.contains(&root.join(passed)), "{path}: {way:?}");
        }
        assert_eq!(to(Path::new("/")).unwrap(), [PathBuf::from("/")]);
    }

    #[test]
    fn what_does_not_exist_is_resolved_as_far_as_it_does() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("real")).unwrap();
        symlink("real", root.join("link")).unwrap();
        let all = resolved([root.join("link/new/file"), root.join("link")]);
        assert_eq!(all, [root.join("real"), root.join("real/new/file")]);
    }
}
