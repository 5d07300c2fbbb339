//! Examples below the help of commands.

/// Of `haft`.
pub(crate) const ROOT: &str = "\
First steps:
  haft init --client claude-code    set up this folder and connect a client
  haft call read_file path=README.md
  haft approvals                    pending requests for you to decide

`haft help COMMAND` shows examples.

Exit codes: 0 done, 1 the tool failed, 2 wrong usage or unknown tool, 3 denied, 4 suspended until an approval, 5 invalid settings or policy, 130 interrupted.";

/// Of `haft init`.
pub(crate) const INIT: &str = "\
Examples:
  haft init                         write a haft.toml for this folder and trust it
  haft init --client codex          also connect Codex
  haft init --client cursor --dry-run";

/// Of `haft serve`.
pub(crate) const SERVE: &str = "\
Examples:
  haft serve                        MCP and the console on 127.0.0.1:7420
  haft serve --stdio                MCP on stdin and stdout, for a client that starts haft
  haft serve --http 127.0.0.1:0 --json";

/// Of `haft console`.
pub(crate) const CONSOLE: &str = "\
Examples:
  haft console                      start a server if none is running, and open its console
  haft console --no-open            print a login link for another browser
  haft console --stop               stop the background server";

/// Of `haft token`.
pub(crate) const TOKEN: &str = "\
Examples:
  haft token add ann                a token for all tools, for 90 days
  haft token add ci --view readers --days 30
  haft token remove ann";

/// Of `haft tools`.
pub(crate) const TOOLS: &str = "\
Examples:
  haft tools                        one line per tool
  haft tools run_command            one tool in full, with its arguments
  haft tools --search \"search file contents\"";

/// Of `haft call`.
pub(crate) const CALL: &str = "\
Examples:
  haft call read_file path=README.md max_lines=20
  haft call run_command command=\"npm test\" env.CI=1
  haft call edit_file path=a.txt edits:='[{\"find\":\"a\",\"replace\":\"b\"}]'
  haft call write_file --args @arguments.json --wait=60";

/// Of `haft chain`.
pub(crate) const CHAIN: &str = "\
Examples:
  haft chain script.py
  echo 'tools.list_files()' | haft chain -";

/// Of `haft run`.
pub(crate) const RUN: &str = "\
Examples:
  haft run \"which tests are slow, and why?\" --model anthropic:claude-sonnet-4-6
  haft run --model ollama:qwen3:8b         start a conversation; Ctrl-D ends it
  haft run --resume RUN                    resume after an approval or an interruption
  git diff | haft run - --model openai:gpt-5.2 --json
  haft run --acp                           for an editor: Zed, JetBrains IDEs, Neovim
  haft run \"tidy the imports\" --dry-run    show what it would change, and change nothing

Ctrl-C stops the running tools; a second Ctrl-C stops the run. The provider's API key is read from the environment: ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, …";

/// Of `haft hook`.
pub(crate) const HOOK: &str = "\
Examples:
  haft hook status                  which agents are installed and governed
  haft hook install claude          show the change, ask, keep all other settings
  haft hook install codex --print   print what to add by hand
  haft hook uninstall claude --yes  do not ask for confirmation
  haft hook claude < event.json     what the agent runs; the reply is on stdout";

/// Of `haft exec`.
pub(crate) const EXEC: &str = "\
Examples:
  haft exec -- cargo test           its changes are checked, and can be reviewed and undone
  haft exec -- 'make 2>&1 | tail'   a single word is a command line for the shell
  haft exec -t -- vim README.md     on this terminal: editors, REPLs, `git add -p`";

/// Of `haft policy`.
pub(crate) const POLICY: &str = "\
Examples:
  haft policy explain run_command command=\"git push\"
  haft policy check                 test the examples of the rules
  haft policy diff old.toml new.toml";

/// Of `haft approvals`.
pub(crate) const APPROVALS: &str = "\
Examples:
  haft approvals                    list pending requests; at a terminal, decide them
  haft approvals approve ap-3f      the id, or a unique prefix of it
  haft approvals deny ap-3f --message \"not on main\"";

/// Of `haft runs`.
pub(crate) const RUNS: &str = "\
Examples:
  haft runs list
  haft runs verify --all            prove that no record was changed
  haft runs verify --log            prove that none was rewritten, removed or added
  haft runs undo 20261124-1632      the id, or a unique prefix of it";

/// Of `haft mcp`.
pub(crate) const MCP: &str = "\
Examples:
  haft mcp install claude-code      edit .mcp.json in this folder
  haft mcp install claude-code --user
  haft mcp install codex --profile trusted -c limits.max_calls=200
  haft mcp uninstall codex
  haft mcp add docs --network host -- npx -y @modelcontextprotocol/server-everything
  haft mcp add tickets https://tickets.example/mcp --header 'Authorization=Bearer ${env:TICKETS_TOKEN}'
  haft mcp import                   import the servers of the clients on this machine
  haft mcp pin docs                 review its tools and offer them";
