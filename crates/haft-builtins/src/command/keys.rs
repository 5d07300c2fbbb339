//! The keys that `command_input` can press, and the bytes that a terminal sends for them.

use haft::error::ToolError;

/// Keys with a name, as xterm sends them.
const KEYS: [(&str, &[u8]); 29] = [
    ("tab", b"\t"),
    ("escape", b"\x1b"),
    ("space", b" "),
    ("backspace", b"\x7f"),
    ("delete", b"\x1b[3~"),
    ("insert", b"\x1b[2~"),
    ("up", b"\x1b[A"),
    ("down", b"\x1b[B"),
    ("right", b"\x1b[C"),
    ("left", b"\x1b[D"),
    ("home", b"\x1b[H"),
    ("end", b"\x1b[F"),
    ("page_up", b"\x1b[5~"),
    ("page_down", b"\x1b[6~"),
    ("shift-tab", b"\x1b[Z"),
    ("f1", b"\x1bOP"),
    ("f2", b"\x1bOQ"),
    ("f3", b"\x1bOR"),
    ("f4", b"\x1bOS"),
    ("f5", b"\x1b[15~"),
    ("f6", b"\x1b[17~"),
    ("f7", b"\x1b[18~"),
    ("f8", b"\x1b[19~"),
    ("f9", b"\x1b[20~"),
    ("f10", b"\x1b[21~"),
    ("f11", b"\x1b[23~"),
    ("f12", b"\x1b[24~"),
    ("ctrl-space", b"\0"),
    ("ctrl-backslash", b"\x1c"),
];

/// Appends what a terminal sends for a key; `enter` is what it sends for the return key.
pub(super) fn press(key: &str, enter: u8, out: &mut Vec<u8>) -> Result<(), ToolError> {
    if key == "enter" {
        out.push(enter);
        return Ok(());
    }
    if let Some((_, bytes)) = KEYS.iter().find(|(name, _)| *name == key) {
        out.extend_from_slice(bytes);
        return Ok(());
    }
    match key.strip_prefix("ctrl-").map(str::as_bytes) {
        Some([letter @ b'a'..=b'z']) => out.push(letter - b'a' + 1),
        _ => return Err(unknown(key)),
    }
    Ok(())
}

fn unknown(key: &str) -> ToolError {
    let names: Vec<&str> = KEYS.iter().map(|(name, _)| *name).collect();
    ToolError::invalid_arguments(format!("keys: unknown key {key:?}")).with_advice(format!(
        "use enter, ctrl-a to ctrl-z, {}; or text",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::press;

    #[test]
    fn key_is_what_a_terminal_sends() {
        for (key, bytes) in [
            ("enter", Some(&b"\r"[..])),
            ("ctrl-c", Some(b"\x03")),
            ("ctrl-d", Some(b"\x04")),
            ("up", Some(b"\x1b[A")),
            ("f12", Some(b"\x1b[24~")),
            ("ctrl-", None),
            ("ctrl-cc", None),
            ("ctrl-C", None),
            ("Enter", None),
            ("", None),
        ] {
            let mut out = Vec::new();
            let pressed = press(key, b'\r', &mut out);
            assert_eq!(pressed.ok().map(|()| &out[..]), bytes, "{key}");
        }
    }
}
