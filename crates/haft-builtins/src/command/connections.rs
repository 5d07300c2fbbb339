//! `Connections`: what decides about the connections of one command, and remembers what was decided.

use std::collections::HashMap;
use std::sync::Arc;

use haft::context::{CallContext, CurrentRules};
use haft::permission::Verdict;
use haft::result::{Outcome, Status};
use haft_sandbox::Running;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::command::connect::{CONNECT, ConnectInput, OpenCommands, permission};
use crate::command::think_clock::ThinkClock;
use crate::proxy::{ConnectionJudge, Granted, Proxy, Refusal};
use crate::web::network::BoxFuture;
use crate::web::target::Target;

/// Most hosts and ports of one command that are decided about.
const MOST: usize = 64;
/// Most characters of a command line that a request shows.
const LONGEST: usize = 2_000;

type Answer = Result<Granted, Refusal>;
/// An answer that may be still to come.
type Pending = watch::Receiver<Option<Answer>>;

/// Decides about the connections of one command: each host and port once, however many connections there are.
#[derive(Debug)]
pub(crate) struct Connections {
    /// Whose list of hosts needs no rule.
    proxy: Proxy,
    rules: CurrentRules,
    /// The command's call, as long as it can ask.
    call: Mutex<Option<CallContext>>,
    open: OpenCommands,
    /// What every request says of the command.
    request: ConnectInput,
    pub(super) clock: ThinkClock,
    decided: Mutex<HashMap<(String, u16), Pending>>,
    asking: Mutex<Vec<AbortHandle>>,
}

/// A command that can ask; ends with the value.
#[derive(Debug)]
pub(crate) struct Asking(Option<Arc<Connections>>);

impl Drop for Asking {
    fn drop(&mut self) {
        if let Some(connections) = &self.0 {
            connections.close();
        }
    }
}

impl Connections {
    /// For a command of this call, which begins with these words.
    pub(super) fn new(
        proxy: &Proxy,
        open: &OpenCommands,
        context: &CallContext,
        command: &str,
        program: &str,
    ) -> Arc<Self> {
        let clip = |text: &str| text.chars().take(LONGEST).collect::<String>();
        let request = ConnectInput {
            program: clip(program),
            host: String::new(),
            port: 0,
            command: clip(command),
            task: format!("{}/{}", context.run(), context.call_id()),
        };
        open.add(&request.task);
        Arc::new(Self {
            proxy: proxy.clone(),
            rules: context.rules(),
            call: Mutex::new(Some(context.clone())),
            open: open.clone(),
            request,
            clock: ThinkClock::default(),
            decided: Mutex::default(),
            asking: Mutex::default(),
        })
    }

    /// Whether anything was connected to.
    pub(super) fn any_allowed(&self) -> bool {
        let decided = self.decided.lock();
        decided
            .values()
            .any(|answer| matches!(*answer.borrow(), Some(Ok(_))))
    }

    /// As long as the value is there, the command's call asks about connections.
    pub(super) fn asking(self: &Arc<Self>) -> Asking {
        Asking(Some(Arc::clone(self)))
    }

    /// From now on rules alone decide: the call that asks has ended, or leaves the command to run on. What is asked about
    /// is withdrawn.
    fn close(&self) {
        self.open.remove(&self.request.task);
        let mut asking = self.asking.lock();
        self.call.lock().take();
        for task in asking.drain(..) {
            task.abort();
        }
    }

    /// What was decided, or is being decided, about a host and port.
    fn answer(self: &Arc<Self>, host: &str, port: u16) -> Pending {
        let mut decided = self.decided.lock();
        let key = (host.to_owned(), port);
        if let Some(known) = decided.get(&key) {
            return known.clone();
        }
        let (tell, hear) = watch::channel(None);
        if decided.len() >= MOST {
            let why = format!("the command has asked for {MOST} hosts already");
            tell.send_replace(Some(Err(refusal(host, port, why, None))));
            return hear;
        }
        decided.insert(key, hear.clone());
        drop(decided);
        // Locked while it is begun: what is begun after the end would be ended by nobody.
        let mut asking = self.asking.lock();
        let Some(context) = self.call.lock().clone() else {
            tell.send_replace(Some(self.by_rules(host, port)));
            return hear;
        };
        let (this, host) = (Arc::clone(self), host.to_owned());
        // Not by the connection's own task: the program may give a connection up and open another.
        let task = tokio::spawn(async move {
            let answer = this.ask(&context, &host, port).await;
            tell.send_replace(Some(answer));
        });
        asking.push(task.abort_handle());
        drop(asking);
        hear
    }

