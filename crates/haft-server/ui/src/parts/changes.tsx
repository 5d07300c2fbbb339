// What a run, or one of its calls, changed in the workspace: each file with its diff, and an undo with a preview.

import { useMemo, useRef, useState } from "preact/hooks";
import { NO_NEWLINE } from "../diff";
import { lastChanges } from "../live";
import { follow, pathOf } from "../route";
import type { Changes as Report, ChangesEvent, ChangedPath, FileState } from "../shapes";
import { rowsOfUnified } from "../unified";
import { pathText } from "../visible";
import { NewFileText, RowCounts, Rows } from "./diffview";
import { CoveredLine, Meanings, coveredBy, isOfGit } from "./meaning";
import { useReading } from "./reading";
import { SafeText } from "./text";
import { UndoBox } from "./undo";

/** Number of files listed at once, and of diffs open from the start. */
const LISTED = 50;
const OPEN = 3;

const WORDS = { create: "created", modify: "modified", delete: "deleted", move: "moved", replace: "replaced", chmod: "mode" };
/** The colours, the same as in the diffs of requests. */
const TONES = { create: "create", modify: "change", delete: "delete", move: "move", replace: "move", chmod: "move" };

export function Changes({ run, call }: { run: string; call: string | undefined }) {
  const made = useRef<ChangesEvent | null>(null);
  const last = lastChanges.value;
  if (last?.run === run) made.current = last;
  const path = `/runs/${encodeURIComponent(run)}/changes${call === undefined ? "" : `?call=${encodeURIComponent(call)}`}`;
  const reading = useReading<Report>(path, made.current);
  const [shown, setShown] = useState(LISTED);
  const report = reading.value;
  if (!report) {
    return reading.trouble ? <p class="note run-changes">The changes cannot be shown: <SafeText text={reading.trouble} /></p> : null;
  }
  if (!report.changes.length) return null;
  const meanings = report.meanings ?? [];
  const covers = coveredBy(meanings);
  const own = report.changes.filter((file) => !covers.has(file.path));
  const explained = report.changes.filter((file) => covers.has(file.path));
  const rest = own.length - shown;
  // What git keeps for itself has a line of its own.
  const count = own.length + explained.filter((file) => !isOfGit(file.path)).length + (report.more_changes ?? 0);
  return (
    <section class="run-changes" aria-label="changes">
      <header class="changes-head">
        <h3>{call === undefined ? "Changes of this run" : "Changes of this call"}</h3>
        <span class="dim">{count === 0 ? "only git's own files" : count === 1 ? "1 file" : `${count.toLocaleString("en")} files`}</span>
        {call !== undefined && <a href={pathOf("runs", run)} onClick={follow}>Changes of the whole run</a>}
      </header>
      <UndoBox run={run} call={call} />
      {meanings.length > 0 && <Meanings meanings={meanings} />}
      {own.slice(0, shown).map((file, index) => <ChangedFile key={file.path} file={file} opens={index < OPEN} />)}
      {rest > 0 && <button type="button" class="fold" onClick={() => setShown(shown + LISTED * 4)}>Show {Math.min(rest, LISTED * 4).toLocaleString("en")} more of {count.toLocaleString("en")} files</button>}
      {explained.length > 0 && <CoveredLine paths={explained.map((file) => file.path)}>{explained.slice(0, LISTED * 4).map((file) => <ChangedFile key={file.path} file={file} opens={false} />)}</CoveredLine>}
      {!!report.more_changes && rest <= 0 && <p class="note">{report.more_changes.toLocaleString("en")} more are left out here; <code>haft runs diff {run}</code> shows all of them.</p>}
    </section>
  );
}

function ChangedFile({ file, opens }: { file: ChangedPath; opens: boolean }) {
  const rows = useMemo(() => rowsOfUnified(file.diff ?? ""), [file.diff]);
  const about = useMemo(() => describe(file), [file]);
  const head = (
    <>
      <span class={`action ${TONES[file.action]}`}>{WORDS[file.action]}</span>{" "}
      <strong class="path"><SafeText text={pathText(file.path)} /></strong>
      {file.from !== undefined && <> from <strong class="path"><SafeText text={pathText(file.from)} /></strong></>}
      {about && <span class="dim small">{about.text}{about.target !== undefined && <code><SafeText text={about.target} /></code>}</span>}
      <RowCounts rows={rows} />
    </>
  );
  const [open, setOpen] = useState(opens);
  if (!rows.length && !file.note) return <section class="file" aria-label={`${WORDS[file.action]} ${pathText(file.path)}`}><div class="file-head">{head}</div></section>;
  return (
    <details class="file" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="file-head">{head}</summary>
      {open && rows.length > 0 && (file.action === "create" ? <NewFileText text={addedText(rows)} path={file.path} /> : <Rows rows={rows} path={file.path} />)}
      {open && file.note && <p class="note"><SafeText text={file.note} /></p>}
    </details>
  );
}

/** Returns the text of a new file from its rows, all of which are added lines. */
function addedText(rows: ReturnType<typeof rowsOfUnified>): string {
  const lines = rows.flatMap((row) => (row.after ? [row.after.stretches.map((stretch) => stretch.text).join("")] : []));
  return lines.map((line) => (line.endsWith(NO_NEWLINE) ? line.slice(0, -1) : `${line}\n`)).join("");
}

/** Returns what the action and the diff do not show: kinds and modes. */
function describe({ before, after }: ChangedPath): { text: string; target?: string } | undefined {
  const is = after ?? before;
  if (!is) return undefined;
  const modes = before && after && before.mode !== undefined && after.mode !== undefined && before.mode !== after.mode
    ? `mode ${octal(before.mode)} → ${octal(after.mode)}` : "";
  const kinds = before && after && before.kind !== after.kind ? `${kind(before)} → ${kind(after)}` : is.kind === "file" ? "" : kind(is);
  const text = [kinds, modes].filter(Boolean).join(", ");
  if (after?.kind === "link" && after.target !== undefined) return { text: `${text} to `, target: after.target };
  return text ? { text } : undefined;
}

const kind = (state: FileState): string => (state.kind === "other" ? "special file" : state.kind);
const octal = (mode: number): string => mode.toString(8).padStart(3, "0");
