//! Commands on a terminal of their jail: what they see, what is typed, how they end.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use haft_sandbox::{
    CommandSpec, CommandTerminal, Config, RunningCommand, Sandbox, StartError, Strength,
    TerminalSize, TerminalSpec, WaitOutcome,
};

use crate::runner::Test;
use crate::{Alive, HOLD, drivers, jail, line, run, soon, text, wait};

pub(crate) const TESTS: &[Test] = &[
    ("command_on_a_terminal_has_it_as_its_own", own),
    ("command_on_a_terminal_ends_as_others_do", ends),
    ("command_without_a_terminal_can_open_some", opens),
    ("terminal_when_nothing_reads_it_takes_bounded_input", unread),
    (
        "terminal_when_flooded_stays_bounded_and_hears_ctrl_c",
        flooded,
    ),
    (
        "terminal_when_resized_ten_thousand_times_has_the_last_size",
        resized,
    ),
    (
        "terminal_that_a_background_process_holds_ends_with_the_command",
        held,
    ),
    (
        "screen_when_watched_shows_what_may_be_shown_and_the_log_has_text",
        watched,
    ),
    (
        "command_on_a_terminal_that_stops_itself_continues",
        stops_itself,
    ),
    (
        "terminal_is_refused_where_there_is_no_jail_of_its_own",
        no_jail,
    ),
];

const SIZE: TerminalSize = TerminalSize {
    rows: 31,
    cols: 117,
};

fn on_terminal(script: &str, folder: &Path) -> CommandSpec {
    let mut spec = line(script, folder);
    spec.terminal = Some(TerminalSpec {
        size: SIZE,
        watched: false,
    });
    spec
}

fn stops_itself() {
    let folder = tempfile::tempdir().unwrap();
    let stops =
        "kill -STOP $$; echo \"on $?\"; sleep 50 & kill -STOP %1; jobs; kill -KILL %1; echo end";
    wait(async {
        let running = jail().start(on_terminal(stops, folder.path())).await;
        let running = running.unwrap();
        let exit = running.wait().await;
        let said = text(running.stdout());
        assert!(exit.success() && !exit.timed_out, "{exit:?} {said}");
        assert!(said.contains("on 0") && said.contains("end"), "{said}");
    });
}

fn terminal(running: &RunningCommand) -> &CommandTerminal {
    running.terminal().unwrap()
}

/// Waits until this is in the command's text or in the line under its cursor.
async fn drawn(running: &RunningCommand, what: &str) {
    let is_there = |running: &RunningCommand| {
        text(running.stdout()).contains(what) || terminal(running).line().contains(what)
    };
    let waited = running.wait_for(is_there, soon()).await;
    assert_eq!(
        waited,
        WaitOutcome::Matched,
        "no {what:?} in {:?}",
        text(running.stdout())
    );
}

async fn type_in(running: &RunningCommand, what: &str) {
    let typed = terminal(running).input(what.as_bytes(), soon()).await;
    assert_eq!(typed.unwrap(), what.len());
}

fn own() {
    let folder = tempfile::tempdir().unwrap();
    let script = "tty; stty size; for fd in 0 1 2; do test -t $fd || echo no $fd; done; echo error >&2; \
        echo $TERM; ls -1A /dev/pts; printf 'name? '; read -r name </dev/tty; echo \"hello $name\"; exit 3";
    wait(async {
        let running = jail()
            .start(on_terminal(script, folder.path()))
            .await
            .unwrap();
        drawn(&running, "name? ").await;
        assert!(!text(running.stdout()).contains("name?"));
        let mode = terminal(&running).input_mode().unwrap();
        assert!(mode.lines && mode.returns, "{mode:?}");
        type_in(&running, "jail\r").await;
        assert_eq!(running.wait().await.code, Some(3));
        let expect = "/dev/pts/0\n31 117\nerror\nxterm-256color\n0\nptmx\nname? jail\nhello jail\n";
        assert_eq!(text(running.stdout()), expect);
        assert_eq!(text(running.stderr()), "");
        let late = terminal(&running).input(b"x", soon()).await;
        assert!(late.is_err(), "{late:?}");
    });
}

fn ends() {
    let folder = tempfile::tempdir().unwrap();
    // a line, its exit code, its signal, whether its deadline ended it
    let rows = [
        ("true", Some(0), None, false),
        ("exit 7", Some(7), None, false),
        ("kill -TERM $$", None, Some(15), false),
        ("no-such-program-here; exit $?", Some(127), None, false),
        ("trap '' HUP INT TERM; sleep 600", None, Some(9), true),
    ];
    for (script, code, signal, late) in rows {
        let mut spec = on_terminal(script, folder.path());
        if late {
            spec.timeout = Some(Duration::from_millis(300));
        }
        let (exit, ..) = run(jail(), spec);
        assert_eq!(
            (exit.code, exit.signal, exit.timed_out),
            (code, signal, late),
            "{script}"
        );
    }
    let mut absent = line("no-such-program-here", folder.path());
    absent.terminal = Some(TerminalSpec::default());
    let error = wait(jail().start(absent)).unwrap_err();
    assert!(matches!(error, StartError::Program { .. }), "{error}");
}

