//! Undo restores the tree after any command, and undoing the undo restores the command's changes.

use haft::policy::Profile;
use haft_sandbox::Sandbox;
use serde_json::json;

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
    eprintln!("changes: {CASES} random commands undone: ok");
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
