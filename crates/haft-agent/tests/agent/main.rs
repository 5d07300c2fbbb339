//! The loop with scripted models, a real executor and real tools.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod calls;
mod compress;
mod ends;
mod http;
mod money;
mod provided;
mod resume;
mod skills;
mod suggest;
mod support;
