//! Uninstall after install: every file of every program has its bytes back, and what was not there is not there again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use haft_hook::Agent;
use haft_setup::clients::{ClientProgram, InstallScope, Launch, install as client};
use haft_setup::edit::{jsonc, toml};
use haft_setup::environment::Environment;
use haft_setup::hook_settings::{self, HookEditOptions, HookLauncher, InstallEdit};
use haft_setup::problem::Problem;
use haft_setup::registration::{AgentFileContent, RegistrationScope};
use haft_setup::site::{SetupSite, StateFolder};
use serde_json::{Value, json};

/// Files with their bytes, and folders.
type Tree = BTreeMap<PathBuf, Option<Vec<u8>>>;

const LEVELS: [InstallScope; 2] = [InstallScope::User, InstallScope::Project];

/// JSON as files begin: `SERVERS` is the client's key for servers, `EVENT` an event of the agent.
const JSON: [&str; 26] = [
    "",
    "\n",
    "\u{feff}",
    "{}",
    "{}\n",
    "{ }",
    "{\n}\n",
    "{\r\n}\r\n",
    "\u{feff}{}",
    "\u{feff}{\r\n\t\"theme\": \"dark\"\r\n}\r\n",
    "// mine\n",
    "// mine\n{}\n",
    "{\n  // nothing yet\n}\n",
    "{ /* nothing */ }",
    "{\n  \"version\": 1\n}\n",
    "{\"version\":1}",
    "{\n  \"version\": 1,\n  \"hooks\": {}\n}\n",
    "{\"SERVERS\": {}}\n",
    "{\n  \"SERVERS\": {\n  }\n}",
    "{\n    \"SERVERS\": {\n        // none\n    },\n    \"hooks\": {\n    },\n}\n",
    "{\n  \"hooks\": {\n    \"EVENT\": []\n  }\n}\n",
    "{\"hooks\":{\"EVENT\":[ ]}}",
    "{\n\t\"EVENT\": [\n\t]\n}\n",
    "{\n  \"SERVERS\": {\n    \"docs\": {\"command\": \"x\", \"args\": []}, // docs\n  },\n}\n",
    "{ \"theme\": \"dark\" // mine\n}",
    "{\r\n  \"SERVERS\": {\r\n    \"docs\": {}\r\n  },\r\n  \"hooks\": {\"later\": 3}\r\n}",
];

const TOML: [&str; 14] = [
    "",
    "\n",
    "\u{feff}",
    "# mine",
    "# mine\n\n\n",
    "model = \"o\" # why",
    "model = \"o\"\n",
    "\u{feff}model = \"o\"\r\n\r\n[tui]\r\nx = 1\r\n",
    "[SERVERS]\n",
    "[SERVERS.docs]\ncommand = 'x'\n\n# the end\n",
    "[hooks]\n",
    "[[hooks.Stop]]\nhooks = []",
    "# mine\n[[hooks.EVENT]]\nmatcher = \"Bash\"\n[[hooks.EVENT.hooks]]\ntype = \"command\"\ncommand = \"lint\"\n\n",
    "[SERVERS.docs]\r\ncommand = 'x'\r\n[[hooks.Stop]]\r\nhooks = [\r\n]\r\n",
];

struct Lab {
    root: tempfile::TempDir,
    environment: Environment,
    work: PathBuf,
    state: PathBuf,
}

/// What a program lets haft edit.
#[derive(Clone, Copy)]
enum Edit {
    Server(&'static ClientProgram),
    Hooks(Agent),
}

impl fmt::Debug for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server(_) => "server",
            Self::Hooks(_) => "hooks",
        })
    }
}

impl Lab {
    fn new() -> Self {
        // Each edit is synced to its disk, and there are thousands.
        let memory = Path::new("/dev/shm");
        let root = match memory.is_dir() {
            true => tempfile::tempdir_in(memory).unwrap(),
            false => tempfile::tempdir().unwrap(),
        };
        let real = root.path().canonicalize().unwrap();
        for folder in ["work", "user"] {
            fs::create_dir(real.join(folder)).unwrap();
        }
        let user = real.join("user").display().to_string();
        Self {
            environment: Environment::from(&[("HOME", user.as_str())][..]),
            work: real.join("work"),
            state: real.join("state"),
            root,
        }
    }

