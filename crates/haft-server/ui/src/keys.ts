// Keyboard shortcuts of the current page; inactive while the user types in a field.

import { signal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";

/** A key, a description of what it does, and its action. */
export interface Key {
  key: string;
  does: string;
  run: () => void;
}

const sets = new Set<() => Key[]>();

/** Whether the list of keys is shown. */
export const keysOpen = signal(false);

/** Opens the command palette: Ctrl+K or Cmd+K, even while the user types. */
export const openPalette = { run: () => {} };

/** Activates keys as soon as the page is laid out: in a later effect, a key pressed in between would be lost. */
export function useKeys(keys: () => Key[]): void {
  useLayoutEffect(() => bind(keys));
}

function bind(keys: () => Key[]): () => void {
  sets.add(keys);
  return () => { sets.delete(keys); };
}

/** Returns the keys that step through a list of names. */
export function steps(what: string, names: string[], current: string | undefined, choose: (name: string) => void): Key[] {
  const at = current === undefined ? -1 : names.indexOf(current);
  const move = (by: number) => {
    const next = names[Math.min(names.length - 1, Math.max(0, at < 0 ? 0 : at + by))];
    if (next !== undefined) choose(next);
  };
  return [{ key: "j", does: `next ${what}`, run: () => move(1) }, { key: "k", does: `previous ${what}`, run: () => move(-1) }];
}

/** Returns all active keys. */
export function allKeys(): Key[] {
  return [...sets].flatMap((keys) => keys());
}

function writes(target: EventTarget | null): boolean {
  const element = target instanceof HTMLElement ? target : null;
  return !!element && (element.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName)) &&
    !(element instanceof HTMLInputElement && /^(checkbox|radio|button)$/.test(element.type));
}

/** Milliseconds in which the second of two keys must follow the first. */
const LEADS = 1500;
let leader = false;
let leading = 0;

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette.run();
    return;
  }
  // An open dialog has its own keys; the browser closes it on Escape.
  if (document.querySelector("dialog[open]") && event.key !== "?") return;
  if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || event.isComposing) return;
  if (writes(event.target) && event.key !== "Escape") return;
  const onControl = event.target instanceof HTMLElement && /^(BUTTON|A|SUMMARY)$/.test(event.target.tagName);
  // Enter on a button or link activates that.
  if (onControl && event.key === "Enter") return;
  const pressed = leader && event.key.length === 1 ? `g ${event.key}` : event.key;
  leader = false;
  clearTimeout(leading);
  const keys = allKeys();
  const found = keys.filter((key) => key.key === pressed).pop();
  if (!found && pressed === "g" && keys.some((key) => key.key.startsWith("g "))) {
    // This is the first of two keys.
    leader = true;
    leading = window.setTimeout(() => { leader = false; }, LEADS);
    return;
  }
  if (!found) return;
  event.preventDefault();
  found.run();
});
