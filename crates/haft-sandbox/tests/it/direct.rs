//! Guards of a live workspace that programs outside change while a command runs.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use haft_sandbox::{CommandSpec, Exit, GuardEvent, PathGuard};

use crate::guards::usual;
use crate::runner::Test;
use crate::{jail, line, run, text, wait, wait_for_output};

pub(crate) const TESTS: &[Test] = &[
    ("j3_a_file_that_the_host_replaces_stays_protected", replaced),
    ("j3_a_file_that_the_host_removes_stays_protected", removed),
    (
        "j3_a_command_that_reads_a_replaced_secret_is_ended",
        exposed,
    ),
    (
        "j3_so_is_one_that_holds_what_the_host_moves_into_place",
        held,
    ),
    (
        "j4_what_appears_under_a_guarded_name_is_moved_aside_at_once",
        appeared,
    ),
    ("j4_or_at_the_end_wherever_it_is", at_the_end),
    ("j4_a_flood_of_guarded_names_ends_the_command", flood),
    (
        "j4_a_folder_that_gets_no_new_entries_keeps_none_under_a_foreseen_name",
        no_new_entries,
    ),
    ("j4_a_name_without_placeholder_is_moved_aside", unheld),
    (
        "j9_a_socket_that_the_host_makes_anew_is_covered_again",
        socket,
    ),
    ("a_name_that_was_approved_is_not_moved_aside", approved),
    ("what_several_guards_reach_is_hidden_once", linked),
    (
        "a_link_that_others_lead_over_is_pinned_and_its_target_is_not_covered",
        over_links,
    ),
    ("and_is_reported_if_the_host_replaces_it", replaced_link),
];

fn replaced_event(path: &str) -> GuardEvent {
    GuardEvent::Replaced { path: path.into() }
}

/// Runs a script and lets the host act when the script reports that it is ready.
fn beside(spec: CommandSpec, host: impl FnOnce()) -> (Exit, String) {
    wait(async {
        let running = jail().start(spec).await.unwrap();
        wait_for_output(&running, "ready").await;
        host();
        let exit = running.wait().await;
        let said = text(running.stdout()) + &text(running.stderr());
        (exit, said)
    })
}

fn guarded(script: &str, root: &Path) -> CommandSpec {
    let mut spec = line(script, root);
    spec.mounts.guards = usual();
    spec
}

fn replaced() {
    type Act = fn(&Path);
    let saves: [(&str, Act); 3] = [
        ("renames over it", |file| {
            fs::write(file.with_extension("new"), "after").unwrap();
            fs::rename(file.with_extension("new"), file).unwrap();
        }),
        ("removes and makes it", |file| {
            fs::remove_file(file).unwrap();
            fs::write(file, "after").unwrap();
        }),
        ("renames it and makes it", |file| {
            fs::rename(file, file.with_extension("old")).unwrap();
            fs::write(file, "after").unwrap();
        }),
    ];
    for name in [".envrc", "sub/.vim"] {
        for (words, save) in saves {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "before").unwrap();
            let script = format!(
                "echo ready; until [ \"$(cat {name})\" = after ] && [ ! -w {name} ]; do sleep 0.01; done; \
                 ! echo evil >> {name} && ! rm {name} && ! mv {name} x"
            );
            let mut spec = guarded(&script, folder.path());
            let nested = PathGuard::protect_file(".vim").at_any_depth();
            spec.mounts.guards.push(nested);
            let (exit, said) = beside(spec, || save(&file));
            assert!(exit.success(), "{name} {words}: {exit:?} {said}");
            assert_eq!(fs::read_to_string(&file).unwrap(), "after", "{words}");
            assert_eq!(exit.guard_events, [replaced_event(name)], "{words}");
        }
    }
}

