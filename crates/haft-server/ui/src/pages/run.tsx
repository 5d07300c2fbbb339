// One run: its timeline, the same as a table, the selected call with its live output.

import { useMemo, useState } from "preact/hooks";
import { openable, told } from "../api";
import { lastCall } from "../live";
import { follow, go, pathOf } from "../route";
import type { Approval, Call, Run, Verified } from "../shapes";
import { ago, now, span } from "../time";
import { StateWord } from "../parts/badges";
import { OutputPane } from "../parts/outputpane";
import { Pending, useReading } from "../parts/reading";
import { Block, Shown } from "../parts/text";
import { Timeline, WAITS } from "../parts/timeline";
import { waiting } from "../approvals";
import { Changes } from "../parts/changes";
import { Arguments, argumentsOf } from "../parts/fact";

export function RunPage({ run, call }: { run: string; call: string | undefined }) {
  const changed = lastCall.value?.run === run ? `${lastCall.value.call}/${lastCall.value.phase}` : "";
  const calls = useReading<Call[]>(`/runs/${encodeURIComponent(run)}`, changed);
  const runs = useReading<Run[]>("/runs");
  const about = runs.value?.find((other) => other.run === run);
  const asked = waiting.value;
  const list = useMemo(() => withWaiting(calls.value ?? [], asked.filter((approval) => approval.run === run)), [calls.value, asked]);
  const selected = list.find((other) => other.call === call) ?? list.find((other) => !other.status) ?? list[0];
  const [asTable, setAsTable] = useState(false);
  const select = (id: string) => go(pathOf("runs", run, id), call !== undefined);
  return (
    <div class="page run">
      <header class="run-top">
        <a href="/runs" onClick={follow}>Runs</a>
        <h2 class="mono">{about?.title ? <Shown text={about.title} /> : run}</h2>
        {about && <StateWord word={about.state} />}
        <Verify run={run} state={about?.state ?? ""} />
        {about && <span class="dim"><Shown text={about.door ?? ""} /> · {list.length.toLocaleString("en")} calls · {ago(about.started, now.value)}</span>}
        <span class="gap" />
        <button type="button" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>{asTable ? "Timeline" : "Table"}</button>
      </header>
      <Pending reading={calls} />
      {calls.value && list.length === 0 && <p class="note">No call yet. They appear here as they start.</p>}
      {list.length > 0 && (
        <div class="run-body">
          <div class="run-picture">
            {asTable ? <CallTable calls={list} selected={selected?.call} run={run} /> : <Timeline calls={list} selected={selected?.call} select={select} />}
          </div>
          {selected && <CallDetail key={selected.call} run={run} call={selected} />}
          <Changes key={`${run}/${call ?? ""}`} run={run} call={call} />
        </div>
      )}
    </div>
  );
}

/** The calls in time, with those that wait for a person right now. */
function withWaiting(calls: Call[], asked: Approval[]): Call[] {
  const known = new Set(calls.map((call) => call.call));
  const waits = asked.filter((approval) => !known.has(approval.call)).map((approval): Call => ({
    call: approval.call, parent: approval.parent, tool: approval.tool, origin: approval.origin, rule: approval.rule, verdict: "ask",
    status: WAITS, started: approval.created, summary: approval.fact.text,
  }));
  return [...calls, ...waits].sort((a, b) => Date.parse(a.started) - Date.parse(b.started));
}

function Verify({ run, state }: { run: string; state: string }) {
  const verified = useReading<Verified>(`/runs/${encodeURIComponent(run)}/verify`, state);
  const report = verified.value;
  if (!report) return null;
  return report.ok ? <span class="badge good" title={`${report.lines} lines, each with the hash of the one before`}>archive sound</span>
    : <span class="badge bad">archive broken{typeof report.first_bad === "number" && ` at line ${report.first_bad}`}</span>;
}

