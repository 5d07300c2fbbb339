//! Integration tests of the stores.

mod runs;