fn removed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(".envrc");
    fs::write(&file, "before").unwrap();
    // Absent for a moment, and then an empty file that cannot be written.
    let script = "echo ready; while [ -s .envrc ] || [ ! -e .envrc ] || [ -w .envrc ]; do sleep 0.01; done; \
                  ! echo evil > .envrc && ! rm .envrc && ! mkdir .vscode/x";
    let (exit, said) = beside(guarded(script, folder.path()), || {
        fs::remove_file(&file).unwrap();
    });
    assert!(exit.success(), "{exit:?} {said}");
    assert_eq!(exit.guard_events, [replaced_event(".envrc")]);
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

fn exposed() {
    for only_reads in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("d")).unwrap();
        for name in [".env", "d/key", "new"] {
            fs::write(folder.path().join(name), "secret").unwrap();
        }
        let script = "cat .env d/key; echo ready; while :; do sleep 0.01; done";
        let mut spec = line(script, folder.path());
        spec.mounts.guards = vec![PathGuard::hide_file(".env"), PathGuard::hide_file("d/key")];
        spec.mounts.only_reads = only_reads;
        let (exit, said) = beside(spec, || {
            fs::rename(folder.path().join("new"), folder.path().join("d/key")).unwrap();
        });
        assert!(exit.escaped_a_guard() && !exit.timed_out, "{exit:?}");
        let path = "d/key".into();
        assert_eq!(exit.guard_events, [GuardEvent::Exposed { path }]);
        assert_eq!(said, "ready\n");
    }
}

fn held() {
    let hold_by = [
        "exec 9>>.envrc.new; echo ready; while :; do sleep 0.01; done",
        "exec python3 -c 'import mmap, time; f = open(\".envrc.new\", \"r+\"); m = mmap.mmap(f.fileno(), 0); \
         f.close(); print(\"ready\", flush=True); time.sleep(60)'",
    ];
    for script in hold_by {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".envrc"), "before").unwrap();
        let new = folder.path().join(".envrc.new");
        fs::write(&new, "after").unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o666)).unwrap();
        let (exit, said) = beside(guarded(script, folder.path()), || {
            fs::rename(&new, folder.path().join(".envrc")).unwrap();
        });
        assert!(exit.escaped_a_guard(), "{script}: {exit:?} {said}");
    }
}

fn aside(path: &str) -> GuardEvent {
    GuardEvent::MovedAside {
        path: path.into(),
        to: format!("{path}.moved-aside-1").into(),
    }
}

fn appeared() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("old/deep")).unwrap();
    for (script, path) in [
        ("mkdir -p d/.git", "d/.git"),
        ("mkdir -p old/deep/.git", "old/deep/.git"),
        ("mkdir -p x/y/.git; mv x z", "z/y/.git"),
        ("mkdir s; ln -s ../old s/.git", "s/.git"),
        ("mkdir f; echo x > f/file; mv f/file f/.git", "f/.git"),
    ] {
        let script = format!(
            "{script}; echo ready; while [ -e {path} ] || [ -L {path} ]; do sleep 0.01; done"
        );
        let (exit, said) = beside(guarded(&script, folder.path()), || {});
        assert!(exit.success(), "{path}: {exit:?} {said}");
        let moved = |event: &GuardEvent| *event == aside(path) || path == "z/y/.git";
        assert!(
            exit.guard_events.iter().all(moved),
            "{:?}",
            exit.guard_events
        );
        assert_eq!(exit.guard_events.len(), 1, "{:?}", exit.guard_events);
    }
}

