//! Tests of the dialect by hand-written tables; recorded exchanges are read in `tests/gemini.rs`.

mod read;
mod write;
