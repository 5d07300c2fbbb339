# examples/chain_by_reference.py: a result too large to carry, filtered by lines and passed on whole.
log = "\n".join(f"{n} {'error' if n % 1000 == 0 else 'ok'}" for n in range(20_000))
tools.write_file(path="target/app.log", content=log)

whole = tools.read_file(path="target/app.log", max_lines=20_000)
print(f"{len(whole.text)} bytes here, {whole.artifacts[0].bytes} kept by haft")

errors = [line for line in whole.lines() if line.endswith("error")]
tools.write_file(path="target/copy.log", content=whole)   # by reference: never in the script's memory
kept = artifacts.put("\n".join(errors), "text/plain")

return {"errors": len(errors), "kept": kept}
