//! Lists of secret names: an entry more never lets more be read, and the comparison of policies knows what a rule opens under one.

use haft_files::secret_names::SecretNames;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::*;

fn under(names: &[&str], rules: &[&str]) -> Policy {
    let lists = Lists {
        allow: rules,
        ..Lists::default()
    };
    let mut builder = builder(Profile::Workspace, lists.set());
    builder.secrets.names = SecretNames::default().with(names.iter().copied()).unwrap();
    builder.build().unwrap()
}

#[test]
fn a_rule_opens_a_path_only_if_it_names_every_entry_by_which_it_is_secret() {
    for (names, rule, path, expect) in [
        // Beside an entry that the rule names stands the built-in list, and the other way around.
        (&["conf/"][..], "Read(conf/**)", "conf/.env", ASK),
        (&["conf/"], "Read(conf/*)", "conf/.env", ASK),
        (&["conf/.*"], "Read(conf/.*)", "conf/.env", ASK),
        (&["*.yml"], "Read(*.yml)", "credentials.yml", ASK),
        (&["conf/"], "Read(.env)", "conf/.env", ASK),
        (&["conf/"], "Read(conf/.env)", "conf/.env", ALLOW),
        (&["conf/"], "Read(/conf/**/.env)", "conf/x/.env", ALLOW),
        (&["conf/"], "Read(conf/**)", "conf/a.txt", ALLOW),
        (&["conf/"], "Read(conf/*)", "conf/a.txt", ALLOW),
        (&["conf/"], "Read(**)", "conf/a.txt", ASK),
        (&["*.yml"], "Read(*.yml)", "a.yml", ALLOW),
        (&["*.token"], "Read(**/*.token)", "a/b.token", ALLOW),
        // Of two added entries, too.
        (&["conf/", "*.yml"], "Read(conf/**)", "conf/a.yml", ASK),
        (&["conf/", "*.yml"], "Read(*.yml)", "conf/a.yml", ASK),
        (&["conf/", "*.yml"], "Read(conf/*.yml)", "conf/a.yml", ALLOW),
        // What a later entry exempts is no secret by the ones before it.
        (&["!.env", "conf/"], "Read(conf/**)", "conf/.env", ALLOW),
        (&["conf/", "!conf/.env"], "Read(**)", "conf/.env", ALLOW),
        (&["!.env", ".env"], "Read(.env)", ".env", ALLOW),
        (&["!.env", ".env"], "Read(.*)", ".env", ASK),
    ] {
        let policy = under(names, &[rule]);
        let verdict = policy.judge(&read(path).call()).verdict;
        assert_eq!(verdict, expect, "{names:?} {rule} {path}");
        let hidden = policy.denials().denies_reading(path);
        assert_eq!(hidden, expect == ASK, "{names:?} {rule} {path}");
    }
}

#[test]
fn a_folder_of_secrets_stays_hidden_from_programs_until_a_rule_names_all_its_causes() {
    for (names, rule, folder, hidden) in [
        (&[][..], "Read(.ssh/**)", ".ssh", false),
        (&[], "Read(keys/**)", ".ssh", true),
        (&["keys/"], "Read(keys/**)", "keys", false),
        (&["keys/"], "Read(keys/.ssh/**)", "keys/.ssh", false),
        (&["keys/"], "Read(keys/**)", "keys/.ssh", true),
        (&["keys/"], "Read(.ssh/**)", "keys/.ssh", true),
    ] {
        let denials = under(names, &[rule]).denials();
        let found = denials.denies_reading_folder(folder);
        assert_eq!(found, hidden, "{names:?} {rule} {folder}");
    }
}

#[test]
fn a_list_with_more_names_is_not_looser_and_what_a_rule_opens_under_it_is_known() {
    let found = |old: (&[&str], &[&str]), new: (&[&str], &[&str])| {
        let (old, new) = (under(old.0, old.1), under(new.0, new.1));
        old.looser_rules(&new).len()
    };
    let conf = &["conf/"][..];
    for (old, new, expect) in [
        (
            (&[][..], &["Read(conf/**)"][..]),
            (conf, &["Read(conf/**)"][..]),
            0,
        ),
        (
            (conf, &["Read(**)"]),
            (conf, &["Read(**)", "Read(conf/**)"]),
            1,
        ),
        // Both open the same names, so that the narrower rule adds nothing; a rule that names one cause more does.
        (
            (conf, &["Read(conf/**)"]),
            (conf, &["Read(conf/**)", "Read(conf/a/**)"]),
            0,
        ),
        (
            (conf, &["Read(conf/**)"]),
            (conf, &["Read(conf/**)", "Read(conf/.env)"]),
            1,
        ),
        (
            (conf, &["Read(conf/.env)"]),
            (conf, &["Read(conf/.env)", "Read(/conf/.env)"]),
            0,
        ),
        (
            (conf, &["Read(.env)"]),
            (conf, &["Read(.env)", "Read(conf/.env)"]),
            1,
        ),
        (
            (&[], &["Read(.env)"]),
            (&[], &["Read(.env)", "Read(conf/.env)"]),
            0,
        ),
    ] {
        assert_eq!(found(old, new), expect, "{old:?} {new:?}");
    }
}

