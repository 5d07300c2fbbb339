// Desktop notifications of new requests: the console asks for permission once and shows them only while the page is hidden.

import { signal } from "@preact/signals";
import { readStored, store } from "./storage";
import type { Approval } from "./shapes";
import { spellOut } from "./visible";
import { go, pathOf } from "./route";

const STORAGE_KEY = "haft-notify";

/** Whether the user has answered, either way, or the browser cannot ask. */
export const answered = signal(typeof Notification === "undefined" || Notification.permission !== "default" || readStored(STORAGE_KEY) !== undefined);

/** Requests permission from the browser, which asks the user. */
export async function allow(): Promise<void> {
  store(STORAGE_KEY, "asked");
  answered.value = true;
  if (typeof Notification !== "undefined") await Notification.requestPermission().catch(() => {});
}

/** Records that the user declined: the console never asks again. */
export function decline(): void {
  store(STORAGE_KEY, "no");
  answered.value = true;
}

/** Notifies of new requests if the user allowed it and the page is hidden; several tabs show one notification per request. */
export function notify(fresh: Approval[]): void {
  const [first] = fresh;
  if (!first || typeof Notification === "undefined" || Notification.permission !== "granted" || !document.hidden) return;
  const body = fresh.length === 1 ? spellOut(first.fact.text).slice(0, 200) : `${fresh.length} requests`;
  try {
    const notice = new Notification(`haft: ${fresh.length === 1 ? `${first.tool} needs approval` : "approvals needed"}`, { body, tag: first.id });
    notice.onclick = () => {
      window.focus();
      go(pathOf("waiting", first.id));
      notice.close();
    };
  } catch {
    // Some mobile browsers allow only service workers to show notifications.
  }
}
