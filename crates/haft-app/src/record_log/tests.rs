//! Runs that finish get their leaves, whatever is killed, changed, missing or slow meanwhile.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::SystemTime;

use haft::audit::archive::Archive;
use haft::audit::redact::Redactor;
use haft::audit::{AuditEvent, AuditSink as _, EventKind, RunStart};
use haft::call::Principal;
use haft_builtins::web::http::Http;
use tempfile::TempDir;

use super::*;
use crate::record_log::anchor::AnchorState;

struct Scene {
    _root: TempDir,
    home: PathBuf,
    archive: Archive,
}

impl Scene {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().canonicalize().unwrap().join("state");
        fs::create_dir(&home).unwrap();
        let archive = Archive::new(&home, Redactor::default()).unwrap();
        Self {
            _root: root,
            home,
            archive,
        }
    }

    fn data(&self) -> PathBuf {
        self.home.parent().unwrap().join("data")
    }

    fn settings(&self) -> LogSettings {
        LogSettings {
            place: LogPlace::new(&self.home, None, Some(&self.data())),
            anchor: None,
            is_index_shared: false,
            is_required: false,
        }
    }

    fn log(&self) -> RecordLog {
        RecordLog::new(self.settings(), Notices::default())
    }

    /// Starts a run.
    fn start(&self, name: &str) -> RunId {
        let run = RunId::new(name);
        let start = RunStart {
            principal: Principal::local("ada"),
            entry_point: "call".into(),
            workspace: None,
            profile: "workspace".into(),
        };
        let event = AuditEvent {
            run: run.clone(),
            at: clock::now(),
            what: EventKind::RunStarted(start.into()),
        };
        self.archive.record(event).unwrap();
        run
    }

    /// Finishes a run as the application does.
    async fn finish(&self, log: &RecordLog, name: &str) {
        let run = self.start(name);
        log.closing(&run);
        let closed = self.archive.close(&run).await.unwrap();
        log.closed(&run, &closed);
    }

    fn leaves(&self) -> Vec<RunLeaf> {
        let text = fs::read_to_string(self.settings().place.leaves()).unwrap_or_default();
        text.lines()
            .map(|line| RunLeaf::of_line(line).unwrap())
            .collect()
    }

    fn logged(&self) -> Vec<String> {
        self.leaves().into_iter().map(|leaf| leaf.run).collect()
    }
}

#[tokio::test]
async fn finished_runs_get_a_leaf_that_says_how_their_records_end() {
    let scene = Scene::new();
    let log = scene.log();
    for name in ["r1", "r2", "r3"] {
        scene.finish(&log, name).await;
    }
    log.shut_down();
    assert_eq!(scene.logged(), ["r1", "r2", "r3"]);
    for leaf in scene.leaves() {
        let dir = run_dir(&scene.home, &leaf.run).unwrap();
        assert_eq!(runs::ending(&dir).unwrap(), Some((leaf.ended, leaf.closed)));
    }
    assert!(!scene.settings().place.pending().has_any());
    let status = log.status();
    assert_eq!((status.size, status.pending), (3, 0));
    assert!(status.fault.is_none(), "{status:?}");
}

#[tokio::test]
async fn what_a_killed_process_left_the_next_one_writes() {
    let scene = Scene::new();
    // Before there was a log.
    let run = scene.start("r1");
    scene.archive.close(&run).await.unwrap();
    let first = scene.log();
    scene.finish(&first, "r2").await;
    first.shut_down();
    assert_eq!(scene.logged(), ["r1", "r2"]);
    // Killed before the record was closed; killed after it; gone with its record.
    let open = scene.start("r3");
    first.closing(&open);
    let closed = scene.start("r4");
    first.closing(&closed);
    scene.archive.close(&closed).await.unwrap();
    first.closing(&RunId::new("r5"));
    let note = scene.home.join("log/pending/r5");
    let note = fs::File::options().write(true).open(note).unwrap();
    note.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    scene.archive.flush().await.unwrap();
    let second = scene.log();
    second.shut_down();
    assert_eq!(scene.logged(), ["r1", "r2", "r4"]);
    assert_eq!(scene.settings().place.pending().list().unwrap(), ["r3"]);
    // It is resumed and finishes.
    let end = scene.archive.close(&open).await.unwrap();
    second.closing(&open);
    let third = scene.log();
    third.closed(&open, &end);
    third.shut_down();
    assert_eq!(scene.logged(), ["r1", "r2", "r4", "r3"]);
    assert!(!scene.settings().place.pending().has_any());
}

#[tokio::test]
async fn a_record_that_is_changed_before_its_leaf_is_written_has_the_leaf_that_it_earned() {
    let scene = Scene::new();
    let log = scene.log();
    let run = scene.start("r1");
    log.closing(&run);
    let closed = scene.archive.close(&run).await.unwrap();
    let record = scene.home.join("runs/r1/events.jsonl");
    let text = fs::read_to_string(&record).unwrap();
    fs::write(&record, text.replace("ada", "eve")).unwrap();
    let other = runs::closed(record.parent().unwrap()).unwrap();
    assert_eq!(
        other.as_ref(),
        Some(&closed),
        "only the last line is compared"
    );
    fs::write(&record, text.replace("\"calls\":0", "\"calls\":9")).unwrap();
    log.closed(&run, &closed);
    log.shut_down();
    assert_eq!(scene.leaves()[0].closed, closed);
}

