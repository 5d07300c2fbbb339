import json
import sys


def add(**arguments):
    print(json.dumps(arguments), flush=True)
    return json.loads(sys.stdin.readline())


total = 0
for i in range(10):
    total = add(a=total, b=i)
print(json.dumps({"printed": total}), flush=True)
