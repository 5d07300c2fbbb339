// Tracks the folds of a request that were never opened: once there are none, the request counts as seen.

import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { seenWhole } from "../approvals";
import type { Folds } from "./text";

/** Milliseconds that folds have to register. */
const LAID_OUT = 50;

/** Tracks the folds of a request; `ready` once it is shown. */
export function useFolds(id: string, ready = true): { folds: Folds; held: number; openFolds: () => void } {
  const [openAll, setOpenAll] = useState(0);
  const [held, setHeld] = useState<ReadonlySet<string>>(new Set());
  const hold = useCallback((fold: string, closed: boolean) => {
    setHeld((before) => {
      if (before.has(fold) === closed) return before;
      const next = new Set(before);
      if (closed) next.add(fold);
      else next.delete(fold);
      return next;
    });
  }, []);
  const folds = useMemo(() => ({ hold, openAll }), [hold, openAll]);
  useEffect(() => {
    if (!ready) return;
    const timer = setTimeout(() => {
      if (held.size === 0 && !seenWhole.value.has(id)) seenWhole.value = new Set([...seenWhole.value, id]);
    }, LAID_OUT);
    return () => clearTimeout(timer);
  }, [held, id, ready]);
  return { folds, held: held.size, openFolds: () => setOpenAll((count) => count + 1) };
}
