//! `GpgSession`: one connection of a command's gpg to its agent.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::CommandGpg;
use super::keys::SigningKey;
use super::line;
use super::upstream::{self, AgentRequest, AnswerError};
use crate::proxy::LoginUse;
use crate::signatures::MAX_SIGNATURES;

/// Maximum time that a connection is idle.
const IDLE: Duration = Duration::from_secs(120);
/// Maximum number of lines on one connection.
const MAX_LINES: usize = 10_000;
/// Maximum length of the command in what the agent says to its user, in characters.
const MAX_COMMAND: usize = 120;
/// Options of a client that mean nothing here: what the host's agent gets is haft's own.
const OPTIONS: [&str; 11] = [
    "ttyname",
    "ttytype",
    "display",
    "lc-ctype",
    "lc-messages",
    "xauthority",
    "pinentry-user-data",
    "putenv",
    "allow-pinentry-notify",
    "agent-awareness",
    "use-cache-for-signing",
];
/// The hashes that are signed: their number (RFC 4880 §9.4), name and length in bytes.
const HASHES: [(u8, &str, usize); 3] = [(8, "sha256", 32), (9, "sha384", 48), (10, "sha512", 64)];

/// An error as the agent itself says it.
#[derive(Debug, Clone, Copy)]
struct AgentFault {
    code: u32,
    text: &'static str,
}

/// Errors as the agent itself says them (libgpg-error, its source 4).
const FORBIDDEN: AgentFault = AgentFault {
    code: 67_109_115,
    text: "Forbidden",
};
const NO_KEY: AgentFault = AgentFault {
    code: 67_108_881,
    text: "No secret key",
};
const PARAMETER: AgentFault = AgentFault {
    code: 67_109_144,
    text: "Parameter error",
};
const TIMEOUT: AgentFault = AgentFault {
    code: 67_108_926,
    text: "Timeout",
};
const FAILED: AgentFault = AgentFault {
    code: 67_108_865,
    text: "General error",
};

/// What a line is answered with.
enum LineAnswer {
    Ok,
    Data(Vec<u8>),
    /// A line of a status.
    Status(String),
    Error(u32, String),
    Bye,
}

impl From<AgentFault> for LineAnswer {
    fn from(fault: AgentFault) -> Self {
        Self::Error(fault.code, fault.text.to_owned())
    }
}

/// One connection.
#[derive(Debug)]
pub(super) struct GpgSession {
    agent: Arc<CommandGpg>,
    /// The key that is to sign.
    key: Option<SigningKey>,
    /// The number of a hash's algorithm and the hash in hexadecimal.
    hash: Option<(u8, String)>,
}

impl GpgSession {
    pub(super) fn new(agent: Arc<CommandGpg>) -> Self {
        Self {
            agent,
            key: None,
            hash: None,
        }
    }

    /// Answers lines until the client disconnects, is idle or sends something that is not a line.
    pub(super) async fn serve(mut self, client: UnixStream) {
        let mut client = BufReader::new(client);
        if send(&mut client, b"OK haft signs for commands\n")
            .await
            .is_err()
        {
            return;
        }
        for _ in 0..MAX_LINES {
            let Ok(Ok(Some(text))) = timeout(IDLE, line::read(&mut client)).await else {
                return;
            };
            let reply = self.answer(&String::from_utf8_lossy(&text)).await;
            let ends = matches!(reply, LineAnswer::Bye);
            if send(&mut client, &reply.to_lines()).await.is_err() || ends {
                return;
            }
        }
    }

    /// Returns the answer to a line. What is not known is forbidden.
    async fn answer(&mut self, text: &str) -> LineAnswer {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let rest = rest.trim();
        match word.to_ascii_uppercase().as_str() {
            "BYE" => LineAnswer::Bye,
            "NOP" | "SETKEYDESC" => LineAnswer::Ok,
            "RESET" => {
                (self.key, self.hash) = (None, None);
                LineAnswer::Ok
            }
            "OPTION" => {
                let name = rest.split(['=', ' ']).next().unwrap_or_default();
                let is_known = OPTIONS.contains(&name.trim_start_matches("--"));
                if is_known {
                    LineAnswer::Ok
                } else {
                    FORBIDDEN.into()
                }
            }
            "GETINFO" => match rest {
                "version" => LineAnswer::Data(self.agent.keys.version.clone().into_bytes()),
                "restricted" => LineAnswer::Ok,
                _ => FORBIDDEN.into(),
            },
            "HAVEKEY" => self.have(rest),
            "KEYINFO" => match self.key_of(rest) {
                Some(key) => LineAnswer::Status(format!("KEYINFO {} D - - - P - - -", key.grip)),
                None => NO_KEY.into(),
            },
            "SIGKEY" => {
                self.key = self.key_of(rest).cloned();
                match self.key {
                    Some(_) => LineAnswer::Ok,
                    None => NO_KEY.into(),
                }
            }
            "SETHASH" => {
                self.hash = read_hash(rest);
                match self.hash {
                    Some(_) => LineAnswer::Ok,
                    None => PARAMETER.into(),
                }
            }
            "PKSIGN" => self.sign().await,
            _ => FORBIDDEN.into(),
        }
    }

