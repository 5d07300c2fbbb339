//! A zygote's imports are confined like a command, before it has created any child.

use haft_sandbox::code::{CodeConfig, CodeJail, LibrarySet};
use haft_sandbox::{Config, Sandbox, Strength};

use crate::runner::Test;
use crate::runtime;
use crate::scripts::{ATTEMPTS, run};

const IMPORTED: &str = include_str!("scripts/zygote.py");

pub(crate) const TESTS: &[Test] = &[
    ("j1_code_that_a_zygote_imports_gets_through_nothing", || {
        imported(Strength::Full);
        imported(Strength::NoProc);
    }),
    ("j1_nor_where_there_are_no_namespaces", || {
        imported(Strength::LandlockSeccomp);
    }),
];

fn imported(strength: Strength) {
    let secret = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(secret.path(), open).unwrap();
    let folder = match strength {
        Strength::LandlockSeccomp => "/tmp",
        _ => "/workspace",
    };
    let path = secret.path().display();
    let runtime_source =
        format!("FOLDER = {folder:?}\nVICTIM = SECRET = '{path}'\n{ATTEMPTS}\n{IMPORTED}");
    let sandbox = Sandbox::new(Config {
        require: strength,
        at_most: Some(strength),
        ..Config::default()
    });
    let config = CodeConfig {
        runtime: runtime_source.into(),
        ..CodeConfig::default()
    };
    let code = CodeJail::new(&sandbox, config);
    runtime().block_on(async {
        let probe = code.probe().await;
        assert!(probe.zygote, "{probe:?}");
        let script = code.take(LibrarySet::Plain).await.unwrap();
        assert_eq!(run(&script, "-").await, "[]", "{strength}");
        code.shut_down().await;
    });
    assert!(secret.path().exists());
}
