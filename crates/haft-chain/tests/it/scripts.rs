//! Scripts: their values, their output, how they fail.

use std::sync::Arc;

use haft::call::ToolCall;
use haft::progress::{ProgressEvent, ProgressSink, ProgressStream};
use haft::result::Status;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::runner::Test;
use crate::scene::{Scene, data, pretty, trace, value, wait};

/// What was shown on a screen.
#[derive(Debug, Default)]
struct Screen(Mutex<Vec<(ProgressStream, String, bool)>>);

impl ProgressSink for Screen {
    fn progress(&self, event: ProgressEvent) {
        let seen = (event.stream, event.text.to_string(), event.closed);
        self.0.lock().push(seen);
    }
}

fn live() {
    let scene = Scene::new();
    let screen = Arc::new(Screen::default());
    let session = scene.session.watched_by(Arc::clone(&screen) as _);
    let code = "import sys, time\nfor n in range(3000):\n    print('out', n)\n    if n % 1000 == 0:\n        print('err', n, file=sys.stderr)\ntime.sleep(0.2)\nprint('é' * 20000)\nprint('end', end='')";
    let call = ToolCall::new("tool_chain", json!({"code": code}).to_string());
    let outcome = wait(scene.executor.execute(&session, call));
    assert!(outcome.is_ok(), "{}", pretty(&outcome));
    let seen = screen.0.lock();
    let of = |stream: ProgressStream| -> String {
        let pieces = seen.iter().filter(|(of, ..)| *of == stream);
        pieces.map(|(_, text, _)| text.as_str()).collect()
    };
    let mut expect: String = (0..3000)
        .map(|n| format!("out {n}\n"))
        .collect::<Vec<_>>()
        .concat();
    expect.push_str(&"é".repeat(20000));
    expect.push_str("\nend");
    assert_eq!(of(ProgressStream::Stdout), expect);
    assert_eq!(of(ProgressStream::Stderr), "err 0\nerr 1000\nerr 2000\n");
    assert!(seen.len() < 100, "{} events", seen.len());
    assert!(seen.iter().all(|(_, text, _)| text.len() <= 16 << 10));
    let closed: Vec<_> = seen
        .iter()
        .filter(|(.., closed)| *closed)
        .map(|(of, ..)| *of)
        .collect();
    assert_eq!(closed, [ProgressStream::Stdout, ProgressStream::Stderr]);
}

pub(crate) const TESTS: &[Test] = &[
    (
        "a_script_comes_to_its_last_expression_or_what_it_returns",
        values,
    ),
    ("errors_say_what_and_where", errors),
    ("what_cannot_be_a_value_is_said_and_where_it_is", no_values),
    (
        "what_is_known_to_be_wrong_is_found_before_the_first_call",
        checks,
    ),
    ("results_have_text_data_and_errors", results),
    (
        "calls_in_async_code_run_side_by_side_and_none_is_lost",
        asynchronous,
    ),
    ("output_is_bounded_and_kept_in_order", output),
    ("output_is_shown_while_it_comes_once_and_in_order", live),
];

fn values() {
    let scene = Scene::new();
    for (code, expect) in [
        ("1 + 1", json!(2)),
        ("x = 1", Value::Null),
        ("return 5", json!(5)),
        (
            "for i in range(5):\n    if i == 3:\n        return i",
            json!(3),
        ),
        ("'text'", json!("text")),
        ("{'a': [1, None, True]}", json!({"a": [1, null, true]})),
        ("print('x')", Value::Null),
        ("x: int = 2\ndef f():\n    return x\nreturn f()", json!(2)),
        ("s = '''a\n  b\n'''\nif s:\n    return s", json!("a\n  b\n")),
        ("from __future__ import annotations\nreturn 1", json!(1)),
        ("import asyncio\nawait asyncio.sleep(0)\n7", json!(7)),
        ("import asyncio\nawait asyncio.sleep(0)\nreturn 8", json!(8)),
        ("async def f():\n    return 9\nawait f()", json!(9)),
        (
            "import asyncio\nasync def f():\n    return 9\nasyncio.run(f())",
            json!(9),
        ),
        ("__name__", json!("__main__")),
        ("if __name__ == '__main__':\n    x = 4\nx", json!(4)),
        ("tools.echo(a=1)", json!({"a": 1})),
        ("tools.say(text='hi')", json!("hi")),
        (
            "[tools.echo(a=n) for n in range(2)]",
            json!([{"a": 0}, {"a": 1}]),
        ),
        (
            "import datetime\ndatetime.date(2020, 1, 2)",
            json!("2020-01-02"),
        ),
        (
            "import decimal\n[decimal.Decimal('1.10'), {1}, b'x', b'\\xff']",
            json!(["1.10", [1], "x", "/w=="]),
        ),
        (
            "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\nP(3)",
            json!({"x": 3}),
        ),
        ("import pathlib\npathlib.Path('/a/b')", json!("/a/b")),
        ("import sys\nsys.exit()", Value::Null),
        ("# nothing", Value::Null),
        (
            "import os\nopen('f', 'w').write('x')\n[os.getcwd(), os.listdir()]",
            json!(["/workspace", ["f"]]),
        ),
    ] {
        let outcome = wait(scene.chain(code));
        assert_eq!(outcome.status, Status::Ok, "{code}\n{}", pretty(&outcome));
        assert_eq!(value(&outcome), expect, "{code}\n{}", pretty(&outcome));
        assert_eq!(outcome.strength.as_deref(), Some("full"), "{code}");
    }
}

