//! The table of settings: each key's type, default, meaning, and what an untrusted folder may do with it, in one place.

use Kind::{Amount, Anything, Choice, Flag, Items, Map, Rules, Seconds, Text, Whole};
use Untrusted::{Adds, Ignored, Only, Stricter};

/// A known key.
#[derive(Debug)]
pub struct Key {
    /// Its dotted path; `*` stands for a user-defined name, `**` at the end for any depth.
    pub path: &'static str,
    /// The values that it takes.
    pub kind: Kind,
    /// The built-in value as TOML; empty if there is none.
    pub default: &'static str,
    /// A one-line description for the user.
    pub doc: &'static str,
    /// What an untrusted folder may do with it.
    pub untrusted: Untrusted,
}

/// The values that a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Flag,
    /// A whole number that is at least this.
    Whole(i64),
    /// A time in seconds above zero; fractions are allowed.
    Seconds,
    /// A number that is at least zero; fractions are allowed.
    Amount,
    /// Any text.
    Text,
    /// One of these words, loosest first if the order matters.
    Choice(&'static [&'static str]),
    /// A list of texts; the lists of all layers are combined.
    Items,
    /// A list of rules: texts, or tables with `rule`, `match`, `no_match`, `reason`; the lists of all layers are combined.
    Rules,
    /// A table of texts.
    Map,
    /// Any value that the component it belongs to understands.
    Anything,
}

/// What an untrusted folder may do with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untrusted {
    /// Nothing.
    Ignored,
    /// Add to the list.
    Adds,
    /// Set this value, written as TOML.
    Only(&'static str),
    /// Lower a number, or choose a later one of the choices.
    Stricter,
}

const fn key(
    path: &'static str,
    kind: Kind,
    default: &'static str,
    untrusted: Untrusted,
    doc: &'static str,
) -> Key {
    Key {
        path,
        kind,
        default,
        doc,
        untrusted,
    }
}

/// The profiles, loosest first.
pub const PROFILES: &[&str] = &["trusted", "workspace", "read-only"];

/// The required strengths of a sandbox, weakest first: docs/guide/files-and-commands.md, "What each strength holds".
const STRENGTHS: &[&str] = &["none", "landlock+seccomp", "no-proc", "full"];

