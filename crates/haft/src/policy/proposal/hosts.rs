//! Rules for hosts that may be proposed: one exact public host, in letters that look like no others.

use super::super::address::check_host;

/// Why a rule for this host, with or without a port, may not be proposed.
pub(super) fn refuse(place: &str) -> Option<String> {
    let port = |(_, port): &(&str, &str)| port.chars().all(|c| c.is_ascii_digit());
    let host = place
        .rsplit_once(':')
        .filter(port)
        .map_or(place, |(host, _)| host);
    if host.contains('*') || !host.contains('.') {
        return Some("it covers several hosts: name one".to_owned());
    }
    if !host.is_ascii() {
        return Some(format!(
            "{host} is not written in ASCII letters and may look like another host: it is {}",
            encoded(host)
        ));
    }
    check_host(host)
        .is_err()
        .then(|| "the host is not public".to_owned())
}

/// The name as the name service knows it, its labels in Punycode (RFC 3492).
fn encoded(host: &str) -> String {
    let label = |label: &str| {
        let lower = label.to_lowercase();
        if lower.is_ascii() {
            return lower;
        }
        punycode(&lower).map_or(lower, |code| format!("xn--{code}"))
    };
    host.split('.').map(label).collect::<Vec<_>>().join(".")
}

/// The bootstring parameters of RFC 3492, section 5.
const BASE: u32 = 36;
const T_MIN: u32 = 1;
const T_MAX: u32 = 26;
const SKEW: u32 = 38;
const DAMP: u32 = 700;
const FIRST_BIAS: u32 = 72;
const FIRST_N: u32 = 128;

/// RFC 3492, section 6.3; none where a number grows too large.
fn punycode(label: &str) -> Option<String> {
    let signs: Vec<u32> = label.chars().map(u32::from).collect();
    let mut out: String = label.chars().filter(char::is_ascii).collect();
    let basic = u32::try_from(out.len()).ok()?;
    if basic > 0 {
        out.push('-');
    }
    let (mut n, mut delta, mut bias, mut done) = (FIRST_N, 0_u32, FIRST_BIAS, basic);
    while usize::try_from(done).ok()? < signs.len() {
        let next = signs.iter().copied().filter(|sign| *sign >= n).min()?;
        delta = delta.checked_add((next - n).checked_mul(done + 1)?)?;
        n = next;
        for sign in &signs {
            if *sign < n {
                delta = delta.checked_add(1)?;
            }
            if *sign == n {
                write_number(delta, bias, &mut out);
                bias = adapt(delta, done + 1, done == basic);
                delta = 0;
                done += 1;
            }
        }
        delta += 1;
        n += 1;
    }
    Some(out)
}

/// A number in digits whose weights depend on the bias.
fn write_number(number: u32, bias: u32, out: &mut String) {
    let mut rest = number;
    let mut weight = BASE;
    loop {
        let least = weight.saturating_sub(bias).clamp(T_MIN, T_MAX);
        if rest < least {
            out.push(digit(rest));
            return;
        }
        out.push(digit(least + (rest - least) % (BASE - least)));
        rest = (rest - least) / (BASE - least);
        weight += BASE;
    }
}

fn digit(value: u32) -> char {
    char::from_digit(value, BASE).map_or('?', |_| {
        let letters = "abcdefghijklmnopqrstuvwxyz0123456789";
        letters.chars().nth(value as usize).unwrap_or('?')
    })
}

/// RFC 3492, section 6.1.
fn adapt(delta: u32, count: u32, is_first: bool) -> u32 {
    let mut delta = if is_first { delta / DAMP } else { delta / 2 };
    delta += delta / count;
    let mut shifts = 0;
    while delta > ((BASE - T_MIN) * T_MAX) / 2 {
        delta /= BASE - T_MIN;
        shifts += BASE;
    }
    shifts + (BASE - T_MIN + 1) * delta / (delta + SKEW)
}

#[cfg(test)]
mod tests {
    use super::encoded;

    #[test]
    fn hosts_in_other_letters_are_named_in_punycode() {
        for (host, expect) in [
            ("b\u{fc}cher.example", "xn--bcher-kva.example"),
            ("\u{430}pple.com", "xn--pple-43d.com"),
            ("M\u{dc}NCHEN.de", "xn--mnchen-3ya.de"),
            (
                "\u{4ed6}\u{4eec}\u{4e3a}\u{4ec0}\u{4e48}\u{4e0d}\u{8bf4}\u{4e2d}\u{6587}",
                "xn--ihqwcrb4cv8a8dqg056pqjye",
            ),
            ("plain.example", "plain.example"),
        ] {
            assert_eq!(encoded(host), expect, "{host}");
        }
    }
}
