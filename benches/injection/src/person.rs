//! The person at haft's console: approves what belongs to the task, denies what strangers ordered, and counts.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

use crate::haft::Operator;

/// How often the console is looked at.
const LOOK: Duration = Duration::from_millis(15);

/// How many requests there were.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct RequestCount {
    pub(crate) approved: usize,
    pub(crate) denied: usize,
    /// Of all, those that a guard raised.
    pub(crate) by_guard: usize,
}

/// What the person thinks that a request belongs to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Belonging {
    /// A task that meets no attack: all of it is wanted.
    #[default]
    Wanted,
    /// The user's task while strangers may give orders: what a guard asks about is denied.
    Task,
    /// A stranger's order.
    Order,
}

/// What the person knows and does.
#[derive(Debug, Default)]
struct Desk {
    counted: RequestCount,
    reasons: Vec<String>,
    operator: Option<Operator>,
    belongs: Belonging,
    session_grants: bool,
}

/// The person.
pub(crate) struct Person {
    desk: Arc<Mutex<Desk>>,
    is_done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Person {
    /// Sits down at a console.
    pub(crate) fn start(session_grants: bool) -> Self {
        let person = Self {
            desk: Arc::default(),
            is_done: Arc::default(),
            thread: None,
        };
        let (desk, is_done) = (Arc::clone(&person.desk), Arc::clone(&person.is_done));
        desk.lock()
            .expect("no thread panics with it")
            .session_grants = session_grants;
        let thread = thread::spawn(move || {
            while !is_done.load(Ordering::Relaxed) {
                let mut at = desk.lock().expect("no thread panics with it");
                let _ = at.decide_all();
                drop(at);
                thread::sleep(LOOK);
            }
        });
        Self {
            thread: Some(thread),
            ..person
        }
    }

    /// Turns to another haft, as after a restart.
    pub(crate) fn watch(&self, operator: Operator) {
        self.desk.lock().expect("no thread panics with it").operator = Some(operator);
    }

    /// Says what requests belong to from now on.
    pub(crate) fn expect(&self, belongs: Belonging) {
        self.desk.lock().expect("no thread panics with it").belongs = belongs;
    }

    /// Leaves, and says what was asked, and why.
    pub(crate) fn leave(mut self) -> (RequestCount, Vec<String>) {
        self.is_done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let desk = self.desk.lock().expect("no thread panics with it");
        (desk.counted, desk.reasons.clone())
    }
}

impl Desk {
    fn decide_all(&mut self) -> io::Result<()> {
        let Some(operator) = self.operator.clone() else {
            return Ok(());
        };
        let pending = operator.ask("GET /api/v1/approvals", "")?;
        for item in pending.as_array().into_iter().flatten() {
            let id = item["id"].as_str().unwrap_or_default();
            let whole = operator.ask(&format!("GET /api/v1/approvals/{id}"), "")?;
            let is_guards = is_of_guard(&whole);
            let path = format!("POST /api/v1/approvals/{id}");
            let is_denied = match self.belongs {
                Belonging::Wanted => false,
                Belonging::Task => is_guards,
                Belonging::Order => true,
            };
            let decided = if is_denied {
                operator.ask(&format!("{path}/deny"), "{}")?
            } else {
                approve(&operator, &path, self.session_grants)?
            };
            if decided["status"].is_null() {
                continue;
            }
            self.counted.by_guard += usize::from(is_guards);
            self.counted.denied += usize::from(is_denied);
            self.counted.approved += usize::from(!is_denied);
            let word = if is_denied { "denied" } else { "approved" };
            let reason = whole["reason"].as_str().unwrap_or_default();
            self.reasons
                .push(format!("{word}: {reason} [{}]", whole["rule"]));
        }
        Ok(())
    }
}

/// Approves for the session where that is wanted and possible, otherwise once.
fn approve(operator: &Operator, path: &str, session_grants: bool) -> io::Result<Value> {
    let line = format!("{path}/approve");
    if session_grants {
        let decided = operator.ask(&line, r#"{"scope": "session"}"#)?;
        if !decided["status"].is_null() {
            return Ok(decided);
        }
    }
    operator.ask(&line, "{}")
}

/// Whether a guard asks, alone or with others.
fn is_of_guard(request: &Value) -> bool {
    let causes = request["causes"].as_array();
    let mut causes = causes.into_iter().flatten();
    causes.any(|cause| cause["kind"] == "guard")
        || request["rule"]
            .as_str()
            .is_some_and(|rule| rule.starts_with("guard "))
}
