//! Whether the model that reviews requests can be asked from here, and what it may decide.

use crate::app::App;
use crate::view::health::{HealthCheck, check};

/// Checks the reviewer, if the settings name one. The model itself is not asked.
pub(super) fn check_model(app: &App) -> Option<HealthCheck> {
    let reviewer = app.executor().reviewer()?;
    let may = reviewer.powers().words().join(", ");
    let detail = format!("{} may: {may}", reviewer.model());
    Some(match reviewer.problem() {
        None => check("reviewer", true, detail, ""),
        Some(why) => {
            let advice =
                "set it where haft starts; until then a person is asked about each request";
            check("reviewer", false, format!("{detail}; {why}"), advice)
        }
    })
}
