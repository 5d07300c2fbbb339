//! Rows 1 to 54 as attempted by scripts in a locked Python: by a zygote's child at every level, and by a fresh interpreter.
//!
//! The attempts are functions of `scripts/attempts.py`; one succeeds if it was stopped.

mod known;

use std::collections::BTreeSet;
use std::time::Duration;

use haft_sandbox::code::{CodeConfig, CodeJail, LibrarySet, Script};
use haft_sandbox::{Config, Sandbox, Strength};

use self::known::KNOWN;
use crate::runner::Test;
use crate::runtime;

pub(crate) const ATTEMPTS: &str = include_str!("scripts/attempts.py");
pub(crate) const RUNTIME: &str = include_str!("scripts/runtime.py");

pub(crate) const TESTS: &[Test] = &[
    ("scripts_at_full_strength_get_through_nothing", || {
        every(Setting::Full);
    }),
    ("scripts_without_proc_get_through_nothing", || {
        every(Setting::NoProc);
    }),
    ("scripts_without_namespaces_get_through_nothing", || {
        every(Setting::Bare);
    }),
    ("scripts_of_a_fresh_interpreter_get_through_nothing", || {
        every(Setting::Fresh);
    }),
    ("scripts_of_every_attempt_are_in_the_table", complete),
    ("scripts_get_through_without_the_jail", without),
    ("scripts_13_see_nothing_of_an_earlier_one", || {
        apart(Setting::Full);
        apart(Setting::Bare);
    }),
    ("scripts_differ_in_what_is_random", differ),
];

/// The kind of jail in which an attempt is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    Full,
    NoProc,
    Bare,
    Fresh,
}

/// The required result of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Must {
    /// It is refused everywhere.
    Stop,
    /// It ends the script.
    Die,
    /// It is refused, or ends a script whose interpreter is executed under the locks: anything that it
    /// executes is under them too.
    StopOrDie,
    /// It is limited if the script has its own file systems.
    StopInOwnRoot,
    /// It is limited by the number of threads at this level, elsewhere by memory.
    StopAtFull,
}

const ROWS: &[(&str, Must)] = &[
    ("row_1_users", Must::Stop),
    ("row_2_homes", Must::Stop),
    ("row_3_root", Must::Stop),
    ("row_4_system_is_not_written", Must::Stop),
    ("row_5_devices", Must::Stop),
    ("row_6_dots_and_links", Must::Stop),
    ("row_7_hard_links_and_renames", Must::Stop),
    ("j15_no_lock_of_the_hosts_files", Must::Stop),
    ("row_8_proc_links", Must::Stop),
    ("row_9_no_descriptor_is_left", Must::Stop),
    ("row_10_no_descriptor_is_sent", Must::Stop),
    ("row_11_files_by_handle", Must::Stop),
    ("row_12_mounts", Must::Stop),
    ("row_16_no_set_id_file", Must::Stop),
    ("row_17_to_22_and_25_no_socket", Must::Stop),
    ("row_19_no_name_is_looked_up", Must::Stop),
    ("row_20_21_a_pair_reaches_no_name", Must::Stop),
    ("row_23_no_uring", Must::Stop),
    ("row_24_no_other_network", Must::Stop),
    ("row_27_no_process", Must::Stop),
    ("row_27_no_program", Must::StopOrDie),
    ("row_28_no_signal", Must::Stop),
    ("row_29_no_memory_of_others", Must::Stop),
    ("row_31_no_session", Must::Stop),
    ("row_32_no_terminal", Must::Stop),
    ("row_33_no_survival", Must::Stop),
    ("row_34_proc_is_not_written", Must::Stop),
    ("row_35_paths_are_not_ours", Must::Stop),
    ("row_36_no_secret", Must::Stop),
    ("row_37_no_namespace", Must::Stop),
    (
        "row_38_to_41_no_program_fault_handler_key_or_counter",
        Must::Stop,
    ),
    ("row_42_x32_kills", Must::Die),
    ("row_42_i386_kills", Must::Die),
    ("row_43_clone3_is_absent", Must::Stop),
    ("row_44_every_other_call", Must::Stop),
    ("row_45_every_request", Must::Stop),
    ("row_46_no_machine", Must::Stop),
    ("row_47_no_program_in_memory", Must::Stop),
    ("row_aj13_memory_that_is_mapped_no_longer", Must::Stop),
    ("row_49_much_memory_at_once", Must::Stop),
    ("row_50_much_memory_slowly", Must::Stop),
    ("row_51_a_full_folder", Must::StopInOwnRoot),
    ("row_52_one_large_file", Must::Stop),
    ("row_53_many_descriptors", Must::Stop),
    ("row_aj8_the_limit_on_core_files", Must::Stop),
    ("row_54_many_threads", Must::StopAtFull),
    ("row_58_many_files", Must::StopInOwnRoot),
    ("no_limit_is_raised", Must::Stop),
    ("what_scripts_need_works", Must::Stop),
];

/// Returns a jail with this setting, whose strength the machine must provide.
pub(crate) fn jail(setting: Setting) -> CodeJail {
    let strength = match setting {
        Setting::Full | Setting::Fresh => Strength::Full,
        Setting::NoProc => Strength::NoProc,
        Setting::Bare => Strength::LandlockSeccomp,
    };
    let sandbox = Sandbox::new(Config {
        require: strength,
        at_most: Some(strength),
        ..Config::default()
    });
    let config = CodeConfig {
        runtime: RUNTIME.into(),
        force_fresh: setting == Setting::Fresh,
        ..CodeConfig::default()
    };
    CodeJail::new(&sandbox, config)
}

