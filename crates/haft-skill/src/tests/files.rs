//! The files of a skill: bounded and below its folder, whatever is there.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{CWD, Mode};

use super::{skill_md, write};
use crate::check::{Rigour, check};
use crate::{Skill, SkillSource, walk};
use haft_types::error::{ErrorKind, ToolError};

fn load(dir: &Path) -> Skill {
    let dir = dir.canonicalize().unwrap();
    let source = SkillSource::User(dir.as_path().into());
    walk::read(&dir, "SKILL.md", &source).unwrap_or_else(|broken| panic!("{broken:?}"))
}

/// Checks that loading and checking report why the skill in a folder does not load.
#[track_caller]
fn refused(dir: &Path, told: &str) {
    let real = dir.canonicalize().unwrap();
    let broken =
        walk::read(&real, "SKILL.md", &SkillSource::User(real.as_path().into())).unwrap_err();
    let checked = check(dir, Rigour::Lenient).unwrap();
    assert!(!checked.ok);
    for problems in [&broken.problems, &checked.problems] {
        assert!(
            problems.iter().any(|p| p.message.contains(told)),
            "{problems:?}"
        );
    }
}

fn pipe(path: &Path) {
    rustix::fs::mkfifoat(CWD, path, Mode::from_raw_mode(0o644)).unwrap();
}

#[test]
fn instructions_are_read_when_they_are_wanted() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().join("demo");
    write(dir.join("SKILL.md"), skill_md("demo"));
    let skill = load(&dir);
    assert_eq!(skill.instructions().unwrap(), "# demo");
    write(dir.join("SKILL.md"), "---\nname: demo\n---\n\nnew\0\n");
    assert_eq!(skill.instructions().unwrap(), "new\u{fffd}");
    let large = format!("{}{}", skill_md("demo"), "x".repeat(1 << 20));
    write(dir.join("SKILL.md"), large);
    let error = skill.instructions().unwrap_err().to_string();
    assert_eq!(error, "\"SKILL.md\" is larger than 1048576 bytes");
    std::fs::remove_dir_all(&dir).unwrap();
    let error = ToolError::from(skill.instructions().unwrap_err());
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

#[test]
fn what_is_no_readable_file_is_told_and_not_waited_for() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = |name: &str| {
        let dir = tmp.path().join(name);
        std::fs::create_dir(&dir).unwrap();
        dir
    };
    let folder = dir("folder");
    std::fs::create_dir(folder.join("SKILL.md")).unwrap();
    refused(&folder, "is a folder");
    let fifo = dir("fifo");
    pipe(&fifo.join("SKILL.md"));
    refused(&fifo, "is a pipe");
    let socket = dir("socket");
    let _listener = UnixListener::bind(socket.join("SKILL.md")).unwrap();
    refused(&socket, "is a socket");
    let out = dir("out");
    write(tmp.path().join("secret.md"), skill_md("out"));
    symlink("../secret.md", out.join("SKILL.md")).unwrap();
    refused(&out, "leaves the skill's folder");
    let absolute = dir("absolute");
    symlink("/etc/passwd", absolute.join("SKILL.md")).unwrap();
    refused(&absolute, "leaves the skill's folder");
    let looped = dir("looped");
    symlink("SKILL.md", looped.join("SKILL.md")).unwrap();
    refused(&looped, "leaves the skill's folder");
    let nul = dir("nul");
    write(nul.join("SKILL.md"), b"\0\0\0");
    refused(&nul, "no front matter");
    let huge = dir("huge");
    let text = format!(
        "---\nname: huge\ndescription: {}\n---\n",
        "x".repeat(1 << 20)
    );
    write(huge.join("SKILL.md"), text);
    let real = huge.canonicalize().unwrap();
    let broken =
        walk::read(&real, "SKILL.md", &SkillSource::User(real.as_path().into())).unwrap_err();
    assert!(
        broken.problems[0]
            .message
            .contains("not closed within 64 KiB")
    );
    let overlay = dir("overlay");
    write(overlay.join("SKILL.md"), skill_md("overlay"));
    pipe(&overlay.join("skill.yaml"));
    refused(&overlay, "is a pipe");
}

#[test]
fn an_unreadable_file_is_told() {
    if rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: root reads every file");
        return;
    }
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("SKILL.md");
    write(&file, skill_md("x"));
    let none = std::os::unix::fs::PermissionsExt::from_mode(0o0);
    std::fs::set_permissions(&file, none).unwrap();
    refused(tmp.path(), "open \"SKILL.md\": Permission denied");
}