fn opens() {
    let folder = tempfile::tempdir().unwrap();
    let (exit, out, err) = run(
        jail(),
        line(
            "test -c /dev/ptmx && ls -A /dev/pts; cat /dev/tty",
            folder.path(),
        ),
    );
    assert_eq!(out, "ptmx\n", "{err}");
    assert!(!exit.success() && err.contains("/dev/tty"), "{err}");
    if !Path::new("/usr/bin/script").exists() {
        println!("skipped: no `script` here");
        return;
    }
    let script = "script -qec 'tty; stty rows 7 cols 9; stty size' /dev/null";
    let (exit, out, err) = run(jail(), line(script, folder.path()));
    assert!(exit.success(), "{out}{err}");
    assert_eq!(out, "/dev/pts/0\r\n7 9\r\n", "{err}");
}

fn unread() {
    let folder = tempfile::tempdir().unwrap();
    let text_of_lines = "0123456789abcdef\n".repeat(60_000);
    wait(async {
        let spec = on_terminal("stty -echo; echo ready; sleep 600", folder.path());
        let running = jail().start(spec).await.unwrap();
        drawn(&running, "ready").await;
        let deadline = Instant::now() + Duration::from_millis(300);
        let typed = terminal(&running)
            .input(text_of_lines.as_bytes(), deadline)
            .await;
        let typed = typed.unwrap();
        assert!(typed < text_of_lines.len(), "{typed}");
        running.kill();
        assert!(running.wait().await.killed);
    });
}

fn flooded() {
    let folder = tempfile::tempdir().unwrap();
    wait(async {
        let mut spec = on_terminal("yes '\u{1b}[31mflood\u{1b}[0m'", folder.path());
        spec.log_cap = 1 << 20;
        let running = jail().start(spec).await.unwrap();
        let enough = |running: &RunningCommand| running.stdout().total() > 3 << 20;
        assert_eq!(running.wait_for(enough, soon()).await, WaitOutcome::Matched);
        type_in(&running, "\u{3}").await;
        let exit = running.wait().await;
        assert_eq!((exit.code, exit.signal), (None, Some(2)), "{exit:?}");
        let log = running.stdout();
        assert!(log.total() - log.lost() <= 1 << 20);
        assert!(log.text(0, 64).text.starts_with("flood\nflood\n"));
    });
}

fn resized() {
    let folder = tempfile::tempdir().unwrap();
    wait(async {
        let script = "trap : WINCH; echo ready; read -r go; stty size";
        let running = jail()
            .start(on_terminal(script, folder.path()))
            .await
            .unwrap();
        drawn(&running, "ready").await;
        for round in 0..10_000 {
            let (rows, cols) = (round % 500 + 1, round % 900 + 1);
            terminal(&running).resize(TerminalSize { rows, cols });
        }
        terminal(&running).resize(TerminalSize { rows: 5, cols: 66 });
        type_in(&running, "go\r").await;
        assert!(running.wait().await.success());
        assert!(text(running.stdout()).ends_with("5 66\n"));
    });
}

fn held() {
    let folder = tempfile::tempdir().unwrap();
    wait(async {
        let mut alive = Alive::new(folder.path());
        let mut script = HOLD.to_owned();
        // One that ignores the end of its terminal, in a session of its own and in the terminal's.
        write!(
            script,
            "trap '' HUP; sleep 600 & setsid sleep 600 & echo left; exit 5"
        )
        .unwrap();
        let running = jail()
            .start(on_terminal(&script, folder.path()))
            .await
            .unwrap();
        assert_eq!(running.wait().await.code, Some(5));
        assert_eq!(text(running.stdout()), "left\n");
        alive.ended().await;
    });
}

fn watched() {
    let folder = tempfile::tempdir().unwrap();
    let script = r"printf '\033[?1049h\033[31mred\033[0m\033]52;c;eA==\007\033[6n\n'; printf '10%%\r20%%\r30%%'";
    let mut spec = on_terminal(script, folder.path());
    spec.terminal = Some(TerminalSpec {
        watched: true,
        ..TerminalSpec::default()
    });
    wait(async {
        let running = jail().start(spec).await.unwrap();
        assert!(running.wait().await.success());
        let screen = terminal(&running).screen().unwrap();
        let shown = text(screen);
        let expect = "\u{1b}[?1049h\u{1b}[31mred\u{1b}[0m\r\n10%\r20%\r30%";
        assert!(shown.starts_with(expect), "{shown:?}");
        assert!(
            shown.ends_with("\u{1b}[?1049l") && screen.ended(),
            "{shown:?}"
        );
        assert_eq!(text(running.stdout()), "red\n30%");
    });
}

fn no_jail() {
    let folder = tempfile::tempdir().unwrap();
    let weak = Sandbox::new(Config {
        require: Strength::LandlockSeccomp,
        at_most: Some(Strength::LandlockSeccomp),
        ..Config::default()
    });
    for (sandbox, strength) in [
        (&drivers()[0], Strength::None),
        (&weak, Strength::LandlockSeccomp),
    ] {
        let error = wait(sandbox.start(on_terminal("true", folder.path()))).unwrap_err();
        assert!(
            matches!(&error, StartError::NoTerminal(have) if *have == strength),
            "{error}"
        );
        assert!(error.to_string().contains("terminal"), "{error}");
    }
}
