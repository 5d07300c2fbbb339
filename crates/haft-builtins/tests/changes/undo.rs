//! Undo restores the tree after any command, and undoing the undo restores the command's changes.

use haft::Outcome;
use haft::policy::Profile;
use haft_sandbox::Sandbox;
use serde_json::json;

use crate::git::host;
use crate::scene::{Scene, Settings};

/// Number of random commands.
const CASES: u64 = 40;
/// Paths that they work on.
const PLACES: [&str; 9] = [
    "a",
    "b",
    "d",
    "d/a",
    "d/b",
    "d/e",
    "d/e/a",
    "l",
    "'new\nline'",
];

/// A random number generator with a seed (Marsaglia's xorshift64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most as u64).unwrap()
    }

    fn place(&mut self) -> &'static str {
        PLACES[self.below(PLACES.len())]
    }

    fn step(&mut self, number: usize) -> String {
        let (from, to) = (self.place(), self.place());
        match self.below(10) {
            0 => format!("echo {number} > {to}"),
            1 => format!("echo {number} >> {to}"),
            2 => format!("rm -rf {to}"),
            3 => format!("mv {from} {to}"),
            4 => format!("mkdir -p {to}"),
            5 => format!("ln -sfn {from} {to}"),
            6 => format!("chmod 7{}0 {to}", self.below(8)),
            7 => format!("cp -r {from} {to}"),
            8 => format!("ln -f {from} {to}"),
            _ => format!("rm -rf {to}; mkdir {to}; echo {number} > {to}/a"),
        }
    }
}

pub(crate) async fn all(sandbox: &Sandbox) {
    for seed in 1..=CASES {
        one(sandbox, seed).await;
    }
    settings_of_repositories_go(sandbox).await;
    repositories_that_were_made_go(sandbox).await;
    eprintln!("changes: {CASES} random commands undone: ok");
}

fn scene(sandbox: &Sandbox) -> Scene {
    let settings = Settings {
        profile: Profile::Trusted,
        ..Settings::default()
    };
    let scene = Scene::with(sandbox, &settings);
    let make = "git init -q -b main . && echo a > a && git add . && git commit -qm one && rm -r .git/hooks";
    host(&scene.at(""), make);
    scene
}

async fn undo(scene: &Scene, line: &str, then: &str) -> (Outcome, String) {
    let outcome = scene.run(line).await;
    let shown = serde_json::to_string(&outcome).unwrap();
    assert!(outcome.is_ok(), "{shown}");
    host(&scene.at(""), then);
    let call = json!({"run": outcome.run.as_str(), "call": outcome.call.as_str()});
    let undone = scene.call("undo_changes", call).await;
    let shown = format!("{shown}\n{}", serde_json::to_string(&undone).unwrap());
    (undone, shown)
}

/// What no commit has is taken back in a repository, and the rest is left to git.
async fn settings_of_repositories_go(sandbox: &Sandbox) {
    let scene = scene(sandbox);
    let before = scene.tree();
    let line = "mkdir .git/hooks; echo evil > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; git config alias.st '!evil'; \
        echo '* x' > .git/info/attributes; echo z > z; git branch b";
    let (undone, shown) = undo(&scene, line, "true").await;
    assert!(undone.is_ok(), "{shown}");
    host(&scene.at(""), "git branch -d b");
    let mut after = scene.tree();
    after.retain(|path, _| !path.starts_with(".git/logs"));
    let mut expect = before;
    expect.retain(|path, _| !path.starts_with(".git/logs"));
    assert_eq!(after, expect, "{shown}");
    // Settings that were changed since stay, and are named.
    let line = "git config alias.st '!evil'; echo z > z";
    let (undone, shown) = undo(&scene, line, "git config alias.own status").await;
    assert!(undone.is_ok(), "{shown}");
    assert!(!scene.at("z").exists(), "{shown}");
    assert!(
        shown.contains("not undone .git/config: it was changed after the run"),
        "{shown}"
    );
}

/// A repository that the command made goes as a whole, or stays as a whole if it was used since.
async fn repositories_that_were_made_go(sandbox: &Sandbox) {
    let make = "git init -q sub && git -C sub -c user.name=A -c user.email=a@b commit -q --allow-empty -m s && echo s > sub/s";
    let scene = scene(sandbox);
    let before = scene.tree();
    let (undone, shown) = undo(&scene, make, "true").await;
    assert!(undone.is_ok(), "{shown}");
    assert_eq!(scene.tree(), before, "{shown}");
    let (undone, shown) = undo(&scene, make, "git -C sub commit -q --allow-empty -m own").await;
    assert!(undone.is_ok(), "{shown}");
    assert!(!scene.at("sub/s").exists(), "{shown}");
    assert_eq!(
        host(&scene.at("sub"), "git log --format=%s"),
        "own\ns\n",
        "{shown}"
    );
    assert!(
        shown.contains("not undone sub/.git: the run made it, and it was used since"),
        "{shown}"
    );
    assert!(!shown.contains("removed sub\\n"), "{shown}");
}

async fn one(sandbox: &Sandbox, seed: u64) {
    let settings = Settings {
        profile: Profile::Trusted,
        ..Settings::default()
    };
    let scene = Scene::with(sandbox, &settings);
    for path in ["a", "d/a", "d/e/a"] {
        scene.put(path, path);
    }
    std::os::unix::fs::symlink("d/a", scene.at("l")).unwrap();
    let before = scene.tree();
    let mut numbers = Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let steps = 1 + numbers.below(12);
    let steps: Vec<String> = (0..steps).map(|number| numbers.step(number)).collect();
    let line = format!("({}) 2>/dev/null; true", steps.join("; "));
    let outcome = scene.run(&line).await;
    let shown = format!(
        "seed {seed}: {line}: {}",
        serde_json::to_string(&outcome).unwrap()
    );
    assert!(outcome.is_ok(), "{shown}");
    let after = scene.tree();
    if before == after {
        return;
    }
    let call = json!({"run": outcome.run.as_str(), "call": outcome.call.as_str()});
    let undone = scene.call("undo_changes", call).await;
    let told = format!("{shown}\n{}", serde_json::to_string(&undone).unwrap());
    assert!(undone.is_ok(), "{told}");
    assert_eq!(scene.tree(), before, "{told}");
    let call = json!({"run": undone.run.as_str(), "call": undone.call.as_str()});
    let again = scene.call("undo_changes", call).await;
    let told = format!("{told}\n{}", serde_json::to_string(&again).unwrap());
    assert!(again.is_ok(), "{told}");
    assert_eq!(scene.tree(), after, "{told}");
}
