// A request in full: the deciding fact first, then the client and the time left, the reason, and the choices.

import { useState } from "preact/hooks";
import { deadlineOf, decide, pending, seenWhole, takeBack } from "../approvals";
import { type Key, useKeys } from "../keys";
import { mayAct } from "../live";
import { commandIn } from "../result";
import { follow, pathOf } from "../route";
import { session } from "../session";
import type { ApprovalDetail } from "../shapes";
import { ago, now, span } from "../time";
import { spellOut } from "../visible";
import { clientName } from "./client";
import { RiskWord, StateWord } from "./badges";
import { Choices, isDecidedEachTime, type Panel } from "./choices";
import { isConnection } from "./connection";
import { Fact } from "./fact";
import { useFolds } from "./folds";
import { OutcomeView } from "./outcome";
import { Questions } from "./questions";
import { folderName } from "./runrow";
import { FoldsContext, SafeText, Sentence } from "./text";

declare const WITHOUT_APPROVE: boolean;

export function Card({ detail }: { detail: ApprovalDetail }) {
  const [panel, setPanel] = useState<Panel>("none");
  const { folds, held, openFolds } = useFolds(detail.id);
  const waits = detail.status === "pending";
  const question = detail.kind === "question" && detail.form;
  useKeys(() => (waits && !question ? keysOf(detail, held, openFolds, panel, setPanel) : back(detail.id, panel, setPanel)));
  return (
    <article class={seenWhole.value.has(detail.id) ? "card seen" : "card"} aria-label={`${detail.kind === "question" ? "question" : "request"}: ${detail.tool}`}>
      {!waits && <DecisionInfo detail={detail} />}
      <FoldsContext.Provider value={folds}>
        {question
          ? waits
            ? <Questions key={detail.id} title={question.title} questions={question.questions} disabled={!mayAct() || pending.value[detail.id] !== undefined}
                send={(answers) => decide(detail.id, { decision: "answer", answers }, "Answering")} />
            : <p><SafeText text={detail.fact.text} /></p>
          : <Fact detail={detail} />}
      </FoldsContext.Provider>
      <RequestFacts detail={detail} />
      <Why detail={detail} />
      {waits && !question && <Choices detail={detail} folded={held} openFolds={openFolds} panel={panel} setPanel={setPanel} />}
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
    // A connection cannot be edited: the paused command needs this host, not another.
    ...(isConnection(detail) ? [] : [{ key: "e", does: "edit, then approve", run: () => setPanel("edit") }]),
    { key: "n", does: "deny", run: () => decide(detail.id, { decision: "deny" }, "Denying") },
    { key: "d", does: "deny with a note", run: () => setPanel("deny") },
    { key: "i", does: "answer in place of the tool", run: () => setPanel("answer") },
    { key: "o", does: "open what is folded", run: openFolds },
    ...back(detail.id, panel, setPanel),
  ];
  if (!WITHOUT_APPROVE) keys.unshift({ key: "y", does: critical ? "approve (type its name)" : "approve", run: yes() });
  if (!critical && !isDecidedEachTime(detail)) keys.push({ key: "s", does: "approve for this session", run: yes("session") });
  if (!isDecidedEachTime(detail)) keys.push({ key: "a", does: "always: show the rule", run: () => setPanel("always") });
  return keys;
}

/** Returns the Escape key, which cancels a decision, else closes the open panel. */
function back(id: string, panel: Panel, setPanel: (panel: Panel) => void): Key[] {
  const run = () => {
    if (!takeBack(id) && panel !== "none") setPanel("none");
  };
  return [{ key: "Escape", does: "cancel a decision, close a panel", run }];
}

function RequestFacts({ detail }: { detail: ApprovalDetail }) {
  const who = `${clientName(detail)}${detail.origin === "chain" ? ", in a script" : ""}`;
  return (
    <div class="meta">
      <a class="tool" href={pathOf("tools", detail.tool)} onClick={follow}><SafeText text={detail.tool} /></a>
      <RiskWord risk={detail.risk} />
      <span>requested by <strong><SafeText text={who} /></strong> in <span class="mono" title={spellOut(detail.workspace)}><SafeText text={folderName(detail.workspace)} /></span></span>
      <Confinement detail={detail} />
      <a href={pathOf("runs", detail.run, detail.call)} onClick={follow} title={spellOut(detail.run)}>open run</a>
      <Clock detail={detail} />
    </div>
  );
}

/** The sandbox and the network of the call: from the request's conditions, else the sandbox strength of the session. */
function Confinement({ detail }: { detail: ApprovalDetail }) {
  const value = (name: string) => detail.conditions?.find((condition) => condition.name === name)?.value;
  const [sandbox, network] = [value("sandbox") ?? session.value?.strength, value("network")];
  const background = value("in the background");
  return (
    <>
      {sandbox && <span class="dim">sandbox <SafeText text={sandbox} /></span>}
      {network && <span class="dim">network: <SafeText text={network} /></span>}
      {background && <span class="bad-text">in the background: <SafeText text={background} /></span>}
    </>
  );
}

