//! Integration tests of the library, through its public face.

mod lifecycle;
mod macros;
mod pipeline;
mod views;
