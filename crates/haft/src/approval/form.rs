//! `QuestionForm`: questions to the user, and the check that answers fit them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Maximum number of questions per form.
pub const MAX_QUESTIONS: usize = 32;
/// Maximum number of options per question.
pub const MAX_OPTIONS: usize = 100;
/// Maximum length of a text answer, in bytes.
pub const MAX_ANSWER: usize = 64 * 1024;

/// What sort of answer a question takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// One of the options.
    Single,
    /// Some of the options.
    Multiple,
    /// Words.
    Text,
    /// A number.
    Number,
    /// Yes or no.
    Confirm,
}

/// A question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The id of the answer.
    pub id: String,
    /// The type of the answer.
    #[serde(rename = "type")]
    pub kind: QuestionKind,
    /// The question.
    pub text: String,
    /// The choices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The answer if the user gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Whether other answers than the options are accepted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_other: bool,
}

/// Questions that the user answers together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuestionForm {
    /// What the questions are about.
    pub title: String,
    /// The questions, at most 32.
    pub questions: Vec<Question>,
}

impl QuestionForm {
    /// Returns the problems of the form itself; empty if it can be asked.
    pub fn validate(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.questions.is_empty() || self.questions.len() > MAX_QUESTIONS {
            problems.push(format!("questions: 1 to {MAX_QUESTIONS} can be asked"));
        }
        for (nth, question) in self.questions.iter().enumerate() {
            let twice = self.questions.iter().take(nth).any(|q| q.id == question.id);
            if question.id.is_empty() || twice {
                problems.push(format!(
                    "questions[{nth}].id: each question needs a unique id"
                ));
            }
            let choice = matches!(question.kind, QuestionKind::Single | QuestionKind::Multiple);
            if choice && question.options.is_empty() && !question.allow_other {
                problems.push(format!("questions[{nth}].options: a choice needs options"));
            }
            if question.options.len() > MAX_OPTIONS {
                problems.push(format!("questions[{nth}].options: at most {MAX_OPTIONS}"));
            }
            let default = question.default.as_ref();
            if let Some(why) = default.and_then(|value| question.refuses(value)) {
                problems.push(format!("questions[{nth}].default: {why}"));
            }
        }
        problems
    }

    /// Returns the problems of these answers; empty if they fit. A question may stay unanswered.
    pub fn validate_answers(&self, answers: &Map<String, Value>) -> Vec<String> {
        let refused = |(id, value): (&String, &Value)| {
            let Some(question) = self.questions.iter().find(|q| q.id == *id) else {
                return Some(format!("answers.{id}: no such question"));
            };
            let why = question.refuses(value)?;
            Some(format!("answers.{id}: {why}"))
        };
        answers.iter().filter_map(refused).collect()
    }

    /// Returns answers that fit, to show what answers look like: the defaults, else the first options.
    pub fn sample_answers(&self) -> Map<String, Value> {
        let questions = self.questions.iter();
        questions
            .map(|question| (question.id.clone(), question.sample_answer()))
            .collect()
    }

    /// Fills in the defaults of unanswered questions; also returns the ids of questions with neither answer nor default.
    pub fn with_defaults(
        &self,
        mut answers: Map<String, Value>,
    ) -> (Map<String, Value>, Vec<String>) {
        let mut open = Vec::new();
        for question in &self.questions {
            match &question.default {
                _ if answers.contains_key(&question.id) => {}
                Some(default) => {
                    answers.insert(question.id.clone(), default.clone());
                }
                None => open.push(question.id.clone()),
            }
        }
        (answers, open)
    }
}

impl Question {
    fn sample_answer(&self) -> Value {
        let option = || self.options.first().map_or("…", String::as_str);
        self.default.clone().unwrap_or_else(|| match self.kind {
            QuestionKind::Single => option().into(),
            QuestionKind::Multiple => vec![option()].into(),
            QuestionKind::Text => "…".into(),
            QuestionKind::Number => 0.into(),
            QuestionKind::Confirm => true.into(),
        })
    }

    /// Returns why a value is not a valid answer; `None` if it is.
    fn refuses(&self, value: &Value) -> Option<&'static str> {
        let known = |text: &str| {
            let other = self.allow_other && text.len() <= MAX_ANSWER;
            other || self.options.iter().any(|option| option == text)
        };
        let fits = match (self.kind, value) {
            (QuestionKind::Single, Value::String(text)) => known(text),
            (QuestionKind::Multiple, Value::Array(chosen)) => {
                let all = chosen.iter().all(|one| one.as_str().is_some_and(known));
                all && chosen.len() <= MAX_OPTIONS
            }
            (QuestionKind::Text, Value::String(text)) => text.len() <= MAX_ANSWER,
            (QuestionKind::Number, Value::Number(_)) | (QuestionKind::Confirm, Value::Bool(_)) => {
                true
            }
            _ => false,
        };
        let why = match self.kind {
            QuestionKind::Single => "one of the options",
            QuestionKind::Multiple => "a list of options",
            QuestionKind::Text => "a text of at most 64 KiB",
            QuestionKind::Number => "a number",
            QuestionKind::Confirm => "true or false",
        };
        (!fits).then_some(why)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::QuestionForm;

    fn form(question: &serde_json::Value) -> QuestionForm {
        serde_json::from_value(json!({"title": "t", "questions": [question]})).unwrap()
    }

    #[test]
    fn answers_fit_their_questions_or_are_refused() {
        let single = json!({"id": "a", "type": "single", "text": "?", "options": ["x", "y"]});
        let other = json!({"id": "a", "type": "single", "text": "?", "options": ["x"], "allow_other": true});
        let multiple = json!({"id": "a", "type": "multiple", "text": "?", "options": ["x", "y"]});
        let text = json!({"id": "a", "type": "text", "text": "?"});
        let number = json!({"id": "a", "type": "number", "text": "?"});
        let confirm = json!({"id": "a", "type": "confirm", "text": "?"});
        for (question, value, fits) in [
            (&single, json!("x"), true),
            (&single, json!("z"), false),
            (&single, json!(["x"]), false),
            (&other, json!("anything"), true),
            (&multiple, json!(["x", "y"]), true),
            (&multiple, json!(["x", "z"]), false),
            (&multiple, json!("x"), false),
            (&text, json!("words"), true),
            (&text, json!("w".repeat(65_537)), false),
            (&text, json!(1), false),
            (&number, json!(1.5), true),
            (&number, json!("1"), false),
            (&confirm, json!(true), true),
            (&confirm, json!("yes"), false),
        ] {
            let sample = form(question).sample_answers();
            assert!(sample.contains_key("a"), "{question}");
            assert!(form(question).validate_answers(&sample).is_empty());
            let answers = json!({"a": value}).as_object().unwrap().clone();
            let refused = form(question).validate_answers(&answers);
            assert_eq!(refused.is_empty(), fits, "{question} {answers:?}");
        }
        let stranger = json!({"b": 1}).as_object().unwrap().clone();
        assert_eq!(
            form(&text).validate_answers(&stranger),
            ["answers.b: no such question"]
        );
    }

    #[test]
    fn forms_that_cannot_be_asked_are_refused() {
        for question in [
            json!({"id": "", "type": "text", "text": "?"}),
            json!({"id": "a", "type": "single", "text": "?"}),
            json!({"id": "a", "type": "number", "text": "?", "default": "one"}),
        ] {
            assert_eq!(form(&question).validate().len(), 1, "{question}");
        }
        let none = QuestionForm {
            title: String::new(),
            questions: Vec::new(),
        };
        assert_eq!(none.validate().len(), 1);
    }
}
