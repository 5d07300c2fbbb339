//! A schema compiled for the single pass: nodes with the checks of the common subset.

/// A set of JSON types.
pub(super) type Types = u8;
pub(super) const NULL: Types = 1;
pub(super) const BOOLEAN: Types = 2;
pub(super) const INTEGER: Types = 4;
pub(super) const NUMBER: Types = 8;
pub(super) const STRING: Types = 16;
pub(super) const ARRAY: Types = 32;
pub(super) const OBJECT: Types = 64;
pub(super) const ANY: Types = 127;

/// The index of a node in its [`Program`].
pub(super) type NodeId = usize;

/// All nodes of one schema; the first is its root.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub(super) nodes: Vec<Node>,
}

/// The checks at one place of an instance.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// A node with the remaining checks.
    pub(super) target: Option<NodeId>,
    /// Whether `null` passes regardless of the other checks.
    pub(super) null_passes: bool,
    pub(super) types: Types,
    pub(super) string: Option<Lengths>,
    pub(super) number: Option<Range>,
    pub(super) array: Option<Box<ArrayRule>>,
    pub(super) object: Option<Box<ObjectRule>>,
    /// The only scalars that pass, if limited.
    pub(super) allowed: Option<Box<[Scalar]>>,
}

impl Node {
    /// Creates a node that accepts these types without further checks.
    pub(super) fn of(types: Types) -> Self {
        Self {
            target: None,
            null_passes: false,
            types,
            string: None,
            number: None,
            array: None,
            object: None,
            allowed: None,
        }
    }
}

/// A scalar of `enum` or `const`; an integer fits 18 digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scalar {
    Null,
    Boolean(bool),
    Integer(i64),
    String(String),
}

/// Lengths in code points, or counts of items.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lengths {
    pub(super) min: u64,
    pub(super) max: u64,
}

/// One end of a range.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bound {
    Integer(i64),
    Double(f64),
}

/// The numeric checks; each end has an exclusive form.
#[derive(Debug, Clone, Default)]
pub(super) struct Range {
    pub(super) min: Option<Bound>,
    pub(super) above: Option<Bound>,
    pub(super) max: Option<Bound>,
    pub(super) below: Option<Bound>,
    pub(super) multiple_of: Option<i64>,
}

#[derive(Debug, Clone)]
pub(super) struct ArrayRule {
    pub(super) items: Option<NodeId>,
    pub(super) count: Lengths,
    pub(super) unique: bool,
}

/// The rule for properties without their own rule.
#[derive(Debug, Clone, Copy)]
pub(super) enum Additional {
    Any,
    None,
    Node(NodeId),
}

#[derive(Debug, Clone)]
pub(super) struct ObjectRule {
    tags: Box<[u32]>,
    properties: Box<[(Box<str>, NodeId)]>,
    /// A bit mask of properties.
    pub(super) required: u128,
    pub(super) additional: Additional,
    pub(super) count: Lengths,
}

/// Maximum number of properties of one object in the single pass.
pub(super) const MAX_PROPERTIES: usize = 128;

impl ObjectRule {
    pub(super) fn new(properties: Vec<(Box<str>, NodeId)>, additional: Additional) -> Self {
        Self {
            tags: properties.iter().map(|(n, _)| tag(n.as_bytes())).collect(),
            properties: properties.into(),
            required: 0,
            additional,
            count: Lengths {
                min: 0,
                max: u64::MAX,
            },
        }
    }

    /// Returns the index of a property and its node.
    #[inline]
    pub(super) fn find(&self, name: &[u8]) -> Option<(usize, NodeId)> {
        let wanted = tag(name);
        let hits = self.tags.iter().zip(&self.properties).enumerate();
        for (number, (&tag, (known, node))) in hits {
            if tag == wanted && known.as_bytes() == name {
                return Some((number, *node));
            }
        }
        None
    }
}

/// Hashes length, first, middle and last byte: enough to distinguish nearly all names of an object.
#[inline]
fn tag(name: &[u8]) -> u32 {
    let byte = |at: usize| u32::from(name.get(at).copied().unwrap_or_default());
    let length = u32::try_from(name.len().min(255)).unwrap_or(255);
    length << 24 | byte(0) << 16 | byte(name.len() / 2) << 8 | byte(name.len().wrapping_sub(1))
}
