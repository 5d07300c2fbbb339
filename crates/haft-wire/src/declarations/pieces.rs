//! `Pieces`: what was written of each tool, in blocks that one list shares with the next, so that another tool costs one block.

use std::sync::Arc;

use super::Written;

/// Tools of a block: where one changes, so many are counted anew instead of all.
const BLOCK: usize = 32;

/// What was written of each tool, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pieces {
    /// All full but the last.
    blocks: Vec<Arc<[Arc<Written>]>>,
    len: usize,
}

impl Pieces {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, at: usize) -> Option<&Arc<Written>> {
        self.blocks.get(at / BLOCK)?.get(at % BLOCK)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Written>> {
        self.blocks.iter().flat_map(|block| block.iter())
    }

    /// The same with others in some places; a place that there is not is left out.
    pub(crate) fn with(&self, others: &[(usize, Arc<Written>)]) -> Self {
        let mut with = self.clone();
        for (at, other) in others {
            if let Some(block) = with.blocks.get_mut(at / BLOCK) {
                let mut all = block.to_vec();
                if let Some(place) = all.get_mut(at % BLOCK) {
                    *place = Arc::clone(other);
                }
                *block = all.into();
            }
        }
        with
    }
}

impl From<Vec<Arc<Written>>> for Pieces {
    fn from(all: Vec<Arc<Written>>) -> Self {
        Self {
            blocks: all.chunks(BLOCK).map(Arc::from).collect(),
            len: all.len(),
        }
    }
}
