//! Records of servers: they are found while their servers run, and disappear with them however they end.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::{ServerAnnouncement, ServerDescription, choose, servers};
use crate::environment::Environment;
use crate::home::Home;

const LONG: Duration = Duration::from_secs(60);

fn home(folder: &Path) -> Home {
    Home::locate(Some(folder), &Environment::default()).unwrap()
}

fn record(workspace: Option<&str>, began: i128) -> ServerDescription {
    ServerDescription {
        version: "1.2.3".to_owned(),
        url: "http://127.0.0.1:7421".to_owned(),
        workspace: workspace.map(str::to_owned),
        store: "home".to_owned(),
        pid: std::process::id(),
        began,
    }
}

#[test]
fn a_server_is_found_while_it_lives() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(folder.path());
    assert!(servers(&home).unwrap().is_empty());
    let one = ServerAnnouncement::new(&home, &record(None, 1)).unwrap();
    let two = ServerAnnouncement::new(&home, &record(Some("/work"), 2)).unwrap();
    let found = servers(&home).unwrap();
    let began: Vec<i128> = found.iter().map(|server| server.record.began).collect();
    assert_eq!(began, [2, 1], "the newest first");
    drop(two);
    assert_eq!(servers(&home).unwrap().len(), 1);
    drop(one);
    assert!(servers(&home).unwrap().is_empty());
    assert_eq!(folder.path().join("servers").read_dir().unwrap().count(), 0);
}

#[test]
fn records_that_no_server_holds_are_removed_and_others_are_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(folder.path());
    let whole = serde_json::to_string(&record(None, 1)).unwrap();
    let servers_folder = folder.path().join("servers");
    fs::create_dir(&servers_folder).unwrap();
    // A record left by `kill -9`.
    let stale = servers_folder.join("0123.json");
    fs::write(&stale, &whole).unwrap();
    assert!(servers(&home).unwrap().is_empty());
    assert!(!stale.exists());
    // A record of another haft version, or a damaged one: its server runs, but nothing is known about it.
    for text in [
        "",
        "{",
        "{\"version\":\"9\"}",
        &whole.replace("http://127", "file://127"),
        &whole.replace("7421", "7421 --flag"),
    ] {
        let other = ServerAnnouncement::new(&home, &record(None, 1)).unwrap();
        fs::write(&other.path, text).unwrap();
        assert!(servers(&home).unwrap().is_empty(), "{text}");
        assert!(other.path.exists(), "{text}");
    }
}

#[test]
fn a_server_whose_record_is_taken_away_is_asked_to_end() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(folder.path());
    let announced = ServerAnnouncement::new(&home, &record(None, 1)).unwrap();
    assert!(announced.stands());
    let server = servers(&home).unwrap().remove(0);
    let stopping = std::thread::spawn(move || server.stop(LONG));
    while announced.stands() {
        std::thread::yield_now();
    }
    drop(announced);
    stopping.join().unwrap().unwrap();
    let announced = ServerAnnouncement::new(&home, &record(None, 1)).unwrap();
    let stays = servers(&home).unwrap().remove(0).stop(Duration::ZERO);
    assert!(stays.unwrap_err().what().contains("did not end"));
    drop(announced);
}

#[test]
fn the_server_of_this_folder_is_chosen_then_the_one_in_the_background() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(folder.path());
    let mut other = record(Some("/other"), 4);
    other.store = "another".to_owned();
    let rows: [(&[ServerDescription], Option<i128>); 5] = [
        (
            &[
                record(None, 1),
                record(Some("/work"), 2),
                record(Some("/b"), 3),
            ],
            Some(2),
        ),
        (&[record(None, 1), record(Some("/b"), 3)], Some(1)),
        (&[record(Some("/a"), 1), record(Some("/b"), 3)], Some(3)),
        (&[other], None),
        (&[], None),
    ];
    for (records, expect) in rows {
        let all: Vec<_> = records
            .iter()
            .map(|record| ServerAnnouncement::new(&home, record).unwrap())
            .collect();
        let chosen = choose(servers(&home).unwrap(), "/work", "home");
        assert_eq!(chosen.map(|server| server.record.began), expect);
        drop(all);
    }
}
