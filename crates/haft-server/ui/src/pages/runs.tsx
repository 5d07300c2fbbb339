// The runs page: all runs, filtered by the server and read page by page; the search over all archives; one run by its id.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, errorText } from "../api";
import { useKeys } from "../keys";
import { runsChanged } from "../live";
import { follow, go, parts, pathOf, query } from "../route";
import { session } from "../session";
import type { SearchResults, Run, Tool } from "../shapes";
import { midnight, now } from "../time";
import { StateWord } from "../parts/badges";
import { Empty, wide } from "../parts/frame";
import { PageHead } from "../parts/head";
import { useHeld } from "../parts/held";
import { Pending, useReading } from "../parts/reading";
import { RunHeads, RunRow } from "../parts/runrow";
import { SafeText } from "../parts/text";
import { When } from "../parts/when";
import { Windowed } from "../parts/windowed";
import { RunPage } from "./run";

/** Number of runs per read. */
const PAGE = 100;
/** The height of a row; on a phone it has two lines. */
const ROW = 36;
const TALL = 56;

export function Runs() {
  const run = parts.value[1];
  if (run) return <RunPage key={run} run={run} call={parts.value[2]} />;
  return <RunList />;
}

/** The filters, named as in the address. */
const FILTERS = ["tool", "status", "folder", "time"] as const;
type Filters = Record<(typeof FILTERS)[number], string>;

const filtersOf = (members: URLSearchParams): Filters => ({
  tool: members.get("tool") ?? "", status: members.get("status") ?? "", folder: members.get("folder") ?? "", time: members.get("time") ?? "",
});

/** Returns the API path of the filtered list. */
function pathOfPage(filters: Filters, day: number): string {
  const asked = new URLSearchParams({ limit: String(PAGE) });
  if (filters.tool) asked.set("tool", filters.tool);
  if (filters.status === "open" || filters.status === "suspended") asked.set("state", filters.status);
  else if (filters.status) asked.set("status", filters.status);
  if (filters.folder) asked.set("workspace", filters.folder);
  if (filters.time) asked.set("since", new Date(day - (Number(filters.time) - 1) * 86_400_000).toISOString());
  return `/runs?${asked}`;
}

function RunList() {
  const words = query.value.get("q") ?? "";
  const [typed, setTyped] = useState(words);
  const finding = useRef<HTMLInputElement>(null);
  useEffect(() => setTyped(words), [words]);
  useKeys(() => [{ key: "/", does: "search all archives", run: () => finding.current?.focus() }]);
  return (
    <div class="page runs">
      <PageHead title="Runs" thing={words || undefined} />
      <form class="search" role="search" onSubmit={(e) => { e.preventDefault(); go(typed.trim() ? `/runs?q=${encodeURIComponent(typed.trim())}` : "/runs"); }}>
        <input ref={finding} type="search" value={typed} placeholder="Search past calls: a path, a command, a word from a result" aria-label="Search all archives" onInput={(e) => setTyped(e.currentTarget.value)} />
        <button type="submit">Search</button>
        {words && <a href="/runs" onClick={follow}>All runs</a>}
      </form>
      {words ? <Matches words={words} /> : <FilteredRuns />}
    </div>
  );
}

