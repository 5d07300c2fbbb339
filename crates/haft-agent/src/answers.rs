//! Converts an outcome to the answer to a model's call.

use haft::Outcome;
use haft::result::Content;
use haft_wire::ContentPart;

use crate::conversation::AnswerText;

/// Returns the part of an outcome that the model reads: its text, then images and sounds.
pub(crate) fn of(outcome: &Outcome) -> AnswerText {
    let mut parts = vec![ContentPart::Text(outcome.to_model())];
    parts.extend(outcome.content.iter().filter_map(media));
    AnswerText {
        parts,
        is_error: !outcome.is_ok(),
        ..AnswerText::default()
    }
}

fn media(content: &Content) -> Option<ContentPart> {
    match content {
        Content::Image { data, mime_type } => Some(ContentPart::Image {
            media_type: mime_type.clone(),
            data: data.clone(),
        }),
        Content::Audio { data, mime_type } => Some(ContentPart::Audio {
            media_type: mime_type.clone(),
            data: data.clone(),
        }),
        Content::Text { .. } | Content::Resource { .. } | Content::ResourceLink { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use haft::Outcome;
    use haft::testing::rendering::check;
    use haft_wire::ContentPart;

    use super::of;

    #[test]
    fn a_model_misses_nothing_of_an_answer() {
        check("agent", |outcome: &Outcome| {
            let parts = of(outcome).parts.into_iter().map(|part| match part {
                ContentPart::Text(text) => text,
                other => format!("{other:?}"),
            });
            parts.collect::<Vec<_>>().join("\n")
        });
    }
}