    fn key_of(&self, grip: &str) -> Option<&SigningKey> {
        let mut keys = self.agent.keys.keys.iter();
        keys.find(|key| key.grip.eq_ignore_ascii_case(grip))
    }

    /// Says whether one of the keys is here; asked for a list, names those that sign.
    fn have(&self, rest: &str) -> LineAnswer {
        if rest == "--list" || rest.starts_with("--list=") {
            let keys = self.agent.keys.keys.iter();
            let grips = keys.filter_map(|key| bytes_of(&key.grip)).flatten();
            return LineAnswer::Data(grips.collect());
        }
        let mut wanted = rest.split_whitespace();
        if wanted.any(|grip| self.key_of(grip).is_some()) {
            LineAnswer::Ok
        } else {
            NO_KEY.into()
        }
    }

    /// Has the host's agent sign, if the use of the key is allowed.
    async fn sign(&mut self) -> LineAnswer {
        let (Some(key), Some((algorithm, hash))) = (&self.key, &self.hash) else {
            return PARAMETER.into();
        };
        let agent = &self.agent;
        let about = if key.certifies {
            ", which can also make other keys yours: what a hash is of cannot be known"
        } else {
            ""
        };
        let login = LoginUse {
            by: format!("the key {} ({}) of gpg-agent{about}", key.primary, key.user),
            purpose: format!("gpg:{}", key.primary),
        };
        if agent.judge.judge(&login).await.is_err() {
            return FORBIDDEN.into();
        }
        if agent.signatures.fetch_add(1, Ordering::Relaxed) >= MAX_SIGNATURES {
            let why = format!("the command has had {MAX_SIGNATURES} signatures, and gets no more");
            agent.judge.note_refused(&login.purpose, why);
            return FORBIDDEN.into();
        }
        let command: String = agent.judge.command().chars().take(MAX_COMMAND).collect();
        let description = format!(
            "haft: a command in the jail wants a signature:\n{command}\nwith the key of {}\n{}",
            key.user, key.primary
        );
        let request = AgentRequest {
            agent: &agent.keys.agent,
            options: &agent.options,
            grip: &key.grip,
            description: &description,
            hash: (*algorithm, hash),
        };
        match upstream::sign(&request, agent.patience).await {
            Ok(signature) => LineAnswer::Data(signature),
            Err(error) => {
                let why = error.in_words(agent.patience);
                agent.judge.note_refused(&login.purpose, why);
                match error {
                    AnswerError::Refused(code, text) => LineAnswer::Error(code, text),
                    AnswerError::Silent => TIMEOUT.into(),
                    AnswerError::Unreachable(..) | AnswerError::Malformed => FAILED.into(),
                }
            }
        }
    }
}

impl LineAnswer {
    /// Returns the lines of the answer.
    fn to_lines(&self) -> Vec<u8> {
        match self {
            Self::Ok => b"OK\n".to_vec(),
            Self::Data(bytes) => [&line::data(bytes)[..], b"OK\n"].concat(),
            Self::Status(text) => format!("S {text}\nOK\n").into_bytes(),
            Self::Error(code, text) => format!("ERR {code} {text} <haft>\n").into_bytes(),
            Self::Bye => b"OK closing connection\n".to_vec(),
        }
    }
}

/// Reads `10 HEX` or `--hash=sha512 HEX`.
fn read_hash(text: &str) -> Option<(u8, String)> {
    let (kind, hash) = text.split_once(' ')?;
    let hash = hash.trim();
    let named = kind.strip_prefix("--hash=");
    let (number, _, length) = HASHES.into_iter().find(|(number, name, _)| match named {
        Some(named) => *name == named,
        None => kind.parse() == Ok(*number),
    })?;
    let is_hash = hash.len() == 2 * length && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| (number, hash.to_ascii_uppercase()))
}

/// Returns the bytes of a number in hexadecimal.
fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    let pairs = hex.as_bytes().chunks(2);
    let pairs = pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    pairs.collect()
}

async fn send(client: &mut BufReader<UnixStream>, bytes: &[u8]) -> io::Result<()> {
    let sent = timeout(IDLE, client.write_all(bytes)).await;
    sent.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

#[cfg(test)]
mod tests {
    use super::read_hash;

    #[test]
    fn only_whole_hashes_of_strong_algorithms_are_signed() {
        for (kind, length, expect) in [
            ("8", 64, Some(8)),
            ("10", 128, Some(10)),
            ("--hash=sha256", 64, Some(8)),
            ("--hash=sha512", 128, Some(10)),
            ("--hash=sha1", 40, None),
            ("2", 40, None),
            ("1", 32, None),
            ("8", 63, None),
            ("8", 128, None),
            ("--inquire", 64, None),
            ("--hash=none", 64, None),
            ("999", 64, None),
        ] {
            let read = read_hash(&format!("{kind} {}", "a".repeat(length)));
            assert_eq!(read.map(|(number, _)| number), expect, "{kind} {length}");
        }
        for text in ["", "8", "8 ", "8 zz", "8 aa\0"] {
            assert_eq!(read_hash(text), None, "{text}");
        }
    }
}