function Clock({ detail }: { detail: ApprovalDetail }) {
  const [created, expires] = [Date.parse(detail.created), deadlineOf(detail)];
  if (detail.status !== "pending") return null;
  const left = expires - now.value;
  return (
    <>
      <span class="dim">pending for {span(Math.max(0, now.value - created))}</span>
      <span class={left < 60_000 ? "bad-text" : "dim"}>{deadlineWords(detail, left)} <Remaining created={created} expires={expires} /></span>
      {!detail.attended && <span class="dim">{detail.workspace === session.value?.workspace
        ? "The client is gone. If you approve, haft runs the call now."
        : "The client is gone. If you approve, haft runs the call the next time it runs in that folder."}</span>}
    </>
  );
}

/** Says when the time of a request is over, and what happens then. */
function deadlineWords({ waits_until, then }: ApprovalDetail, left: number): string {
  if (left <= 0) return then ? `now: ${then}` : "expires now";
  if (then) return `in ${span(left)}: ${then}`;
  return waits_until ? `waits ${span(left)} more` : `expires in ${span(left)}`;
}

/** Remaining time, in milliseconds, above which no bar is drawn: it would look full. */
const FAR = 86_400_000;

/** A thin bar that shows the remaining time. */
export function Remaining({ created, expires }: { created: number; expires: number }) {
  if (expires - now.value > FAR) return null;
  const share = Math.min(1, Math.max(0, (expires - now.value) / Math.max(1, expires - created)));
  return <span class="remaining" aria-hidden="true"><span class={share < 0.2 ? "short" : ""} style={{ width: `${share * 100}%` }} /></span>;
}

function Why({ detail }: { detail: ApprovalDetail }) {
  // A question's title is its reason, and heads the form.
  if (detail.kind === "question") return null;
  const query = `?tool=${encodeURIComponent(detail.tool)}&approval=${encodeURIComponent(detail.id)}`;
  return (
    <p class="why">
      <span class="dim">Why: </span><Sentence text={detail.reason} />{detail.rule && <> <code class="rule"><SafeText text={detail.rule} /></code></>}
      {detail.rule_of_two && <><br /><span class="dim">Rule of Two: </span><Sentence text={detail.rule_of_two} /></>}
      {detail.review && <><br /><span class="dim">Reviewer: </span><SafeText text={detail.review.sentence} /></>}
      {detail.kind === "call" && <> <a href={`/policy${query}`} onClick={follow}>What would happen</a></>}
    </p>
  );
}

const SAYS: Record<string, string> = {
  expired: "No decision in time: the call was denied.", withdrawn: "The client withdrew it.",
  in_doubt: "haft exited while the call ran; it may have run.",
};

const VERBS = { approve: "Approved", deny: "Denied", answer: "Answered" };

/** Who decided, and how. */
function Verdict({ detail: { decision, status, why } }: { detail: ApprovalDetail }) {
  if (!decision) return why ? <>Withdrawn: <SafeText text={why} />.</> : <>{SAYS[status]}</>;
  return (
    <><strong>{VERBS[decision.choice]}</strong>{decision.edited && " with edits"}{decision.scope === "session" && " for the session"}{decision.scope === "always" && " permanently"}
      {" "}by <SafeText text={decision.by} /> from <SafeText text={decision.from} />, {ago(decision.at, now.value)}{decision.stop && "; the run was stopped"}{why && <>. Withdrawn: <SafeText text={why} /></>}</>
  );
}

/** The verdict of the request that was decided last, above the card of the next one: what became of it, with a link to it. */
export function PinnedVerdict({ detail }: { detail: ApprovalDetail }) {
  const runs = !detail.outcome && (detail.status === "approved" || detail.status === "running");
  return (
    <div class="decided pinned" role="status">
      <p class="clipped"><a class="mono" href={pathOf("waiting", detail.id)} onClick={follow}><SafeText text={detail.fact.text} /></a></p>
      <p><StateWord word={detail.outcome?.status ?? detail.status} exit={commandIn(detail.outcome?.data)?.exit} /> <Verdict detail={detail} />{runs && <span class="dim"> · the call is running</span>}</p>
    </div>
  );
}

function DecisionInfo({ detail }: { detail: ApprovalDetail }) {
  const decision = detail.decision;
  return (
    <div class="decided" role="status">
      <p><StateWord word={detail.status} />{" "}<Verdict detail={detail} /></p>
      {decision?.rule && <p class="dim">rule <code><SafeText text={decision.rule} /></code></p>}
      {decision?.message && <p class="said"><SafeText text={decision.message} lines /></p>}
      {detail.outcome && <OutcomeView outcome={detail.outcome} rendered={detail.rendered} />}
      {detail.outcome?.status === "ok" && !!detail.preview?.length && <p><a href={pathOf("runs", detail.run, detail.call)} onClick={follow}>See what it changed, or undo it</a></p>}
      {!detail.outcome && (detail.status === "approved" || detail.status === "running") && <p class="dim">The call is running; its result appears here.</p>}
    </div>
  );
}
