// Approves all eligible requests: the user opens each first, each is approved separately, and the result of each is shown.

import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { post, errorText } from "../api";
import { approvals, details, readDetail, seenWhole, settle, waiting } from "../approvals";
import { useKeys } from "../keys";
import { mayAct } from "../live";
import { follow, pathOf } from "../route";
import type { Approval, ApprovalDetail } from "../shapes";
import { ago, now } from "../time";
import { spellOut } from "../visible";
import { clientName } from "../parts/client";
import { RiskWord, StateWord } from "../parts/badges";
import { Deed, DeedLines } from "../parts/deed";
import { Fact } from "../parts/fact";
import { PageHead } from "../parts/head";
import { useFolds } from "../parts/folds";
import { folderName } from "../parts/runrow";
import { FoldsContext, SafeText } from "../parts/text";

declare const WITHOUT_APPROVE: boolean;

/** A request whose approval was sent. */
interface SentApproval {
  approval: Approval;
  /** Why it was not approved; absent if it was. */
  refused?: string;
}

/** The progress through the list, which continues while the user looks at another page. */
interface Walk {
  sent: SentApproval[];
  left: number;
  stopped: boolean;
}

/** Maximum number of requests shown at once; the next ones follow as these are decided. */
const AT_ONCE = 200;

const walk = signal<Walk | undefined>(undefined);

/** Returns the requests that may be approved together. */
export const eligible = (list: Approval[]): Approval[] => list.filter((approval) => approval.kind === "call" && !approval.alone);

/** Approves the requests one after the other; a failure does not stop the others. */
async function approveAll(list: Approval[]): Promise<void> {
  walk.value = { sent: [], left: list.length, stopped: false };
  for (const approval of list) {
    if (walk.value.stopped) break;
    const sent: SentApproval = { approval };
    try {
      if (!mayAct()) throw new Error("the connection to haft is lost: nothing was sent");
      settle(await post<ApprovalDetail>(`/approvals/${encodeURIComponent(approval.id)}/approve`, {}));
    } catch (error) {
      sent.refused = errorText(error);
      await readDetail(approval.id, true).catch(() => {});
    }
    walk.value = { ...walk.value, sent: [...walk.value.sent, sent], left: walk.value.left - 1 };
  }
  walk.value = { ...walk.value, left: 0, stopped: walk.value.left > 0 };
}

export function Eligible() {
  const all = eligible(waiting.value);
  const list = all.slice(0, AT_ONCE);
  const alone = waiting.value.filter((approval) => approval.kind === "question" || approval.alone);
  const unseen = list.filter((approval) => !seenWhole.value.has(approval.id));
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const [open, setOpen] = useState<string>();
  const chosen = list.filter((approval) => seenWhole.value.has(approval.id) && !left.has(approval.id));
  const busy = walk.value !== undefined && walk.value.left > 0;
  const at = list.findIndex((approval) => approval.id === open);
  const move = (by: number) => setOpen(list[Math.min(list.length - 1, Math.max(0, at + by))]?.id);
  // The next unopened one after the one that is shown, else the first.
  const next = () => setOpen((list.slice(at + 1).find((approval) => unseen.includes(approval)) ?? unseen[0])?.id);
  // Reopening the page clears earlier results.
  useEffect(() => { if (!busy) walk.value = undefined; }, []);
  useKeys(() => [
    { key: "j", does: "show the next request", run: () => move(1) },
    { key: "k", does: "show the previous request", run: () => move(-1) },
    { key: "x", does: "exclude or include the open request", run: () => { if (open && !busy) toggle(open); } },
    { key: "Escape", does: "close the open request", run: () => setOpen(undefined) },
  ]);
  const toggle = (id: string) => setLeft((before) => {
    const after = new Set(before);
    if (!after.delete(id)) after.add(id);
    return after;
  });
  return (
    <div class="page eligible">
      <PageHead title="Approve all eligible" of="Waiting"><a href="/waiting" onClick={follow}>Pending ({waiting.value.length.toLocaleString("en")})</a></PageHead>
      <p class="dim">Eligible: not critical, and does not touch secrets, the network, protected files or anything outside the workspace. Open each request before you approve it. Each is approved separately and only once.</p>
      {walk.value && <Results walk={walk.value} />}
      {list.length === 0 && <p class="note">{waiting.value.length ? "No pending request is eligible." : "Nothing is pending."}</p>}
      {list.length > 0 && (
        <ul class="eligible-list" aria-label="eligible requests">
          {list.map((approval) => (
            <Row key={approval.id} approval={approval} chosen={chosen.includes(approval)} open={open === approval.id} busy={busy}
              toggle={() => toggle(approval.id)} show={() => setOpen(open === approval.id ? undefined : approval.id)} />
          ))}
        </ul>
      )}
      {all.length > list.length && <p class="note">{(all.length - list.length).toLocaleString("en")} more are shown once these are decided.</p>}
      {alone.length > 0 && (
        <details class="alone"><summary>{alone.length === 1 ? "1 request is decided on its own card" : `${alone.length.toLocaleString("en")} requests are decided on their own cards`}</summary>
          <ul>{alone.slice(0, AT_ONCE).map((approval) => <li key={approval.id}><a href={pathOf("waiting", approval.id)} onClick={follow}><span class="mono"><SafeText text={approval.fact.text} /></span></a> <span class="dim"><SafeText text={approval.tool} /> · {approval.alone}</span></li>)}</ul>
        </details>
      )}
      {list.length > 0 && !WITHOUT_APPROVE && (
        <div class="deciding"><div class="choices one-row">
          {busy ? <button type="button" onClick={() => { if (walk.value) walk.value = { ...walk.value, stopped: true }; }}>Stop</button>
            : unseen.length > 0 && <button type="button" onClick={next}>{unseen.length === 1 ? "Show the last one not opened yet" : `Show the next of ${unseen.length.toLocaleString("en")} not opened yet`}</button>}
          <span class="gap" />
          <button type="button" class="primary" disabled={busy || !chosen.length || !mayAct()} onClick={() => { setOpen(undefined); void approveAll(chosen); }}>
            {busy ? `Approving, ${walk.value?.left.toLocaleString("en")} left` : `Approve ${chosen.length.toLocaleString("en")} of ${list.length.toLocaleString("en")}`}</button>
        </div></div>
      )}
    </div>
  );
}

