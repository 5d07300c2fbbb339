// A run as a row: its state, its client and task, folder, calls, changes, duration and date.

import { follow, pathOf } from "../route";
import type { Run } from "../shapes";
import { span } from "../time";
import { StateWord } from "./badges";
import { clientOf } from "./client";
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

/** Returns the number of calls of a run that failed or timed out; a program's own exit code is no failure. */
export function failedCalls(run: Run): number {
  const of = run.statuses ?? {};
  return Math.max(0, (of.error ?? 0) + (of.timeout ?? 0) - (run.exits ?? 0));
}

/** Returns the unsuccessful calls of a run in words: 2 failed, 1 denied. */
export function failures(run: Run): string {
  const [failed, denied] = [failedCalls(run), run.statuses?.denied ?? 0];
  return [failed && `${failed.toLocaleString("en")} failed`, denied && `${denied.toLocaleString("en")} denied`].filter(Boolean).join(", ");
}

/** Returns the worst status among the calls of a run, for lists of what went wrong: whether the run goes on says nothing there. */
export function worst(run: Run): string {
  if (failedCalls(run) > 0) return (run.statuses?.error ?? 0) > (run.exits ?? 0) ? "error" : "timeout";
  return run.statuses?.denied ? "denied" : standing(run);
}

/** The first call of a run: its tool and its most telling argument. */
export function First({ run }: { run: Run }) {
  if (!run.first) return <span class="dim">no call yet</span>;
  return <><span class="mono"><SafeText text={run.first.tool} /></span>{run.first.argument && <> <span class="mono"><SafeText text={run.first.argument} /></span></>}</>;
}

/** What a run is about: the task that haft's agent was given, else its first call. */
export function Task({ run }: { run: Run }) {
  return run.task ? <SafeText text={run.task} /> : <First run={run} />;
}

/** The title of a run, in words: its client and its task, else its client and folder. */
export function titleOfRun(run: Run): string {
  if (run.task) return `${clientOf(run)}: ${run.task}`;
  return run.workspace ? `${clientOf(run)} in ${folderName(run.workspace)}` : clientOf(run);
}

/** The number of lines added and removed, or of files. */
export function Lines({ run }: { run: Run }) {
  const of = run.changes;
  if (!of) return null;
  if (!of.added && !of.removed) return <span class="dim">{of.files === 1 ? "1 file" : `${of.files.toLocaleString("en")} files`}</span>;
  return <span class="mono small" title={of.files === 1 ? "in 1 file" : `in ${of.files.toLocaleString("en")} files`}><span class="plus">+{of.added.toLocaleString("en")}</span> <span class="minus">−{of.removed.toLocaleString("en")}</span></span>;
}

/** The heads of the columns of a list of runs. Each row says its own values in full to screen readers. */
export function RunHeads() {
  return (
    <div class="run-heads" aria-hidden="true">
      <span>State</span><span>Client and task</span><span class="run-folder">Folder</span><span class="run-calls">Calls</span><span class="run-wrong">Failures</span><span class="run-lines">Changes</span><span class="run-took">Took</span><span class="run-when">Started</span>
    </div>
  );
}

/** A row of the list; with `wrong`, its badge says what went wrong instead of how the run stands. */
export function RunRow({ run, at, current = false, wrong = false }: { run: Run; at: number; current?: boolean; wrong?: boolean }) {
  const took = run.duration_ms ?? (run.state === "open" ? at - Date.parse(run.started) : undefined);
  const word = wrong ? worst(run) : standing(run);
  const client = clientOf(run);
  return (
    <div class={current ? "run-row at" : "run-row"} role="listitem">
      <a href={pathOf("runs", run.run)} onClick={follow}>
        <span class="run-state"><StateWord word={word} exit={wrong ? undefined : run.exit_code} /></span>
        <span class="run-title"><strong><SafeText text={client} /></strong> <span class="dim run-task"><Task run={run} /></span></span>
        <span class="run-folder dim" title={run.workspace}>{run.workspace && <SafeText text={folderName(run.workspace)} />}</span>
        <span class="run-calls">{run.calls.toLocaleString("en")}<span class="unseen"> {run.calls === 1 ? "call" : "calls"}</span></span>
        <span class="run-wrong bad-text">{failures(run)}</span>
        <span class="run-lines"><Lines run={run} /></span>
        <span class="run-took dim">{took === undefined ? "" : span(took)}</span>
        <span class="run-when dim"><When at={run.started} day /></span>
      </a>
    </div>
  );
}
