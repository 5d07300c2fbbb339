// This page says whether a person sees it: while one does, haft shows no notice of its own on the desktop.

import { effect } from "@preact/signals";
import { credentials, post } from "./api";
import { login, session } from "./session";

/** How often a page says that it is there, in milliseconds; the server forgets one that it has not heard of for 150 seconds. */
const AGAIN = 30_000;

const tab = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Whether a person sees the page, or would see the notice that it shows. */
const attentive = () => !document.hidden || (typeof Notification !== "undefined" && Notification.permission === "granted");

function say(): void {
  if (!session.value || login.value !== "in") return;
  // The next try comes soon.
  void post("/tabs", { tab, attentive: attentive() }).catch(() => {});
}

/** Says so from now on: at once, whenever it changes, and now and then. */
export function sayWhetherSeen(): void {
  effect(say);
  document.addEventListener("visibilitychange", say);
  window.setInterval(say, AGAIN);
  addEventListener("pagehide", () => {
    if (!session.value) return;
    const headers = { ...credentials(), "content-type": "application/json" };
    void fetch("/api/v1/tabs", { method: "POST", headers, credentials: "same-origin", keepalive: true, body: JSON.stringify({ tab, attentive: false }) }).catch(() => {});
  });
}
