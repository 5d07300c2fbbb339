// The choices for a request: approve, edit, store a rule, deny with or without a note; each is sent after half a second.

import type { ComponentChildren } from "preact";
import { signal } from "@preact/signals";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { arrived, decide, pending, refusals, takeBack, type Choice, type Pending } from "../approvals";
import { link } from "../live";
import type { ApprovalDetail } from "../shapes";
import { login } from "../session";
import { argumentsOf } from "./arguments";
import { isConnection } from "./connection";
import { Menu } from "./menu";
import { isProposal } from "./proposal";
import { SchemaForm, faultsOf, type Values } from "./form";
import { PastMatches, useRuleMatches } from "./rulematches";
import { SafeText } from "./text";

declare const WITHOUT_APPROVE: boolean;

/** The panel that is open below the choices. */
export type Panel = "none" | "approve" | "edit" | "always" | "deny" | "answer";

export interface Props {
  detail: ApprovalDetail;
  /** Number of folds on the card that the user has not opened yet. */
  folded: number;
  openFolds: () => void;
  panel: Panel;
  setPanel: (panel: Panel) => void;
}

/** The rule of requests that are made because a budget is used up. */
const OVER_BUDGET = "guard budgets";

/** Returns whether an approval covers only this call: a budget is used up, or the call is critical and no rule can be stored for it. */
export const isDecidedEachTime = (detail: ApprovalDetail) =>
  detail.rule === OVER_BUDGET || (detail.risk === "critical" && !detail.suggested?.length);

/** Returns whether nothing can be sent now. */
const idle = () => link.value !== "open" || login.value !== "in";

export function Choices({ detail, folded, openFolds, panel, setPanel }: Props) {
  const waits = pending.value[detail.id];
  if (waits) return <PendingDecision waits={waits} />;
  const off = idle() || arrived.value === detail.id;
  const refused = refusals.value[detail.id];
  const critical = detail.risk === "critical";
  const eachTime = isDecidedEachTime(detail);
  const proposal = isProposal(detail);
  const approve = (choice: Choice & { decision: "approve" }, says: string) => {
    if (folded) openFolds();
    else decide(detail.id, choice, says);
  };
  return (
    <div class="deciding">
      {refused && <p class="note bad-text" role="alert"><SafeText text={refused} /></p>}
      {folded > 0 && (
        <p class="note warn">{folded === 1 ? "1 part is folded. Open it before you approve." : `${folded} parts are folded. Open them before you approve.`}{" "}
          <button type="button" class="link" onClick={openFolds}>Open all</button></p>
      )}
      <div class="choices one-row">
        <button type="button" class="deny" disabled={off} onClick={() => decide(detail.id, { decision: "deny" }, "Denying")}>Deny <kbd>n</kbd></button>
        <More panel={panel} off={off} setPanel={setPanel} eachTime={eachTime} edits={!proposal && !isConnection(detail)} />
        <span class="gap" />
        {!critical && !eachTime && <button type="button" class="not-on-phone" disabled={off || folded > 0} onClick={() => approve({ decision: "approve", scope: "session" }, "Approving for this session")}>For this session <kbd>s</kbd></button>}
        {!WITHOUT_APPROVE && !critical && <button type="button" class="primary" disabled={off || folded > 0} onClick={() => approve({ decision: "approve" }, "Approving")}>Approve <kbd>y</kbd></button>}
        {!WITHOUT_APPROVE && critical && <button type="button" class="critical" disabled={off} aria-expanded={panel === "approve"} onClick={() => setPanel("approve")}>{proposal ? "Accept…" : "Approve…"} <kbd>y</kbd></button>}
      </div>
      {proposal && (panel === "approve" || panel === "edit") && <Accept detail={detail} off={off || folded > 0} />}
      {!proposal && panel === "approve" && <ConfirmByTyping title={detail.tool === "connect" ? "The service there may trust this machine" : "haft cannot undo this"} word={detail.tool} off={off || folded > 0} says="Approve" send={() => approve({ decision: "approve" }, "Approving")} />}
      {!proposal && panel === "edit" && <Edit detail={detail} off={off} close={() => setPanel("none")} />}
      {panel === "always" && <Always detail={detail} off={off || folded > 0} />}
      {panel === "deny" && <Deny detail={detail} off={off} />}
      {panel === "answer" && <Answer detail={detail} off={off} />}
    </div>
  );
}

const query = matchMedia("(min-width: 1280px)");
/** Whether there is room for the usual choices as buttons. */
const roomy = signal(query.matches);
query.addEventListener("change", () => { roomy.value = query.matches; });

