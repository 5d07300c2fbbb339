//! `haft hook AGENT`: reads an event of a coding agent from stdin and answers on stdout, in the agent's own form and within its time limit.

use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::thread;

use haft_app::environment::Environment;
use haft_app::hook::client::{HookProcess, last_moment};
use haft_app::hook::{Agent, HookReply, refusal};
use haft_app::problem::Problem;
use haft_app::site::Site;
use parking_lot::{Mutex, MutexGuard};
use rustix::fs::FileType;
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::GlobalOptions;
use crate::commands::runtime;

/// Maximum number of bytes read from stdin: one more than an event may have, so that the reader of events refuses a longer one.
const LONGEST: u64 = (16 << 20) + 1;

/// The exit code that denies with most agents.
const BLOCKS: u8 = 2;

/// Held by the thread that answers until the process has ended, because an agent reads one answer.
static ANSWER: Mutex<()> = Mutex::new(());

/// Answers the agent and ends the process. Every failure denies the call, as far as the agent lets a hook deny.
pub(crate) fn run(options: &GlobalOptions, name: &str) -> Problem {
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
        leave(agent, &refusal(agent, why));
    }
    let begun = watch(agent).map_err(|e| format!("haft cannot watch the time: {e}"));
    let begun = begun.and_then(|()| runtime(false).map_err(|e| format!("haft cannot start: {e}")));
    let runtime = match begun {
        Ok(runtime) => runtime,
        Err(why) => leave(agent, &refusal(agent, &why)),
    };
    let answered = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(answer(options, agent))
    }));
    let answered = answered
        .map_err(|_| "haft failed unexpectedly: `haft doctor` says what may be wrong".to_owned());
    let reply = answered.and_then(|answered| answered);
    leave(agent, &reply.unwrap_or_else(|why| refusal(agent, &why)))
}

/// Answers just before the agent's time limit, from a thread of its own, whatever the other threads wait for.
fn watch(agent: Agent) -> io::Result<()> {
    let watch = thread::Builder::new().spawn(move || {
        thread::sleep(last_moment(agent));
        let why = "no decision about this call came in time, so it did not run. Make the same call again later";
        leave(agent, &refusal(agent, why));
    });
    watch.map(drop)
}

async fn answer(options: &GlobalOptions, agent: Agent) -> Result<HookReply, String> {
    // A file that may not grow causes an error, which can be answered, instead of ending the process.
    let full = signal(SignalKind::from_raw(Signal::XFSZ.as_raw()));
    let _full = full.map_err(|e| format!("haft cannot outlive a full file: {e}"))?;
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(LONGEST).read_to_end(&mut bytes);
    read.map_err(|e| format!("haft cannot read the event: {e}"))?;
    let site = Site::find(
        options.workspace.as_deref(),
        options.home.as_deref(),
        Environment::read(),
    );
    let site = site.map_err(|problem| in_words(&problem))?;
    // Large: it holds everything that is judged.
    Ok(Box::pin(HookProcess::new(&site, agent).answer(bytes)).await)
}

/// Writes the answer and ends the process.
#[expect(
    clippy::exit,
    reason = "one of two threads answers, at a moment that the other does not know"
)]
fn leave(agent: Agent, reply: &HookReply) -> ! {
    let _only: MutexGuard<'_, ()> = ANSWER.lock();
    if reply.stdout.is_empty() || write_answer(&reply.stdout).is_ok() {
        let _ = io::stderr().write_all(reply.stderr.as_bytes());
        process::exit(reply.exit.into())
    }
    // An agent that cannot get the answer gets the exit code of a denial.
    let why = "haft cannot write its answer to standard output, so the call must not run";
    let denial = refusal(agent, why);
    let _ = io::stderr().write_all(why.as_bytes());
    let code = if denial.exit == 0 {
        BLOCKS
    } else {
        denial.exit
    };
    process::exit(code.into())
}

/// Writes the answer to stdout.
fn write_answer(text: &str) -> io::Result<()> {
    let mut out = io::stdout();
    let reader = rustix::fs::fstat(&out)?;
    // Rust's runtime opens `/dev/null` in place of a stdout that was closed when the process began: no agent reads it.
    let null = rustix::fs::stat("/dev/null")?;
    if FileType::from_raw_mode(reader.st_mode) == FileType::CharacterDevice
        && reader.st_rdev == null.st_rdev
    {
        return Err(io::Error::new(
            io::ErrorKind::BrokenPipe,
            "standard output is closed",
        ));
    }
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn unknown(agent: &str) -> Problem {
    let all = Agent::ALL.map(Agent::name).join(", ");
    Problem::usage(format!("unknown agent `{agent}`"))
        .advise(format!("haft reads the hooks of these agents: {all}"))
}

fn in_words(problem: &Problem) -> String {
    match problem.advice() {
        Some(advice) => format!("{problem}; {advice}"),
        None => problem.to_string(),
    }
}
