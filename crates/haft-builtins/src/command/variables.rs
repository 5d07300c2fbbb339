//! The variables of a call (its argument `env`), set so that no shell of haft's runs what they hold.

use std::ffi::OsString;

use haft::error::ToolError;
use haft::policy::{join_words, runs_at_start};
use haft_sandbox::{CommandSpec, Program};

use crate::command::RunCommandInput;

/// Sets the variables of the call. What bash would run before its line (`BASH_ENV`) is set by the line itself: it is for what the line starts.
pub(super) fn with_variables(
    mut spec: CommandSpec,
    input: &RunCommandInput,
) -> Result<CommandSpec, ToolError> {
    let is_line = matches!(spec.program, Program::Shell(_));
    let mut exports = String::new();
    for (name, value) in &input.env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            let message = format!("env: {name:?} cannot be a variable");
            return Err(ToolError::invalid_arguments(message));
        }
        if !is_line || !runs_at_start(name) {
            spec = spec.with_env(name, value);
            continue;
        }
        if !name
            .bytes()
            .all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
        {
            return Err(ToolError::invalid_arguments(format!(
                "env: {name:?} is a function that bash would define before the line: write the function into the line"
            )));
        }
        exports.extend(["export ", name, "=", &join_words(&[value]), "; "]);
    }
    if let Program::Shell(line) = &mut spec.program
        && !exports.is_empty()
    {
        let mut whole = OsString::from(exports);
        whole.push(&*line);
        *line = whole;
    }
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use haft_sandbox::{CommandSpec, Program};
    use serde_json::json;

    use super::with_variables;

    #[test]
    fn what_bash_would_run_before_a_line_is_set_by_the_line() {
        for (name, line) in [
            ("BASH_ENV", "export BASH_ENV='$(a)'; ls"),
            ("ENV", "export ENV='$(a)'; ls"),
            ("PS4", "ls"),
        ] {
            let input = json!({"command": "ls", "env": {name: "$(a)"}});
            let input = serde_json::from_value(input).unwrap();
            let spec = CommandSpec::new(Program::Shell("ls".into()), Path::new("/"));
            let spec = with_variables(spec, &input).unwrap();
            let Program::Shell(found) = &spec.program else {
                panic!("{:?}", spec.program);
            };
            assert_eq!(found, line);
            assert_eq!(
                spec.env.contains_key(std::ffi::OsStr::new(name)),
                line == "ls"
            );
        }
        let input = json!({"command": "ls", "env": {"BASH_FUNC_ls%%": "() { a; }"}});
        let input = serde_json::from_value(input).unwrap();
        let spec = CommandSpec::new(Program::Shell("ls".into()), Path::new("/"));
        let error = with_variables(spec, &input).unwrap_err().to_string();
        assert!(
            error.contains("write the function into the line"),
            "{error}"
        );
    }
}
