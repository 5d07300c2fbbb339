//! Questions at the prompt: one line per answer; Enter alone takes the default or leaves it unanswered.

use haft::approval::form::{Question, QuestionForm, QuestionKind};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::Receiver;

use crate::screen::{BOLD, DIM, Screen, styled, visible};

/// The result of showing a form to the user.
pub(super) enum FormResult {
    /// The answers given, by the ids of the questions; a question that was left empty has none.
    Answers(Map<String, Value>),
    /// The user declined to answer.
    Refused,
    /// The input has ended.
    Gone,
}

/// Asks every question; repeats it after an invalid answer.
pub(super) async fn put(
    screen: Screen,
    form: &QuestionForm,
    lines: &mut Receiver<String>,
) -> FormResult {
    screen.err("");
    screen.err(&styled(BOLD, &visible::line(&form.title)));
    let mut answers = Map::new();
    for question in &form.questions {
        show(screen, question);
        loop {
            let Some(line) = lines.recv().await else {
                return FormResult::Gone;
            };
            if line.trim() == "q" {
                return FormResult::Refused;
            }
            match read(question, &line) {
                Ok(Some(value)) => {
                    answers.insert(question.id.clone(), value);
                }
                Ok(None) => {}
                Err(why) => {
                    screen.err(why);
                    continue;
                }
            }
            break;
        }
    }
    FormResult::Answers(answers)
}

fn show(screen: Screen, question: &Question) {
    screen.err(&visible::line(&question.text));
    for (nth, option) in question.options.iter().enumerate() {
        screen.err(&format!("  {} {}", nth + 1, visible::line(option)));
    }
    let how = match question.kind {
        QuestionKind::Single if question.allow_other => "a number, or your own words",
        QuestionKind::Multiple => "numbers, with commas between them",
        QuestionKind::Text => "one line",
        QuestionKind::Single | QuestionKind::Number => "a number",
        QuestionKind::Confirm => "y or n",
    };
    let open = match &question.default {
        Some(value) => format!("Enter alone: {}", visible::line(&value.to_string())),
        None => "Enter alone leaves it open".to_owned(),
    };
    screen.err(&styled(DIM, &format!("{how} · {open} · q answers nothing")));
}

/// Parses the answer in a typed line; `None` if the line is empty.
fn read(question: &Question, line: &str) -> Result<Option<Value>, &'static str> {
    let word = line.trim();
    if word.is_empty() {
        return Ok(None);
    }
    let value = match question.kind {
        QuestionKind::Single => Value::String(option(question, word)?),
        QuestionKind::Multiple => {
            let chosen = word.split(',').map(|part| option(question, part.trim()));
            json!(chosen.collect::<Result<Vec<_>, _>>()?)
        }
        QuestionKind::Text => Value::String(word.to_owned()),
        QuestionKind::Number => word.parse::<f64>().map_or(Value::Null, |number| {
            // Whole numbers stay integers.
            word.parse::<i64>()
                .map_or(json!(number), |whole| json!(whole))
        }),
        QuestionKind::Confirm => match word.to_lowercase().as_str() {
            "y" | "yes" => Value::Bool(true),
            "n" | "no" => Value::Bool(false),
            _ => Value::Null,
        },
    };
    match (question.kind, &value) {
        (QuestionKind::Number, Value::Null) => Err("that is not a number"),
        (QuestionKind::Confirm, Value::Null) => Err("y or n"),
        _ => Ok(Some(value)),
    }
}

fn option(question: &Question, word: &str) -> Result<String, &'static str> {
    let nth = word.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
    if let Some(option) = nth.and_then(|nth| question.options.get(nth)) {
        return Ok(option.clone());
    }
    let named = question.options.iter().any(|option| option == word);
    if named || question.allow_other {
        return Ok(word.to_owned());
    }
    Err("that is not one of the options")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::read;

    #[test]
    fn typed_lines_are_read_by_the_kind_of_question() {
        let question = |kind: &str, other: bool| {
            let question = json!({"id": "a", "type": kind, "text": "?", "options": ["left", "right"], "allow_other": other});
            serde_json::from_value(question).unwrap()
        };
        let rows = [
            ("single", false, "2", Ok(Some(json!("right")))),
            ("single", false, "left", Ok(Some(json!("left")))),
            ("single", false, "3", Err("that is not one of the options")),
            ("single", true, "up", Ok(Some(json!("up")))),
            ("single", false, "", Ok(None)),
            (
                "multiple",
                false,
                "1, 2",
                Ok(Some(json!(["left", "right"]))),
            ),
            (
                "multiple",
                false,
                "1,9",
                Err("that is not one of the options"),
            ),
            ("text", false, " words ", Ok(Some(json!("words")))),
            ("number", false, "3", Ok(Some(json!(3)))),
            ("number", false, "3.5", Ok(Some(json!(3.5)))),
            ("number", false, "three", Err("that is not a number")),
            ("confirm", false, "Y", Ok(Some(Value::Bool(true)))),
            ("confirm", false, "perhaps", Err("y or n")),
        ];
        for (kind, other, line, expect) in rows {
            assert_eq!(
                read(&question(kind, other), line),
                expect,
                "{kind} {line:?}"
            );
        }
    }
}
