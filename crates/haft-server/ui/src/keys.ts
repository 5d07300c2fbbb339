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

/** Puts keys in force from the moment that the page shows what they are about: a key pressed before that would be lost. */
export function useKeys(keys: () => Key[]): void {
  useLayoutEffect(() => bind(keys));
}

function bind(keys: () => Key[]): () => void {
  sets.add(keys);
  return () => { sets.delete(keys); };
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

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || event.isComposing) return;
  if (event.key === "Escape" && keysShown.value) {
    keysShown.value = false;
    return;
  }
  if (writes(event.target) && event.key !== "Escape") return;
  const onControl = event.target instanceof HTMLElement && /^(BUTTON|A|SUMMARY)$/.test(event.target.tagName);
  // Enter on a button is the button's own.
  if (onControl && event.key === "Enter") return;
  const found = allKeys().filter((key) => key.key === event.key).pop();
  if (!found) return;
  event.preventDefault();
  found.run();
});
