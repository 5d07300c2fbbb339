//! No change is missed: where a call is judged more loosely under new rules, the comparison of the rules names a cause.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use crate::Policy;
use crate::profile::Profile;
use crate::rules::{RuleSet, RuleText};
use crate::tests::{Scene, builder, fetch, linked, read, run, served, tool, write};
use haft_types::permission::{Effect, PathClaim, Permission};
use haft_types::spec::{Risk, ToolClass};

const PATHS: &[&str] = &[
    "/src/**",
    "/src/*.rs",
    "/src/a.rs",
    "*.rs",
    "**",
    "**/a.rs",
    "src",
    "src/**",
    ".env",
    "/src/[a-b]*",
    "//home/dev/app/src/**",
    "//home/**",
    "//etc/**",
    "~/.ssh/**",
    "/src/*/b/**",
    "/",
    "?.rs",
    "/src",
    "/*/a.rs",
    "sub/src/**",
];
const WORDS: &[&str] = &[
    "git", "push", "ls", "rm", "a", "*", "-f", "cat", "src/a.rs", "find", "-delete", "sh", "-c",
    "timeout", "5", "sed", "-i",
];
const HOSTS: &[&str] = &[
    "a.org",
    "*.a.org",
    "x.a.org",
    "*",
    "*.org",
    "10.0.0.7",
    "localhost",
    "npm",
    "registry.npmjs.org",
];
const PORTS: &[&str] = &["", "", ":443", ":80", ":8443"];
const TOOLS: &[&str] = &[
    "write_file",
    "read_file",
    "run_command",
    "fetch_url",
    "a.b",
    "a.*",
    "*",
    "mcp__a__b",
    "delete_file",
    "other",
];

fn command() -> impl Strategy<Value = String> {
    prop::collection::vec(select(WORDS), 1..4).prop_map(|words| words.join(" "))
}

/// Rules of every kind. Those that do not load in a list are left out there.
fn rule() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => command().prop_map(|line| format!("Bash({line})")),
        2 => command().prop_map(|line| format!("Bash({line} *)")),
        1 => command().prop_map(|line| format!("run_command({line} *)")),
        4 => (select(vec!["Read", "Edit", "write_file", "read_file", "delete_file"]), select(PATHS)).prop_map(|(tool, path)| format!("{tool}({path})")),
        2 => (select(HOSTS), select(PORTS)).prop_map(|(host, port)| format!("Network({host}{port})")),
        1 => select(vec!["Network(private:a.org:443)", "Network(unix:/run/x.sock)", "Network(unix:/run/X.sock)", "Network(*.sock)"]).prop_map(str::to_owned),
        2 => (select(HOSTS), select(PORTS)).prop_map(|(host, port)| format!("WebFetch(domain:{host}{port})")),
        1 => select(vec!["Sign(git)", "Sign(https:a.org)", "Sign(https:*.org)", "Sign(ssh:*)", "Sign(ssh:a.org:22)"]).prop_map(str::to_owned),
        2 => request_rule(),
        1 => select(vec!["a.b(x: 1*, y: 1)", "a.b(x: *, y: *)", "a.*(x: 1, y: 1)", "a.b(x: 1, y: *, z: 1)"]).prop_map(str::to_owned),
        1 => select(vec!["Read", "Edit", "Bash", "WebFetch", "Network", "Sign"]).prop_map(str::to_owned),
        2 => select(TOOLS).prop_map(str::to_owned),
        2 => (select(TOOLS), select(vec!["x:1", "x:*", "x:1*", "y:1", "mode:a", "path:b", "cwd:x"])).prop_map(|(tool, param)| format!("{tool}({param})")),
    ]
}

/// Rules for some requests to a host.
fn request_rule() -> impl Strategy<Value = String> {
    let at = select(vec!["a.org", "*.org", "a.org:443", "a.org:8443", "*"]);
    let methods = select(vec!["GET", "*", "GET,POST", "POST"]);
    let path = select(vec![
        "/**", "/a/**", "/a/b", "/A/b/", "/a/*", "/**/b", "/a/b?x=1", "/a/*?x=*", "/a%2fb",
    ]);
    (any::<bool>(), at, methods, path).prop_map(|(fetches, at, methods, path)| {
        if fetches {
            format!("WebFetch(domain:{at}: {methods} {path})")
        } else {
            format!("Network({at}: {methods} {path})")
        }
    })
}