#[tokio::test]
async fn without_its_key_runs_go_on_and_get_their_leaves_later() {
    let scene = Scene::new();
    let log = scene.log();
    scene.finish(&log, "r1").await;
    log.shut_down();
    let key = scene.data().join("record.key");
    let hidden = key.with_extension("away");
    fs::rename(&key, &hidden).unwrap();
    let log = scene.log();
    scene.finish(&log, "r2").await;
    log.shut_down();
    assert_eq!(scene.logged(), ["r1"]);
    let (fault, advice) = log.status().fault.unwrap();
    assert!(
        fault.contains("is missing") && advice.contains("restore"),
        "{fault}; {advice}"
    );
    assert!(!key.exists(), "no other key takes its place");
    let required = LogSettings {
        is_required: true,
        ..scene.settings()
    };
    let required = RecordLog::new(required, Notices::default());
    let refused = required.admit().await.unwrap_err();
    assert!(refused.to_string().contains("no run starts"), "{refused}");
    assert!(log.admit().await.is_ok());
    fs::rename(&hidden, &key).unwrap();
    required.admit().await.unwrap();
    scene.log().shut_down();
    assert_eq!(scene.logged(), ["r1", "r2"]);
}

#[tokio::test]
async fn a_log_that_was_rewritten_is_told_once_and_not_extended() {
    let scene = Scene::new();
    let log = scene.log();
    scene.finish(&log, "r1").await;
    log.shut_down();
    fs::remove_dir_all(scene.home.join("log")).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let receiver = Arc::clone(&told);
    let notices = Notices::new(move |text| receiver.lock().push(text.to_owned()));
    let log = RecordLog::new(scene.settings(), notices);
    for name in ["r2", "r3", "r4"] {
        scene.finish(&log, name).await;
    }
    log.shut_down();
    let told = told.lock().clone();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("it had 1 run") && told[0].contains("verify --log"),
        "{told:?}"
    );
    assert!(scene.logged().is_empty());
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_keeps_no_run_from_finishing() {
    if rustix::process::geteuid().is_root() {
        eprintln!("skipped: root writes everywhere");
        return;
    }
    let scene = Scene::new();
    fs::create_dir(scene.home.join("log")).unwrap();
    fs::set_permissions(scene.home.join("log"), fs::Permissions::from_mode(0o500)).unwrap();
    let log = scene.log();
    scene.finish(&log, "r1").await;
    log.shut_down();
    assert!(log.status().fault.is_some());
}

/// Answers one request after another with these status lines, and returns the bodies.
fn serve(
    listener: TcpListener,
    answers: &'static [&'static str],
) -> thread::JoinHandle<Vec<String>> {
    thread::spawn(move || {
        let mut bodies = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut request, mut part) = (Vec::new(), [0; 4096]);
            loop {
                let count = stream.read(&mut part).unwrap();
                request.extend_from_slice(&part[..count]);
                let text = String::from_utf8_lossy(&request).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else {
                    continue;
                };
                let length = head.lines().find_map(|line| {
                    let (name, value) = line.split_once(": ")?;
                    name.eq_ignore_ascii_case("content-length")
                        .then(|| value.parse::<usize>().ok())?
                });
                if body.len() >= length.unwrap_or_default() {
                    bodies.push(body.to_owned());
                    break;
                }
            }
            let reply =
                format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.write_all(reply.as_bytes()).unwrap();
        }
        bodies
    })
}

#[tokio::test]
async fn checkpoints_are_posted_and_a_failure_is_noted_until_one_arrives() {
    let scene = Scene::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!(
        "http://{}/anchor?token=secret",
        listener.local_addr().unwrap()
    );
    let server = serve(listener, &["500 Internal Server Error", "202 Accepted"]);
    let log = || {
        let anchor = AnchorService::new(&url, Http::trusted());
        let settings = LogSettings {
            anchor: Some(Anchor::Url(anchor)),
            ..scene.settings()
        };
        RecordLog::new(settings, Notices::default())
    };
    let first = log();
    scene.finish(&first, "r1").await;
    let answered = |state: AnchorState| state.fault.is_some_and(|fault| fault.contains("500"));
    while !answered(AnchorState::read(&scene.home.join("log"))) {
        thread::yield_now();
    }
    first.shut_down();
    let (place, fault) = first.status().anchor.unwrap();
    assert_eq!(
        (place.as_str(), fault.as_deref()),
        (
            "http://127.0.0.1",
            Some("the service answered with status 500")
        )
    );
    // The time of the next attempt has come.
    let state = scene.home.join("log/anchor.json");
    let text = fs::read_to_string(&state).unwrap();
    fs::write(
        &state,
        text.replace("\"failed_at\":", "\"failed_at\":0,\"was\":"),
    )
    .unwrap();
    let second = log();
    let bodies = server.join().unwrap();
    second.shut_down();
    assert_eq!(bodies[0], bodies[1]);
    assert_eq!(
        bodies[1],
        fs::read_to_string(scene.settings().place.checkpoint()).unwrap()
    );
    while AnchorState::read(&scene.home.join("log")).failures != 0 {
        thread::yield_now();
    }
    assert_eq!(second.status().anchor.unwrap().1, None);
}

#[tokio::test]
async fn checkpoints_are_appended_to_the_anchor_s_file() {
    let scene = Scene::new();
    let path = scene.data().join("anchor");
    for name in ["r1", "r2"] {
        let settings = LogSettings {
            anchor: Some(Anchor::File(path.clone())),
            ..scene.settings()
        };
        let log = RecordLog::new(settings, Notices::default());
        scene.finish(&log, name).await;
        log.shut_down();
        assert_eq!(log.status().anchor.unwrap().1, None);
    }
    let notes = checkpoint::each(&fs::read_to_string(path).unwrap());
    let sizes: Vec<u64> = notes
        .iter()
        .map(|note| checkpoint::unproved(note).unwrap().size)
        .collect();
    assert_eq!(sizes, [1, 2]);
}
