//! Rows 63, 64, 65, 69, 70, 71, 74, 75: frames that no runtime sends, and refs of other runs.

use std::sync::Arc;

use bytes::Bytes;
use haft::artifact::ArtifactStore as _;
use haft::artifact::memory::MemoryArtifacts;
use haft::result::Status;
use serde_json::json;

use crate::runner::Test;
use crate::scene::{Parts, Scene, pretty, trace, value, wait};
use crate::{assert_broken, raw};

pub(crate) const TESTS: &[Test] = &[
    ("no_63_frames_that_are_none_end_the_script", no_frames),
    (
        "no_63_arguments_that_are_no_json_are_refused_by_the_executor",
        no_json,
    ),
    ("no_64_ids_that_are_in_use_end_the_script", ids),
    ("no_65_answers_from_a_script_end_it", answers),
    ("no_69_a_socket_closed_in_mid_call_cancels_the_call", closed),
    (
        "no_70_a_script_that_reads_no_answers_stops_nobody_else",
        unread,
    ),
    ("no_71_frames_of_two_messages_do_not_mix", mixed),
    ("no_74_the_refs_of_another_run_name_nothing", refs_of_others),
    ("no_75_ranges_are_bounded", ranges),
];

fn no_frames() {
    let scene = Scene::new();
    for (code, what) in [
        ("wire.send_frame(b'c' + bytes(66000))", "a frame of"),
        ("wire.send_frame(b'c\\0\\0')", "a frame of 3 bytes"),
        ("frame(b'x', 1, b'')", "kind 'x'"),
        ("frame(b'\\xff', 1, b'')", "kind"),
        ("frame(b'c', 1, b'mark', 2)", "flags 0x2"),
        ("frame(b'c', 1, b'mark')", "a malformed call"),
        ("call(1, b'ma\\xffrk')", "a malformed call"),
        (
            "call(1, b'mark', b'{\"text\":\"\\xff\"}')",
            "a malformed call",
        ),
        ("frame(b'c', 1, b'mark\\nnoise\\n{}')", "a malformed call"),
        ("frame(b'd', 0, b'{\"value\":NaN}')", "a malformed end"),
        ("frame(b'd', 0, b'{\"status\":\"ok\"}')", "a malformed end"),
        (
            "frame(b'd', 0, b'{\"value\":' + b'[' * 10000 + b']' * 10000 + b'}')",
            "nests too deep",
        ),
        ("frame(b'r', 1, b'nothing')", "a malformed read"),
        ("frame(b'p', 1, b'no line')", "a malformed put"),
        (
            "for n in range(300):\n    frame(b'c', 1, b'x' * 65000, 1)",
            "a message over 16777216 bytes",
        ),
        (
            "for n in range(1100):\n    frame(b'p', 1, b'\\n' * 65000, 1)",
            "a message over",
        ),
    ] {
        let outcome = raw(&scene, &format!("{code}\ntime.sleep(9)"));
        assert_broken(&outcome, what);
        assert!(scene.marks().is_empty(), "{code}");
    }
}

fn no_json() {
    let scene = Scene::new();
    for arguments in [
        "NaN",
        "{\"a\":NaN}",
        "{\"a\":Infinity}",
        "{\"a\":1,\"a\":2}",
        "{",
        "",
        "[]",
        "{\"a\":01}",
        "{\"a\":\"\\ud800\"}",
    ] {
        let code = format!(
            "call(1, b'echo', {arguments:?}.encode())\n(answer().get('error') or {{}}).get('kind')"
        );
        let outcome = raw(&scene, &code);
        // Empty arguments count as no arguments.
        let expect = if arguments.is_empty() {
            json!(null)
        } else {
            json!("invalid_arguments")
        };
        assert_eq!(value(&outcome), expect, "{arguments}\n{}", pretty(&outcome));
    }
    let code = "call(1, b'echo', b'{\"a\":' + b'[' * 10000 + b']' * 10000 + b'}')\nanswer()['error']['kind']";
    assert_eq!(value(&raw(&scene, code)), json!("invalid_arguments"));
}

