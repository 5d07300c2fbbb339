//! The user's gpg-agent: it signs with the key that git names once the user agreed, and does nothing else.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haft::approval::Decision;
use haft::permission::Effect;
use haft::policy::{Policy, Profile, RuleSet};
use haft_builtins::command::{CommandNetwork, CommandSurroundings};
use haft_builtins::gpg_agent::GpgAgent;
use haft_builtins::proxy::{AllowList, Proxy};
use haft_sandbox::{Places, Sandbox};

use crate::agent::with_people_at;
use crate::ask::{allowing, with_people, yes};
use crate::{Scene, Seen};

pub(crate) async fn all(sandbox: &Sandbox) {
    let Some(user) = User::new() else {
        eprintln!("SKIPPED: no gpg, gpg-agent and gpgconf");
        return;
    };
    a_commit_is_signed_with_gpg_once_the_user_agreed(sandbox, &user).await;
    what_gpg_does_not_need_for_a_signature_is_forbidden(sandbox, &user).await;
    an_agent_that_does_not_answer_is_a_clear_error(sandbox, &user).await;
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test's gpg is a program of its own"
)]
fn program(name: &str) -> Command {
    Command::new(name)
}

/// Returns where a program lies, if it is installed.
fn installed(name: &str) -> Option<PathBuf> {
    let folders = ["/usr/bin", "/usr/local/bin", "/bin"].map(Path::new);
    let mut found = folders.iter().map(|folder| folder.join(name));
    found.find(|path| path.exists())
}

/// A user with a key that is in gpg's own folder alone.
struct User {
    home: tempfile::TempDir,
    print: String,
}

impl User {
    fn new() -> Option<Self> {
        installed("gpg-agent")?;
        installed("gpgconf")?;
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let mut made = program("gpg");
        made.args(["--batch", "--passphrase", "", "--quick-gen-key"])
            .args(["Ann <ann@example.com>", "ed25519", "cert,sign", "never"])
            .env("GNUPGHOME", home.path())
            .stderr(Stdio::null());
        assert!(made.status().ok()?.success());
        let mut user = Self {
            home,
            print: String::new(),
        };
        let listed = user.gpg(&["--with-colons", "--list-secret-keys"]);
        let print = listed.lines().find_map(|line| line.strip_prefix("fpr:"));
        print.unwrap().trim_matches(':').clone_into(&mut user.print);
        Some(user)
    }

    fn gpg(&self, words: &[&str]) -> String {
        let mut run = program("gpg");
        run.args(words)
            .env("GNUPGHOME", self.home.path())
            .stderr(Stdio::null());
        String::from_utf8(run.output().unwrap().stdout).unwrap()
    }

    fn variables(&self) -> Vec<(String, String)> {
        let home = self.home.path().display().to_string();
        vec![
            ("GNUPGHOME".into(), home),
            ("PATH".into(), "/usr/bin:/bin".into()),
        ]
    }

    fn agent(&self) -> GpgAgent {
        let [gpg, gpgconf] = ["gpg", "gpgconf"].map(|name| installed(name).unwrap());
        GpgAgent::new(gpg, gpgconf, self.variables(), Places::default())
    }

    /// Returns a scene whose repository names the key.
    fn scene(&self, sandbox: &Sandbox, agent: GpgAgent, rules: RuleSet) -> Scene {
        let policy = Policy::builder(Profile::Trusted).rules(rules);
        let around = CommandSurroundings {
            gpg: Some(agent),
            ..CommandSurroundings::default()
        };
        let network = CommandNetwork::ask(Proxy::new(AllowList::default()));
        let scene = Scene::surrounded(sandbox, network, policy.build().unwrap(), around);
        let git = |words: &[&str]| {
            let mut run = program("git");
            run.args(words).current_dir(scene.root());
            assert!(run.status().unwrap().success());
        };
        git(&["init", "-q"]);
        git(&["config", "user.signingkey", &self.print]);
        scene
    }

    fn allowed(&self) -> RuleSet {
        allowing(&[&format!("Sign(gpg:{})", self.print)])
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let mut end = program("gpgconf");
        end.args(["--kill", "gpg-agent"])
            .env("GNUPGHOME", self.home.path());
        // It ends with its folder, too.
        let _ = end.status();
    }
}

fn stdout(seen: &Seen) -> &str {
    seen.data["stdout"].as_str().unwrap_or_default()
}