fn at_the_end() {
    for (script, path) in [
        ("git init -q d 2>/dev/null || mkdir -p d/.git", "d/.git"),
        ("mkdir -p a/b/c/.git; chmod 000 a/b", "a/b/c/.git"),
        ("mkdir e; ln -s /etc e/.git", "e/.git"),
        ("mkdir -p .agents2; mkdir g; echo x > g/.git", "g/.git"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (exit, out, err) = run(jail(), guarded(script, folder.path()));
        assert!(exit.success(), "{script}: {out}{err}");
        assert_eq!(exit.guard_events, [aside(path)], "{script}");
        if path.starts_with("a/b") {
            let open = fs::Permissions::from_mode(0o755);
            fs::set_permissions(folder.path().join("a/b"), open).unwrap();
        }
        let there = |path: &str| fs::symlink_metadata(folder.path().join(path)).is_ok();
        assert!(
            !there(path) && there(&format!("{path}.moved-aside-1")),
            "{script}"
        );
    }
    // Existing files, and those that the host created under a cover, are kept.
    let folder = tempfile::tempdir().unwrap();
    for path in [".git", "sub/.git", "real/git"] {
        fs::create_dir_all(folder.path().join(path)).unwrap();
    }
    symlink("../real/git", folder.path().join("sub/link")).unwrap();
    fs::create_dir(folder.path().join("other")).unwrap();
    symlink("../real/git", folder.path().join("other/.git")).unwrap();
    let (exit, out, err) = run(jail(), guarded("echo x > sub/file", folder.path()));
    assert!(exit.success(), "{out}{err}");
    assert_eq!(exit.guard_events, []);
}

fn no_new_entries() {
    for (script, ends) in [
        ("mkdir modules/new; echo y > modules/old/y", true),
        (
            "echo y > modules/old/y; mkdir modules/new; while :; do sleep 0.01; done",
            false,
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("modules/old")).unwrap();
        fs::write(folder.path().join("modules/old/config"), "x").unwrap();
        let mut spec = line(script, folder.path());
        spec.mounts.guards = vec![
            PathGuard::no_new_entries("modules"),
            PathGuard::protect_file("modules/old/config"),
        ];
        let (exit, out, err) = run(jail(), spec);
        assert_eq!(exit.success(), ends, "{script}: {out}{err}");
        let names = fs::read_dir(folder.path().join("modules")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        let [new, old] = &names[..] else {
            panic!("{names:?}");
        };
        let number: u32 = new
            .strip_prefix("new.moved-aside-")
            .unwrap()
            .parse()
            .unwrap();
        assert!(number > 1_000_000, "{new}");
        assert_eq!(old, "old");
        assert!(folder.path().join("modules/old/y").exists(), "{script}");
        let to = PathBuf::from("modules").join(new);
        let path = PathBuf::from("modules/new");
        assert_eq!(exit.guard_events, [GuardEvent::MovedAside { path, to }]);
    }
}

fn unheld() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("bare")).unwrap();
    let script = "[ -z \"$(ls bare)\" ] && echo ../x > bare/commondir";
    let mut spec = line(script, folder.path());
    spec.mounts.guards = vec![PathGuard::protect_file("bare/commondir").without_placeholder()];
    let (exit, out, err) = run(jail(), spec);
    assert!(exit.success(), "{out}{err}");
    assert_eq!(exit.guard_events, [aside("bare/commondir")]);
}

fn flood() {
    let folder = tempfile::tempdir().unwrap();
    let script = "i=0; while :; do i=$((i + 1)); mkdir -p $i/.git; done";
    let (exit, _, _) = run(jail(), guarded(script, folder.path()));
    assert!(!exit.success() && !exit.timed_out, "{exit:?}");
    assert!(exit.guard_events.contains(&GuardEvent::TooMany));
    for entry in fs::read_dir(folder.path()).unwrap().flatten() {
        assert!(!entry.path().join(".git").exists(), "{entry:?}");
    }
}

fn socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d/ipc.sock");
    fs::create_dir(folder.path().join("d")).unwrap();
    let listener = UnixListener::bind(&path).unwrap();
    let script = "import os, socket, time
def refused():
    try:
        socket.socket(socket.AF_UNIX).connect('d/ipc.sock')
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
assert refused()
print('ready', flush=True)
while not (os.path.exists('go') and refused()):
    time.sleep(0.01)
