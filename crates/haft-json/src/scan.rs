//! The strict scan: one pass over a JSON text that refuses what two readers might interpret differently.

use crate::keys::Keys;
use crate::lexer::{LexError, Lexer};

pub use crate::lexer::{Fault, MAX_DEPTH};

/// The reason why a text is refused, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault} at byte {offset}{}", at(path))]
pub struct ScanError {
    /// What is wrong.
    pub fault: Fault,
    /// The byte position where it was found.
    pub offset: usize,
    /// JSON pointer of the value (for a duplicate key, of the second one), of limited length.
    pub path: String,
}

fn at(path: &str) -> String {
    if path.is_empty() {
        String::new()
    } else {
        format!(" ({path})")
    }
}

impl ScanError {
    #[cold]
    pub(crate) fn new(text: &str, stop: LexError) -> Self {
        Self {
            fault: stop.fault,
            offset: stop.at,
            path: path_to(text, stop.at),
        }
    }
}

/// Checks a text whose top level may be any value.
///
/// ```
/// use haft_json::scan::{Fault, scan};
///
/// assert!(scan(r#"{"a": [1, 2]}"#).is_ok());
/// let error = scan(r#"{"a": {"b": 1, "\u0062": 2}}"#).unwrap_err();
/// assert_eq!((error.fault, error.path.as_str()), (Fault::DuplicateKey, "/a/b"));
/// ```
///
/// # Errors
///
/// If the text is not JSON by RFC 8259, or is ambiguous: a duplicate key in an object, a lone surrogate, a number
/// out of the range of doubles, or more than [`MAX_DEPTH`] levels.
pub fn scan(text: &str) -> Result<(), ScanError> {
    whole(text).map_err(|stop| ScanError::new(text, stop))
}

/// Checks a text whose top level must be an object.
///
/// # Errors
///
/// Those of [`scan`], and if the value is not an object.
pub fn scan_object(text: &str) -> Result<(), ScanError> {
    let mut lexer = Lexer::new(text);
    if !matches!(lexer.peek(), b'{' | 0) {
        let fault = match scan(text) {
            Ok(()) => Fault::NotAnObject,
            Err(error) => return Err(error),
        };
        let stop = LexError {
            fault,
            at: lexer.at,
        };
        return Err(ScanError::new(text, stop));
    }
    scan(text)
}

fn whole(text: &str) -> Result<(), LexError> {
    let mut lexer = Lexer::new(text);
    let mut keys = Keys::default();
    value(&mut lexer, &mut keys, 0)?;
    lexer.finish()
}

/// An open object or array.
#[derive(Clone, Copy, Default)]
struct Frame {
    object: bool,
    base: usize,
}

/// Consumes one value of any shape at `depth` open levels.
pub(crate) fn value(lexer: &mut Lexer<'_>, keys: &mut Keys, depth: usize) -> Result<(), LexError> {
    if !matches!(lexer.peek(), b'{' | b'[') {
        return lexer.scalar();
    }
    let mut frames = [Frame::default(); MAX_DEPTH];
    let mut open = 0;
    loop {
        // At the start of a value.
        let byte = lexer.peek();
        if byte == b'{' || byte == b'[' {
            let object = byte == b'{';
            let base = keys.base();
            let slot = frames.get_mut(open).filter(|_| depth + open < MAX_DEPTH);
            let Some(slot) = slot else {
                return lexer.stop(Fault::TooDeep);
            };
            *slot = Frame { object, base };
            open += 1;
            lexer.at += 1;
            // `]` is `[` + 2 and `}` is `{` + 2.
            if lexer.peek() == byte + 2 {
                lexer.at += 1;
                open -= 1;
            } else {
                if object {
                    key(lexer, keys, base)?;
                }
                continue;
            }
        } else {
            lexer.scalar()?;
        }
        if !next(lexer, keys, &frames, &mut open)? {
            return Ok(());
        }
    }
}

/// Called after a value: closes what ends here; returns `true` if another value follows.
#[inline]
fn next(
    lexer: &mut Lexer<'_>,
    keys: &mut Keys,
    frames: &[Frame],
    open: &mut usize,
) -> Result<bool, LexError> {
    while let Some(&Frame { object, base }) = open.checked_sub(1).and_then(|top| frames.get(top)) {
        match (lexer.peek(), object) {
            (b',', true) => {
                lexer.at += 1;
                key(lexer, keys, base)?;
                return Ok(true);
            }
            (b',', false) => {
                lexer.at += 1;
                return Ok(true);
            }
            (b'}', true) => keys.close(lexer, base)?,
            (b']', false) => {}
            (_, true) => return lexer.stop(Fault::Expected("a comma or }")),
            (_, false) => return lexer.stop(Fault::Expected("a comma or ]")),
        }
        lexer.at += 1;
        *open -= 1;
    }
    Ok(false)
}

#[inline]
fn key(lexer: &mut Lexer<'_>, keys: &mut Keys, base: usize) -> Result<(), LexError> {
    let key = lexer.key()?;
    keys.add(lexer, base, key)
}

/// Maximum length of a path in an error, in bytes.
const MAX_PATH: usize = 256;

/// Returns the position of a byte as a JSON pointer; everything before it is valid.
fn path_to(text: &str, offset: usize) -> String {
    let mut lexer = Lexer::new(text);
    let mut levels: Vec<Option<String>> = Vec::new();
    let mut counts: Vec<usize> = Vec::new();
    loop {
        let byte = lexer.peek();
        if lexer.at >= offset || byte == 0 || levels.len() > MAX_DEPTH {
            break;
        }
        let in_object = levels.last().is_some_and(Option::is_some);
        match byte {
            b'{' | b'[' => {
                levels.push((byte == b'{').then(String::new));
                counts.push(0);
                lexer.at += 1;
                if byte == b'[' || lexer.peek() != b'"' {
                    continue;
                }
                name(&mut lexer, &mut levels);
            }
            b'}' | b']' => {
                levels.pop();
                counts.pop();
                lexer.at += 1;
            }
            b',' => {
                lexer.at += 1;
                if let Some(count) = counts.last_mut() {
                    *count += 1;
                }
                if in_object && lexer.peek() == b'"' {
                    name(&mut lexer, &mut levels);
                }
            }
            b':' => lexer.at += 1,
            _ => {
                let from = lexer.at;
                if lexer.scalar().is_err() || lexer.at == from {
                    break;
                }
            }
        }
    }
    let mut path = String::new();
    for (level, count) in levels.iter().zip(&counts) {
        if level.as_deref() == Some("") {
            continue;
        }
        path.push('/');
        match level {
            Some(name) => path.push_str(&name.replace('~', "~0").replace('/', "~1")),
            None => path.push_str(&count.to_string()),
        }
    }
    if path.len() > MAX_PATH {
        path.truncate(path.floor_char_boundary(MAX_PATH));
        path.push('…');
    }
    path
}

fn name(lexer: &mut Lexer<'_>, levels: &mut [Option<String>]) {
    if let (Ok(key), Some(level)) = (lexer.string(), levels.last_mut()) {
        *level = Some(lexer.unescape(key));
    }
}
