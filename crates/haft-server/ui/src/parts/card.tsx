// A request whole: the deciding fact first, then who asks and for how long, why it is asked, and the choices.

import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { decide, pending, seenWhole, takeBack } from "../approvals";
import { type Key, useKeys } from "../keys";
import { mayAct } from "../live";
import { follow, pathOf } from "../route";
import { session } from "../session";
import type { Approval, ApprovalDetail } from "../shapes";
import { ago, now, span } from "../time";
import { spelled } from "../visible";
import { RiskWord, StateWord } from "./badges";
import { Choices, isDecidedEachTime, type Panel } from "./choices";
import { Fact } from "./fact";
import { OutcomeView } from "./outcome";
import { Questions } from "./questions";
import { folderName } from "./runrow";
import { FoldsContext, Shown } from "./text";

declare const WITHOUT_APPROVE: boolean;

export function Card({ detail }: { detail: ApprovalDetail }) {
  const [panel, setPanel] = useState<Panel>("none");
  const [openAll, setOpenAll] = useState(0);
  const [held, setHeld] = useState<ReadonlySet<string>>(new Set());
  const hold = useCallback((id: string, closed: boolean) => {
    setHeld((before) => {
      if (before.has(id) === closed) return before;
      const next = new Set(before);
      if (closed) next.add(id);
      else next.delete(id);
      return next;
    });
  }, []);
  const folds = useMemo(() => ({ hold, openAll }), [hold, openAll]);
  const waits = detail.status === "pending";
  const openFolds = () => setOpenAll((count) => count + 1);
  useEffect(() => {
    // Folds say that they are there once they were laid out.
    const timer = setTimeout(() => {
      if (held.size === 0 && !seenWhole.value.has(detail.id)) seenWhole.value = new Set([...seenWhole.value, detail.id]);
    }, 50);
    return () => clearTimeout(timer);
  }, [held, detail.id]);
  const question = detail.kind === "question" && detail.form;
  useKeys(() => (waits && !question ? keysOf(detail, held.size, openFolds, panel, setPanel) : back(detail.id, panel, setPanel)));
  return (
    <article class={seenWhole.value.has(detail.id) ? "card seen" : "card"} aria-label={`${detail.kind === "question" ? "question" : "request"}: ${detail.tool}`}>
      <FoldsContext.Provider value={folds}>
        {question
          ? waits
            ? <Questions key={detail.id} title={question.title} questions={question.questions} disabled={!mayAct() || pending.value[detail.id] !== undefined}
                send={(answers) => decide(detail.id, { decision: "answer", answers }, "Answering")} />
            : <p><Shown text={detail.fact.text} /></p>
          : <Fact detail={detail} />}
      </FoldsContext.Provider>
      <Asker detail={detail} />
      <Why detail={detail} />
      {waits && !question && <Choices detail={detail} folded={held.size} openFolds={openFolds} panel={panel} setPanel={setPanel} />}
      {!waits && <Decided detail={detail} />}
    </article>
  );
}

function keysOf(detail: ApprovalDetail, folded: number, openFolds: () => void, panel: Panel, setPanel: (panel: Panel) => void): Key[] {
  const critical = detail.risk === "critical";
  const yes = (scope?: "session") => () => {
    if (folded) openFolds();
    else if (critical) setPanel("approve");
    else decide(detail.id, scope ? { decision: "approve", scope } : { decision: "approve" }, scope ? "Approving for this session" : "Approving");
  };
  const keys: Key[] = [
    { key: "e", does: "edit, then approve", run: () => setPanel("edit") },
    { key: "n", does: "deny", run: () => decide(detail.id, { decision: "deny" }, "Denying") },
    { key: "d", does: "deny with a note", run: () => setPanel("deny") },
    { key: "i", does: "answer in place of the tool", run: () => setPanel("answer") },
    { key: "o", does: "open what is folded", run: openFolds },
    ...back(detail.id, panel, setPanel),
  ];
  if (!WITHOUT_APPROVE) keys.unshift({ key: "y", does: critical ? "approve (type its name)" : "approve", run: yes() });
  if (!critical) keys.push({ key: "s", does: "approve for this session", run: yes("session") });
  if (!isDecidedEachTime(detail)) keys.push({ key: "a", does: "always: show the rule", run: () => setPanel("always") });
  return keys;
}

