//! `Source`: bytes to be kept that may be more than memory should hold.

use std::io;

use bytes::Bytes;

/// Bytes read at once.
const PIECE: usize = 256 << 10;

/// Bytes of any length, read piece by piece, and more than once.
pub trait Source: Send + Sync {
    /// How many bytes there are; they stay the same as long as the source is there.
    fn size(&self) -> u64;

    /// Reads bytes from `offset` on into the buffer, and says how many: none at the end alone.
    ///
    /// # Errors
    /// The bytes cannot be read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// All of it, in memory.
    ///
    /// # Errors
    /// The bytes cannot be read, or are more than memory has addresses for.
    fn whole(&self) -> io::Result<Bytes> {
        let size = usize::try_from(self.size()).map_err(io::Error::other)?;
        let mut whole = Vec::with_capacity(size);
        each_piece(self, |piece| {
            whole.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(whole.into())
    }
}

impl Source for Bytes {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|at| self.get(at..));
        let rest = rest.unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn whole(&self) -> io::Result<Bytes> {
        Ok(self.clone())
    }
}

/// Gives all bytes of a source, a piece at a time.
///
/// # Errors
/// The source cannot be read, gives less than it said, or `take` fails.
pub fn each_piece<S: Source + ?Sized>(
    source: &S,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let size = source.size();
    let piece = usize::try_from(size).unwrap_or(PIECE).min(PIECE);
    let mut buffer = vec![0; piece];
    let mut at = 0;
    while at < size {
        let most = usize::try_from(size - at).unwrap_or(PIECE).min(piece);
        match source.read_at(at, &mut buffer[..most])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                take(&buffer[..count])?;
                at += count as u64;
            }
        }
    }
    Ok(())
}