/** The choices that open a panel: the usual ones as buttons where there is room, the others in a menu. */
function More({ panel, off, eachTime, edits, setPanel }: { panel: Panel; off: boolean; eachTime: boolean; edits: boolean; setPanel: (panel: Panel) => void }) {
  const usual: [Panel, string, string][] = [...(edits ? [["edit", "Edit", "e"] as [Panel, string, string]] : []), ...(eachTime ? [] : [["always", "Always…", "a"] as [Panel, string, string]])];
  const others: [Panel, string, string][] = [["deny", "Deny with a note", "d"], ["answer", "Answer instead", "i"]];
  const listed = roomy.value ? others : [...usual, ...others];
  return (
    <>
      <Menu label="More…" disabled={off} items={listed.map(([name, words, key]) => ({ name: words, key, run: () => setPanel(name) }))} />
      {roomy.value && usual.map(([name, words, key]) => <button key={name} type="button" disabled={off} aria-expanded={panel === name} onClick={() => setPanel(panel === name ? "none" : name)}>{words} <kbd>{key}</kbd></button>)}
    </>
  );
}

/** A decision under way, with a button that cancels it for half a second. */
function PendingDecision({ waits: { id, says, sent } }: { waits: Pending }) {
  return (
    <div class="deciding waits" role="status">
      <strong>{says}{sent ? " …" : ""}</strong>
      {!sent && <button type="button" onClick={() => takeBack(id)}>Cancel <kbd>Esc</kbd></button>}
    </div>
  );
}

function ChoicePanel({ title, children }: { title: string; children: ComponentChildren }) {
  const top = useRef<HTMLElement>(null);
  useEffect(() => {
    const first = top.current?.querySelector<HTMLElement>("input, textarea, select");
    first?.focus();
    top.current?.scrollIntoView({ block: "nearest" });
  }, []);
  return <section class="panel" ref={top} aria-label={title}><h2>{title}</h2>{children}</section>;
}

/** A word that the user must type before a critical call may run. */
function ConfirmByTyping({ title, word, off, says, send }: { title: string; word: string; off: boolean; says: string; send: () => void }) {
  const [typed, setTyped] = useState("");
  const id = useId();
  const right = typed === word;
  return (
    <ChoicePanel title={title}>
      <form class="typed" onSubmit={(e) => { e.preventDefault(); if (right && !off) send(); }}>
        <label for={id}>Type <code>{word}</code> to approve</label>
        <input id={id} type="text" autocomplete="off" spellcheck={false} value={typed} onInput={(e) => setTyped(e.currentTarget.value)} />
        {!WITHOUT_APPROVE && <button type="submit" class="critical" disabled={off || !right}>{says}</button>}
      </form>
    </ChoicePanel>
  );
}

function Edit({ detail, off, close }: { detail: ApprovalDetail; off: boolean; close: () => void }) {
  const original = argumentsOf(detail.arguments);
  const [values, setValues] = useState<Values>(original ?? {});
  const [faults, setFaults] = useState(() => faultsOf(detail.input_schema, original ?? {}));
  const [typed, setTyped] = useState("");
  const id = useId();
  if (!original) return <ChoicePanel title="Edit"><p class="note">These arguments are not a JSON object; they can only be approved or denied as they are.</p></ChoicePanel>;
  const same = JSON.stringify(values) === JSON.stringify(original);
  const critical = detail.risk === "critical";
  const ready = !off && faults === 0 && !same && (!critical || typed === detail.tool);
  return (
    <ChoicePanel title="Edit the arguments">
      <form onSubmit={(e) => { e.preventDefault(); if (ready) decide(detail.id, { decision: "approve", edit: values }, "Approving with your edits"); }}>
        <SchemaForm schema={detail.input_schema} values={values} idBase="edit" change={(next, wrong) => { setValues(next); setFaults(wrong); }} />
        {critical && <div class="typed"><label for={id}>Type <code>{detail.tool}</code> to approve</label><input id={id} type="text" autocomplete="off" value={typed} onInput={(e) => setTyped(e.currentTarget.value)} /></div>}
        <div class="choices">
          {!WITHOUT_APPROVE && <button type="submit" class="primary" disabled={!ready}>Approve with these edits</button>}
          <button type="button" onClick={close}>Cancel</button>
          <span class="dim">{faults > 0 ? (faults === 1 ? "1 field is not valid" : `${faults} fields are not valid`) : same ? "no changes yet" : "the policy checks your edits again"}</span>
        </div>
      </form>
    </ChoicePanel>
  );
}

