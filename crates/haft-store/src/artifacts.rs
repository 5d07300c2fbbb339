//! Large results in a bucket. The in-memory and on-disk stores are in `haft`.

mod object;

pub use object::{Dial, Io, ObjectArtifacts, RetentionLimits};
