//! `tr`: changes letters of what it reads; it takes no files.

use crate::meaning::CommandMeaning;
use crate::program::{Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(&["tr"], meaning).printing();

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    CommandMeaning {
        unknown: !call.is_known(),
        ..CommandMeaning::default()
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn tr_means_what_its_words_say() {
        check(&[("tr a b", "nothing"), ("tr a *", "unknown")]);
    }
}