/// All keys, in the order in which `config show` prints them.
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    key("policy.profile", Choice(PROFILES), "\"workspace\"", Stricter, "the verdict where no rule matches"),
    key("policy.allow", Rules, "", Ignored, "rules for calls that may run"),
    key("policy.ask", Rules, "", Adds, "rules for calls that need approval"),
    key("policy.deny", Rules, "", Adds, "rules for calls that never run; final in any layer"),
    key("policy.on_approval_timeout", Choice(&["suspend", "deny"]), "", Ignored, "what becomes of a call that was not decided in time"),
    key("policy.commands", Choice(&["copy", "ask"]), "\"copy\"", Stricter, "when the profile `workspace` asks about a command: about what it changed, after it ran on a copy, or before it runs"),
    key("policy.ignored_changes", Choice(&["apply", "ask"]), "\"apply\"", Stricter, "what becomes of a command's changes to files that git ignores"),
    key("policy.on_partial", Choice(&["apply", "discard"]), "\"apply\"", Stricter, "what becomes of a command's other changes when some must not be applied"),
    key("policy.secret_files", Choice(&["allow", "ask", "deny"]), "\"ask\"", Stricter, "what becomes of calls on files that hold secrets by their names: they are files like others, they are asked about and commands do not see them, or no call touches them"),
    key("policy.untrusted_content", Choice(&["off", "ask", "deny"]), "\"ask\"", Stricter, "what becomes of calls that could carry something out of a run that has read what strangers may have written (pages, servers' answers), even where a rule allows them: nothing, they are asked about with the source, or they are denied"),
    key("policy.secret_names", Items, "", Ignored, "more names of such files, added to the built-in ones: `*.token`, `tokens/`; with `!` in front a name is taken out"),
    key("budgets.run.deletions", Whole(0), "", Ignored, "files, links and folders that the calls of a run take away before a person is asked about each further call; 0 or nothing: no budget"),
    key("budgets.run.sends", Whole(0), "", Ignored, "connections and calls of tools of the open world in a run before a person is asked; 0 or nothing: no budget"),
    key("budgets.run.commands", Whole(0), "", Ignored, "commands in a run before a person is asked; 0 or nothing: no budget"),
    key("budgets.run.money", Amount, "", Ignored, "money that the model of a run of the agent costs before a person is asked whether to go on, in the currency of the prices; 0 or nothing: no budget"),
    key("budgets.day.deletions", Whole(0), "", Ignored, "the same as budgets.run.deletions for a day in UTC, in all runs of this state folder"),
    key("budgets.day.sends", Whole(0), "", Ignored, "the same as budgets.run.sends for a day in UTC, in all runs of this state folder"),
    key("budgets.day.commands", Whole(0), "", Ignored, "the same as budgets.run.commands for a day in UTC, in all runs of this state folder"),
    key("budgets.day.money", Amount, "", Ignored, "the same as budgets.run.money for a day in UTC, in all runs of this state folder"),
    key("approval.mode", Choice(&["ask", "deny", "auto:safe", "auto:high"]), "\"ask\"", Ignored, "who answers when a rule asks"),
    key("approval.webhook.url", Text, "", Ignored, "an address that gets every approval request"),
    key("approval.webhook.secret", Text, "", Ignored, "signs what goes to the webhook and what it replies, as `${env:NAME}` or `${file:PATH}`"),
    key("tools.enable", Items, "", Ignored, "tools, classes and bundles added to the default set"),
    key("tools.disable", Items, "", Adds, "tools, classes and bundles taken away; wins over enable"),
    key("tools.defer", Items, "", Ignored, "tools, classes and bundles that are listed only once a caller has found and expanded them"),
    key("tools.*.enabled", Flag, "", Only("false"), "turns one tool on or off; wins over both lists"),
    key("tools.*.description", Text, "", Ignored, "the description the model reads"),
    key("tools.*.i18n", Map, "", Ignored, "descriptions by language tag, chosen by `locale`"),
    key("tools.*.bind", Anything, "", Ignored, "arguments filled in by haft and hidden from callers"),
    key("tools.*.timeout_s", Seconds, "", Ignored, "a deadline of this tool's own"),
    key("tools.*.overflow", Choice(&["store", "clip", "fail"]), "", Ignored, "what becomes of a result over the inline limit"),
    key("tools.*.inline_tokens", Whole(1), "", Ignored, "this tool's inline limit in tokens"),
    key("limits.max_calls", Whole(1), "10000", Stricter, "calls in one run"),
    key("limits.call_timeout_s", Seconds, "600", Stricter, "the longest a call may take"),
    key("limits.approval_timeout_s", Seconds, "300", Stricter, "the longest a call waits for an approval"),
    key("limits.total_timeout_s", Seconds, "3600", Stricter, "the longest all calls of a run may take together"),
    key("limits.inline_tokens", Whole(1), "12000", Stricter, "the largest result a call returns inline, in tokens"),
    key("limits.inline_media_bytes", Whole(1), "5242880", Stricter, "pictures and sound a call returns inline, in bytes"),
    key("chain.engine", Text, "\"auto\"", Ignored, "what runs scripts: `python`, or `auto`"),
    key("chain.max_tool_calls", Whole(1), "50", Stricter, "calls in one script"),
    key("chain.call_timeout_s", Seconds, "60", Stricter, "the longest a script's call may take"),
    key("chain.approval_timeout_s", Seconds, "55", Stricter, "the longest a script's call waits for an approval"),
    key("chain.total_timeout_s", Seconds, "300", Stricter, "the longest a script may take"),
    key("chain.max_inline_result_bytes", Whole(1), "4096", Stricter, "the largest result a script's call returns inline"),
    key("chain.max_risk_unapproved", Choice(&["critical", "high", "safe"]), "\"critical\"", Stricter, "a script's calls above this risk are asked about"),
    key("sandbox.backend", Choice(&["auto", "jail", "microvm", "kubernetes", "passthrough"]), "\"auto\"", Ignored, "what confines commands; this release has the jail"),
    key("sandbox.require", Choice(STRENGTHS), "\"no-proc\"", Stricter, "the weakest confinement commands may run in"),
    key("sandbox.network", Choice(&["none", "ask", "allow-list", "install", "full"]), "\"ask\"", Only("\"none\""), "what commands reach: nothing; what Network rules or a person allow when they connect; the hosts of sandbox.allow_hosts; package registries (apart from the workspace); or all that this machine does"),
    key("sandbox.allow_hosts", Items, "", Ignored, "hosts that commands reach unasked with network = ask, allow-list or install: `example.com`, `*.example.com`, `example.com:8443`"),
    key("sandbox.read", Items, "", Ignored, "more folders and files that commands read: absolute, or below `~/`"),
    key("sandbox.write", Items, "", Ignored, "more folders that commands change, at once and unasked: absolute, or below `~/`"),
    key("sandbox.path", Items, "", Ignored, "folders of programs, first on the PATH of commands; they are read, too"),
    key("sandbox.env", Map, "", Ignored, "variables of commands; a call's own win"),
    key("sandbox.memory_mb", Whole(1), "", Ignored, "memory of a command and all it starts"),
    key("sandbox.changes", Choice(&["direct", "copy", "review"]), "\"copy\"", Stricter, "where a command's changes go: to the workspace at once; to a copy, and into the workspace when they are decided; or there with a person asked about all"),
    key("files.read_before_write", Flag, "", Ignored, "a file must have been read before it is changed; on for models and MCP, off for `haft call`"),
    key("files.check", Anything, "", Ignored, "checkers run in the jail after a write, by file pattern"),
    key("web.robots", Flag, "true", Only("true"), "`fetch_url` keeps to what robots.txt asks of robots"),
    key("web.user_agent", Text, "", Ignored, "how `fetch_url` calls itself; the first word is its name in robots.txt"),
    key("web.max_bytes", Whole(1), "10485760", Stricter, "the largest page `fetch_url` reads, unpacked, in bytes"),
    key("web.search.provider", Choice(&["brave", "searxng", "json"]), "", Ignored, "the service `web_search` asks; without one there is no such tool"),
    key("web.search.url", Text, "", Ignored, "SearXNG: the instance; json: a URL with {query} and {limit}; brave: its endpoint, where it is another"),
    key("web.search.api_key", Text, "", Ignored, "the service's key, as `${env:NAME}` or `${file:PATH}`"),
    key("web.search.headers", Map, "", Ignored, "further headers for the service"),
    key("web.search.results", Text, "", Ignored, "json: the pointer to the list of results, `/results` by default"),
    key("web.search.title", Text, "", Ignored, "json: a result's member with its title"),
    key("web.search.link", Text, "", Ignored, "json: a result's member with its URL"),
    key("web.search.snippet", Text, "", Ignored, "json: a result's member with its snippet"),
    key("network.proxy", Text, "", Ignored, "the proxy through which haft's own requests leave (web tools, webhook, embeddings, buckets) and the connections of commands: http://HOST:PORT or https://HOST:PORT, its password as `${env:NAME}` or `${file:PATH}`; variables such as HTTPS_PROXY are not read"),
    key("network.no_proxy", Items, "", Ignored, "hosts that are reached without it: `example.com` with all names below, `.example.com`, `10.0.0.0/8`, `example.com:8443`, `*`; this machine always is"),
    key("memory.enabled", Flag, "true", Ignored, "memory across runs"),
    key("memory.provider", Text, "\"local\"", Ignored, "where memory is kept: `local`, or `mcp:NAME`, a server behind haft"),
    key("memory.recall.tool", Text, "\"search_nodes\"", Ignored, "the tool of that server for which `recall_memory` stands"),
    key("memory.recall.argument", Text, "", Ignored, "its argument that is the query; `query` by default"),
    key("memory.write.tool", Text, "\"create_entities\"", Ignored, "the tool of that server for which `write_memory` stands"),
    key("memory.write.argument", Text, "", Ignored, "its argument that is the text; `create_entities` needs none"),
    key("memory.write_mode", Choice(&["external", "candidate", "disabled"]), "\"candidate\"", Ignored, "what tools write to memory: counts at once, waits for a review, or is not written"),
    key("skills.dirs", Items, "", Ignored, "more folders with skills; relative ones are below the workspace"),
    key("skills.allow", Items, "", Ignored, "the only skills that may be used; names with `*`"),
    key("skills.deny", Items, "", Ignored, "skills that may not be used; names with `*`; wins over allow"),
    key("skills.as_tools", Flag, "false", Ignored, "each skill is a tool of its own, too: `skill.NAME`"),
    key("skills.max_tokens", Whole(1), "18000", Stricter, "the texts of a run's active skills together; the oldest go over it"),
    key("search.embeddings.url", Text, "", Ignored, "a service of embeddings (OpenAI's `/v1/embeddings`), so that tools are found by meaning, too"),
    key("search.embeddings.model", Text, "", Ignored, "the model it is asked for"),
    key("search.embeddings.api_key", Text, "", Ignored, "its key, as `${env:NAME}` or `${file:PATH}`"),
    key("mcp.servers.*.command", Text, "", Ignored, "the program of a server behind haft; `haft mcp pin NAME` shows what is started and takes its tools"),
    key("mcp.servers.*.args", Items, "", Ignored, "the program's arguments"),
    key("mcp.servers.*.env", Map, "", Ignored, "its variables; secrets as `${env:NAME}` or `${file:PATH}`"),
    key("mcp.servers.*.cwd", Text, "", Ignored, "the folder it starts in; of a jailed server one that `sandbox.read` or `sandbox.write` names"),
    key("mcp.servers.*.url", Text, "", Ignored, "the address of a server that speaks Streamable HTTP or HTTP+SSE, in place of a command"),
    key("mcp.servers.*.headers", Map, "", Ignored, "headers of every request to it; secrets as references"),
    key("mcp.servers.*.oauth.client_id", Text, "", Ignored, "the name by which the server's authorization server knows haft, or the address of a client metadata document; haft makes itself known where nothing is said"),
    key("mcp.servers.*.oauth.client_secret", Text, "", Ignored, "the secret that belongs to it, as a reference"),
    key("mcp.servers.*.oauth.issuer", Text, "", Ignored, "the only authorization server that haft signs in by, as it names itself; needed with a secret, which goes to no other"),
    key("mcp.servers.*.oauth.scopes", Items, "", Ignored, "what is asked for at `haft mcp login` beside what the server wants"),
    key("mcp.servers.*.enabled", Flag, "", Only("false"), "whether its tools are offered; on where nothing is said"),
    key("mcp.servers.*.trusted", Flag, "", Ignored, "whether the hints of its tools are believed: those that only read then run as haft's own that only read do"),
    key("mcp.servers.*.connect_timeout_s", Seconds, "", Ignored, "how long it may take to start and greet: 20"),
    key("mcp.servers.*.list_timeout_s", Seconds, "", Ignored, "how long it may take to list its tools: 60"),
    key("mcp.servers.*.call_timeout_s", Seconds, "", Ignored, "how long a call may take: 600"),
    key("mcp.servers.*.max_calls", Whole(1), "", Ignored, "calls that it gets at the same time; more of them wait: 16"),
    key("mcp.servers.*.prefix", Text, "", Ignored, "what stands before the names of its tools and prompts: NAME and a dot where nothing is said; `\"\"` for their own names"),
    key("mcp.servers.*.elicitation", Choice(&["deny", "pass"]), "", Ignored, "whether it may ask the user of a client that calls it: `pass` where nothing is said"),
    key("mcp.servers.*.sampling", Choice(&["deny", "pass"]), "", Ignored, "whether it may ask the model of a client that calls it: `deny` where nothing is said"),
    key("mcp.servers.*.roots", Choice(&["none", "pass", "workspace"]), "", Ignored, "the folders it is told of: those that its jail shows where nothing is said, with `pass` those that the client says"),
    key("mcp.servers.*.sandbox.backend", Choice(&["passthrough", "jail"]), "", Ignored, "what confines its process: the jail where nothing is said"),
    key("mcp.servers.*.sandbox.network", Choice(&["host", "none"]), "", Ignored, "what a jailed server reaches: nothing where nothing is said"),
    key("mcp.servers.*.sandbox.read", Items, "", Ignored, "folders that a jailed server reads beside the system's and the toolchains"),
    key("mcp.servers.*.sandbox.write", Items, "", Ignored, "folders that a jailed server changes"),
    key("mcp.trusted_clients", Items, "", Ignored, "clients whose forms may decide about calls, by the names they give themselves; with the operator's token alone, never about critical calls"),
    key("model.default", Text, "", Ignored, "the model that `haft run` asks, as PROVIDER:MODEL"),
    key("model.base_url", Text, "", Ignored, "where its provider is reached, in place of the provider's own address; for a model of another provider --base-url says it"),
    key("models.*.input_price", Amount, "", Ignored, "what a million tokens cost that the model PROVIDER:MODEL reads, in any currency: `models.\"openai:gpt-5.2\".input_price`"),
    key("models.*.cached_price", Amount, "", Ignored, "what a million tokens cost that it reads from its provider's cache; as `input_price` where nothing is said"),
    key("models.*.output_price", Amount, "", Ignored, "what a million tokens cost that it writes"),
    key("models.*.window", Whole(1000), "", Ignored, "tokens that it can read and write at once: a history that nears them is compressed, old results first"),
    key("agent.system", Text, "", Ignored, "the instructions of `haft run` in place of haft's own: a text, or @FILE below the workspace"),
    key("agent.max_turns", Whole(1), "100", Ignored, "replies of the model to one prompt"),
    key("agent.max_tokens", Whole(1), "", Ignored, "tokens that a conversation of the agent may read and write"),
    key("agent.max_cost", Amount, "", Ignored, "money that a conversation of the agent may cost, in the currency of the prices; the model needs prices then"),
    key("agent.max_time_s", Seconds, "", Ignored, "the longest that one prompt may take, waits for people included"),
    key("agent.suggest", Flag, "true", Ignored, "of more than 15 tools, the model is declared a baseline and those that fit the prompt; it finds the others by `tool_search`"),
    key("agent.provided", Items, "", Ignored, "tools that a provider defines and haft runs by its own: apply_patch, shell, local_shell (openai); bash, text_editor, memory (anthropic)"),
    key("agent.max_reply_tokens", Whole(1), "", Ignored, "tokens of one reply of the model"),
    key("store.url", Text, "", Ignored, "the database of runs and approvals: sqlite:PATH or postgres://…; the SQLite file under home where it is not set"),
    key("artifacts.url", Text, "", Ignored, "the artifacts' store, file:///PATH, s3://BUCKET/PREFIX (credentials in AWS_… variables) or memory:; the folder under home where it is not set"),
    key("artifacts.max_bytes", Whole(1), "10737418240", Ignored, "bytes of all artifacts; over it the oldest go that no run in use holds"),
    key("progress.enabled", Flag, "true", Ignored, "live output of running tools"),
    key("progress.flush_ms", Whole(0), "50", Ignored, "live output is sent after this many milliseconds; 0: at once"),
    key("progress.flush_bytes", Whole(1), "16384", Ignored, "or after this many bytes"),
    key("console.start", Choice(&["auto", "never"]), "\"auto\"", Ignored, "whether a server with a console is started in the background where none runs: by `haft console`, and by `haft serve --stdio` when a request waits (there not where the variable CI is set)"),
    key("hook.ask", Choice(&["auto", "agent", "haft"]), "\"auto\"", Ignored, "who asks about a call of a coding agent's own tool (`haft hook`): the agent's prompt, where it has one; haft's inbox; or the agent's where a user sits before it, and the inbox elsewhere"),
    key("hook.wrap", Choice(&["none", "jail"]), "\"none\"", Ignored, "how a coding agent's commands run: as they are; or by `haft exec` in the jail, on a copy of the workspace, where the agent lets a hook change them"),
    key("hook.wait_s", Seconds, "600", Ignored, "the longest an agent's hook waits for a decision; it answers before the agent's own time limit in any case"),
    key("console.notify", Choice(&["auto", "never"]), "\"auto\"", Ignored, "whether `haft serve` shows a notice on the desktop when a request waits and neither a page of a console nor the inbox of `haft approvals` is looked at"),
    key("serve.http", Text, "\"127.0.0.1:7420\"", Ignored, "where `haft serve` listens; an address that other machines reach needs serve.tls or serve.behind_proxy, and serve.hosts"),
    key("serve.behind_proxy", Flag, "false", Ignored, "a proxy that encrypts stands before `haft serve`; serve.hosts has its name"),
    key("serve.hosts", Items, "", Ignored, "names under which `haft serve` is reached: `haft.example`, `haft.example:8443`; requests for others are refused"),
    key("serve.tools", Choice(&["all", "auto", "lazy"]), "\"all\"", Ignored, "what MCP clients are listed: every tool; `tool_search`, `describe_tools`, `call_tool` and `tool_chain` alone, by which the others are found and called; or these where there are more than `serve.lazy_above`"),
    key("serve.lazy_above", Whole(0), "60", Ignored, "how many tools `serve.tools = \"auto\"` still lists"),
    key("serve.pinned", Items, "", Ignored, "tools, classes, bundles and `SERVER.*` that stay listed where few are"),
    key("serve.tls.cert", Text, "", Ignored, "PEM file of the certificate that `haft serve` shows, with those that sign it; it speaks HTTPS alone then"),
    key("serve.tls.key", Text, "", Ignored, "PEM file of its private key; no tool reads it"),
    key("serve.oauth.issuer", Text, "", Ignored, "the authorization server whose access tokens count at `/mcp`, as their `iss` names it"),
    key("serve.oauth.audience", Text, "", Ignored, "this server as their `aud` names it: the URL of its `/mcp` that clients write"),
    key("serve.oauth.jwks_url", Text, "", Ignored, "where its keys are; its metadata say it where nothing is said"),
    key("serve.oauth.scopes", Map, "", Ignored, "scopes of access tokens, each with the view that it stands for; `*` for all tools. A token without one of them reaches nothing"),
    key("views.*.tools", Items, "", Ignored, "the tools of a view: names, classes, bundles, `SERVER.*`; all where nothing is said. A token with a view is told of no other tool and calls no other"),
    key("views.*.deny", Items, "", Ignored, "tools that a view has not, named alike; wins over `tools`"),
    key("locale", Text, "", Ignored, "the language of descriptions and messages: `de`, `zh-CN`"),
];

