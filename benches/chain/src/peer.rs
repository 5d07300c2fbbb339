//! The peers at the same job: Python interpreters and sandboxes for Python, and `bwrap` around `python3`.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

/// The Python of the peers' environment, beside the folder of the built programs: `scripts/bench` makes it.
const PEERS: &str = "../peers/bin/python";

/// A Python process that has loaded the peers.
pub(crate) struct Python {
    child: RefCell<Child>,
    asked: RefCell<ChildStdin>,
    told: RefCell<BufReader<ChildStdout>>,
}

impl Python {
    pub(crate) fn start() -> Self {
        let own = std::env::current_exe().expect("this program");
        let python = own.parent().expect("its folder").join(PEERS);
        let child = Command::new(&python)
            .args(["-c", include_str!("peers.py")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.unwrap_or_else(|e| panic!("MISSING PEER: {}: {e}", python.display()));
        let asked = child.stdin.take().expect("its input");
        let told = BufReader::new(child.stdout.take().expect("its output"));
        let python = Self {
            child: RefCell::new(child),
            asked: RefCell::new(asked),
            told: RefCell::new(told),
        };
        for name in ["monty", "smolagents"] {
            python.times(name, 1);
        }
        python
    }

    /// Returns the microseconds of each of `count` jobs.
    pub(crate) fn times(&self, name: &str, count: usize) -> Vec<f64> {
        writeln!(self.asked.borrow_mut(), "{name} {count}").expect("the peer lives");
        let mut line = String::new();
        self.told
            .borrow_mut()
            .read_line(&mut line)
            .expect("the peer answers");
        serde_json::from_str(&line)
            .unwrap_or_else(|_| panic!("MISSING PEER: {name} failed, see above"))
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let child = self.child.get_mut();
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// `bwrap` with a root as small as ours, and `python3 -I -S` in it, used over its standard streams.
pub(crate) mod bwrap {
    use super::{BufRead, BufReader, Command, Instant, Stdio, Value, Write, json};

    pub(crate) fn version() -> String {
        let said = Command::new("bwrap").arg("--version").output();
        let said = said.unwrap_or_else(|e| panic!("MISSING PEER: bwrap: {e}"));
        String::from_utf8_lossy(&said.stdout).trim().to_owned()
    }

    /// Returns the microseconds of the job.
    pub(crate) fn job() -> f64 {
        let begun = Instant::now();
        let root = "--ro-bind /usr /usr --symlink usr/lib /lib --symlink usr/lib64 /lib64 --symlink usr/bin /bin";
        let jail = "--unshare-all --die-with-parent --new-session --clearenv --proc /proc --dev /dev --tmpfs /tmp";
        let mut child = Command::new("bwrap")
            .args(root.split(' ').chain(jail.split(' ')))
            .args([
                "/usr/bin/python3",
                "-I",
                "-S",
                "-c",
                include_str!("inside.py"),
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("bwrap starts");
        let mut asked = child.stdin.take().expect("its input");
        let told = BufReader::new(child.stdout.take().expect("its output"));
        let mut printed = Value::Null;
        for line in told.lines() {
            let line: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
            if let Some(total) = line.get("printed") {
                printed = total.clone();
                break;
            }
            let sum = line["a"].as_i64().expect("a") + line["b"].as_i64().expect("b");
            writeln!(asked, "{sum}").expect("it reads");
        }
        let ended = child.wait().expect("it ends");
        assert!(ended.success() && printed == json!(45), "{ended} {printed}");
        begun.elapsed().as_secs_f64() * 1e6
    }
}
