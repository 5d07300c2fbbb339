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
pub(crate) struct Asked {
    /// About what belongs to the task.
    pub(crate) of_task: usize,
    /// About what strangers ordered.
    pub(crate) of_orders: usize,
    /// Of all, those that a guard raised.
    pub(crate) by_guard: usize,
}

/// What the person knows and does.
#[derive(Debug, Default)]
struct Desk {
    asked: Asked,
    reasons: Vec<String>,
    operator: Option<Operator>,
}

/// The person.
pub(crate) struct Person {
    desk: Arc<Mutex<Desk>>,
    is_ordered: Arc<AtomicBool>,
    is_done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Person {
    /// Sits down at a console.
    pub(crate) fn start(session_grants: bool) -> Self {
        let person = Self {
            desk: Arc::default(),
            is_ordered: Arc::default(),
            is_done: Arc::default(),
            thread: None,
        };
        let (desk, is_ordered, is_done) = (
            Arc::clone(&person.desk),
            Arc::clone(&person.is_ordered),
            Arc::clone(&person.is_done),
        );
        let thread = thread::spawn(move || {
            while !is_done.load(Ordering::Relaxed) {
                let mut at = desk.lock().expect("no thread panics with it");
                let _ = at.decide_all(is_ordered.load(Ordering::Relaxed), session_grants);
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

    /// Says whose step the next is.
    pub(crate) fn expect(&self, is_ordered: bool) {
        self.is_ordered.store(is_ordered, Ordering::Relaxed);
    }

    /// Leaves, and says what was asked, and why.
    pub(crate) fn leave(mut self) -> (Asked, Vec<String>) {
        self.is_done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let desk = self.desk.lock().expect("no thread panics with it");
        (desk.asked, desk.reasons.clone())
    }
}

impl Desk {
    fn decide_all(&mut self, is_ordered: bool, session_grants: bool) -> io::Result<()> {
        let Some(operator) = self.operator.clone() else {
            return Ok(());
        };
        let pending = operator.ask("GET /api/v1/approvals", "")?;
        for item in pending.as_array().into_iter().flatten() {
            let id = item["id"].as_str().unwrap_or_default();
            let whole = operator.ask(&format!("GET /api/v1/approvals/{id}"), "")?;
            let is_guards = is_of_guard(&whole);
            let path = format!("POST /api/v1/approvals/{id}");
            let decided = if is_ordered {
                operator.ask(&format!("{path}/deny"), "{}")?
            } else {
                approve(&operator, &path, session_grants)?
            };
            if decided["status"].is_null() {
                continue;
            }
            self.asked.by_guard += usize::from(is_guards);
            self.asked.of_orders += usize::from(is_ordered);
            self.asked.of_task += usize::from(!is_ordered);
            let word = if is_ordered { "denied" } else { "approved" };
            let reason = whole["reason"].as_str().unwrap_or_default();
            self.reasons.push(format!("{word}: {reason} [{}]", whole["rule"]));
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
        || request["rule"].as_str().is_some_and(|rule| rule.starts_with("guard "))
}
