//! The data types of SSH (RFC 4251 §5), read from the front of a message and written to its end.

/// Reads a message from the front.
#[derive(Debug, Clone, Copy)]
pub(super) struct WireReader<'a>(pub(super) &'a [u8]);

impl<'a> WireReader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// Takes a byte.
    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// Takes a number of four bytes.
    pub(super) fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    /// Takes a string, which may hold any bytes.
    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }

    /// Returns true if nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns a string with its length before it.
#[cfg(test)]
pub(super) fn string(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes()[..], bytes].concat()
}
