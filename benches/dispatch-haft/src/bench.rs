//! A registry of a number of tools behind an executor, and the calls to it.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use haft::policy::{RuleSet, RuleText};
use haft::{Executor, Policy, RunLimits, Session, Tool, ToolCall, ToolRegistry};
use measure::{Row, Step, case, each};
use tokio::runtime::Runtime;

use crate::tools;

/// How the tools take their arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// As a JSON value.
    Value,
    /// As a type that declares its permission.
    Typed,
    /// As a type, from a closure.
    Closure,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Value, Self::Typed, Self::Closure];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Typed => "typed",
            Self::Closure => "closure",
        }
    }

    fn tool(self, n: usize) -> Arc<dyn Tool> {
        match self {
            Self::Value => tools::value(n),
            Self::Typed => tools::typed(n),
            Self::Closure => tools::closure(n),
        }
    }

    /// Returns a registry of `tools` tools of this kind.
    pub(crate) fn registry(self, tools: usize) -> Arc<ToolRegistry> {
        let registry = ToolRegistry::new();
        let all = (0..tools).map(|n| self.tool(n));
        registry.add_all(all).expect("distinct names");
        Arc::new(registry)
    }
}

/// Returns the policy of the measurements.
pub(crate) fn policy() -> Policy {
    Policy::workspace()
}

/// The same with rules as a user writes them; the matching one is checked last.
pub(crate) fn policy_with_rules() -> Policy {
    let texts = |rules: &[&str]| rules.iter().map(|&rule| RuleText::from(rule)).collect();
    let mut rules = RuleSet::default();
    rules.deny = texts(&[
        "Read(./.env)",
        "Read(secrets/**)",
        "Edit(.github/**)",
        "Bash(curl *)",
    ]);
    rules.ask = texts(&["Edit(Cargo.toml)", "Bash(git push *)"]);
    rules.allow = texts(&["Edit(src/**)", "Bash(cargo test *)", "Read(crates/**)"]);
    policy().with_rules(rules).expect("rules that can be read")
}

/// Returns a run that measurements never use up.
pub(crate) fn session(tools: &Arc<ToolRegistry>) -> Session {
    let limits = RunLimits {
        max_calls: u64::MAX,
        total_timeout: Duration::from_hours(100),
        ..RunLimits::default()
    };
    let view = Arc::clone(tools) as Arc<dyn haft::Toolset>;
    Session::builder(view)
        .with_limits(limits)
        .build()
        .expect("limits that make sense")
}

/// Tools of one kind, and their caller.
pub(crate) struct Bench {
    kind: Kind,
    tools: usize,
    executor: Executor,
    session: Session,
    names: Vec<String>,
}

impl Bench {
    pub(crate) fn new(kind: Kind, tools: usize) -> Self {
        Self::with(kind, tools, Executor::new(policy()))
    }

    /// The same with this executor.
    pub(crate) fn with(kind: Kind, tools: usize, executor: Executor) -> Self {
        let session = session(&kind.registry(tools));
        Self {
            kind,
            tools,
            executor,
            session,
            names: case::draws(tools),
        }
    }

    /// Calls each drawn name.
    pub(crate) async fn all(&self) {
        self.some(&self.names).await;
    }

    /// Returns the drawn names.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Calls each of these names.
    pub(crate) async fn some(&self, names: &[String]) {
        for name in names {
            let call = ToolCall::new(name.as_str(), case::ARGUMENTS);
            let outcome = self.executor.execute(&self.session, call).await;
            assert!(outcome.is_ok(), "{:?}", outcome.error);
            black_box(outcome.data.as_ref().map(|data| data.get()));
        }
    }

    /// Returns its series; `more` is appended to the name.
    pub(crate) fn step<'a>(&'a self, runtime: &'a Runtime, more: &str) -> Step<'a> {
        let name = format!("haft/{}/{}{more}", self.kind.name(), self.tools);
        let once = move || each(case::DRAWS, || runtime.block_on(self.all()));
        (Row::new(name, "ns"), Box::new(once))
    }
}
