// All runs, the search over what they did, and one run beside them.

import { useMemo, useState } from "preact/hooks";
import { runsChanged } from "../live";
import { follow, go, parts, pathOf, query } from "../route";
import type { Found, Run } from "../shapes";
import { ago, now } from "../time";
import { StateWord } from "../parts/badges";
import { Empty } from "../parts/frame";
import { Pending, useReading } from "../parts/reading";
import { Shown } from "../parts/text";
import { Windowed } from "../parts/windowed";
import { RunPage } from "./run";

export function Runs() {
  const run = parts.value[1];
  if (run) return <RunPage key={run} run={run} call={parts.value[2]} />;
  return <RunList />;
}

function RunList() {
  const words = query.value.get("q") ?? "";
  const [typed, setTyped] = useState(words);
  const [filter, setFilter] = useState("");
  // A busy server changes its runs all the time: the list follows at most once in two seconds.
  const beat = useMemo(() => runsChanged.value, [Math.floor(now.value / 2000)]);
  const runs = useReading<Run[]>("/runs", beat);
  const shown = useMemo(() => (runs.value ?? []).filter((run) => fits(run, filter)), [runs.value, filter]);
  return (
    <div class="page">
      <form class="search" role="search" onSubmit={(e) => { e.preventDefault(); go(typed.trim() ? `/runs?q=${encodeURIComponent(typed.trim())}` : "/runs"); }}>
        <input type="search" value={typed} placeholder="Search what was done: a path, a command, a word of a result" aria-label="Search all archives" onInput={(e) => setTyped(e.currentTarget.value)} />
        <button type="submit">Search</button>
        {words && <a href="/runs" onClick={(e) => { setTyped(""); follow(e); }}>All runs</a>}
      </form>
      {words ? <Matches words={words} /> : (
        <>
          <Pending reading={runs} />
          {runs.value?.length === 0 && <NoRuns />}
          {!!runs.value?.length && (
            <section class="table-like" aria-label="runs">
              <div class="list-tools"><input type="search" placeholder="Filter" aria-label="Filter the runs" value={filter} onInput={(e) => setFilter(e.currentTarget.value)} />
                <span class="dim">{shown.length.toLocaleString("en")} of {runs.value.length.toLocaleString("en")} runs</span></div>
              <div class="run-head" aria-hidden="true"><span>state</span><span>run</span><span>door</span><span>calls</span><span>started</span></div>
              <Windowed class="run-list" label="runs, newest first" role="list" count={shown.length} height={44} row={(index) => {
                const run = shown[index];
                return run && <RunRow key={run.run} run={run} />;
              }} />
            </section>
          )}
        </>
      )}
    </div>
  );
}

function fits(run: Run, filter: string): boolean {
  const text = [run.run, run.state, run.door, run.title, run.workspace].join(" ").toLowerCase();
  return filter.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function RunRow({ run }: { run: Run }) {
  return (
    <div class="run-row" role="listitem">
      <a href={pathOf("runs", run.run)} onClick={follow}>
        <span><StateWord word={run.state} /></span>
        <span class="run-title">{run.title ? <Shown text={run.title} /> : <span class="mono">{run.run}</span>}</span>
        <span class="dim"><Shown text={run.door ?? ""} /></span>
        <span>{run.calls.toLocaleString("en")}<span class="unseen"> calls</span></span>
        <span class="dim" title={run.started}>{ago(run.started, now.value)}</span>
      </a>
    </div>
  );
}

function NoRuns() {
  return (
    <Empty title="No runs yet">
      <p>Each client session, script and call is a run: a record of what it did, in order, with the results.</p>
      <pre class="block">haft call list_files</pre>
    </Empty>
  );
}

function Matches({ words }: { words: string }) {
  const found = useReading<Found>(`/audit?q=${encodeURIComponent(words)}`);
  const matches = found.value?.matches ?? [];
  return (
    <section aria-label="what was found">
      <Pending reading={found} />
      {found.value && <p class="dim" role="status">{matches.length === 0 ? "Nothing found" : `${matches.length} found`} among {found.value.looked_at.toLocaleString("en")} calls{found.value.truncated && "; there is more: say it more exactly"}.</p>}
      <ul class="matches">
        {matches.map((match) => (
          <li key={`${match.run}/${match.call}`}>
            <a href={pathOf("runs", match.run, match.call)} onClick={follow}><StateWord word={match.status} /> <strong><Shown text={match.tool} /></strong> <span class="mono"><Shown text={match.text} /></span></a>
            <span class="dim">{ago(match.at, now.value)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
