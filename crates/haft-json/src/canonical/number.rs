//! Numbers in canonical JSON: as ECMAScript prints a double; an integer no double holds keeps its digits.

/// Integers of up to this many digits are below 2^53: their digits are what ECMAScript prints.
const SURE_DIGITS: usize = 15;

/// The length of the JSON number at the start of `text`, and whether it is written as an integer.
pub(super) fn scan(text: &[u8]) -> Option<(usize, bool)> {
    let digits = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        rest.iter().take_while(|b| b.is_ascii_digit()).count()
    };
    let start = usize::from(text.first() == Some(&b'-'));
    let whole = digits(start);
    if whole == 0 || (whole > 1 && text[start] == b'0') {
        return None;
    }
    let mut at = start + whole;
    let mut integer = true;
    if text.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return None;
        }
        at += 1 + fraction;
        integer = false;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at + 1 + sign);
        if exponent == 0 {
            return None;
        }
        at += 1 + sign + exponent;
        integer = false;
    }
    Some((at, integer))
}

/// Writes the number that `scan` found.
pub(super) fn write(out: &mut String, literal: &str, integer: bool) {
    if integer && literal.len() <= SURE_DIGITS && !literal.starts_with('-') {
        out.push_str(literal);
        return;
    }
    match literal.parse::<f64>() {
        Ok(value) if value.is_finite() && (!integer || holds(value, literal)) => {
            write_double(out, value);
        }
        // Too large for a double, or an integer between two doubles: the digits are the value.
        _ => out.push_str(literal),
    }
}

/// Whether the double is exactly this integer.
fn holds(value: f64, literal: &str) -> bool {
    format!("{value:.0}") == literal
}

/// The shortest digits that read back as the same double, and of those the closest, and of two equally close the even.
fn shortest(value: f64) -> String {
    // `{:e}` is shortest and closest, but takes the upper of two; with a precision it takes the even one.
    let upper = format!("{value:e}");
    let fraction = upper.split_once('.').map_or(0, |(_, rest)| {
        rest.bytes().take_while(u8::is_ascii_digit).count()
    });
    let even = format!("{value:.fraction$e}");
    let same = even
        .parse::<f64>()
        .is_ok_and(|v| v.to_bits() == value.to_bits());
    if same { even } else { upper }
}

/// Writes a finite double as ECMAScript's `Number::toString` does.
fn write_double(out: &mut String, value: f64) {
    if value == 0.0 {
        out.push('0');
        return;
    }
    let shortest = shortest(value);
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let digits = mantissa.replace('.', "");
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let point = exponent + 1;
    out.push_str(sign);
    match point {
        // Digits, then zeros up to the point.
        _ if count <= point && point <= 21 => {
            out.push_str(&digits);
            out.extend((count..point).map(|_| '0'));
        }
        // The point lies within the digits.
        1..=21 => {
            let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or_default());
            out.extend([whole, ".", fraction]);
        }
        // The point lies a little before them.
        -5..=0 => {
            out.push_str("0.");
            out.extend((point..0).map(|_| '0'));
            out.push_str(&digits);
        }
        _ => {
            let (first, rest) = digits.split_at(1);
            out.push_str(first);
            if !rest.is_empty() {
                out.extend([".", rest]);
            }
            let sign = if exponent < 0 { "-" } else { "+" };
            out.extend(["e", sign, &exponent.unsigned_abs().to_string()]);
        }
    }
}
