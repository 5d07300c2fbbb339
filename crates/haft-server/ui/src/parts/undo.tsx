// The undo of a run or of one call: first the plan, then the undo itself, then its outcome.

import { useEffect, useRef, useState } from "preact/hooks";
import { RequestError, post, errorText } from "../api";
import { useKeys } from "../keys";
import { mayAct } from "../live";
import { follow, pathOf } from "../route";
import type { Failure, Outcome, UndoPlan } from "../shapes";
import { pathText } from "../visible";
import { StateWord } from "./badges";
import { SafeText } from "./text";

/** Maximum number of paths listed. */
const LISTED = 100;

/** The step that the user has reached. */
type State =
  | { at: "start" } | { at: "asking" } | { at: "plan"; plan: UndoPlan } | { at: "doing"; plan: UndoPlan }
  | { at: "refused"; failure: Failure } | { at: "done"; outcome: Outcome };

export function UndoBox({ run, call }: { run: string; call: string | undefined }) {
  const [state, setState] = useState<State>({ at: "start" });
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const send = async (body: object): Promise<unknown> => post(`/runs/${encodeURIComponent(run)}/undo`, call === undefined ? body : { ...body, call });
  const failed = (error: unknown) => setState({ at: "refused", failure: error instanceof RequestError ? error.failure : { kind: "failed", message: errorText(error) } });
  const look = () => {
    setState({ at: "asking" });
    send({ preview: true }).then((plan) => setState({ at: "plan", plan: plan as UndoPlan }), failed);
  };
  const undo = (plan: UndoPlan) => {
    setState({ at: "doing", plan });
    send({ plan: plan.plan }).then((outcome) => setState({ at: "done", outcome: outcome as Outcome }), failed);
  };
  const close = () => {
    setState({ at: "start" });
    button.current?.focus();
  };
  const open = state.at !== "start" && state.at !== "asking";
  // Moves the keyboard focus to the panel that appears.
  useEffect(() => { if (open) box.current?.focus(); }, [state.at]);
  useKeys(() => (open && state.at !== "doing" ? [{ key: "Escape", does: "close the undo", run: close }] : []));
  const what = call === undefined ? "this run" : "this call";
  return (
    <>
      <div><button type="button" ref={button} aria-expanded={open} disabled={!mayAct() || state.at === "asking" || state.at === "doing"} onClick={open ? close : look}>Undo…</button></div>
      {open && (
        <div class="panel undo" ref={box} tabIndex={-1} role="group" aria-label={`undo ${what}`}>
          {(state.at === "plan" || state.at === "doing") && <Plan plan={state.plan} what={what} busy={state.at === "doing"} undo={() => undo(state.plan)} close={close} />}
          {state.at === "refused" && <Conflicts failure={state.failure} close={close} />}
          {state.at === "done" && <Done outcome={state.outcome} what={what} close={close} />}
        </div>
      )}
    </>
  );
}

const DOES = { remove: "remove", restore: "restore", move_back: "move back" };
const TONES = { remove: "delete", restore: "create", move_back: "move" };

function Plan({ plan, what, busy, undo, close }: { plan: UndoPlan; what: string; busy: boolean; undo: () => void; close: () => void }) {
  const count = plan.steps.length + (plan.more_steps ?? 0);
  const alone = plan.left_alone.length + (plan.more_left_alone ?? 0);
  return (
    <>
      <h4>Undoing {what} would change {count === 1 ? "1 path" : `${count.toLocaleString("en")} paths`}</h4>
      <ul class="steps" tabIndex={0} aria-label="what the undo does">
        {plan.steps.slice(0, LISTED).map((step) => (
          <li key={`${step.action} ${step.path}`}>
            <span class={`action ${TONES[step.action]}`}>{DOES[step.action]}</span> <code><SafeText text={pathText(step.path)} /></code>
            {step.from !== undefined && <> from <code><SafeText text={pathText(step.from)} /></code></>}
          </li>
        ))}
        {count > LISTED && <li class="dim">and {(count - LISTED).toLocaleString("en")} more</li>}
      </ul>
      {alone > 0 && <p class="note">Left alone, because only git can restore them: <code><SafeText text={plan.left_alone[0] ?? ""} /></code>{alone > 1 && ` and ${(alone - 1).toLocaleString("en")} more`}</p>}
      <div class="choices">
        <button type="button" class="primary" disabled={busy || !mayAct()} onClick={undo}>{busy ? "Undoing …" : "Undo"}</button>
        <button type="button" disabled={busy} onClick={close}>Cancel <kbd>Esc</kbd></button>
      </div>
    </>
  );
}

function Conflicts({ failure, close }: { failure: Failure; close: () => void }) {
  const conflicts = failure.conflicts ?? [];
  const more = Math.max(0, conflicts.length - LISTED) + (failure.more_conflicts ?? 0);
  return (
    <>
      <div role="alert">
        {conflicts.length > 0 ? <p><StateWord word="conflict" /> <strong>Nothing was undone.</strong>{" "}
          {conflicts.length + more === 1 ? "1 path is" : `${(conflicts.length + (failure.more_conflicts ?? 0)).toLocaleString("en")} paths are`} not as the run left {conflicts.length === 1 ? "it" : "them"}:</p>
          : <p><StateWord word={failure.kind} /> <SafeText text={failure.message} /></p>}
        {conflicts.length > 0 && (
          <ul class="steps" tabIndex={0} aria-label="what prevents the undo">
            {conflicts.slice(0, LISTED).map((conflict) => <li key={`${conflict.path} ${conflict.why}`}><code><SafeText text={pathText(conflict.path)} /></code> <SafeText text={conflict.why} /></li>)}
            {more > 0 && <li class="dim">and {more.toLocaleString("en")} more</li>}
          </ul>
        )}
        {failure.advice && <p class="dim"><SafeText text={failure.advice} /></p>}
      </div>
      <div class="choices"><button type="button" onClick={close}>Close <kbd>Esc</kbd></button></div>
    </>
  );
}

function Done({ outcome, what, close }: { outcome: Outcome; what: string; close: () => void }) {
  const data = outcome.data as { changes?: { path: string; action: string }[] } | undefined;
  const changes = data?.changes ?? [];
  return (
    <>
      <div role="status">
        {outcome.ok ? <p><StateWord word="done" /> <strong>Undone:</strong> {changes.length === 1 ? "1 path" : `${changes.length.toLocaleString("en")} paths`} that {what} changed {changes.length === 1 ? "is" : "are"} restored.{" "}
          <a href={pathOf("runs", outcome.run)} onClick={follow}>The undo's run</a> can itself be undone.</p>
          : <p><StateWord word={outcome.status} /> <SafeText text={outcome.error?.message ?? outcome.summary} />{" "}
            <a href={pathOf("runs", outcome.run)} onClick={follow}>The undo's run</a></p>}
        {outcome.error?.advice && <p class="dim"><SafeText text={outcome.error.advice} /></p>}
        {changes.length > 0 && (
          <ul class="steps" tabIndex={0} aria-label="what was undone">
            {changes.slice(0, LISTED).map((change) => <li key={change.path}><span class="action">{change.action}</span> <code><SafeText text={pathText(change.path)} /></code></li>)}
            {changes.length > LISTED && <li class="dim">and {(changes.length - LISTED).toLocaleString("en")} more</li>}
          </ul>
        )}
      </div>
      <div class="choices"><button type="button" onClick={close}>Close <kbd>Esc</kbd></button></div>
    </>
  );
}
