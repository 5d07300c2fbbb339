//! Parses a settings text: each known key with its value and position; an unknown key is an error at its position.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::keys::{KeyLookup, SettingKey, SettingType, find, nearest};
use crate::config::value;
use crate::problem::{Problem, SourceLocation};
use haft_setup::text_places::TextPlaces;

/// Maximum size of a settings file, in bytes: anything larger is not one.
pub const MAX_BYTES: u64 = 1024 * 1024;
/// Maximum number of items of all lists in one file, variable or option: rules, names, hosts. Each rule takes some kilobytes.
pub const MAX_ITEMS: usize = 10_000;

/// A key as given by one layer.
#[derive(Debug, Clone)]
pub struct LayerEntry {
    /// The concrete path, with names in place of `*`.
    pub path: Vec<String>,
    /// The key's row in the table.
    pub key: &'static SettingKey,
    /// The value as written, of the right type.
    pub value: toml::Value,
    /// The position of the value.
    pub place: SourceLocation,
    /// For a list: the position of each item.
    pub items: Vec<SourceLocation>,
}

/// A text whose keys are read.
#[derive(Debug)]
struct DocumentReader<'a> {
    places: TextPlaces<'a>,
}

/// Reads a whole settings file.
///
/// # Errors
/// A [`Problem`] with line and column if the text is not TOML.
pub fn parse(source: &str, text: &str) -> Result<Vec<LayerEntry>, Problem> {
    let places = TextPlaces::new(source, text);
    DocumentReader { places }.read()
}

/// Reads a settings file that is not trusted: neither this nor a later error about its keys quotes its lines.
///
/// # Errors
/// A [`Problem`] with line and column if the text is not TOML.
pub fn parse_unquoted(source: &str, text: &str) -> Result<Vec<LayerEntry>, Problem> {
    let places = TextPlaces::new(source, text).without_quotes();
    DocumentReader { places }.read()
}

/// Reads a value given outside a file; `source` names its origin. A text that is not a TOML value is taken literally.
///
/// # Errors
/// A [`Problem`] if the key cannot be parsed.
pub fn parse_single(source: &str, path: Vec<String>, text: &str) -> Result<LayerEntry, Problem> {
    let place = SourceLocation::named(source);
    let key = known(&path, &place)?;
    let literal = || toml::Value::String(text.to_owned());
    let parsed = DeValue::parse(text).ok().map(|v| plain(v.get_ref()));
    let value = match (key.kind, parsed) {
        (SettingType::Text | SettingType::Choice(_), Some(toml::Value::String(s))) => {
            toml::Value::String(s)
        }
        (SettingType::Text | SettingType::Choice(_), _) => literal(),
        // A single rule or name may be given without brackets.
        (SettingType::Items | SettingType::Rules, None) => toml::Value::Array(vec![literal()]),
        (SettingType::Items | SettingType::Rules, Some(toml::Value::String(s))) => {
            toml::Value::Array(vec![toml::Value::String(s)])
        }
        (_, Some(value)) => value,
        (_, None) => literal(),
    };
    from_value(source, path, value)
}

/// Takes a parsed value; `source` names its origin.
///
/// # Errors
/// The key is unknown, or the value does not fit it.
pub fn from_value(
    source: &str,
    path: Vec<String>,
    value: toml::Value,
) -> Result<LayerEntry, Problem> {
    let place = SourceLocation::named(source);
    let key = known(&path, &place)?;
    value::check(key, &value).map_err(|wrong| mismatch(&path, &wrong, place.clone()))?;
    let items = value.as_array().map_or(0, Vec::len);
    count_items(&path, items, &place)?;
    Ok(LayerEntry {
        path,
        key,
        value,
        items: vec![place.clone(); items],
        place,
    })
}

/// Returns the key of a path.
fn known(path: &[String], place: &SourceLocation) -> Result<&'static SettingKey, Problem> {
    match find(path) {
        KeyLookup::Key(key) => Ok(key),
        KeyLookup::Section => Err(Problem::settings(format!(
            "`{}` is a section, not a key",
            path.join(".")
        ))
        .at(place.clone())
        .advise("name a key in it: `haft config show` lists them all")),
        KeyLookup::Unknown => Err(unknown(path, place.clone())),
    }
}

/// Parses a dotted TOML key into its path: `tools."server.tool".enabled`.
pub fn dotted(text: &str) -> Option<Vec<String>> {
    if text.contains(['\n', '\r', '#']) {
        return None;
    }
    let written = format!("{text} = 0");
    let table = DeTable::parse(&written).ok()?;
    let mut path = Vec::new();
    let mut level = table.get_ref();
    loop {
        let (key, value) = level.iter().next()?;
        path.push(key.get_ref().to_string());
        match value.get_ref() {
            DeValue::Table(below) => level = below,
            DeValue::Integer(_) => return Some(path),
            _ => return None,
        }
    }
}

