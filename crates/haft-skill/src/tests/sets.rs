//! Sets of skills: order, shadowing, trust, filters, changes.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use super::{skill_md, write};
use crate::set::{Catalogue, SkillFilter, SkillRoot, SkillSet, WORKSPACE_FOLDERS};

fn workspace(at: &Path, trusted: bool) -> Vec<SkillRoot> {
    let at = at.canonicalize().unwrap();
    let root = |folder: &&str| SkillRoot::workspace(&at, folder, trusted);
    WORKSPACE_FOLDERS.iter().map(root).collect()
}

fn skill(at: &Path, path: &str, name: &str) {
    write(at.join(path).join("SKILL.md"), skill_md(name));
}

fn names(catalogue: &Catalogue) -> Vec<&str> {
    catalogue
        .skills()
        .iter()
        .map(super::super::Skill::name)
        .collect()
}

fn all(roots: Vec<SkillRoot>) -> Arc<Catalogue> {
    SkillSet::new(roots, SkillFilter::default()).current()
}

#[test]
fn earlier_roots_win_and_shadowing_is_told() {
    let tmp = tempfile::tempdir().unwrap();
    let at = tmp.path();
    skill(at, "ws/.claude/skills/a", "a");
    skill(at, "ws/.agents/skills/a", "a");
    skill(at, "ws/.haft/skills/b", "b");
    skill(at, "user/a", "a");
    skill(at, "user/c", "c");
    let mut roots = workspace(&at.join("ws"), true);
    roots.push(SkillRoot::user(at.join("user")));
    roots.push(SkillRoot::user(at.join("missing")));
    let catalogue = all(roots);
    assert_eq!(names(&catalogue), ["b", "a", "c"]);
    let a = catalogue.find("a").unwrap();
    assert!(a.dir().ends_with(".agents/skills/a"));
    assert_eq!(a.source().word(), "workspace");
    assert_eq!(catalogue.find("c").unwrap().source().word(), "user");
    let shadowed: Vec<_> = catalogue
        .shadowed()
        .iter()
        .map(|s| s.skill.location())
        .collect();
    assert_eq!(shadowed.len(), 2);
    assert!(shadowed[0].ends_with(".claude/skills/a/SKILL.md"));
    assert!(catalogue.shadowed().iter().all(|s| s.by == a.location()));
    assert!(catalogue.problems().is_empty() && catalogue.withheld().is_empty());
}

#[test]
fn a_workspace_that_is_not_trusted_is_named_and_not_read() {
    let tmp = tempfile::tempdir().unwrap();
    skill(tmp.path(), ".agents/skills/a", "a");
    let catalogue = all(workspace(tmp.path(), false));
    assert!(catalogue.skills().is_empty() && catalogue.broken().is_empty());
    assert!(matches!(catalogue.withheld(), [path] if path.ends_with(".agents/skills")));
}

#[test]
fn a_filter_hides_and_deny_wins() {
    let tmp = tempfile::tempdir().unwrap();
    for name in ["pdf-read", "pdf-write", "git"] {
        skill(tmp.path(), name, name);
    }
    let seen = |allow: &[&str], deny: &[&str]| {
        let list = |patterns: &[&str]| patterns.iter().map(|p| (*p).to_owned()).collect();
        let filter = SkillFilter {
            allow: list(allow),
            deny: list(deny),
        };
        let current = SkillSet::new(vec![SkillRoot::configured(tmp.path())], filter).current();
        assert_eq!(current.skills().len() + current.hidden().len(), 3);
        names(&current).join(" ")
    };
    assert_eq!(seen(&[], &[]), "git pdf-read pdf-write");
    assert_eq!(seen(&["pdf-*"], &[]), "pdf-read pdf-write");
    assert_eq!(seen(&["*"], &["*-write"]), "git pdf-read");
    assert_eq!(seen(&["pdf-*"], &["pdf-read"]), "pdf-write");
    assert_eq!(seen(&["git"], &["*"]), "");
    assert_eq!(seen(&["p*f*r*d"], &[]), "pdf-read");
    assert_eq!(seen(&["pdf"], &[]), "");
}

#[test]
fn what_does_not_load_is_kept_with_its_reasons() {
    let tmp = tempfile::tempdir().unwrap();
    write(tmp.path().join("bad/SKILL.md"), "# nothing");
    write(tmp.path().join("half/SKILL.md"), "---\nname: other\n---\n");
    skill(tmp.path(), "good", "good");
    let root = || SkillRoot::configured(tmp.path());
    let catalogue = all(vec![root(), root()]);
    assert_eq!(names(&catalogue), ["good"]);
    let broken: Vec<&str> = catalogue.broken().iter().map(|b| b.name.as_str()).collect();
    assert_eq!(broken, ["bad", "other"]);
    // The same file below two roots shadows nothing.
    assert!(catalogue.shadowed().is_empty());
}

