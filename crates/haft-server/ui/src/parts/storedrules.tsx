// The rules stored with approvals, to read, edit and remove. Changes take effect at once.

import { useRef, useState } from "preact/hooks";
import { del, put, errorText } from "../api";
import { mayAct } from "../live";
import { Pending, useReading } from "./reading";
import { SafeText } from "./text";

interface StoredRule {
  id: string;
  rule: string;
  tool?: string;
  reason?: string;
  /** Why the rule does not load and covers nothing. */
  fault?: string;
}

/** Calls `changed` after each change, so that the rest of the page can update. */
export function StoredRules({ changed }: { changed: () => void }) {
  const reading = useReading<StoredRule[]>("/policy/rules");
  const [problem, setProblem] = useState("");
  const [said, setSaid] = useState("");
  const rules = reading.value;
  if (!rules) return reading.trouble ? <Pending reading={reading} /> : null;
  const apply = (change: Promise<unknown>, done: string) => {
    setProblem("");
    return change.then(
      () => { setSaid(done); reading.again(); changed(); return true; },
      (error) => { setProblem(errorText(error)); return false; },
    );
  };
  return (
    <section aria-label="rules kept with approvals">
      <h2>Kept with approvals</h2>
      {rules.length === 0
        ? <p class="note">None. “Always…” on a request keeps a rule here.</p>
        : <ul class="memories">{rules.map((rule) => <Row key={rule.id} rule={rule} apply={apply} />)}</ul>}
      <div role="status">{said && <p class="dim">{said}</p>}</div>
      {problem && <p class="bad-text" role="alert"><SafeText text={problem} /></p>}
    </section>
  );
}

type Apply = (change: Promise<unknown>, done: string) => Promise<boolean>;

function Row({ rule, apply }: { rule: StoredRule; apply: Apply }) {
  const [text, setText] = useState<string>();
  const [anyCall, setAnyCall] = useState(rule.tool === undefined);
  const edit = useRef<HTMLButtonElement>(null);
  const path = `/policy/rules/${encodeURIComponent(rule.id)}`;
  const close = () => { setText(undefined); setTimeout(() => edit.current?.focus()); };
  const save = async (event: Event) => {
    event.preventDefault();
    if (text && await apply(put(path, { rule: text, any_call: anyCall }), "The rule was changed.")) close();
  };
  return (
    <li>
      <p><code><SafeText text={rule.rule} /></code></p>
      <p class="meta dim">{rule.tool ? <>calls of <SafeText text={rule.tool} /> like the one that was approved</> : "any call"}{rule.reason && <> · <SafeText text={rule.reason} /></>}</p>
      {rule.fault && <p class="note warn">It covers nothing: <SafeText text={rule.fault} />. Edit or remove it.</p>}
      {text === undefined
        ? <div class="choices">
            <button type="button" ref={edit} disabled={!mayAct()} aria-label={`Edit ${rule.rule}`} onClick={() => setText(rule.rule)}>Edit</button>
            <button type="button" class="deny" disabled={!mayAct()} aria-label={`Remove ${rule.rule}`} onClick={() => apply(del(path), "The rule was removed. Calls that it covered need approval again.")}>Remove</button>
          </div>
        : <form onSubmit={save} onKeyDown={(event) => { if (event.key === "Escape") { event.stopPropagation(); close(); } }}>
            <div class="field"><label for={`rule-${rule.id}`}>Rule</label>
              <input id={`rule-${rule.id}`} class="code" value={text} spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} /></div>
            {rule.tool !== undefined && <label><input type="checkbox" checked={anyCall} onChange={(event) => setAnyCall(event.currentTarget.checked)} /> cover every matching call, not only calls like the one that was approved</label>}
            <div class="choices"><button type="submit" class="primary" disabled={!text.trim() || !mayAct()}>Save</button><button type="button" onClick={close}>Cancel</button></div>
          </form>}
    </li>
  );
}
