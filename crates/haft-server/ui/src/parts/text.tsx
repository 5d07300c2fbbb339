// Text from elsewhere: only ever as text, what could deceive as marks, long ones folded with the count of what is hidden.

import { createContext } from "preact";
import { useContext, useEffect, useId, useMemo, useState } from "preact/hooks";
import { pieces } from "../visible";
import { Windowed } from "./windowed";

/** One line or, with `lines`, a block of text. */
export function Shown({ text, lines = false }: { text: string; lines?: boolean }) {
  const found = useMemo(() => pieces(text, lines), [text, lines]);
  return (
    <>
      {found.map((piece, index) =>
        piece.mark ? <mark key={index} class={`mark ${piece.mark}`} title={piece.title}>{piece.text}</mark> : piece.text)}
    </>
  );
}

/** What is folded on a card and has not been opened: approving waits for it. */
export interface Folds {
  hold: (id: string, closed: boolean) => void;
  /** Grows each time everything is to be opened. */
  openAll: number;
}

export const FoldsContext = createContext<Folds>({ hold: () => {}, openAll: 0 });

/** Whether a fold is open; the card knows of it while it was never opened. */
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

/** Lines and characters above which a block folds, and what is shown of it then. */
const LINES = 24;
const CHARS = 3000;
const HEAD = 12;
/** Characters of a row in a text too long to lay out whole. */
const ROW = 110;

/** A block of text from elsewhere, folded when it is long. */
export function Block({ text, label }: { text: string; label: string }) {
  const lines = useMemo(() => text.split("\n"), [text]);
  const long = lines.length > LINES || text.length > CHARS;
  const [open, setOpen] = useFold(long);
  const head = useMemo(() => lines.slice(0, HEAD).join("\n").slice(0, CHARS / 2), [lines]);
  if (!long) return <pre class="block" tabIndex={0} role="group" aria-label={label}><Shown text={text} lines /></pre>;
  const rest = lines.length > HEAD ? `${(lines.length - HEAD).toLocaleString("en")} more lines` : `${(text.length - head.length).toLocaleString("en")} more characters`;
  return (
    <div class="folding">
      {open ? <Long text={text} label={label} /> : <pre class="block" tabIndex={0} role="group" aria-label={label}><Shown text={head} lines /></pre>}
      <button type="button" class="fold" aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? "Fold" : `Show ${rest}`} <span class="dim">of {lines.length.toLocaleString("en")} lines, {text.length.toLocaleString("en")} characters</span>
      </button>
    </div>
  );
}

/** All of a long text: rows of a bounded width, drawn as they come into view. */
function Long({ text, label }: { text: string; label: string }) {
  const rows = useMemo(() => {
    const out: string[] = [];
    for (const line of text.split("\n")) {
      if (line.length <= ROW) out.push(line);
      else for (let at = 0; at < line.length; at += ROW) out.push(line.slice(at, at + ROW));
    }
    return out;
  }, [text]);
  return (
    <Windowed class="block long" label={label} count={rows.length} height={20} role="group"
      row={(index) => <div class="row" key={index}><Shown text={rows[index] ?? ""} /></div>} />
  );
}