#[test]
fn links_that_stay_inside_are_followed() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().join("demo");
    write(dir.join("docs/real.md"), skill_md("demo"));
    symlink("docs/real.md", dir.join("SKILL.md")).unwrap();
    assert_eq!(load(&dir).instructions().unwrap(), "# demo");
}

#[test]
fn resources_are_all_files_that_stay_inside() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().join("demo");
    write(dir.join("SKILL.md"), skill_md("demo"));
    write(dir.join("b.md"), "bb");
    write(dir.join("scripts/a.py"), "a");
    write(dir.join("scripts/SKILL.md"), "x");
    write(dir.join(".git/config"), "x");
    write(dir.join("node_modules/m/i.js"), "x");
    write(tmp.path().join("outside.md"), "secret");
    symlink("b.md", dir.join("inside.md")).unwrap();
    symlink("../outside.md", dir.join("outside.md")).unwrap();
    symlink("nothing", dir.join("dangling")).unwrap();
    symlink("scripts", dir.join("linked")).unwrap();
    pipe(&dir.join("pipe"));
    let listed = load(&dir).resources().unwrap();
    let files = listed
        .files
        .iter()
        .map(|file| format!("{} {}", file.path, file.bytes));
    let expect = [
        "b.md 2",
        "inside.md 2",
        "scripts/SKILL.md 1",
        "scripts/a.py 1",
    ];
    assert_eq!(files.collect::<Vec<_>>(), expect);
    let told: Vec<&str> = listed.problems.iter().map(|p| p.message.as_str()).collect();
    let expect = [
        "\"dangling\" is left out: a link to nothing",
        "\"linked\" is left out: a link to a folder is not followed",
        "\"outside.md\" is left out: a link that leaves the skill's folder",
        "\"pipe\" is left out: a pipe",
    ];
    assert_eq!(told, expect);
}

#[test]
fn ten_thousand_resources_are_listed_and_no_more() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().join("demo");
    write(dir.join("SKILL.md"), skill_md("demo"));
    std::fs::create_dir(dir.join("data")).unwrap();
    for n in 0..10_005 {
        std::fs::File::create(dir.join(format!("data/{n:05}"))).unwrap();
    }
    let listed = load(&dir).resources().unwrap();
    assert_eq!(listed.files.len(), 10_000);
    assert_eq!(listed.files[9_999].path, "data/09999");
    assert!(
        listed.problems[0].message.contains("more than 10000 files"),
        "{:?}",
        listed.problems
    );
}

#[test]
fn a_resource_is_read_in_pieces_and_never_from_outside() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().join("demo");
    write(dir.join("SKILL.md"), skill_md("demo"));
    write(dir.join("a/b.txt"), "0123456789");
    write(dir.join("large"), vec![7; (1 << 20) + 5]);
    write(tmp.path().join("secret"), "secret");
    symlink("../secret", dir.join("out")).unwrap();
    symlink("..", dir.join("up")).unwrap();
    let skill = load(&dir);
    let read = |path: &str, range| skill.read_resource(path, range);
    let text = |range| String::from_utf8(read("a/b.txt", range).unwrap().bytes).unwrap();
    assert_eq!(text(0..u64::MAX), "0123456789");
    assert_eq!(
        (text(2..4), text(8..20), text(20..30)),
        ("23".into(), "89".into(), String::new())
    );
    let large = read("large", 0..u64::MAX).unwrap();
    assert_eq!((large.bytes.len(), large.total), (1 << 20, (1 << 20) + 5));
    let rows = [
        ("out", ErrorKind::Denied),
        ("up/secret", ErrorKind::Denied),
        ("../secret", ErrorKind::Denied),
        ("a/../../secret", ErrorKind::Denied),
        ("/etc/passwd", ErrorKind::Denied),
        ("missing", ErrorKind::NotFound),
        ("a", ErrorKind::Failed),
        ("", ErrorKind::InvalidArguments),
        ("a\0b", ErrorKind::InvalidArguments),
    ];
    for (path, kind) in rows {
        let error = ToolError::from(read(path, 0..10).unwrap_err());
        assert_eq!(error.kind(), kind, "{path}: {error}");
    }
}

#[test]
fn a_folder_swapped_for_a_link_is_not_followed() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().join("demo");
    write(dir.join("SKILL.md"), skill_md("demo"));
    let skill = load(&dir);
    std::fs::rename(&dir, tmp.path().join("moved")).unwrap();
    symlink("moved", &dir).unwrap();
    for error in [
        skill.instructions().unwrap_err(),
        skill.resources().unwrap_err(),
    ] {
        assert!(
            error.to_string().contains("changed while it was used"),
            "{error}"
        );
    }
}
