//! Built-in scenarios.

/// A first try without a key: the model lists files, reads one and answers.
pub const FIRST_TRY: &str = include_str!("../scenarios/first_try.toml");

/// One task in six turns: parallel calls, a denied one, one that needs approval, a chain, a skill and a patch.
pub const SIX_TURNS: &str = include_str!("../scenarios/six_turns.toml");
