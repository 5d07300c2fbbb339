//! Adds tables to TOML as users write it, and removes them.

use super::{EditError, MAX_BYTES, parse, put_table, remove};
use crate::launch::Launch;

const KEPT: &str = "# mine\nmodel = \"o\" # why\n\n[mcp_servers.docs]\ncommand = 'x'\n\n# note\n[tui]\nx = \"\"\"\n[mcp_servers.haft]\n\"\"\"\n";

fn launch(command: &str) -> Launch {
    Launch {
        command: command.into(),
        args: vec!["serve".into(), "--workspace".into(), "/a \"b\"".into()],
    }
}

fn put(text: &str, servers: &str, name: &str, launch: &Launch) -> Result<String, EditError> {
    put_table(text, servers, name, &launch.to_toml(servers, name))
}

#[test]
fn what_is_put_in_is_taken_out_again() {
    for text in [
        "",
        "\n",
        "model = \"o\"\n",
        "[a]\nb = 1\n",
        "n = nan\n",
        KEPT,
    ] {
        let with = put(text, "mcp_servers", "haft", &launch("/bin/haft")).unwrap();
        assert!(with.starts_with(text.trim_end()), "{with}");
        let twice = put(&with, "mcp_servers", "haft", &launch("/opt/haft")).unwrap();
        assert!(
            twice.contains("/opt/haft") && !twice.contains("/bin/haft"),
            "{twice}"
        );
        let without = remove(&twice, "mcp_servers", "haft").unwrap().unwrap();
        assert_eq!(without.trim_end(), text.trim_end());
    }
}

#[test]
fn tables_below_go_and_comments_of_the_next_table_stay() {
    let text = "[mcp_servers.haft]\ncommand = \"a\"\n[mcp_servers.haft.env]\nX = \"1\"\n\n# of the next\n[mcp_servers.\"other one\"]\ncommand = \"b\"\n";
    let without = remove(text, "mcp_servers", "haft").unwrap().unwrap();
    assert_eq!(
        without,
        "\n# of the next\n[mcp_servers.\"other one\"]\ncommand = \"b\"\n"
    );
    assert_eq!(remove(&without, "mcp_servers", "haft").unwrap(), None);
}

#[test]
fn a_table_below_another_one_is_put_in_and_taken_out() {
    let own = "[mcp.servers.docs]\ncommand = \"x\"\n";
    for text in [
        "",
        "# mine\n[mcp]\ntrusted_clients = [\"a\"] # why\n",
        "[mcp.servers.other]\nurl = \"https://x\"\n\n# of the next\n[policy]\nask = []\n",
    ] {
        let with = put_table(text, "mcp.servers", "docs", own).unwrap();
        assert!(with.starts_with(text) && with.ends_with(own), "{with}");
        let with = format!("{with}[mcp.servers.docs.sandbox]\nnetwork = \"host\"\n");
        let without = remove(&with, "mcp.servers", "docs").unwrap().unwrap();
        assert_eq!(without.trim_end(), text.trim_end());
        assert_eq!(remove(&without, "mcp.servers", "docs").unwrap(), None);
    }
    let inline = "mcp = { servers = { docs = { command = \"x\" } } }\n";
    assert!(remove(inline, "mcp.servers", "docs").is_err());
    assert!(
        put_table(
            inline,
            "mcp.servers",
            "more",
            "[mcp.servers.more]\nurl = \"u\"\n"
        )
        .is_err()
    );
}

#[test]
fn what_is_not_written_as_tables_is_refused() {
    for text in [
        "mcp_servers = { haft = { command = \"a\" } }\n",
        "mcp_servers.haft.command = \"a\"\n",
        "[mcp_servers]\nhaft = { command = \"a\" }\n",
    ] {
        assert!(remove(text, "mcp_servers", "haft").is_err(), "{text}");
    }
    let inline = "mcp_servers = {}\n";
    assert!(put(inline, "mcp_servers", "haft", &launch("/bin/haft")).is_err());
    let broken = put("a = \n", "mcp_servers", "haft", &launch("x")).unwrap_err();
    assert_eq!(broken.at.unwrap().start, 4);
}

