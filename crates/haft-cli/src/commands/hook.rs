//! `haft hook AGENT`: an event of a coding agent on stdin, the answer on stdout, in the agent's own form and before its time limit.

use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::thread;

use haft_app::environment::Environment;
use haft_app::hook::client::{HookProcess, last_moment};
use haft_app::hook::{Agent, Reply, refusal};
use haft_app::problem::Problem;
use haft_app::site::Site;
use parking_lot::{Mutex, MutexGuard};

use crate::args::Options;
use crate::commands::runtime;

/// The longest event that is read, in bytes, and one more; the reader of events refuses what is longer than it takes.
const LONGEST: u64 = (16 << 20) + 1;

/// Held by whoever answers, until the process has ended: an agent reads one answer.
static ANSWER: Mutex<()> = Mutex::new(());

/// Answers the agent and ends the process. Whatever goes wrong denies the call, as far as the agent lets a hook deny.
pub(crate) fn run(options: &Options, name: &str) -> Problem {
    let Some(agent) = Agent::from_name(name) else {
        return unknown(name);
    };
    if options.config.is_some()
        || options.profile.is_some()
        || options.trust
        || !options.set.is_empty()
    {
        // The server that answers has read its settings already.
        let why =
            "a hook takes its settings from files: leave --config, --profile, -c and --trust out";
        leave(&refusal(agent, why));
    }
    if let Err(error) = watch(agent) {
        leave(&refusal(
            agent,
            &format!("haft cannot watch the time: {error}"),
        ));
    }
    let answered = catch_unwind(AssertUnwindSafe(|| answer(options, agent)));
    let answered = answered
        .map_err(|_| "haft failed unexpectedly: `haft doctor` says what may be wrong".to_owned());
    let reply = answered.and_then(|answered| answered);
    leave(&reply.unwrap_or_else(|why| refusal(agent, &why)))
}

/// Answers in the agent's last moment, from a thread of its own: whatever the others wait for.
fn watch(agent: Agent) -> io::Result<()> {
    let watch = thread::Builder::new().spawn(move || {
        thread::sleep(last_moment(agent));
        let why = "nothing was decided about this call in time: it did not run. Make the same call again later";
        leave(&refusal(agent, why));
    });
    watch.map(drop)
}

fn answer(options: &Options, agent: Agent) -> Result<Reply, String> {
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(LONGEST).read_to_end(&mut bytes);
    read.map_err(|e| format!("haft cannot read the event: {e}"))?;
    let site = Site::find(
        options.workspace.as_deref(),
        options.home.as_deref(),
        Environment::read(),
    );
    let site = site.map_err(|problem| in_words(&problem))?;
    let runtime = runtime(false).map_err(|e| format!("haft cannot start its runtime: {e}"))?;
    Ok(runtime.block_on(HookProcess::new(&site, agent).answer(bytes)))
}

/// Writes the answer and ends the process.
#[expect(
    clippy::exit,
    reason = "the answer is one whoever gives it, at a moment that the other thread does not know"
)]
fn leave(reply: &Reply) -> ! {
    let _only: MutexGuard<'_, ()> = ANSWER.lock();
    let written = io::stdout()
        .write_all(reply.stdout.as_bytes())
        .and_then(|()| io::stdout().flush())
        .and_then(|()| io::stderr().write_all(reply.stderr.as_bytes()));
    // An agent that cannot be told no is told by the exit code.
    let code = if written.is_ok() { reply.exit } else { 2 };
    process::exit(code.into())
}

fn unknown(agent: &str) -> Problem {
    let all = Agent::ALL.map(Agent::name).join(", ");
    Problem::usage(format!("no agent {agent:?} whose hooks haft reads"))
        .advise(format!("there are {all}"))
}

fn in_words(problem: &Problem) -> String {
    match problem.advice() {
        Some(advice) => format!("{problem}; {advice}"),
        None => problem.to_string(),
    }
}
