// What the server is asked for when a page opens, and again when the connection comes back.

import { useEffect, useState } from "preact/hooks";
import { get, told } from "../api";
import { opened } from "../live";

export interface Reading<T> {
  value: T | undefined;
  trouble: string;
  again: () => void;
}

/** Reads a path; the last answer stays while the next is read or cannot be had. */
export function useReading<T>(path: string | undefined, follow: unknown = 0): Reading<T> {
  const [state, setState] = useState<{ path?: string; value?: T; trouble: string }>({ trouble: "" });
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (path === undefined) return;
    let over = false;
    get<T>(path).then(
      (value) => { if (!over) setState({ path, value, trouble: "" }); },
      (error) => { if (!over) setState((before) => ({ path, value: before.path === path ? before.value : undefined, trouble: told(error) })); },
    );
    return () => { over = true; };
  }, [path, round, opened.value, follow]);
  return { value: state.path === path ? state.value : undefined, trouble: state.trouble, again: () => setRound((n) => n + 1) };
}

/** What is said while there is nothing to show yet. */
export function Pending({ reading }: { reading: Reading<unknown> }) {
  if (reading.trouble) return <p class="note bad-text" role="alert">{reading.trouble}</p>;
  return reading.value === undefined ? <p class="note">Reading …</p> : null;
}
