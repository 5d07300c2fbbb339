//! The Merkle tree of RFC 6962 over SHA-256, grown at its right edge: a leaf costs as many hashes as the tree is high, at most.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// A hash of the tree.
pub(super) type TreeHash = [u8; 32];

/// What a leaf's hash begins with (RFC 6962, 2.1).
const LEAF: &[u8] = &[0];
/// What an inner node's hash begins with.
const NODE: &[u8] = &[1];

/// Returns the hash of a leaf.
pub(super) fn leaf_hash(leaf: &[u8]) -> TreeHash {
    digest(&[LEAF, leaf])
}

fn node_hash(left: &TreeHash, right: &TreeHash) -> TreeHash {
    digest(&[NODE, left, right])
}

fn digest(parts: &[&[u8]]) -> TreeHash {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

/// The right edge of a tree: the roots of the full subtrees into which its leaves fall, largest first. It is all that adding leaves and the
/// root need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TreeEdge {
    size: u64,
    nodes: Vec<TreeHash>,
}

impl TreeEdge {
    /// Returns the number of leaves.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Adds a leaf.
    pub(super) fn push(&mut self, leaf: TreeHash) {
        let mut node = leaf;
        // Each one bit at the end of the size is a full subtree as large as the one that has just become full.
        for _ in 0..self.size.trailing_ones() {
            if let Some(left) = self.nodes.pop() {
                node = node_hash(&left, &node);
            }
        }
        self.nodes.push(node);
        self.size += 1;
    }

    /// Returns the root.
    pub(super) fn root(&self) -> TreeHash {
        let mut nodes = self.nodes.iter().rev();
        let Some(last) = nodes.next() else {
            return digest(&[]);
        };
        nodes.fold(*last, |right, left| node_hash(left, &right))
    }

    /// Returns its text: the size, and a line for each node.
    pub(super) fn to_text(&self) -> String {
        let nodes = self.nodes.iter().map(|node| STANDARD.encode(node) + "\n");
        format!("{}\n{}", self.size, nodes.collect::<String>())
    }

    /// Reads that text; `None` if it is not of an edge.
    pub(super) fn of_text(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        let size: u64 = lines.next()?.parse().ok()?;
        let node = |line: &str| STANDARD.decode(line).ok()?.try_into().ok();
        let nodes = lines.map(node).collect::<Option<Vec<TreeHash>>>()?;
        (nodes.len() == size.count_ones() as usize).then_some(Self { size, nodes })
    }
}

#[cfg(test)]
mod tests {
    use haft::text::hex;

    use super::*;

    /// The leaves and roots of the reference implementation of Certificate Transparency.
    const LEAVES: [&[u8]; 8] = [
        b"",
        b"\x00",
        b"\x10",
        b"\x20\x21",
        b"\x30\x31",
        b"\x40\x41\x42\x43",
        b"\x50\x51\x52\x53\x54\x55\x56\x57",
        b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
    ];
    const ROOTS: [&str; 9] = [
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];

    #[test]
    fn roots_are_those_of_certificate_transparency() {
        let mut edge = TreeEdge::default();
        assert_eq!(hex(&edge.root()), ROOTS[0]);
        for (count, leaf) in LEAVES.iter().enumerate() {
            edge.push(leaf_hash(leaf));
            assert_eq!(hex(&edge.root()), ROOTS[count + 1], "{count}");
            assert_eq!(TreeEdge::of_text(&edge.to_text()), Some(edge.clone()));
        }
    }

    /// The definition of RFC 6962, 2.1.
    fn whole(leaves: &[TreeHash]) -> TreeHash {
        match leaves {
            [] => digest(&[]),
            [one] => *one,
            many => {
                let left = many.len().next_power_of_two() / 2;
                node_hash(&whole(&many[..left]), &whole(&many[left..]))
            }
        }
    }

    #[test]
    fn a_grown_tree_has_the_root_of_its_definition() {
        let leaves: Vec<TreeHash> = (0_u32..300).map(|n| leaf_hash(&n.to_be_bytes())).collect();
        let mut edge = TreeEdge::default();
        for (count, leaf) in leaves.iter().enumerate() {
            edge.push(*leaf);
            assert_eq!(edge.root(), whole(&leaves[..=count]), "{count}");
        }
    }

    #[test]
    fn what_is_no_text_of_an_edge_is_refused() {
        let mut edge = TreeEdge::default();
        for n in 0_u8..5 {
            edge.push(leaf_hash(&[n]));
        }
        let text = edge.to_text();
        for end in 0..text.len() {
            assert_eq!(TreeEdge::of_text(&text[..end]), None, "{end}");
        }
        for other in [
            "",
            "0",
            "1\n",
            "0\n\n",
            "-1\n",
            "18446744073709551616\n",
            "1\nx\n",
        ] {
            assert_eq!(TreeEdge::of_text(other), None, "{other:?}");
        }
        assert_eq!(TreeEdge::of_text("0\n"), Some(TreeEdge::default()));
    }
}
