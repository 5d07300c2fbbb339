//! `ScannedJson`: the input of a tool, once it has passed the strict scan. It is read in place.

use std::borrow::Cow;

use haft_json::view::View;
use serde_json::value::RawValue;

/// JSON that passed the strict scan.
#[derive(Debug)]
pub(crate) struct ScannedJson<'t> {
    text: Cow<'t, str>,
}

/// The texts in several members of an input that spell the same thing.
#[derive(Debug, Default)]
pub(crate) struct MemberTexts {
    /// The texts, in the order of the members' names. None is empty.
    pub(crate) texts: Vec<String>,
    /// Whether a member holds anything else, which the agent may read in a way that haft does not know.
    pub(crate) is_odd: bool,
}

impl<'t> ScannedJson<'t> {
    pub(crate) fn new(text: Cow<'t, str>) -> Self {
        Self { text }
    }

    /// Returns the input as owned JSON.
    pub(crate) fn to_raw(&self) -> Box<RawValue> {
        // It passed the scan, so it is JSON.
        RawValue::from_string(self.text.trim_ascii().to_owned()).unwrap_or_default()
    }

    pub(crate) fn view(&self) -> View<'_> {
        View::of(&self.text)
    }

    /// Whether it is an object.
    pub(crate) fn is_object(&self) -> bool {
        self.text.trim_ascii_start().starts_with('{')
    }

    /// Returns the object or list that the input holds as a string, if it is one.
    pub(crate) fn inner_json(&self) -> Option<String> {
        let text = self.view().as_str()?;
        let is_json = text.trim_ascii_start().starts_with(['{', '[']);
        // A patch or a command line may also begin with a bracket. It is not JSON then.
        let is_json = is_json && serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        is_json.then(|| text.into_owned())
    }

    /// Returns the member with this name, unless it is `null`.
    pub(crate) fn get(&self, name: &str) -> Option<View<'_>> {
        self.view().get(name).filter(|member| !member.is_null())
    }

    /// Returns a member that is a string and not empty.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let text = self.get(name)?.as_str()?;
        Some(text.into_owned()).filter(|text| !text.is_empty())
    }

    /// Returns the first of these members that is a string and not empty.
    pub(crate) fn any_text(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| self.text(name))
    }

    /// Collects the texts of all these members, which may be strings or lists of strings.
    pub(crate) fn texts(&self, names: &[&str]) -> MemberTexts {
        let mut all = MemberTexts::default();
        for member in names.iter().filter_map(|name| self.get(name)) {
            all.add(member);
        }
        all
    }
}

/// Returns the items of a JSON list of strings; `None` if the text is anything else.
pub(crate) fn list_in(text: &str) -> Option<Vec<String>> {
    if !text.trim_ascii_start().starts_with('[') {
        return None;
    }
    haft_json::scan::scan(text).ok()?;
    let items = View::of(text);
    items
        .items()
        .map(|item| Some(item.as_str()?.into_owned()))
        .collect()
}

/// Whether a text is a JSON object or list.
pub(crate) fn is_json(text: &str) -> bool {
    opens_json(text) && serde_json::from_str::<serde::de::IgnoredAny>(text.trim()).is_ok()
}

/// Whether a tool may read a path out of a text as out of JSON, of whatever dialect. A file of a website can be named `[id].tsx`.
pub(crate) fn may_be_json(text: &str) -> bool {
    opens_json(text) && text.contains(['"', '\''])
}

fn opens_json(text: &str) -> bool {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    text.starts_with(['[', '{'])
}

impl MemberTexts {
    fn add(&mut self, member: View<'_>) {
        if let Some(text) = member.as_str() {
            self.push(&text);
            return;
        }
        if !member.text().starts_with('[') {
            self.is_odd = true;
            return;
        }
        for item in member.items() {
            match item.as_str() {
                Some(text) => self.push(&text),
                None => self.is_odd = true,
            }
        }
    }

    fn push(&mut self, text: &str) {
        if may_be_json(text) {
            let items = list_in(text).unwrap_or_default();
            self.is_odd |= items.is_empty() || items.iter().any(|item| may_be_json(item));
            self.texts
                .extend(items.into_iter().filter(|item| !item.is_empty()));
        }
        if !text.is_empty() {
            self.texts.push(text.to_owned());
        }
    }
}