    fn site(&self) -> SetupSite<'_> {
        SetupSite {
            environment: &self.environment,
            workspace: &self.work,
            home: StateFolder(&self.state),
        }
    }

    fn order(&self, agent: Agent, level: InstallScope) -> HookEditOptions<'_> {
        HookEditOptions {
            agent,
            level,
            site: self.site(),
            dry_run: false,
        }
    }

    fn install(
        &self,
        edit: Edit,
        word: &str,
        level: InstallScope,
    ) -> Result<Vec<InstallEdit>, Problem> {
        match edit {
            Edit::Server(program) => {
                let launch = Launch {
                    command: "/opt/haft".into(),
                    args: vec!["serve".into(), word.into()],
                };
                Ok(vec![client::install(
                    program,
                    level,
                    self.site(),
                    &launch,
                    false,
                )?])
            }
            Edit::Hooks(agent) => {
                let program = HookLauncher {
                    name: "/opt/haft".into(),
                    path: "/opt/haft".into(),
                    options: Vec::new(),
                };
                hook_settings::install(self.order(agent, level), &program)
            }
        }
    }

    fn uninstall(&self, edit: Edit, level: InstallScope) -> Result<Vec<InstallEdit>, Problem> {
        match edit {
            Edit::Server(program) => {
                Ok(vec![client::uninstall(program, level, self.site(), false)?])
            }
            Edit::Hooks(agent) => hook_settings::uninstall(self.order(agent, level)),
        }
    }

    /// Returns everything in the user's folders with its bytes, and the records that haft has of it.
    fn tree(&self) -> Tree {
        let mut found = self.user_tree();
        add(&self.state.join("settings"), &mut found);
        found
    }

    fn user_tree(&self) -> Tree {
        let mut found = Tree::new();
        let root = self.root.path().canonicalize().unwrap();
        for folder in ["work", "user"] {
            add(&root.join(folder), &mut found);
        }
        found
    }

    fn base(&self, level: InstallScope) -> PathBuf {
        match level {
            InstallScope::User => self.work.with_file_name("user"),
            InstallScope::Project => self.work.clone(),
        }
    }
}

fn add(folder: &Path, found: &mut Tree) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.insert(path.clone(), None);
            add(&path, found);
        } else {
            found.insert(path.clone(), Some(fs::read(&path).unwrap()));
        }
    }
}

/// A file of a program at a level, with the edits that may touch it.
struct Candidate {
    name: String,
    level: InstallScope,
    /// The file, relative to the user's folder or the project; `None` if all are missing.
    file: Option<PathBuf>,
    edits: Vec<Edit>,
    servers: &'static str,
    event: String,
}

impl Candidate {
    /// Returns the texts that the file may have before.
    fn texts(&self) -> Vec<Option<String>> {
        let Some(file) = &self.file else {
            return vec![None];
        };
        let texts: &[&str] = match file.extension().and_then(|end| end.to_str()) {
            Some("json" | "jsonc") => &JSON,
            Some("toml") => &TOML,
            end => panic!("{end:?}"),
        };
        let own = |text: &&str| {
            let text = text.replace("SERVERS", self.servers);
            Some(text.replace("EVENT", &self.event))
        };
        texts.iter().map(own).collect()
    }
}

