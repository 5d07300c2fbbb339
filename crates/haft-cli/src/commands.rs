//! The commands, one file each, and their prerequisites.

use clap::CommandFactory;
use tokio::runtime::{Builder, Runtime};

use crate::args::{self, Cli, Command, McpAction, PolicyAction, RunsAction, SkillsAction, unknown};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::{Screen, stdout};
use haft_app::app::App;
use haft_app::dry_run::DryRun;
use haft_app::host::Host;
use haft_app::problem::Problem;

mod agent;
pub(crate) mod approvals;
mod arguments;
mod artifacts;
mod call;
mod changes;
mod chain;
mod config;
mod consent;
mod console;
pub(crate) mod doctor;
mod exec;
mod help;
mod hook;
mod hook_settings;
mod init;
mod man;
mod mcp;
mod memory;
mod own_place;
pub(crate) mod policy;
mod resume;
pub(crate) mod runs;
pub(crate) mod signals;
pub(crate) mod skills;
mod serve;
pub(crate) mod tools;
mod token;
mod trust;

/// The result of a command.
pub(crate) type ExitResult = Result<Exit, Problem>;

/// Runs the command and reports any problem.
pub(crate) fn run(cli: Cli) -> Exit {
    let screen = Screen::new(&cli.options);
    stdout::checked(dispatch(cli, screen), screen)
}

/// Prints what clap says in place of a command: help, the version, or what is wrong with the command line.
pub(crate) fn refuse(said: &clap::Error) -> Exit {
    if said.use_stderr() {
        // If stderr is closed, there is nowhere to report.
        let _ = said.print();
        return Exit::Usage;
    }
    let screen = Screen::without_options();
    let printed = screen.out(&said.render().ansi().to_string());
    stdout::checked(printed.map(|()| Exit::Done), screen)
}

fn dispatch(cli: Cli, screen: Screen) -> ExitResult {
    match cli.command {
        Command::Completions { shell } => completions(shell, screen),
        Command::Man => man::run(screen),
        Command::Help { command } => help::run(screen, &command),
        Command::Version => help::version(screen),
        // Exits the process with the agent's own exit codes, except for an unknown agent.
        Command::Hook(args::Hook {
            agent: Some(agent),
            action: None,
        }) => Err(hook::run(&cli.options, &agent)),
        Command::Other(words) => Err(unknown::command(&words)),
        Command::Mcp(args::Mcp {
            action: McpAction::Other(words),
        }) => Err(unknown::mcp_command(&words)),
        command => resolved(command, &Invocation::new(cli.options)?),
    }
}

/// Runs the commands that need workspace, home and settings.
fn resolved(command: Command, at: &Invocation) -> ExitResult {
    match command {
        Command::Config(config) => config::run(at, config.action.as_ref()),
        Command::Init(init) => init::run(at, &init),
        Command::Console(args) => console::run(at, &args),
        Command::Trust(trust) => trust::run(at, &trust),
        Command::Mcp(args::Mcp {
            action: McpAction::Add(server),
        }) => {
            if !mcp::add::add(at, &server)? {
                return Ok(Exit::Done);
            }
            let name = server.name;
            run_with_app(
                Command::Mcp(args::Mcp {
                    action: McpAction::Pin { name, yes: false },
                }),
                at,
            )
        }
        Command::Hook(hook) => hook_settings::run(at, &hook),
        Command::Token(token) => token::run(at, &token),
        Command::Mcp(mcp) if !mcp.action.is_about_servers() => mcp::run(at, &mcp.action),
        Command::Skills(args::Skills {
            action: Some(SkillsAction::Check { dir, strict }),
        }) => skills::check(at, &dir, strict),
        Command::Run(run) if run.serves_editor => agent::editor::run(at, &run),
        Command::Policy(args::Policy {
            action: Some(PolicyAction::Check),
        }) => policy::check(at, &at.settings()?),
        Command::Tools(tools) if tools::refuse(&tools).is_some() => {
            Err(tools::refuse(&tools).unwrap_or_else(|| Problem::usage("see `haft help tools`")))
        }
        command => run_with_app(command, at),
    }
}

/// What precedes the problem of settings for which `haft exec` runs nothing.
const NOT_RUN: &str = "haft: the command did not run: the settings of haft do not load";

