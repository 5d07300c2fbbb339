//! A server behind haft that is started and killed 1,000 times (10,000 with `HAFT_SOAK`): no process, file or memory of it is left.

use std::fs;
use std::io::BufReader;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::harness::Lab;
use crate::serve::{Server, exchange, hello, post};

/// A server in sh whose child ignores signals: the orphan, if one is left. The argument of a call says how the server ends.
const SERVER: &str = r#"
trap '' TERM
echo started >>"$STARTS"
sleep 100000 &
say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
text='"result":{"content":[{"type":"text","text":"here"}]}'
while read -r line; do
    id=${line#*'"id":'}
    id=${id%%,*}
    case $line in
    *'"method":"initialize"'*) say '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"short","version":"1"}}' ;;
    *'"method":"tools/list"'*) say '"result":{"tools":[{"name":"end","inputSchema":{"type":"object"}}]}' ;;
    *'"how":"in the call"'*) kill -9 $$ ;;
    *'"how":"after the call"'*) say "$text"; kill -9 $$ ;;
    *'"how":"by itself"'*) say "$text"; exit ;;
    *'"how":"not"'*) say "$text" ;;
    *'"method":"notifications/'*) ;;
    *) say '"error":{"code":-32601,"message":"unknown"}' ;;
    esac
done
"#;

/// How the server ends: in the middle of a call, or right after its answer, killed or by itself.
const ENDS: [&str; 3] = ["in the call", "after the call", "by itself"];

/// The number of cycles after which everything permanent exists: threads, caches, the run's files.
const WARM: usize = 100;

/// The memory that a cycle may add to haft, in bytes: the run remembers its calls.
const A_CYCLE: u64 = 8 << 10;

fn cycles() -> usize {
    if std::env::var_os("HAFT_SOAK").is_some() {
        10_000
    } else {
        1_000
    }
}

fn lab() -> Lab {
    let lab = Lab::new();
    let root = lab.home().parent().unwrap().to_owned();
    fs::create_dir(root.join("server")).unwrap();
    fs::create_dir(root.join("kept")).unwrap();
    fs::write(root.join("server/server.sh"), SERVER).unwrap();
    let at = root.display();
    lab.user_settings(&format!(
        "policy.allow = [\"short.*\"]\npolicy.untrusted_content = \"off\"\nlimits.max_calls = 100000\n[mcp.servers.short]\ncommand = \"sh\"\nargs = [\"{at}/server/server.sh\"]\nenv = {{ STARTS = \"{at}/kept/starts\" }}\nsandbox.read = [\"{at}/server\"]\nsandbox.write = [\"{at}/kept\"]\n"
    ));
    let pinned = lab.run(&["mcp", "pin", "short", "--yes"]);
    assert_eq!(pinned.code, 0, "{}", pinned.stderr);
    lab
}

/// Returns how often the server has been started.
fn starts(lab: &Lab) -> usize {
    let file = lab.home().parent().unwrap().join("kept/starts");
    fs::read(file).unwrap().split(|byte| *byte == b'\n').count() - 1
}

/// The resources used by haft and everything that it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Usage {
    /// Processes of the server; its child is recognised by its variables.
    servers: usize,
    /// Processes with the lab's folder in their command line or variables: haft, what it forked, servers.
    processes: usize,
    /// Files that haft has open.
    files: usize,
}

/// What may come and go by itself: the jail that waits for the next server, connections being closed.
const SPARE: usize = 8;

fn usage(lab: &Lab, server: Option<&Server>) -> Usage {
    let home = lab.home();
    let folder = home.parent().unwrap().as_os_str().as_bytes();
    let script = [folder, b"/server/server.sh"].concat();
    let holds = |file: PathBuf, text: &[u8]| {
        let bytes = fs::read(file).unwrap_or_default();
        bytes.windows(text.len()).any(|part| part == text)
    };
    let mut usage = Usage {
        servers: 0,
        processes: 0,
        files: 0,
    };
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let process = process.path();
        let is_server = holds(process.join("cmdline"), &script);
        usage.servers += usize::from(is_server);
        let is_ours = is_server || holds(process.join("environ"), folder);
        usage.processes += usize::from(is_ours);
    }
    if let Some(server) = server {
        let files = fs::read_dir(format!("/proc/{}/fd", server.id()));
        usage.files = files.unwrap().count();
    }
    usage
}

