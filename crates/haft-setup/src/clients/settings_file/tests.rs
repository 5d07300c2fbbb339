//! Writing a settings file: what it keeps, and what is refused rather than lost.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::XattrFlags;
use rustix::io::Errno;

use super::{EditableFile, FileTexts};
use crate::problem::Problem;

fn write(path: &Path, text: &str) -> Result<FileTexts, Problem> {
    let file = EditableFile::locate(path, "Cursor", "by hand".to_owned(), None)?;
    file.rewrite(false, |_| Ok(text.to_owned()))
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    (folder, path)
}

#[test]
fn a_file_keeps_its_mode_its_owner_and_its_attributes() {
    for mode in [0o600, 0o640, 0o664, 0o755, 0o444 | 0o200] {
        let (_folder, at) = folder();
        let path = at.join("settings.json");
        fs::write(&path, "{}").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let before = fs::metadata(&path).unwrap();
        let file = File::open(&path).unwrap();
        let set = rustix::fs::fsetxattr(&file, "user.origin", b"a\0b", XattrFlags::empty());
        let has_attributes = match set {
            Ok(()) => true,
            Err(Errno::OPNOTSUPP) => false,
            Err(e) => panic!("{e}"),
        };
        write(&path, "{\"a\": 1}").unwrap();
        let after = fs::metadata(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"a\": 1}");
        assert_eq!(after.mode(), before.mode());
        assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
        if has_attributes {
            let mut value = [0; 16];
            let length = rustix::fs::getxattr(&path, "user.origin", &mut value[..]).unwrap();
            assert_eq!(&value[..length], b"a\0b");
        }
        assert_eq!(fs::read_dir(&at).unwrap().count(), 1, "no draft");
    }
}

#[test]
fn a_file_with_several_names_is_refused_and_the_recipe_works() {
    let (_folder, at) = folder();
    let (path, other) = (at.join("my settings.json"), at.join("other"));
    fs::write(&path, "{}").unwrap();
    fs::hard_link(&path, &other).unwrap();
    let refused = write(&path, "{\"a\": 1}").unwrap_err();
    assert!(refused.what().contains("2 names (hard links)"), "{refused}");
    let advice = refused.advice().unwrap();
    let (_, recipe) = advice.split_once("first: ").unwrap();
    let words: Vec<Vec<String>> = recipe
        .split(" && ")
        .map(|line| haft_shell::plain_words(line).unwrap())
        .collect();
    let [copy, rename] = &*words else {
        panic!("{recipe}")
    };
    assert_eq!((&*copy[0], &*copy[1], &*rename[0]), ("cp", "-p", "mv"));
    fs::copy(&copy[2], &copy[3]).unwrap();
    fs::rename(&rename[1], &rename[2]).unwrap();
    write(&path, "{\"a\": 1}").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"a\": 1}");
    assert_eq!(fs::read_to_string(&other).unwrap(), "{}");
}

#[test]
fn a_link_is_followed_and_one_that_leads_nowhere_is_named_with_what_to_do() {
    let (_folder, at) = folder();
    fs::create_dir(at.join("dotfiles")).unwrap();
    fs::write(at.join("dotfiles/settings.json"), "{}").unwrap();
    symlink("dotfiles/settings.json", at.join("link")).unwrap();
    write(&at.join("link"), "{\"a\": 1}").unwrap();
    assert!(at.join("link").is_symlink());
    let text = fs::read_to_string(at.join("dotfiles/settings.json")).unwrap();
    assert_eq!(text, "{\"a\": 1}");
    symlink("missing/settings.json", at.join("gone")).unwrap();
    symlink("missing", at.join("gone folder")).unwrap();
    symlink("loop", at.join("loop")).unwrap();
    symlink("there", at.join("back")).unwrap();
    symlink("back", at.join("there")).unwrap();
    let nowhere = "which cannot be reached: No such file";
    for (name, link, what) in [
        ("gone", "gone", nowhere),
        ("gone folder/settings.json", "gone folder", nowhere),
        (
            "loop",
            "loop",
            "is a symbolic link that leads back to itself",
        ),
        (
            "back/settings.json",
            "back",
            "is a symbolic link that leads back to itself",
        ),
    ] {
        let refused = write(&at.join(name), "{}").unwrap_err();
        let link = at.join(link);
        let said = refused.what();
        assert!(said.contains(what), "{said}");
        assert!(
            said.contains(&format!("{} is a symbolic link", link.display())),
            "{said}"
        );
        let advice = refused.advice().unwrap();
        let (_, line) = advice.split_once("the link: ").unwrap();
        let words = haft_shell::plain_words(line).unwrap();
        assert_eq!(
            words,
            ["rm".to_owned(), link.display().to_string()],
            "{advice}"
        );
        assert!(!said.contains("os error 40"), "{said}");
    }
}
