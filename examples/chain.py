# examples/chain.py: the ten files with the most hits of a pattern, read and written up.
import asyncio
import collections

PATTERN = "TODO|FIXME|fn |def "

hits = tools.grep_files(pattern=PATTERN, limit=5000).json()["matches"]
count = collections.Counter(hit["path"] for hit in hits)
largest = count.most_common(10)

files = await asyncio.gather(*(tools.read_file(path=path, max_lines=2000) for path, _ in largest))

lines = [f"# Hits of `{PATTERN}`", ""]
for (path, hits), file in zip(largest, files):
    first = next(iter(file.lines()), "")
    print(f"{hits:5}  {path}")
    lines.append(f"- `{path}`: {hits} hits; begins with: {first.strip()}")
tools.write_file(path="target/chain-report.md", content="\n".join(lines) + "\n")

{"files": len(count), "hits": sum(count.values()), "report": "target/chain-report.md"}
