//! The machine on which the figures were measured, and its other load.

use std::fs;
use std::process::Command;

/// The machine and its load.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) date: String,
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) kernel: String,
    pub(crate) compiler: String,
    pub(crate) load_before: String,
    pub(crate) load_after: String,
}

impl Machine {
    /// Reads the machine's state before measuring.
    pub(crate) fn begin() -> Self {
        let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = about
            .lines()
            .find_map(|line| line.strip_prefix("model name"));
        let model = model.map(|rest| rest.trim_start_matches([' ', '\t', ':']).to_owned());
        Self {
            date: output_of("date", &["-u", "+%Y-%m-%d %H:%M UTC"]),
            processor: model.unwrap_or_else(|| "an unknown processor".into()),
            cores: std::thread::available_parallelism().map_or(1, Into::into),
            kernel: output_of("uname", &["-sr"]),
            compiler: output_of("rustc", &["--version"]),
            load_before: load(),
            load_after: String::new(),
        }
    }

    /// Reads it again after measuring.
    pub(crate) fn end(self) -> Self {
        Self {
            load_after: load(),
            ..self
        }
    }
}

/// Returns the load of the last minute.
fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("?").to_owned()
}

fn output_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let line = output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    line.unwrap_or_else(|_| "?".into())
}