function FilteredRuns() {
  const filters = filtersOf(query.value);
  const day = midnight(now.value).getTime();
  const path = pathOfPage(filters, day);
  // On a busy server, runs change all the time: the list updates at most every two seconds.
  const beat = useMemo(() => runsChanged.value, [Math.floor(now.value / 2000)]);
  const first = useReading<Run[]>(path, beat);
  const [older, setOlder] = useState<{ path: string; runs: Run[]; done: boolean }>({ path, runs: [], done: false });
  const [busy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState("");
  // By its id: a new run above it must not move the selection to another one.
  const [selected, setSelected] = useState<string>();
  const all = useMemo(() => {
    const head = first.value ?? [];
    const known = new Set(head.map((run) => run.run));
    const rest = older.path === path ? older.runs.filter((run) => !known.has(run.run)) : [];
    return [...head, ...rest];
  }, [first.value, older, path]);
  const { rows: runs, fresh, release, pointer } = useHeld(all, (run) => run.run);
  const whole = older.path === path && older.runs.length ? older.done : (first.value?.length ?? 0) < PAGE;
  const more = () => {
    const last = all[all.length - 1];
    if (!last || busy) return;
    // What comes is below the rows that are there.
    release();
    setBusy(true);
    get<Run[]>(`${path}&after=${encodeURIComponent(last.run)}`).then(
      (page) => {
        setTrouble("");
        setOlder((before) => ({ path, runs: [...(before.path === path ? before.runs : all.slice(PAGE)), ...page], done: page.length < PAGE }));
      },
      (error) => setTrouble(errorText(error)),
    ).finally(() => setBusy(false));
  };
  const at = runs.findIndex((run) => run.run === selected);
  const open = runs[at];
  const select = (index: number) => setSelected(runs[Math.max(0, Math.min(runs.length - 1, index))]?.run);
  useKeys(() => [
    { key: "j", does: "next run", run: () => select(at + 1) },
    { key: "k", does: "previous run", run: () => select(at - 1) },
    { key: "Enter", does: "open the run", run: () => { if (open) go(pathOf("runs", open.run)); } },
  ]);
  const filtered = FILTERS.some((name) => filters[name]);
  return (
    <>
      <FilterBar filters={filters} runs={runs} />
      <Pending reading={first} />
      {first.value?.length === 0 && (filtered ? <p class="note">No run matches these filters. <a href="/runs" onClick={follow}>Show all</a></p> : <NoRuns />)}
      {runs.length > 0 && (
        <section class="table-like" aria-label="runs" {...pointer}>
          <RunHeads />
          <Windowed class="run-list" label="runs, newest first" role="list" count={runs.length} height={wide.value ? ROW : TALL} keep={at} row={(index) => {
            const run = runs[index];
            return run && <RunRow key={run.run} run={run} at={now.value} current={index === at} />;
          }} />
          <p class="list-tools dim"><span>{runs.length.toLocaleString("en")} {whole ? (runs.length === 1 ? "run" : "runs") : "runs shown"}</span>
            {!whole && <button type="button" disabled={busy} onClick={more}>{busy ? "Loading …" : "Show older runs"}</button>}
            {fresh.length > 0 && <button type="button" class="quiet" onClick={release}>{fresh.length === 1 ? "1 new run" : `${fresh.length.toLocaleString("en")} new runs`}</button>}
            {trouble && <span class="bad-text" role="alert">{trouble}</span>}</p>
        </section>
      )}
    </>
  );
}

const STATUSES: [string, string][] = [
  ["", "any outcome"], ["failed", "with a failure"], ["denied", "with a denial"], ["error", "with an error"], ["timeout", "with a timeout"],
  ["cancelled", "with a cancelled call"], ["suspended", "waiting for approval"], ["open", "running"],
];
const TIMES: [string, string][] = [["", "any time"], ["1", "today"], ["2", "since yesterday"], ["7", "last 7 days"], ["30", "last 30 days"]];

function FilterBar({ filters, runs }: { filters: Filters; runs: Run[] }) {
  const tools = useReading<Tool[]>("/tools");
  const names = [...new Set([...(tools.value ?? []).map((tool) => tool.name), ...(filters.tool ? [filters.tool] : [])])].sort();
  const here = session.value?.workspace;
  const folders = [...new Set([here, filters.folder, ...runs.map((run) => run.workspace)])].filter((folder): folder is string => !!folder);
  const set = (name: keyof Filters, value: string) => {
    const next = new URLSearchParams(Object.entries({ ...filters, [name]: value }).filter(([, set]) => set));
    go(next.size ? `/runs?${next}` : "/runs", true);
  };
  const choice = (name: keyof Filters, label: string, options: [string, string][]) => (
    <select aria-label={label} value={filters[name]} onChange={(e) => set(name, e.currentTarget.value)} class={filters[name] ? "in-force" : ""}>
      {options.map(([value, words]) => <option key={value} value={value}>{words}</option>)}
    </select>
  );
  return (
    <div class="filters" role="group" aria-label="filters">
      {choice("status", "outcome", STATUSES)}
      {choice("tool", "tool", [["", "any tool"], ...names.map((name): [string, string] => [name, name])])}
      {choice("folder", "folder", [["", "any folder"], ...folders.map((folder): [string, string] => [folder, folder === here ? `this folder: ${folder}` : folder])])}
      {choice("time", "time", TIMES)}
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
  const found = useReading<SearchResults>(`/audit?q=${encodeURIComponent(words)}`);
  const matches = found.value?.matches ?? [];
  return (
    <section aria-label="what was found">
      <Pending reading={found} />
      {found.value && <p class="dim" role="status">{matches.length === 0 ? "Nothing found" : `${matches.length} found`} among the last {found.value.looked_at.toLocaleString("en")} calls{found.value.truncated && "; there are more: add a word to narrow the search"}.</p>}
      <ul class="matches">
        {matches.map((match) => (
          <li key={`${match.run}/${match.call}`}>
            <a href={pathOf("runs", match.run, match.call)} onClick={follow}><StateWord word={match.status} /> <strong><SafeText text={match.tool} /></strong> <span class="mono"><SafeText text={match.text} /></span></a>
            <span class="dim"><When at={match.at} /></span>
          </li>
        ))}
      </ul>
    </section>
  );
}