impl DocumentReader<'_> {
    fn read(&self) -> Result<Vec<LayerEntry>, Problem> {
        let table = DeTable::parse(self.places.text()).map_err(|error| self.syntax(&error))?;
        let mut given: Vec<LayerEntry> = Vec::new();
        self.table(&mut Vec::new(), table.get_ref(), &mut given)?;
        let mut items = 0;
        for entry in &given {
            items += entry.items.len();
            count_items(&entry.path, items, &entry.place)?;
        }
        Ok(given)
    }

    fn syntax(&self, error: &toml::de::Error) -> Problem {
        let end = self.places.text().len();
        let range = error.span().unwrap_or(end..end);
        let message = error.message().trim_end_matches('.');
        Problem::settings(format!("this is not TOML: {message}"))
            .at(self.places.at(range))
            .advise("fix the line; https://toml.io describes the format")
    }

    fn table(
        &self,
        path: &mut Vec<String>,
        table: &DeTable<'_>,
        into: &mut Vec<LayerEntry>,
    ) -> Result<(), Problem> {
        for (name, value) in table {
            path.push(name.get_ref().to_string());
            match (find(path), value.get_ref()) {
                (KeyLookup::Key(key), _) => into.push(self.key(path, key, value)?),
                (KeyLookup::Section, DeValue::Table(below)) => self.table(path, below, into)?,
                (KeyLookup::Section, other) => {
                    return Err(Problem::settings(format!(
                        "`{}` is a section, not {}",
                        path.join("."),
                        value::article(other.type_str())
                    ))
                    .at(self.places.at(value.span()))
                    .advise(format!(
                        "write `[{}]` and the keys below it",
                        path.join(".")
                    )));
                }
                (KeyLookup::Unknown, _) => return Err(unknown(path, self.places.at(name.span()))),
            }
            path.pop();
        }
        Ok(())
    }

    fn key(
        &self,
        path: &[String],
        key: &'static SettingKey,
        spanned: &Spanned<DeValue<'_>>,
    ) -> Result<LayerEntry, Problem> {
        let place = self.places.at(spanned.span());
        let items: Vec<_> = match spanned.get_ref() {
            DeValue::Array(array) => {
                count_items(path, array.len(), &place)?;
                array
                    .iter()
                    .map(|item| self.places.at(item.span()))
                    .collect()
            }
            _ => Vec::new(),
        };
        let value = plain(spanned.get_ref());
        value::check(key, &value).map_err(|mut wrong| {
            if !self.places.quotes() {
                wrong.got.clone_from(&wrong.got_kind);
            }
            let at = wrong.item.and_then(|i| items.get(i)).unwrap_or(&place);
            mismatch(path, &wrong, at.clone())
        })?;
        Ok(LayerEntry {
            path: path.to_vec(),
            key,
            value,
            place,
            items,
        })
    }
}

fn unknown(path: &[String], place: SourceLocation) -> Problem {
    let problem = Problem::settings(format!("unknown setting `{}`", path.join("."))).at(place);
    match nearest(path) {
        Some(near) => problem.advise(format!("did you mean `{near}`?")),
        None => problem.advise("`haft config show` lists all settings"),
    }
}

/// Checks the number of items that have been read with this list.
fn count_items(path: &[String], items: usize, place: &SourceLocation) -> Result<(), Problem> {
    if items <= MAX_ITEMS {
        return Ok(());
    }
    Err(Problem::settings(format!(
        "with `{}`, the lists have {items} items; all lists of a file may have {MAX_ITEMS}",
        path.join(".")
    ))
    .at(place.clone())
    .advise("write one rule or name with a pattern for many: `Read(keys/**)`, `*.token`"))
}

fn mismatch(path: &[String], wrong: &value::TypeMismatch, place: SourceLocation) -> Problem {
    Problem::settings(format!(
        "`{}` takes {}, not {}",
        path.join("."),
        wrong.expected,
        wrong.got
    ))
    .at(place)
    .advise(format!(
        "`haft config explain {}` shows what it means",
        path.join(".")
    ))
}

/// Returns a value without its spans.
fn plain(value: &DeValue<'_>) -> toml::Value {
    match value {
        DeValue::String(text) => toml::Value::String(text.to_string()),
        DeValue::Integer(digits) => {
            let read = i64::from_str_radix(digits.as_str(), digits.radix());
            read.map_or_else(
                |_| toml::Value::String(digits.to_string()),
                toml::Value::Integer,
            )
        }
        DeValue::Float(digits) => digits.as_str().parse().map_or_else(
            |_| toml::Value::String(digits.to_string()),
            toml::Value::Float,
        ),
        DeValue::Boolean(flag) => toml::Value::Boolean(*flag),
        DeValue::Datetime(time) => toml::Value::Datetime(*time),
        DeValue::Array(items) => {
            toml::Value::Array(items.iter().map(|item| plain(item.get_ref())).collect())
        }
        DeValue::Table(table) => toml::Value::Table(
            table
                .iter()
                .map(|(name, value)| (name.get_ref().to_string(), plain(value.get_ref())))
                .collect(),
        ),
    }
}

#[cfg(test)]
mod tests;
