//! A run that its process left is resumed: one chain of lines, wherever it was cut.

use super::*;
use crate::audit::verify::verify;

fn resumed(run: &RunId) -> AuditEvent {
    let start = RunStart {
        principal: Principal::local("ada"),
        entry_point: "resume".into(),
        workspace: Some("/w".into()),
        profile: "workspace".into(),
    };
    event(run, EventKind::RunResumed(Arc::new(start)))
}

/// Two calls that ended, one of them unsuccessfully, and one without a known end.
async fn left_behind() -> Scene {
    let scene = Scene::new();
    for (id, status) in [("c1", Status::Ok), ("c2", Status::Denied)] {
        let ran = call(id, "{}");
        let started = EventKind::CallStarted(Arc::clone(&ran));
        scene.archive.record(event(&scene.run, started)).unwrap();
        let ended = EventKind::CallEnded(ran, end(status));
        scene.archive.record(event(&scene.run, ended)).unwrap();
    }
    let doubt = EventKind::CallStarted(call("c3", "{}"));
    scene.archive.record(event(&scene.run, doubt)).unwrap();
    scene.archive.flush().await.unwrap();
    scene.archive.shut_down();
    scene
}

#[tokio::test]
async fn a_record_is_gone_on_with_from_every_cut_that_leaves_its_beginning() {
    let scene = left_behind().await;
    let path = scene.dir().join("events.jsonl");
    let whole = fs::read(&path).unwrap();
    let views = ["logs/tools.jsonl", "logs/errors.jsonl"].map(|view| scene.dir().join(view));
    let kept = views.clone().map(|view| fs::read(view).unwrap());
    let first = memchr::memchr(b'\n', &whole).unwrap() + 1;
    for cut in (first..=whole.len()).step_by(7).chain([whole.len()]) {
        fs::write(&path, &whole[..cut]).unwrap();
        for (view, bytes) in views.iter().zip(&kept) {
            // A view may lack its last lines, too.
            let agrees = memchr::memchr_iter(b'\n', &whole[..cut]).count() >= 5;
            fs::write(
                view,
                if agrees {
                    &bytes[..bytes.len() / 2]
                } else {
                    b""
                },
            )
            .unwrap();
        }
        let archive = Archive::new(scene.home.path(), Redactor::default()).unwrap();
        archive.record(resumed(&scene.run)).unwrap();
        let again = call("c4", "{}");
        let ended = EventKind::CallEnded(again, end(Status::Timeout));
        archive.record(event(&scene.run, ended)).unwrap();
        let closed = archive.close(&scene.run).await.unwrap();
        let report = verify(&scene.dir(), Some(&closed)).unwrap();
        assert!(report.ok, "cut at {cut}: {report:?}");
        assert_eq!(scene.lines("logs/tools.jsonl").len() as u64, closed.calls);
    }
}

#[tokio::test]
async fn a_record_that_is_broken_or_closed_is_not_gone_on_with() {
    let scene = left_behind().await;
    let path = scene.dir().join("events.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    for (text, says) in [
        (whole.replacen("c1", "c9", 1), "broken at line 2"),
        (String::new(), "broken at line 1"),
    ] {
        fs::write(&path, text).unwrap();
        let archive = Archive::new(scene.home.path(), Redactor::default()).unwrap();
        let error = archive
            .record_durably(resumed(&scene.run))
            .await
            .unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
    fs::write(&path, &whole).unwrap();
    let archive = Archive::new(scene.home.path(), Redactor::default()).unwrap();
    archive.record(resumed(&scene.run)).unwrap();
    archive.close(&scene.run).await.unwrap();
    let error = archive
        .record_durably(resumed(&scene.run))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("the run is closed"), "{error}");
}
