//! Formats bytes as hex digits, as in digests.

/// Returns the bytes as lower-case hex digits.
///
/// ```
/// assert_eq!(haft_json::hex::hex(&[0, 0xab, 16]), "00ab10");
/// ```
pub fn hex(bytes: &[u8]) -> String {
    const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |n: u8| char::from(HEX_DIGITS[usize::from(n)]);
    bytes
        .iter()
        .flat_map(|b| [digit(b >> 4), digit(b & 15)])
        .collect()
}
