//! Files, media and artifacts: what a script keeps, what it gets, and what never enters it.

use std::fs;
use std::sync::Arc;

use haft::artifact::ArtifactStore as _;
use haft::result::{Status, ToolResult};
use haft::testing::TestTool;
use parking_lot::Mutex;
use serde_json::json;

use crate::runner::Test;
use crate::scene::{Parts, Scene, data, pretty, value, wait};

pub(crate) const TESTS: &[Test] = &[
    ("a_runs_workspace_comes_and_goes_with_the_script", workspace),
    ("media_of_calls_are_files_that_are_there", media),
    ("large_results_are_fetched_by_ranges", fetched),
    (
        "two_hundred_megabytes_pass_by_ref_and_never_enter_the_script",
        passed,
    ),
    ("what_a_script_puts_is_kept_by_the_run", put),
];

fn workspace() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("runs/r/workspace");
    let scene = || {
        Scene::of(Parts {
            folder: Some(folder.clone()),
            ..Parts::default()
        })
    };
    // A folder that does not exist yet counts as empty.
    let code = "import os\nbefore = os.listdir()\nos.mkdir('d')\nopen('d/a', 'w').write('one')\nopen('b', 'w').write('two')\nbefore";
    let outcome = wait(scene().chain(code));
    assert_eq!(value(&outcome), json!([]), "{}", pretty(&outcome));
    assert_eq!(fs::read(folder.join("d/a")).unwrap(), b"one");
    let code = "import os\nopen('d/a', 'a').write('!')\nopen('/tmp/gone', 'w').write('x')\nos.symlink('/etc/passwd', 'link')\n[sorted(os.listdir()), open('b').read()]";
    let outcome = wait(scene().chain(code));
    assert_eq!(
        value(&outcome),
        json!([["b", "d", "link"], "two"]),
        "{}",
        pretty(&outcome)
    );
    assert!(
        outcome.text().contains("\"link\" is not a regular file"),
        "{}",
        pretty(&outcome)
    );
    assert!(!folder.join("link").exists());
    // However the script ends.
    for (code, status) in [
        ("open('c', 'w').write('x')\n1/0", Status::Error),
        (
            "open('k', 'w').write('x')\nimport os\nos._exit(1)",
            Status::Error,
        ),
        (
            "open('t', 'w').write('x')\nwhile True:\n    pass",
            Status::Timeout,
        ),
    ] {
        let outcome = wait(scene().chain_with(json!({"code": code, "timeout_s": 1})));
        assert_eq!(outcome.status, status, "{}", pretty(&outcome));
    }
    for (name, expect) in [
        ("d/a", "one!"),
        ("b", "two"),
        ("c", "x"),
        ("k", "x"),
        ("t", "x"),
    ] {
        assert_eq!(
            fs::read_to_string(folder.join(name)).unwrap(),
            expect,
            "{name}"
        );
    }
    let outcome =
        wait(scene().chain("import os\nfor n in range(5000):\n    open(f'f{n}', 'w').close()"));
    let kept = fs::read_dir(&folder).unwrap().count();
    assert!(kept <= 4200, "{kept} files\n{}", pretty(&outcome));
}

fn media() {
    let scene = Scene::new();
    let code = "r = tools.picture(bytes='abc')\ns = tools.picture(bytes='def')\n[[f.path, f.media_type, open(f.path, 'rb').read(), f.read(), f.bytes] for f in r.files + s.files]";
    let outcome = wait(scene.chain(code));
    let expect = json!([
        [
            "/workspace/media/picture_1_0.png",
            "image/png",
            "abc",
            "abc",
            3
        ],
        [
            "/workspace/media/picture_1_1.mpeg",
            "audio/mpeg",
            "la",
            "la",
            2
        ],
        [
            "/workspace/media/picture_2_0.png",
            "image/png",
            "def",
            "def",
            3
        ],
        [
            "/workspace/media/picture_2_1.mpeg",
            "audio/mpeg",
            "la",
            "la",
            2
        ],
    ]);
    let expect: serde_json::Value =
        serde_json::from_str(&expect.to_string().replace(".mpeg", ".mp3")).unwrap();
    assert_eq!(value(&outcome), expect, "{}", pretty(&outcome));
    // A script that blocks the path gets its file later, or not at all.
    let code = "import os\nos.mkdir('media')\nos.symlink('/etc/passwd', 'media/picture_1_0.png')\nr = tools.picture(bytes='abc')\nopen(r.files[0].path).read()";
    assert_eq!(value(&wait(scene.chain(code))), json!("abc"));
    let code = "os = __import__('os')\nos.symlink('/tmp', 'media')\nr = tools.picture(bytes='abc')\n[r.text, len(r.files)]";
    assert_eq!(value(&wait(scene.chain(code))), json!(["two", 0]));
}

