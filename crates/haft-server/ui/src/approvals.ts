// Approval requests: the list, kept in sync with the server, and decisions, each sent after half a second in which it can be cancelled.

import { computed, signal } from "@preact/signals";
import { get, getWithHeaders, post, errorText } from "./api";
import { mayAct, onApproval } from "./live";
import type { Approval, ApprovalDetail, Json } from "./shapes";

/** Milliseconds in which a decision can be cancelled, and for which a decided card stays. */
export const SECOND_THOUGHT = 500;
export const STAYS = 10_000;
/** Maximum number of requests per read. */
const READ = 10_000;
/** Maximum number of requests to read one by one after they have left the server's list. */
const MAX_SINGLE_READS = 50;
/** Milliseconds between two reads of expired requests: this clock may be ahead of haft's. */
const RECHECK = 3_000;

/** The pending requests, oldest first, and those decided a moment ago. */
export const approvals = signal<Approval[]>([]);
export const loaded = signal(false);
export const trouble = signal("");
/** The details read so far, by request id. */
export const details = signal<Record<string, ApprovalDetail>>({});
/** When each request stopped being pending, by id: its card disappears ten seconds later. */
const settled = new Map<string, number>();
/** Ids of the requests that the user has seen in full, with every fold opened. */
export const seenWhole = signal<ReadonlySet<string>>(new Set());

/** Milliseconds before its expiry from which a request comes first. */
const PRESSING = 60_000;

/** Returns until when a request is worth deciding, in milliseconds since 1970: while its call waits, at most until it expires. */
export const deadlineOf = ({ expires, waits_until: until }: Approval): number => Math.min(Date.parse(expires), until === undefined ? Infinity : Date.parse(until));

/** Returns requests by what can wait least: those that expire within a minute, then critical ones, then the others, by expiry. */
export function byUrgency(list: Approval[], at: number): Approval[] {
  const rank = (approval: Approval) => (deadlineOf(approval) - at < PRESSING ? 0 : approval.risk === "critical" ? 1 : 2);
  return [...list].sort((a, b) => rank(a) - rank(b) || deadlineOf(a) - deadlineOf(b) || (a.created < b.created ? -1 : 1));
}

/** Returns requests in words: "2 more wait, 1 critical". */
export function moreWait(list: Approval[], where = ""): string {
  const critical = list.filter((approval) => approval.risk === "critical").length;
  return `${list.length.toLocaleString("en")} more ${list.length === 1 ? "waits" : "wait"}${where}${critical ? `, ${critical.toLocaleString("en")} critical` : ""}`;
}

/** The request that the user decided last, on its card: its verdict is pinned above the next card for a moment. */
export const pinned = signal<{ id: string; at: number } | undefined>(undefined);
/** The request that was just opened without the user: for a moment nothing is decided about it, so that a second press hits nothing. */
export const arrived = signal<string | undefined>(undefined);
/** How long that moment is, in milliseconds. */
const ARRIVES = 700;

function pin(id: string): void {
  if (pinned.value?.id !== id) pinned.value = { id, at: Date.now() };
}

/** Opens nothing itself: protects the request that a page opens next from a press that was meant for the last one. */
export function arrive(id: string): void {
  arrived.value = id;
  setTimeout(() => { if (arrived.value === id) arrived.value = undefined; }, ARRIVES);
}

/** The user opened a request on purpose: what they press next is meant for it. */
export function openedByUser(id: string): void {
  if (arrived.value === id) arrived.value = undefined;
}

export const waiting = computed(() => approvals.value.filter((approval) => approval.status === "pending"));

const ENDED = new Set(["denied", "answered", "done", "expired", "withdrawn", "in_doubt"]);

/** Reads the list again; cards decided a moment ago stay. */
export async function readApprovals(): Promise<void> {
  try {
    const { value } = await getWithHeaders<Approval[]>(`/approvals?limit=${READ}`);
    const ids = new Set(value.map((approval) => approval.id));
    const staying = approvals.value.filter((approval) => !ids.has(approval.id));
    // Requests that are no longer pending although no event said so: the first ones are read one by one, the others dropped.
    const gone = staying.filter((approval) => approval.status === "pending");
    for (const { id } of gone.slice(0, MAX_SINGLE_READS)) void readDetail(id, true).catch(() => {});
    const dropped = new Set(gone.slice(MAX_SINGLE_READS));
    approvals.value = inOrder([...value, ...staying.filter((approval) => !dropped.has(approval))]);
    const read = value.filter((approval) => details.value[approval.id]);
    details.value = { ...details.value, ...Object.fromEntries(read.map((approval) => [approval.id, { ...details.value[approval.id]!, ...approval }])) };
    trouble.value = "";
    loaded.value = true;
  } catch (error) {
    trouble.value = errorText(error);
  }
}

function inOrder(list: Approval[]): Approval[] {
  return list.sort((a, b) => (a.created < b.created ? -1 : a.created > b.created ? 1 : a.id < b.id ? -1 : 1));
}

/** Returns whether `status` is out of date: a request that has ended stays ended, even if an older response arrives later. */
function isOutdated(id: string, status: string): boolean {
  const known = approvals.value.find((approval) => approval.id === id) ?? details.value[id];
  return known !== undefined && ENDED.has(known.status) && !ENDED.has(status);
}

