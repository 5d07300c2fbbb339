// The waiting page: the queue on the left, the selected request in full on the right.

import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { errorText } from "../api";
import { approvals, arrive, byUrgency, deadlineOf, details, loaded, moreWait, openedByUser, pinned, readExpired, readDetail, sweep, trouble, waiting } from "../approvals";
import { useKeys } from "../keys";
import { follow, go, parts, pathOf } from "../route";
import { session } from "../session";
import type { Approval } from "../shapes";
import { ago, now, span } from "../time";
import { spellOut } from "../visible";
import { Batch } from "../parts/batch";
import { RiskWord, StateWord } from "../parts/badges";
import { clientName } from "../parts/client";
import { Card, PinnedVerdict, Remaining } from "../parts/card";
import { Deed, DeedLines, isTitle } from "../parts/deed";
import { Empty, wide } from "../parts/frame";
import { PageHead } from "../parts/head";
import { useHeld } from "../parts/held";
import { Pending, useReading } from "../parts/reading";
import { folderName } from "../parts/runrow";
import { SafeText } from "../parts/text";
import { When } from "../parts/when";
import { Windowed } from "../parts/windowed";
import { Eligible, eligible } from "./eligible";

/** The request shown when the address names none; it stays until the user moves on. */
const stuck = signal<string | undefined>(undefined);

export function Waiting() {
  return parts.value[1] === "history" ? <History /> : parts.value[1] === "eligible" ? <Eligible /> : <Queue />;
}

/** Whether the queue is grouped by client and folder; within a group, and without groups, requests are ordered by age. */
const grouped = signal(false);

/** Returns the client's name and the folder. */
const groupOf = (approval: Approval): string => `${clientName(approval)} · ${folderName(approval.workspace)}`;

function Queue() {
  const named = parts.value[1];
  const [filter, setFilter] = useState("");
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const finding = useRef<HTMLInputElement>(null);
  useEffect(() => readExpired(now.value), [now.value]);
  const all = approvals.value;
  const { rows, fresh, over, holding, release, pointer } = useHeld(all, (approval) => approval.id);
  // An effect of the last drawing must not remove a row above the one that the pointer has just reached.
  useEffect(() => { if (!over.current) sweep(now.value); }, [now.value, holding]);
  const shown = useMemo(() => {
    const fitting = rows.filter((approval) => fits(approval, filter));
    if (!grouped.value) return fitting;
    const order = [...new Set(fitting.map(groupOf))];
    return order.flatMap((group) => fitting.filter((approval) => groupOf(approval) === group));
  }, [all, rows.length, filter, grouped.value]);
  if (!named && wide.value && stuck.value === undefined) stuck.value = (byUrgency(shown.filter((approval) => approval.status === "pending"), now.value)[0] ?? shown[0])?.id;
  const opened = named ?? (wide.value ? stuck.value : undefined);
  // A request that the filter hides cannot be decided, neither by a button nor by a key.
  const hidden = filter.trim() !== "" && opened !== undefined && all.some((approval) => approval.id === opened && !fits(approval, filter));
  const selected = hidden ? (wide.value ? shown[0]?.id : undefined) : opened;
  const together = eligible(waiting.value).length;
  const at = shown.findIndex((approval) => approval.id === selected);
  const move = (by: number) => {
    const next = shown[Math.min(shown.length - 1, Math.max(0, at < 0 ? 0 : at + by))];
    if (next) go(pathOf("waiting", next.id), named !== undefined);
  };
  const open = (id: string) => {
    if (named || !wide.value) go(pathOf("waiting", id), named !== undefined);
    else stuck.value = id;
  };
  useAdvance(selected, all.filter((approval) => fits(approval, filter)), !named && loaded.value && !all.some((approval) => approval.id === selected), open);
  const [view, setView] = useState<readonly [number, number]>([0, Infinity]);
  const unseen = (list: Approval[]) => list.filter((approval) => approval.status === "pending" && approval.id !== selected);
  const [above, below] = [unseen(shown.slice(0, view[0])), unseen(shown.slice(view[1]))];
  const hiddenByFilter = waiting.value.filter((approval) => !fits(approval, filter));
  const jump = (list: Approval[]) => { const [first] = byUrgency(list, now.value); if (first) open(first.id); };
  const choose = (id: string) => setChosen((before) => {
    const next = new Set(before);
    if (!next.delete(id)) next.add(id);
    return next;
  });
  useKeys(() => [
    { key: "j", does: "next request", run: () => move(1) },
    { key: "k", does: "previous request", run: () => move(-1) },
    { key: "Enter", does: "open", run: () => { const id = selected ?? shown[0]?.id; if (id) go(pathOf("waiting", id)); } },
    { key: "x", does: "select for a batch", run: () => { if (selected) choose(selected); } },
    { key: "/", does: "filter", run: () => finding.current?.focus() },
  ]);
  if (!all.length && loaded.value && !named) return <EmptyQueue />;
  const list = wide.value || !named || hidden;
  return (
    <>
    <PageHead title="Waiting" thing={named ? all.find((approval) => approval.id === selected)?.fact.text : undefined}>
      <span class="queue-count dim">{waiting.value.length.toLocaleString("en")} pending{filter && `, ${shown.length.toLocaleString("en")} shown`}</span>
      <span class="gap" />
      {together > 1 && <a href="/waiting/eligible" onClick={follow}>Approve all<span class="not-on-phone"> eligible</span> ({together.toLocaleString("en")})</a>}
      <a href="/waiting/history" onClick={follow}>History</a>
    </PageHead>
    <div class={`split ${selected ? "with-detail" : ""}`}>
      {list && (
        <section class="queue" aria-label="pending requests" {...pointer}>
          <div class="queue-head">
            <input ref={finding} type="search" placeholder="Filter" aria-label="Filter the requests" value={filter}
              onInput={(e) => setFilter(e.currentTarget.value)} onKeyDown={(e) => { if (e.key === "Escape") e.currentTarget.blur(); }} />
            <button type="button" class="quiet" aria-pressed={grouped.value} onClick={() => { grouped.value = !grouped.value; }}>Group</button>
          </div>
          <div class="queue-rows">
          <Windowed class="queue-list" label="requests" count={shown.length} height={ROW} keep={at} covered={SIGN} role="list" onView={(first, end) => setView([first, end])} row={(index) => {
            const approval = shown[index];
            const before = shown[index - 1];
            const heads = approval && grouped.value && (!before || groupOf(before) !== groupOf(approval)) ? groupOf(approval) : "";
            return approval && <QueueRow key={approval.id} approval={approval} group={heads} current={approval.id === selected} chosen={chosen.has(approval.id)} choose={() => choose(approval.id)} />;
          }} />
          {/* Above the rows, so that no row moves when a sign comes or goes: a press that began on one row would end on another. */}
          {above.length > 0 && <button type="button" class="more sign above" onClick={() => jump(above)}>↑ {moreWait(above, " above")}</button>}
          {below.length > 0 && <button type="button" class="more sign below" onClick={() => jump(below)}>↓ {moreWait(below, " below")}</button>}
          </div>
          {trouble.value && <p class="note bad-text" role="alert">{trouble.value}</p>}
          {filter && !shown.length && <p class="note">No request matches “{filter}”.</p>}
          {fresh.length > 0 && <button type="button" class="more" onClick={release}>{moreWait(fresh)}</button>}
          {filter.trim() !== "" && hiddenByFilter.length > 0 && <button type="button" class="more" onClick={() => setFilter("")}>{moreWait(hiddenByFilter, " outside the filter")}</button>}
        </section>
      )}
      {chosen.size > 0 ? <Batch ids={[...chosen]} close={() => setChosen(new Set())} drop={choose} />
        : selected ? <Detail key={selected} id={selected} /> : (wide.value || hidden) && <section class="detail"><p class="note">{hidden ? "The request that was open does not match the filter, so it cannot be decided here." : "Nothing is selected."}</p></section>}
    </div>
    </>
  );
}