fn request() -> impl Strategy<Value = Scene> {
    let at = select(vec![
        ("a.org", "https://a.org"),
        ("a.org", "https://a.org:8443"),
        ("b.org", "http://b.org"),
    ]);
    let path = select(vec![
        "/",
        "/a",
        "/a/b",
        "/A/B",
        "/a/b/",
        "/a/b?x=1",
        "/a%2fb",
        "/a/../b",
        "/a/%252e%252e/b",
    ]);
    let class = select(vec![ToolClass::Network, ToolClass::WebFetch]);
    (
        at,
        path,
        select(vec![None, Some("GET"), Some("POST"), Some("get")]),
        class,
    )
        .prop_map(|((host, start), path, method, class)| {
            let effect = Effect::Connect {
                url: format!("{start}{path}"),
                host: host.to_owned(),
                method: method.map(str::to_owned),
                leads_to: Vec::new(),
            };
            with_effect(
                if class == ToolClass::Network {
                    "connect"
                } else {
                    "fetch_url"
                },
                Some(class),
                effect,
            )
        })
}

fn set() -> impl Strategy<Value = [Vec<(String, bool)>; 3]> {
    let list = |most| prop::collection::vec((rule(), prop::bool::weighted(0.15)), 0..most);
    (list(3), list(3), list(4)).prop_map(|(deny, ask, allow)| [deny, ask, allow])
}

/// A change of one rule.
#[derive(Debug, Clone)]
struct Edit {
    list: usize,
    at: prop::sample::Index,
    /// Whether a rule goes.
    removes: bool,
    /// The rule that comes, and where.
    adds: Option<(usize, (String, bool))>,
}

impl Edit {
    fn apply(self, set: &mut [Vec<(String, bool)>; 3]) {
        if self.removes && !set[self.list].is_empty() {
            let at = self.at.index(set[self.list].len());
            set[self.list].remove(at);
        }
        if let Some((list, rule)) = self.adds {
            set[list].push(rule);
        }
    }
}

fn edit() -> impl Strategy<Value = Edit> {
    let kept = prop::bool::weighted(0.15);
    let adds = prop::option::weighted(0.8, (0..3usize, (rule(), kept)));
    (0..3usize, any::<prop::sample::Index>(), any::<bool>(), adds).prop_map(
        |(list, at, removes, adds)| Edit {
            list,
            at,
            removes,
            adds,
        },
    )
}

fn loads(profile: Profile, set: &RuleSet) -> bool {
    builder(profile, set.clone()).build().is_ok()
}

/// Builds a policy of the rules that load.
fn of_set(profile: Profile, [deny, ask, allow]: &[Vec<(String, bool)>; 3]) -> Policy {
    let text = |(rule, kept): &(String, bool)| match kept {
        true => RuleText::new(rule.as_str()).kept_for("run_command", crate::tests::UNSTATED),
        false => RuleText::new(rule.as_str()),
    };
    let mut set = RuleSet::default();
    let mut add = |place: fn(&mut RuleSet) -> &mut Vec<RuleText>, text: RuleText| {
        place(&mut set).push(text);
        if !loads(profile, &set) {
            place(&mut set).pop();
        }
    };
    for one in deny {
        add(|set| &mut set.deny, RuleText::new(one.0.as_str()));
    }
    for one in ask {
        add(|set| &mut set.ask, RuleText::new(one.0.as_str()));
    }
    for one in allow {
        add(|set| &mut set.allow, text(one));
    }
    builder(profile, set.in_layer("test")).build().unwrap()
}

fn with_effect(name: &str, class: Option<ToolClass>, effect: Effect) -> Scene {
    let mut scene = tool(
        name,
        Risk::Safe,
        &json!({"x": 1}),
        vec![Permission {
            effect,
            risk: Risk::High,
        }],
    );
    scene.spec.class = class;
    scene
}

fn connection(place: &str) -> Scene {
    let host = if place.starts_with("unix:") {
        place
    } else {
        place.rsplit_once(':').map_or(place, |(host, _)| host)
    };
    with_effect(
        "connect",
        Some(ToolClass::Network),
        Effect::connect(place, host),
    )
}

fn path() -> impl Strategy<Value = String> {
    select(vec![
        "src/a.rs",
        "src/b",
        "src",
        ".",
        "a.rs",
        ".env",
        "src/x/b/c",
        "/etc/passwd",
        "/home/dev/.ssh/id",
        "/home/dev/app",
        "sub/src/a.rs",
        "src/x/.env",
        "b.rs",
    ])
    .prop_map(str::to_owned)
}

