//! The code that takes a script's locks, compiled twice: into the jail, and by `build.rs` into the library that a Python loads.

#[expect(
    unsafe_code,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::many_single_char_names,
    reason = "system calls in order: registers are what the kernel takes and gives"
)]
pub(crate) mod lock;
