//! `ByteSource`: bytes to store that may not fit in memory.

use std::io;

use bytes::Bytes;

/// Number of bytes read at once.
const PIECE_BYTES: usize = 256 << 10;

/// Bytes of any length that can be read in pieces, repeatedly.
pub trait ByteSource: Send + Sync {
    /// Returns the number of bytes; the bytes do not change during the source's life.
    fn size(&self) -> u64;

    /// Reads bytes starting at `offset` into the buffer, and returns their number: 0 only at the end.
    ///
    /// # Errors
    /// The bytes cannot be read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Reads all bytes into memory.
    ///
    /// # Errors
    /// The bytes cannot be read, or exceed the address space.
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

impl ByteSource for Bytes {
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

/// Passes all bytes of a source to `take`, piece by piece.
///
/// # Errors
/// The source cannot be read, has fewer bytes than it said, or `take` fails.
pub fn each_piece<S: ByteSource + ?Sized>(
    source: &S,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let size = source.size();
    let piece = usize::try_from(size)
        .unwrap_or(PIECE_BYTES)
        .min(PIECE_BYTES);
    let mut buffer = vec![0; piece];
    let mut at = 0;
    while at < size {
        let most = usize::try_from(size - at).unwrap_or(PIECE_BYTES).min(piece);
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
