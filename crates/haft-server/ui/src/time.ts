// Times as people read them, and a clock that the pages follow.

import { signal } from "@preact/signals";

/** Now, in milliseconds, once a second. */
export const now = signal(Date.now());
setInterval(() => { now.value = Date.now(); }, 1000);

/** A span as a person says it: 420 ms, 3.2 s, 4 min, 2 h, 3 d. */
export function span(ms: number): string {
  if (ms < 0.1) return "< 0.1 ms";
  if (ms < 10) return `${Number(ms.toFixed(1))} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 90_000) return `${Math.round(ms / 1000)} s`;
  if (ms < 90 * 60_000) return `${Math.round(ms / 60_000)} min`;
  if (ms < 36 * 3_600_000) return `${Math.round(ms / 3_600_000)} h`;
  return `${Math.round(ms / 86_400_000)} d`;
}

/** How long ago a time was. */
export function ago(time: string, at: number): string {
  const ms = at - Date.parse(time);
  if (Number.isNaN(ms)) return time;
  return ms < 1500 ? "just now" : `${span(ms)} ago`;
}

/** Bytes in KiB and MiB. */
export function bytes(count: number): string {
  if (count < 1024) return `${count} B`;
  if (count < 1024 * 1024) return `${(count / 1024).toFixed(1)} KiB`;
  return `${(count / 1024 / 1024).toFixed(1)} MiB`;
}
