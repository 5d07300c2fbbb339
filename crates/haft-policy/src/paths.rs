//! Paths as the policy judges them: protected, denied, reached by links under further names.

pub(crate) mod denials;
pub(crate) mod linked_effects;
pub(crate) mod linked_names;
pub(crate) mod misplaced;
pub(crate) mod name_progress;
pub(crate) mod plain_parts;