function Always({ detail, off }: { detail: ApprovalDetail; off: boolean }) {
  const [rule, setRule] = useState(detail.suggested?.[0] ?? detail.tool);
  const matches = useRuleMatches(detail.id, rule);
  const id = useId();
  const good = matches?.ok === true && matches.covers !== false;
  // One of several suggested rules is stored with the others: alone it would not cover the call.
  const together = detail.suggested?.includes(rule) ? detail.suggested.length : 1;
  return (
    <ChoicePanel title="Always allow">
      <form onSubmit={(e) => { e.preventDefault(); if (good && !off) decide(detail.id, { decision: "approve", scope: "always", rule }, "Approving and storing the rule"); }}>
        <div class="field">
          <label for={id}>This exact rule goes into your settings</label>
          <input id={id} type="text" class="code" spellcheck={false} value={rule} aria-describedby={`${id}-about`} onInput={(e) => setRule(e.currentTarget.value)} />
          <div class="about" id={`${id}-about`}>
            {matches === undefined ? "checking …" : !matches.ok ? <span class="bad-text"><SafeText text={matches.error ?? "this rule is not valid"} /></span>
              : matches.covers === false ? <span class="bad-text">it does not cover this call</span> : together > 1 ? `these ${together} rules are stored together: they cover this call` : "it covers this call"}
          </div>
          {(detail.suggested?.length ?? 0) > 1 && <div class="suggested">{detail.suggested?.map((one) => <button type="button" key={one} class="chip" aria-pressed={one === rule} onClick={() => setRule(one)}><SafeText text={one} /></button>)}</div>}
        </div>
        {matches?.ok && <PastMatches matches={matches} />}
        <div class="choices">{!WITHOUT_APPROVE && <button type="submit" class="primary" disabled={off || !good}>Approve and store the rule</button>}</div>
      </form>
    </ChoicePanel>
  );
}

/** Accepts a proposed rule, as it is or edited; an edited rule first shows which calls it would have covered. */
function Accept({ detail, off }: { detail: ApprovalDetail; off: boolean }) {
  const proposed = argumentsOf(detail.arguments) ?? {};
  const original = String(proposed.rule ?? "");
  const [rule, setRule] = useState(original);
  const [typed, setTyped] = useState("");
  const id = useId();
  const edited = rule.trim() !== original;
  const matches = useRuleMatches(detail.id, rule);
  const good = matches?.ok === true && typed === detail.tool && !off;
  const send = () => decide(detail.id, edited ? { decision: "approve", edit: { ...proposed, rule: rule.trim() } } : { decision: "approve" }, edited ? "Accepting your rule" : "Accepting the rule");
  return (
    <ChoicePanel title="Accept the rule">
      <form onSubmit={(e) => { e.preventDefault(); if (good) send(); }}>
        <div class="field">
          <label for={id}>The rule that will be stored</label>
          <input id={id} type="text" class="code" autocomplete="off" spellcheck={false} value={rule} aria-describedby={`${id}-about`} onInput={(e) => setRule(e.currentTarget.value)} />
          <div class="about" id={`${id}-about`}>{edited ? "You edited the rule: it is checked again before it is stored." : "As proposed. You can narrow it here."}</div>
        </div>
        {edited && <PastMatches matches={matches} />}
        <div class="typed"><label for={`${id}-word`}>Type <code>{detail.tool}</code> to accept</label>
          <input id={`${id}-word`} type="text" autocomplete="off" spellcheck={false} value={typed} onInput={(e) => setTyped(e.currentTarget.value)} />
          {!WITHOUT_APPROVE && <button type="submit" class="critical" disabled={!good}>{edited ? "Accept the edited rule" : "Accept the rule"}</button>}</div>
      </form>
    </ChoicePanel>
  );
}

function Deny({ detail, off }: { detail: ApprovalDetail; off: boolean }) {
  const [message, setMessage] = useState("");
  const id = useId();
  const send = (stop: boolean) => {
    if (off) return;
    const note = message.trim() ? { message: message.trim() } : {};
    decide(detail.id, { decision: "deny", ...note, ...(stop ? { stop } : {}) }, stop ? "Denying, and stopping the run" : "Denying");
  };
  return (
    <ChoicePanel title="Deny">
      <form onSubmit={(e) => { e.preventDefault(); send(false); }}>
        <div class="field"><label for={id}>Message to the model</label>
          <textarea id={id} rows={2} value={message} placeholder="Say what to do instead" onInput={(e) => setMessage(e.currentTarget.value)} /></div>
        <div class="choices"><button type="submit" class="deny" disabled={off}>Deny with this note</button>
          <button type="button" disabled={off} onClick={() => send(true)}>Deny and stop the run</button></div>
      </form>
    </ChoicePanel>
  );
}

function Answer({ detail, off }: { detail: ApprovalDetail; off: boolean }) {
  const [text, setText] = useState("");
  const id = useId();
  return (
    <ChoicePanel title="Answer in place of the tool">
      <form onSubmit={(e) => { e.preventDefault(); if (!off && text) decide(detail.id, { decision: "answer", text }, "Answering"); }}>
        <div class="field"><label for={id}>The model gets this as the result; the tool does not run</label>
          <textarea id={id} rows={3} value={text} onInput={(e) => setText(e.currentTarget.value)} /></div>
        <div class="choices"><button type="submit" class="primary" disabled={off || !text}>Answer</button></div>
      </form>
    </ChoicePanel>
  );
}
