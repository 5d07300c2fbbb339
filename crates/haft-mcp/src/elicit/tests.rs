//! What clients are given to ask, and what their answers say.
