//! Days start and end, broken files are reported, and parallel counters take no more than there is.

use std::fs;

use super::*;

fn commands(commands: u64) -> EffectCounts {
    EffectCounts {
        commands,
        ..EffectCounts::NONE
    }
}

fn most(commands: u64) -> EffectLimits {
    EffectLimits {
        commands: Some(commands),
        ..EffectLimits::default()
    }
}

fn date(text: &str) -> Date {
    text.parse().unwrap()
}

#[test]
fn a_day_is_counted_until_the_next_one_begins() {
    let home = tempfile::tempdir().unwrap();
    let ledger = Ledger::in_folder(home.path().join("budgets"));
    let (first, next) = (date("2026-11-26"), date("2026-11-27"));
    assert_eq!(ledger.on(first).unwrap(), DayCounts::begun(first));
    for _ in 0..2 {
        ledger
            .reserve_on(first, commands(1), Some(&most(2)))
            .unwrap();
    }
    assert!(
        ledger
            .reserve_on(first, commands(1), Some(&most(2)))
            .is_err()
    );
    // A user agreed.
    ledger.reserve_on(first, commands(1), None).unwrap();
    assert_eq!(ledger.on(first).unwrap().uses, commands(3));
    ledger.give_back(commands(1), first).unwrap();
    ledger
        .reserve_on(next, commands(1), Some(&most(2)))
        .unwrap();
    // A clock that is set back does not start the day anew, and what an earlier day returns does not affect this one.
    assert_eq!(ledger.on(first).unwrap().uses, commands(1));
    ledger.give_back(commands(1), first).unwrap();
    assert_eq!(ledger.on(next).unwrap().uses, commands(1));
}

#[test]
fn what_cannot_be_read_is_said_and_nothing_is_counted_over_it() {
    let home = tempfile::tempdir().unwrap();
    let today = date("2026-11-26");
    let long = format!("{{\"v\":1,\"x\":\"{}\"}}", "x".repeat(5000));
    let counts = r#""deletions":0,"sends":0,"commands":0"#;
    let rows = [
        (String::new(), "EOF"),
        ("{".to_owned(), "EOF"),
        (long, "more than 4096 bytes"),
        (
            format!(r#"{{"v":2,"day":"2026-11-26",{counts},"money":0}}"#),
            "version 2",
        ),
        (
            format!(r#"{{"v":1,"day":"soon",{counts},"money":0}}"#),
            "invalid day \"soon\"",
        ),
        (
            format!(r#"{{"v":1,"day":"2026-11-26",{counts},"money":-1}}"#),
            "invalid amount of money",
        ),
        (
            format!(r#"{{"v":1,"day":"2026-11-28",{counts},"money":0}}"#),
            "it is for 2026-11-28, but today is 2026-11-26",
        ),
    ];
    let ledger = Ledger::in_folder(home.path());
    for (text, said) in rows {
        fs::write(ledger.file(), &text).unwrap();
        let read = ledger.on(today).unwrap_err().to_string();
        assert!(read.contains(said) && read.contains("day.json"), "{read}");
        let taken = ledger.reserve_on(today, commands(1), Some(&most(9)));
        assert!(matches!(taken, Err(BudgetError::Unknown(_))), "{text}");
        assert_eq!(fs::read_to_string(ledger.file()).unwrap(), text);
    }
    fs::remove_file(ledger.file()).unwrap();
    std::os::unix::fs::symlink("elsewhere", ledger.file()).unwrap();
    assert!(ledger.on(today).is_err());
}

#[test]
fn two_that_count_the_same_folder_never_take_more_than_there_is() {
    let home = tempfile::tempdir().unwrap();
    let today = date("2026-11-26");
    let taken: usize = std::thread::scope(|threads| {
        let count = || {
            let ledger = Ledger::in_folder(home.path());
            let take = |_: &u32| {
                ledger
                    .reserve_on(today, commands(1), Some(&most(30)))
                    .is_ok()
            };
            (0..25).filter(take).count()
        };
        let threads = [count; 4].map(|count| threads.spawn(count));
        threads.map(|thread| thread.join().unwrap()).iter().sum()
    });
    assert_eq!(taken, 30);
    let ledger = Ledger::in_folder(home.path());
    assert_eq!(ledger.on(today).unwrap().uses, commands(30));
}

#[test]
fn money_adds_up() {
    let home = tempfile::tempdir().unwrap();
    let ledger = Ledger::in_folder(home.path());
    for money in [0.25, f64::NAN, -1.0, 0.5] {
        ledger.spend(money).unwrap();
    }
    let today = Ledger::in_folder(home.path()).today().unwrap();
    assert!((today.money - 0.75).abs() < 1e-9, "{today:?}");
}
