//! `DeclarationList`: the written declarations, in blocks that one list shares with the next, so that changing a tool copies only one block.

use std::sync::Arc;

use super::EncodedDeclaration;

/// The number of tools per block: if one changes, only these are counted again.
const BLOCK: usize = 32;

/// The written declaration of each tool, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeclarationList {
    /// The blocks; all are full except the last.
    blocks: Vec<Arc<[Arc<EncodedDeclaration>]>>,
    len: usize,
}

impl DeclarationList {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, at: usize) -> Option<&Arc<EncodedDeclaration>> {
        self.blocks.get(at / BLOCK)?.get(at % BLOCK)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<EncodedDeclaration>> {
        self.blocks.iter().flat_map(|block| block.iter())
    }

    /// Returns a copy with other declarations at some positions; ignores positions that do not exist.
    pub(crate) fn with(&self, others: &[(usize, Arc<EncodedDeclaration>)]) -> Self {
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

impl From<Vec<Arc<EncodedDeclaration>>> for DeclarationList {
    fn from(all: Vec<Arc<EncodedDeclaration>>) -> Self {
        Self {
            blocks: all.chunks(BLOCK).map(Arc::from).collect(),
            len: all.len(),
        }
    }
}
