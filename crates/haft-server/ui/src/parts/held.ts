// Holds a list still while the pointer is on it: new rows wait, since a press that begins on one row and ends on another would be lost.

import { useRef, useState, type MutableRef } from "preact/hooks";

export interface Held<T> {
  /** The rows to show. */
  rows: T[];
  /** The rows that have come since the pointer is on the list. */
  fresh: T[];
  /** Whether the pointer is on the list: known at once, before the page is drawn again. */
  over: MutableRef<boolean>;
  holding: boolean;
  /** Shows the new rows. */
  release: () => void;
  /** For the element around the list. */
  pointer: { onPointerEnter: (event: PointerEvent) => void; onPointerLeave: () => void };
}

/** Holds the rows of a list; `idOf` tells them apart. */
export function useHeld<T>(list: T[], idOf: (row: T) => string): Held<T> {
  const held = useRef<ReadonlySet<string> | undefined>(undefined);
  const over = useRef(false);
  const [holding, setHolding] = useState(false);
  const hold = (on: boolean) => {
    over.current = on;
    setHolding(on);
  };
  if (!holding) held.current = undefined;
  // A list that is not read yet has no rows that could move.
  else if (list.length) held.current ??= new Set(list.map(idOf));
  const known = held.current;
  return {
    rows: known ? list.filter((row) => known.has(idOf(row))) : list,
    fresh: known ? list.filter((row) => !known.has(idOf(row))) : [],
    over, holding,
    release: () => hold(false),
    pointer: { onPointerEnter: (event) => { if (event.pointerType === "mouse") hold(true); }, onPointerLeave: () => hold(false) },
  };
}
