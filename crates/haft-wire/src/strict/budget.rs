//! The limits of strict declarations in one request.

use std::fmt;

use crate::dialect::Dialect;

/// What a strict declaration uses of a request's limits.
#[derive(Debug, Clone, Default)]
pub(crate) struct StrictCost {
    /// The number of tools that it declares.
    pub(crate) tools: usize,
    /// The number of optional arguments.
    pub(crate) optional: usize,
    /// The number of arguments with more than one type.
    pub(crate) unions: usize,
    /// The declaration without `strict`, for a request that exceeds a limit.
    pub(crate) plain: Vec<u8>,
}

/// The unused part of a request's limits.
#[derive(Debug)]
pub(crate) struct StrictBudget([Limit; 3]);

/// A limit of one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    most: usize,
    left: usize,
    what: &'static str,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.most, self.what)
    }
}

impl StrictBudget {
    /// Returns the limits of a whole request: Anthropic's are those of its page on structured outputs; other dialects have none.
    pub(crate) fn of(dialect: Dialect) -> Self {
        let most = match dialect {
            Dialect::Anthropic => [20, 24, 16],
            _ => [usize::MAX; 3],
        };
        let what = [
            "strict tools",
            "optional arguments of strict tools",
            "arguments of strict tools with several types",
        ];
        Self(std::array::from_fn(|at| Limit {
            most: most[at],
            left: most[at],
            what: what[at],
        }))
    }

    /// Returns whether requests of this dialect have no limits.
    pub(crate) fn is_boundless(dialect: Dialect) -> bool {
        Self::of(dialect)
            .0
            .iter()
            .all(|limit| limit.most == usize::MAX)
    }

    /// Uses what a declaration needs.
    ///
    /// # Errors
    /// The limit that it would exceed; nothing is used then.
    pub(crate) fn take(&mut self, strict: &StrictCost) -> Result<(), Limit> {
        let needs = [strict.tools, strict.optional, strict.unions];
        if let Some((limit, _)) = self
            .0
            .iter()
            .zip(needs)
            .find(|(limit, need)| limit.left < *need)
        {
            return Err(*limit);
        }
        for (limit, need) in self.0.iter_mut().zip(needs) {
            limit.left -= need;
        }
        Ok(())
    }
}