/** Milliseconds for which the verdict stays on its own card, and for which it is pinned in all. */
const LOOK = 1_000;
const PINNED = 8_000;

/** Opens the most urgent request after the user has decided the open one, or once that has left the list; until there is one, nothing changes. */
function useAdvance(selected: string | undefined, fitting: Approval[], leaves: boolean, open: (id: string) => void): void {
  const last = pinned.value;
  const known = useRef(last);
  // The request that was decided while it was open, until the user opens another.
  const decided = useRef<string | undefined>(undefined);
  if (decided.current !== selected) decided.current = undefined;
  if (known.current !== last) {
    known.current = last;
    if (last?.id === selected) decided.current = selected;
  }
  // An effect of an earlier drawing must not move a user away who has opened another request since.
  const latest = useRef(selected);
  latest.current = selected;
  const goes = selected !== undefined && (decided.current === selected || leaves);
  const next = goes ? byUrgency(fitting.filter((approval) => approval.status === "pending" && approval.id !== selected), now.value)[0]?.id : undefined;
  useEffect(() => {
    if (next === undefined) return;
    const timer = setTimeout(() => { if (latest.current === selected) { arrive(next); open(next); } }, leaves || !last ? 0 : Math.max(0, last.at + LOOK - Date.now()));
    return () => clearTimeout(timer);
  }, [next, leaves]);
}

/** Height of a row, and of a sign over the list with the room around it, in pixels. */
const ROW = 72;
const SIGN = 40;

/** A request that expires within this time shows how much is left, in milliseconds. */
const SOON = 3_600_000;

