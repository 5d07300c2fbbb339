// What haft does right now: one stream of events, opened again with back-off when it breaks, and the lists read anew after that.

import { effect, signal } from "@preact/signals";
import { login, resume, session } from "./session";
import type { Approval, CallEvent, Progress } from "./shapes";
import { tell } from "./output";

export type Link = "connecting" | "open" | "lost";

export const link = signal<Link>("connecting");
/** When the next try is, in milliseconds since 1970. */
export const nextTry = signal(0);
/** Counts the times that the stream was opened: whoever shows a list reads it anew. */
export const opened = signal(0);
/** Counts changes of runs and of their calls. */
export const runsChanged = signal(0);
/** The last thing that happened to a call, for a run's page. */
export const lastCall = signal<CallEvent | undefined>(undefined);

const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;

type Heard = (approval: Approval) => void;
const approvalListeners = new Set<Heard>();

/** Hears of every new or changed approval. */
export function onApproval(heard: Heard): () => void {
  approvalListeners.add(heard);
  return () => { approvalListeners.delete(heard); };
}

let source: EventSource | undefined;
let wait = FIRST_WAIT;
let timer = 0;

/** Opens the stream and keeps it open. */
export function connect(): void {
  clearTimeout(timer);
  source?.close();
  source = new EventSource("/api/v1/events");
  source.addEventListener("hello", () => {
    wait = FIRST_WAIT;
    link.value = "open";
    opened.value += 1;
  });
  const on = <T>(name: string, heard: (value: T) => void) =>
    source?.addEventListener(name, (event) => heard(JSON.parse((event as MessageEvent<string>).data) as T));
  on<Approval>("approval", (approval) => approvalListeners.forEach((heard) => heard(approval)));
  on("run", () => { runsChanged.value += 1; });
  on<CallEvent>("call", (call) => {
    lastCall.value = call;
    runsChanged.value += 1;
  });
  on<Progress>("progress", tell);
  source.onerror = lost;
}

// Whoever logs out hears no more.
effect(() => {
  if (session.value) return;
  clearTimeout(timer);
  source?.close();
});

/** The stream broke: what is shown stays, nothing can be decided, and it is tried again. */
function lost(): void {
  source?.close();
  link.value = "lost";
  nextTry.value = Date.now() + wait;
  timer = window.setTimeout(again, wait);
  wait = Math.min(wait * 2, LONGEST_WAIT);
}

async function again(): Promise<void> {
  // Without a session every try would fail: somebody may have logged in elsewhere by now.
  if (await resume()) connect();
  else lost();
}

/** Tries at once. */
export function tryNow(): void {
  clearTimeout(timer);
  wait = FIRST_WAIT;
  void again();
}

/** Whether something can be decided or changed right now. */
export const mayAct = () => link.value === "open" && login.value === "in";
