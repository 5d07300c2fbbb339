//! The text of a notice, and how it is passed to the program so that nothing in it acts as an option, markup or an escape.

use std::ffi::OsString;
use std::path::Path;

use haft::approval::ApprovalRequest;

use crate::environment::Environment;

/// Maximum length of the text from a request, in characters.
const MAX_TEXT: usize = 160;

/// A notice: a bold line and a few more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    title: String,
    body: String,
}

/// The line that says where to decide.
const HOW_TO_DECIDE: &str = "Decide with: haft console";

impl Notice {
    /// Returns a notice about a request with this fact.
    pub(super) fn of(request: &ApprovalRequest, fact: &str) -> Self {
        let tool = plain(request.tool.as_str());
        let title = if request.is_question() {
            format!("haft: {tool} has a question")
        } else {
            format!("haft: {tool} needs approval")
        };
        Self {
            title,
            body: plain(fact),
        }
    }

    /// Combines the notices into one; expects at least one.
    pub(super) fn combine(mut notices: Vec<Self>) -> Self {
        let count = notices.len();
        let Some(first) = notices.drain(..).next() else {
            return Self {
                title: "haft: a request is pending".to_owned(),
                body: HOW_TO_DECIDE.to_owned(),
            };
        };
        if count == 1 {
            return Self {
                title: first.title,
                body: format!("{}\n{HOW_TO_DECIDE}", first.body),
            };
        }
        Self {
            title: format!("haft: {count} requests are pending"),
            body: format!("The first: {}\n{HOW_TO_DECIDE}", first.body),
        }
    }
}

/// A program that shows notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoticeProgram {
    /// On the free desktops.
    NotifySend,
    /// On macOS.
    Osascript,
}

impl NoticeProgram {
    /// Returns the program of this system.
    pub(super) fn of_this_system() -> Self {
        if cfg!(target_os = "macos") {
            Self::Osascript
        } else {
            Self::NotifySend
        }
    }

    /// Returns its name on the `PATH`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::NotifySend => "notify-send",
            Self::Osascript => "osascript",
        }
    }

    /// Returns whether these variables indicate a desktop.
    pub(super) fn has_desktop(self, environment: &Environment) -> bool {
        let bus = || {
            let folder = environment.folder("XDG_RUNTIME_DIR");
            folder.is_some_and(|folder| Path::new(&folder).join("bus").exists())
        };
        let address = environment.get("DBUS_SESSION_BUS_ADDRESS");
        match self {
            Self::NotifySend => address.is_some_and(|address| !address.is_empty()) || bus(),
            Self::Osascript => true,
        }
    }

    /// Returns its arguments. The text comes last, where no options are parsed, and as data: `osascript` gets it as arguments of the
    /// script, and it is escaped where `notify-send` reads escapes or desktops read markup.
    pub(super) fn arguments(self, notice: &Notice) -> Vec<OsString> {
        const SCRIPT: [&str; 3] = [
            "on run argv",
            "display notification (item 2 of argv) with title (item 1 of argv)",
            "end run",
        ];
        let Notice { title, body } = notice;
        let words: Vec<String> = match self {
            Self::NotifySend => vec![
                "--app-name=haft".to_owned(),
                "--".to_owned(),
                title.clone(),
                escaped(body),
            ],
            Self::Osascript => {
                let lines = SCRIPT.iter().flat_map(|line| ["-e", line]);
                let mut words: Vec<String> = lines.map(str::to_owned).collect();
                words.extend(["--".to_owned(), title.clone(), body.clone()]);
                words
            }
        };
        words.into_iter().map(OsString::from).collect()
    }
}

/// Escapes a text for readers that treat backslashes as escapes and `<`, `>` and `&` as markup.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
    out
}

/// Returns one short line without characters that control the screen or the writing direction.
fn plain(text: &str) -> String {
    let invisible = |c: char| {
        c.is_control()
            || matches!(c, '\u{00AD}' | '\u{061C}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E0FFF}')
    };
    let spaced = text.split(|c: char| c.is_whitespace() || c.is_control());
    let line = spaced.filter(|word| !word.is_empty());
    let line = line.collect::<Vec<_>>().join(" ");
    let mut seen = line.chars().filter(|c| !invisible(*c));
    let mut short: String = seen.by_ref().take(MAX_TEXT).collect();
    if seen.next().is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::{Notice, NoticeProgram, plain};

    fn notice(body: &str) -> Notice {
        Notice {
            title: "haft: run_command needs approval".to_owned(),
            body: plain(body),
        }
    }

    fn words(program: NoticeProgram, body: &str) -> Vec<String> {
        let arguments = program.arguments(&Notice::combine(vec![notice(body)]));
        let texts = arguments.iter().map(|argument| argument.to_str().unwrap());
        texts.map(str::to_owned).collect()
    }

    #[test]
    fn a_text_from_a_model_is_neither_option_nor_markup_nor_escape() {
        let rows = [
            ("--icon=/etc/passwd", "--icon=/etc/passwd"),
            ("<b>yes</b> && rm", "&lt;b&gt;yes&lt;/b&gt; &amp;&amp; rm"),
            (r"\74b\76 \n", r"\\74b\\76 \\n"),
            ("a\u{1b}[2J\nb\u{7}\tc", "a [2J b c"),
            ("ab\u{202e}cd\u{200b}", "abcd"),
            (
                "$(touch x) `y` \"; do shell script \"z\"",
                "$(touch x) `y` \"; do shell script \"z\"",
            ),
        ];
        for (body, expect) in rows {
            let all = words(NoticeProgram::NotifySend, body);
            let end = all.iter().position(|word| word == "--").unwrap();
            assert_eq!(end, all.len() - 3, "{all:?}");
            let text = all.last().unwrap();
            assert_eq!(*text, format!("{expect}\nDecide with: haft console"));
            // The script is the same for any text.
            let all = words(NoticeProgram::Osascript, body);
            assert_eq!(all[..7], words(NoticeProgram::Osascript, "")[..7]);
            assert_eq!(all[6], "--");
            assert!(all[8].starts_with(&plain(body)));
        }
    }

    #[test]
    fn a_long_text_is_clipped_and_many_requests_are_summed_up() {
        let long = plain(&"é".repeat(1000));
        assert_eq!(long.chars().count(), 161);
        assert!(long.ends_with('…'));
        let sum = Notice::combine(vec![notice("first"), notice("second"), notice("third")]);
        assert_eq!(sum.title, "haft: 3 requests are pending");
        assert_eq!(sum.body, "The first: first\nDecide with: haft console");
    }
}
