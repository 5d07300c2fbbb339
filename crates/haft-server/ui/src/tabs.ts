// Tells haft whether the user sees this page: meanwhile haft shows no desktop notifications of its own.

import { effect } from "@preact/signals";
import { credentials, post } from "./api";
import { login, session } from "./session";

/** Milliseconds between two reports; the server forgets a page that has not reported for 150 seconds. */
const AGAIN = 30_000;

const tab = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Returns whether the user sees the page, or would see its notifications. */
const attentive = () => !document.hidden || (typeof Notification !== "undefined" && Notification.permission === "granted");

function report(): void {
  if (!session.value || login.value !== "in") return;
  // The next report follows soon.
  void post("/tabs", { tab, attentive: attentive() }).catch(() => {});
}

/** Starts reporting: at once, on every change and at regular intervals. */
export function reportVisibility(): void {
  effect(report);
  document.addEventListener("visibilitychange", report);
  window.setInterval(report, AGAIN);
  addEventListener("pagehide", () => {
    if (!session.value) return;
    const headers = { ...credentials(), "content-type": "application/json" };
    void fetch("/api/v1/tabs", { method: "POST", headers, credentials: "same-origin", keepalive: true, body: JSON.stringify({ tab, attentive: false }) }).catch(() => {});
  });
}
