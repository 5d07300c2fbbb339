# examples/chain_errors.py: try several things, keep what worked, say what did not.
wanted = ["README.md", "NOTES.md", "../secrets.txt"]
found, missing = {}, {}
for path in wanted:
    try:
        found[path] = tools.read_file(path=path).data["total_lines"]
    except PermissionError as refused:   # a rule, a guard or a person said no
        missing[path] = f"not allowed: {refused.message}"
    except ToolError as failed:          # the tool ran, or the arguments were wrong
        missing[path] = f"{failed.kind}: {failed.message}"

return {"found": found, "missing": missing}