function CallTable({ calls, selected, run }: { calls: Call[]; selected: string | undefined; run: string }) {
  // The picture can be drawn by parts; a table of so many rows would not be read.
  const shown = calls.slice(0, 2000);
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="calls as a table">
      <table class="data">
        <thead><tr><th scope="col">tool</th><th scope="col">status</th><th scope="col">started</th><th scope="col">took</th><th scope="col">waited</th><th scope="col">inside</th><th scope="col">what</th></tr></thead>
        <tbody>
          {shown.map((call) => (
            <tr key={call.call} aria-current={call.call === selected ? "true" : undefined}>
              <th scope="row"><a href={pathOf("runs", run, call.call)} onClick={follow}><Shown text={call.tool} /></a></th>
              <td><StateWord word={call.status ?? "running"} /></td><td class="mono">{call.started.slice(11, 23)}</td>
              <td>{call.duration_ms === undefined ? "" : span(call.duration_ms)}</td><td>{call.waited_ms ? span(call.waited_ms) : ""}</td>
              <td class="mono">{call.parent ?? ""}</td><td><Shown text={(call.summary ?? "").slice(0, 160)} /></td>
            </tr>
          ))}
        </tbody>
      </table>
      {calls.length > shown.length && <p class="note">{(calls.length - shown.length).toLocaleString("en")} more are in the timeline.</p>}
    </div>
  );
}

/** A call's arguments as text: the archive keeps them as the bytes they were, redacted. */
export function argumentText(call: Call): string {
  const { arguments: args } = call;
  if (args === undefined || args === null) return "";
  try {
    return JSON.stringify(typeof args === "string" ? JSON.parse(args) : args, null, 2);
  } catch {
    return String(args);
  }
}

function CallDetail({ run, call }: { run: string; call: Call }) {
  const text = typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments ?? {});
  const args = argumentsOf(text);
  const facts: [string, string | undefined][] = [
    ["verdict", call.verdict], ["rule", call.rule], ["decided by", call.decided_by], ["origin", call.origin], ["inside", call.parent],
  ];
  return (
    <section class="call-detail" aria-label="the selected call">
      <h3><Shown text={call.tool} /> <StateWord word={call.status ?? "running"} />
        {call.duration_ms !== undefined && <span class="dim"> {span(call.duration_ms)}</span>}
        {!!call.waited_ms && <span class="dim"> · waited {span(call.waited_ms)} for approval</span>}</h3>
      {call.summary && <p><Shown text={call.summary} /></p>}
      <OutputPane run={run} call={call.call} ended={call.status !== undefined} />
      {call.status === WAITS && <p class="note warn">It is pending approval: <a href="/waiting" onClick={follow}>decide</a>.</p>}
      {args ? Object.keys(args).length > 0 && <Arguments args={args} /> : <Block text={text} label="arguments, redacted" />}
      <dl class="facts">{facts.map(([name, value]) => value && <div key={name}><dt>{name}</dt><dd><Shown text={value} /></dd></div>)}
        <div><dt>call</dt><dd class="mono">{call.call}</dd></div>
        <div><dt>started</dt><dd class="mono">{call.started}</dd></div></dl>
      {!!call.artifacts?.length && (
        <ul class="artifacts" aria-label="artifacts">{call.artifacts.map((artifact) => (
          <li key={artifact.ref}><Download run={run} reference={artifact.ref} />{artifact.bytes !== undefined && <span class="dim"> {artifact.bytes.toLocaleString("en")} bytes</span>}</li>
        ))}</ul>
      )}
    </section>
  );
}

/** Saves an artifact. The browser fetches it by itself, so that nothing large goes through the page. */
function Download({ run, reference }: { run: string; reference: string }) {
  const [trouble, setTrouble] = useState("");
  const save = async () => {
    const source = await openable(`/artifacts/${encodeURIComponent(reference)}`, { run });
    const link = document.createElement("a");
    link.href = source;
    link.download = reference;
    link.click();
  };
  return (
    <><button type="button" class="link mono" onClick={() => { setTrouble(""); save().catch((error: unknown) => setTrouble(told(error))); }}>{reference.slice(0, 20)}…</button>
      {trouble && <span class="bad-text"> {trouble}</span>}</>
  );
}
