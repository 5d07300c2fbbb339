//! Commands without a jail: output, time limits, tasks and their owners. What the jail adds is in `jailed.rs`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft::ErrorKind::{Failed, InvalidArguments, NotFound, Timeout};
use haft::call::{Origin, ToolCall};
use haft::executor::Executor;
use haft::policy::Policy;
use haft::progress::{Pace, ProgressEvent, ProgressSink, ProgressStream};
use haft::session::Session;
use haft::toolset::registry::ToolRegistry;
use haft::workspace::Workspace;
use haft_builtins::Builtins;
use haft_sandbox::{Backend, Config, Sandbox};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::scene::{Scene, data};

fn unjailed() -> Sandbox {
    Sandbox::new(Config {
        backend: Backend::Passthrough,
        require: haft_sandbox::Strength::None,
        ..Config::default()
    })
}

fn scene() -> Scene {
    Scene::with(|mut builtins| {
        builtins.sandbox = Some(unjailed());
        builtins
    })
}

#[tokio::test]
async fn a_command_gives_its_output_and_exit() {
    let scene = scene();
    scene.put("sub/a.txt", "x");
    let rows = [
        (json!({"command": "echo hello"}), "hello\n", ""),
        (
            json!({"argv": ["echo", "a  b", "$HOME"]}),
            "a  b $HOME\n",
            "",
        ),
        (
            json!({"command": "echo one && echo two >&2"}),
            "one\n",
            "two\n",
        ),
        (json!({"command": "ls", "cwd": "sub"}), "a.txt\n", ""),
        (
            json!({"command": "printenv WORD", "env": {"WORD": "w"}}),
            "w\n",
            "",
        ),
        // The shell of the line runs nothing before it.
        (
            json!({"command": "echo line; bash -c 'echo child'", "env": {"BASH_ENV": "$(echo said >&2)"}}),
            "line\nchild\n",
            "said\n",
        ),
        (json!({"command": "cat"}), "", ""),
        (json!({"command": "printf '日本'"}), "日本", ""),
    ];
    for (args, out, err) in rows {
        let got = scene.data("run_command", args.clone()).await;
        assert_eq!(
            (&got["stdout"], &got["stderr"]),
            (&json!(out), &json!(err)),
            "{args}"
        );
        assert_eq!(
            (&got["exit_code"], &got["stdout_bytes"]),
            (&json!(0), &json!(out.len())),
            "{args}"
        );
        assert!(got.get("task").is_none(), "{args}");
    }
}

#[tokio::test]
async fn wrong_commands_say_what_is_wrong() {
    let scene = scene();
    scene.put("file", "");
    let rows = [
        (
            json!({}),
            InvalidArguments,
            "exactly one of command and argv",
        ),
        (
            json!({"command": "a", "argv": ["a"]}),
            InvalidArguments,
            "exactly one of command and argv",
        ),
        (json!({"command": "  "}), InvalidArguments, "empty"),
        (
            json!({"command": "ls", "timeout_s": 43_201}),
            InvalidArguments,
            "timeout_s",
        ),
        (
            json!({"command": "no-such-program-here"}),
            Failed,
            "no program of this name",
        ),
        (json!({"command": "ls", "cwd": "none"}), NotFound, "none"),
        (
            json!({"command": "ls", "cwd": "file"}),
            Failed,
            "not a folder",
        ),
        (
            json!({"command": "ls", "cwd": ".."}),
            haft::ErrorKind::Denied,
            "leaves",
        ),
        (
            json!({"command": "ls", "env": {"A=B": "c"}}),
            InvalidArguments,
            "env",
        ),
        (
            json!({"command": "ls; ls", "env": {"BASH_FUNC_ls%%": "() { id; }"}}),
            InvalidArguments,
            "write the function into the line",
        ),
    ];
    for (args, kind, says) in rows {
        scene.fails("run_command", args, kind, says).await;
    }
}