    async fn ask(&self, context: &CallContext, host: &str, port: u16) -> Answer {
        let wanted = [permission(host, port)];
        let verdict = self.rules.verdicts(CONNECT, &wanted).pop();
        let names_place = verdict.as_ref().is_some_and(|judged| judged.names_place);
        let asks = verdict.is_none_or(|judged| judged.verdict == Verdict::Ask);
        let _thinking = asks.then(|| self.clock.begin());
        let input = ConnectInput {
            host: host.to_owned(),
            port,
            ..self.request.clone()
        };
        // Plain data: this does not fail.
        let arguments = serde_json::to_string(&input).unwrap_or_default();
        let outcome = context.call_internal_now(CONNECT, arguments).await;
        if outcome.status == Status::Ok {
            return Ok(Granted { names_place });
        }
        let (why, operator) = refusal_of(outcome);
        Err(refusal(host, port, why, operator))
    }

    /// What the rules say where no one is asked.
    fn by_rules(&self, host: &str, port: u16) -> Answer {
        let wanted = [permission(host, port)];
        let judged = self.rules.verdicts(CONNECT, &wanted).pop();
        let Some(judged) = judged else {
            return Err(refusal(host, port, "no rule speaks of it".into(), None));
        };
        if judged.verdict == Verdict::Allow {
            let names_place = judged.names_place;
            return Ok(Granted { names_place });
        }
        let why = format!(
            "{}; a command in the background is not asked about",
            judged.reason
        );
        Err(refusal(host, port, why, None))
    }

    async fn decide(self: Arc<Self>, target: Target) -> Answer {
        let host = target.host().trim_end_matches('.').to_owned();
        let port = target.port();
        if self.proxy.lists(&target) && !self.is_denied(&host, port) {
            return Ok(Granted { names_place: false });
        }
        let mut answer = self.answer(&host, port);
        let heard = answer.wait_for(Option::is_some).await;
        if let Ok(Some(answer)) = heard.as_deref() {
            return answer.clone();
        }
        // The task that asks is gone without an answer.
        let why = "the command ended, or went into the background, before it was decided";
        Err(refusal(&host, port, why.into(), None))
    }

    fn is_denied(&self, host: &str, port: u16) -> bool {
        let judged = self
            .rules
            .verdicts(CONNECT, &[permission(host, port)])
            .pop();
        judged.is_none_or(|judged| judged.verdict == Verdict::Deny)
    }
}

fn refusal(host: &str, port: u16, why: String, operator: Option<String>) -> Refusal {
    Refusal::Judged {
        place: format!("{host}:{port}"),
        why,
        operator,
    }
}

/// Judges by what it shares with the command that it belongs to.
#[derive(Debug)]
pub(super) struct ByConnections(pub(super) Arc<Connections>);

impl ConnectionJudge for ByConnections {
    fn judge<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Answer> {
        Box::pin(Arc::clone(&self.0).decide(target.clone()))
    }
}

/// Why a call let nothing be connected, for the model and for the operator.
fn refusal_of(outcome: Outcome) -> (String, Option<String>) {
    let status = outcome.status;
    match outcome.error {
        Some(error) => (error.message, outcome.operator),
        None if status == Status::Suspended => (
            "it was not decided in time; the request is still pending".to_owned(),
            None,
        ),
        None => (status.as_str().to_owned(), None),
    }
}

/// Follows the clock of a command that ends by itself after `time`: its time stands still while someone decides.
pub(super) async fn keep_time(
    connections: Option<&Arc<Connections>>,
    running: &Running,
    time: std::time::Duration,
) {
    let Some(connections) = connections else {
        return std::future::pending().await;
    };
    let start = std::time::Instant::now();
    loop {
        connections.clock.changed().await;
        running.set_timeout(connections.clock.left(start, time));
    }
}