/** Adds a new request to the list or updates a known one. */
export function update(approval: Approval): void {
  if (isOutdated(approval.id, approval.status)) return;
  const known = approvals.value.some((other) => other.id === approval.id);
  // The event about the user's own decision may come before the response to it.
  if (approval.status !== "pending" && pending.value[approval.id]?.sent) pin(approval.id);
  if (!known && approval.status !== "pending") return;
  if (approval.status !== "pending" && !settled.has(approval.id)) settled.set(approval.id, Date.now());
  // The ten seconds count from the last change.
  else if (ENDED.has(approval.status)) settled.set(approval.id, Date.now());
  approvals.value = known
    ? approvals.value.map((other) => (other.id === approval.id ? { ...other, ...approval } : other))
    : inOrder([...approvals.value, approval]);
  const detail = details.value[approval.id];
  if (detail) details.value = { ...details.value, [approval.id]: { ...detail, ...approval } };
  if (known && approval.status !== "pending") void readDetail(approval.id, true);
}

onApproval(update);

/** Removes the cards whose ten seconds are over. */
export function sweep(now: number): void {
  const over = approvals.value.filter((approval) => {
    const at = settled.get(approval.id);
    return at !== undefined && now - at > STAYS && ENDED.has(approval.status);
  });
  if (!over.length) return;
  const ids = new Set(over.map((approval) => approval.id));
  approvals.value = approvals.value.filter((approval) => !ids.has(approval.id));
}

let lastRecheck = 0;

/** Reads expired requests again: without a client, no event reports that they expired. */
export function readExpired(now: number): void {
  if (now - lastRecheck < RECHECK || !mayAct()) return;
  const late = (approval: Approval) => approval.status === "pending" && Date.parse(approval.expires) <= now;
  const unlisted = Object.values(details.value).filter((detail) => late(detail) && !approvals.value.some((other) => other.id === detail.id));
  if (!unlisted.length && !approvals.value.some(late)) return;
  lastRecheck = now;
  void readApprovals();
  for (const { id } of unlisted.slice(0, MAX_SINGLE_READS)) void readDetail(id, true).catch(() => {});
}

/** Reads the details of a request; known ones only with `again`. */
export async function readDetail(id: string, again = false): Promise<void> {
  if (details.value[id] && !again) return;
  const detail = await get<ApprovalDetail>(`/approvals/${encodeURIComponent(id)}`);
  keep(detail);
}

/** Stores the state of a request after a decision. */
export function settle(detail: ApprovalDetail): void {
  settled.set(detail.id, Date.now());
  keep(detail);
}

function keep(detail: ApprovalDetail): void {
  if (isOutdated(detail.id, detail.status)) return;
  details.value = { ...details.value, [detail.id]: detail };
  const listed = approvals.value.find((approval) => approval.id === detail.id);
  if (!listed) return;
  if (detail.status !== "pending" && !settled.has(detail.id)) settled.set(detail.id, Date.now());
  approvals.value = approvals.value.map((other) => (other.id === detail.id ? { ...other, status: detail.status, decision: detail.decision } : other));
}

/** A decision, as it is sent to the server. */
export type Choice =
  | { decision: "approve"; scope?: "once" | "session" | "always"; edit?: Json; rule?: string }
  | { decision: "deny"; message?: string; stop?: boolean }
  | { decision: "answer"; answers?: Record<string, Json>; text?: string };

/** A decision under way: it can be cancelled until it is sent. */
export interface Pending {
  id: string;
  choice: Choice;
  /** The label shown meanwhile. */
  says: string;
  sent: boolean;
}

/** The decisions under way, by request id: at most one per request. */
export const pending = signal<Record<string, Pending>>({});
/** The server's error about a decision, by request id. */
export const refusals = signal<Record<string, string>>({});
const timers = new Map<string, number>();

/** Sends a decision after half a second, unless the user cancels it. */
export function decide(id: string, choice: Choice, says: string): void {
  if (!mayAct() || pending.value[id] || arrived.value === id) return;
  pending.value = { ...pending.value, [id]: { id, choice, says, sent: false } };
  refusals.value = { ...refusals.value, [id]: "" };
  timers.set(id, window.setTimeout(() => void send(id, choice), SECOND_THOUGHT));
}

/** Cancels the unsent decision about this request, else the latest unsent one; returns whether there was one. */
export function takeBack(id: string): boolean {
  const under = [pending.value[id], ...Object.values(pending.value).reverse()].find((one) => one && !one.sent);
  if (!under) return false;
  clearTimeout(timers.get(under.id));
  over(under.id);
  return true;
}

function over(id: string): void {
  timers.delete(id);
  const { [id]: _, ...others } = pending.value;
  pending.value = others;
}

async function send(id: string, choice: Choice): Promise<void> {
  const { decision, ...members } = choice;
  const under = pending.value[id];
  if (under) pending.value = { ...pending.value, [id]: { ...under, sent: true } };
  try {
    const detail = await post<ApprovalDetail>(`/approvals/${encodeURIComponent(id)}/${decision}`, members);
    settle(detail);
    if (detail.status !== "pending") pin(id);
  } catch (error) {
    refusals.value = { ...refusals.value, [id]: errorText(error) };
    await readDetail(id, true).catch(() => {});
    // Somebody else was first: their verdict is pinned as the user's own would be.
    if ((details.value[id]?.status ?? "pending") !== "pending") pin(id);
  } finally {
    over(id);
  }
}

/** Decides several requests at once; returns how many the server refused. Their cards show why. */
export async function decideAll(choices: { id: string; choice: Choice }[]): Promise<number> {
  const decisions = choices.map(({ id, choice }) => ({ id, ...choice }));
  const { results } = await post<{ results: { id: string; ok: boolean; entry?: ApprovalDetail; error?: { message: string } }[] }>(
    "/approvals/batch", { decisions });
  for (const result of results) {
    if (result.ok && result.entry) {
      settle(result.entry);
    } else {
      refusals.value = { ...refusals.value, [result.id]: result.error?.message ?? "refused" };
      void readDetail(result.id, true).catch(() => {});
    }
  }
  return results.filter((result) => !result.ok).length;
}
