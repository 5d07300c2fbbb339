//! `haft exec -t`: a command on the user's own terminal, and how that is left.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Lab, ended};
use crate::pty::Pty;
use crate::signals::stays_ignored;

fn lab() -> Lab {
    let mut lab = Lab::new();
    lab.set("CI", "1");
    lab.user_settings("[policy]\nprofile = \"trusted\"\n");
    lab
}

fn on_terminal(lab: &Lab, line: &str) -> Pty {
    Pty::whole(lab, &["exec", "-t", "--", line], 91)
}

fn send(pty: &Pty, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pty.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[test]
fn command_when_on_the_terminal_has_its_size_and_its_keys() {
    let lab = lab();
    // A shell would run its trap only once the program before it has ended.
    let program = r#"python3 -uc '
import os, signal, sys, tty
def size(*_): print(*reversed(os.get_terminal_size()))
size()
print(os.ttyname(0))
signal.signal(signal.SIGWINCH, size)
tty.setcbreak(0)
print("ready")
while True:
    key = os.read(0, 1).decode()
    print(f"key <{key}>")
    if key == "q": sys.exit(7)'"#;
    let mut pty = on_terminal(&lab, program);
    pty.expect("24 91\r\n/dev/pts/0\r\nready\r\n");
    // The user's terminal is raw: Ctrl-C is a key like any other to a program that wants it.
    assert!(pty.is_raw());
    pty.type_in("a");
    pty.expect("key <a>\r\n");
    pty.resize(40, 132);
    // As the kernel does for the process whose terminal it is.
    send(&pty, Signal::WINCH);
    pty.expect("40 132\r\n");
    pty.type_in("q");
    pty.expect("key <q>\r\n");
    pty.wait_until_cooked();
    let ran = pty.end();
    assert_eq!(ran.code, 7, "{}", ran.stderr);
}

#[test]
fn program_when_it_takes_the_whole_screen_leaves_it_as_it_was() {
    let lab = lab();
    let line = r#"printf '\033[?1049h\033[?1003h\033[?25l\033]52;c;ZXZpbA==\007\033]0;title\007\033[6n\033[cmiddle'; read -r x; echo "got $x""#;
    let mut pty = on_terminal(&lab, line);
    pty.expect("middle");
    pty.enter("typed");
    pty.expect("got typed");
    let ran = pty.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let screen = &ran.stderr;
    for passed in [
        "\u{1b}[?1049h",
        "\u{1b}[?25h",
        "\u{1b}[?1003l",
        "\u{1b}[?1049l",
    ] {
        assert!(screen.contains(passed), "{passed:?} in {screen:?}");
    }
    // Nothing that writes the clipboard or the title, or makes the terminal answer.
    for dropped in ["\u{1b}]", "ZXZpbA", "title", "\u{1b}[6n", "\u{1b}[c"] {
        assert!(!screen.contains(dropped), "{dropped:?} in {screen:?}");
    }
}

#[test]
fn ctrl_c_when_typed_goes_to_the_command() {
    let lab = lab();
    let mut pty = on_terminal(
        &lab,
        "echo ready; trap 'echo heard; exit 5' INT; while :; do sleep 1; done",
    );
    pty.expect("ready");
    pty.type_in("\u{3}");
    pty.expect("heard");
    assert_eq!(pty.end().code, 5);
}

#[test]
fn terminal_when_haft_is_ended_by_a_signal_is_restored() {
    for signal in [
        Signal::INT,
        Signal::TERM,
        Signal::HUP,
        Signal::QUIT,
        Signal::USR1,
        Signal::ALARM,
    ] {
        if stays_ignored(signal) {
            eprintln!(
                "SKIPPED: {signal:?} is ignored here, as below `nohup` or in the background, and haft leaves it so"
            );
            continue;
        }
        let lab = lab();
        let mut pty = on_terminal(
            &lab,
            r"trap '' HUP INT TERM QUIT; printf '\033[?1049hready'; sleep 600",
        );
        pty.expect("ready");
        assert!(pty.is_raw(), "{signal:?}");
        send(&pty, signal);
        pty.expect("\u{1b}[?1049l");
        pty.wait_until_cooked();
        let ran = pty.end();
        assert_eq!(ran.code, 130, "{signal:?}: {}", ran.stderr);
    }
}

#[test]
fn without_a_terminal_it_says_so() {
    let lab = lab();
    let mut command = lab.command(&["exec", "-t", "--", "true"]);
    command.stdin(Stdio::null());
    let ran = ended(command.spawn().unwrap());
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("haft exec -t needs a terminal, and standard input is none"),
        "{}",
        ran.stderr
    );
    let mut pty = Pty::start(&lab, &["exec", "-t", "--", "true"]);
    pty.expect("standard output is none");
    assert_eq!(pty.end().code, 2);
}

#[test]
fn changes_when_made_on_the_terminal_are_asked_about_on_it() {
    let mut lab = Lab::new();
    lab.set("CI", "1");
    lab.user_settings("");
    lab.file("a.txt", "old\n");
    let mut pty = on_terminal(&lab, "read -r word; echo \"$word\" > a.txt");
    pty.wait_until_raw();
    pty.enter("new");
    pty.expect("a.txt");
    pty.expect("run it?");
    pty.wait_until_cooked();
    pty.enter("y");
    let ran = pty.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        std::fs::read_to_string(lab.work().join("a.txt")).unwrap(),
        "new\n"
    );
}
