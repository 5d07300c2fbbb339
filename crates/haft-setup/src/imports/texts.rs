//! Converts texts of clients' settings with variables to texts of haft's settings: `${env:NAME}` for a variable, the value itself for a
//! place.

use std::path::Path;

use serde_json::{Map, Value};

use crate::program::is_variable;
use crate::programs;
use crate::site::SetupSite;

/// The context in which texts are converted.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConversionContext<'a> {
    pub(super) at: SetupSite<'a>,
    pub(super) client: &'static str,
    /// The folder of the package that the settings belong to.
    pub(super) package: Option<&'a Path>,
    /// The inputs that VS Code asks the user for.
    pub(super) inputs: &'a [Map<String, Value>],
}

/// A converted text, with notes about it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ConvertedText {
    pub(super) text: String,
    pub(super) notes: Vec<String>,
    /// The positions of haft's references in the text.
    references: Vec<usize>,
}

impl ConvertedText {
    /// Appends a reference of haft's.
    fn push_reference(&mut self, reference: &str) {
        self.references.push(self.text.len());
        self.text.push_str(reference);
    }

    /// Checks that nothing in the text has become a reference by accident: neither in inserted values, nor where they meet the rest.
    fn check_references(self) -> Result<Self, String> {
        let mut starts = self.text.match_indices("${").map(|(at, _)| at);
        match starts.find(|at| !self.references.contains(at)) {
            None => Ok(self),
            Some(at) => {
                let shown = haft::text::clip(&self.text[at..], 60);
                Err(format!("haft would read `{shown}` as a reference"))
            }
        }
    }
}

impl ConversionContext<'_> {
    /// Converts a text; returns why that is impossible if it needs something that is missing here.
    pub(super) fn convert(&self, text: &str) -> Result<ConvertedText, String> {
        let convert = programs::imports(self.client).convert;
        let text = convert.map_or_else(|| text.to_owned(), |convert| convert(text));
        let mut carried = ConvertedText::default();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once("${") {
            let Some((inner, after)) = after.split_once('}') else {
                break;
            };
            carried.text.push_str(before);
            self.reference(inner, &mut carried)?;
            rest = after;
        }
        carried.text.push_str(rest);
        carried.check_references()
    }

    /// Converts what is between the braces.
    fn reference(&self, inner: &str, carried: &mut ConvertedText) -> Result<(), String> {
        if let Some(name) = inner.strip_prefix("env:") {
            carried.push_reference(&self.variable(name)?);
        } else if let Some(path) = inner.strip_prefix("file:").filter(|_| self.reads_files()) {
            if !Path::new(path).is_absolute() {
                return Err(format!("`${{{inner}}}` is not an absolute path"));
            }
            carried.push_reference(&format!("${{file:{path}}}"));
            carried
                .notes
                .push(format!("it gets what is in the file {path}"));
        } else if let Some(id) = inner.strip_prefix("input:") {
            self.input(id, carried)?;
        } else if let Some(place) = self.place(inner)? {
            carried
                .notes
                .push(format!("`${{{inner}}}` is {place} from now on"));
            carried.text.push_str(&place);
        } else {
            let (name, default) = match inner.split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (inner, None),
            };
            if !is_variable(name) {
                return Err(format!("haft does not know `${{{inner}}}`"));
            }
            match (default, self.at.environment.get(name)) {
                (Some(default), None) => {
                    let note = format!("the variable {name} is not set: its default is used");
                    carried.notes.push(note);
                    carried.text.push_str(default);
                }
                _ => carried.push_reference(&self.variable(name)?),
            }
        }
        Ok(())
    }

    /// Returns whether the client itself inserts files into texts: an import does not do what the client would not.
    fn reads_files(&self) -> bool {
        programs::imports(self.client).inserts_files
    }

    /// Returns a reference to a variable that is set: haft does not start with one that is not.
    pub(super) fn variable(&self, name: &str) -> Result<String, String> {
        if !is_variable(name) {
            return Err(format!("`{name}` is not the name of a variable"));
        }
        match self.at.environment.get(name) {
            Some(_) => Ok(format!("${{env:{name}}}")),
            None => Err(format!(
                "it needs the variable {name}, which is not set here: set it, and import again"
            )),
        }
    }

    /// Returns the value of a place or character that the client inserts.
    fn place(&self, name: &str) -> Result<Option<String>, String> {
        let shown = |path: &Path| path.to_string_lossy().into_owned();
        let workspace = self.at.workspace;
        Ok(Some(match name {
            "workspaceFolder" | "workspaceRoot" => shown(workspace),
            _ if programs::is_workspace_name(name) => shown(workspace),
            "workspaceFolderBasename" => {
                let name = workspace.file_name().unwrap_or_default();
                name.to_string_lossy().into_owned()
            }
            "userHome" => match self.at.environment.folder("HOME") {
                Some(home) => shown(&home),
                None => return Err("HOME is not set".to_owned()),
            },
            "pathSeparator" | "/" => "/".to_owned(),
            _ if name == "PLUGIN_ROOT" || programs::is_package_name(name) => match self.package {
                Some(package) => shown(package),
                None => return Err(format!("`${{{name}}}` has a meaning only in a plugin")),
            },
            _ => return Ok(None),
        }))
    }

    /// Converts an input that VS Code asks for to a variable.
    fn input(&self, id: &str, carried: &mut ConvertedText) -> Result<(), String> {
        let named =
            |input: &&Map<String, Value>| input.get("id").and_then(Value::as_str) == Some(id);
        let input = self.inputs.iter().find(named);
        let text = |key: &str| input.and_then(|input| input.get(key)?.as_str());
        let name: String = id
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() {
                    c.to_ascii_uppercase()
                } else {
                    '_'
                }
            })
            .collect();
        let name = if is_variable(&name) {
            name
        } else {
            format!("INPUT_{name}")
        };
        let is_secret =
            input.is_some_and(|input| input.get("password") == Some(&Value::Bool(true)));
        if self.at.environment.get(&name).is_some() {
            carried.push_reference(&format!("${{env:{name}}}"));
            carried.notes.push(format!(
                "the client asks for `{id}`: haft uses the variable {name}"
            ));
            return Ok(());
        }
        if let Some(default) = text("default").filter(|_| !is_secret) {
            carried.text.push_str(default);
            carried
                .notes
                .push(format!("the client asks for `{id}`: its default is used"));
            return Ok(());
        }
        let about = text("description").map(|about| format!(" ({about})"));
        Err(format!(
            "the client asks for `{id}`{}: set the variable {name}, and import again",
            about.unwrap_or_default()
        ))
    }
}
