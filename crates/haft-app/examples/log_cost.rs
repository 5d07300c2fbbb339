//! Measures what the signed log of finished runs costs: what finishing a run takes with and without it, and when its leaf is signed.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement prints, and stops where it cannot go on"
)]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use haft::Principal;
use haft_app::Haft;
use haft_app::environment::Environment;

/// Number of runs that finish one after another.
const RUNS: usize = 101;
/// Number of runs that finish at once.
const BURST: usize = 1000;

fn haft(folder: &Path, key: &Path) -> Haft {
    let data = folder.join("data").display().to_string();
    let variables = [("XDG_DATA_HOME", data.as_str())];
    Haft::builder()
        .state(folder.join("state"))
        .environment(Environment::from(&variables[..]))
        .set("record.key", key.display().to_string())
        .build()
        .unwrap()
}

fn leaves(folder: &Path) -> usize {
    let text = fs::read_to_string(folder.join("state/log/leaves"));
    text.map_or(0, |text| text.lines().count())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Finishes runs one after another; returns what finishing took, and how long after that each leaf was signed.
async fn one_by_one(folder: &Path, haft: &Haft, is_logged: bool) -> (Duration, Duration) {
    let (mut finished, mut signed) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let run = haft.run(Principal::local("ada")).await.unwrap();
        let known = leaves(folder);
        let before = Instant::now();
        run.finish().await.unwrap();
        finished.push(before.elapsed());
        let before = Instant::now();
        while is_logged && leaves(folder) == known {
            std::thread::yield_now();
        }
        signed.push(before.elapsed());
    }
    (median(finished), median(signed))
}

#[tokio::main]
async fn main() {
    let folder = std::env::temp_dir().join(format!("haft-log-cost-{}", std::process::id()));
    let key = folder.join("record.key");
    for round in 1..=3 {
        // No key can be made there, so no leaf is written.
        for (name, key, is_logged) in [
            ("without", Path::new("/proc/none/key"), false),
            ("with", &key, true),
        ] {
            let place = folder.join(format!("{round}-{name}"));
            fs::create_dir_all(&place).unwrap();
            let haft = haft(&place, key);
            let (finished, signed) = one_by_one(&place, &haft, is_logged).await;
            println!(
                "round {round}, {name} a log: finish {finished:?}, signed {signed:?} later (medians of {RUNS})"
            );
            if is_logged {
                let mut runs = Vec::new();
                for _ in 0..BURST {
                    runs.push(haft.run(Principal::local("ada")).await.unwrap());
                }
                let before = Instant::now();
                for run in runs {
                    run.finish().await.unwrap();
                }
                let finished = before.elapsed();
                while leaves(&place) < RUNS + BURST {
                    std::thread::yield_now();
                }
                let rest = before.elapsed().saturating_sub(finished);
                println!(
                    "round {round}, {BURST} at once: finished in {finished:?}, all signed {rest:?} later"
                );
            }
            haft.shut_down().await;
        }
    }
    fs::remove_dir_all(folder).unwrap();
}
