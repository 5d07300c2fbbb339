// The changes that a call would make to files: side by side with changed words marked, one column on a phone.

import { createContext } from "preact";
import { useContext, useMemo, useState } from "preact/hooks";
import { RequestError, errorText, get } from "../api";
import { coloursOf, type Span } from "../code";
import { NO_NEWLINE, rowsOf, type Row, type Stretch } from "../diff";
import { rowsOfHunks } from "../hunks";
import { whatOf, wholeName } from "../previews";
import type { Preview, Side as FileSide } from "../shapes";
import { bytes } from "../time";
import { pathText } from "../visible";
import { Block, SafeText, useFold } from "./text";

/** Number of rows above which a diff folds, and of rows shown then. */
const LONG = 160;
const HEAD = 60;

/** The id of the request whose files are shown. */
export const RequestContext = createContext<string | undefined>(undefined);

/** One file of a preview. */
export function FileChange({ file }: { file: Preview }) {
  const [whole, setWhole] = useState<WholeFile>();
  const shown = useMemo((): Preview => (whole ? { ...file, ...whole, hunks: undefined, added: undefined } : file), [file, whole]);
  const cut = shown.clipped || !!shown.hunks?.length;
  return (
    <div class="file" role="group" aria-label={`${whatOf(file)} ${pathText(file.path)}`}>
      <header class="file-head">
        <span class={`action ${file.action}`}>{whatOf(file)}</span>
        <strong class="path"><SafeText text={pathText(file.path)} /></strong>
        {file.files !== undefined && <span class="dim small">{file.files.toLocaleString("en")} files</span>}
        {file.to !== undefined && <> to <strong class="path"><SafeText text={pathText(file.to)} /></strong></>}
        <Sizes file={file} />
        <Counts file={shown} />
      </header>
      {cut && <div class="note warn cut"><span>{CUTS[shown.hunks?.length ? (shown.clipped ? "part" : "lines") : "head"]}</span> {!whole && <LoadWhole file={file} put={setWhole} />}</div>}
      {shown.escaped && <p class="note">Bytes that are not UTF-8 are shown as <code>\xNN</code>.</p>}
      <Body file={shown} />
    </div>
  );
}

/** The size of a file whose lines are not shown, before and after, and the hash of what it will hold. */
function Sizes({ file: { before_bytes: before, after_bytes: after, after_sha256: hash, binary, folded, hunks } }: { file: Preview }) {
  if (!binary && folded === undefined && !hunks?.length) return null;
  const sizes = [before, after].filter((size) => size !== undefined).map(bytes);
  if (!sizes.length) return null;
  return <span class="dim small">{sizes.join(" → ")}{hash && <> · <span class="mono" title={`SHA-256 ${hash}`}>{hash.slice(0, 12)}</span></>}</span>;
}

/** What is shown of a file that is too long. */
const CUTS = {
  lines: "Too large to show in full: these are the changed lines.",
  part: "Too large to show in full: these are some of the changed lines.",
  head: "Too large to show in full: this is only the beginning.",
};

/** Both sides of a file, as they were read. */
type WholeFile = Pick<Preview, "before" | "after" | "binary" | "escaped" | "clipped">;

function wholeOf({ before, after }: { before?: FileSide; after?: FileSide }): WholeFile {
  const sides = [before, after].map((side) => (typeof side === "string" ? { text: side } : side));
  return {
    before: sides[0]?.text, after: sides[1]?.text, binary: sides.some((side) => side?.binary),
    escaped: sides.some((side) => side?.escaped), clipped: sides.some((side) => side?.next !== undefined),
  };
}

/** Reads both texts of a file that is too long for the request; gone where the server has them no longer. */
function LoadWhole({ file, put }: { file: Preview; put: (whole: WholeFile) => void }) {
  const id = useContext(RequestContext);
  const [state, setState] = useState<{ busy: boolean; gone: boolean; problem: string }>({ busy: false, gone: false, problem: "" });
  if (id === undefined || state.gone) return null;
  const load = () => {
    setState({ busy: true, gone: false, problem: "" });
    get<{ before?: FileSide; after?: FileSide }>(`/approvals/${encodeURIComponent(id)}/file?path=${encodeURIComponent(wholeName(file))}`).then((read) => put(wholeOf(read)), (error: unknown) => {
      const gone = error instanceof RequestError && error.status === 404;
      setState({ busy: false, gone, problem: gone ? "" : errorText(error) });
    });
  };
  return <><button type="button" disabled={state.busy} onClick={load}>{state.busy ? "Loading …" : "Load the whole file"}</button>{state.problem && <span class="bad-text" role="alert">{state.problem}</span>}</>;
}

function Counts({ file }: { file: Preview }) {
  const { added, removed } = file;
  const rows = useMemo(() => (added !== undefined || file.binary ? [] : file.hunks?.length ? rowsOfHunks(file.hunks) : rowsOf(file.before ?? "", file.after ?? "")), [file]);
  if (added !== undefined && removed !== undefined) return <LineCounts plus={added} minus={removed} />;
  return <RowCounts rows={rows} />;
}

function LineCounts({ plus, minus }: { plus: number; minus: number }) {
  if (!plus && !minus) return null;
  return <span class="counts"><span class="plus">+{plus.toLocaleString("en")}</span> <span class="minus">−{minus.toLocaleString("en")}</span></span>;
}

