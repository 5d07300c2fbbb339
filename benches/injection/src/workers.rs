//! Processes that play cases side by side, each in namespaces of its own.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::{env, fs, thread};

use crate::case::{Case, Cases};
use crate::haft::{Haft, Place, run as finish};
use crate::play::{Played, play};
use crate::servers::SERVERS;
use crate::settings::{POLICIES, Policy};
use crate::world::World;
use crate::{network, suites};

/// The argument by which this program is started in its namespaces.
pub(crate) const INSIDE: &str = "--inside";

/// One of so many shares: the jobs whose number has this rest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    pub(crate) rest: usize,
    pub(crate) of: usize,
}

/// Plays all cases under all policies, and returns what came of them in their order.
pub(crate) fn run(program: &Path, cases: &[Case]) -> Vec<Played> {
    let count = thread::available_parallelism()
        .map_or(2, usize::from)
        .min(4);
    let program = program.canonicalize().expect("the program");
    let own = env::current_exe().expect("this program");
    let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    let start = |nth: usize| {
        let mut child = network::inside(&own)
            .args([
                INSIDE,
                &program.display().to_string(),
                &nth.to_string(),
                &count.to_string(),
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut input = child.stdin.take().expect("piped");
        let lines = names.join("\n");
        let _ = input.write_all(lines.as_bytes());
        child
    };
    let children: Vec<Child> = (0..count).map(start).collect();
    let readers = children
        .into_iter()
        .map(|child| thread::spawn(move || read(child)));
    let readers: Vec<_> = readers.collect();
    let mut all: Vec<Played> = readers
        .into_iter()
        .flat_map(|reader| reader.join().expect("it reads"))
        .collect();
    all.sort_by_key(|one| names.iter().position(|name| *name == one.name));
    all
}

fn read(mut child: Child) -> Vec<Played> {
    let output = BufReader::new(child.stdout.take().expect("piped"));
    let lines = output.lines().map_while(Result::ok);
    let all = lines.filter_map(|line| serde_json::from_str(&line).ok());
    let all = all.collect();
    let _ = child.wait();
    all
}

/// Plays, in the namespaces, a share of the cases; their names come on standard input.
pub(crate) fn work(program: &Path, share: Share) -> ExitCode {
    let names: Vec<String> = io::stdin().lines().map_while(Result::ok).collect();
    match play_all(program, share, &names) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("injection: {error}");
            ExitCode::FAILURE
        }
    }
}

fn play_all(program: &Path, share: Share, names: &[String]) -> io::Result<()> {
    let scratch = tempfile::tempdir()?;
    let world = Arc::new(World::default());
    network::build(scratch.path(), &world)?;
    let template = scratch.path().join("template");
    pin(program, &template, &world)?;
    let cases = Cases::read(&suites())?;
    let all = cases.attacks.into_iter().chain(cases.benign);
    let all: Vec<Arc<Case>> = all
        .filter(|case| names.contains(&case.name))
        .map(Arc::new)
        .collect();
    let jobs = all
        .iter()
        .flat_map(|case| POLICIES.map(|policy| (case, policy)));
    for (nth, (case, policy)) in jobs
        .enumerate()
        .filter(|(nth, _)| nth % share.of == share.rest)
    {
        let folder = scratch.path().join(format!("case-{nth}"));
        let place = Place {
            program: program.to_owned(),
            folder: folder.clone(),
        };
        let played = copy(&template, &folder).and_then(|()| play(case, policy, &place, &world));
        match played.and_then(|played| Ok(serde_json::to_string(&played)?)) {
            Ok(line) => println!("{line}"),
            Err(error) => eprintln!("{} under {}: {error}", case.name, policy.name()),
        }
        let _ = fs::remove_dir_all(&folder);
    }
    Ok(())
}

/// Makes a home in which all servers are pinned, and an empty workspace.
fn pin(program: &Path, folder: &Path, world: &World) -> io::Result<()> {
    fs::create_dir_all(folder.join("work"))?;
    fs::create_dir_all(folder.join("www"))?;
    let place = Place {
        program: program.to_owned(),
        folder: folder.to_owned(),
    };
    world.begin(Arc::default(), folder.to_owned());
    let policy = Policy {
        is_broad: true,
        is_guarded: true,
    };
    place.set(&policy.text(&Case::default()))?;
    for server in SERVERS {
        finish(&mut place.command(&["mcp", "pin", server.name, "--yes"]))?;
    }
    drop(Haft::start(&place)?);
    Ok(())
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    finish(
        Command::new("cp")
            .arg("-a")
            .arg(from)
            .arg(to)
            .stderr(Stdio::piped()),
    )
}