/** Escape takes a decision back, else closes the open panel. */
function back(id: string, panel: Panel, setPanel: (panel: Panel) => void): Key[] {
  const run = () => {
    if (!takeBack(id) && panel !== "none") setPanel("none");
  };
  return [{ key: "Escape", does: "take a decision back, close a panel", run }];
}

/** Entry points as people call them. */
const DOORS: Record<string, string> = { call: "haft call", chain: "haft chain", "mcp stdio": "an MCP client", "mcp http": "an MCP client", "http api": "the HTTP API", undo: "an undo", library: "a program" };

/** Who asks, by name: the client's own, else what stands at the other end. */
export const askerOf = (approval: Approval): string => approval.client ?? DOORS[approval.door] ?? approval.door;

function Asker({ detail }: { detail: ApprovalDetail }) {
  const who = `${askerOf(detail)}${detail.origin === "chain" ? ", in a script" : ""}`;
  return (
    <div class="meta">
      <a class="tool" href={pathOf("tools", detail.tool)} onClick={follow}><Shown text={detail.tool} /></a>
      <RiskWord risk={detail.risk} />
      <span>requested by <strong><Shown text={who} /></strong> in <span class="mono" title={spelled(detail.workspace)}><Shown text={folderName(detail.workspace)} /></span></span>
      {session.value?.strength && <span class="dim">sandbox {session.value.strength}</span>}
      <a href={pathOf("runs", detail.run, detail.call)} onClick={follow} title={spelled(detail.run)}>its run</a>
      <Clock detail={detail} />
    </div>
  );
}

function Clock({ detail }: { detail: ApprovalDetail }) {
  const [created, expires] = [Date.parse(detail.created), Date.parse(detail.expires)];
  if (detail.status !== "pending") return null;
  const left = expires - now.value;
  return (
    <>
      <span class="dim">pending for {span(Math.max(0, now.value - created))}</span>
      <span class={left < 60_000 ? "bad-text" : "dim"}>{left > 0 ? `expires in ${span(left)}` : "expires now"}</span>
      {!detail.attended && <span class="dim">{detail.workspace === session.value?.workspace
        ? "The client is gone. If you approve, haft runs the call now."
        : "The client is gone. If you approve, haft runs the call as soon as it works in that folder."}</span>}
      <Remaining created={created} expires={expires} />
    </>
  );
}

/** A thin bar of the time that is left. */
export function Remaining({ created, expires }: { created: number; expires: number }) {
  const share = Math.min(1, Math.max(0, (expires - now.value) / Math.max(1, expires - created)));
  return <span class="remaining" aria-hidden="true"><span class={share < 0.2 ? "short" : ""} style={{ width: `${share * 100}%` }} /></span>;
}

function Why({ detail }: { detail: ApprovalDetail }) {
  const query = `?tool=${encodeURIComponent(detail.tool)}&approval=${encodeURIComponent(detail.id)}`;
  return (
    <p class="why">
      <span class="dim">Why: </span><Shown text={detail.reason} />{detail.rule && <> <code class="rule"><Shown text={detail.rule} /></code></>}
      {detail.kind === "call" && <> <a href={`/policy${query}`} onClick={follow}>What would happen</a></>}
    </p>
  );
}

const SAYS: Record<string, string> = {
  expired: "No decision in time: the call was denied.", withdrawn: "The client withdrew it.",
  in_doubt: "haft exited while the call ran; it may have run.",
};

function Decided({ detail }: { detail: ApprovalDetail }) {
  const decision = detail.decision;
  const verb = { approve: "Approved", deny: "Denied", answer: "Answered" };
  return (
    <div class="decided" role="status">
      <p>
        <StateWord word={detail.status} />{" "}
        {decision ? <><strong>{verb[decision.choice]}</strong>{decision.edited && " with edits"}{decision.scope === "session" && " for the session"}{decision.scope === "always" && " permanently"}
          {" "}by <Shown text={decision.by} /> from <Shown text={decision.from} />, {ago(decision.at, now.value)}{decision.stop && "; the run was stopped"}</> : SAYS[detail.status]}
      </p>
      {decision?.rule && <p class="dim">rule <code><Shown text={decision.rule} /></code></p>}
      {decision?.message && <p class="said"><Shown text={decision.message} lines /></p>}
      {detail.outcome && <OutcomeView outcome={detail.outcome} />}
      {!detail.outcome && (detail.status === "approved" || detail.status === "running") && <p class="dim">It is running; the result appears here.</p>}
    </div>
  );
}