fn fetched() {
    let scene = Scene::new();
    let code = r"
r = tools.large(bytes=3 << 20)
rows = [r.ref is not None, len(r.text) < 4200, len(r.read()), r.read(16, 15), sum(1 for _ in r.lines()), next(r.lines())]
j = tools.echo(rows=[{'n': n} for n in range(20000)])
rows += [j.ref is not None, len(j.json()['rows']), j.json()['rows'][-1]]
rows
";
    let outcome = wait(scene.chain(code));
    let expect = json!([
        true, true, 3 << 20, "0123456789abcde", (3 << 20) / 16, "0123456789abcde", true, 20000, {"n": 19999}
    ]);
    assert_eq!(value(&outcome), expect, "{}", pretty(&outcome));
}

/// Returns the peak memory of a process, in KiB.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let word = line.and_then(|line| line.split_whitespace().next());
    word.and_then(|word| word.parse().ok()).unwrap_or(0)
}

fn passed() {
    // The child does not report this itself: a tool measures it from outside.
    let seen = Arc::<Mutex<u64>>::default();
    let look = {
        let seen = Arc::clone(&seen);
        TestTool::with_body(TestTool::echo("look"), move |_, _| {
            let most = children().into_iter().map(peak).max().unwrap_or(0);
            *seen.lock() = most;
            Box::pin(async { Ok(ToolResult::default()) })
        })
    };
    let scene = Scene::of(Parts {
        tools: vec![look.arc()],
        ..Parts::default()
    });
    let code =
        "r = tools.large(bytes=200 << 20)\nn = tools.count(text=r).data['length']\ntools.look()\nn";
    let outcome = wait(scene.chain(code));
    assert_eq!(value(&outcome), json!(200 << 20), "{}", pretty(&outcome));
    let peak = *seen.lock();
    assert!(peak > 1000 && peak <= 60 << 10, "a peak of {peak} KiB");
}

/// Returns the child processes of this one.
fn children() -> Vec<u32> {
    let numbers = |path: String| -> Vec<u32> {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect()
    };
    let mut all: Vec<u32> = Vec::new();
    let mut next = vec![std::process::id()];
    while let Some(pid) = next.pop() {
        let tasks = fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .flatten();
        for task in tasks {
            let found = numbers(format!("{}/children", task.path().display()));
            next.extend(&found);
            all.extend(found);
        }
    }
    all
}

fn put() {
    let scene = Scene::new();
    let code = "import pathlib\nopen('report.csv', 'w').write('a,b')\n[artifacts.put(b'raw'), artifacts.put('text é'), artifacts.put(pathlib.Path('report.csv')), artifacts.put('report.csv'), artifacts.put(b'x' * (20 << 20), 'x/y')]";
    let outcome = wait(scene.chain(code));
    let kept = value(&outcome);
    let types: Vec<_> = kept
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a["media_type"].clone())
        .collect();
    assert_eq!(
        json!(types),
        json!([
            "application/octet-stream",
            "text/plain",
            "text/csv",
            "text/csv",
            "x/y"
        ]),
        "{}",
        pretty(&outcome)
    );
    let reference = haft::artifact::ArtifactRef::parse(kept[1]["ref"].as_str().unwrap()).unwrap();
    let read = scene
        .artifacts
        .read(scene.session.owner(), &reference, 0..100);
    let read = wait(read).unwrap();
    assert_eq!(read, "text é".as_bytes());
    let code =
        "a = artifacts.put('hello')\n[tools.say(text=a).text, tools.echo(deep=[{'x': a}]).data]";
    let outcome = wait(scene.chain(code));
    assert_eq!(
        value(&outcome),
        json!(["hello", {"deep": [{"x": "hello"}]}]),
        "{}",
        pretty(&outcome)
    );
    let outcome = wait(scene.chain("artifacts.put(b'x' * (65 << 20))"));
    assert!(outcome.error.is_some(), "{}", pretty(&outcome));
    assert!(data(&outcome).is_null());
}
