// Untrusted text: always shown as text, with deceptive characters as marks; long text folds and says how much is hidden.

import { createContext, Fragment, type ComponentChildren } from "preact";
import { useContext, useEffect, useId, useMemo, useState } from "preact/hooks";
import { coloursOf, type Span } from "../code";
import { pieces } from "../visible";
import { Windowed } from "./windowed";

/** A line or, with `lines`, a block of text. `spans` holds the colours of a line of code in which the text begins at `from`. */
export function SafeText({ text, lines = false, spans, from = 0 }: { text: string; lines?: boolean; spans?: Span[]; from?: number }) {
  const found = useMemo(() => pieces(text, lines), [text, lines]);
  let at = from;
  return (
    <>
      {found.map((piece, index) => {
        const start = at;
        at += piece.length ?? piece.text.length;
        if (piece.mark) return <mark key={index} class={`mark ${piece.mark}`} title={piece.title}>{piece.text}</mark>;
        return spans?.length ? colourPiece(piece.text, start, spans) : piece.text;
      })}
    </>
  );
}

/** Returns a plain piece, which begins at `start` in its line, with the line's colours. */
function colourPiece(text: string, start: number, spans: Span[]): ComponentChildren {
  const out: ComponentChildren[] = [];
  let at = 0;
  for (const span of spans) {
    const [from, to] = [Math.max(at, span.from - start), Math.min(text.length, span.to - start)];
    if (to <= from) continue;
    if (from > at) out.push(text.slice(at, from));
    out.push(<span key={from} class={`tone-${span.tone}`}>{text.slice(from, to)}</span>);
    at = to;
  }
  out.push(text.slice(at));
  return out;
}

/** A sentence of haft's in which backquotes enclose code. */
export function Sentence({ text }: { text: string }) {
  return <>{text.split(/(`[^`\n]+`)/).map((part, index) => (index % 2 ? <code key={index}><SafeText text={part.slice(1, -1)} /></code> : <SafeText key={index} text={part} />))}</>;
}

/** Lines of code with their colours. */
function Lines({ text, spans }: { text: string; spans: Span[][] | undefined }) {
  if (!spans) return <SafeText text={text} lines />;
  return <>{text.split("\n").map((line, index) => <Fragment key={index}>{index > 0 && "\n"}<SafeText text={line} lines spans={spans[index]} /></Fragment>)}</>;
}

/** The folds of a card that have not been opened: the user must open them before approving. */
export interface Folds {
  hold: (id: string, closed: boolean) => void;
  /** Grows each time that all folds should open. */
  openAll: number;
}

export const FoldsContext = createContext<Folds>({ hold: () => {}, openAll: 0 });

/** Returns whether a fold is open, and a setter; the card counts the fold until it is opened for the first time. */
export function useFold(folds: boolean): [boolean, (open: boolean) => void] {
  const id = useId();
  const { hold, openAll } = useContext(FoldsContext);
  const [open, setOpen] = useState(false);
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    if (folds && openAll > 0) setOpen(true);
  }, [openAll, folds]);
  useEffect(() => { if (open) setSeen(true); }, [open]);
  useEffect(() => {
    hold(id, folds && !seen);
    return () => hold(id, false);
  }, [id, folds, seen, hold]);
  return [open, setOpen];
}

/** Number of lines and of characters above which a block folds, and of lines shown then. */
const LINES = 24;
const CHARS = 3000;
const HEAD = 12;
/** Number of characters per row in a text too long to lay out at once. */
const ROW = 110;

/** A block of untrusted text, folded if it is long, and coloured as code if `path` names a code file. */
export function Block({ text, label, path = "" }: { text: string; label: string; path?: string }) {
  const spans = useMemo(() => coloursOf(text, path), [text, path]);
  const lines = useMemo(() => text.split("\n"), [text]);
  const long = lines.length > LINES || text.length > CHARS;
  const [open, setOpen] = useFold(long);
  const head = useMemo(() => lines.slice(0, HEAD).join("\n").slice(0, CHARS / 2), [lines]);
  if (!long) return <pre class="block" tabIndex={0} role="group" aria-label={label}><Lines text={text} spans={spans} /></pre>;
  const rest = lines.length > HEAD ? `${(lines.length - HEAD).toLocaleString("en")} more lines` : `${(text.length - head.length).toLocaleString("en")} more characters`;
  return (
    <div class="folding">
      {open ? <Long text={text} label={label} spans={spans} /> : <pre class="block" tabIndex={0} role="group" aria-label={label}><Lines text={head} spans={spans} /></pre>}
      <button type="button" class="fold" aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? "Fold" : `Show ${rest}`} <span class="dim">of {lines.length.toLocaleString("en")} lines, {text.length.toLocaleString("en")} characters</span>
      </button>
    </div>
  );
}

/** A long text in full: rows of bounded width, drawn as they come into view. */
function Long({ text, label, spans }: { text: string; label: string; spans: Span[][] | undefined }) {
  const rows = useMemo(() => {
    const out: { text: string; line: number; from: number }[] = [];
    text.split("\n").forEach((whole, line) => {
      for (let from = 0; from === 0 || from < whole.length; from += ROW) out.push({ text: whole.slice(from, from + ROW), line, from });
    });
    return out;
  }, [text]);
  return (
    <Windowed class="block long" label={label} count={rows.length} height={20} role="group"
      row={(index) => {
        const row = rows[index];
        return <div class="row" key={index}>{row && <SafeText text={row.text} spans={spans?.[row.line]} from={row.from} />}</div>;
      }} />
  );
}
