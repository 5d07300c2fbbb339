//! Rules that cover only some of what their cells say: some requests to a host, or calls with several arguments. One of them is covered
//! where a single other one covers it; what several cover together is not decided.

use super::cells::{CellTools, RuleCell, Value};
use crate::rules::network_pattern::NetworkPattern;
use crate::rules::rule::{Rule, RuleList, Specifier};

/// A cell of a rule.
pub(super) struct CellOf<'a, 'r> {
    pub(super) rule: &'a Rule,
    pub(super) cell: &'a RuleCell<'r>,
}

/// Whether a cell of one rule covers a cell of another that covers only some of what its cell says.
pub(super) fn covers(wide: &CellOf<'_, '_>, narrow: &CellOf<'_, '_>) -> bool {
    let (wide_rule, wide) = (wide.rule, wide.cell);
    let (narrow_rule, narrow) = (narrow.rule, narrow.cell);
    let calls = wide_rule.kept_for.is_none() || wide_rule.kept_for == narrow_rule.kept_for;
    let tools = matches!(wide.tools, CellTools::Any) || wide.tools == narrow.tools;
    let classes = narrow.classes & !wide.classes == 0;
    calls
        && tools
        && classes
        && wide.is_of_kind_of(narrow)
        && match (wide.value, narrow.value) {
            (Value::All, Value::All) | (Value::Param(_), Value::Param(_)) => {
                arguments(&wide_rule.specifier, &narrow_rule.specifier)
            }
            (Value::Network(wide, of), Value::Network(narrow, list)) => {
                requests(wide, of, narrow, list)
            }
            _ => false,
        }
}

fn arguments(wide: &Specifier, narrow: &Specifier) -> bool {
    match (wide, narrow) {
        (Specifier::Param(wide), Specifier::Param(narrow)) => wide.covers(narrow),
        _ => false,
    }
}

fn requests(wide: &NetworkPattern, of: RuleList, narrow: &NetworkPattern, list: RuleList) -> bool {
    match (of == RuleList::Allow, list == RuleList::Allow) {
        (true, true) => wide.allows_all_of(narrow),
        (false, true) => wide.covers(narrow),
        (false, false) => wide.forbids_all_of(narrow),
        (true, false) => false,
    }
}
