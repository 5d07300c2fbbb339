// What a rule newly lets through, and the calls of past runs that it would have covered, updated while the user types the rule.

import { useEffect, useState } from "preact/hooks";
import { get, errorText } from "../api";
import { follow, pathOf } from "../route";
import type { RuleMatches } from "../shapes";
import { ago, now } from "../time";
import { SafeText } from "./text";

/** Maximum number of calls listed. */
const LISTED = 12;
/** Milliseconds that a rule must stay unchanged before it is checked. */
const SETTLED = 150;

/** Returns the server's report on a rule for a request; `undefined` until it arrives. */
export function useRuleMatches(id: string, rule: string): RuleMatches | undefined {
  const [found, setFound] = useState<{ rule: string; matches: RuleMatches }>();
  useEffect(() => {
    let over = false;
    const timer = setTimeout(() => {
      const path = `/approvals/${encodeURIComponent(id)}/rule?rule=${encodeURIComponent(rule)}`;
      get<RuleMatches>(path).catch((error): RuleMatches => ({ ok: false, error: errorText(error) })).then((matches) => { if (!over) setFound({ rule, matches }); });
    }, SETTLED);
    return () => { over = true; clearTimeout(timer); };
  }, [rule, id]);
  return found?.rule === rule ? found.matches : undefined;
}

/** What the rule newly lets through, and the past calls that it would have allowed. */
export function PastMatches({ matches }: { matches: RuleMatches | undefined }) {
  if (!matches) return <p class="past dim" role="status">Looking through past calls …</p>;
  if (!matches.ok) return <p class="past bad-text" role="status"><SafeText text={matches.error ?? "this rule is not valid"} /></p>;
  const found = matches.matched ?? [];
  const covered = matches.covered ?? found.length;
  const looked = (matches.looked_at ?? 0).toLocaleString("en");
  const newly = (matches.newly ?? []).map((line) => <p key={line}><SafeText text={line} /></p>);
  if (!matches.looked_at) return <div class="past" role="status">{newly}<p class="dim">There are no past calls to try it on yet.</p></div>;
  return (
    <div class="past" role="status">
      {newly}
      <p class="dim">{covered === 0 ? `It would have covered none of the last ${looked} calls.` : `It would have covered ${covered.toLocaleString("en")} of the last ${looked} calls:`}</p>
      {found.length > 0 && (
        <ul tabIndex={0} aria-label="calls that it would have covered">{found.slice(0, LISTED).map((call) => (
          <li key={`${call.run}/${call.call}`}><a href={pathOf("runs", call.run, call.call)} onClick={follow}><SafeText text={call.tool} /></a> <code><SafeText text={call.text} /></code> <span class="dim">{ago(call.at, now.value)}</span></li>
        ))}</ul>
      )}
      {covered > LISTED && <p class="dim">and {(covered - Math.min(LISTED, found.length)).toLocaleString("en")} more</p>}
    </div>
  );
}