fn ids() {
    let scene = Scene::new();
    let outcome = raw(&scene, "call(7, b'sleep')\ncall(7, b'mark')\ntime.sleep(9)");
    assert_broken(&outcome, "the id 7 again");
    assert_eq!(trace(&outcome), ["sleep:cancelled"]);
    let outcome = raw(&scene, "call(0, b'mark')\ntime.sleep(9)");
    assert_broken(&outcome, "the id 0 again");
    // Any other id is as good as ours: an answer goes to the id of the request.
    let code = "call(4294967295, b'echo', b'{\"a\":1}')\nwire.recv_into(wire.buffer)\nint.from_bytes(wire.buffer[2:6], 'little')";
    assert_eq!(value(&raw(&scene, code)), json!(4_294_967_295_u64));
    assert!(scene.marks().is_empty());
}

fn answers() {
    let scene = Scene::new();
    for kind in ["A", "B", "S"] {
        let code = format!("frame(b'{kind}', 1, b'{{\"status\":\"ok\"}}')\ntime.sleep(9)");
        assert_broken(&raw(&scene, &code), &format!("kind '{kind}'"));
    }
}

fn closed() {
    let scene = Scene::new();
    for end in [
        "os.close(wire.sock.fileno())\ntime.sleep(9)",
        "os._exit(0)",
        "wire.sock.shutdown(2)\ntime.sleep(9)",
    ] {
        let outcome = raw(&scene, &format!("call(1, b'sleep')\n{end}"));
        let said = outcome.error.as_ref().map_or("", |e| e.message.as_str());
        assert!(
            said.contains("ended without a word"),
            "{end}\n{}",
            pretty(&outcome)
        );
        assert_eq!(trace(&outcome), ["sleep:cancelled"], "{end}");
    }
    let ended = scene
        .audit
        .words()
        .iter()
        .filter(|w| *w == "ended:cancelled")
        .count();
    assert_eq!(ended, 3, "{:?}", scene.audit.words());
}

fn unread() {
    let scene = Scene::new();
    let code = "a = artifacts.put(bytes(8 << 20))\nfor n in range(10, 30):\n    frame(b'r', n, b'%b 0 8388608' % a.ref.encode())\ntime.sleep(60)";
    let other = Scene::new();
    let code = format!("{}{code}", crate::RAW);
    let (hostile, fine) = wait(async {
        tokio::join!(scene.chain(&code), async {
            let mut ok = 0;
            for n in 0..20 {
                let outcome = other.chain(&format!("tools.echo(n={n}).data['n']")).await;
                ok += u32::from(value(&outcome) == json!(n));
            }
            ok
        })
    });
    assert_broken(&hostile, "does not read its answers");
    assert_eq!(fine, 20);
    // Queued answers are sent when the script finally reads.
    let code = "a = artifacts.put(b'x' * (4 << 20))\nfor n in range(10, 14):\n    frame(b'r', n, b'%b 0 4194304' % a.ref.encode())\ntime.sleep(0.3)\nsize = 0\nwhile size < 4 * (4 << 20):\n    size += wire.recv_into(wire.buffer) - 6\nsize";
    assert_eq!(value(&raw(&scene, code)), json!(16 << 20));
}

fn mixed() {
    let scene = Scene::new();
    let outcome = raw(
        &scene,
        "frame(b'c', 1, b'mark\\n\\n', 1)\nframe(b'c', 2, b'mark\\n\\n{}')\ntime.sleep(9)",
    );
    assert_broken(&outcome, "a frame within another message");
    let outcome = raw(
        &scene,
        "frame(b'c', 1, b'mark\\n\\n', 1)\nframe(b'o', 0, b'x')\ntime.sleep(9)",
    );
    assert_broken(&outcome, "a frame within another message");
    assert!(scene.marks().is_empty());
    // Through the runtime, threads may call in any order.
    let code = "import threading\nout = []\ndef f(n):\n    for k in range(6):\n        out.append(tools.echo(n=n, k=k, pad='x' * 200000).ref is not None)\nts = [threading.Thread(target=f, args=(n,)) for n in range(8)]\n[t.start() for t in ts]\n[t.join() for t in ts]\n[len(out), all(out)]";
    let outcome = wait(scene.chain(code));
    assert_eq!(value(&outcome), json!([48, true]), "{}", pretty(&outcome));
}

