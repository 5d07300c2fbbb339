//! `Input`: what a tool is called with, after the strict scan; read where it stands.

use std::borrow::Cow;

use haft_json::view::View;
use serde_json::value::RawValue;

/// JSON that passed the strict scan.
#[derive(Debug)]
pub(crate) struct Input<'t> {
    text: Cow<'t, str>,
}

/// What members of an input say, several spellings of one thing together.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    /// The texts, in the order of the names that were looked for. None is empty.
    pub(crate) texts: Vec<String>,
    /// One of the members is there and says something else: the agent would read what is not known here.
    pub(crate) is_odd: bool,
}

impl<'t> Input<'t> {
    pub(crate) fn new(text: Cow<'t, str>) -> Self {
        Self { text }
    }

    /// The input, to be kept.
    pub(crate) fn to_raw(&self) -> Box<RawValue> {
        // It was scanned, so it is JSON.
        RawValue::from_string(self.text.trim_ascii().to_owned()).unwrap_or_default()
    }

    pub(crate) fn view(&self) -> View<'_> {
        View::of(&self.text)
    }

    /// Whether it is an object.
    pub(crate) fn is_object(&self) -> bool {
        self.text.trim_ascii_start().starts_with('{')
    }

    /// The text that it is, if it is one that holds an object or a list.
    pub(crate) fn packed(&self) -> Option<String> {
        let text = self.view().as_str()?;
        let is_json = text.trim_ascii_start().starts_with(['{', '[']);
        // A patch or a line may begin with a bracket, too; it is no JSON then and stays a text.
        let is_json = is_json && serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        is_json.then(|| text.into_owned())
    }

    /// The member of this name, unless it is `null`.
    pub(crate) fn get(&self, name: &str) -> Option<View<'_>> {
        self.view().get(name).filter(|member| !member.is_null())
    }

    /// A member that is a text, and not an empty one.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let text = self.get(name)?.as_str()?;
        Some(text.into_owned()).filter(|text| !text.is_empty())
    }

    /// The first of these members that is a text.
    pub(crate) fn any_text(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| self.text(name))
    }

    /// All of these members: texts, lists of texts, and lists that a text holds.
    pub(crate) fn texts(&self, names: &[&str]) -> Texts {
        let mut all = Texts::default();
        for member in names.iter().filter_map(|name| self.get(name)) {
            all.add(member);
        }
        all
    }
}

/// The items that a text in JSON lists; `None` where it lists none.
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

impl Texts {
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
        if !text.is_empty() {
            self.texts.push(text.to_owned());
        }
    }
}
