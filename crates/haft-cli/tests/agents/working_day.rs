//! A day's work of the real Claude Code, Codex and Gemini CLI, in the jail and without it: each does the same steps in one session, a user
//! answers what haft asks, and in the end everything is undone.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use haft_scripted::Scenario;
use serde_json::Value;

use crate::codex;
use crate::hosts::{GIT, Hosts, REGISTRY, git, run};
use crate::lab::{self, Answer, Lab, need};
use crate::rows::ROWS;
use crate::steps::{FILES, STEPS, scenario};
use crate::workers::{CLAUDE, CODEX, GEMINI, Worker};

/// Longer than a day takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(1_200);
/// How often the user looks into the inbox.
const LOOK: Duration = Duration::from_millis(200);

/// A server that haft's hooks ask, until it is dropped.
struct Server(Child);

impl Server {
    fn start(lab: &Lab) -> Self {
        let args = ["serve", "--http", "127.0.0.1:0", "--json"];
        let mut command = lab.plain_command(Path::new(lab::HAFT), &args);
        command.stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        assert!(line.contains("token_file"), "{line}");
        Self(child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Makes the shop's repository, whose only commit the git server has, too.
fn make_shop(lab: &Lab, hosts_folder: &Path) {
    let folder = lab.path("work");
    for (name, text) in FILES {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let origin = hosts_folder.join("shop.git").display().to_string();
    let url = format!("http://{GIT}/shop.git");
    for words in [
        &["init", "-q", "-b", "main", "."][..],
        &["add", "-A"],
        // Gemini CLI has git read no settings of the user.
        &["config", "user.name", "Ann"],
        &["config", "user.email", "ann@example.com"],
        &["commit", "-q", "-m", "Begin the shop"],
        &["push", "-q", &origin, "main"],
        &["remote", "add", "origin", &url],
    ] {
        run(git(&folder).args(words));
    }
}

/// Writes the user's settings: of haft and npm.
fn write_settings(lab: &Lab, hosts: &Hosts, wrap: &str) {
    let proxy = hosts.proxy();
    let settings = format!(
        "console.start = \"never\"\n\n[network]\nproxy = \"{proxy}\"\n\n[sandbox.env]\nNPM_CONFIG_REGISTRY = \"http://{REGISTRY}/\"\n\n\
         [policy]\nallow = [\"Edit(/**)\"]\n\n[hook]\nwait_s = 600\nwrap = \"{wrap}\"\n"
    );
    lab.write(".config/haft/config.toml", &settings);
    lab.write(
        ".npmrc",
        &format!("registry=http://{REGISTRY}/\nupdate-notifier=false\n"),
    );
}

/// Answers every request until `stop`; returns what was asked.
fn answer_all(lab: &Lab, stop: &AtomicBool) -> Vec<String> {
    let mut asked = Vec::new();
    let mut seen = BTreeSet::new();
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK);
        let listed = lab.plain_haft(&["approvals", "list", "--json"]);
        let listed: Vec<Value> = serde_json::from_slice(&listed.stdout).unwrap_or_default();
        for request in listed {
            let id = request["id"].as_str().unwrap().to_owned();
            if request["status"] != "pending" || !seen.insert(id.clone()) {
                continue;
            }
            let text = request["fact"]["text"].as_str().unwrap_or_default();
            let tool = request["tool"].as_str().unwrap_or_default();
            asked.push(format!("{tool}: {text} [{}]", request["reason"]));
            lab.plain_haft(&["approvals", "approve", &id, "--yes"]);
        }
    }
    asked
}

/// Runs a program to its end; returns what it printed.
fn ended_in_time(mut command: Command) -> String {
    let mut child = command.spawn().unwrap();
    let begin = Instant::now();
    let readers = [
        read_all(child.stdout.take().unwrap()),
        read_all(child.stderr.take().unwrap()),
    ];
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > PATIENCE {
            child.kill().unwrap();
        }
        std::thread::sleep(LOOK);
    }
    let texts = readers.map(|reader| reader.join().unwrap());
    texts.concat()
}

fn read_all(mut stream: impl std::io::Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        lab::text(&bytes)
    })
}

/// What is below a folder, with each path's mode, kind and content; of `.git` only the settings and the hooks.
fn tree(folder: &Path) -> BTreeMap<PathBuf, String> {
    use std::os::unix::fs::PermissionsExt as _;
    let repository = folder.join(".git");
    let is_setting = |path: &Path| {
        let settings = ["config", "hooks", "info"].map(|name| repository.join(name));
        path == repository || settings.iter().any(|name| path.starts_with(name))
    };
    let mut all = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let meta = std::fs::symlink_metadata(&path).unwrap();
            let content = if meta.is_dir() {
                "folder".to_owned()
            } else if meta.is_symlink() {
                format!("link to {}", std::fs::read_link(&path).unwrap().display())
            } else {
                lab::text(&std::fs::read(&path).unwrap())
            };
            if path.starts_with(&repository) && !is_setting(&path) {
                continue;
            }
            if meta.is_dir() {
                open.push(path.clone());
            }
            let mode = meta.permissions().mode();
            all.insert(path, format!("{mode:o} {content}"));
        }
    }
    all
}

/// What a day led to.
struct Day {
    lab: Lab,
    hosts: Hosts,
    asked: Vec<String>,
    /// The workspace before the day, see [`tree`].
    before: BTreeMap<PathBuf, String>,
    _hosts_folder: tempfile::TempDir,
}