fn errors() {
    fails(&[
        (
            "1/0",
            "ZeroDivisionError: division by zero (line 1)",
            "line 1, in <module>",
        ),
        (
            "def f(a):\n    return a.b\n\nf(1)",
            "AttributeError: 'int' object has no attribute 'b' (line 2)",
            "line 2, in f",
        ),
        (
            "x = 1\nif x\n    y",
            "SyntaxError: expected ':' (script.py, line 2)",
            "    if x\n        ^",
        ),
        (
            "  x = 1",
            "IndentationError: unexpected indent (script.py, line 1)",
            "x = 1",
        ),
        ("\0", "null bytes", ""),
        ("import sys\nsys.exit('no luck')", "no luck", ""),
        ("import sys\nsys.exit(3)", "exited with code 3", ""),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", "line 1"),
        ("def f():\n    f()\nf()", "RecursionError", "line 2, in f"),
        ("x = 'a' * (3 << 30)", "MemoryError", "line 1"),
        ("import os\nos._exit(3)", "ended without a word", ""),
        (
            "tools.fail()",
            "ToolError: no such thing (look elsewhere) (line 1)",
            "line 1",
        ),
        ("raise ToolError('own')", "ToolError: own", "line 1"),
    ]);
}

fn no_values() {
    fails(&[
        ("float('nan')", "the script's value is nan", ""),
        (
            "{'a': [1, float('inf')]}",
            "the script's value['a'][1] is inf",
            "",
        ),
        (
            "x = []\nfor n in range(200):\n    x = [x]\nx",
            "the script's value nests deeper than 128",
            "",
        ),
        (
            "'x' * (17 << 20)",
            "the script's value takes more than 16 MiB",
            "",
        ),
        (
            "tools.echo(a='x' * (17 << 20))",
            "the arguments take more than 16 MiB",
            "line 1",
        ),
        (
            "artifacts.put(b'x' * (65 << 20))",
            "an artifact takes at most 64 MiB",
            "line 1",
        ),
        (
            "tools.echo(a=[1, {'b': float('nan')}])",
            "arguments['a'][1]['b'] is nan",
            "line 1",
        ),
        ("tools.echo(a='\\ud800')", "half a surrogate pair", "line 1"),
        ("x = []\nx.append(x)\nx", "nested too deeply", ""),
        ("object()", "object is not a JSON value", ""),
    ]);
}

/// Each script fails with this message and prints this text.
fn fails(rows: &[(&str, &str, &str)]) {
    let scene = Scene::new();
    for (code, message, text) in rows {
        let outcome = wait(scene.chain(code));
        let said = outcome.error.as_ref().map_or("", |e| e.message.as_str());
        assert_eq!(
            outcome.status,
            Status::Error,
            "{code}\n{}",
            pretty(&outcome)
        );
        assert!(said.contains(message), "{code}\n{}", pretty(&outcome));
        assert!(
            outcome.text().contains(text),
            "{code}\n{}",
            pretty(&outcome)
        );
        assert!(
            !outcome.text().contains("haft_runtime"),
            "{code}\n{}",
            pretty(&outcome)
        );
    }
}

