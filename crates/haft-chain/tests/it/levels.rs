//! The same scripts in other jails: with a separate interpreter for each, and without namespaces.

use haft::result::Status;
use haft_sandbox::code::CodeConfig;
use haft_sandbox::{Config, Strength};
use serde_json::json;

use crate::runner::Test;
use crate::scene::{Parts, Scene, made, pretty, trace, value, wait};

pub(crate) const TESTS: &[Test] = &[
    ("scripts_run_without_a_zygote", fresh),
    ("scripts_run_without_namespaces", without_namespaces),
];

/// Checks calls, files, media, a timeout and a crash.
fn check(config: &Config, code: &CodeConfig, strength: &str) {
    let engine = made(config.clone(), code.clone());
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("workspace");
    let scene = || {
        Scene::of(Parts {
            engine: engine.clone(),
            folder: Some(folder.clone()),
            ..Parts::default()
        })
    };
    let code = "import asyncio\nr = tools.picture(bytes='abc')\nopen('f', 'w').write(open(r.files[0].path).read())\nx = await asyncio.gather(*[tools.together(n=n) for n in range(3)])\nprint('said')\n[y.data['n'] for y in x]";
    let outcome = wait(scene().chain(code));
    assert_eq!(value(&outcome), json!([0, 1, 2]), "{}", pretty(&outcome));
    assert_eq!(
        (outcome.text().as_str(), outcome.strength.as_deref()),
        ("said\n", Some(strength))
    );
    let outcome = wait(scene().chain("[open('f').read(), tools.echo(a=1).data]"));
    assert_eq!(
        value(&outcome),
        json!(["abc", {"a": 1}]),
        "{}",
        pretty(&outcome)
    );
    let late =
        json!({"code": "open('late', 'w').write('x')\nwhile True:\n    pass", "timeout_s": 1});
    let outcome = wait(scene().chain_with(late));
    assert_eq!(outcome.status, Status::Timeout, "{}", pretty(&outcome));
    assert_eq!(std::fs::read_to_string(folder.join("late")).unwrap(), "x");
    let outcome = wait(scene().chain("tools.echo(a=1)\nimport os\nos._exit(1)"));
    assert_eq!(trace(&outcome), ["echo:ok"], "{}", pretty(&outcome));
    assert!(outcome.error.is_some());
    wait(engine.jail().shut_down());
}

fn fresh() {
    let code = CodeConfig {
        force_fresh: true,
        ..CodeConfig::default()
    };
    check(&Config::default(), &code, "full");
}

fn without_namespaces() {
    let config = Config {
        require: Strength::LandlockSeccomp,
        at_most: Some(Strength::LandlockSeccomp),
        ..Config::default()
    };
    check(&config, &CodeConfig::default(), "landlock+seccomp");
}