fn line() -> impl Strategy<Value = String> {
    let word = select(vec![
        "git",
        "push",
        "ls",
        "rm",
        "a",
        "-f",
        "cat",
        "src/a.rs",
        "find",
        ".",
        "-delete",
        "$x",
        "'a b'",
        "sh",
        "-c",
        "'rm a'",
        "timeout",
        "5",
        "xargs",
        "src",
        ".env",
        "*",
        "grep",
        "-r",
        "sed",
        "-i",
        "> src/b",
        "< .env",
        "A=1",
        "env",
        "&&",
        ";",
        "|",
        "cd",
        "$(git push)",
        "nice",
        "\"$x b\"",
        "< $x",
        "export",
    ]);
    prop::collection::vec(word, 1..6).prop_map(|words| words.join(" "))
}

fn scene() -> impl Strategy<Value = Scene> {
    prop_oneof![
        4 => line().prop_map(|line| run(&line)),
        2 => line().prop_map(|line| of_whole_line(&line)),
        2 => path().prop_map(|path| read(&path)),
        2 => path().prop_map(|path| write(&path)),
        1 => (path(), path()).prop_map(|(path, target)| tool("write_file", Risk::High, &json!({"mode": "a"}), vec![Permission::write(linked(&path, &target))])),
        1 => path().prop_map(|path| tool("delete_file", Risk::High, &json!({"path": "b"}), vec![Permission::remove(PathClaim::plain(path)).at(Risk::Critical)])),
        1 => select(vec!["a.org", "x.a.org", "a.org:8443", "b.org", "localhost:80", "10.0.0.7:443"]).prop_map(fetch),
        2 => select(vec!["a.org:443", "x.a.org:443", "a.org:8443", "10.0.0.7:443", "localhost:80", "registry.npmjs.org:443", "unix:/run/x.sock", "unix:/run/X.sock"]).prop_map(connection),
        2 => request(),
        1 => select(vec!["git", "https:a.org", "https:b.org", "ssh:a.org", "ssh:?", "ssh:a.org:2222"]).prop_map(|purpose| {
            with_effect("sign", Some(ToolClass::Sign), Effect::Sign { purpose: purpose.to_owned(), by: String::new() })
        }),
        1 => (select(vec!["a.b", "a.c", "other", "write_file", "b.b"]), select(vec![json!({"x": 1}), json!({"x": 12}), json!({"y": "1"}), json!({"x": 1, "y": 1}), json!({"x": 12, "y": 1, "z": 1}), json!({})])).prop_map(|(name, arguments)| served(name, &arguments)),
        1 => select(vec![None, Some(ToolClass::Read), Some(ToolClass::Edit), Some(ToolClass::Bash)]).prop_map(|class| {
            with_effect("other", class, Effect::Read(PathClaim::plain("src/a.rs")))
        }),
        1 => Just(with_effect("a.b", None, Effect::Other { kind: "k".to_owned(), value: "v".to_owned() })),
    ]
}

/// A call of a host's tool that states a line as one effect.
fn of_whole_line(line: &str) -> Scene {
    let effect = Effect::Run {
        command: line.to_owned(),
        argv: None,
        jailed: true,
        on_copy: false,
    };
    tool(
        "run_command",
        Risk::Safe,
        &json!({"command": line, "cwd": "x"}),
        vec![Permission {
            effect,
            risk: Risk::High,
        }],
    )
}

fn profile() -> impl Strategy<Value = Profile> {
    select(vec![
        Profile::Workspace,
        Profile::Workspace,
        Profile::Trusted,
        Profile::ReadOnly,
    ])
}

/// A call that is shown briefly.
#[derive(Clone)]
struct BriefScene(Scene);

