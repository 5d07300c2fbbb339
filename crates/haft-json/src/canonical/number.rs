//! Numbers in canonical JSON: as ECMAScript prints a double; an integer that no double can represent keeps its digits.

use crate::lexer::Number;

/// Integers up to this are exact as doubles, and ECMAScript prints all their digits.
const MAX_EXACT: u64 = 1 << 53;

/// Writes a number, given as its literal in a text.
pub(super) fn write(out: &mut Vec<u8>, literal: &str, number: Number) {
    let canonical = match number.small {
        Some(small) if small.unsigned_abs() <= MAX_EXACT => None,
        _ => double(literal, number.integer),
    };
    // Too large for a double, or an integer between two doubles: keep the digits.
    out.extend_from_slice(canonical.as_deref().unwrap_or(literal).as_bytes());
}

/// Formats a number as ECMAScript does; `None` for an integer that no double can represent.
fn double(literal: &str, integer: bool) -> Option<String> {
    let value = literal.parse::<f64>().ok()?;
    let is_double = value.is_finite() && (!integer || holds(value, literal));
    is_double.then(|| {
        let mut text = String::new();
        write_double(&mut text, value);
        text
    })
}

/// Whether the double equals this integer exactly.
fn holds(value: f64, literal: &str) -> bool {
    format!("{value:.0}") == literal
}

/// Returns the shortest digits that read back as the same double; of those the closest, and of two equally close ones the even one.
fn shortest_digits(value: f64) -> String {
    // `{:e}` is shortest and closest but prefers the larger of two; with a precision it prefers the even one.
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
    let shortest = shortest_digits(value);
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
        // The decimal point is within the digits.
        1..=21 => {
            let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or_default());
            out.extend([whole, ".", fraction]);
        }
        // The decimal point is shortly before the digits.
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
