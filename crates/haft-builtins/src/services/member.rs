//! `Membership`: one command in its group: what it serves is made known, and what the others serve leads to them.

use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use haft::clock;
use haft_sandbox::{CommandStopper, JailLoopback, RunningCommand};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use crate::services::ServiceLabel;
use crate::services::group::{GroupMember, PortTarget, ServiceGroup};
use crate::services::record::{RecordFile, ServiceRecord};
use crate::services::relay::Relay;
use crate::work::blocking;

/// How often haft looks what a command serves, and whether others serve something new.
const LOOK: Duration = Duration::from_millis(100);
/// The part of the time that looking may take, where a command listens at very many ports: one in this many.
const SHARE: u32 = 20;
/// How long a port that is taken in a member is not tried again.
const RETRY: Duration = Duration::from_secs(2);
/// Maximum length of a command line in a record, in characters.
const MAX_COMMAND: usize = 200;

/// One command of a group, in the process that started it.
#[derive(Debug)]
pub(super) struct Member {
    group: Arc<ServiceGroup>,
    loopback: Arc<JailLoopback>,
    background: bool,
    published: Mutex<Published>,
    /// What leads to other members, by port.
    relays: Mutex<BTreeMap<u16, Relay>>,
    taken: Mutex<HashMap<u16, Instant>>,
    /// Whether it is known which of what listens there is haft itself.
    ready: AtomicBool,
}

#[derive(Debug)]
struct Published {
    record: ServiceRecord,
    file: RecordFile,
}

/// Keeps a command in its group until dropped, or until the command has ended.
#[derive(Debug)]
pub(crate) struct Membership {
    member: Arc<Member>,
    task: AbortHandle,
}

impl Membership {
    /// Makes a command a member; `None` if its loopback cannot be shared here.
    pub(super) fn begin(
        group: &Arc<ServiceGroup>,
        running: &RunningCommand,
        label: ServiceLabel,
    ) -> Option<Self> {
        let loopback = Arc::clone(running.loopback()?);
        let began = clock::now() / 1_000_000_000;
        let record = ServiceRecord {
            run: label.run,
            command: label.command.chars().take(MAX_COMMAND).collect(),
            task: None,
            began: i64::try_from(began).unwrap_or_default(),
            place: loopback.place().to_string(),
            group: String::new(),
            ports: Vec::new(),
            more_ports: 0,
        };
        let file = RecordFile::new(group.folder(), loopback.place());
        let member = Arc::new(Member {
            group: Arc::clone(group),
            loopback,
            background: label.background,
            published: Mutex::new(Published { record, file }),
            relays: Mutex::default(),
            taken: Mutex::default(),
            ready: AtomicBool::new(false),
        });
        let weak: Weak<Member> = Arc::downgrade(&member);
        group.add(weak);
        let task = tokio::spawn(serve(Arc::clone(&member), running.stopper()));
        Some(Self {
            member,
            task: task.abort_handle(),
        })
    }

    /// Names the command among the background commands of its run. Blocks.
    pub(crate) fn set_task(&self, task: &str) {
        self.member.published.lock().record.task = Some(task.to_owned());
        self.member.write();
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.task.abort();
        self.member.end();
    }
}

/// Keeps up with the group until the command has ended.
async fn serve(member: Arc<Member>, stopper: CommandStopper) {
    let follow = async {
        member.begin().await;
        let mut pause = if member.background {
            Duration::ZERO
        } else {
            LOOK
        };
        loop {
            tokio::time::sleep(pause).await;
            let began = Instant::now();
            if member.look().await.is_err() {
                stopper.kill();
                return;
            }
            pause = LOOK.max(began.elapsed() * SHARE);
        }
    };
    tokio::select! {
        () = stopper.ended() => {}
        () = follow => stopper.ended().await,
    }
    member.end();
}

/// The record was removed: a person ends the command.
struct Stopped;