interface RowProps { approval: Approval; chosen: boolean; open: boolean; busy: boolean; toggle: () => void; show: () => void }

function Row({ approval, chosen, open, busy, toggle, show }: RowProps) {
  const seen = seenWhole.value.has(approval.id);
  const row = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (!open) return;
    row.current?.scrollIntoView({ block: "nearest" });
    row.current?.querySelector<HTMLElement>("button.show")?.focus();
  }, [open]);
  return (
    <li ref={row} class={open ? "open" : ""}>
      <div class="eligible-head">
        <input type="checkbox" checked={chosen} disabled={!seen || busy} aria-label={`approve ${spellOut(approval.fact.text).slice(0, 80)}`} onChange={toggle} />
        <button type="button" class="show" aria-expanded={open} onClick={show}><span class="mono clipped"><Deed approval={approval} /> <DeedLines approval={approval} /></span></button>
        <span class="queue-meta"><span class="tool"><SafeText text={approval.tool} /></span> <RiskWord risk={approval.risk} />
          <span class="dim clipped"><SafeText text={clientName(approval)} /> · <SafeText text={folderName(approval.workspace)} /> · {ago(approval.created, now.value)}</span>
          {!seen && <span class="badge plain">not opened</span>}</span>
      </div>
      {open && <Whole id={approval.id} />}
    </li>
  );
}

/** A request in full; it counts as seen once no part is folded. */
function Whole({ id }: { id: string }) {
  const [problem, setProblem] = useState("");
  const detail = details.value[id];
  const { folds, held, openFolds } = useFolds(id, detail !== undefined);
  useEffect(() => { readDetail(id).catch((error) => setProblem(errorText(error))); }, [id]);
  if (!detail) return problem ? <p class="note bad-text" role="alert">{problem}</p> : <p class="note">Loading …</p>;
  return (
    <div class="eligible-whole">
      <FoldsContext.Provider value={folds}><Fact detail={detail} /></FoldsContext.Provider>
      {held > 0 && <p class="note warn">{held === 1 ? "1 part is folded." : `${held} parts are folded.`} <button type="button" class="link" onClick={openFolds}>Open all</button></p>}
      <p class="why"><span class="dim">Why: </span><SafeText text={detail.reason} />{detail.rule_of_two && <><br /><span class="dim">Rule of Two: </span><SafeText text={detail.rule_of_two} /></>}{detail.review && <><br /><span class="dim">Reviewer: </span><SafeText text={detail.review.sentence} /></>}</p>
    </div>
  );
}

/** The results, including requests that were decided elsewhere in the meantime. */
function Results({ walk: { sent, left, stopped } }: { walk: Walk }) {
  const approved = sent.filter((one) => !one.refused);
  const refused = sent.filter((one) => one.refused);
  const words = [`${approved.length.toLocaleString("en")} approved`, refused.length && `${refused.length.toLocaleString("en")} not approved`, left && `${left.toLocaleString("en")} to go`, stopped && "stopped: the rest was not sent"];
  return (
    <section class="results" aria-label="results">
      <p role="status"><strong>{words.filter(Boolean).join(", ")}</strong></p>
      <ul>{sent.map(({ approval, refused: why }) => {
        const present = approvals.value.find((other) => other.id === approval.id) ?? details.value[approval.id] ?? approval;
        return (
          <li key={approval.id}><StateWord word={present.status} /> <a class="mono clipped" href={pathOf("waiting", approval.id)} onClick={follow}><SafeText text={approval.fact.text} /></a>
            <span class={why ? "bad-text" : "dim"}>{why ? <SafeText text={why} /> : "approved by you"}</span></li>
        );
      })}</ul>
    </section>
  );
}