fn checks() {
    let scene = Scene::new();
    let before = "tools.mark(text='ran')\n";
    for (code, expect) in [
        ("tools.eco(a=1)", "line 2: no tool 'eco'; nearest: echo"),
        ("tools.strict()", "line 2: tools.strict() misses x"),
        (
            "tools.strict(x=1, y=2)",
            "line 2: tools.strict() has no argument y; it takes: note, x",
        ),
        (
            "tools.echo(1)",
            "line 2: tools.echo() takes keyword arguments only",
        ),
        (
            "def f():\n    return tools.nowhere.tool(a=1)",
            "line 3: no tool 'nowhere.tool'",
        ),
        ("tools['a-b']()", "line 2: no tool 'a-b'"),
        ("tools.tool_chain(code='1')", "no tool 'tool_chain'"),
        (
            "x = lambda: tools.strict()\ntools.eco()",
            "line 2: tools.strict() misses x\nline 3: no tool 'eco'",
        ),
    ] {
        let outcome = wait(scene.chain(&format!("{before}{code}")));
        let said = outcome.error.as_ref().map_or("", |e| e.message.as_str());
        assert!(said.contains(expect), "{code}\n{}", pretty(&outcome));
        assert_eq!((outcome.calls.len(), scene.marks().len()), (0, 0), "{code}");
    }
    // What cannot be known in advance is detected when it happens, or is not ours.
    for (code, expect) in [
        ("getattr(tools, 'eco')", "AttributeError: no tool 'eco'"),
        (
            "f = tools.echo\nf(1)",
            "TypeError: tools.echo() takes keyword arguments only",
        ),
        (
            "f = tools.strict\nf()",
            "ToolError: invalid arguments for strict",
        ),
        (
            "tools[''.join(['no', 'pe'])](a=1)",
            "ToolError: no tool \"nope\"",
        ),
    ] {
        let outcome = wait(scene.chain(code));
        let said = outcome.error.as_ref().map_or("", |e| e.message.as_str());
        assert!(said.contains(expect), "{code}\n{}", pretty(&outcome));
    }
    let fine = "def f(tools):\n    return tools.anything(1)\nclass T:\n    def anything(self, n):\n        return n\nf(T())";
    assert_eq!(value(&wait(scene.chain(fine))), json!(1));
    let fine = "tools.echo(from_='a', class_=1, own_=2)";
    let expect = json!({"from": "a", "class": 1, "own_": 2});
    assert_eq!(value(&wait(scene.chain(fine))), expect);
    let fine = "tools.strict(**{'x': 4})\ntools['server.tool'](a=tools.server.tool(b=2).data['b'])";
    assert_eq!(value(&wait(scene.chain(fine))), json!({"a": 2}));
}

fn results() {
    let scene = Scene::new();
    let code = r"
seen = {}
r = tools.say(text='hello')
seen['text'] = [r.text, str(r), r.data, r.ref, r.status, r.files, list(r.lines()), r.read(1, 3)]
seen['data'] = [tools.echo(a={'b': 1}).data['a']['b'], tools.echo(a=1).json()]
try:
    tools.fail()
except ToolError as e:
    seen['failed'] = [e.kind, e.message, e.advice, e.result.status]
try:
    tools.critical()
except PermissionError as e:
    seen['denied'] = [e.kind, type(e).__name__, e.result.status]
seen['passed'] = tools.echo(a=tools.say(text='in'), b=tools.echo(c=1), d=[tools.say(text='deep')]).data
seen['names'] = ['echo' in dir(tools), 'server' in dir(tools), 'tool_chain' in dir(tools)]
seen
";
    let outcome = wait(scene.chain(code));
    let expect = json!({
        "text": ["hello", "hello", null, null, "ok", [], ["hello"], "ell"],
        "data": [1, {"a": 1}],
        "failed": ["not_found", "no such thing", "look elsewhere", "error"],
        "denied": ["denied", "PermissionError", "denied"],
        "passed": {"a": "in", "b": {"c": 1}, "d": ["deep"]},
        "names": [true, true, false],
    });
    assert_eq!(data(&outcome), expect, "{}", pretty(&outcome));
    let expect = [
        "say:ok",
        "echo:ok",
        "echo:ok",
        "fail:error",
        "critical:denied",
        "say:ok",
        "echo:ok",
        "say:ok",
        "echo:ok",
    ];
    assert_eq!(trace(&outcome), expect);
    assert_eq!(outcome.summary, "9 calls, 1 error, 1 denied");
}

