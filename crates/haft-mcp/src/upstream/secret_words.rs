//! Whether a text asks for a secret: by words of several languages, however their letters are written.
//!
//! A hint, not a wall: a server that wants a secret can ask for it in words that no list has. What is here makes the plain ways fail,
//! and those that only imitate other letters.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// Names of secrets, without word separators.
const SECRET_WORDS: [&str; 34] = [
    "accesskey",
    "accesstoken",
    "apikey",
    "apitoken",
    "bearertoken",
    "creditcard",
    "creditcardnumber",
    "cvc",
    "cvv",
    "motdepasse",
    "onetimecode",
    "otp",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "recoveryphrase",
    "secret",
    "secretkey",
    "seedphrase",
    "contraseña",
    "hasło",
    "heslo",
    "kennwort",
    "passwort",
    "senha",
    "wachtwoord",
    "şifre",
    "пароль",
    "密码",
    "密碼",
    "パスワード",
    "비밀번호",
];

/// Maximum number of words in the name of a secret.
const MAX_WORDS: usize = 3;

/// Letters that look like a Latin one and do not decompose to it.
const LOOK_ALIKES: [(&str, char); 27] = [
    ("аαɑᴀ4@", 'a'),
    ("вʙ", 'b'),
    ("сᴄ", 'c'),
    ("ԁđᴅ", 'd'),
    ("еεᴇ3", 'e'),
    ("ꜰ", 'f'),
    ("ɡɢ", 'g'),
    ("нһʜ", 'h'),
    ("іιıɪ", 'i'),
    ("јᴊ", 'j'),
    ("кκᴋ", 'k'),
    ("łӏʟ1", 'l'),
    ("мᴍ", 'm'),
    ("ɴ", 'n'),
    ("оοøᴏ0", 'o'),
    ("рρᴘ", 'p'),
    ("ԛ", 'q'),
    ("гʀ", 'r'),
    ("ѕꜱ5$", 's'),
    ("тτᴛ", 't'),
    ("υᴜ", 'u'),
    ("ѵνᴠ", 'v'),
    ("ԝωᴡ", 'w'),
    ("хχ", 'x'),
    ("уγʏ", 'y'),
    ("ᴢ", 'z'),
    ("ſ", 's'),
];

/// Returns whether a name ends with that of a secret, as `githubApiKey` does.
pub(super) fn names_secret(name: &str) -> bool {
    let letters: String = name.chars().filter_map(plain_letters).collect();
    let folded = fold(&letters);
    SECRET_WORDS
        .iter()
        .any(|word| folded.ends_with(&fold(word)))
}

/// Returns whether a sentence contains the name of a secret, as words of its own.
pub(super) fn mentions_secret(text: &str) -> bool {
    let separate = |c: char| plain_letters(c).is_none();
    let words: Vec<String> = text.split(separate).map(fold).collect();
    let words: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|w| !w.is_empty())
        .collect();
    let secrets = SECRET_WORDS.map(fold);
    let is_secret = |words: &[&str]| {
        let joined = words.concat();
        // Languages without spaces between words.
        let within = |secret: &String| !secret.is_ascii() && joined.contains(&**secret);
        secrets
            .iter()
            .any(|secret| joined == *secret || within(secret))
    };
    (1..=MAX_WORDS).any(|count| words.windows(count).any(is_secret))
}

/// Returns a character of a word; `None` for what separates words or shows nothing.
fn plain_letters(c: char) -> Option<char> {
    (c.is_alphanumeric() || is_combining_mark(c) || matches!(c, '@' | '$')).then_some(c)
}

/// Returns a word in lower case, without accents, and with Latin letters for those that look like them.
fn fold(word: &str) -> String {
    let decomposed = word.nfkd().flat_map(char::to_lowercase).nfkd();
    let letters = decomposed.filter(|c| !is_combining_mark(*c));
    letters.map(latin).collect()
}

fn latin(c: char) -> char {
    let alike = LOOK_ALIKES.iter().find(|(letters, _)| letters.contains(c));
    alike.map_or(c, |(_, latin)| *latin)
}

#[cfg(test)]
mod tests {
    use super::{mentions_secret, names_secret};

    #[test]
    fn n7_a_secret_is_found_however_its_name_is_written() {
        for name in [
            "password",
            "githubApiKey",
            "client-secret",
            "ACCESS_TOKEN",
            "pаssword",
            "ｐａｓｓｗｏｒｄ",
            "pässwörd",
            "passw0rd",
            "p@$$word",
            "ᴘᴀꜱꜱᴡᴏʀᴅ",
            "pass\u{200b}word",
            "Passwort",
            "contraseña",
            "mot de passe",
            "пароль",
            "密码",
            "hasło",
        ] {
            assert!(names_secret(name), "{name}");
        }
        for name in [
            "name",
            "max_tokens",
            "secretary",
            "Tokens",
            "city",
            "keyword",
        ] {
            assert!(!names_secret(name), "{name}");
        }
    }

    #[test]
    fn n7_a_sentence_that_asks_for_a_secret_is_found() {
        for text in [
            "Enter your password to go on",
            "We need the API key of your account.",
            "seed phrase (12 words)",
            "请输入您的密码",
            "Introduzca su contraseña",
        ] {
            assert!(mentions_secret(text), "{text}");
        }
        for text in [
            "Which folder?",
            "Your secretary's name",
            "How many tokens?",
            "a keyword to look for",
            "",
        ] {
            assert!(!mentions_secret(text), "{text}");
        }
    }
}