fn refs_of_others() {
    let store = Arc::new(MemoryArtifacts::new());
    let house = || {
        Scene::of(Parts {
            artifacts: Some(Arc::clone(&store)),
            ..Parts::default()
        })
    };
    let (other, scene) = (house(), house());
    let secret = Bytes::from_static(b"secret of another run");
    let secret = wait(store.put(other.session.owner(), "text/plain", secret)).unwrap();
    let code = format!(
        "ref = '{}'\nkinds = []\nfor what in (lambda: artifacts.get(ref), lambda: tools.echo(a={{'$artifact': ref}}), \
         lambda: tools.echo(a=[{{'b': {{'$artifact': ref}}}}])):\n    try:\n        what()\n    except ToolError as e:\n        \
         kinds.append(e.kind)\nframe(b'r', 999, (ref + ' 0 100').encode())\nkinds.append(answer()['error']['kind'])\nkinds",
        secret.as_str()
    );
    let outcome = raw(&scene, &code);
    assert_eq!(
        value(&outcome),
        json!(vec!["not_found"; 4]),
        "{}",
        pretty(&outcome)
    );
    assert!(!pretty(&outcome).contains("secret of"));
    let own = wait(scene.artifacts.info(scene.session.owner(), &secret));
    assert!(own.is_err(), "it was not made this run's own either");
    // In its own run it exists.
    let own = format!("artifacts.get('{}').read()", secret.as_str());
    let outcome = wait(other.chain(&own));
    assert_eq!(
        value(&outcome),
        json!("secret of another run"),
        "{}",
        pretty(&outcome)
    );
}

fn ranges() {
    let scene = Scene::new();
    let code = "a = artifacts.put(b'0123456789')\n[a.read(3, 4).decode(), a.read(8).decode(), a.read(100).decode(), a.read(0, 10**30).decode(), a.read(5, 0).decode()]";
    let outcome = wait(scene.chain(code));
    assert_eq!(
        value(&outcome),
        json!(["3456", "89", "", "0123456789", ""]),
        "{}",
        pretty(&outcome)
    );
    for code in [
        "artifacts.put(b'1').read(-1)",
        "artifacts.put(b'1').read(0, -1)",
    ] {
        let outcome = wait(scene.chain(code));
        assert!(
            outcome
                .error
                .as_ref()
                .unwrap()
                .message
                .contains("must not be negative"),
            "{}",
            pretty(&outcome)
        );
    }
    // Bypassing the runtime: an invalid range ends the script, a huge one is clipped.
    let outcome = raw(
        &scene,
        "a = artifacts.put(b'1')\nframe(b'r', 99, (a.ref + ' -5 1').encode())\ntime.sleep(9)",
    );
    assert_broken(&outcome, "a malformed read");
    let code = "a = artifacts.put(bytes(9 << 20))\nframe(b'r', 99, (a.ref + ' 18446744073709551615 18446744073709551615').encode())\nfirst = wire.recv_into(wire.buffer)\nframe(b'r', 98, (a.ref + ' 5 18446744073709551615').encode())\nsize = 0\nwhile True:\n    size += wire.recv_into(wire.buffer) - 6\n    if not wire.buffer[1]:\n        break\n[first, size]";
    assert_eq!(value(&raw(&scene, code)), json!([6, 4 << 20]));
    assert_eq!(wait(scene.chain("1")).status, Status::Ok);
}
