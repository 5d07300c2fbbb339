//! `Connections`: decides about the connections of one command, also in the background, and remembers the decisions.

pub(super) mod judge;
mod own_updates;
mod pending_target;
mod request;
mod socket;
mod way_back;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use haft::context::{CallContext, CurrentRules};
use haft::permission::{Permission, Verdict};
use haft::policy::address::{can_be_opened, check_host};
use haft::policy::{CommandLine, EffectVerdict, NetworkBundle};
use haft::result::{Outcome, Status};
use haft::untrusted::ConnectionContent;
use haft_sandbox::RunningCommand;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use crate::command::connect::{
    CONNECT, CommandCall, ConnectData, ConnectInput, ConnectionTarget, LoginInput,
    MAX_COMMAND_LINE, OpenCommands, OtherHost, RequestInput, stated,
};
use crate::command::connections::pending_target::{
    ConnectionVerdict, PendingTarget, TargetDecision, VerdictReceiver, refusal,
};
use crate::command::connections::way_back::WayBack;
use crate::command::login_decisions::LoginDecisions;
use crate::command::sign::SIGN;
use crate::command::think_clock::ThinkClock;
use crate::proxy::LoginUse;
use crate::proxy::{ConnectionAccess, ConnectionRefusal, Proxy};
use crate::web::http::OpenAddresses;
use crate::web::target::WebUrl;

/// Maximum number of places that haft decides about per command.
const MAX_PLACES: usize = 64;
/// Maximum number of one command's requests that are pending at once; more follow as these are decided.
const MAX_PENDING: usize = 8;
/// Maximum attempts of a connection to get an answer from a task that may cover several places.
const MAX_TRIES: usize = 4;
/// Maximum time for the requests of an ended command to leave the inbox.
const WITHDRAWAL_TIMEOUT: Duration = Duration::from_secs(5);
/// The ports that hosts of a registry serve.
const REGISTRY_PORTS: [u16; 2] = [80, 443];

/// Decides about the connections of one command. Each place is decided once, however many connections there are, and again when the run
/// has read untrusted content since.
#[derive(Debug)]
pub(crate) struct Connections {
    proxy: Proxy,
    rules: CurrentRules,
    /// The command's call. A command in the background asks in its name, too.
    call: CallContext,
    open: OpenCommands,
    /// The description of the command in every request.
    request: ConnectInput,
    /// The parsed command line, and where it may return to.
    way_back: WayBack,
    pub(super) clock: ThinkClock,
    decided: Mutex<HashMap<ConnectionTarget, TargetDecision>>,
    /// The hosts of which a request was allowed by rules.
    allowed: Mutex<HashSet<ConnectionTarget>>,
    /// The tasks that ask; `None` once the command has ended.
    asking: Mutex<Option<Vec<JoinHandle<()>>>>,
    /// Becomes true when the command ends.
    ended: watch::Sender<bool>,
    shown: Semaphore,
    /// The places that the command has connected to.
    reached: Mutex<BTreeSet<String>>,
    /// The hosts and ports among them.
    connected: Mutex<BTreeSet<(String, u16)>>,
    /// The logins that it may use, or not.
    pub(super) logins: LoginDecisions,
}

/// A command that can ask. Dropping the value ends that.
#[derive(Debug)]
pub(crate) struct AskingGuard(Arc<Connections>);

impl AskingGuard {
    /// Ends asking and waits until the command's requests have left the inbox.
    pub(crate) async fn end(self) {
        let asking = self.0.close();
        let all = async {
            for task in asking {
                // A task that panicked has ended too.
                let _ = task.await;
            }
        };
        // An inbox that does not respond must not hold back the result.
        let _ = tokio::time::timeout(WITHDRAWAL_TIMEOUT, all).await;
    }
}

impl Drop for AskingGuard {
    fn drop(&mut self) {
        // The tasks end on their own.
        self.0.close();
    }
}