/// Returns the candidates of all programs. An agent and a client of one program have the same name, but for Claude Code.
fn candidates() -> Vec<Candidate> {
    let mut names: Vec<&str> = ClientProgram::names();
    for agent in Agent::ALL {
        let name = if agent == Agent::Claude {
            "claude-code"
        } else {
            agent.name()
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    assert!(names.len() >= 15, "{names:?}");
    let mut all = Vec::new();
    for name in names {
        for level in LEVELS {
            all.extend(of_program(name, level));
        }
    }
    all
}

fn of_program(name: &str, level: InstallScope) -> Vec<Candidate> {
    let lab = Lab::new();
    let base = lab.base(level);
    let (mut edits, mut files, mut servers, mut event) =
        (Vec::new(), Vec::new(), "servers", "Stop".to_owned());
    if let Ok(program) = ClientProgram::find(name)
        && let Ok(file) = program.file(level, lab.site())
    {
        edits.push(Edit::Server(program));
        let key: serde_json::Value =
            serde_json::from_str(&program.snippet(&Launch::default())).unwrap_or_default();
        servers = match key
            .as_object()
            .and_then(|all| all.keys().next())
            .map(String::as_str)
        {
            Some("mcpServers") => "mcpServers",
            Some("context_servers") => "context_servers",
            Some("mcp") => "mcp",
            Some("servers") => "servers",
            _ => "mcp_servers",
        };
        files.push(file.strip_prefix(&base).unwrap().to_owned());
    }
    let agent = if name == "claude-code" {
        "claude"
    } else {
        name
    };
    if let Some(agent) = Agent::from_name(agent) {
        edits.push(Edit::Hooks(agent));
        let scope = match level {
            InstallScope::User => RegistrationScope::User,
            InstallScope::Project => RegistrationScope::Project,
        };
        let setup = hook_settings::registrations(agent, "haft");
        let places = setup.places.iter().filter(|place| place.scope == scope);
        for file in places.flat_map(|place| &place.files) {
            if let AgentFileContent::Shared { entries, .. } = &file.content {
                event = entries[0].event.to_owned();
            }
            let path = PathBuf::from(file.path);
            let is_edited = match &file.content {
                AgentFileContent::Shared { .. } => true,
                AgentFileContent::Own { text, .. } => text.contains("\"hooks\""),
            };
            if is_edited && !files.contains(&path) {
                files.push(path);
            }
        }
    }
    if edits.is_empty() {
        return Vec::new();
    }
    let files = files.into_iter().map(Some).chain([None]);
    let each = files.map(|file| Candidate {
        name: name.to_owned(),
        level,
        file,
        edits: edits.clone(),
        servers,
        event: event.clone(),
    });
    each.collect()
}

/// A step of a row.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Installs with this word in the launch of a server.
    Install(Edit, &'static str),
    Uninstall(Edit),
}

/// Returns the orders in which edits are made and undone: of each alone, and of two in any order.
fn orders(edits: &[Edit], is_shared: bool) -> Vec<Vec<Step>> {
    use Step::{Install, Uninstall};
    let singles = edits.iter().flat_map(|edit| {
        let once = vec![Install(*edit, "a"), Uninstall(*edit)];
        let twice = [&[Install(*edit, "a"), Install(*edit, "b")], &once[1..]].concat();
        [once, twice]
    });
    let mut orders: Vec<_> = singles.collect();
    let [one, other] = *edits else {
        return orders;
    };
    for (one, other) in [(one, other), (other, one)]
        .into_iter()
        .filter(|_| is_shared)
    {
        let both = [Install(one, "a"), Install(other, "a")];
        let again = [Install(one, "b")];
        let undone = [Uninstall(one), Uninstall(other)];
        let reversed = [Uninstall(other), Uninstall(one)];
        for undone in [undone, reversed] {
            orders.push([&both[..], &undone].concat());
            orders.push([&both[..], &again, &undone].concat());
        }
    }
    orders
}

/// Whether two edits may touch the same file.
fn is_shared(candidate: &Candidate, text: Option<&str>) -> bool {
    if candidate.edits.len() == 1 {
        return false;
    }
    let lab = Lab::new();
    write(&lab, candidate, text);
    let mut touched = Vec::new();
    for edit in &candidate.edits {
        let edits = lab.install(*edit, "a", candidate.level).unwrap_or_default();
        touched.push(edits.into_iter().map(|edit| edit.file).collect::<Vec<_>>());
    }
    matches!(&*touched, [one, other] if one.iter().any(|file| other.contains(file)))
}

fn write(lab: &Lab, candidate: &Candidate, text: Option<&str>) {
    if let (Some(file), Some(text)) = (&candidate.file, text) {
        let path = lab.base(candidate.level).join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Performs a row; returns what is wrong.
fn run(candidate: &Candidate, text: Option<&str>, steps: &[Step]) -> Vec<String> {
    let lab = Lab::new();
    write(&lab, candidate, text);
    let before = lab.tree();
    let at = format!(
        "{} {:?} {:?} {text:?}: {steps:?}",
        candidate.name, candidate.level, candidate.file
    );
    let mut wrong = Vec::new();
    // The files below each edit that is not undone yet; `None` if that was made anew.
    let mut below: Vec<(String, Option<Tree>)> = Vec::new();
    for step in steps {
        let now = lab.user_tree();
        match step {
            Step::Install(edit, word) => {
                let done = lab.install(*edit, word, candidate.level);
                wrong.extend(done.err().map(|refused| format!("{at}: {refused}")));
                let name = format!("{edit:?}");
                match below.iter().position(|(other, _)| *other == name) {
                    None => below.push((name, Some(now))),
                    Some(nth) if nth + 1 == below.len() => {}
                    Some(nth) => below[nth..].iter_mut().for_each(|(_, tree)| *tree = None),
                }
            }
            Step::Uninstall(edit) => {
                lab.uninstall(*edit, candidate.level).unwrap();
                let name = format!("{edit:?}");
                let nth = below.iter().position(|(other, _)| *other == name).unwrap();
                let is_last = nth + 1 == below.len();
                if let (_, Some(tree)) = below.remove(nth)
                    && is_last
                    && lab.user_tree() != tree
                {
                    wrong.push(format!("{at}: {:?}", changes(&tree, &lab.user_tree())));
                }
                below[nth..].iter_mut().for_each(|(_, tree)| *tree = None);
            }
        }
    }
    if lab.tree() != before {
        wrong.push(format!("{at}: {:?}", changes(&before, &lab.tree())));
    }
    wrong
}

#[test]
fn every_file_of_every_program_has_its_bytes_back_in_any_order() {
    let (mut wrong, mut done, mut shared) = (Vec::new(), 0, 0);
    for candidate in candidates() {
        for text in candidate.texts() {
            let is_shared = is_shared(&candidate, text.as_deref());
            for steps in orders(&candidate.edits, is_shared) {
                wrong.extend(run(&candidate, text.as_deref(), &steps));
                done += 1;
            }
            shared += usize::from(is_shared);
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {done}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(done > 2_000 && shared >= 60, "{done} {shared}");
}

/// Reads a text of a file by its format.
fn parse(file: &Path, text: &str) -> Value {
    if file.extension().is_some_and(|end| end == "toml") {
        return serde_json::to_value(toml::parse(text).unwrap()).unwrap();
    }
    jsonc::read(text).unwrap()
}

/// Adds a member of the user's to a text that has others.
fn add_member(file: &Path, text: &str) -> String {
    if file.extension().is_some_and(|end| end == "toml") {
        let plain = text.trim_start_matches('\u{feff}');
        return format!("mine = [1]\n{plain}");
    }
    text.replacen('{', "{\"mine\": [1],", 1)
}

#[test]
fn what_a_user_adds_in_between_stays_and_nothing_of_haft_does() {
    let (mut wrong, mut done) = (Vec::new(), 0);
    for candidate in candidates() {
        let Some(name) = &candidate.file else {
            continue;
        };
        for text in candidate.texts() {
            let is_shared = is_shared(&candidate, text.as_deref());
            let orders = orders(&candidate.edits, is_shared);
            for steps in orders.into_iter().filter(|steps| steps.len() != 3) {
                let lab = Lab::new();
                write(&lab, &candidate, text.as_deref());
                let file = lab.base(candidate.level).join(name);
                let before = text.as_deref().unwrap_or_default();
                let mut is_changed = false;
                for step in &steps {
                    match step {
                        Step::Install(edit, word) => {
                            lab.install(*edit, word, candidate.level).unwrap();
                        }
                        Step::Uninstall(edit) => {
                            let now = fs::read_to_string(&file).unwrap_or_default();
                            if !is_changed && now != before {
                                fs::write(&file, add_member(&file, &now)).unwrap();
                                is_changed = true;
                            }
                            lab.uninstall(*edit, candidate.level).unwrap();
                        }
                    }
                }
                if !is_changed {
                    continue;
                }
                done += 1;
                let left = fs::read_to_string(&file).unwrap_or_default();
                let mut expected = parse(&file, before);
                expected["mine"] = json!([1]);
                let mut now = parse(&file, &left);
                // A version that haft added may be needed by what the user added.
                if expected.get("version").is_none() {
                    now.as_object_mut().unwrap().remove("version");
                }
                if now != expected {
                    let level = candidate.level;
                    wrong.push(format!("{name:?} {level:?} {text:?} {steps:?}: {left}"));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {done}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(done > 600, "{done}");
}

/// Returns what differs, as text.
fn changes(before: &Tree, after: &Tree) -> Vec<(PathBuf, Option<String>)> {
    let changed = after
        .iter()
        .filter(|(path, bytes)| before.get(*path) != Some(bytes));
    let text = |bytes: &Option<Vec<u8>>| {
        let bytes = bytes.as_ref();
        bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    changed
        .map(|(path, bytes)| (path.clone(), text(bytes)))
        .collect()
}