#[test]
fn folders_are_searched_so_deep_and_resources_are_not() {
    let tmp = tempfile::tempdir().unwrap();
    let at = tmp.path();
    skill(at, "1/2/3/4/5/six", "six");
    skill(at, "1/2/3/4/5/6/seven", "seven");
    skill(at, ".git/a", "a");
    skill(at, "node_modules/b", "b");
    skill(at, "outer", "outer");
    skill(at, "outer/inner", "inner");
    skill(at, "outer/assets/template", "template");
    skill(at, "outer/scripts", "scripts");
    write(at.join("lower/skill.md"), skill_md("lower"));
    let catalogue = all(vec![SkillRoot::configured(at)]);
    assert_eq!(names(&catalogue), ["lower", "outer", "inner", "six"]);
    let own = all(vec![SkillRoot::configured(at.join("outer"))]);
    assert_eq!(names(&own), ["outer", "inner"]);
}

#[test]
fn too_many_folders_are_told_and_shallow_ones_come_first() {
    let tmp = tempfile::tempdir().unwrap();
    for n in 0..20 {
        for m in 0..100 {
            std::fs::create_dir_all(tmp.path().join(format!("a{n}/b{m}"))).unwrap();
        }
    }
    skill(tmp.path(), "z", "z");
    let catalogue = all(vec![SkillRoot::configured(tmp.path())]);
    assert_eq!(names(&catalogue), ["z"]);
    assert!(
        catalogue.problems()[0]
            .message
            .contains("more than 2000 folders")
    );
}

#[test]
fn links_of_a_workspace_stay_in_it_and_those_of_a_user_do_not_loop() {
    let tmp = tempfile::tempdir().unwrap();
    let at = tmp.path();
    skill(at, "elsewhere/a", "a");
    skill(at, "ws/tools/b", "b");
    std::fs::create_dir_all(at.join("ws/.agents/skills")).unwrap();
    symlink("../../../elsewhere/a", at.join("ws/.agents/skills/a")).unwrap();
    symlink("../../tools/b", at.join("ws/.agents/skills/b")).unwrap();
    std::fs::create_dir_all(at.join("ws/.claude")).unwrap();
    symlink("../../elsewhere", at.join("ws/.claude/skills")).unwrap();
    symlink("..", at.join("elsewhere/loop")).unwrap();
    let catalogue = all(workspace(&at.join("ws"), true));
    assert_eq!(names(&catalogue), ["b"]);
    let told: Vec<&str> = catalogue
        .problems()
        .iter()
        .map(|p| p.message.as_str())
        .collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told.iter()
            .all(|told| told.contains("leaves the workspace"))
    );
    let catalogue = all(vec![SkillRoot::user(at.join("elsewhere"))]);
    assert_eq!(names(&catalogue), ["a", "b"]);
}

#[test]
fn changes_count_from_the_next_look_on() {
    let tmp = tempfile::tempdir().unwrap();
    let at = tmp.path().join("skills");
    let set = SkillSet::new(vec![SkillRoot::configured(&at)], SkillFilter::default());
    let versions = set.versions();
    let empty = set.current();
    assert!(empty.skills().is_empty());
    skill(&at, "a", "a");
    let first = set.current();
    assert_eq!(names(&first), ["a"]);
    assert!(first.version() > empty.version());
    assert!(Arc::ptr_eq(&first, &set.current()));

    // Written again immediately, with the same length: the file system's clock may not have ticked.
    write(at.join("a/SKILL.md"), skill_md("b"));
    let second = set.current();
    assert_eq!(names(&second), ["b"]);
    skill(&at, "a/more", "c");
    assert_eq!(names(&set.current()), ["b", "c"]);
    write(at.join("a/skill.yaml"), "version: '7'");
    let overlaid = set.current();
    assert_eq!(
        overlaid.find("b").unwrap().front().version.as_deref(),
        Some("7")
    );
    let (c, again) = (overlaid.find("c").unwrap(), set.current());
    assert!(
        c.is(again.find("c").unwrap()),
        "what did not change stays the same skill"
    );
    std::fs::remove_dir_all(&at).unwrap();
    assert!(set.current().skills().is_empty());
    assert_eq!(*versions.borrow(), set.current().version());
}
