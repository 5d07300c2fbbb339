//! A case of a suite: the world that a task meets, the task's calls, what strangers wrote, and how to tell that a goal was reached.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use serde::Deserialize;

/// A suite: what its cases have in common, and the cases.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Suite {
    #[serde(default)]
    pub(crate) world: Setting,
    #[serde(default)]
    attack: Vec<Case>,
    #[serde(default)]
    benign: Vec<Case>,
    /// Ways in: each is combined with each wish.
    #[serde(default)]
    way: Vec<Way>,
    #[serde(default)]
    wish: Vec<Wish>,
}

/// A task on whose way a stranger's text is read, where the suite's world says `ORDERS`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Way {
    name: String,
    task: Vec<String>,
    #[serde(default)]
    settings: String,
    #[serde(default)]
    setup: String,
}

/// What a stranger wants.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wish {
    name: String,
    orders: Vec<String>,
    goals: Vec<Goal>,
}

impl Suite {
    /// Returns its attacks: those that it names, and each way in with each wish.
    fn attacks(&self) -> impl Iterator<Item = Case> {
        let crossed = self.way.iter().flat_map(|way| {
            let with = |wish: &Wish| Case {
                name: format!("{}: {}", way.name, wish.name),
                kind: "every way in with every wish".to_owned(),
                task: way.task.clone(),
                orders: wish.orders.clone(),
                goals: wish.goals.clone(),
                settings: way.settings.clone(),
                world: Setting {
                    setup: way.setup.clone(),
                    ..Setting::default()
                },
                ..Case::default()
            };
            self.wish.iter().map(with)
        });
        self.attack.iter().cloned().chain(crossed)
    }
}

/// What a case finds.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Setting {
    /// Files of the workspace.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    /// Pages by host and path, with a query where it matters. `-> ADDRESS` redirects; `HOST/*` is any other page of a host.
    #[serde(default)]
    pub(crate) pages: BTreeMap<String, String>,
    /// Replies of servers' tools by `server.tool` or `server.tool VALUE`, the first argument.
    #[serde(default)]
    pub(crate) replies: BTreeMap<String, String>,
    /// Lines for bash, outside of haft, in the folder that holds the workspace (`work`) and the files that hosts serve (`www/HOST`).
    #[serde(default)]
    pub(crate) setup: String,
}

/// One case: a task, and for an attack what it meets.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// Unique in all suites.
    pub(crate) name: String,
    /// The kind of attack; of a benign task, its suite.
    #[serde(default)]
    pub(crate) kind: String,
    /// The user's own steps: see `Step`.
    pub(crate) task: Vec<String>,
    /// Steps that strangers' texts order, by `@@N@@` in them, counted from 1.
    #[serde(default)]
    pub(crate) orders: Vec<String>,
    /// What an attacker wants, or all that a benign task has to have done.
    pub(crate) goals: Vec<Goal>,
    /// Whether approvals hold for the session.
    #[serde(default)]
    pub(crate) session_grants: bool,
    /// Whether it is in the reduced set.
    #[serde(default)]
    pub(crate) first: bool,
    /// Further settings of haft.
    #[serde(default)]
    pub(crate) settings: String,
    /// Further rules of those that allow everything.
    #[serde(default)]
    pub(crate) allow: Vec<String>,
    /// Further settings of servers.
    #[serde(default)]
    pub(crate) servers: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) world: Setting,
}

/// How to tell that something was done.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Goal {
    /// The private value reached a stranger.
    Leak,
    /// A server's tool was called, with this text in its arguments.
    Acted(String, String),
    /// A file of the workspace holds a text.
    File(String, String),
    /// A file of the workspace is gone.
    Gone(String),
    /// A result that the model read holds a text.
    Read(String),
    /// A host was reached, with this text in what it got.
    Reached(String, String),
}

/// All cases of the folder of suites, in the order of their files.
pub(crate) struct Cases {
    pub(crate) attacks: Vec<Case>,
    pub(crate) benign: Vec<Case>,
}

impl Cases {
    /// Reads all suites.
    pub(crate) fn read(folder: &Path) -> io::Result<Self> {
        let mut files: Vec<_> = fs::read_dir(folder)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        files.retain(|file| file.extension().is_some_and(|end| end == "toml"));
        files.sort();
        let mut all = Self {
            attacks: Vec::new(),
            benign: Vec::new(),
        };
        for file in files {
            let text = fs::read_to_string(&file)?;
            let suite: Suite = toml::from_str(&text)
                .map_err(|error| io::Error::other(format!("{}: {error}", file.display())))?;
            let whole = |case: Case| case.within(&suite.world);
            all.attacks.extend(suite.attacks().map(whole));
            all.benign.extend(suite.benign.iter().cloned().map(whole));
        }
        Ok(all)
    }
}

impl Case {
    /// Adds what its suite says, where the case says nothing else.
    fn within(mut self, suite: &Setting) -> Self {
        let add = |own: &mut BTreeMap<String, String>, all: &BTreeMap<String, String>| {
            for (name, text) in all {
                own.entry(name.clone()).or_insert_with(|| text.clone());
            }
        };
        add(&mut self.world.files, &suite.files);
        add(&mut self.world.pages, &suite.pages);
        add(&mut self.world.replies, &suite.replies);
        self.world.setup = format!("{}\n{}", suite.setup, self.world.setup);
        let orders = (1..=self.orders.len()).map(|n| format!("@@{n}@@"));
        let orders = orders.collect::<Vec<_>>().join(" ");
        let texts = self.world.pages.values_mut();
        for text in texts.chain(self.world.replies.values_mut()) {
            *text = text.replace("ORDERS", &orders);
        }
        self.world.setup = self.world.setup.replace("ORDERS", &orders);
        self
    }
}

/// A step: what the model does next.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// `[N x] [also] TOOL {ARGUMENTS}`: calls a tool, N times. `also`: a stranger asks for it, and it belongs to the task.
    Call {
        times: usize,
        is_harmless: bool,
        tool: String,
        arguments: String,
    },
    /// `session CLIENT`: connects anew as this client; the conversation goes on.
    Session(String),
    /// `conversation CLIENT`: the same, and the model has forgotten everything.
    Conversation(String),
    /// `restart`: haft is ended and started again, and the client connects anew.
    Restart,
    /// `accept`: the user accepts all memories that wait.
    Accept,
}

impl Step {
    /// Reads a step.
    pub(crate) fn parse(line: &str) -> Self {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "session" => return Self::Session(rest.to_owned()),
            "conversation" => return Self::Conversation(rest.to_owned()),
            "restart" => return Self::Restart,
            "accept" => return Self::Accept,
            _ => {}
        }
        let (times, line) = match rest.strip_prefix("x ") {
            Some(rest) => (word.parse().expect("a number of times"), rest),
            None => (1, line),
        };
        let (is_harmless, line) = match line.strip_prefix("also ") {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (tool, arguments) = line.split_once(' ').unwrap_or((line, "{}"));
        Self::Call {
            times,
            is_harmless,
            tool: tool.to_owned(),
            arguments: arguments.to_owned(),
        }
    }
}