impl Connections {
    /// Creates the connections for a command of this call.
    pub(super) fn new(proxy: &Proxy, open: &OpenCommands, call: &CommandCall<'_>) -> Arc<Self> {
        let clip = |text: &str| text.chars().take(MAX_COMMAND_LINE).collect::<String>();
        let context = call.context;
        let request = ConnectInput {
            program: clip(call.program),
            host: String::new(),
            port: 0,
            leads_to: Vec::new(),
            request: None,
            also: Vec::new(),
            login: None,
            carries: ConnectionContent::Anything,
            command: stated(call.whole),
            task: format!("{}/{}", context.run(), context.call_id()),
        };
        open.add(&request.task);
        Arc::new(Self {
            proxy: proxy.clone(),
            rules: context.rules(),
            call: context.clone(),
            open: open.clone(),
            request,
            way_back: WayBack::new(CommandLine::new(call.line), call.sets_variables),
            clock: ThinkClock::default(),
            decided: Mutex::default(),
            allowed: Mutex::default(),
            asking: Mutex::new(Some(Vec::new())),
            ended: watch::Sender::new(false),
            shown: Semaphore::new(MAX_PENDING),
            reached: Mutex::default(),
            connected: Mutex::default(),
            logins: LoginDecisions::default(),
        })
    }

    /// Returns the places that the command has connected to.
    pub(super) fn reached_places(&self) -> Vec<String> {
        self.reached.lock().iter().cloned().collect()
    }

    /// Notes that there was a connection to a host.
    pub(super) fn note_place(&self, target: &WebUrl) {
        let mut connected = self.connected.lock();
        if connected.len() < MAX_PLACES {
            let host = target.host().trim_end_matches('.').to_owned();
            connected.insert((host, target.port()));
        }
    }

    /// Returns the hosts and ports that the command has connected to.
    pub(super) fn ssh_places(&self) -> Vec<(String, u16)> {
        self.connected.lock().iter().cloned().collect()
    }

    /// Returns a value during whose lifetime the command asks about connections.
    pub(super) fn begin_asking(self: &Arc<Self>) -> AskingGuard {
        AskingGuard(Arc::clone(self))
    }

    /// From now on, nothing is allowed: the command has ended. Pending requests are withdrawn.
    fn close(&self) -> Vec<JoinHandle<()>> {
        self.open.remove(&self.request.task);
        let mut asking = self.asking.lock();
        self.ended.send_replace(true);
        asking.take().unwrap_or_default()
    }

    /// Starts a task that asks; returns false if the command has ended.
    pub(super) fn spawn_question(
        &self,
        question: impl Future<Output = ()> + Send + 'static,
    ) -> bool {
        // Holds the lock while the task starts: no one would end a task that starts after the command's end.
        let mut asking = self.asking.lock();
        let Some(tasks) = asking.as_mut() else {
            return false;
        };
        tasks.push(tokio::spawn(question));
        true
    }

    /// Treats what follows as another command, as something was typed: a guard that asked about a place asks again, and what the command itself
    /// has read counts.
    pub(super) fn begin_anew(&self) {
        self.decided
            .lock()
            .retain(|_, known| !known.asked_each_time || known.is_pending());
        self.way_back.forget();
    }

    /// Returns the description of the command in requests.
    pub(super) fn request(&self) -> &ConnectInput {
        &self.request
    }

    /// Has an internal tool called now, until the command ends.
    pub(super) async fn call_now(&self, tool: &str, arguments: String) -> Outcome {
        let called = self.call.call_internal_now(tool, arguments, self.ended());
        called.await
    }

    /// Returns the policy's verdict on a login.
    pub(super) fn login_verdict(&self, login: &LoginInput) -> Verdict {
        let verdicts = self.rules.verdicts(SIGN, &[login.permission()]);
        verdicts
            .first()
            .map_or(Verdict::Ask, |judged| judged.verdict)
    }

