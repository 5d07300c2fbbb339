//! Discovering 1,000 skills, and again after none or one of them changed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use haft::skill::set::{SkillFilter, SkillRoot, SkillSet};
use measure::{Row, Step, fact, interleave, wall_ms};

/// Number of skills below the root; each has a script and a reference beside it.
const SKILLS: usize = 1_000;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    for n in 0..SKILLS {
        write(
            folder.path(),
            n,
            "Read, fill in and sign the forms of this kind.",
        );
    }
    // A file that changed a moment ago is read again, because its next change might keep its timestamp.
    std::thread::sleep(Duration::from_millis(200));
    let set = || {
        SkillSet::new(
            vec![SkillRoot::configured(folder.path())],
            SkillFilter::default(),
        )
    };
    let kept = set();
    assert_eq!(kept.current().skills().len(), SKILLS);
    fact("skills discovered", SKILLS);

    let discover = || {
        let (ms, found) = wall_ms(|| set().current());
        assert_eq!(found.skills().len(), SKILLS);
        ms
    };
    let unchanged = || {
        let before = kept.current().version();
        let (ms, found) = wall_ms(|| kept.current());
        assert_eq!(found.version(), before);
        ms
    };
    let mut turn = 0;
    let one = || {
        turn += 1;
        write(folder.path(), 500, &format!("Changed {turn} times."));
        std::thread::sleep(Duration::from_millis(60));
        let (ms, found) = wall_ms(|| kept.current());
        let changed = found.find("form-0500").expect("it is there");
        assert!(changed.description().contains(&turn.to_string()));
        ms
    };
    let steps: Vec<Step<'_>> = vec![
        (Row::new("haft/skills/discovered", "ms"), Box::new(discover)),
        (Row::new("haft/skills/unchanged", "ms"), Box::new(unchanged)),
        (Row::new("haft/skills/one changed", "ms"), Box::new(one)),
    ];
    interleave(measure::rounds(15), steps);
}

fn write(folder: &Path, n: usize, what: &str) {
    let dir = folder.join(format!("form-{n:04}"));
    fs::create_dir_all(dir.join("scripts")).expect("a folder");
    fs::create_dir_all(dir.join("references")).expect("a folder");
    let text = format!(
        "---\nname: form-{n:04}\ndescription: >\n  {what}\n  Use when a form of kind {n} is met.\nlicense: MIT\n\
        metadata:\n  version: '1.{n}'\n---\n\n# Forms\n\n{}\n",
        "Look at the fields first, then fill them in one by one.\n".repeat(40)
    );
    fs::write(dir.join("SKILL.md"), text).expect("a file");
    fs::write(dir.join("scripts/fill.py"), "print('filled')\n").expect("a file");
    fs::write(dir.join("references/fields.md"), "# Fields\n").expect("a file");
}