/// Lets an agent work for a day; `None` if something for it is missing here.
fn work(worker: &Worker, wrap: &str) -> Option<Day> {
    let program = need(worker.program)?;
    let hosts_folder = tempfile::tempdir().unwrap();
    let Some(hosts) = Hosts::start(hosts_folder.path()) else {
        eprintln!("SKIPPED: git has no http-backend here");
        return None;
    };
    let lab = Lab::new(Answer::Allow);
    make_shop(&lab, hosts_folder.path());
    write_settings(&lab, &hosts, wrap);
    let port = free_port();
    let work = lab.path("work");
    let text = scenario(port, worker.to_calls).replace("@WORK@", work.to_str().unwrap());
    let model = lab.serve(Scenario::from_json(&text).unwrap());
    let mut command = prepare(&lab, worker, &program, &model.url());
    // Without the jail, commands reach the hosts by these.
    command
        .env("http_proxy", hosts.proxy())
        .env("no_proxy", "127.0.0.1,localhost")
        .env("NO_PROXY", "127.0.0.1,localhost");
    let before = tree(&work);
    let server = Server::start(&lab);
    let stop = AtomicBool::new(false);
    let (output, asked) = std::thread::scope(|scope| {
        let person = scope.spawn(|| answer_all(&lab, &stop));
        let output = ended_in_time(command);
        stop_server(port);
        stop.store(true, Ordering::Relaxed);
        (output, person.join().unwrap())
    });
    drop(server);
    let context = format!("{}, {wrap}: {output}\n{asked:#?}", worker.agent);
    assert_eq!(model.problems(), Vec::<String>::new(), "{context}");
    assert!(model.is_over(), "{context}");
    assert_eq!(hosts.tip("tax").len(), 40, "{context}");
    Some(Day {
        lab,
        hosts,
        asked,
        before,
        _hosts_folder: hosts_folder,
    })
}

/// Ends the server that an agent started without the jail, if it still runs because a step failed.
fn stop_server(port: u16) {
    use std::io::Write as _;
    if let Ok(mut stream) = std::net::TcpStream::connect(("127.0.0.1", port)) {
        let _ = stream.write_all(b"GET /stop HTTP/1.0\r\n\r\n");
    }
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Puts haft into the agent's hooks as a user does, and returns the agent's command.
fn prepare(lab: &Lab, worker: &Worker, program: &Path, url: &str) -> Command {
    let row = ROWS.iter().find(|row| row.agent == worker.agent);
    let (name, text) = row.map_or(codex::SETTINGS_FILE, |row| row.settings);
    let file = lab.write(name, &text.replace("@URL@", url));
    let set_up = lab.haft(&["init", "--client", worker.client, "--yes"]);
    let errors = lab::text(&set_up.stderr);
    assert!(set_up.status.success(), "{errors}");
    let mut command = lab.plain_command(program, worker.args);
    for (name, value) in row.map_or(codex::VARIABLES, |row| row.variables) {
        command.env(name, value.replace("@URL@", url));
    }
    if row.is_none() {
        codex::review_all(lab, program, &file);
    }
    command
}

/// Undoes the agent's session; returns what haft said.
fn undo_all(lab: &Lab) -> String {
    let runs = lab.runs();
    let of_session = runs.iter().find(|run| run["client"].is_string());
    let run = of_session.unwrap()["run"].as_str().unwrap();
    let undone = lab.haft(&["runs", "undo", run, "--session", "--yes"]);
    let code = undone.status.code();
    let (output, errors) = (lab::text(&undone.stdout), lab::text(&undone.stderr));
    format!("{run}: {code:?}\n{output}{errors}")
}

/// The difference between two states of the workspace.
fn difference(
    before: &BTreeMap<PathBuf, String>,
    after: &BTreeMap<PathBuf, String>,
) -> Vec<String> {
    let paths: BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
    let differs = |path: &&&PathBuf| before.get(**path) != after.get(**path);
    let each = paths.iter().filter(differs);
    each.map(|path| {
        format!(
            "{}: {:?} -> {:?}",
            path.display(),
            before.get(*path),
            after.get(*path)
        )
    })
    .collect()
}

/// Lets an agent work without the jail and in it, counts what was asked, and undoes all that was done in the jail. `least` is how many
/// prompts there are without the jail for one with it.
fn check(worker: &Worker, least: usize) {
    if std::env::var_os("HAFT_SOAK").is_none() {
        eprintln!("SKIPPED: a working day takes minutes; `HAFT_SOAK=1` runs it");
        return;
    }
    let Some(bare) = work(worker, "none") else {
        return;
    };
    let jailed = work(worker, "jail").unwrap();
    let counts = (bare.asked.len(), jailed.asked.len());
    eprintln!(
        "{}: {} prompts without the jail, {} with it, in {} steps",
        worker.agent,
        counts.0,
        counts.1,
        STEPS.len()
    );
    for text in &jailed.asked {
        eprintln!("  {}", text.escape_debug());
    }
    assert!(counts.1 * least <= counts.0, "{counts:?}");
    let pushed = jailed.hosts.tip("tax");
    let said = undo_all(&jailed.lab);
    let after = tree(&jailed.lab.path("work"));
    assert_eq!(
        difference(&jailed.before, &after),
        Vec::<String>::new(),
        "{said}"
    );
    // What git keeps stays, and haft says so; so does what was pushed.
    assert!(said.contains("left to git"), "{said}");
    assert_eq!(jailed.hosts.tip("tax"), pushed, "{said}");
}

#[test]
fn claude_code_works_for_a_day_in_the_jail_with_few_prompts_and_all_is_undone() {
    check(&CLAUDE, 4);
}

#[test]
fn codex_works_for_a_day_in_the_jail_with_few_prompts_and_all_is_undone() {
    check(&CODEX, 5);
}

#[test]
fn gemini_cli_works_for_a_day_in_the_jail_with_few_prompts_and_all_is_undone() {
    check(&GEMINI, 4);
}
