// The page of one run: its calls as a timeline or a table, and the selected call with its live output.

import { useMemo, useRef, useState } from "preact/hooks";
import { openable, errorText } from "../api";
import { useKeys } from "../keys";
import { lastCall, lastRun } from "../live";
import { commandInText } from "../result";
import { follow, go, pathOf } from "../route";
import type { Approval, Call, Run, VerifyReport } from "../shapes";
import { span } from "../time";
import { StateWord } from "../parts/badges";
import { Copy } from "../parts/copy";
import { PageHead } from "../parts/head";
import { CommandOutput } from "../parts/outcome";
import { OutputPane } from "../parts/outputpane";
import { RenderedParts } from "../parts/rendered";
import { Pending, useReading } from "../parts/reading";
import { Lines, folderName, standing, titleOfRun } from "../parts/runrow";
import { Services } from "../parts/services";
import { Table, type Column } from "../parts/table";
import { Block, SafeText } from "../parts/text";
import { When } from "../parts/when";
import { Timeline, WAITS } from "../parts/timeline";
import { waiting } from "../approvals";
import { Changes } from "../parts/changes";
import { spellOut } from "../visible";
import { Arguments, argumentsOf } from "../parts/arguments";

const FAILED = new Set(["error", "denied", "timeout"]);

const HELD = new Set<string | undefined>([WAITS, "suspended"]);

/** Returns the call to show first: one that waits for approval, else one that is running, else one that failed, else the first. */
function first(calls: Call[]): Call | undefined {
  return calls.find((call) => HELD.has(call.status)) ?? calls.find((call) => !call.status) ?? calls.find((call) => FAILED.has(call.status ?? "") && call.exit_code === undefined) ?? calls.find((call) => FAILED.has(call.status ?? "")) ?? calls[0];
}

/** Which of the three the run holds: whoever wrote what it read could have what it has seen sent. */
function RuleOfTwo({ held }: { held: NonNullable<Run["rule_of_two"]> }) {
  const words = [held.untrusted && "read untrusted content", held.private && "seen private data", held.sends && "sent"].filter(Boolean);
  if (words.length === 0) return null;
  return <span title="Of reading untrusted content, seeing private data and sending, a run should hold two">Rule of Two: has {words.join(", ")} · </span>;
}

