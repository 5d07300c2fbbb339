"""The peers' job: a fresh sandbox, a script that calls a trivial tool ten times, and its output. A line `NAME COUNT` runs it
COUNT times and prints the microseconds of each."""
import json
import sys
import time

import pydantic_monty
from smolagents.local_python_executor import LocalPythonExecutor

CODE = """
total = 0
for i in range(10):
    total = add(a=total, b=i)
print(total)
"""


def add(a, b):
    return a + b


def monty(pool):
    out = pydantic_monty.CollectString()
    with pool.checkout() as session:
        session.feed_run(CODE, external_lookup={"add": add}, print_callback=out)
    return out.output


def smolagents(_):
    executor = LocalPythonExecutor(additional_authorized_imports=[])
    executor.send_tools({"add": add})
    return executor(CODE).logs


def main():
    with pydantic_monty.Monty(min_processes=2) as pool:
        jobs = {"monty": monty, "smolagents": smolagents}
        for line in sys.stdin:
            name, count = line.split()
            times = []
            for _ in range(int(count)):
                # The same pause as before our jobs, because an idle processor responds later.
                time.sleep(0.025)
                begun = time.perf_counter()
                said = jobs[name](pool)
                times.append((time.perf_counter() - begun) * 1e6)
                assert said.strip() == "45", said
            print(json.dumps(times), flush=True)


main()
