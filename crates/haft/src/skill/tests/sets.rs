//! Sets of skills: order, shadowing, trust, filters, changes.
