//! `Connections`: what decides about the connections of one command, and remembers what was decided.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use haft::context::{CallContext, CurrentRules};
use haft::permission::{Permission, Verdict};
use haft::policy::address::{can_be_opened, check_host};
use haft::policy::{CommandLine, EffectVerdict, NetworkBundle};
use haft::result::{Outcome, Status};
use haft_sandbox::Running;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use crate::command::connect::{
    CONNECT, CommandCall, ConnectData, ConnectInput, OpenCommands, OtherHost, Place,
};
use crate::command::think_clock::ThinkClock;
use crate::files::sha256;
use crate::proxy::{ConnectionJudge, Granted, Proxy, Refusal};
use crate::web::http::OpenAddresses;
use crate::web::network::BoxFuture;
use crate::web::target::Target;

/// Most places of one command that are decided about.
const MOST: usize = 64;
/// Most requests of one command that people see at once; others follow as these are decided.
const SHOWN: usize = 8;
/// Times that a connection asks for an answer whose task may be about several places.
const TRIES: usize = 4;
/// How long the requests of an ended command may take to leave the inbox.
const WITHDRAWAL: Duration = Duration::from_secs(5);
/// Most characters of a command line that a request shows.
const LONGEST: usize = 2_000;
/// The ports at which the hosts of a registry answer.
const PORTS: [u16; 2] = [80, 443];

type Answer = Result<Granted, Refusal>;
/// An answer that may be still to come.
type Pending = watch::Receiver<Option<Answer>>;

/// A place that a connection, or several, are held for.
#[derive(Debug)]
struct Wanted {
    place: Place,
    tell: watch::Sender<Option<Answer>>,
}

impl Wanted {
    fn new(place: Place) -> (Self, Pending) {
        let (tell, hear) = watch::channel(None);
        (Self { place, tell }, hear)
    }

    fn answer(&self, answer: Answer) {
        self.tell.send_replace(Some(answer));
    }

    fn refuse(&self, why: impl Into<String>, operator: Option<String>) {
        self.answer(Err(refusal(&self.place, why.into(), operator)));
    }
}

/// Decides about the connections of one command: each place once, however many connections there are.
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
    /// The programs that it starts.
    line: CommandLine,
    pub(super) clock: ThinkClock,
    decided: Mutex<HashMap<Place, Pending>>,
    /// What asks; none once the command's call has ended.
    asking: Mutex<Vec<JoinHandle<()>>>,
    /// Becomes true with that end.
    ended: watch::Sender<bool>,
    shown: Semaphore,
    /// The places that it is, or was, connected to.
    reached: Mutex<BTreeSet<String>>,
}

/// A command as requests state it: clipped where it is long, with the digest of the whole, so that no approval of one covers
/// another that begins alike.
fn stated(command: &str) -> String {
    let end = command.floor_char_boundary(LONGEST);
    if end == command.len() {
        return command.to_owned();
    }
    let digest = sha256(command.as_bytes());
    format!("{}… (sha256 {digest})", &command[..end])
}

/// A command that can ask; ends with the value.
#[derive(Debug)]
pub(crate) struct Asking(Arc<Connections>);

impl Asking {
    /// Ends it, and waits until what it asked about has left the inbox.
    pub(crate) async fn end(self) {
        let asking = self.0.close();
        let all = async {
            for task in asking {
                // One that panicked has ended, too.
                let _ = task.await;
            }
        };
        // An inbox that does not answer is no reason to keep a result back.
        let _ = tokio::time::timeout(WITHDRAWAL, all).await;
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        // They end by themselves.
        self.0.close();
    }
}