/// What a path is in the table.
#[derive(Debug, Clone, Copy)]
pub enum KeyLookup {
    /// A key.
    Key(&'static Key),
    /// A table with keys below it.
    Section,
    /// Neither.
    Unknown,
}

/// Looks up a path.
pub fn find(path: &[String]) -> KeyLookup {
    let mut section = false;
    for key in KEYS {
        match fits(key.path, path) {
            Fit::Whole => return KeyLookup::Key(key),
            Fit::Begins => section = true,
            Fit::Not => {}
        }
    }
    if section {
        KeyLookup::Section
    } else {
        KeyLookup::Unknown
    }
}

enum Fit {
    Whole,
    Begins,
    Not,
}

fn fits(pattern: &str, path: &[String]) -> Fit {
    let mut parts = pattern.split('.');
    for segment in path {
        match parts.next() {
            Some("**") => return Fit::Whole,
            Some("*") => {}
            Some(part) if part == segment => {}
            Some(_) | None => return Fit::Not,
        }
    }
    if parts.next().is_none() {
        Fit::Whole
    } else {
        Fit::Begins
    }
}

/// Returns the known key most similar to an unknown one, with the user's own names filled in.
pub fn nearest(path: &[String]) -> Option<String> {
    let wrong = path.join(".");
    let candidate = |key: &Key| {
        let named: Vec<&str> = key
            .path
            .split('.')
            .enumerate()
            .filter(|(_, part)| *part != "**")
            .map(|(i, part)| match (part, path.get(i)) {
                ("*", Some(name)) => name,
                ("*", None) => "NAME",
                _ => part,
            })
            .collect();
        named.join(".")
    };
    let mut best = (0.0, None);
    for key in KEYS {
        let known = candidate(key);
        // A correct last word without its section is similar: `profile` for `policy.profile`.
        let section_left_out = path.len() == 1
            && !key.path.contains('*')
            && known.rsplit('.').next() == path.last().map(String::as_str);
        let likeness =
            strsim::jaro_winkler(&wrong, &known) + if section_left_out { 0.3 } else { 0.0 };
        if likeness > best.0 {
            best = (likeness, Some(known));
        }
    }
    best.1.filter(|_| best.0 > 0.75)
}

#[cfg(test)]
mod tests {
    use super::{KEYS, KeyLookup, find, nearest};

