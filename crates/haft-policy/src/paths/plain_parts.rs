//! `PlainParts`: tells quickly which parts of paths no rule, secret name or protected name can match; a workspace may have many
//! thousands of links.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};

use crate::paths::denials::Denials;
use crate::paths::name_progress::protected_parts;
use haft_files::paths::{PathPattern, composed};
use haft_files::texts::LowercaseTexts;

/// Parts of paths, each tested once.
#[derive(Debug)]
pub(crate) struct PlainParts<'a> {
    denials: &'a Denials,
    /// Names that patterns and protected names have, in lower case.
    names: HashSet<String>,
    /// Patterns with wildcards.
    wild: Vec<&'a PathPattern>,
    /// Texts of which a part has one if its name may be secret or its ending protected.
    texts: LowercaseTexts,
    known: HashMap<OsString, bool>,
}

impl<'a> PlainParts<'a> {
    /// Creates the test for what these rules name.
    pub(crate) fn new(denials: &'a Denials) -> Self {
        let named = denials.patterns().flat_map(PathPattern::names);
        let (protected, endings) = protected_parts();
        let names = named.chain(protected).map(str::to_ascii_lowercase);
        Self {
            denials,
            names: names.collect(),
            wild: denials.patterns().filter(|one| one.has_wild()).collect(),
            texts: LowercaseTexts::new(denials.secret_texts().into_iter().chain(endings)),
            known: HashMap::new(),
        }
    }

    /// Whether no rule, secret or protected name matches a path because of this part of it.
    pub(crate) fn is_plain(&mut self, part: &OsStr) -> bool {
        if let Some(plain) = self.known.get(part) {
            return *plain;
        }
        let text = part.to_string_lossy();
        let plain = !self.may_match(&text) || self.denials.is_plain(&text);
        self.known.insert(part.to_owned(), plain);
        plain
    }

    fn may_match(&self, part: &str) -> bool {
        self.names.contains(&composed(part).to_ascii_lowercase())
            || self.texts.are_in(part)
            || self.wild.iter().any(|pattern| pattern.concerns(part))
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::PlainParts;
    use crate::Policy;
    use crate::profile::Profile;
    use haft_types::spec::ToolClass;

    #[test]
    fn the_quick_test_finds_every_part_that_the_full_one_finds() {
        let policy = Policy::builder(Profile::Trusted).classes([("write_file", ToolClass::Edit)]);
        let policy = policy
            .deny("Edit(/Migrations/v[12]/*.Sql)")
            .ask("Read(**/notes-?/**)");
        let policy = policy.deny("write_file(/one/two)").build().unwrap();
        let denials = policy.denials();
        let mut parts = PlainParts::new(&denials);
        for (part, plain) in [
            ("Migrations", false),
            ("v1", false),
            ("a.Sql", false),
            ("notes-7", false),
            ("two", false),
            (".MCP.json", false),
            ("hooks", false),
            ("x.CODE-workspace", false),
            (".env", false),
            (".ENV.local~", false),
            ("secrets.bak.yml", false),
            ("#id_rsa#", false),
            (".aws", false),
            ("a.tfvars.old.json", false),
            ("server.key", false),
            ("lib", true),
            ("v3", true),
            ("monkeys", true),
            ("l12345", true),
        ] {
            assert_eq!(denials.is_plain(part), plain, "{part}");
            assert_eq!(parts.is_plain(OsStr::new(part)), plain, "{part}");
        }
    }
}