const ENTRIES: &[&str] = &[
    "conf/",
    "/conf/",
    "conf/.*",
    "conf/a.*",
    "*.yml",
    "*.txt",
    ".env",
    ".env.*",
    "a*",
    "x",
    "keys/",
    "conf/keys/",
    "!conf/",
    "!.env",
    "!*.yml",
    "!keys/",
    "!/conf/a*",
];
const RULES: &[&str] = &[
    "Read(conf/**)",
    "Read(/conf/*)",
    "Read(conf/.*)",
    "Read(*.yml)",
    "Read(**)",
    "Read(.env)",
    "Read(.env*)",
    "Read(conf/keys/**)",
    "Read(**/keys/**)",
    "Read(/conf/**/.env)",
    "Read(a*)",
    "Read(conf/a.*)",
    "Read(*)",
    "Read(.ssh/**)",
    "read_file(conf/**)",
    "Read(*.pem)",
    "Read(//home/dev/app/conf/**)",
    "Edit(conf/**)",
    "Read(x)",
    "Read(conf/a.txt)",
    "Read(keys/*.pem)",
];
const PATHS: &[&str] = &[
    "conf/.env",
    "conf/a.txt",
    "conf/a.yml",
    "conf/credentials.yml",
    "credentials.yml",
    ".env",
    ".env.local",
    "conf/keys/k.pem",
    "keys/k.pem",
    "keys/.env",
    "x/conf/.env",
    "conf/x",
    ".ssh/id_rsa",
    "conf/.ssh/config",
    "a.yml",
    "conf/.env.bak",
    "keys/x/a.pem",
    "/etc/conf/.env",
    "conf",
];

/// Returns what a call and a program may read.
fn readable(policy: &Policy) -> Vec<(&'static str, &'static str)> {
    let (mut found, denials) = (Vec::new(), policy.denials());
    for path in PATHS {
        for (how, open) in [
            ("read", policy.judge(&read(path).call()).verdict == ALLOW),
            (
                "written",
                policy.judge(&write(path).call()).verdict == ALLOW,
            ),
            ("seen", !denials.denies_reading(path)),
            ("listed", !denials.denies_reading_folder(path)),
        ] {
            found.extend(Some((how, *path)).filter(|_| open));
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]

    #[test]
    fn an_entry_more_lets_nothing_more_be_read_wherever_it_stands(
        names in prop::collection::vec(select(ENTRIES), 0..5), at: prop::sample::Index, more in select(ENTRIES), rules in subsequence(RULES, 0..5),
    ) {
        let mut longer = names.clone();
        longer.insert(at.index(names.len() + 1), more);
        // An exemption is the reverse.
        let (tighter, looser) = if more.starts_with('!') { (&names, &longer) } else { (&longer, &names) };
        let [few, many] = [tighter, looser].map(|names| readable(&under(names, &rules)));
        for one in few {
            prop_assert!(many.contains(&one), "{one:?} by {rules:?} under {tighter:?}, and not under {looser:?}");
        }
    }

    #[test]
    fn what_a_new_rule_opens_under_a_list_has_a_cause_among_the_differences(
        names in prop::collection::vec(select(ENTRIES), 0..4), old in subsequence(RULES, 0..4), new in subsequence(RULES, 1..4),
    ) {
        let new = [&old[..], &new].concat();
        let policies = [&old, &new].map(|rules| under(&names, rules));
        let [before, after] = [0, 1].map(|at| readable(&policies[at]));
        // A folder is hidden as a whole only where no rule can be about something in it: that opens nothing.
        let is_file = |one: &&(&str, &str)| one.0 != "listed";
        let opened: Vec<_> = after.iter().filter(is_file).filter(|one| !before.contains(one)).collect();
        let known = policies[0].looser_rules(&policies[1]);
        prop_assert!(opened.is_empty() || !known.is_empty(), "{opened:?} by {new:?} after {old:?} under {names:?}");
    }
}