own = socket.socket(socket.AF_UNIX)
own.bind('own.sock')
own.listen()
socket.socket(socket.AF_UNIX).connect('own.sock')";
    let mut spec = guarded("true", folder.path());
    spec.program = haft_sandbox::Program::Argv(["python3", "-c", script].map(Into::into).into());
    let mut again = None;
    let (exit, said) = beside(spec, || {
        fs::remove_file(&path).unwrap();
        again = Some(UnixListener::bind(&path).unwrap());
        fs::write(folder.path().join("go"), "").unwrap();
    });
    assert!(exit.success(), "{exit:?} {said}");
    assert!(!exit.escaped_a_guard());
    drop((listener, again));
}

fn approved() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = guarded(
        "mkdir -p d/.git/hooks; echo x > d/.git/config",
        folder.path(),
    );
    spec.mounts.writable = vec![PathBuf::from("d/.git")];
    let (exit, out, err) = run(jail(), spec);
    assert!(exit.success(), "{out}{err}");
    assert_eq!(exit.guard_events, []);
    assert!(folder.path().join("d/.git/config").exists());
}

/// A guarded link leads over another one, to the workspace itself or to a folder: only its end is hidden.
fn over_links() {
    for (over, to, end) in [
        ("loop", ".", "s"),
        ("d/loop", "..", "s"),
        ("loop", "d", "d/s"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("d")).unwrap();
        fs::create_dir_all(at(end)).unwrap();
        fs::write(at(end).join("k"), "secret").unwrap();
        symlink(to, at(over)).unwrap();
        symlink(format!("{over}/s"), at("secret")).unwrap();
        let script =
            format!("echo new > made && echo new > d/made && ! rm {over} && cat secret/k {end}/k");
        let mut spec = line(&script, folder.path());
        spec.mounts.guards = vec![PathGuard::hide_dir("secret"), PathGuard::hide_file(".env")];
        let (exit, out, err) = run(jail(), spec);
        let context = format!("{over} -> {to}: {exit:?} {out}{err}");
        assert!(exit.guard_events.is_empty() && out.is_empty(), "{context}");
        for made in ["made", "d/made"] {
            assert_eq!(fs::read_to_string(at(made)).unwrap(), "new\n", "{context}");
        }
    }
}

/// The host puts a folder where a guarded link leads over another one.
fn replaced_link() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("d/s")).unwrap();
    symlink("d", at("over")).unwrap();
    symlink("over/s", at("secret")).unwrap();
    let mut spec = line(
        "echo ready; while [ -h over ]; do sleep 0.01; done",
        folder.path(),
    );
    spec.mounts.guards = vec![PathGuard::hide_dir("secret")];
    let (exit, said) = beside(spec, || {
        fs::remove_file(at("over")).unwrap();
        fs::create_dir(at("over")).unwrap();
    });
    let of = |event: &GuardEvent| {
        let (GuardEvent::Replaced { path } | GuardEvent::Exposed { path }) = event else {
            return false;
        };
        path == Path::new("over")
    };
    assert!(exit.guard_events.iter().any(of), "{exit:?} {said}");
}

/// A link and what it leads to are guarded both, in whichever order.
fn linked() {
    for (place, link, further) in [
        ("vault", "secret", "v"),
        ("a", "z", "y"),
        ("vault", "secret", "a"),
        ("d/vault", "secret", "v"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at(place)).unwrap();
        fs::write(at(place).join("k"), "secret").unwrap();
        fs::write(at("file"), "secret").unwrap();
        for (to, name) in [(place, further), (further, link), ("file", ".env")] {
            symlink(to, at(name)).unwrap();
        }
        let script = format!("cat {place}/k {link}/k {further}/k file .env; rm {link}; ls {place}");
        let hide = [link, further, place].map(PathGuard::hide_dir);
        for guards in [&hide[..1], &hide[..2], &hide[..]] {
            let mut spec = line(&script, folder.path());
            spec.mounts.guards = guards.to_vec();
            spec.mounts.guards.push(PathGuard::hide_file(".env"));
            let (exit, out, err) = run(jail(), spec);
            assert!(exit.success() && out.is_empty(), "{script}: {out}{err}");
        }
    }
}
