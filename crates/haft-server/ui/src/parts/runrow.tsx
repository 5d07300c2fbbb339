// A run as a row: its state, first call, client, folder, changes and duration.

import { follow, pathOf } from "../route";
import type { Run } from "../shapes";
import { span } from "../time";
import { StateWord } from "./badges";
import { SafeText } from "./text";
import { When } from "./when";

/** Returns the state of a run in one word: its outcome, or that it is running or suspended. */
export function standing(run: Run): string {
  if (run.state === "suspended") return "suspended";
  if (run.state === "open") return "running";
  return run.outcome ?? "closed";
}

/** Returns the last two parts of a folder's path. */
export function folderName(path: string): string {
  const parts = path.split("/").filter(Boolean);
  return parts.slice(-2).join("/") || path;
}

/** Returns the unsuccessful calls of a run in words: 2 failed, 1 denied. */
export function failures(run: Run): string {
  const of = run.statuses ?? {};
  const failed = (of.error ?? 0) + (of.timeout ?? 0);
  return [failed && `${failed.toLocaleString("en")} failed`, of.denied && `${of.denied.toLocaleString("en")} denied`].filter(Boolean).join(", ");
}

/** The first call of a run: its tool and its most telling argument. */
export function First({ run }: { run: Run }) {
  if (!run.first) return <span class="dim">no call yet</span>;
  return <><strong class="mono"><SafeText text={run.first.tool} /></strong>{run.first.argument && <> <span class="mono"><SafeText text={run.first.argument} /></span></>}</>;
}

/** The client and the folder of a run. */
export function From({ run }: { run: Run }) {
  return (
    <>
      <SafeText text={run.client ?? run.door ?? ""} />
      {run.workspace && <> · <span title={run.workspace}><SafeText text={folderName(run.workspace)} /></span></>}
    </>
  );
}

/** The number of lines added and removed, or of files. */
export function Lines({ run }: { run: Run }) {
  const of = run.changes;
  if (!of) return null;
  if (!of.added && !of.removed) return <span class="dim">{of.files === 1 ? "1 file" : `${of.files.toLocaleString("en")} files`}</span>;
  return <span class="mono small" title={of.files === 1 ? "in 1 file" : `in ${of.files.toLocaleString("en")} files`}><span class="plus">+{of.added.toLocaleString("en")}</span> <span class="minus">−{of.removed.toLocaleString("en")}</span></span>;
}

export function RunRow({ run, at, current = false }: { run: Run; at: number; current?: boolean }) {
  const failed = failures(run);
  const took = run.duration_ms ?? (run.state === "open" ? at - Date.parse(run.started) : undefined);
  return (
    <div class={current ? "run-row at" : "run-row"} role="listitem">
      <a href={pathOf("runs", run.run)} onClick={follow}>
        <span><StateWord word={standing(run)} /></span>
        <span class="run-first"><First run={run} /></span>
        <span class="run-from dim"><From run={run} /></span>
        <span class="run-calls">{run.calls.toLocaleString("en")}<span class="dim"> {run.calls === 1 ? "call" : "calls"}</span>{failed && (run.calls > 1 || run.state !== "closed") && <span class="bad-text"> {failed}</span>}</span>
        <span class="run-lines"><Lines run={run} /></span>
        <span class="run-took dim">{took === undefined ? "" : span(took)}</span>
        <span class="run-when dim"><When at={run.started} /></span>
      </a>
    </div>
  );
}
