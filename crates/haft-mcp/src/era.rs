//! `Era`: the protocol's revisions and its two eras: with a handshake and sessions, and without.

/// The revisions with an `initialize` handshake, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-11-05.
    V2024_11_05,
    /// 2025-03-26: Streamable HTTP, audio.
    V2025_03_26,
    /// 2025-06-18: structured content, resource links, no batches.
    V2025_06_18,
    /// 2025-11-25: the last with a handshake.
    V2025_11_25,
}

/// The era of the protocol that a peer speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// `initialize` first, then a session.
    Legacy(Revision),
    /// 2026-07-28: every request is self-contained and names its version in `_meta`.
    Modern,
}

/// The revision of the stateless era.
pub const MODERN: &str = "2026-07-28";

/// All supported revisions, newest first.
pub const SUPPORTED: [&str; 5] = [
    MODERN,
    "2025-11-25",
    "2025-06-18",
    "2025-03-26",
    "2024-11-05",
];

impl Revision {
    /// The latest revision with a handshake; offered to a client whose own revision is unknown.
    pub const LATEST: Self = Self::V2025_11_25;

    /// All revisions with a handshake, newest first.
    pub(crate) const LATEST_FIRST: [Self; 4] = [
        Self::V2025_11_25,
        Self::V2025_06_18,
        Self::V2025_03_26,
        Self::V2024_11_05,
    ];

    /// Parses a revision that has a handshake.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "2024-11-05" => Self::V2024_11_05,
            "2025-03-26" => Self::V2025_03_26,
            "2025-06-18" => Self::V2025_06_18,
            "2025-11-25" => Self::V2025_11_25,
            _ => return None,
        })
    }

    /// Returns the revision to answer a client that proposes this one: the same if it is known, else the latest.
    pub fn negotiate(proposed: &str) -> Self {
        Self::parse(proposed).unwrap_or(Self::LATEST)
    }

    /// Returns the revision as text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
        }
    }
}

impl Era {
    /// Returns the revision as text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Legacy(revision) => revision.as_str(),
            Self::Modern => MODERN,
        }
    }

    /// Returns whether each request is self-contained.
    pub fn is_modern(self) -> bool {
        self == Self::Modern
    }

    /// Returns whether results may contain `resource_link` blocks; older clients reject unknown types.
    pub(crate) fn has_resource_links(self) -> bool {
        self >= Revision::V2025_06_18
    }

    /// Returns whether results may contain audio.
    pub(crate) fn has_audio(self) -> bool {
        self >= Revision::V2025_03_26
    }

    /// Returns the error code for a missing resource: a dedicated one until 2025-11-25, invalid params since.
    pub(crate) fn missing_resource_code(self) -> i32 {
        if self.is_modern() { -32602 } else { -32002 }
    }
}

impl PartialEq<Revision> for Era {
    fn eq(&self, other: &Revision) -> bool {
        *self == Self::Legacy(*other)
    }
}

impl PartialOrd<Revision> for Era {
    fn partial_cmp(&self, other: &Revision) -> Option<std::cmp::Ordering> {
        match self {
            Self::Legacy(revision) => revision.partial_cmp(other),
            Self::Modern => Some(std::cmp::Ordering::Greater),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_version_is_taken_and_any_other_gets_the_latest_handshake() {
        for (proposed, expect) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-03-26", "2025-03-26"),
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-11-25"),
            ("2026-07-28", "2025-11-25"),
            ("2024-10-07", "2025-11-25"),
            ("", "2025-11-25"),
            ("zzz", "2025-11-25"),
        ] {
            assert_eq!(
                Revision::negotiate(proposed).as_str(),
                expect,
                "{proposed:?}"
            );
        }
    }

    #[test]
    fn what_an_era_can_carry_follows_its_revision() {
        let old = Era::Legacy(Revision::V2024_11_05);
        let middle = Era::Legacy(Revision::V2025_03_26);
        assert!(!old.has_audio() && middle.has_audio() && Era::Modern.has_audio());
        assert!(!middle.has_resource_links() && Era::Modern.has_resource_links());
        assert!(Era::Legacy(Revision::V2025_06_18).has_resource_links());
    }
}
