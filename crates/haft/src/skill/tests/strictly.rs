//! Strict checking: rows as skills-ref 0.1.1 judged them.
