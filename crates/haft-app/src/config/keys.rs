//! The table of settings: each key's type, default, meaning, and what an untrusted folder may do with it, in one place.

use SettingType::{Amount, Anything, Choice, Flag, Items, Map, Rules, Seconds, Text, Whole};
use Untrusted::{Adds, Ignored, Only, Stricter};

/// A known key.
#[derive(Debug)]
pub struct SettingKey {
    /// Its dotted path; `*` stands for a user-defined name, `**` at the end for any depth.
    pub path: &'static str,
    /// The values that it takes.
    pub kind: SettingType,
    /// The built-in value as TOML; empty if there is none.
    pub default: &'static str,
    /// A one-line description for the user.
    pub doc: &'static str,
    /// What an untrusted folder may do with it.
    pub untrusted: Untrusted,
}

/// The values that a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingType {
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
    /// A list of rules: texts, or tables with `rule`, `match`, `no_match`, `reason`, `tool`, `arguments`; the lists of
    /// all layers are combined.
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
    kind: SettingType,
    default: &'static str,
    untrusted: Untrusted,
    doc: &'static str,
) -> SettingKey {
    SettingKey {
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
pub const KEYS: &[SettingKey] = &[
    key("policy.profile", Choice(PROFILES), "\"workspace\"", Stricter, "the verdict where no rule matches"),
    key("policy.allow", Rules, "", Ignored, "rules for calls that may run"),
    key("policy.ask", Rules, "", Adds, "rules for calls that need approval"),
    key("policy.deny", Rules, "", Adds, "rules for calls that never run; final in any layer"),
    key("policy.on_approval_timeout", Choice(&["suspend", "deny"]), "", Ignored, "what happens to a call whose approval request is not decided in time"),
    key("policy.commands", Choice(&["copy", "ask"]), "\"copy\"", Stricter, "when the profile `workspace` asks about a command: about what it changed, after it ran on a copy, or before it runs"),
    key("policy.ignored_changes", Choice(&["apply", "outputs", "ask"]), "\"outputs\"", Stricter, "which of a command's changes to files that git ignores are applied without asking: `apply` all; `outputs` those that a build makes (`policy.build_outputs`); `ask` none"),
    key("policy.build_outputs", Items, "", Ignored, "names added to the built-in list of ignored files and folders that commands may change without asking, such as `generated`; a leading `!` removes a name"),
    key("policy.on_partial", Choice(&["apply", "discard"]), "\"apply\"", Stricter, "what happens to the rest of a command's changes when some of them must not be applied"),
    key("policy.secret_files", Choice(&["allow", "ask", "deny"]), "\"ask\"", Stricter, "how calls on files whose names suggest secrets are treated: `allow` like any other file; `ask` asks first and hides them from commands; `deny` blocks every call"),
    key("policy.untrusted_content", Choice(&["off", "ask", "deny"]), "\"ask\"", Stricter, "how haft treats calls that could send data out after the run has read untrusted content (web pages, replies of servers), even where a rule allows them: `off` leaves them to the rules; `ask` asks, naming the source; `deny` blocks them"),
    key("policy.rule_of_two", Choice(&["off", "ask", "deny"]), "\"off\"", Stricter, "how haft treats a call by which a run would have all three: read untrusted content, seen private data, and been able to send: `off` leaves it to `policy.untrusted_content` and the rules; `ask` asks, naming the two that the run holds; `deny` blocks it"),
    key("policy.reviewer.model", Text, "", Ignored, "a model that reviews approval requests before a person is asked, as PROVIDER:MODEL; its provider gets what a request shows"),
    key("policy.reviewer.may", Anything, "", Ignored, "what the reviewer's verdicts decide, a word or a list: `deny` (the default), `allow:Edit`, `allow:Bash`, `allow:WebFetch`, `allow:Network`; `opinion` for nothing. The rest is shown to the person who decides"),
    key("policy.reviewer.base_url", Text, "", Ignored, "the base URL of the reviewer's provider, instead of the provider's own"),
    key("policy.reviewer.timeout_s", Seconds, "20", Ignored, "the longest that a review takes; a person is asked then"),
    key("policy.trust_workspace", Choice(&["yes", "no"]), "\"yes\"", Stricter, "whether the files of the workspace are the user's: with `no`, a run that reads one or runs a command there counts as one that has read untrusted content"),
    key("policy.keep_marks_s", Whole(0), "3600", Ignored, "how long what a client's run has read counts for that client's next runs in the workspace, in seconds after it was read; 0: only within the run"),
    key("policy.secret_names", Items, "", Ignored, "name patterns added to the built-in list of secret files, such as `*.token` or `tokens/`; a leading `!` removes a pattern"),
    key("budgets.run.deletions", Whole(0), "", Ignored, "files, links and folders that a run may delete before haft asks about each further deletion; 0 or unset: no budget"),
    key("budgets.run.sends", Whole(0), "", Ignored, "connections and calls of open-world tools that a run may make before haft asks about each further one; 0 or unset: no budget"),
    key("budgets.run.commands", Whole(0), "", Ignored, "commands that a run may start before haft asks about each further one; 0 or unset: no budget"),
    key("budgets.run.money", Amount, "", Ignored, "model cost of an agent run before haft asks whether to continue, in the currency of the configured prices; 0 or unset: no budget"),
    key("budgets.day.deletions", Whole(0), "", Ignored, "like budgets.run.deletions, but per UTC day and across all runs of this state folder"),
    key("budgets.day.sends", Whole(0), "", Ignored, "like budgets.run.sends, but per UTC day and across all runs of this state folder"),
    key("budgets.day.commands", Whole(0), "", Ignored, "like budgets.run.commands, but per UTC day and across all runs of this state folder"),
    key("budgets.day.money", Amount, "", Ignored, "like budgets.run.money, but per UTC day and across all runs of this state folder"),
    key("approval.mode", Choice(&["ask", "deny", "auto:safe", "auto:high"]), "\"ask\"", Ignored, "who decides when a rule asks"),
    key("approval.webhook.url", Text, "", Ignored, "a URL that receives every approval request"),
    key("approval.webhook.secret", Text, "", Ignored, "the secret that signs webhook requests and their replies, as `${env:NAME}` or `${file:PATH}`"),
    key("tools.enable", Items, "", Ignored, "tools, classes and bundles added to the default set"),
    key("tools.disable", Items, "", Adds, "tools, classes and bundles removed from the set; wins over enable"),
    key("tools.defer", Items, "", Ignored, "tools, classes and bundles that are listed only after a caller has found and expanded them"),
    key("tools.*.enabled", Flag, "", Only("false"), "turns one tool on or off; wins over both lists"),
    key("tools.*.description", Text, "", Ignored, "the description that the model reads"),
    key("tools.*.i18n", Map, "", Ignored, "descriptions by language tag, chosen by `locale`"),
    key("tools.*.bind", Anything, "", Ignored, "arguments that haft fills in and hides from callers"),
    key("tools.*.timeout_s", Seconds, "", Ignored, "the time limit of this tool's calls"),
    key("tools.*.overflow", Choice(&["store", "clip", "fail"]), "", Ignored, "what happens to a result over the inline limit"),
    key("tools.*.inline_tokens", Whole(1), "", Ignored, "this tool's inline limit in tokens"),
    key("limits.max_calls", Whole(1), "10000", Stricter, "calls in one run"),
    key("limits.call_timeout_s", Seconds, "600", Stricter, "the longest a call may take"),
    key("limits.approval_timeout_s", Seconds, "300", Stricter, "the longest a call waits for approval"),
    key("limits.total_timeout_s", Seconds, "3600", Stricter, "the longest all calls of a run may take together"),
    key("limits.inline_tokens", Whole(1), "12000", Stricter, "the largest inline result of a call, in tokens"),
    key("limits.inline_media_bytes", Whole(1), "5242880", Stricter, "the most image and audio data in an inline result, in bytes"),
    key("chain.engine", Text, "\"auto\"", Ignored, "the interpreter for scripts: `python`, or `auto`"),
    key("chain.max_tool_calls", Whole(1), "50", Stricter, "calls in one script"),
    key("chain.call_timeout_s", Seconds, "60", Stricter, "the longest a script's call may take"),
    key("chain.approval_timeout_s", Seconds, "55", Stricter, "the longest a script's call waits for approval"),
    key("chain.total_timeout_s", Seconds, "300", Stricter, "the longest a script may take"),
    key("chain.max_inline_result_bytes", Whole(1), "4096", Stricter, "the largest inline result of a script's call, in bytes"),
    key("chain.max_risk_unapproved", Choice(&["critical", "high", "safe"]), "\"critical\"", Stricter, "haft asks about a script's calls above this risk, even where a rule allows them"),
    key("sandbox.backend", Choice(&["auto", "jail", "microvm", "kubernetes", "passthrough"]), "\"auto\"", Ignored, "the sandbox that commands run in; this release supports the jail"),
    key("sandbox.require", Choice(STRENGTHS), "\"no-proc\"", Stricter, "the weakest sandbox that commands may run in"),
    key("sandbox.network", Choice(&["none", "ask", "allow-list", "install", "full"]), "\"ask\"", Only("\"none\""), "what commands may connect to: `none`; `ask` decides each connection by the Network rules or by asking; `allow-list`: the hosts of sandbox.allow_hosts; `install`: package registries, with the command kept away from the workspace; `full`: everything this machine can reach"),
    key("sandbox.allow_hosts", Items, "", Ignored, "hosts that commands may reach without asking when network is ask, allow-list or install: `example.com`, `*.example.com`, `example.com:8443`"),
    key("sandbox.read", Items, "", Ignored, "additional files and folders that commands may read; absolute, or starting with `~/`"),
    key("sandbox.write", Items, "", Ignored, "additional folders that commands may change directly, without asking; absolute, or starting with `~/`"),
    key("sandbox.path", Items, "", Ignored, "folders of programs, put first on the PATH of commands; they are readable, too"),
    key("sandbox.sockets", Items, "", Ignored, "unix sockets of this machine's services, or folders of them, that commands may connect to; haft asks about each (`Network(unix:/run/postgresql/.s.PGSQL.5432)`); absolute, or starting with `~/`"),
    key("sandbox.env", Map, "", Ignored, "environment variables for commands; those that a call sets win"),
    key("sandbox.memory_mb", Whole(1), "", Ignored, "memory limit for a command and all its child processes, in MiB"),
    key("sandbox.changes", Choice(&["direct", "copy", "review"]), "\"copy\"", Stricter, "where a command's changes go: `direct` into the workspace at once; `copy` to a copy first, then into the workspace once decided; `review` as `copy`, but haft asks about every change"),
    key("files.read_before_write", Flag, "", Ignored, "a file must be read before it is changed; default: on for models and MCP, off for `haft call`"),
    key("files.check", Anything, "", Ignored, "checkers that run in the jail after a write, by file pattern"),
    key("web.robots", Flag, "true", Only("true"), "`fetch_url` obeys robots.txt"),
    key("web.user_agent", Text, "", Ignored, "the user agent of `fetch_url`; its first word is the name looked up in robots.txt"),
    key("web.max_bytes", Whole(1), "10485760", Stricter, "the largest page that `fetch_url` reads, in bytes after decompression"),
    key("web.search.provider", Choice(&["brave", "searxng", "json"]), "", Ignored, "the search service behind `web_search`; without one the tool is not offered"),
    key("web.search.url", Text, "", Ignored, "searxng: the URL of the instance; json: a URL with {query} and {limit}; brave: the endpoint, if not the default"),
    key("web.search.api_key", Text, "", Ignored, "the API key of the service, as `${env:NAME}` or `${file:PATH}`"),
    key("web.search.headers", Map, "", Ignored, "additional HTTP headers for the service"),
    key("web.search.results", Text, "", Ignored, "json: the JSON pointer to the list of results; default: `/results`"),
    key("web.search.title", Text, "", Ignored, "json: the member of a result that holds its title"),
    key("web.search.link", Text, "", Ignored, "json: the member of a result that holds its URL"),
    key("web.search.snippet", Text, "", Ignored, "json: the member of a result that holds its snippet"),
    key("network.proxy", Text, "", Ignored, "the proxy for haft's own requests (web tools, webhook, embeddings, buckets) and for the connections of commands: http://HOST:PORT or https://HOST:PORT, with the password as `${env:NAME}` or `${file:PATH}`; variables such as HTTPS_PROXY are not read"),
    key("network.no_proxy", Items, "", Ignored, "hosts to connect to without the proxy: `example.com` (with its subdomains), `.example.com`, `10.0.0.0/8`, `example.com:8443`, `*`; this machine is always included"),
    key("network.ssh_agent", Choice(&["auto", "never"]), "\"auto\"", Stricter, "whether commands with a network reach your ssh-agent, which lists its keys, and signs once you agreed (`Sign(ssh:HOST)`, `Sign(git)`)"),
    key("network.gpg_agent", Choice(&["auto", "never"]), "\"auto\"", Stricter, "whether commands with a network reach your gpg-agent, if git's `user.signingkey` is a key of gpg: it signs with that key alone, once you agreed (`Sign(gpg:FINGERPRINT)`)"),
    key("network.credentials.*.host", Text, "", Ignored, "the host whose requests from commands get this credential: `api.github.com`, `git.example.com:8443`; no other host gets it, and haft asks before it is used (`Sign(https:HOST)`)"),
    key("network.credentials.*.source", Choice(&["command", "git", "gh"]), "", Ignored, "where the value comes from: `command` (the default); `git`: `git credential fill`, for git over HTTPS; `gh`: `gh auth token`, for api.github.com"),
    key("network.credentials.*.command", Items, "", Ignored, "the program and its arguments that print the value: it runs outside the jail, without a shell or a terminal, for at most 20 s"),
    key("network.credentials.*.header", Text, "", Ignored, "the header that carries the value, with `{}` in its place; default: `Authorization: Bearer {}`"),
    key("memory.enabled", Flag, "true", Ignored, "memory across runs"),
    key("memory.provider", Text, "\"local\"", Ignored, "where memory is stored: `local`, or `mcp:NAME` for an MCP server behind haft"),
    key("memory.recall.tool", Text, "\"search_nodes\"", Ignored, "the tool of that server that `recall_memory` calls"),
    key("memory.recall.argument", Text, "", Ignored, "the argument of that tool that takes the query; default: `query`"),
    key("memory.write.tool", Text, "\"create_entities\"", Ignored, "the tool of that server that `write_memory` calls"),
    key("memory.write.argument", Text, "", Ignored, "the argument of that tool that takes the text; not needed for `create_entities`"),
    key("memory.write_mode", Choice(&["external", "candidate", "disabled"]), "\"candidate\"", Ignored, "what happens to what tools write to memory: `external` makes it count at once; `candidate` holds it for review; `disabled` writes nothing"),
    key("skills.dirs", Items, "", Ignored, "additional skill folders; relative paths start at the workspace"),
    key("skills.allow", Items, "", Ignored, "the only skills that may be used; names, with `*` as a wildcard"),
    key("skills.deny", Items, "", Ignored, "skills that may not be used; names, with `*` as a wildcard; wins over allow"),
    key("skills.as_tools", Flag, "false", Ignored, "also offer each skill as a tool named `skill.NAME`"),
    key("skills.max_tokens", Whole(1), "18000", Stricter, "the most tokens that the texts of a run's active skills may have together; over it the oldest are deactivated"),
    key("search.embeddings.url", Text, "", Ignored, "an embeddings service (OpenAI's `/v1/embeddings`), so that tools are also found by meaning"),
    key("search.embeddings.model", Text, "", Ignored, "the embedding model"),
    key("search.embeddings.api_key", Text, "", Ignored, "the API key of the embeddings service, as `${env:NAME}` or `${file:PATH}`"),
    key("mcp.servers.*.command", Text, "", Ignored, "the program that starts this server; `haft mcp pin NAME` shows what runs and accepts its tools"),
    key("mcp.servers.*.args", Items, "", Ignored, "arguments of the program"),
    key("mcp.servers.*.env", Map, "", Ignored, "environment variables of the program; secrets as `${env:NAME}` or `${file:PATH}`"),
    key("mcp.servers.*.cwd", Text, "", Ignored, "the folder that the program starts in; for a jailed server it must be covered by `sandbox.read` or `sandbox.write`"),
    key("mcp.servers.*.url", Text, "", Ignored, "the URL of a server that speaks Streamable HTTP or HTTP+SSE, instead of a command"),
    key("mcp.servers.*.headers", Map, "", Ignored, "HTTP headers for every request to this server; secrets as references"),
    key("mcp.servers.*.oauth.client_id", Text, "", Ignored, "haft's client ID at the server's authorization server, or the URL of a client metadata document; if unset, haft registers itself"),
    key("mcp.servers.*.oauth.client_secret", Text, "", Ignored, "the client secret that belongs to the client ID, as a reference"),
    key("mcp.servers.*.oauth.issuer", Text, "", Ignored, "the only authorization server that haft signs in with, by its issuer URL; required with a client secret, which is sent to no other server"),
    key("mcp.servers.*.oauth.scopes", Items, "", Ignored, "scopes that `haft mcp login` requests in addition to those the server asks for"),
    key("mcp.servers.*.enabled", Flag, "", Only("false"), "whether the tools of this server are offered; default: true"),
    key("mcp.servers.*.strict", Flag, "", Ignored, "whether a result that does not match its tool's output schema is refused; by default it is delivered with a note, since the call has run"),
    key("mcp.servers.*.trusted", Flag, "", Ignored, "whether to believe the hints of this server's tools; tools marked read-only then run like haft's own read-only tools"),
    key("mcp.servers.*.connect_timeout_s", Seconds, "", Ignored, "the longest the server may take to start and initialize; default: 20"),
    key("mcp.servers.*.list_timeout_s", Seconds, "", Ignored, "the longest the server may take to list its tools; default: 60"),
    key("mcp.servers.*.call_timeout_s", Seconds, "", Ignored, "the longest a call to the server may take; default: 600"),
    key("mcp.servers.*.max_calls", Whole(1), "", Ignored, "calls to the server at the same time; further calls wait; default: 16"),
    key("mcp.servers.*.prefix", Text, "", Ignored, "the prefix of the server's tool and prompt names; default: NAME and a dot; `\"\"` keeps their own names"),
    key("mcp.servers.*.elicitation", Choice(&["deny", "pass"]), "", Ignored, "whether the server may ask the user of the calling client; default: `pass`"),
    key("mcp.servers.*.sampling", Choice(&["deny", "pass"]), "", Ignored, "whether the server may use the model of the calling client; default: `deny`"),
    key("mcp.servers.*.roots", Choice(&["none", "pass", "workspace"]), "", Ignored, "the folders reported to the server as roots; default: those that its jail shows; `pass` reports the client's"),
    key("mcp.servers.*.sandbox.backend", Choice(&["passthrough", "jail"]), "", Ignored, "the sandbox that the server's process runs in; default: `jail`"),
    key("mcp.servers.*.sandbox.network", Choice(&["host", "none"]), "", Ignored, "what a jailed server may connect to; default: nothing"),
    key("mcp.servers.*.sandbox.read", Items, "", Ignored, "folders that a jailed server may read, in addition to the system's and the toolchains"),
    key("mcp.servers.*.sandbox.write", Items, "", Ignored, "folders that a jailed server may change"),
    key("mcp.trusted_clients", Items, "", Ignored, "MCP clients whose forms may decide approval requests, by the names they report; only with the operator token, and never for critical calls"),
    key("model.default", Text, "", Ignored, "the model for `haft run`, as PROVIDER:MODEL"),
    key("model.base_url", Text, "", Ignored, "the base URL of its provider, instead of the provider's own; for a model of another provider use --base-url"),
    key("models.*.input_price", Amount, "", Ignored, "the price of a million input tokens of PROVIDER:MODEL, in any currency: `models.\"openai:gpt-5.2\".input_price`"),
    key("models.*.cached_price", Amount, "", Ignored, "the price of a million input tokens read from the provider's cache; default: `input_price`"),
    key("models.*.output_price", Amount, "", Ignored, "the price of a million output tokens"),
    key("models.*.window", Whole(1000), "", Ignored, "the model's context window in tokens; haft compresses a history that comes close to it, old results first"),
    key("agent.system", Text, "", Ignored, "the system instructions of `haft run`, instead of haft's own: text, or @FILE relative to the workspace"),
    key("agent.max_turns", Whole(1), "100", Ignored, "replies of the model to one prompt"),
    key("agent.max_tokens", Whole(1), "", Ignored, "the most tokens that a conversation of the agent may read and write"),
    key("agent.max_cost", Amount, "", Ignored, "the most that a conversation of the agent may cost, in the currency of the configured prices; requires prices for the model"),
    key("agent.max_time_s", Seconds, "", Ignored, "the longest that one prompt may take, including waits for approval"),
    key("agent.suggest", Flag, "true", Ignored, "with more than 15 tools, declare only a baseline and the tools that fit the prompt; the model finds the rest with `tool_search`"),
    key("agent.provided", Items, "", Ignored, "provider-defined tools that haft backs with its own: apply_patch, shell, local_shell (openai); bash, text_editor, memory (anthropic)"),
    key("agent.max_reply_tokens", Whole(1), "", Ignored, "the most tokens in one reply of the model"),
    key("store.url", Text, "", Ignored, "the database of runs and approvals: sqlite:PATH or postgres://…; default: the SQLite file in the state folder"),
    key("record.key", Text, "", Ignored, "the file with the key that signs the log of finished runs, which no tool reads; absolute, or starting with `~/`; default: `haft/record.key` in the user's data folder, made at the first use"),
    key("record.anchor", Text, "", Ignored, "where each signed checkpoint of that log is also written, so that whoever has the key cannot rewrite it: a file that haft appends to (absolute, or starting with `~/`), or an http(s) URL that haft posts to"),
    key("record.on_fault", Choice(&["continue", "refuse"]), "\"continue\"", Stricter, "what happens while that log cannot be written or does not fit what was signed: runs go on and get their places in it later, or no run starts"),
    key("artifacts.url", Text, "", Ignored, "the artifact store: file:///PATH, s3://BUCKET/PREFIX (credentials from AWS_… variables) or memory:; default: the folder in the state folder"),
    key("artifacts.max_bytes", Whole(1), "10737418240", Ignored, "total size of all artifacts, in bytes; over it haft deletes the oldest that no active run holds"),
    key("progress.enabled", Flag, "true", Ignored, "live output of running tools"),
    key("progress.flush_ms", Whole(0), "50", Ignored, "send live output after this many milliseconds; 0: at once"),
    key("progress.flush_bytes", Whole(1), "16384", Ignored, "or after this many bytes"),
    key("console.start", Choice(&["auto", "never"]), "\"auto\"", Ignored, "whether haft starts a server with the console in the background if none is running: for `haft console`, and for `haft serve --stdio` when a request is pending (the latter not if the variable CI is set)"),
    key("hook.ask", Choice(&["auto", "agent", "haft"]), "\"auto\"", Ignored, "who asks about a call of a coding agent's own tool (`haft hook`): `agent`: the agent's prompt, if it has one; `haft`: haft's inbox; `auto`: the agent's prompt when a user is present, else the inbox"),
    key("hook.wrap", Choice(&["none", "jail"]), "\"none\"", Ignored, "how a coding agent's commands run: `none`: unchanged; `jail`: through `haft exec` in the jail, on a copy of the workspace, if the agent lets a hook change them"),
    key("hook.shell_state", Choice(&["auto", "keep", "none"]), "\"auto\"", Ignored, "whether variables and functions that an agent's command in the jail sets hold for its next one: `auto`: where the agent's own shell keeps them (Cursor); `keep`: always; `none`: never"),
    key("hook.wait_s", Seconds, "600", Ignored, "the longest an agent's hook waits for a decision; it always answers before the agent's own time limit"),
    key("console.notify", Choice(&["auto", "never"]), "\"auto\"", Ignored, "whether `haft serve` shows a desktop notification when a request is pending and no console page or `haft approvals` inbox is in view"),
    key("serve.http", Text, "\"127.0.0.1:7420\"", Ignored, "the address that `haft serve` listens on; one that other machines can reach needs serve.hosts and either serve.tls or serve.behind_proxy"),
    key("serve.behind_proxy", Flag, "false", Ignored, "a proxy in front of `haft serve` handles TLS; serve.hosts must list its name"),
    key("serve.hosts", Items, "", Ignored, "host names under which clients reach `haft serve`: `haft.example`, `haft.example:8443`; requests for other hosts are refused"),
    key("serve.tools", Choice(&["all", "auto", "lazy"]), "\"all\"", Ignored, "which tools MCP clients see: `all`; `lazy`: only `tool_search`, `describe_tools`, `call_tool` and `tool_chain`, which find and call the others; `auto`: `lazy` if there are more than `serve.lazy_above`"),
    key("serve.lazy_above", Whole(0), "60", Ignored, "the number of tools up to which `serve.tools = \"auto\"` lists all of them"),
    key("serve.pinned", Items, "", Ignored, "tools, classes, bundles and `SERVER.*` that stay listed when the list is short"),
    key("serve.tls.cert", Text, "", Ignored, "PEM file with the certificate chain of `haft serve`; haft then speaks HTTPS only"),
    key("serve.tls.key", Text, "", Ignored, "PEM file with the private key; tools cannot read it"),
    key("serve.oauth.issuer", Text, "", Ignored, "the authorization server whose access tokens `/mcp` accepts, exactly as in their `iss`"),
    key("serve.oauth.audience", Text, "", Ignored, "this server, exactly as in their `aud`: the `/mcp` URL that clients use"),
    key("serve.oauth.jwks_url", Text, "", Ignored, "the URL of its keys; default: from its metadata"),
    key("serve.oauth.scopes", Map, "", Ignored, "scopes of access tokens and the view that each one grants; `*` grants all tools. A token without any of them is refused"),
    key("views.*.tools", Items, "", Ignored, "the tools of a view: names, classes, bundles, `SERVER.*`; default: all. A token with a view can list and call only these"),
    key("views.*.deny", Items, "", Ignored, "tools excluded from a view, in the same notation; wins over `tools`"),
    key("locale", Text, "", Ignored, "the language of descriptions and messages, such as `de` or `zh-CN`"),
];

/// What a path is in the table.
#[derive(Debug, Clone, Copy)]
pub enum KeyLookup {
    /// A key.
    Key(&'static SettingKey),
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
            KeyMatch::Whole => return KeyLookup::Key(key),
            KeyMatch::Begins => section = true,
            KeyMatch::Not => {}
        }
    }
    if section {
        KeyLookup::Section
    } else {
        KeyLookup::Unknown
    }
}

enum KeyMatch {
    Whole,
    Begins,
    Not,
}

fn fits(pattern: &str, path: &[String]) -> KeyMatch {
    let mut parts = pattern.split('.');
    for segment in path {
        match parts.next() {
            Some("**") => return KeyMatch::Whole,
            Some("*") => {}
            Some(part) if part == segment => {}
            Some(_) | None => return KeyMatch::Not,
        }
    }
    if parts.next().is_none() {
        KeyMatch::Whole
    } else {
        KeyMatch::Begins
    }
}

/// Returns the known key most similar to an unknown one, with the user's own names filled in.
pub fn nearest(path: &[String]) -> Option<String> {
    let wrong = path.join(".");
    let candidate = |key: &SettingKey| {
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
            best = (likeness, Some(known.clone()));
        }
        // A section: `[polcy]`.
        let section: Vec<&str> = known.split('.').take(path.len()).collect();
        let section = section.join(".");
        let likeness = strsim::jaro_winkler(&wrong, &section);
        if likeness > best.0.max(0.85) {
            best = (likeness, Some(section));
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
            ("polcy", "policy"),
            ("sandbx", "sandbox"),
            ("mcp.server", "mcp.servers"),
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