impl Connections {
    /// For a command of this call, which begins with these words.
    pub(super) fn new(proxy: &Proxy, open: &OpenCommands, call: &CommandCall<'_>) -> Arc<Self> {
        let clip = |text: &str| text.chars().take(LONGEST).collect::<String>();
        let context = call.context;
        let request = ConnectInput {
            program: clip(call.program),
            host: String::new(),
            port: 0,
            leads_to: Vec::new(),
            also: Vec::new(),
            command: stated(call.whole),
            task: format!("{}/{}", context.run(), context.call_id()),
        };
        open.add(&request.task);
        Arc::new(Self {
            proxy: proxy.clone(),
            rules: context.rules(),
            call: Mutex::new(Some(context.clone())),
            open: open.clone(),
            request,
            line: CommandLine::new(call.line),
            clock: ThinkClock::default(),
            decided: Mutex::default(),
            asking: Mutex::default(),
            ended: watch::Sender::new(false),
            shown: Semaphore::new(SHOWN),
            reached: Mutex::default(),
        })
    }

    /// The places that it was connected to.
    pub(super) fn reached(&self) -> Vec<String> {
        self.reached.lock().iter().cloned().collect()
    }

    /// As long as the value is there, the command's call asks about connections.
    pub(super) fn asking(self: &Arc<Self>) -> Asking {
        Asking(Arc::clone(self))
    }

    /// From now on rules alone decide: the call that asks has ended, or leaves the command to run on. What is asked about
    /// is withdrawn.
    fn close(&self) -> Vec<JoinHandle<()>> {
        self.open.remove(&self.request.task);
        let mut asking = self.asking.lock();
        self.call.lock().take();
        self.ended.send_replace(true);
        std::mem::take(&mut *asking)
    }

