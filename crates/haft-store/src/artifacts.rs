//! Large results in a bucket. Those in memory and on disk are in `haft`.

mod object;

pub use object::{Dial, Dialing, Duplex, ObjectArtifacts, Terms};