async fn a_commit_is_signed_with_gpg_once_the_user_agreed(sandbox: &Sandbox, user: &User) {
    let work = format!(
        "cd $(mktemp -d) && git init -q -b main c && cd c && git config user.name a && git config user.email a@b && echo x > f && git add f && \
         git -c user.signingkey={print} commit -q -S -m one && git -c user.signingkey={print} tag -s -m v v1 && git bundle create -q - main v1 | base64 -w0",
        print = user.print
    );
    let (scene, mut requests) = with_people(user.scene(sandbox, user.agent(), RuleSet::default()));
    fs::write(scene.root().join("work.sh"), &work).unwrap();
    for (decided, works) in [(Decision::deny("ann", "test"), false), (yes(), true)] {
        let people = async {
            let pending = requests.next().await.unwrap();
            let request = pending.request();
            assert_eq!(request.tool.as_str(), "sign");
            assert!(request.arguments.contains("sh work.sh"), "{request:?}");
            let Effect::Sign { purpose, by } = &request.snapshot.permissions[0].effect else {
                panic!("{request:?}");
            };
            assert_eq!(*purpose, format!("gpg:{}", user.print));
            assert!(by.contains("(Ann <ann@example.com>) of gpg-agent"), "{by}");
            pending.decide(decided);
        };
        // One decision covers the commit and the tag.
        let seen = with_people_at(scene.line("sh work.sh"), people).await;
        if works {
            assert_signed(user, stdout(&seen));
        } else {
            assert!(!seen.ok, "{}", seen.shown);
            let refused = seen.data["network_refused"].to_string();
            assert!(refused.contains("signature for gpg:"), "{}", seen.shown);
        }
    }
    let ruled = user.scene(sandbox, user.agent(), user.allowed());
    fs::write(ruled.root().join("work.sh"), &work).unwrap();
    assert_signed(user, stdout(&ruled.line("sh work.sh").await));
    // The command has the public key, and its agent has no other.
    let seen = ruled
        .line("gpg --batch --list-secret-keys --with-colons; ls -A ~/.gnupg; ls /run/haft")
        .await;
    let out = stdout(&seen);
    assert!(out.contains(&user.print), "{}", seen.shown);
    assert!(out.contains("pubring.gpg"), "{}", seen.shown);
    assert!(!out.contains("private-keys"), "{}", seen.shown);
}

/// Checks the bundle's commit and tag with the user's own gpg.
fn assert_signed(user: &User, bundle: &str) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("bundle");
    fs::write(&at, STANDARD.decode(bundle.trim()).unwrap()).unwrap();
    let git = |words: &[&str]| {
        let mut run = program("git");
        run.args(words)
            .current_dir(folder.path())
            .env("GNUPGHOME", user.home.path())
            .stderr(Stdio::null());
        assert!(run.status().unwrap().success(), "{words:?}");
    };
    git(&["clone", "-q", "-b", "main", "bundle", "c"]);
    git(&["-C", "c", "verify-commit", "HEAD"]);
    git(&["-C", "c", "verify-tag", "v1"]);
}

/// Speaks with the agent line by line, and prints what it says.
const SAY: &str = "
import socket
def link():
    s = socket.socket(socket.AF_UNIX); s.settimeout(60); s.connect('/run/haft/gpg-agent'); f = s.makefile('rwb'); f.readline(); return f
def say(f, *lines):
    last = b''
    try:
        for line in lines:
            f.write((line.encode() if isinstance(line, str) else line) + b'\\n'); f.flush()
            last = f.readline()
            while last[:2] in (b'D ', b'S '): last = f.readline()
    except OSError: return 'closed'
    return last.decode().split(' <')[0].strip()[:20] or 'closed'
";

/// What an agent is asked for besides signatures, and what is no line of a client.
const FORBIDDEN: &[&str] = &[
    "EXPORT_KEY x",
    "IMPORT_KEY",
    "PKDECRYPT",
    "PKDECRYPT --kem=CMS",
    "GENKEY",
    "DELETE_KEY x",
    "PASSWD x",
    "GET_PASSPHRASE a b c d",
    "CLEAR_PASSPHRASE x",
    "PRESET_PASSPHRASE x -1 00",
    "LEARN",
    "SCD SERIALNO",
    "READKEY x",
    "KEYTOCARD x",
    "KEYWRAP_KEY --export",
    "GETINFO pid",
    "GETINFO socket_name",
    "GETEVENTCOUNTER",
    "KILLAGENT",
    "RELOADAGENT",
    "UPDATESTARTUPTTY",
    "MARKTRUSTED x",
    "PUTVAL a b",
    "OPTION s2k-count=1",
    "OPTION",
    "D x",
    "END",
    "CAN",
    "",
    "\\x00\\xff",
];

