//! Forty programs under `deny = ["Read(.env)", "Edit(/config/**)"]`: none reads the file or changes the folder.

use haft_builtins::command::changes::ChangeMode;
use haft_sandbox::Sandbox;

use crate::scene::{Scene, Settings};

const SECRET: &str = "TOP-SECRET";

/// Programs that print `.env`.
const READERS: &[&str] = &[
    "cat .env",
    "cat < .env",
    "head -c 100 .env",
    "tail .env",
    "grep -r SECRET .",
    "awk 1 .env",
    "sed -n p .env",
    "perl -pe 1 .env",
    "python3 -c 'print(open(\".env\").read())'",
    "python3 -c 'import os; print(os.read(os.open(\".env\", 0), 99))'",
    "bash -c 'while read -r l; do echo \"$l\"; done < .env'",
    "dd if=.env status=none",
    "cp .env copy; cat copy",
    "mv .env moved; cat moved",
    "ln .env hard; cat hard",
    "ln -s .env soft; cat soft",
    "tar cf - .env | tar xOf -",
    "od -c .env | tr -d ' '",
    "base64 .env | base64 -d",
    "sort .env",
    "find . -name '.e*' -exec cat {} +",
    "mkdir d; mv .env d/; cat d/.env",
    "cd /proc/self/cwd && cat .env",
    "cat other-name",
    "cat leads/../.env",
    "git hash-object -w --stdin < .env; git add -f .env; git show :.env",
];

/// Programs that change files in `config`.
const WRITERS: &[&str] = &[
    "echo x > config/app",
    "tee config/app < /dev/null",
    "sed -i s/app/x/ config/app",
    "perl -pi -e s/app/x/ config/app",
    "python3 -c 'open(\"config/app\", \"w\").write(\"x\")'",
    "python3 -c 'import os; os.truncate(\"config/app\", 0)'",
    "python3 -c 'import mmap; f = open(\"config/app\", \"r+b\"); m = mmap.mmap(f.fileno(), 0); m[0:1] = b\"x\"; m.flush()'",
    "dd if=/dev/zero of=config/app bs=1 count=1 conv=notrunc status=none",
    "truncate -s 0 config/app",
    "cp /etc/hostname config/app",
    "install /etc/hostname config/app",
    "rm -rf config",
    "mv config aside",
    "mv config aside; mkdir config; echo x > config/app",
    "ln -sf /etc/hostname config/app",
    "ln config/app hard; echo x > hard",
    "ln -s config link; echo x > link/app",
    "echo new > config/new",
    "mkdir config/folder",
    "chmod 600 config/app",
    "find config -type f -delete",
    "split -b 1 config/app config/part-",
    "sort -r -o config/app /etc/passwd",
    "exec 3<>config/app; echo x >&3",
    "git apply change.patch",
    "patch -p1 < change.patch",
];

const PATCH: &str = "--- a/config/app\n+++ b/config/app\n@@ -1 +1 @@\n-app\n+patched\n";

pub(crate) async fn all(sandbox: &Sandbox) {
    for mode in [ChangeMode::Copy, ChangeMode::Direct] {
        for line in READERS.iter().chain(WRITERS) {
            one(sandbox, mode, line).await;
        }
    }
    eprintln!("changes: {} programs: ok", READERS.len() + WRITERS.len());
}

async fn one(sandbox: &Sandbox, mode: ChangeMode, line: &str) {
    let settings = Settings {
        allow: &["Bash"],
        deny: &["Read(.env)", "Edit(/config/**)"],
        mode,
        ..Settings::default()
    };
    let scene = Scene::with(sandbox, &settings);
    scene.put(".env", SECRET);
    scene.put("config/app", "app\n");
    scene.put("change.patch", PATCH);
    scene.put("leads/x", "");
    std::fs::hard_link(scene.at(".env"), scene.at("other-name")).unwrap();
    let before = scene.tree();
    let outcome = scene.run(line).await;
    let shown = format!(
        "{mode:?} {line}: {}",
        serde_json::to_string(&outcome).unwrap()
    );
    let data = outcome.data.as_ref().map_or("", |data| data.get());
    assert!(!data.contains("SECRET"), "{shown}");
    let of_config = |tree: std::collections::BTreeMap<std::path::PathBuf, String>| {
        let guarded = |path: &std::path::Path| path.starts_with("config") || path.ends_with(".env");
        tree.into_iter()
            .filter(|(path, _)| guarded(path))
            .collect::<Vec<_>>()
    };
    let after = scene.tree();
    let told = after.values().filter(|text| text.contains(SECRET)).count();
    assert_eq!(told, 2, "{shown} {after:?}");
    assert_eq!(of_config(after), of_config(before), "{shown}");
}
