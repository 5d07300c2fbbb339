// Live events. One tab of the browser reads the event stream and forwards it to the others: a browser opens only six connections
// to a server, for all tabs together.

import { effect, signal } from "@preact/signals";
import { credentials, onSecretChange } from "./api";
import { readEvents } from "./events";
import { login, resume, session } from "./session";
import type { Approval, CallEvent, ChangesEvent, Progress } from "./shapes";
import { addOutput } from "./output";

export type Link = "connecting" | "open" | "lost";

export const link = signal<Link>("connecting");
/** Time of the next attempt to connect, in milliseconds since 1970. */
export const nextTry = signal(0);
/** Counts how often the stream was opened: each time, pages read their lists again. */
export const opened = signal(0);
/** Counts changes to runs and their calls. */
export const runsChanged = signal(0);
/** The run that changed last, in any process; a new object each time. */
export const lastRun = signal<{ run: string } | undefined>(undefined);
/** The last event of a call, for the run page. */
export const lastCall = signal<CallEvent | undefined>(undefined);
/** The last change to the workspace, for the run page. */
export const lastChanges = signal<ChangesEvent | undefined>(undefined);

const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;
/** The name of the channel between tabs, and of the lock that the reading tab holds. */
const NAME = "haft-live";

type ApprovalListener = (approval: Approval) => void;
const approvalListeners = new Set<ApprovalListener>();

/** Registers a listener for new and changed approvals; returns a function that removes it. */
export function onApproval(listener: ApprovalListener): () => void {
  approvalListeners.add(listener);
  return () => { approvalListeners.delete(listener); };
}

/** A message between tabs. */
type TabMessage =
  | { kind: "event"; name: string; data: string }
  | { kind: "link"; link: Link; nextTry: number }
  /** A new tab asks for the state of the link; the reading tab answers. */
  | { kind: "ask" }
  /** The user wants to reconnect now. */
  | { kind: "try" };

let channel: BroadcastChannel | undefined;
/** Disconnects this tab; set while it is connected. */
let connection: AbortController | undefined;
/** Ends the wait for the next attempt; set in the reading tab while it waits. */
let wake: (() => void) | undefined;
/** Whether this tab reads the stream. */
let reads = false;

const send = (message: TabMessage) => channel?.postMessage(message);

/** Connects this tab: it reads the stream, or follows the tab that does and takes over when that one closes. */
export function connect(): void {
  if (connection) return;
  connection = new AbortController();
  const { signal: stop } = connection;
  channel = new BroadcastChannel(NAME);
  channel.onmessage = (message: MessageEvent<TabMessage>) => receive(message.data);
  send({ kind: "ask" });
  if (!navigator.locks) {
    // Without locks (plain HTTP to another machine) each tab reads for itself.
    channel.close();
    channel = undefined;
    void read(stop);
    return;
  }
  navigator.locks.request(NAME, { signal: stop }, () => read(stop)).catch((error: unknown) => {
    if (!stop.aborted) throw error;
  });
}

/** Disconnects this tab; the next tab that waits for the lock reads the stream. */
function disconnect(): void {
  connection?.abort();
  connection = undefined;
  channel?.close();
  channel = undefined;
  reads = false;
}

function receive(message: TabMessage): void {
  switch (message.kind) {
    case "event": dispatch(message.name, message.data); break;
    case "link": adoptLink(message.link, message.nextTry); break;
    case "ask": if (reads) sendLink(); break;
    case "try": wake?.(); break;
  }
}

/** Sends the state of the link to the other tabs. */
const sendLink = () => send({ kind: "link", link: link.value, nextTry: nextTry.value });

/** Adopts the state of the link that the reading tab reports. */
function adoptLink(now: Link, next: number): void {
  const opens = now === "open" && link.value !== "open";
  link.value = now;
  nextTry.value = next;
  if (!opens) return;
  opened.value += 1;
  if (login.value !== "in") void resume();
}

/** Reads the stream and reconnects when it breaks, until this tab disconnects. */
async function read(stop: AbortSignal): Promise<void> {
  let wait = FIRST_WAIT;
  reads = true;
  const listener = (name: string, data: string) => {
    wait = FIRST_WAIT;
    dispatch(name, data);
    send({ kind: "event", name, data });
  };
  while (!stop.aborted) {
    await readEvents("/api/v1/events", credentials(), stop, listener).catch(() => {});
    // Meanwhile the page keeps its data and disables decisions.
    while (!stop.aborted) {
      link.value = "lost";
      nextTry.value = Date.now() + wait;
      sendLink();
      if (await pause(wait, stop)) wait = FIRST_WAIT;
      else wait = Math.min(wait * 2, LONGEST_WAIT);
      // Without a session every attempt would fail; the user may have logged in by now.
      if (await resume()) break;
    }
  }
}

/** Waits before the next attempt; resolves to true if the user cut the wait short. */
function pause(milliseconds: number, stop: AbortSignal): Promise<boolean> {
  return new Promise((done) => {
    const end = (early: boolean) => {
      clearTimeout(timer);
      stop.removeEventListener("abort", stopped);
      wake = undefined;
      done(early);
    };
    const stopped = () => end(false);
    const timer = window.setTimeout(() => end(false), milliseconds);
    stop.addEventListener("abort", stopped);
    wake = () => end(true);
  });
}

function dispatch(name: string, data: string): void {
  const value: unknown = JSON.parse(data);
  switch (name) {
    case "hello":
      link.value = "open";
      opened.value += 1;
      if (login.value !== "in") void resume();
      break;
    case "approval": approvalListeners.forEach((listener) => listener(value as Approval)); break;
    case "run":
      lastRun.value = value as { run: string };
      runsChanged.value += 1;
      break;
    case "call":
      lastCall.value = value as CallEvent;
      runsChanged.value += 1;
      break;
    case "changes": lastChanges.value = value as ChangesEvent; break;
    case "progress": addOutput(value as Progress); break;
  }
}

// Logging out disconnects.
effect(() => {
  if (!session.value) disconnect();
});

// After a login in another tab, the next attempt is worth making now.
onSecretChange(() => wake?.());

// A page disconnects when the user leaves it, even if the browser caches it for going back.
addEventListener("pagehide", disconnect);
addEventListener("pageshow", (event) => {
  if (event.persisted && session.value) connect();
});

/** Reconnects at once. */
export function tryNow(): void {
  if (!connection && session.value) connect();
  wake?.();
  send({ kind: "try" });
}

/** Returns whether the user can decide or change anything right now. */
export const mayAct = () => link.value === "open" && login.value === "in";
