// Data that a page reads from the server when it opens, and again after a reconnection.

import { useEffect, useState } from "preact/hooks";
import { get, errorText } from "../api";
import { opened } from "../live";

export interface Reading<T> {
  value: T | undefined;
  trouble: string;
  again: () => void;
}

/** Reads a path; the last response stays while the next read is under way or fails. */
export function useReading<T>(path: string | undefined, follow: unknown = 0): Reading<T> {
  const [state, setState] = useState<{ path?: string; value?: T; trouble: string }>({ trouble: "" });
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (path === undefined) return;
    let over = false;
    get<T>(path).then(
      (value) => { if (!over) setState({ path, value, trouble: "" }); },
      (error) => { if (!over) setState((before) => ({ path, value: before.path === path ? before.value : undefined, trouble: errorText(error) })); },
    );
    return () => { over = true; };
  }, [path, round, opened.value, follow]);
  return { value: state.path === path ? state.value : undefined, trouble: state.trouble, again: () => setRound((n) => n + 1) };
}

/** The error of a reading, or a notice while there is no data yet. */
export function Pending({ reading }: { reading: Reading<unknown> }) {
  if (reading.trouble) return <p class="note bad-text" role="alert">{reading.trouble}</p>;
  return reading.value === undefined ? <p class="note">Loading …</p> : null;
}