function fits(approval: Approval, filter: string): boolean {
  const text = [approval.tool, approval.risk, approval.run, approval.client, approval.door, approval.fact.text, approval.kind].join(" ").toLowerCase();
  return filter.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function QueueRow({ approval, group, current, chosen, choose }: { approval: Approval; group: string; current: boolean; chosen: boolean; choose: () => void }) {
  const waits = approval.status === "pending";
  return (
    <div class={`queue-row ${current ? "current" : ""} ${waits ? "" : "settled"} ${group ? "heads" : ""}`} role="listitem">
      {group && <span class="group-name clipped"><SafeText text={group} /></span>}
      <input type="checkbox" checked={chosen} disabled={!waits} aria-label={`select ${spellOut(approval.fact.text).slice(0, 80)}`} onChange={choose} />
      <a href={pathOf("waiting", approval.id)} onClick={(event) => { openedByUser(approval.id); follow(event); }} aria-current={current ? "true" : undefined}>
        <span class="queue-top"><span class={isTitle(approval) ? "queue-fact title" : "queue-fact"}><Deed approval={approval} /></span> <span class="dim small">{ago(approval.created, now.value)}</span></span>
        <span class="queue-meta"><span class="tool"><SafeText text={approval.tool} /></span> {waits ? <RiskWord risk={approval.risk} /> : <StateWord word={approval.status} />}
          <DeedLines approval={approval} />
          <span class="dim clipped"><SafeText text={clientName(approval)} /></span>
          {waits && deadlineOf(approval) - now.value < SOON && <Remaining created={Date.parse(approval.created)} expires={deadlineOf(approval)} />}</span>
      </a>
    </div>
  );
}

function Detail({ id }: { id: string }) {
  const [problem, setProblem] = useState("");
  useEffect(() => {
    setProblem("");
    readDetail(id).catch((error) => setProblem(errorText(error)));
  }, [id]);
  const detail = details.value[id];
  const last = pinned.value;
  const verdict = last && last.id !== id && now.value - last.at < PINNED ? details.value[last.id] : undefined;
  const others = waiting.value.filter((approval) => approval.id !== id);
  return (
    <section class="detail" aria-label="the selected request">
      {!wide.value && <a class={others.length ? "back more" : "back"} href="/waiting" onClick={follow}>← {others.length ? moreWait(others) : "All requests"}</a>}
      {verdict && <PinnedVerdict key={verdict.id} detail={verdict} />}
      {detail ? <Card key={id} detail={detail} /> : problem ? <p class="note bad-text" role="alert">{problem}</p> : <p class="note">Loading …</p>}
    </section>
  );
}

/** Maximum number of requests in the history. */
const REMEMBERED = 200;

/** The decided requests, newest first: by whom, after what time, and with what outcome. */
function History() {
  const path = `/approvals?status=all&newest=${REMEMBERED}`;
  const reading = useReading<Approval[]>(path, approvals.value.length);
  const [filter, setFilter] = useState("");
  const list = (reading.value ?? []).filter((approval) => approval.status !== "pending" && fits(approval, filter));
  return (
    <div class="page history">
      <PageHead title="Earlier decisions" of="Waiting"><a href="/waiting" onClick={follow}>Pending ({waiting.value.length.toLocaleString("en")})</a></PageHead>
      <div class="list-tools">
        <input type="search" placeholder="Filter" aria-label="Filter the history" value={filter} onInput={(e) => setFilter(e.currentTarget.value)} />
        <span class="dim">latest {REMEMBERED}</span></div>
      <Pending reading={reading} />
      {reading.value && !list.length && <p class="note">{filter ? `No decision matches “${filter}”.` : "Nothing has been decided yet."}</p>}
      {list.length > 0 && (
        <ul class="past-requests" aria-label="decided requests">{list.map((approval) => (
          <li key={approval.id}><a href={pathOf("waiting", approval.id)} onClick={follow}>
            <StateWord word={approval.status} /> <span class="mono clipped"><Deed approval={approval} /></span>
            <span class="dim">{approval.decision ? <>{VERBS[approval.decision.choice]} by <SafeText text={approval.decision.by} /> after {span(Math.max(0, Date.parse(approval.decision.at) - Date.parse(approval.created)))}</> : "no decision"}
              {" · "}<SafeText text={clientName(approval)} /> · <When at={approval.created} /></span>
          </a></li>
        ))}</ul>
      )}
    </div>
  );
}

const VERBS = { approve: "approved", deny: "denied", answer: "answered" };

function EmptyQueue() {
  return (
    <>
    <PageHead title="Waiting"><span class="gap" /><a href="/waiting/history" onClick={follow}>History</a></PageHead>
    <Empty title="No pending requests">
      <p>When a call needs approval, it appears here: the command, the change or the address first, then the client and the reason.</p>
      <p>Under the profile <code>workspace</code>, haft asks before it changes a file, and after a command before it applies what the command changed. Try it in a second terminal, in {session.value?.workspace === undefined ? "a folder of yours" : <code><SafeText text={session.value.workspace} /></code>}:</p>
      <pre class="block">haft call write_file path=hello.txt content=hi</pre>
    </Empty>
    </>
  );
}