#[test]
fn an_edit_keeps_every_other_byte_of_odd_files() {
    let own = "[mcp.servers.haft]\ncommand = \"h\"\n";
    let rows = [
        // A byte order mark, alone and before a header.
        "\u{feff}",
        "\u{feff}[a]\nx = 1\n",
        // CRLF, also in a string of several lines.
        "# c\r\n[a]\r\nx = 1 # t\r\n",
        "[a]\r\nx = \"\"\"\r\n[mcp.servers.haft]\r\n# no\r\n\"\"\"\r\n",
        // Spaces in and before headers, quoted names, dotted keys, inline tables, lists of tables.
        "  [ a . \"b c\" ] # t\nd.e.f = 1\ng = { h = [ 1,\n 2 ] }\n[[l]]\n[[l.m]]\nx = 1\n",
        "[mcp.servers.docs]\n[[mcp.servers.docs.list]]\nx = [\n  1, # c\n]\n",
        // Tables out of order.
        "[a.b]\n[c]\n[a]\nx = 1\n[mcp]\ny = 2\n",
        "# only a comment\n",
    ];
    for text in rows {
        let with = put_table(text, "mcp.servers", "haft", own).unwrap();
        assert!(with.starts_with(text), "{text:?}: {with:?}");
        let other_breaks = with.replace("\r\n", "").contains('\n');
        assert_eq!(text.contains("\r\n"), !other_breaks, "{with:?}");
        let without = remove(&with, "mcp.servers", "haft").unwrap().unwrap();
        assert_eq!(without, text);
        let more = format!("{with}\n# of the next\n[[z]]\n");
        let without = remove(&more, "mcp.servers", "haft").unwrap().unwrap();
        assert_eq!(without, format!("{text}\n# of the next\n[[z]]\n"));
    }
}

#[test]
fn a_list_of_tables_below_a_table_goes_with_it() {
    let text = "[mcp.servers.haft]\nx = '''\n# no'''\n[[mcp.servers.haft.list]]\ny = [\n# no\n]\n# of the end\n";
    let without = remove(text, "mcp.servers", "haft").unwrap().unwrap();
    assert_eq!(without, "# of the end\n");
}

#[test]
fn a_text_that_is_not_toml_is_refused_with_its_place() {
    for (text, at) in [
        ("a = \n", 4),
        ("\u{feff}a = \n", 7),
        ("[a]\nx = 1\nx = 2\n", 10),
        ("[a]\n[a]\n", 5),
        ("{\"a\": 1}", 0),
    ] {
        let refused = put_table(text, "m", "h", "[m.h]\n").unwrap_err();
        assert_eq!(refused.at.clone().unwrap().start, at, "{text:?}: {refused}");
    }
    let deep = format!("a = {}{}\n", "[".repeat(10_000), "]".repeat(10_000));
    assert!(put_table(&deep, "m", "h", "[m.h]\n").is_err());
    let large = "# a comment\n".repeat(MAX_BYTES / 12 + 1);
    let refused = put_table(&large, "m", "h", "[m.h]\n").unwrap_err();
    assert!(refused.what.contains("larger than 8 MiB"), "{refused}");
}

/// Numbers that look random and are the same in every test run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }

    fn document(&mut self) -> String {
        const LINES: [&str; 18] = [
            "[mcp]\n",
            "[mcp.servers.docs]\n",
            "  [mcp.servers.\"a b\"] # c\n",
            "[[mcp.servers.docs.list]]\n",
            "[[hooks.PreToolUse]]\n",
            "[tui]\n",
            "x = 1 # t\n",
            "y = \"\"\"\n[mcp.servers.haft]\n# no\n\n\"\"\"\n",
            "# comment\n",
            "\n",
            "\n\n",
            "z = [\n 1, # c\n [2],\n]\n",
            "a.b = 3\n",
            "q = '''\n[x]\n'''\n",
            "\t# tab\n",
            "t = { u = [1], v = { w = 1 } }\n",
            "d = 1979-05-27T07:32:00Z\n",
            "\"\" = 'é'\n",
        ];
        let mut text = String::new();
        if self.roll(9) == 0 {
            text.push('\u{feff}');
        }
        for _ in 0..self.roll(9) {
            text.push_str(LINES[self.roll(LINES.len())]);
        }
        if self.roll(4) == 0 {
            text = text.replace('\n', "\r\n");
        }
        text
    }
}

#[test]
fn an_edit_of_any_document_changes_haft_s_own_table_and_nothing_else() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let own = "[mcp.servers.haft]\ncommand = \"h\"\n\n[mcp.servers.haft.env]\nX = \"1\"\n";
    let mut edited = 0;
    for _ in 0..5_000 {
        let text = dice.document();
        let Ok(before) = parse(&text) else {
            // A table or key twice.
            assert!(put_table(&text, "mcp.servers", "haft", own).is_err());
            continue;
        };
        let with = put_table(&text, "mcp.servers", "haft", own).unwrap();
        assert!(with.starts_with(&text), "{text:?} => {with:?}");
        let without = remove(&with, "mcp.servers", "haft").unwrap().unwrap();
        assert_eq!(parse(&without).unwrap(), before, "{with:?} => {without:?}");
        assert_eq!(without, text);
        edited += 1;
    }
    assert!(edited > 1_000, "{edited}");
}