pub(crate) async fn take(jail: &CodeJail) -> Script {
    let script = jail.take(LibrarySet::Plain).await;
    script.unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a source; returns the script's message, empty if it died.
pub(crate) async fn run(script: &Script, source: &str) -> String {
    script.send(source.as_bytes()).await.unwrap();
    let mut frame = vec![0; 1 << 16];
    let said = tokio::time::timeout(Duration::from_secs(60), script.recv(&mut frame)).await;
    let length = said.unwrap().unwrap();
    String::from_utf8_lossy(&frame[..length]).into_owned()
}

/// Makes all attempts in one setting, and lists those that succeeded.
fn every(setting: Setting) {
    let known = format!("KNOWN_CALLS = {KNOWN:?}");
    let victim = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(victim.path(), open).unwrap();
    let wrong = runtime().block_on(async {
        let jail = jail(setting);
        let probe = jail.probe().await;
        assert_eq!(probe.zygote, setting != Setting::Fresh, "{probe:?}");
        let mut wrong = Vec::new();
        for (name, must) in ROWS {
            let own_root = setting != Setting::Bare;
            let root = rustix::process::getuid().is_root();
            let full = matches!(setting, Setting::Full | Setting::Fresh);
            let (must, words) = match must {
                Must::StopInOwnRoot if !own_root => continue,
                // Without its own count, the threads of the user are counted; root's are not.
                Must::StopAtFull if !full && root => continue,
                Must::StopAtFull if !full => (Must::Stop, "4096"),
                Must::StopOrDie if setting == Setting::Fresh => (Must::Die, ""),
                Must::Die => (Must::Die, ""),
                _ => (Must::Stop, ""),
            };
            let script = take(&jail).await;
            let source = format!(
                "{ATTEMPTS}\n{known}\nVICTIM = {:?}\n{name}({words})\n",
                victim.path().display().to_string()
            );
            let mut said = run(&script, &source).await;
            if said.starts_with('[') {
                // It sent a message before.
                let mut frame = [0; 4096];
                let length = script.recv(&mut frame).await.unwrap();
                said = String::from_utf8_lossy(&frame[..length]).into_owned();
            }
            let right = match must {
                Must::Die => said.is_empty(),
                _ => said == "done",
            };
            if !right {
                wrong.push(format!("{name}: {said:?}"));
            }
        }
        jail.shut_down().await;
        wrong
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn complete() {
    let functions: BTreeSet<_> = ATTEMPTS
        .lines()
        .filter_map(|line| line.strip_prefix("def ")?.split('(').next())
        .filter(|name| !["through", "refused", "raw", "denied", "executable"].contains(name))
        .collect();
    let rows: BTreeSet<_> = ROWS.iter().map(|(name, _)| *name).collect();
    assert_eq!(functions, rows);
}

/// Without a jail, the same attempts by a Python must succeed, or they would never succeed.
fn without() {
    let sandbox = Sandbox::new(Config {
        backend: haft_sandbox::Backend::Passthrough,
        require: haft_sandbox::Strength::None,
        ..Config::default()
    });
    for name in [
        "row_1_users",
        "row_3_root",
        "row_6_dots_and_links",
        "row_8_proc_links",
        "row_10_no_descriptor_is_sent",
        "row_16_no_set_id_file",
        "row_17_to_22_and_25_no_socket",
        "row_20_21_a_pair_reaches_no_name",
        "row_27_no_process",
        "row_31_no_session",
        "row_33_no_survival",
        "row_36_no_secret",
        "row_47_no_program_in_memory",
        "row_51_a_full_folder",
        "row_53_many_descriptors",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let source = format!(
            "FOLDER = {:?}\n{ATTEMPTS}\nLINK = socket.socketpair()[0]\n{name}()\n",
            folder.path().display().to_string()
        );
        let spec = haft_sandbox::CommandSpec::argv(["/usr/bin/python3", "-c", &source], "/")
            .with_env("SECRET", "x");
        let exit = runtime().block_on(async { sandbox.start(spec).await.unwrap().wait().await });
        assert_eq!(exit.code, Some(1), "{name}");
    }
}

fn apart(setting: Setting) {
    runtime().block_on(async {
        let jail = jail(setting);
        let leave = "import os, sys, builtins\n\
                     for at in (FOLDER, '/tmp'):\n    \
                         try: open(at + '/left', 'w').write('x')\n    \
                         except OSError: pass\n\
                     sys.left = builtins.left = 1\n\
                     os.environ['LEFT'] = '1'\n";
        let look = "import os, sys, builtins\n\
                    assert os.listdir(FOLDER) == [], os.listdir(FOLDER)\n\
                    assert not os.path.exists('/tmp/left')\n\
                    assert not hasattr(sys, 'left') and not hasattr(builtins, 'left')\n\
                    assert 'LEFT' not in os.environ\n";
        let first = take(&jail).await;
        assert_eq!(run(&first, leave).await, "done");
        // While the first one is alive, and afterwards.
        assert_eq!(run(&take(&jail).await, look).await, "done");
        drop(first);
        assert_eq!(run(&take(&jail).await, look).await, "done");
        jail.shut_down().await;
    });
}

fn differ() {
    runtime().block_on(async {
        let jail = jail(Setting::Full);
        let source = "import random, uuid, secrets, tempfile\n\
                      LINK.send(repr([random.random(), uuid.uuid4(), uuid.getnode(),\n\
                          secrets.token_hex(), tempfile.mktemp()]).encode())";
        let (one, other) = (take(&jail).await, take(&jail).await);
        let (one, other) = (run(&one, source).await, run(&other, source).await);
        for (one, other) in one.split(", ").zip(other.split(", ")) {
            assert_ne!(one, other);
        }
        assert!(one.starts_with('['), "{one}");
        jail.shut_down().await;
    });
}
