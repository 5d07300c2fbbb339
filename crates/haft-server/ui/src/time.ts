// Human-readable times, and a clock that the pages follow.

import { signal } from "@preact/signals";

/** The current time in milliseconds, updated every second. */
export const now = signal(Date.now());
setInterval(() => { now.value = Date.now(); }, 1000);

/** Returns a duration in readable form: 420 ms, 3.2 s, 4 min, 2 h, 3 d. */
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

/** Returns how long ago a time was. */
export function ago(time: string, at: number): string {
  const ms = at - Date.parse(time);
  if (Number.isNaN(ms)) return time;
  return ms < 1500 ? "just now" : `${span(ms)} ago`;
}

const TIME = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const YEAR = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
const ZONE = new Intl.DateTimeFormat(undefined, { timeZoneName: "short" });

/** Returns a local time in the shortest unambiguous form: 14:03:22; 23 Nov 14:03:22. */
export function local(time: string, at: number): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return time;
  const today = new Date(at);
  if (date.toDateString() === today.toDateString()) return TIME.format(date);
  return `${(date.getFullYear() === today.getFullYear() ? DAY : YEAR).format(date)} ${TIME.format(date)}`;
}

const SHORT = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hour12: false });

/** Returns a local time for a column of dates: today 14:03; yesterday 09:12; 23 Nov 14:03. */
export function dated(time: string, at: number): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return time;
  const today = midnight(at);
  const days = Math.round((today.getTime() - midnight(date.getTime()).getTime()) / 86_400_000);
  const day = days === 0 ? "today" : days === 1 ? "yesterday" : (date.getFullYear() === today.getFullYear() ? DAY : YEAR).format(date);
  return `${day} ${SHORT.format(date)}`;
}

/** Returns the exact time, local and in UTC. */
export function exact(time: string): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return time;
  const zone = ZONE.formatToParts(date).find((part) => part.type === "timeZoneName")?.value ?? "";
  const ms = String(date.getMilliseconds()).padStart(3, "0");
  return `${YEAR.format(date)} ${TIME.format(date)}.${ms} ${zone} (${date.toISOString()})`;
}

/** Returns the local midnight before a time. */
export function midnight(at: number): Date {
  const date = new Date(at);
  date.setHours(0, 0, 0, 0);
  return date;
}

/** Formats a number of bytes in B, KiB, MiB or GiB. */
export function bytes(count: number): string {
  if (count < 1024) return `${count} B`;
  if (count < 1024 * 1024) return `${(count / 1024).toFixed(1)} KiB`;
  if (count < 1024 ** 3) return `${(count / 1024 ** 2).toFixed(1)} MiB`;
  return `${(count / 1024 ** 3).toFixed(1)} GiB`;
}
