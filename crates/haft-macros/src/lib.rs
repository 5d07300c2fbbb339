//! The #[tool] attribute: a tool from an async function and its doc comment.
