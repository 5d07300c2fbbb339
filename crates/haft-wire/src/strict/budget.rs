//! What strict declarations may take of one request.

use std::fmt;

use crate::dialect::Dialect;

/// What a strict declaration takes of a request's limits.
#[derive(Debug, Clone, Default)]
pub(crate) struct Strict {
    /// How many tools it declares.
    pub(crate) tools: usize,
    /// Arguments that may be left out.
    pub(crate) optional: usize,
    /// Arguments of more than one type.
    pub(crate) unions: usize,
    /// The declaration without `strict`, for a request that is over a limit.
    pub(crate) plain: Vec<u8>,
}

/// What is left of a request's limits.
#[derive(Debug)]
pub(crate) struct Budget([Limit; 3]);

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

impl Budget {
    /// A whole request's: Anthropic's limits are those of its page on structured outputs; other dialects have none.
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

    /// Whether a request of this dialect has no limits.
    pub(crate) fn is_boundless(dialect: Dialect) -> bool {
        Self::of(dialect)
            .0
            .iter()
            .all(|limit| limit.most == usize::MAX)
    }

    /// Takes what a declaration needs.
    ///
    /// # Errors
    /// The limit that it would pass; nothing is taken then.
    pub(crate) fn take(&mut self, strict: &Strict) -> Result<(), Limit> {
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