    fn path(dotted: &str) -> Vec<String> {
        dotted.split('.').map(str::to_owned).collect()
    }

    #[test]
    fn every_key_finds_itself() {
        for key in KEYS {
            let concrete = key.path.replace("**", "x").replace('*', "name");
            assert!(
                matches!(find(&path(&concrete)), KeyLookup::Key(found) if found.path == key.path)
            );
        }
    }

    #[test]
    fn what_is_no_key_is_a_section_or_unknown() {
        for section in [
            "policy",
            "tools.read_file",
            "mcp",
            "mcp.servers.x",
            "limits",
            "model",
            "models",
        ] {
            assert!(
                matches!(find(&path(section)), KeyLookup::Section),
                "{section}"
            );
        }
        for unknown in [
            "polcy",
            "policy.profil",
            "tools.x.y",
            "limits.max_calls.more",
            "locale.x",
        ] {
            assert!(
                matches!(find(&path(unknown)), KeyLookup::Unknown),
                "{unknown}"
            );
        }
    }

    #[test]
    fn the_nearest_key_is_what_was_meant() {
        let rows = [
            ("policy.profil", "policy.profile"),
            ("polcy.profile", "policy.profile"),
            ("profile", "policy.profile"),
            ("tools.read_file.enable", "tools.read_file.enabled"),
            ("limit.max_calls", "limits.max_calls"),
            ("limits.timeout_s", "limits.total_timeout_s"),
            ("sandbox.netwrok", "sandbox.network"),
        ];
        for (wrong, meant) in rows {
            assert_eq!(nearest(&path(wrong)).as_deref(), Some(meant), "{wrong}");
        }
        assert_eq!(nearest(&path("zzz")), None);
    }
}