    /// Completes when the command's call has ended.
    async fn ended(&self) {
        // The sender is this value's own: it is not gone before.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// What was decided, or is being decided, about a place.
    fn answer(self: &Arc<Self>, place: &Place) -> Pending {
        let mut decided = self.decided.lock();
        if let Some(known) = decided.get(place) {
            return known.clone();
        }
        let (wanted, hear) = Wanted::new(place.clone());
        if decided.len() >= MOST {
            wanted.refuse(
                format!("the command has asked for {MOST} hosts already"),
                None,
            );
            return hear;
        }
        decided.insert(place.clone(), hear.clone());
        let others = self.others(place, &mut decided);
        drop(decided);
        // Locked while it is begun: what is begun after the end would be ended by nobody.
        let mut asking = self.asking.lock();
        let Some(context) = self.call.lock().clone() else {
            self.forget(&others);
            wanted.answer(self.by_rules(place));
            return hear;
        };
        let this = Arc::clone(self);
        // Not by the connection's own task: the program may give a connection up and open another.
        asking.push(tokio::spawn(async move {
            this.ask(&context, wanted, others).await;
        }));
        drop(asking);
        hear
    }

    /// The other hosts of the registry that the command's programs use, where they would be asked about, too: such a program
    /// asks all of them, one after another.
    fn others(&self, place: &Place, decided: &mut HashMap<Place, Pending>) -> Vec<Wanted> {
        let bundle = NetworkBundle::of_host(&place.host);
        let bundle = bundle.filter(|bundle| bundle.is_used_by(&self.line));
        let Some(bundle) = bundle.filter(|_| PORTS.contains(&place.port) && self.asks(place))
        else {
            return Vec::new();
        };
        let hosts = bundle.hosts.iter();
        let places = hosts.map(|host| Place::named(*host, place.port));
        let asked = places.filter(|other| !decided.contains_key(other) && self.asks(other));
        let asked: Vec<Place> = asked.take(MOST - decided.len()).collect();
        let begin = |other: Place| {
            let (wanted, hear) = Wanted::new(other);
            decided.insert(wanted.place.clone(), hear);
            wanted
        };
        asked.into_iter().map(begin).collect()
    }

    /// Whether a person is asked about a place, as far as its name tells.
    fn asks(&self, place: &Place) -> bool {
        let verdict = self.verdicts(std::slice::from_ref(place)).pop();
        let target = place.target().ok();
        let listed = target.is_some_and(|target| self.proxy.lists(&target));
        !listed && verdict.is_some_and(|judged| judged.verdict == Verdict::Ask)
    }

    fn verdicts(&self, places: &[Place]) -> Vec<EffectVerdict> {
        let wanted: Vec<Permission> = places.iter().map(Place::permission).collect();
        self.rules.verdicts(CONNECT, &wanted)
    }

    /// These are to be asked about by themselves when they are connected to.
    fn forget(&self, others: &[Wanted]) {
        let mut decided = self.decided.lock();
        for other in others {
            decided.remove(&other.place);
        }
    }

    /// Asks about a place, and in the same request about others.
    async fn ask(&self, context: &CallContext, first: Wanted, others: Vec<Wanted>) {
        let mut wanted = Vec::with_capacity(1 + others.len());
        let mut places = Vec::with_capacity(1 + others.len());
        match self.looked_up(&first.place).await {
            Ok(place) => places.push(place),
            Err(refused) => {
                self.forget(&others);
                return first.answer(Err(refused));
            }
        }
        wanted.push(first);
        for other in others {
            // One that is not found here is no part of the request.
            match self.looked_up(&other.place).await {
                Ok(place) => {
                    places.push(place);
                    wanted.push(other);
                }
                Err(_) => self.forget(&[other]),
            }
        }
        let verdicts = self.verdicts(&places);
        let asks = verdicts.iter().any(|judged| judged.verdict == Verdict::Ask);
        let _thinking = asks.then(|| self.clock.begin());
        // Never closed: an error would ask at once.
        let _shown = if asks {
            tokio::select! {
                permit = self.shown.acquire() => permit.ok(),
                () = self.ended() => return,
            }
        } else {
            None
        };
        let decided = self.decide_about(context, &places).await;
        for ((one, place), verdict) in wanted.iter().zip(&places).zip(&verdicts) {
            match &decided {
                Ok(()) if verdict.names_place => {
                    one.answer(Ok(Granted::Private(OpenAddresses::Any)));
                }
                Ok(()) => one.answer(Ok(place.granted())),
                Err((why, operator)) => one.refuse(why.clone(), operator.clone()),
            }
        }
    }

    /// The place with where its host leads, where looking that up tells no one anything: the name of a registry, or one that
    /// only a private network knows. Any other name would be told to whoever answers for it, before a person agreed.
    async fn looked_up(&self, place: &Place) -> Result<Place, Refusal> {
        let private = check_host(&place.host).is_err();
        let quiet = private || NetworkBundle::of_host(&place.host).is_some();
        // What no decision opens the policy denies by its name.
        if !place.leads_to.is_empty() || !quiet || private && !can_be_opened(&place.host) {
            return Ok(place.clone());
        }
        let target = place.target()?;
        let mut leads_to = self.proxy.private_addresses(&target).await?;
        if target.address().is_some() {
            // It says so itself.
            leads_to.clear();
        }
        Ok(Place {
            leads_to,
            ..place.clone()
        })
    }

    /// Has the connection judged, and a person asked where the policy says so; else why not, and what would allow it.
    async fn decide_about(
        &self,
        context: &CallContext,
        places: &[Place],
    ) -> Result<(), (String, Option<String>)> {
        let Some((first, others)) = places.split_first() else {
            return Ok(());
        };
        let other = |place: &Place| OtherHost {
            host: place.host.clone(),
            leads_to: place.leads_to.clone(),
        };
        let input = ConnectInput {
            host: first.host.clone(),
            port: first.port,
            leads_to: first.leads_to.clone(),
            also: others.iter().map(other).collect(),
            ..self.request.clone()
        };
        // Plain data: this does not fail.
        let arguments = serde_json::to_string(&input).unwrap_or_default();
        let outcome = context.call_internal_now(CONNECT, arguments, self.ended());
        let outcome = outcome.await;
        if outcome.status != Status::Ok {
            return Err(refusal_of(outcome));
        }
        let data = outcome.data.as_deref().map(RawValue::get);
        let agreed: Option<ConnectData> = data.and_then(|data| serde_json::from_str(data).ok());
        let agreed = agreed.map(|data| data.connected).unwrap_or_default();
        if places
            .iter()
            .all(|place| agreed.contains(&place.to_string()))
        {
            return Ok(());
        }
        Err((
            "the decision was changed to another host, and this command asked for this one".into(),
            None,
        ))
    }

    /// What the rules say where no one is asked.
    fn by_rules(&self, place: &Place) -> Answer {
        let Some(judged) = self.verdicts(std::slice::from_ref(place)).pop() else {
            return Err(refusal(place, "no rule speaks of it".into(), None));
        };
        if judged.verdict == Verdict::Allow {
            return Ok(if judged.names_place {
                Granted::Private(OpenAddresses::Any)
            } else {
                Granted::Public
            });
        }
        let why = format!(
            "{}; a command in the background is not asked about",
            judged.reason
        );
        let mut rules = self.rules.rules_for(CONNECT, &[place.permission()]);
        let rule = rules.pop().filter(|_| rules.is_empty());
        let operator = rule.map(|rule| format!("the rule {rule} in policy.allow lets it connect"));
        Err(refusal(place, why, operator))
    }

    async fn decide(self: Arc<Self>, place: Place, listed: bool) -> Answer {
        if listed && !self.is_denied(&place) {
            return Ok(Granted::Public);
        }
        for _ in 0..TRIES {
            let mut answer = self.answer(&place);
            let heard = answer.wait_for(Option::is_some).await;
            if let Ok(Some(answer)) = heard.as_deref() {
                return answer.clone();
            }
            // The task that asks is gone without an answer: the command ended, or it asked about another host alone.
            if self.call.lock().is_none() {
                break;
            }
        }
        let why = "the command ended, or went into the background, before it was decided";
        Err(refusal(&place, why.into(), None))
    }

    fn is_denied(&self, place: &Place) -> bool {
        let judged = self.verdicts(std::slice::from_ref(place)).pop();
        judged.is_none_or(|judged| judged.verdict == Verdict::Deny)
    }
}

fn refusal(place: &Place, why: String, operator: Option<String>) -> Refusal {
    Refusal::Judged {
        place: format!("{}:{}", place.host, place.port),
        why,
        operator,
    }
}

fn place_of(target: &Target, leads_to: Vec<IpAddr>) -> Place {
    Place {
        leads_to,
        ..Place::named(target.host().trim_end_matches('.'), target.port())
    }
}

/// Judges by what it shares with the command that it belongs to.
#[derive(Debug)]
pub(super) struct ByConnections(pub(super) Arc<Connections>);

impl ConnectionJudge for ByConnections {
    fn judge<'a>(&'a self, target: &'a Target, leads_to: &'a [IpAddr]) -> BoxFuture<'a, Answer> {
        let place = place_of(target, leads_to.to_vec());
        let listed = leads_to.is_empty() && self.0.proxy.lists(target);
        Box::pin(Arc::clone(&self.0).decide(place, listed))
    }

    fn opens_private(&self) -> bool {
        true
    }

    fn note_connected(&self, target: &Target, granted: &Granted) {
        let leads_to = match granted {
            Granted::Private(OpenAddresses::These(shown)) if target.address().is_none() => {
                shown.clone()
            }
            _ => Vec::new(),
        };
        let place = place_of(target, leads_to);
        let mut reached = self.0.reached.lock();
        if reached.len() < MOST {
            reached.insert(place.to_string());
        }
    }
}

/// Why a call let nothing be connected, for the model and for the operator.
fn refusal_of(outcome: Outcome) -> (String, Option<String>) {
    let status = outcome.status;
    match outcome.error {
        Some(error) => (error.message, outcome.operator),
        None => (status.as_str().to_owned(), None),
    }
}

/// Follows the clock of a command that ends by itself after `time`: its time stands still while someone decides.
pub(super) async fn keep_time(
    connections: Option<&Arc<Connections>>,
    running: &Running,
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