/// Runs the commands that need the assembled application.
fn run_with_app(command: Command, at: &Invocation) -> ExitResult {
    if runs_tools(&command) {
        at.site.check_workspace()?;
    }
    let one =
        || runtime(false).map_err(|e| Problem::failed(format!("cannot start the runtime: {e}")));
    if matches!(command, Command::Doctor) {
        return one()?.block_on(doctor::run(at));
    }
    let is_exec = matches!(command, Command::Exec(_));
    let refused = |problem: Problem| {
        if is_exec {
            // An agent tells by this line that it reads no output of the command.
            at.screen.err(NOT_RUN);
        }
        problem
    };
    let settings = at.settings().map_err(refused)?;
    let serves = matches!(command, Command::Serve(_));
    let runtime =
        runtime(serves).map_err(|e| Problem::failed(format!("cannot start the runtime: {e}")))?;
    let done = runtime.block_on(async {
        let host = Host {
            desktop: serves,
            starts_command: is_exec,
            ..at.host(asks(&command))
        };
        let dry = match &command {
            Command::Run(args) if args.on_copy => Some(DryRun::prepare(&at.site, &settings)?),
            _ => None,
        };
        let app = match &dry {
            Some(dry) => App::build(dry.site(), dry.settings(), dry.host(host))?,
            None => App::build(&at.site, &settings, host).map_err(refused)?,
        };
        // The sweep ends with the runtime.
        let _ = app.sweep();
        let done = match command {
            Command::Serve(args) => serve::run(at, &settings, &app, &args).await,
            Command::Call(args) => call::run(at, &app, &args).await,
            Command::Exec(args) => exec::run(at, &app, &args).await,
            Command::Chain(args) => chain::run(at, &app, &args).await,
            Command::Run(args) => agent::run(at, &settings, &app, &args, dry.as_ref()).await,
            Command::Tools(args) => tools::run(at, &app, &args),
            Command::Policy(args) => policy::run(at, &app, args.action.as_ref()).await,
            Command::Approvals(args) => approvals::run(at, &app, args.action.as_ref()).await,
            Command::Runs(args) => runs::run(at, &app, args.action.as_ref()).await,
            Command::Skills(args) => skills::run(at, &app, args.action.as_ref()),
            Command::Artifacts(args) => artifacts::run(at, &app, args.action.as_ref()).await,
            Command::Memory(args) => memory::run(at, &app, args.action.as_ref()).await,
            Command::Mcp(args) => mcp::servers::run(at, &app, &args.action).await,
            _ => Ok(Exit::Done),
        };
        app.shut_down().await;
        done
    });
    // A thread may still wait for a line that is never typed; it ends with the process.
    runtime.shutdown_background();
    // Whatever is wrong with a value, a secret in it must not be shown.
    done.map_err(|problem| problem.redacted(&settings.redactor))
}

/// Returns whether tools run in the workspace of the command.
fn runs_tools(command: &Command) -> bool {
    match command {
        Command::Serve(_)
        | Command::Call(_)
        | Command::Exec(_)
        | Command::Chain(_)
        | Command::Run(_) => true,
        Command::Runs(runs) => matches!(runs.action, Some(RunsAction::Resume { .. })),
        _ => false,
    }
}

/// Returns whether the user at this terminal may be asked: not if stdin belongs to an MCP client.
fn asks(command: &Command) -> bool {
    match command {
        Command::Serve(serve) => !serve.stdio && !serve.background,
        Command::Exec(_) => true,
        Command::Call(call) => !call.arguments.are_from_stdin(),
        Command::Chain(chain) => chain.file.as_os_str() != "-",
        Command::Run(run) => !run.is_from_stdin(),
        Command::Runs(runs) => matches!(runs.action, Some(RunsAction::Resume { .. })),
        _ => false,
    }
}

/// How many tasks' steps the runtime takes at most before it looks at what has arrived. By default they are 61, which delays a
/// request by 61 steps of others when the server is busy.
const STEPS_BETWEEN_LOOKS: u32 = 8;

/// Creates the runtime: several threads for a server, one for a single call.
pub(crate) fn runtime(serves: bool) -> std::io::Result<Runtime> {
    let mut builder = if serves {
        Builder::new_multi_thread()
    } else {
        Builder::new_current_thread()
    };
    // However much there is to do, what arrives is looked at after a few steps: it may be somebody else's.
    builder.event_interval(STEPS_BETWEEN_LOOKS);
    builder.enable_all().build()
}

fn completions(shell: clap_complete::Shell, screen: Screen) -> ExitResult {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "haft", &mut out);
    screen.raw(&out)?;
    Ok(Exit::Done)
}