fn asynchronous() {
    let scene = Scene::new();
    for (code, expect) in [
        (
            "import asyncio\nr = await asyncio.gather(*[tools.together(n=n) for n in range(3)])\n[x.data['n'] for x in r]",
            json!([0, 1, 2]),
        ),
        (
            "async def f(n):\n    r = await tools.together(n=n)\n    return r.data['n']\nimport asyncio\nawait asyncio.gather(f(1), f(2), f(3))",
            json!([1, 2, 3]),
        ),
        (
            "import threading\nout = []\nts = [threading.Thread(target=lambda n=n: out.append(tools.together(n=n).data['n'])) for n in range(3)]\n[t.start() for t in ts]\n[t.join() for t in ts]\nsorted(out)",
            json!([0, 1, 2]),
        ),
        // Sent at once, read later.
        (
            "async def f():\n    a, b, c = [tools.together(n=n) for n in range(3)]\n    return [c.data['n'], a.data['n'], b.data['n']]\nawait f()",
            json!([2, 0, 1]),
        ),
        // A call as a statement of its own is awaited.
        (
            "async def f():\n    tools.mark(text='alone')\n    return tools.echo(a=1).data\nawait f()",
            json!({"a": 1}),
        ),
        (
            "import asyncio\nasync def f():\n    try:\n        await asyncio.wait_for(tools.sleep(s=0.2), 0.01)\n    except asyncio.TimeoutError:\n        return 'late'\nawait f()",
            json!("late"),
        ),
        // Not our tools: nothing is awaited for other objects.
        (
            "class T:\n    def anything(self, n):\n        return n\nasync def f(tools):\n    tools.anything(1)\n    return tools.anything(2)\nawait f(T())",
            json!(2),
        ),
        // Nothing awaits these: they still complete.
        (
            "def helper():\n    tools.mark(text='by helper')\nasync def f():\n    helper()\nawait f()\n3",
            json!(3),
        ),
        (
            "import threading\nthreading.Thread(target=lambda: tools.mark(text='by thread')).start()\n4",
            json!(4),
        ),
    ] {
        let outcome = wait(scene.chain(code));
        assert_eq!(value(&outcome), expect, "{code}\n{}", pretty(&outcome));
        let all_ok = outcome.calls.iter().all(|call| call.status == Status::Ok);
        assert!(all_ok, "{code}\n{}", pretty(&outcome));
    }
    assert_eq!(scene.marks(), ["alone", "by helper", "by thread"]);
    let code = "async def f():\n    x = tools.fail()\nawait f()\n5";
    let outcome = wait(scene.chain(code));
    assert!(
        outcome
            .text()
            .contains("nobody waited for failed: no such thing"),
        "{}",
        pretty(&outcome)
    );
}

fn output() {
    let scene = Scene::new();
    let outcome = wait(scene.chain("import sys\nprint('a')\nprint('b', file=sys.stderr)\nprint('c', end='')\nsys.stdout.buffer.write(b'd')\n1"));
    assert_eq!(outcome.text(), "a\nb\ncd", "{}", pretty(&outcome));
    let code = "for n in range(300_000):\n    print('line', n)\nprint('the end')";
    let outcome = wait(scene.chain(code));
    assert_eq!(outcome.status, Status::Ok, "{}", pretty(&outcome));
    let text = outcome.text();
    assert!(
        text.starts_with("line 0\nline 1\n") && text.trim_end().ends_with("the end"),
        "{text}"
    );
    assert!(
        text.contains("bytes left out") || !outcome.artifacts.is_empty(),
        "{text}"
    );
    assert!(
        outcome.artifacts[0].bytes > 3_000_000,
        "{}",
        pretty(&outcome)
    );
    // Endless output: what is kept of it is limited, and so is the script.
    let code = "print('begun')\nwhile True:\n    print('x' * 10_000)";
    let outcome = wait(scene.chain_with(serde_json::json!({"code": code, "timeout_s": 3})));
    assert_eq!(outcome.status, Status::Timeout, "{}", pretty(&outcome));
    assert!(outcome.text().starts_with("begun\nxxx"));
    assert!(outcome.artifacts[0].bytes <= 8 << 20);
}
