// What haft does right now. One tab of the browser reads the stream of events and passes it on to the others: a browser opens
// only six connections to a server, for all tabs together.

import { effect, signal } from "@preact/signals";
import { credentials, onSecretChange } from "./api";
import { readEvents } from "./events";
import { login, resume, session } from "./session";
import type { Approval, CallEvent, ChangesEvent, Progress } from "./shapes";
import { tell } from "./output";

export type Link = "connecting" | "open" | "lost";

export const link = signal<Link>("connecting");
/** When the next try is, in milliseconds since 1970. */
export const nextTry = signal(0);
/** Counts the times that the stream was opened: whoever shows a list reads it anew. */
export const opened = signal(0);
/** Counts changes of runs and of their calls. */
export const runsChanged = signal(0);
/** The run that changed last, of whichever process; a new object each time. */
export const lastRun = signal<{ run: string } | undefined>(undefined);
/** The last thing that happened to a call, for a run's page. */
export const lastCall = signal<CallEvent | undefined>(undefined);
/** The last change of the workspace, for a run's page. */
export const lastChanges = signal<ChangesEvent | undefined>(undefined);

const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;
/** The name of the tabs' channel, and of the lock that the reading tab holds. */
const NAME = "haft-live";

type Heard = (approval: Approval) => void;
const approvalListeners = new Set<Heard>();

/** Hears of every new or changed approval. */
export function onApproval(heard: Heard): () => void {
  approvalListeners.add(heard);
  return () => { approvalListeners.delete(heard); };
}

/** What tabs tell each other. */
type Word =
  | { kind: "event"; name: string; data: string }
  | { kind: "link"; link: Link; nextTry: number }
  /** A tab has come: whoever reads says how the link is. */
  | { kind: "ask" }
  /** Somebody does not want to wait for the next try. */
  | { kind: "try" };

let channel: BroadcastChannel | undefined;
/** Ends this tab's part; there while it has one. */
let part: AbortController | undefined;
/** Ends the wait for the next try; there in the reading tab, while it waits. */
let wake: (() => void) | undefined;
/** Whether this tab reads the stream. */
let reads = false;

const send = (word: Word) => channel?.postMessage(word);

/** Takes part: as the tab that reads, or as one that hears from it and reads when that one is gone. */
export function connect(): void {
  if (part) return;
  part = new AbortController();
  const { signal: stop } = part;
  channel = new BroadcastChannel(NAME);
  channel.onmessage = (message: MessageEvent<Word>) => take(message.data);
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

/** Takes no part any more: whoever waits for the lock reads from now on. */
function disconnect(): void {
  part?.abort();
  part = undefined;
  channel?.close();
  channel = undefined;
  reads = false;
}

function take(word: Word): void {
  switch (word.kind) {
    case "event": hear(word.name, word.data); break;
    case "link": follow(word.link, word.nextTry); break;
    case "ask": if (reads) say(); break;
    case "try": wake?.(); break;
  }
}

/** Says how the link is. */
const say = () => send({ kind: "link", link: link.value, nextTry: nextTry.value });

/** A tab that does not read shows what the reading one says. */
function follow(now: Link, next: number): void {
  const opens = now === "open" && link.value !== "open";
  link.value = now;
  nextTry.value = next;
  if (!opens) return;
  opened.value += 1;
  if (login.value !== "in") void resume();
}

/** Reads the stream, again and again, until this tab takes no part any more. */
async function read(stop: AbortSignal): Promise<void> {
  let wait = FIRST_WAIT;
  reads = true;
  const heard = (name: string, data: string) => {
    wait = FIRST_WAIT;
    hear(name, data);
    send({ kind: "event", name, data });
  };
  while (!stop.aborted) {
    await readEvents("/api/v1/events", credentials(), stop, heard).catch(() => {});
    // What is shown stays, nothing can be decided, and it is tried again.
    while (!stop.aborted) {
      link.value = "lost";
      nextTry.value = Date.now() + wait;
      say();
      if (await pause(wait, stop)) wait = FIRST_WAIT;
      else wait = Math.min(wait * 2, LONGEST_WAIT);
      // Without a session every try would fail: somebody may have logged in by now.
      if (await resume()) break;
    }
  }
}

/** Waits; true when somebody did not want to wait so long. */
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

function hear(name: string, data: string): void {
  const value: unknown = JSON.parse(data);
  switch (name) {
    case "hello":
      link.value = "open";
      opened.value += 1;
      if (login.value !== "in") void resume();
      break;
    case "approval": approvalListeners.forEach((heard) => heard(value as Approval)); break;
    case "run":
      lastRun.value = value as { run: string };
      runsChanged.value += 1;
      break;
    case "call":
      lastCall.value = value as CallEvent;
      runsChanged.value += 1;
      break;
    case "changes": lastChanges.value = value as ChangesEvent; break;
    case "progress": tell(value as Progress); break;
  }
}

// Whoever logs out hears no more.
effect(() => {
  if (!session.value) disconnect();
});

// Somebody logged in elsewhere: the next try is worth making now.
onSecretChange(() => wake?.());

// A page that is left reads no more, also where the browser keeps it for the way back.
addEventListener("pagehide", disconnect);
addEventListener("pageshow", (event) => {
  if (event.persisted && session.value) connect();
});

/** Tries at once. */
export function tryNow(): void {
  if (!part && session.value) connect();
  wake?.();
  send({ kind: "try" });
}

/** Whether something can be decided or changed right now. */
export const mayAct = () => link.value === "open" && login.value === "in";