/// Waits for what ends a moment later; returns what stays.
fn settled(lab: &Lab, server: Option<&Server>, most: Usage) -> Usage {
    let mut now = usage(lab, server);
    for _ in 0..1_000 {
        let is_fewer = now.processes <= most.processes && now.files <= most.files;
        if is_fewer && now.servers <= most.servers {
            break;
        }
        thread::sleep(Duration::from_millis(10));
        now = usage(lab, server);
    }
    now
}

/// Calls until the server has been started this often. A call to a server that is just exiting fails like one in whose middle the server
/// exits; two such failures in a row would make haft leave the server alone for a while.
fn cycles_until(lab: &Lab, server: &Server, count: usize) {
    let (mut nth, mut failed) = (0, false);
    while starts(lab) < count {
        let how = if failed {
            ENDS[1 + nth % 2]
        } else {
            ENDS[nth % 3]
        };
        let body = json!({"tool": "short.end", "arguments": {"how": how}}).to_string();
        let outcome = server.ask(&post("/api/v1/calls", &server.call, &body));
        let outcome = outcome.json();
        failed = outcome["ok"] == false;
        if failed {
            let said = outcome["error"]["message"].as_str().unwrap();
            assert!(
                said.contains("closed the connection"),
                "call {nth}, {how}: {outcome}"
            );
        }
        nth += 1;
        assert!(nth < 4 * cycles(), "{nth} calls, {} starts", starts(lab));
    }
}

#[test]
fn a_server_that_is_killed_over_and_over_leaves_no_process_no_file_and_no_memory() {
    let lab = lab();
    let server = Server::start(&lab, &[]);
    cycles_until(&lab, &server, WARM);
    let alone = Usage {
        servers: 0,
        processes: usize::MAX,
        files: usize::MAX,
    };
    let warm = settled(&lab, Some(&server), alone);
    let most = Usage {
        servers: 0,
        processes: warm.processes + SPARE,
        files: warm.files + SPARE,
    };
    let memory = server.memory();
    cycles_until(&lab, &server, cycles());
    let after = settled(&lab, Some(&server), most);
    let grown = server.memory().saturating_sub(memory);
    report(&format!(
        "{} cycles: {warm:?} before, {after:?} after; {memory} bytes of memory before, {grown} more after",
        cycles()
    ));
    assert_eq!(after.servers, 0, "{after:?}");
    assert!(
        after.processes <= most.processes && after.files <= most.files,
        "{warm:?} {after:?}"
    );
    let bytes = A_CYCLE * (cycles() - WARM) as u64;
    assert!(grown <= bytes, "{grown} bytes more than {memory}");
}

#[test]
fn haft_that_is_killed_with_its_server_leaves_neither() {
    let lab = lab();
    let none = usage(&lab, None);
    assert_eq!(none.processes, 0, "{none:?}");
    for nth in 0..cycles() / 50 {
        let mut haft = lab.command(&["serve", "--stdio"]).spawn().unwrap();
        let mut stdout = BufReader::new(haft.stdout.take().unwrap());
        exchange(&mut haft, &mut stdout, &hello());
        let params = json!({"name": "short.end", "arguments": {"how": "not"}});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let answer = exchange(&mut haft, &mut stdout, &call);
        assert_eq!(answer["result"]["content"][0]["text"], "here", "{answer}");
        haft.kill().unwrap();
        haft.wait().unwrap();
        let left = settled(&lab, None, none);
        assert_eq!(left, none, "after {nth} times");
    }
}

/// Prints the figures of a long run.
#[expect(clippy::print_stderr, reason = "they are written down by hand")]
fn report(figures: &str) {
    if std::env::var_os("HAFT_SOAK").is_some() {
        eprintln!("{figures}");
    }
}
