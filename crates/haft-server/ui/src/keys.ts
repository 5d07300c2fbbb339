// Keys: what each does on the page that is shown; never while somebody writes.

import { signal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";

/** A key, what it does, and how. */
export interface Key {
  key: string;
  does: string;
  run: () => void;
}

const sets = new Set<() => Key[]>();

/** Whether the list of keys is shown. */
export const keysShown = signal(false);

/** Opens the command palette; Ctrl or Cmd with K, also while somebody writes. */
export const openPalette = { run: () => {} };

/** Puts keys in force from the moment that the page shows what they are about: a key pressed before that would be lost. */
export function useKeys(keys: () => Key[]): void {
  useLayoutEffect(() => bind(keys));
}

function bind(keys: () => Key[]): () => void {
  sets.add(keys);
  return () => { sets.delete(keys); };
}

/** The keys that go through a list of names. */
export function steps(what: string, names: string[], current: string | undefined, choose: (name: string) => void): Key[] {
  const at = current === undefined ? -1 : names.indexOf(current);
  const move = (by: number) => {
    const next = names[Math.min(names.length - 1, Math.max(0, at < 0 ? 0 : at + by))];
    if (next !== undefined) choose(next);
  };
  return [{ key: "j", does: `next ${what}`, run: () => move(1) }, { key: "k", does: `previous ${what}`, run: () => move(-1) }];
}

/** All keys in force. */
export function allKeys(): Key[] {
  return [...sets].flatMap((keys) => keys());
}

function writes(target: EventTarget | null): boolean {
  const element = target instanceof HTMLElement ? target : null;
  return !!element && (element.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName)) &&
    !(element instanceof HTMLInputElement && /^(checkbox|radio|button)$/.test(element.type));
}

/** How long the first of two keys waits for the second. */
const LEADS = 1500;
let leader = false;
let leading = 0;

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette.run();
    return;
  }
  // An open dialog has its own keys; Escape closes it by itself.
  if (document.querySelector("dialog[open]") && event.key !== "?") return;
  if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || event.isComposing) return;
  if (writes(event.target) && event.key !== "Escape") return;
  const onControl = event.target instanceof HTMLElement && /^(BUTTON|A|SUMMARY)$/.test(event.target.tagName);
  // Enter on a button is the button's own.
  if (onControl && event.key === "Enter") return;
  const pressed = leader && event.key.length === 1 ? `g ${event.key}` : event.key;
  leader = false;
  clearTimeout(leading);
  const keys = allKeys();
  const found = keys.filter((key) => key.key === pressed).pop();
  if (!found && pressed === "g" && keys.some((key) => key.key.startsWith("g "))) {
    // The first of two keys.
    leader = true;
    leading = window.setTimeout(() => { leader = false; }, LEADS);
    return;
  }
  if (!found) return;
  event.preventDefault();
  found.run();
});