#[tokio::test]
async fn a_failed_command_keeps_its_output() {
    let scene = scene();
    let outcome = scene
        .call(
            "run_command",
            json!({"command": "echo said; echo why >&2; exit 3"}),
        )
        .await;
    let error = outcome.error.as_ref().unwrap();
    assert_eq!(error.kind, Failed);
    assert!(error.message.contains("exit code 3"), "{}", error.message);
    assert_eq!(outcome.strength.as_deref(), Some("none"));
    let got = data(&outcome);
    assert_eq!(
        (&got["exit_code"], &got["stdout"], &got["stderr"]),
        (&json!(3), &json!("said\n"), &json!("why\n"))
    );
}

/// Waits until the process that wrote its id to a file has ended.
async fn gone(scene: &Scene, file: &str) {
    let number = std::fs::read_to_string(scene.at(file)).unwrap();
    let process = std::path::Path::new("/proc").join(number.trim());
    let begun = Instant::now();
    while process.exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{file} lives on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Seed fault 29: the output was lost at the time limit, and grandchildren survived.
#[tokio::test]
async fn the_deadline_ends_the_whole_tree_and_keeps_the_output() {
    let scene = scene();
    let line = "echo before; sh -c 'echo $$ > grandchild; sleep 600; touch alive' & sleep 600";
    let begun = Instant::now();
    let outcome = scene
        .call("run_command", json!({"command": line, "timeout_s": 1}))
        .await;
    assert!(begun.elapsed() < Duration::from_secs(15));
    assert_eq!(outcome.status, haft::Status::Timeout);
    assert_eq!(outcome.error.as_ref().unwrap().kind, Timeout);
    assert_eq!(data(&outcome)["stdout"], "before\n");
    gone(&scene, "grandchild").await;
    assert!(!scene.at("alive").exists());
}

/// Seed fault 29: the whole environment was passed on.
#[tokio::test]
async fn the_environment_is_not_passed_on() {
    let scene = scene();
    let got = scene.data("run_command", json!({"argv": ["env"]})).await;
    let env = got["stdout"].as_str().unwrap();
    assert!(env.contains("PATH="));
    assert!(!env.contains("CARGO_MANIFEST_DIR"), "{env}");
}

#[tokio::test]
async fn a_flood_keeps_its_beginning_and_its_end() {
    let scene = scene();
    let line = "echo first; yes | head -c 3000000; echo last";
    let outcome = scene.call("run_command", json!({"command": line})).await;
    assert!(outcome.is_ok(), "{:?}", outcome.error);
    let kept = &outcome.artifacts[0];
    assert_eq!(
        kept.bytes,
        "first\n".len() as u64 + 3_000_000 + "last\n".len() as u64
    );
    let read = |offset: u64| json!({"ref": kept.reference, "offset": offset, "limit": 300});
    let head = scene.call("read_artifact", read(0)).await.text();
    assert!(head.starts_with("first\ny\ny"), "{head}");
    let tail = scene
        .call("read_artifact", read(kept.bytes - 300))
        .await
        .text();
    assert!(tail.ends_with("y\ny\nlast\n"), "{tail}");
    let shown = data(&outcome)["stdout"].as_str().unwrap().to_owned();
    assert!(shown.starts_with("first\ny") && shown.ends_with("y\nlast\n"));
    assert!(shown.contains(&kept.reference));
    // Without a spool, haft keeps 8 MiB of a stream in memory and reports that the rest is lost.
    let line = "echo first; yes | head -c 30000000; echo last";
    let outcome = scene.call("run_command", json!({"command": line})).await;
    let data = data(&outcome);
    assert_eq!(
        (&data["truncated"], &data["stdout_bytes"]),
        (&json!(true), &json!(30_000_011))
    );
    assert!((6 << 20..8 << 20).contains(&outcome.artifacts[0].bytes));
    let shown = data["stdout"].as_str().unwrap();
    assert!(shown.contains("of 30000011 bytes are stored") && shown.ends_with("y\nlast\n"));
}

#[tokio::test]
async fn row_69_a_slice_larger_than_a_result_is_read_on_and_not_kept_again() {
    let scene = scene();
    for (line, expect) in [("seq 100000", true), ("head -c 300000 /dev/urandom", false)] {
        let outcome = scene.call("run_command", json!({"command": line})).await;
        let kept = &outcome.artifacts[0];
        let (mut at, mut bytes, mut turns) = (0, 0, 0);
        loop {
            let args = json!({"ref": kept.reference, "offset": at, "limit": 1_000_000});
            let slice = scene.call("read_artifact", args).await;
            assert!(slice.is_ok() && slice.artifacts.is_empty(), "{slice:?}");
            let data = data(&slice);
            assert_eq!(data.get("base64").is_none(), expect);
            let length = match data["base64"].as_str() {
                Some(text) => STANDARD.decode(text).unwrap().len(),
                None => slice.text().len(),
            };
            bytes += length as u64;
            at = data["next_offset"].as_u64().unwrap();
            assert_eq!(at, bytes);
            turns += 1;
            if data["eof"] == true {
                break;
            }
            assert!(length > 10_000, "{length}");
        }
        assert_eq!(bytes, kept.bytes);
        assert!(turns > 1);
    }
}

#[tokio::test]
async fn a_task_shows_each_byte_once_over_its_waits() {
    let scene = scene();
    let line = "for n in 1 2 3 4 5 6; do echo line $n; sleep 0.1; done";
    let started = scene
        .data("run_command", json!({"command": line, "background": true}))
        .await;
    let task = started["task"].as_str().unwrap().to_owned();
    let mut all = started["stdout"].as_str().unwrap().to_owned();
    let got = scene
        .data(
            "await_command",
            json!({"task": task, "pattern": "line [34]"}),
        )
        .await;
    assert_eq!(got["matched_pattern"], true);
    all.push_str(got["stdout"].as_str().unwrap());
    assert!(all.contains("line 3"));
    let got = scene
        .data("await_command", json!({"task": task, "timeout_s": 30}))
        .await;
    assert_eq!(got["exit_code"], 0);
    all.push_str(got["stdout"].as_str().unwrap());
    assert_eq!(all, "line 1\nline 2\nline 3\nline 4\nline 5\nline 6\n");
    let got = scene.data("await_command", json!({"task": task})).await;
    assert_eq!((&got["exit_code"], &got["stdout"]), (&json!(0), &json!("")));
}

/// Seed fault 19: the result said `matched` whenever a pattern was given.
#[tokio::test]
async fn a_pattern_is_matched_only_when_it_was_seen() {
    let scene = scene();
    let start = json!({"command": "echo one; sleep 30", "background": true});
    let task = scene.data("run_command", start).await["task"].clone();
    let got = scene
        .data(
            "await_command",
            json!({"task": task, "pattern": "two", "timeout_s": 1}),
        )
        .await;
    assert_eq!(got["matched_pattern"], false);
    assert_eq!(got["task"], task);
    // Output that was already shown is not new.
    let got = scene
        .data(
            "await_command",
            json!({"task": task, "pattern": "one", "timeout_s": 0}),
        )
        .await;
    assert_eq!(got["matched_pattern"], false);
    scene
        .fails(
            "await_command",
            json!({"task": task, "pattern": "("}),
            InvalidArguments,
            "pattern",
        )
        .await;
    let got = scene.data("kill_command", json!({"task": task})).await;
    assert_eq!(got["signal"], 9);
}

/// Seed fault 19: any session could read and kill any task.
#[tokio::test]
async fn another_session_s_task_is_not_found() {
    let scene = scene();
    let start = json!({"command": "sleep 30", "background": true});
    let task = scene.data("run_command", start).await["task"].clone();
    let other = scene.other_session();
    for tool in ["await_command", "kill_command"] {
        let theirs = scene
            .call_in(&other, Origin::Model, tool, json!({"task": task}))
            .await;
        assert_eq!(theirs.error.unwrap().kind, NotFound, "{tool}");
    }
    scene
        .fails(
            "kill_command",
            json!({"task": "task-000000000000"}),
            NotFound,
            "no task",
        )
        .await;
    scene.data("kill_command", json!({"task": task})).await;
}

#[tokio::test]
async fn a_detached_command_goes_on_as_a_task() {
    let scene = scene();
    let line = "echo early; sleep 2; echo late";
    let args = json!({"command": line, "timeout_s": 1, "on_timeout": "detach"});
    let got = scene.data("run_command", args).await;
    assert_eq!(got["stdout"], "early\n");
    assert!(got["suggested_timeout_s"].as_u64().unwrap() > 0);
    let got = scene
        .data("await_command", json!({"task": got["task"]}))
        .await;
    assert_eq!(
        (&got["stdout"], &got["exit_code"]),
        (&json!("late\n"), &json!(0))
    );
}

#[tokio::test]
async fn the_end_of_the_session_ends_its_tasks() {
    let scene = scene();
    let line = "echo $$ > number; mv number task; sleep 600; touch alive";
    scene
        .data("run_command", json!({"command": line, "background": true}))
        .await;
    while !scene.at("task").exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    scene.session.cancel();
    gone(&scene, "task").await;
    assert!(!scene.at("alive").exists(), "the task outlived its session");
}

#[derive(Debug, Default)]
struct Screen(Mutex<Vec<ProgressEvent>>);

impl ProgressSink for Screen {
    fn progress(&self, event: ProgressEvent) {
        self.0.lock().push(event);
    }
}

/// Returns the progress events of a command, gathered at this pace, and its result.
async fn watched(line: &str, pace: Pace) -> (Vec<ProgressEvent>, Value) {
    let dir = tempfile::tempdir().unwrap();
    let mut builtins = Builtins::new(Workspace::open(dir.path()).unwrap());
    builtins.sandbox = Some(unjailed());
    let registry = ToolRegistry::new();
    let tools = builtins.tools().unwrap();
    registry
        .replace_all("builtin", tools.into_iter().map(|t| t.tool))
        .unwrap();
    let screen = Arc::new(Screen::default());
    let session = Session::builder(Arc::new(registry))
        .with_progress(Arc::clone(&screen) as _)
        .with_pace(pace);
    let session = session.build().unwrap();
    let args = json!({"command": line}).to_string();
    let executor = Executor::new(
        Policy::trusted()
            .with_workspace(&builtins.workspace)
            .unwrap(),
    )
    .with_approver(haft::testing::ConsentingPerson);
    let outcome = executor
        .execute(&session, ToolCall::new("run_command", args))
        .await;
    let events = std::mem::take(&mut *screen.0.lock());
    (events, data(&outcome))
}

#[tokio::test]
async fn a_screen_sees_every_byte_once_and_in_order() {
    let line = "for n in 1 2 3 4 5 6 7 8 9; do echo out $n; echo err $n >&2; sleep 0.03; done";
    let (events, got) = watched(line, Pace::default()).await;
    for (stream, member) in [
        (ProgressStream::Stdout, "stdout"),
        (ProgressStream::Stderr, "stderr"),
    ] {
        let mut mine = events.iter().filter(|event| event.stream == stream);
        let text: String = mine.clone().map(|event| &*event.text).collect();
        assert_eq!(text, got[member].as_str().unwrap());
        assert!(mine.clone().count() > 1, "it was not streamed");
        assert!(mine.next_back().unwrap().closed);
    }
}

#[tokio::test]
async fn a_screen_that_watches_several_waits_sees_one_stream() {
    let scene = scene();
    let screen = Arc::new(Screen::default());
    let session = scene.session.watched_by(Arc::clone(&screen) as _);
    let call = async |tool: &str, args: Value| {
        let call = ToolCall::new(tool, args.to_string());
        data(&scene.executor.execute(&session, call).await)
    };
    let line =
        "printf 'eins '; printf 'zw\\303'; sleep 1.2; printf '\\266lf '; sleep 0.3; printf drei";
    let started = call(
        "run_command",
        json!({"command": line, "timeout_s": 1, "on_timeout": "detach"}),
    )
    .await;
    let task = started["task"].clone();
    call("await_command", json!({"task": task, "pattern": "lf"})).await;
    call("await_command", json!({"task": task, "timeout_s": 0})).await;
    call("await_command", json!({"task": task})).await;
    let events = std::mem::take(&mut *screen.0.lock());
    let out = || {
        events
            .iter()
            .filter(|event| event.stream == ProgressStream::Stdout)
    };
    let mut text = String::new();
    for event in out() {
        assert_eq!(event.offset, text.len() as u64, "{events:?}");
        text.push_str(&event.text);
    }
    assert_eq!(text, "eins zwölf drei");
    // Each call closes its own output, once.
    let mut calls: Vec<_> = out().map(|event| event.call.clone()).collect();
    calls.dedup();
    for call in calls {
        let closed = out().filter(|event| event.call == call && event.closed);
        assert_eq!(closed.count(), 1, "{call} {events:?}");
    }
}

/// Found as: what a command wrote before anybody watched was shown only once it wrote more.
#[tokio::test]
async fn a_screen_that_begins_to_watch_sees_what_a_waiting_command_wrote_before() {
    let scene = scene();
    let screen = Arc::new(Screen::default());
    let line = "echo on; touch wrote; exec sleep 600";
    let started = scene
        .data("run_command", json!({"command": line, "background": true}))
        .await;
    while !scene.at("wrote").exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let session = scene.session.watched_by(Arc::clone(&screen) as _);
    let args = json!({"task": started["task"], "timeout_s": 600});
    let waiting = ToolCall::new("await_command", args.to_string());
    let shown = async {
        while !screen.0.lock().iter().any(|event| &*event.text == "on\n") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        outcome = scene.executor.execute(&session, waiting) => panic!("{outcome:?}"),
        () = shown => {}
    }
    scene.session.cancel();
}

#[tokio::test]
async fn a_screen_is_told_as_often_as_its_pace_says() {
    let line = "for n in 1 2 3 4 5 6 7 8 9; do echo line $n; sleep 0.02; done";
    let slow = Duration::from_secs(20);
    // bytes to gather → number of events with text: one at the end, or one every few lines, though the time never elapses
    for (bytes, least, most) in [(1 << 20, 1, 1), (14, 3, 9)] {
        let pace = Pace {
            gather: slow,
            bytes,
        };
        let (events, got) = watched(line, pace).await;
        let texts: Vec<&str> = events.iter().map(|event| &*event.text).collect();
        assert_eq!(texts.concat(), got["stdout"].as_str().unwrap());
        assert!(texts.iter().all(|text| text.len() <= bytes));
        let told = texts.iter().filter(|text| !text.is_empty()).count();
        assert!((least..=most).contains(&told), "{bytes}: {texts:?}");
    }
}

/// line → its minimum risk
#[tokio::test]
async fn the_risk_is_that_of_what_runs() {
    let dir = tempfile::tempdir().unwrap();
    let workspace = Workspace::open(dir.path()).unwrap();
    let rows = [
        (json!({"command": "ls -la"}), "ok"),
        (json!({"argv": ["git", "status"]}), "error"),
        (
            json!({"command": "ls", "env": {"LD_PRELOAD": "x"}}),
            "denied",
        ),
        (json!({"command": "cat /etc/passwd"}), "denied"),
        (json!({"command": "cat ../x"}), "denied"),
        (json!({"command": "ls; id"}), "denied"),
        (json!({"command": "ls; pwd | head -1"}), "ok"),
        (json!({"command": "ls; cat /etc/passwd"}), "denied"),
        (json!({"command": "cat < /etc/passwd"}), "denied"),
        (json!({"command": "cat \"$HOME\"/x"}), "denied"),
        (json!({"command": "ls > out.txt"}), "denied"),
        (json!({"command": "ls 2> /dev/null"}), "ok"),
        (json!({"command": "touch x"}), "denied"),
        (json!({"argv": ["sh", "-c", "ls"]}), "denied"),
        // Seed fault 26: only the name as written was checked.
        (json!({"argv": ["rm", "-rf", "/"]}), "denied"),
        (json!({"argv": ["/bin/rm", "-rf", "x"]}), "denied"),
    ];
    for (args, expect) in rows {
        let mut builtins = Builtins::new(workspace.clone());
        builtins.sandbox = Some(unjailed());
        let registry = ToolRegistry::new();
        let tools = builtins.tools().unwrap();
        registry
            .replace_all("builtin", tools.into_iter().map(|t| t.tool))
            .unwrap();
        let session = Session::builder(Arc::new(registry)).build().unwrap();
        let executor = Executor::new(Policy::workspace().with_workspace(&workspace).unwrap());
        let call = ToolCall::new("run_command", args.to_string());
        let outcome = executor.execute(&session, call).await;
        assert_eq!(
            outcome.status.as_str(),
            expect,
            "{args}: {:?}",
            outcome.error
        );
    }
}