impl GroupMember for Member {
    fn publish(&self) {
        if !self.ready.load(Ordering::Acquire) {
            return;
        }
        let Ok(mut ports) = self.loopback.listening() else {
            return;
        };
        let relays = self.relays.lock();
        ports.retain(|port| !relays.contains_key(&port.port));
        drop(relays);
        let mut published = self.published.lock();
        let changed = published.record.set_ports(&ports);
        let first = self.background && !published.file.is_written();
        if changed || first {
            published.write();
        }
    }
}

impl Member {
    fn write(&self) {
        self.published.lock().write();
    }

    /// Takes the listeners that haft has had there from the start.
    async fn begin(&self) {
        let listeners = self.loopback.take_listeners();
        let mut at_port: BTreeMap<u16, Vec<TcpListener>> = BTreeMap::new();
        for listener in listeners {
            let Ok(at) = listener.local_addr() else {
                continue;
            };
            let made = listener.set_nonblocking(true);
            if let Ok(listener) = made.and_then(|()| TcpListener::from_std(listener)) {
                at_port.entry(at.port()).or_default().push(listener);
            }
        }
        if !at_port.is_empty() {
            let targets = self.targets().await;
            let mut relays = self.relays.lock();
            for (port, listeners) in at_port {
                if let Some(target) = targets.get(&port) {
                    relays.insert(port, Relay::start(&self.group, listeners, *target));
                }
            }
        }
        self.ready.store(true, Ordering::Release);
    }

    /// Looks once.
    async fn look(self: &Arc<Self>) -> Result<(), Stopped> {
        let this = Arc::clone(self);
        let removed = blocking(move |_| {
            if this.published.lock().file.was_removed() {
                return Ok(true);
            }
            this.publish();
            Ok(false)
        });
        if removed.await.unwrap_or(false) {
            return Err(Stopped);
        }
        let targets = self.targets().await;
        self.drop_relays(&targets);
        for (port, target) in targets {
            if !self.has(port) {
                self.relay(port, target).await;
            }
        }
        Ok(())
    }

    async fn targets(&self) -> BTreeMap<u16, PortTarget> {
        let (group, own) = (Arc::clone(&self.group), self.loopback.place());
        let targets = blocking(move |_| Ok(group.targets(Some(own)))).await;
        targets.unwrap_or_default()
    }

    /// Drops what leads nowhere any more, or elsewhere.
    fn drop_relays(&self, targets: &BTreeMap<u16, PortTarget>) {
        let mut relays = self.relays.lock();
        relays.retain(|port, relay| {
            let target = targets.get(port);
            target.is_some_and(|target| target.jail == relay.target().jail)
        });
    }

    /// Returns whether a port is led already, served by the command itself, or was taken a moment ago.
    fn has(&self, port: u16) -> bool {
        if self.relays.lock().contains_key(&port) || self.published.lock().record.serves(port) {
            return true;
        }
        let mut taken = self.taken.lock();
        taken.retain(|_, since| since.elapsed() < RETRY);
        taken.contains_key(&port)
    }

    async fn relay(&self, port: u16, target: PortTarget) {
        let mut listeners = Vec::new();
        if let Ok(cell) = self.group.door(self.loopback.place()).await
            && let Some(door) = cell.get()
        {
            // Noted before: what haft listens at is nothing that the command serves.
            self.relays.lock().insert(port, Relay::reserve(target));
            for host in [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
                listeners.extend(door.listen(SocketAddr::new(host, port)).await);
            }
        }
        let mut relays = self.relays.lock();
        if listeners.is_empty() {
            relays.remove(&port);
            self.taken.lock().insert(port, Instant::now());
        } else {
            relays.insert(port, Relay::start(&self.group, listeners, target));
        }
    }

    /// Leaves the group.
    fn end(&self) {
        self.relays.lock().clear();
        self.published.lock().file.remove();
        self.group.close_door(self.loopback.place());
    }
}

impl Published {
    fn write(&mut self) {
        if let Err(error) = self.file.write(&self.record) {
            tracing::warn!(%error, "note what a command serves");
        }
    }
}