async fn what_gpg_does_not_need_for_a_signature_is_forbidden(sandbox: &Sandbox, user: &User) {
    let scene = user.scene(sandbox, user.agent(), user.allowed());
    let listed = user.gpg(&["--with-colons", "--with-keygrip", "--list-secret-keys"]);
    let grip = listed.lines().find_map(|line| line.strip_prefix("grp:"));
    let grip = grip.unwrap().trim_matches(':').to_owned();
    let say = |script: &str| {
        fs::write(scene.root().join("say.py"), format!("{SAY}{script}")).unwrap();
        scene.line("python3 say.py")
    };
    let lines: Vec<String> = FORBIDDEN.iter().map(|line| format!("'{line}'")).collect();
    let script = format!(
        "f = link()\nfor line in ({}): print(say(f, line))",
        lines.join(", ")
    );
    let seen = say(&script).await;
    let expect = "ERR 67109115 Forbidd\n".repeat(FORBIDDEN.len());
    assert_eq!(stdout(&seen), expect, "{}", seen.shown);
    let hash = "a".repeat(128);
    let rows = [
        (
            "say(link(), 'HAVEKEY ' + '00' * 20)".to_owned(),
            "ERR 67108881 No secr",
        ),
        (
            "say(link(), 'SIGKEY ' + '00' * 20)".to_owned(),
            "ERR 67108881 No secr",
        ),
        (
            "say(link(), 'KEYINFO --list')".to_owned(),
            "ERR 67108881 No secr",
        ),
        (format!("say(link(), 'HAVEKEY {grip}')"), "OK"),
        ("say(link(), 'PKSIGN')".to_owned(), "ERR 67109144 Paramet"),
        (
            format!("say(link(), 'SIGKEY {grip}', 'SETHASH 2 ' + 'a' * 40, 'PKSIGN')"),
            "ERR 67109144 Paramet",
        ),
        (
            format!("say(link(), 'SIGKEY {grip}', 'SETHASH 10 {hash}', 'RESET', 'PKSIGN')"),
            "ERR 67109144 Paramet",
        ),
        ("say(link(), b'x' * 5000)".to_owned(), "closed"),
        (
            format!("say(link(), 'SIGKEY {grip}', 'SETHASH 10 {hash}', 'PKSIGN')"),
            "OK",
        ),
        (
            format!(
                "sum(say(link(), 'SIGKEY {grip}', 'SETHASH 10 {hash}', 'PKSIGN') == 'OK' for _ in range(110))"
            ),
            "100",
        ),
    ];
    for (script, expect) in rows {
        let seen = say(&format!("print({script})")).await;
        assert_eq!(stdout(&seen).trim(), expect, "{script}: {}", seen.shown);
    }
}

/// An agent that says its version, and then nothing or questions.
const SILENT: &str = "
import socket, sys, threading
def serve(c, asks):
    f = c.makefile('rwb'); f.write(b'OK hi\\n'); f.flush()
    for line in f:
        word = line.split()[0]
        if word == b'GETINFO': f.write(b'D 2.2.40\\nOK\\n')
        elif word == b'PKSIGN' and not asks: continue
        elif word == b'PKSIGN': f.write(b'INQUIRE PASSPHRASE\\n'); f.flush(); f.write(b'ERR 67108963 ' + f.readline().strip() + b' was said\\n')
        else: f.write(b'OK\\n')
        f.flush()
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()
while True: threading.Thread(target=serve, args=(s.accept()[0], sys.argv[2] == 'asks'), daemon=True).start()
";

async fn an_agent_that_does_not_answer_is_a_clear_error(sandbox: &Sandbox, user: &User) {
    for (kind, expect) in [
        ("silent", "gpg-agent did not answer within 1 s"),
        ("asks", "gpg-agent did not sign: CAN was said"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mut agent = program("python3")
            .args(["-c", SILENT])
            .arg(at("socket"))
            .arg(kind)
            .spawn()
            .unwrap();
        while !at("socket").exists() {
            std::thread::yield_now();
        }
        let says = format!("#!/bin/sh\necho {}\n", at("socket").display());
        fs::write(at("gpgconf"), says).unwrap();
        fs::set_permissions(at("gpgconf"), fs::Permissions::from_mode(0o700)).unwrap();
        let silent = GpgAgent::new(
            installed("gpg").unwrap(),
            at("gpgconf"),
            user.variables(),
            Places::default(),
        );
        let silent = silent.with_patience(Duration::from_secs(1));
        let scene = user.scene(sandbox, silent, user.allowed());
        let seen = scene.line("echo x | gpg --batch -bsa").await;
        assert!(!seen.ok, "{kind}: {}", seen.shown);
        let refused = seen.data["network_refused"].to_string();
        assert!(refused.contains(expect), "{kind}: {}", seen.shown);
        // It is a child of this test.
        let _ = agent.kill();
        let _ = agent.wait();
    }
}
