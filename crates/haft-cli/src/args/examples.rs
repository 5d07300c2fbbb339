//! Examples below the help of commands.

/// Of `haft`.
pub(crate) const ROOT: &str = "\
First steps:
  haft init --client claude-code    set up this folder and connect a client
  haft call read_file path=README.md
  haft approvals                    what waits for your decision

`haft help COMMAND` shows examples.

Exit codes: 0 done, 1 the tool failed, 2 wrong usage or unknown tool, 3 denied, 4 waits for an approval, 5 wrong settings or policy, 130 interrupted.";

/// Of `haft init`.
pub(crate) const INIT: &str = "\
Examples:
  haft init                         write haft.toml with rules that fit, and trust the folder
  haft init --client codex          connect Codex, too
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
  haft console                      start a server where none runs, and open its console
  haft console --no-open            print a login link for another browser
  haft console --stop               stop the server in the background";

/// Of `haft token`.
pub(crate) const TOKEN: &str = "\
Examples:
  haft token add ann                a token for all tools, for 90 days
  haft token add ci --view readers --days 30
  haft token remove ann";

/// Of `haft tools`.
pub(crate) const TOOLS: &str = "\
Examples:
  haft tools                        one line each
  haft tools run_command            one tool whole, with its arguments
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
  haft run --model ollama:qwen3:8b         a conversation; Ctrl-D ends it
  haft run --resume RUN                    go on, after an approval or an interruption
  git diff | haft run - --model openai:gpt-5.2 --json
  haft run --acp                           for an editor: Zed, JetBrains IDEs, Neovim
  haft run \"tidy the imports\" --dry-run    nothing is changed: what would have been is shown

Ctrl-C stops the tools that run, a second one the run. A provider's key is read from the environment: ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, …";

/// Of `haft hook`.
pub(crate) const HOOK: &str = "\
Examples:
  haft hook status                  which agents are here, and which are governed
  haft hook install claude          shows the change, asks, and keeps everything else
  haft hook install codex --print   what to write by hand
  haft hook uninstall claude --yes  without a question
  haft hook claude < event.json     what the agent's settings call: the answer is on stdout";

/// Of `haft exec`.
pub(crate) const EXEC: &str = "\
Examples:
  haft exec -- cargo test           what it changed is judged, can be seen and undone
  haft exec -- 'make 2>&1 | tail'   one word is a line for the shell";

/// Of `haft policy`.
pub(crate) const POLICY: &str = "\
Examples:
  haft policy explain run_command command=\"git push\"
  haft policy check                 test the rules' own examples";

/// Of `haft approvals`.
pub(crate) const APPROVALS: &str = "\
Examples:
  haft approvals                    what is pending; at a terminal, decide it
  haft approvals approve ap-3f      the id, or its beginning
  haft approvals deny ap-3f --message \"not on main\"";

/// Of `haft runs`.
pub(crate) const RUNS: &str = "\
Examples:
  haft runs list
  haft runs verify --all            prove that no record was changed
  haft runs undo 20261124-1632      the id, or its beginning";

/// Of `haft mcp`.
pub(crate) const MCP: &str = "\
Examples:
  haft mcp install claude-code      in .mcp.json of this folder
  haft mcp install claude-code --user
  haft mcp install codex --profile trusted -c limits.max_calls=200
  haft mcp uninstall codex
  haft mcp add docs --network host -- npx -y @modelcontextprotocol/server-everything
  haft mcp add tickets https://tickets.example/mcp --header 'Authorization=Bearer ${env:TICKETS_TOKEN}'
  haft mcp import                   the servers of the clients on this machine
  haft mcp pin docs                 see its tools, and offer them";