/** The number of lines added and removed. */
export function RowCounts({ rows }: { rows: Row[] }) {
  const changed = rows.filter((row) => row.kind === "change");
  const [plus, minus] = [changed.filter((row) => row.after).length, changed.filter((row) => row.before).length];
  return <LineCounts plus={plus} minus={minus} />;
}

function Body({ file }: { file: Preview }) {
  const hunks = useMemo(() => rowsOfHunks(file.hunks ?? []), [file]);
  if (hunks.length) return <Rows rows={hunks} path={file.to ?? file.path} />;
  if (file.aspect === "folder") return null;
  if (file.folded !== undefined) return <p class="note">Its content is not shown: <SafeText text={file.folded} /></p>;
  if (file.binary) return <p class="note">A binary file: its lines cannot be compared.</p>;
  if (file.before === undefined && file.after === undefined) return <p class="note">The contents of the file are not available.</p>;
  const path = file.to ?? file.path;
  if (file.action === "create" && file.after !== undefined) return <NewFileText text={file.after} path={path} />;
  return <SideBySide before={file.before ?? ""} after={file.after ?? ""} path={path} />;
}

/** The text of a new file. */
export function NewFileText({ text, path }: { text: string; path: string }) {
  if (text === "") return <p class="note">An empty file.</p>;
  return <div class="created"><Block text={text} label="the new file's text" path={path} /></div>;
}

function SideBySide({ before, after, path }: { before: string; after: string; path: string }) {
  const [whole, setWhole] = useState(false);
  const rows = useMemo(() => rowsOf(before, after, whole), [before, after, whole]);
  return before === after ? <p class="note">The text does not change.</p> : <Rows rows={rows} path={path} unfold={() => setWhole(true)} />;
}

/** Rows side by side; without `unfold`, the unchanged lines between them are not available. */
export function Rows({ rows, path, unfold }: { rows: Row[]; path: string; unfold?: () => void }) {
  const colours = useMemo(() => [coloursOfSide(rows, path, "before"), coloursOfSide(rows, path, "after")] as const, [rows, path]);
  const long = rows.length > LONG;
  const [open, setOpen] = useFold(long);
  const shown = long && !open ? rows.slice(0, HEAD) : rows;
  return (
    <>
      <div class="diff" role="group" tabIndex={0} aria-label="before and after, side by side">
        <table>
          <colgroup><col class="number" /><col /><col class="number" /><col /></colgroup>
          <thead class="unseen"><tr><th scope="col">line before</th><th scope="col">before</th><th scope="col">line after</th><th scope="col">after</th></tr></thead>
          <tbody>{shown.map((row, index) => <DiffRow key={index} row={row} colours={colours} unfold={unfold} />)}</tbody>
        </table>
      </div>
      {long && (
        <button type="button" class="fold" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? "Fold" : `Show ${(rows.length - HEAD).toLocaleString("en")} more lines of the change`}
        </button>
      )}
    </>
  );
}

type Colours = Map<number, Span[]>;

/** Returns the colours of one side by line number; folded lines are ignored. */
function coloursOfSide(rows: Row[], path: string, side: "before" | "after"): Colours {
  const lines = rows.flatMap((row) => row[side] ?? []);
  const texts = lines.map((line) => line.stretches.map((stretch) => stretch.text).join("").replaceAll("\n", ""));
  const spans = coloursOf(texts.join("\n"), path) ?? [];
  return new Map(lines.map((line, index) => [line.number, spans[index] ?? []]));
}

function DiffRow({ row, colours, unfold }: { row: Row; colours: readonly [Colours, Colours]; unfold: (() => void) | undefined }) {
  if (row.kind === "fold") {
    const says = row.folded === 1 ? "1 unchanged line" : `${row.folded?.toLocaleString("en")} unchanged lines`;
    return (
      <tr class="unchanged"><td colSpan={4}>
        {unfold ? <button type="button" class="fold" onClick={unfold}>{says}</button> : <span class="dim small">{says}</span>}
      </td></tr>
    );
  }
  const out = row.kind === "change" && row.before;
  const into = row.kind === "change" && row.after;
  return (
    <tr class={row.kind}>
      <td class="number">{row.before?.number}</td>
      <td class={out ? "out" : row.before ? "" : "none"}>{out && <span class="unseen">removed: </span>}<Side side={row.before} colours={colours[0]} of="del" /></td>
      <td class="number">{row.after?.number}</td>
      <td class={into ? "in" : row.after ? "" : "none"}>{into && <span class="unseen">added: </span>}<Side side={row.after} colours={colours[1]} of="ins" /></td>
    </tr>
  );
}

function Side({ side, colours, of }: { side: Row["before"]; colours: Colours; of: "del" | "ins" }) {
  if (!side) return null;
  const spans = colours.get(side.number) ?? [];
  let at = 0;
  return (
    <span class="code">{side.stretches.map((stretch, index) => {
      const from = at;
      at += stretch.text.length;
      return <Words key={index} stretch={stretch} spans={spans} from={from} of={of} />;
    })}</span>
  );
}

function Words({ stretch, spans, from, of: Of }: { stretch: Stretch; spans: Span[]; from: number; of: "del" | "ins" }) {
  const cut = stretch.text.endsWith(NO_NEWLINE);
  const text = cut ? stretch.text.slice(0, -1) : stretch.text;
  // Tabs stay tabs; every other invisible character becomes a mark.
  const shown = <SafeText text={text} lines spans={spans} from={from} />;
  return <>{stretch.changed ? <Of>{shown}</Of> : shown}{cut && <mark class="mark hidden" title="the file does not end with a newline">no newline</mark>}</>;
}
