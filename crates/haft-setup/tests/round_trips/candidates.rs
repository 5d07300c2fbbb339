//! The files of all programs, and the texts that they may have before haft edits them.

use std::fs;
use std::path::PathBuf;

use haft_hook::Agent;
use haft_setup::clients::{ClientProgram, InstallScope, Launch};
use haft_setup::hook_settings;
use haft_setup::registration::{AgentFileContent, RegistrationScope};

use crate::lab::{Edit, Lab};

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

/// A file of a program at a level, with the edits that may touch it.
#[derive(Clone)]
pub(crate) struct Candidate {
    pub(crate) name: String,
    pub(crate) level: InstallScope,
    /// The file, relative to the user's folder or the project; `None` if all are missing.
    pub(crate) file: Option<PathBuf>,
    pub(crate) edits: Vec<Edit>,
    pub(crate) servers: &'static str,
    pub(crate) event: String,
}

impl Candidate {
    /// Writes the file, unless it is to be missing.
    pub(crate) fn write(&self, lab: &Lab, text: Option<&str>) {
        if let (Some(file), Some(text)) = (&self.file, text) {
            let path = lab.base(self.level).join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    /// Returns the texts that the file may have before.
    pub(crate) fn texts(&self) -> Vec<Option<String>> {
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
pub(crate) fn candidates() -> Vec<Candidate> {
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

/// Returns the candidates of a program at a level: one for each of its files, and one without any.
fn of_program(name: &str, level: InstallScope) -> Vec<Candidate> {
    let mut all = Candidate {
        name: name.to_owned(),
        level,
        file: None,
        edits: Vec::new(),
        servers: "servers",
        event: "Stop".to_owned(),
    };
    let mut files = Vec::new();
    files.extend(all.add_servers());
    for file in all.add_hooks() {
        if !files.contains(&file) {
            files.push(file);
        }
    }
    if all.edits.is_empty() {
        return Vec::new();
    }
    let each = files.into_iter().map(|file| Candidate {
        file: Some(file),
        ..all.clone()
    });
    let mut each: Vec<Candidate> = each.collect();
    each.push(all);
    each
}

impl Candidate {
    /// Adds the program's servers; returns their file.
    fn add_servers(&mut self) -> Option<PathBuf> {
        let lab = Lab::new();
        let program = ClientProgram::find(&self.name).ok()?;
        let file = program.file(self.level, lab.site()).ok()?;
        self.edits.push(Edit::Server(program));
        let snippet = program.snippet(&Launch::default());
        let key = ["mcpServers", "context_servers", "mcp_servers", "servers"];
        let key = key.into_iter().find(|key| snippet.contains(key));
        self.servers = key.unwrap_or("mcp");
        Some(file.strip_prefix(lab.base(self.level)).unwrap().to_owned())
    }

    /// Adds the hooks of the agent with the program's name; returns the files that haft edits.
    fn add_hooks(&mut self) -> Vec<PathBuf> {
        let agent = match &*self.name {
            "claude-code" => "claude",
            name => name,
        };
        let Some(agent) = Agent::from_name(agent) else {
            return Vec::new();
        };
        self.edits.push(Edit::Hooks(agent));
        let scope = match self.level {
            InstallScope::User => RegistrationScope::User,
            InstallScope::Project => RegistrationScope::Project,
        };
        let setup = hook_settings::registrations(agent, "haft");
        let places = setup.places.iter().filter(|place| place.scope == scope);
        let mut files = Vec::new();
        for file in places.flat_map(|place| &place.files) {
            let is_edited = match &file.content {
                AgentFileContent::Shared { entries, .. } => {
                    entries[0].event.clone_into(&mut self.event);
                    true
                }
                AgentFileContent::Own { text, .. } => text.contains("\"hooks\""),
            };
            if is_edited {
                files.push(PathBuf::from(file.path));
            }
        }
        files
    }
}