    /// Completes when the command has ended.
    async fn ended(&self) {
        // `self` owns the sender, so it cannot be dropped earlier.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// Returns the decision about a place, which may still be pending, and whether it was made for an earlier connection.
    fn answer(
        self: &Arc<Self>,
        place: &ConnectionTarget,
        login: Option<&LoginUse>,
    ) -> (VerdictReceiver, bool) {
        let judged = self.verdicts(std::slice::from_ref(place)).pop();
        let asked_each_time = judged.is_some_and(|judged| judged.asks_each_time);
        let mut decided = self.decided.lock();
        let known = decided.get(place);
        if let Some(known) = known.filter(|known| known.holds(asked_each_time)) {
            return (known.hear.clone(), true);
        }
        let (mut wanted, hear) = PendingTarget::new(place.clone());
        wanted.login = login.map(LoginInput::from);
        if known.is_none() && decided.len() >= MAX_PLACES {
            wanted.refuse(
                format!("the command has already asked for {MAX_PLACES} hosts and requests"),
                None,
            );
            return (hear, false);
        }
        let known = TargetDecision {
            hear: hear.clone(),
            asked_each_time,
        };
        self.way_back.note_first(place, &self.call.untrusted());
        decided.insert(place.clone(), known);
        let others = self.others(place, &mut decided);
        drop(decided);
        let this = Arc::clone(self);
        // Uses a separate task, because the program may give up this connection and open another. If the command has ended, nobody is
        // asked, and whoever waits hears that.
        self.spawn_question(async move { this.ask(wanted, others).await });
        (hear, false)
    }

    /// Returns the other hosts of the registry that the command's programs use, if the user would be asked about them too: such a
    /// program connects to all of them, one after another.
    fn others(
        &self,
        place: &ConnectionTarget,
        decided: &mut HashMap<ConnectionTarget, TargetDecision>,
    ) -> Vec<PendingTarget> {
        let bundle = NetworkBundle::of_host(&place.host);
        let bundle = bundle.filter(|_| place.request.is_none());
        let bundle = bundle.filter(|bundle| bundle.is_used_by(self.way_back.line()));
        let Some(bundle) =
            bundle.filter(|_| REGISTRY_PORTS.contains(&place.port) && self.needs_decision(place))
        else {
            return Vec::new();
        };
        let hosts = bundle.hosts.iter();
        let places = hosts.map(|host| ConnectionTarget::named(*host, place.port));
        let asked =
            places.filter(|other| !decided.contains_key(other) && self.needs_decision(other));
        let asked: Vec<ConnectionTarget> = asked.take(MAX_PLACES - decided.len()).collect();
        let begin = |other: ConnectionTarget| {
            let judged = self.verdicts(std::slice::from_ref(&other)).pop();
            let (wanted, hear) = PendingTarget::new(other);
            let known = TargetDecision {
                hear,
                asked_each_time: judged.is_some_and(|judged| judged.asks_each_time),
            };
            decided.insert(wanted.place.clone(), known);
            wanted
        };
        asked.into_iter().map(begin).collect()
    }

    /// Returns true if the user is asked about a place, as far as its name tells.
    fn needs_decision(&self, place: &ConnectionTarget) -> bool {
        let verdict = self.verdicts(std::slice::from_ref(place)).pop();
        verdict.is_some_and(|judged| judged.verdict == Verdict::Ask)
    }

    /// Returns true if a place is allowed, or someone can be asked about it.
    fn may_be_allowed(&self, place: &ConnectionTarget) -> bool {
        let verdict = self.verdicts(std::slice::from_ref(place)).pop();
        verdict.is_some_and(|judged| match judged.verdict {
            Verdict::Allow => true,
            Verdict::Ask => self.rules.can_ask(),
            Verdict::Deny => false,
        })
    }

    fn verdicts(&self, places: &[ConnectionTarget]) -> Vec<EffectVerdict> {
        let wanted: Vec<Permission> = places.iter().map(ConnectionTarget::permission).collect();
        let carries = self.content_to(places);
        self.rules
            .verdicts_on_connections(CONNECT, &wanted, carries)
    }

    /// Returns the most that a connection to one of these places can carry.
    fn content_to(&self, places: &[ConnectionTarget]) -> ConnectionContent {
        let all = places.iter().map(|place| self.way_back.content_to(place));
        all.min().unwrap_or_default()
    }

    /// Forgets places, so that each is asked about separately when the command connects to it.
    fn forget(&self, others: &[PendingTarget]) {
        let mut decided = self.decided.lock();
        for other in others {
            decided.remove(&other.place);
        }
    }

    /// Asks about a place, and in the same request about others.
    async fn ask(&self, first: PendingTarget, others: Vec<PendingTarget>) {
        let mut wanted = Vec::with_capacity(1 + others.len());
        let mut places = Vec::with_capacity(1 + others.len());
        match self.resolve_privately(&first.place).await {
            Ok(place) => places.push(place),
            Err(refused) => {
                self.forget(&others);
                return first.answer(Err(refused));
            }
        }
        wanted.push(first);
        for other in others {
            // A host that cannot be resolved here is not part of the request.
            match self.resolve_privately(&other.place).await {
                Ok(place) => {
                    places.push(place);
                    wanted.push(other);
                }
                Err(_) => self.forget(&[other]),
            }
        }
        let verdicts = self.verdicts(&places);
        let asks = verdicts.iter().any(|judged| judged.verdict == Verdict::Ask);
        let asks = asks || wanted.iter().any(|one| one.login.is_some());
        let _thinking = asks.then(|| self.clock.begin());
        // The semaphore is never closed; an error would only make this ask at once.
        let _shown = if asks {
            tokio::select! {
                permit = self.shown.acquire() => permit.ok(),
                () = self.ended() => return,
            }
        } else {
            None
        };
        let login = wanted.first().and_then(|first| first.login.as_ref());
        let decided = self.judge_places(&places, login).await;
        if let (Some(login), Ok(())) = (login, &decided) {
            self.logins.note_agreed(login);
        }
        for ((one, place), verdict) in wanted.iter().zip(&places).zip(&verdicts) {
            match &decided {
                Ok(()) if verdict.names_place => {
                    one.answer(Ok(ConnectionAccess::Private(OpenAddresses::Any)));
                }
                Ok(()) => one.answer(Ok(place.granted())),
                Err((why, operator)) => one.refuse(why.clone(), operator.clone()),
            }
        }
    }

    /// Resolves the host of a place before the decision if that discloses little: for the name of a registry, or one that only a private
    /// network knows. Any other lookup would disclose the name to its DNS server before the user agreed, and so would one for a place
    /// that is denied, or about which no one can be asked.
    async fn resolve_privately(
        &self,
        place: &ConnectionTarget,
    ) -> Result<ConnectionTarget, ConnectionRefusal> {
        if place.is_socket() {
            return Ok(place.clone());
        }
        let private = check_host(&place.host).is_err();
        let quiet = private || NetworkBundle::of_host(&place.host).is_some();
        // The policy denies by name what no decision can open.
        let never = !place.leads_to.is_empty() || !quiet || private && !can_be_opened(&place.host);
        if never || !self.may_be_allowed(place) {
            return Ok(place.clone());
        }
        let target = place.target()?;
        let mut leads_to = self.proxy.private_addresses(&target).await?;
        if target.address().is_some() {
            // The address is in the request already.
            leads_to.clear();
        }
        Ok(ConnectionTarget {
            leads_to,
            ..place.clone()
        })
    }

    /// Has the policy judge the connection and asks the user if required. The error holds the reason and the setting that would allow it.
    async fn judge_places(
        &self,
        places: &[ConnectionTarget],
        login: Option<&LoginInput>,
    ) -> Result<(), (String, Option<String>)> {
        let Some((first, others)) = places.split_first() else {
            return Ok(());
        };
        let other = |place: &ConnectionTarget| OtherHost {
            host: place.host.clone(),
            leads_to: place.leads_to.clone(),
        };
        let input = ConnectInput {
            host: first.host.clone(),
            port: first.port,
            leads_to: first.leads_to.clone(),
            request: first.request.as_ref().map(RequestInput::from),
            also: others.iter().map(other).collect(),
            login: login.cloned(),
            carries: self.content_to(places),
            ..self.request.clone()
        };
        // Plain data: serialization does not fail.
        let arguments = serde_json::to_string(&input).unwrap_or_default();
        let outcome = self.call_now(CONNECT, arguments).await;
        if outcome.status != Status::Ok {
            return Err(refusal_of(outcome));
        }
        let data = outcome.data.as_deref().map(RawValue::get);
        let agreed: Option<ConnectData> = data.and_then(|data| serde_json::from_str(data).ok());
        let agreed = agreed.filter(|agreed| agreed.login.as_ref() == login);
        let agreed = agreed.map(|data| data.connected).unwrap_or_default();
        if places
            .iter()
            .all(|place| agreed.contains(&place.to_string()))
        {
            return Ok(());
        }
        let why = "the approval was edited to another host or login than this command asked for";
        Err((why.into(), None))
    }

    /// Decides about a place that settings let all commands reach: what the run has read by now may require a question, or forbid it.
    pub(super) async fn decide_listed(
        self: &Arc<Self>,
        target: &WebUrl,
    ) -> Result<(), ConnectionRefusal> {
        let place = ConnectionTarget::of(target, Vec::new());
        let wanted = place.permission();
        let carries = self.content_to(std::slice::from_ref(&place));
        let call = &self.call;
        let required = call.required_of_listed_connection(CONNECT, &wanted, carries);
        match required.verdict() {
            Verdict::Allow => Ok(()),
            Verdict::Ask => Arc::clone(self).decide(place, None).await.map(drop),
            Verdict::Deny => {
                let operator = Some(required.operator().to_string());
                let operator = operator.filter(|advice| !advice.is_empty());
                Err(refusal(&place, required.reason().to_string(), operator))
            }
        }
    }

    /// Returns true if a place needs no question (any more): a login there is asked about by itself then.
    fn is_settled(&self, place: &ConnectionTarget) -> bool {
        let judged = self.verdicts(std::slice::from_ref(place)).pop();
        let asks_each_time = judged.as_ref().is_some_and(|judged| judged.asks_each_time);
        let decided = self.decided.lock();
        let known = decided.get(place);
        known.is_some_and(|known| known.holds(asks_each_time) && known.hear.borrow().is_some())
            || judged.is_some_and(|judged| judged.verdict != Verdict::Ask)
    }

    /// Decides about a place and a login that is used there, in one request if both need one.
    async fn decide_login(
        self: Arc<Self>,
        place: ConnectionTarget,
        login: &LoginUse,
    ) -> ConnectionVerdict {
        let apart = self.logins.is_agreed(login) || self.is_settled(&place);
        let with = Some(login).filter(|_| !apart);
        let granted = Arc::clone(&self).decide(place.clone(), with).await?;
        // Without effect if the request was about both. Another connection may have asked about the place alone.
        self.judge_login(&place.host, login).await?;
        Ok(granted)
    }

    async fn decide(
        self: Arc<Self>,
        place: ConnectionTarget,
        login: Option<&LoginUse>,
    ) -> ConnectionVerdict {
        if own_updates::is_one(&place.host) && self.needs_decision(&place) {
            let rule = format!(
                "`Network({})` in `policy.allow` lets commands connect to it",
                place.host
            );
            return Err(refusal(&place, own_updates::WHY.to_owned(), Some(rule)));
        }
        let decided = match login {
            None => self.decide_request(&place).await,
            Some(_) => None,
        };
        if let Some(decided) = decided {
            return decided;
        }
        for _ in 0..MAX_TRIES {
            let (mut answer, is_known) = self.answer(&place, login);
            let heard = answer.wait_for(Option::is_some).await;
            let heard = heard.ok().and_then(|answer| answer.clone());
            if let Some(answer) = heard {
                if answer.is_ok() && !self.take_once(&place) {
                    continue;
                }
                if is_known && answer.is_ok() {
                    // One decision covers it, but it can carry data out like the first.
                    self.rules.count(CONNECT, &[place.permission()]).await;
                }
                return answer;
            }
            // The task that asks ended without an answer: the command ended, or the task asked only about another host.
            if *self.ended.borrow() {
                break;
            }
        }
        let why = "the command ended before it was decided";
        Err(refusal(&place, why.into(), None))
    }
}

/// Returns why a call allowed nothing, for the model and for the operator.
pub(super) fn refusal_of(outcome: Outcome) -> (String, Option<String>) {
    let status = outcome.status;
    match outcome.error {
        Some(error) => (error.message, outcome.operator),
        None => (status.as_str().to_owned(), None),
    }
}

/// Keeps the timeout of a command that ends by itself after `time`. The clock stops while the user decides.
pub(super) async fn enforce_timeout(
    connections: Option<&Arc<Connections>>,
    running: &RunningCommand,
    time: Duration,
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
