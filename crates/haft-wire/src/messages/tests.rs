//! Tests of the dialect by hand-written tables; recorded exchanges are read in `tests/anthropic.rs`.

mod declare;
mod read;
mod stream;
mod write;
