// Desktop notifications of new requests: asked for once, by a click, and only while no tab is looked at.

import { signal } from "@preact/signals";
import { readStored, store } from "./storage";
import type { Approval } from "./shapes";
import { spelled } from "./visible";
import { go, pathOf } from "./route";

const KEPT = "haft-notify";

/** Whether the question has been answered, either way, or cannot be asked. */
export const answered = signal(typeof Notification === "undefined" || Notification.permission !== "default" || readStored(KEPT) !== undefined);

/** Asks the browser; it asks the user. */
export async function allow(): Promise<void> {
  store(KEPT, "asked");
  answered.value = true;
  if (typeof Notification !== "undefined") await Notification.requestPermission().catch(() => {});
}

/** Never asks again. */
export function decline(): void {
  store(KEPT, "no");
  answered.value = true;
}

/** Says that requests came, where the user allowed it and looks elsewhere; tabs that hear of the same request show one notice. */
export function notify(fresh: Approval[]): void {
  const [first] = fresh;
  if (!first || typeof Notification === "undefined" || Notification.permission !== "granted" || !document.hidden) return;
  const body = fresh.length === 1 ? spelled(first.fact.text).slice(0, 200) : `${fresh.length} requests`;
  try {
    const notice = new Notification(`haft: ${fresh.length === 1 ? `${first.tool} needs approval` : "approvals needed"}`, { body, tag: first.id });
    notice.onclick = () => {
      window.focus();
      go(pathOf("waiting", first.id));
      notice.close();
    };
  } catch {
    // Some browsers on phones have notifications for service workers alone.
  }
}
