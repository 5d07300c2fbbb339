//! Asks the host's agent, at its restricted socket, in haft's own words.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::line;

/// Maximum size of an answer, in bytes, and number of its lines.
const MAX_ANSWER: usize = 64 << 10;
const MAX_LINES: usize = 2_000;
/// Maximum length of a text of the agent's, in characters.
const MAX_TEXT: usize = 120;
/// Variables that say where the user is, and the agent's options for them.
const OPTIONS: [(&str, &str); 5] = [
    ("GPG_TTY", "ttyname"),
    ("TERM", "ttytype"),
    ("DISPLAY", "display"),
    ("XAUTHORITY", "xauthority"),
    ("LC_CTYPE", "lc-ctype"),
];
/// The only question of the agent's that has an answer: whether its user is to be asked now.
const PINENTRY: &[u8] = b"PINENTRY_LAUNCHED";

/// Why the agent did not answer as it should.
#[derive(Debug)]
pub(super) enum AnswerError {
    Unreachable(PathBuf, io::Error),
    Silent,
    /// Its answer cannot be read.
    Malformed,
    /// It refused, with this number and text.
    Refused(u32, String),
}

impl AnswerError {
    /// Returns what happened, and what to do, as a sentence without its end.
    pub(super) fn in_words(&self, patience: Duration) -> String {
        match self {
            Self::Unreachable(at, error) => format!(
                "gpg-agent is not reachable at {}: {error}; `gpg-connect-agent /bye` starts it",
                at.display()
            ),
            Self::Silent => format!(
                "gpg-agent did not answer within {} s: its window for the passphrase may be waiting, or has no place to open (sign once in a \
                 terminal, so that it knows the passphrase)",
                patience.as_secs()
            ),
            Self::Malformed => "gpg-agent's answer cannot be read: `gpgconf --kill gpg-agent` ends it, and the next signature starts it anew".to_owned(),
            Self::Refused(_, text) => format!("gpg-agent did not sign: {text}"),
        }
    }
}

/// What is to be signed, by which key.
#[derive(Debug)]
pub(super) struct AgentRequest<'a> {
    pub(super) agent: &'a Path,
    pub(super) options: &'a [String],
    pub(super) grip: &'a str,
    /// What the agent says to its user.
    pub(super) description: &'a str,
    /// The number of the hash's algorithm (RFC 4880 §9.4) and the hash in hexadecimal.
    pub(super) hash: (u8, &'a str),
}

/// Returns the options for these variables.
pub(super) fn options(variables: &[(String, String)]) -> Vec<String> {
    let value = |name: &str| {
        let found = variables.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    };
    let plain = |text: &&str| text.len() < 500 && !text.bytes().any(|byte| byte.is_ascii_control());
    let set = OPTIONS.iter().filter_map(|(name, option)| {
        let value = value(name).filter(plain)?;
        Some(format!("OPTION {option}={value}"))
    });
    set.collect()
}

/// Returns the agent's version.
pub(super) async fn version(agent: &Path, patience: Duration) -> Result<String, AnswerError> {
    let asked = async {
        let mut link = AgentLink::open(agent).await?;
        link.say("GETINFO version").await
    };
    let version = timeout(patience, asked).await;
    let version = version.map_err(|_| AnswerError::Silent)??;
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b".-+".contains(byte);
    match String::from_utf8(version) {
        Ok(text) if text.len() < 40 && text.as_bytes().iter().all(is_plain) => Ok(text),
        _ => Err(AnswerError::Malformed),
    }
}

/// Has the agent sign a hash.
pub(super) async fn sign(
    request: &AgentRequest<'_>,
    patience: Duration,
) -> Result<Vec<u8>, AnswerError> {
    let asked = async {
        let mut link = AgentLink::open(request.agent).await?;
        for option in request.options {
            // An agent that does not know one asks its user elsewhere.
            match link.say(option).await {
                Ok(_) | Err(AnswerError::Refused(..)) => {}
                Err(error) => return Err(error),
            }
        }
        link.say(&format!("SIGKEY {}", request.grip)).await?;
        let description = line::argument(request.description);
        link.say(&format!("SETKEYDESC {description}")).await?;
        let (algorithm, hash) = request.hash;
        link.say(&format!("SETHASH {algorithm} {hash}")).await?;
        link.say("PKSIGN").await
    };
    timeout(patience, asked)
        .await
        .map_err(|_| AnswerError::Silent)?
}

/// A connection to the host's agent.
struct AgentLink<'a> {
    at: &'a Path,
    stream: BufReader<UnixStream>,
}

impl<'a> AgentLink<'a> {
    async fn open(at: &'a Path) -> Result<Self, AnswerError> {
        let stream = UnixStream::connect(at).await;
        let stream = stream.map_err(|error| AnswerError::Unreachable(at.to_owned(), error))?;
        let stream = BufReader::new(stream);
        let mut link = Self { at, stream };
        link.answer().await?;
        Ok(link)
    }

    /// Says one line and returns the data of the answer.
    async fn say(&mut self, words: &str) -> Result<Vec<u8>, AnswerError> {
        self.send(words).await?;
        self.answer().await
    }

    async fn send(&mut self, words: &str) -> Result<(), AnswerError> {
        if words.len() >= line::MAX_LINE {
            return Err(AnswerError::Malformed);
        }
        let sent = self.stream.write_all(format!("{words}\n").as_bytes()).await;
        sent.map_err(|error| AnswerError::Unreachable(self.at.to_owned(), error))
    }

    async fn answer(&mut self) -> Result<Vec<u8>, AnswerError> {
        let mut data = Vec::new();
        for _ in 0..MAX_LINES {
            let read = line::read(&mut self.stream).await;
            let read = read.map_err(|error| AnswerError::Unreachable(self.at.to_owned(), error))?;
            let line = read.ok_or(AnswerError::Malformed)?;
            let (word, rest) = match line.iter().position(|byte| *byte == b' ') {
                Some(at) => (&line[..at], &line[at + 1..]),
                None => (&line[..], &[][..]),
            };
            match word {
                b"OK" => return Ok(data),
                b"ERR" => return Err(refused(rest)),
                b"D" => data.extend(line::unescape(rest).ok_or(AnswerError::Malformed)?),
                b"INQUIRE" if rest.starts_with(PINENTRY) => self.send("END").await?,
                // It would ask for a passphrase, which haft has not.
                b"INQUIRE" => self.send("CAN").await?,
                // A status, or a comment.
                _ => {}
            }
            if data.len() > MAX_ANSWER {
                return Err(AnswerError::Malformed);
            }
        }
        Err(AnswerError::Malformed)
    }
}

fn refused(rest: &[u8]) -> AnswerError {
    let text = String::from_utf8_lossy(rest);
    let (code, text) = text.split_once(' ').unwrap_or((&text, "no reason given"));
    let text: String = text.chars().take(MAX_TEXT).collect();
    match code.parse() {
        Ok(code) => AnswerError::Refused(code, haft::text::visible::line(&text)),
        Err(_) => AnswerError::Malformed,
    }
}
