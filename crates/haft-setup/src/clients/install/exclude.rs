//! `.git/info/exclude`: keeps a file with paths of this machine out of commits, without a change to what the repository shares.

use std::path::{Path, PathBuf};

use crate::clients::settings_file::EditableFile;
use crate::plain_file;
use crate::problem::Problem;

/// Marks the line that haft added.
const MARK: &str = "# haft: paths of this machine";
/// Maximum size of the exclude file, and of the files that lead to it.
const MAX_BYTES: u64 = 1024 * 1024;

/// Adds a file to the exclude file of its repository, unless it is there; returns the exclude file, or `None` if the
/// file is in no repository or its path has characters that mean something in a pattern.
///
/// # Errors
/// The exclude file cannot be read or written.
pub fn hide(file: &Path) -> Result<Option<PathBuf>, Problem> {
    let Some((exclude, pattern)) = place(file) else {
        return Ok(None);
    };
    rewrite(&exclude, |text| {
        if text.lines().any(|line| line == pattern) {
            return text.to_owned();
        }
        // Without a last line break before, there is none after: removing the lines restores every byte.
        if text.is_empty() || text.ends_with('\n') {
            format!("{text}{MARK}\n{pattern}\n")
        } else {
            format!("{text}\n{MARK}\n{pattern}")
        }
    })?;
    Ok(Some(exclude))
}

/// Removes the line that [`hide`] added.
///
/// # Errors
/// The exclude file cannot be read or written.
pub fn show(file: &Path) -> Result<(), Problem> {
    let Some((exclude, pattern)) = place(file) else {
        return Ok(());
    };
    if !exclude.exists() {
        return Ok(());
    }
    rewrite(&exclude, |text| {
        match text.strip_suffix(&format!("\n{MARK}\n{pattern}")) {
            Some(rest) => rest.to_owned(),
            None => text.replacen(&format!("{MARK}\n{pattern}\n"), "", 1),
        }
    })
}

/// Returns the exclude file of the file's repository, and the line for the file.
fn place(file: &Path) -> Option<(PathBuf, String)> {
    let root = file
        .ancestors()
        .skip(1)
        .find(|folder| folder.join(".git").exists())?;
    let pattern = file.strip_prefix(root).ok()?.to_str()?;
    // A name with characters that mean something in a pattern is left to the user.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | '-' | '_');
    if !pattern.chars().all(is_plain) {
        return None;
    }
    let git = common_folder(&root.join(".git"))?;
    Some((git.join("info/exclude"), format!("/{pattern}")))
}

/// Returns the folder that all work trees of a repository share.
fn common_folder(git: &Path) -> Option<PathBuf> {
    if git.is_dir() {
        return Some(git.to_owned());
    }
    // The `.git` of a work tree or submodule is a file that names its folder.
    let named = plain_file::read(git, MAX_BYTES).ok()?;
    let folder = git.parent()?.join(named.strip_prefix("gitdir:")?.trim());
    match plain_file::read(&folder.join("commondir"), MAX_BYTES) {
        Ok(common) => Some(folder.join(common.trim())),
        Err(_) => folder.is_dir().then_some(folder),
    }
}

fn rewrite(exclude: &Path, edit: impl FnOnce(&str) -> String) -> Result<(), Problem> {
    let advice = "edit it by hand, or make it and its folder writable".to_owned();
    let file = EditableFile::locate(exclude, "git", advice, None)?;
    file.rewrite(false, |text| Ok(edit(text))).map(drop)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_hidden_from_git_and_shown_again() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let file = root.join("app/.mcp.json");
        assert_eq!(hide(&file).unwrap(), None, "no repository");
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::create_dir_all(root.join("app")).unwrap();
        let exclude = root.join(".git/info/exclude");
        for _ in 0..2 {
            assert_eq!(hide(&file).unwrap().as_deref(), Some(&*exclude));
        }
        let text = fs::read_to_string(&exclude).unwrap();
        assert_eq!(text, format!("{MARK}\n/app/.mcp.json\n"));
        show(&file).unwrap();
        assert_eq!(fs::read_to_string(&exclude).unwrap(), "");
        // A last line without a line break has none again.
        fs::write(&exclude, "*.log").unwrap();
        hide(&file).unwrap();
        let text = fs::read_to_string(&exclude).unwrap();
        assert_eq!(text, format!("*.log\n{MARK}\n/app/.mcp.json"));
        show(&file).unwrap();
        assert_eq!(fs::read_to_string(&exclude).unwrap(), "*.log");
        // What the user wrote stays.
        fs::write(&exclude, "*.log\n/app/.mcp.json").unwrap();
        hide(&file).unwrap();
        show(&file).unwrap();
        assert_eq!(
            fs::read_to_string(&exclude).unwrap(),
            "*.log\n/app/.mcp.json"
        );
    }

    #[test]
    fn a_work_tree_uses_the_exclude_file_of_its_repository() {
        let folder = tempfile::tempdir().unwrap();
        let (main, tree) = (folder.path().join("main"), folder.path().join("tree"));
        let own = main.join(".git/worktrees/tree");
        fs::create_dir_all(&own).unwrap();
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        fs::write(own.join("commondir"), "../..\n").unwrap();
        hide(&tree.join(".mcp.json")).unwrap();
        let text = fs::read_to_string(main.join(".git/info/exclude")).unwrap();
        assert!(text.ends_with("\n/.mcp.json\n"), "{text}");
    }
}