export function RunPage({ run, call }: { run: string; call: string | undefined }) {
  const path = `/runs/${encodeURIComponent(run)}`;
  const changed = lastCall.value?.run === run ? `${lastCall.value.call}/${lastCall.value.phase}` : "";
  // For runs of other processes, events say that something changed, not what.
  const other = useRef(lastRun.value);
  if (lastRun.value?.run === run) other.current = lastRun.value;
  const calls = useReading<Call[]>(path, useMemo(() => ({}), [changed, other.current]));
  const about = useReading<Run>(`${path}/about`, other.current).value;
  const asked = waiting.value;
  // Not before the record is read: until then, the pending calls would look like the whole run.
  const list = useMemo(() => (calls.value ? withWaiting(calls.value, asked.filter((approval) => approval.run === run)) : []), [calls.value, asked]);
  const selected = list.find((other) => other.call === call) ?? (call === undefined ? first(list) : list[0]);
  const [asTable, setAsTable] = useState(false);
  const select = (id: string) => go(pathOf("runs", run, id), call !== undefined);
  const at = list.findIndex((other) => other.call === selected?.call);
  const move = (by: number) => {
    const next = list[Math.min(list.length - 1, Math.max(0, at + by))];
    if (next) select(next.call);
  };
  const failed = () => list.slice(at + 1).concat(list.slice(0, at + 1)).find((other) => FAILED.has(other.status ?? ""));
  useKeys(() => [
    { key: "j", does: "next call", run: () => move(1) },
    { key: "k", does: "previous call", run: () => move(-1) },
    { key: "f", does: "next call that failed", run: () => { const next = failed(); if (next) select(next.call); } },
    { key: "t", does: "timeline or table", run: () => setAsTable(!asTable) },
    { key: "u", does: "back to all runs", run: () => go("/runs") },
  ]);
  return (
    <div class="page run">
      <PageHead title={about ? spellOut(titleOfRun(about)) : run} of="Runs">
        {about && <StateWord word={standing(about)} exit={about.exit_code} />}
        <span class="gap" />
        <button type="button" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>{asTable ? "Timeline" : "Table"}</button>
      </PageHead>
      <p class="run-about dim">
        <a href="/runs" onClick={follow}>All runs</a> · {about && <>{about.task && about.workspace && <><span title={about.workspace}><SafeText text={folderName(about.workspace)} /></span> · </>}{list.length === 1 ? "1 call" : `${list.length.toLocaleString("en")} calls`} · <When at={about.started} day />{about.duration_ms !== undefined && <> · took {span(about.duration_ms)}</>} <Lines run={about} /> · </>}
        {about?.rule_of_two && <RuleOfTwo held={about.rule_of_two} />}
        <code>{run}</code> <Copy text={run} what="the run's id" /> <Verify run={run} state={about?.state ?? ""} />
      </p>
      <Services run={run} open={about?.state === "open"} />
      <Pending reading={calls} />
      {calls.value && list.length === 0 && <p class="note">No calls yet. They appear here as they start.</p>}
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

/** Returns the calls and those that are pending approval, by start time. */
function withWaiting(calls: Call[], asked: Approval[]): Call[] {
  const known = new Set(calls.map((call) => call.call));
  const waits = asked.filter((approval) => !known.has(approval.call)).map((approval): Call => ({
    call: approval.call, parent: approval.parent, tool: approval.tool, origin: approval.origin, rule: approval.rule, verdict: "ask",
    status: WAITS, started: approval.created, argument: approval.fact.text, approval: approval.id,
  }));
  return [...calls, ...waits].sort((a, b) => Date.parse(a.started) - Date.parse(b.started));
}

function Verify({ run, state }: { run: string; state: string }) {
  const verified = useReading<VerifyReport>(`/runs/${encodeURIComponent(run)}/verify`, state);
  const report = verified.value;
  if (!report) return null;
  if (report.ok) return <span class="badge good" title={`${report.lines} lines, each with the hash of the previous line`}>archive verified</span>;
  const at = typeof report.first_bad === "number" ? ` at line ${report.first_bad}` : "";
  return (
    <>
      <span class="badge bad">verification failed{at}</span>
      <span class="note warn broken" role="alert">
        The record of this run does not verify{at}: {report.problem ? <SafeText text={report.problem} /> : "its lines do not match their hashes"}.{" "}
        It was changed after haft wrote it. {at ? "Do not rely on anything from that line on; the lines before it are as haft wrote them." : "Do not rely on what is shown here."}{" "}
        In a terminal: <code>haft runs verify {run}</code>
      </span>
    </>
  );
}

function CallTable({ calls, selected, run }: { calls: Call[]; selected: string | undefined; run: string }) {
  // The timeline draws only what is in view; nobody would read a table with so many rows.
  const shown = calls.slice(0, 2000);
  return (
    <>
      <Table label="calls as a table" columns={CALL_COLUMNS} rows={shown.map((call) => ({
        key: call.call, current: call.call === selected, cells: [
          <a href={pathOf("runs", run, call.call)} onClick={follow}><SafeText text={call.tool} /></a>, <StateWord word={call.status === WAITS ? "suspended" : call.status ?? "running"} exit={call.exit_code} />, <When at={call.started} />,
          call.duration_ms === undefined ? "" : span(call.duration_ms), call.waited_ms ? span(call.waited_ms) : "", call.parent ?? "",
          call.argument && <SafeText text={call.argument} />, call.summary && <SafeText text={call.summary.slice(0, 160)} />,
        ],
      }))} />
      {calls.length > shown.length && <p class="note">{(calls.length - shown.length).toLocaleString("en")} more are in the timeline.</p>}
    </>
  );
}

const CALL_COLUMNS: Column[] = [
  { head: "tool" }, { head: "status" }, { head: "started", class: "mono" }, { head: "took" }, { head: "waited" }, { head: "parent", class: "mono" }, { head: "argument", class: "mono" }, { head: "summary" },
];

function CallDetail({ run, call }: { run: string; call: Call }) {
  const text = typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments ?? {});
  const args = argumentsOf(text);
  const facts: [string, string | undefined][] = [
    ["verdict", call.verdict], ["rule", call.rule], ["decided by", call.decided_by],
    ["reviewer", call.review && `${call.review.model}: ${call.review.verdict ?? "no answer"}: “${call.review.reason ?? ""}”${call.review.opinion ? ` (an opinion: ${call.review.opinion})` : ""}`],
    ["origin", call.origin], ["parent", call.parent],
  ];
  return (
    <section class="call-detail" aria-label="the selected call">
      <h2><SafeText text={call.tool} /> <StateWord word={call.status === WAITS ? "suspended" : call.status ?? "running"} exit={call.exit_code} />
        {call.duration_ms !== undefined && <span class="dim"> {span(call.duration_ms)}</span>}
        {!!call.waited_ms && <span class="dim"> · waited {span(call.waited_ms)} for approval</span>}</h2>
      {call.error && call.exit_code === undefined && <p class="failure"><code>{call.error.kind}</code> <SafeText text={call.error.message} lines /></p>}
      {!call.error && !call.rendered?.length && call.summary && call.summary !== call.result && <p><SafeText text={call.summary} /></p>}
      {(call.status === WAITS || call.status === "suspended") && <p class="note held">It waits for approval: <a href={call.approval ? pathOf("waiting", call.approval) : "/waiting"} onClick={follow}>decide</a>.</p>}
      {call.approval && call.argument && !(args && Object.keys(args).length) && <Block text={call.argument} label="what it is about" />}
      {args ? Object.keys(args).length > 0 && <Arguments args={args} /> : text && <Block text={text} label="arguments, redacted" />}
      <OutputPane run={run} call={call.call} ended={call.status !== undefined} />
      <Result call={call} />
      <dl class="facts">{facts.map(([name, value]) => value && <div key={name}><dt>{name}</dt><dd><SafeText text={value} /></dd></div>)}
        <div><dt>call</dt><dd class="mono">{call.call}</dd></div>
        <div><dt>started</dt><dd><When at={call.started} /></dd></div></dl>
      {!!call.artifacts?.length && (
        <ul class="artifacts" aria-label="artifacts">{call.artifacts.map((artifact) => {
          const reference = typeof artifact === "string" ? artifact : artifact.ref;
          return <li key={reference}><Download run={run} reference={reference} /></li>;
        })}</ul>
      )}
    </section>
  );
}

/** The beginning of a result, as the record stores it: rendered by the server, else read here. */
function Result({ call: { tool, argument, result = "", rendered = [], error, exit_code } }: { call: Call }) {
  const command = useMemo(() => commandInText(result), [result]);
  if (!result && !rendered.length) return null;
  const path = tool === "read_file" ? argument : undefined;
  // Why a call failed stands above; how a program ended stands here.
  const parts = rendered.filter((part) => part.mark !== "status" || !error || exit_code !== undefined);
  if (!result && parts.every((part) => part.mark === "status")) return parts.length ? <p><SafeText text={parts.map((part) => part.text).join(" ")} lines /></p> : null;
  return (
    <section class="result" aria-label="result">
      <h3>Result{result.endsWith("…") && <span class="dim small"> only the first 2 KiB are recorded</span>} {result && <Copy text={result} what="the result" />}</h3>
      {parts.length ? <RenderedParts parts={parts} path={path} /> : command ? <CommandOutput result={command} /> : <Block text={pretty(result)} label="result" path={path} />}
    </section>
  );
}

/** Returns JSON in several lines, and any other text as it is. */
function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** A button that saves an artifact. The browser downloads it directly, so that large data does not pass through the page. */
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
    <><button type="button" class="link mono" onClick={() => { setTrouble(""); save().catch((error: unknown) => setTrouble(errorText(error))); }}>{reference.slice(0, 20)}…</button>
      {trouble && <span class="bad-text"> {trouble}</span>}</>
  );
}
