//! `DayCounts`: the counts of a day, as stored in the ledger's file.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::EffectCounts;

/// The version of the file.
const VERSION: u32 = 1;

/// The counts of a day.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DayCounts {
    /// The day in UTC.
    pub day: Date,
    /// What calls used on it.
    pub uses: EffectCounts,
    /// The money that models cost on it, in the currency of their prices.
    pub money: f64,
}

/// The single object in the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DayFile {
    v: u32,
    day: String,
    deletions: u64,
    sends: u64,
    commands: u64,
    money: f64,
}

impl DayCounts {
    /// Creates a day without any use.
    pub(super) fn begun(day: Date) -> Self {
        Self {
            day,
            uses: EffectCounts::NONE,
            money: 0.0,
        }
    }

    /// Parses the file's content.
    pub(super) fn read(text: &[u8]) -> Result<Self, String> {
        let written: DayFile = serde_json::from_slice(text).map_err(|e| e.to_string())?;
        if written.v != VERSION {
            return Err(format!(
                "it has version {}, but this haft reads version {VERSION}",
                written.v
            ));
        }
        if !written.money.is_finite() || written.money < 0.0 {
            return Err(format!("invalid amount of money {}", written.money));
        }
        let day = written.day.parse();
        let day = day.map_err(|_| format!("invalid day {:?}", written.day))?;
        Ok(Self {
            day,
            uses: EffectCounts {
                deletions: written.deletions,
                sends: written.sends,
                commands: written.commands,
            },
            money: written.money,
        })
    }

    /// Returns the file's content.
    pub(super) fn write(&self) -> Result<Vec<u8>, String> {
        let EffectCounts {
            deletions,
            sends,
            commands,
        } = self.uses;
        let written = DayFile {
            v: VERSION,
            day: self.day.to_string(),
            deletions,
            sends,
            commands,
            money: self.money,
        };
        let mut text = serde_json::to_vec(&written).map_err(|e| e.to_string())?;
        text.push(b'\n');
        Ok(text)
    }
}