impl std::fmt::Debug for BriefScene {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scene = &self.0;
        let (name, class) = (&scene.spec.name, scene.spec.class);
        let (arguments, wanted) = (&scene.arguments, &scene.permissions);
        write!(f, "{name} ({class:?}) {arguments} {wanted:?}")
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 3, max_shrink_iters: 4_000, ..ProptestConfig::default() })]
    #[test]
    fn a_call_that_is_judged_more_loosely_has_a_cause_among_the_differences(
        profile in profile(), old in set(), edits in prop::collection::vec(edit(), 1..3), scenes in prop::collection::vec(scene().prop_map(BriefScene), 16),
    ) {
        // Small changes: of large ones, something is always named.
        let mut new = old.clone();
        for edit in edits {
            edit.apply(&mut new);
        }
        let (old, new) = (of_set(profile, &old), of_set(profile, &new));
        let looser = old.looser_rules(&new);
        for scene in &scenes {
            let [before, after] = [&old, &new].map(|policy| policy.judge(&scene.0.call()).verdict);
            prop_assert!(
                after >= before || !looser.is_empty(),
                "{before} before, {after} now: {scene:?}\nold {:?}\nnew {:?}", old.rule_set(), new.rule_set()
            );
        }
    }

    #[test]
    fn what_a_pattern_allows_it_also_forbids(pattern in command(), more: bool, line in line()) {
        // A deny or ask rule takes from a new allow rule what its pattern would allow.
        use crate::rules::pattern::CommandPattern;
        use crate::rules::view::CommandView;
        let text = if more { format!("{pattern} *") } else { pattern };
        if let Ok(pattern) = CommandPattern::parse(&text) {
            let view = CommandView::new(&line, None);
            prop_assert!(!pattern.allows(&view) || pattern.forbids(&view), "{} {}", text, line);
        }
    }
}

/// Changes that one kind of effect alone shows: for all others, the new rules cover the old.
#[test]
fn each_kind_of_effect_counts_on_its_own() {
    let remove = |path: &str| {
        let permission = Permission::remove(PathClaim::plain(path)).at(Risk::High);
        tool("move_file", Risk::High, &json!({}), vec![permission])
    };
    let deny = |rules: &[&str]| [rules.join("\n"), String::new(), String::new()];
    let allow = |rules: &[&str]| [String::new(), String::new(), rules.join("\n")];
    for (old, new, scene) in [
        (
            deny(&["Read(/src/**)"]),
            deny(&["*(x:1)", "Read"]),
            write("src/a"),
        ),
        (
            deny(&["Edit(/src/**)"]),
            deny(&["write_file(/src/**)"]),
            run("sed -i d src/a"),
        ),
        (
            deny(&["Edit(/a/b/c)"]),
            deny(&["Edit(/*/b/c)"]),
            remove("a"),
        ),
        (
            deny(&["run_command"]),
            deny(&["run_command(**)"]),
            of_whole_line("A=1"),
        ),
        (
            allow(&["Read(**)"]),
            allow(&["Read(**)", "Read(.env)"]),
            read(".env"),
        ),
        (
            allow(&["Edit(**)"]),
            allow(&["Edit(**)", "Edit(.env)"]),
            write(".env"),
        ),
        (
            allow(&["Edit(/b/**)"]),
            allow(&["Edit(/b/**)", "delete_file(/b/**)"]),
            {
                let permission = Permission::remove(PathClaim::plain("b/c")).at(Risk::Critical);
                tool("delete_file", Risk::High, &json!({}), vec![permission])
            },
        ),
        (
            allow(&["run_command"]),
            allow(&["run_command", "run_command(cwd:x)"]),
            of_whole_line("sh -c 'rm a'"),
        ),
        (
            allow(&["Bash(find *)"]),
            allow(&["Bash(find *)", "Bash(find . -delete)"]),
            run("find . -delete"),
        ),
        (
            allow(&["Bash(ls)", "Bash(ls **)"]),
            allow(&["Bash(ls)", "Bash(ls **)", "Bash(ls *)"]),
            of_whole_line("ls; ls /x"),
        ),
        (
            allow(&["WebFetch(domain:a.org)"]),
            allow(&["WebFetch(domain:a.org)", "WebFetch(domain:a.org:8443)"]),
            fetch("a.org:8443"),
        ),
        (
            allow(&["Network(*)"]),
            allow(&["Network(*)", "Network(10.0.0.7:443)"]),
            connection("10.0.0.7:443"),
        ),
        (
            allow(&["Network(*)"]),
            allow(&["Network(*)", "Network(unix:/run/x.sock)"]),
            connection("unix:/run/x.sock"),
        ),
    ] {
        let [before, after] = [&old, &new].map(|lists| {
            let [deny, ask, allow] = lists;
            let each = |text: &String| text.lines().map(|rule| (rule.to_owned(), false)).collect();
            of_set(Profile::Workspace, &[each(deny), each(ask), each(allow)])
        });
        let verdicts = [&before, &after].map(|policy| policy.judge(&scene.call()).verdict);
        assert!(
            verdicts[1] < verdicts[0],
            "{old:?} {new:?} {verdicts:?} {:?}",
            BriefScene(scene)
        );
        let found = before.looser_rules(&after);
        assert!(!found.is_empty(), "{old:?} {new:?}");
    }
}
