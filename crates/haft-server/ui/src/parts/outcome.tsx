// The outcome of a call.

import { follow, pathOf } from "../route";
import type { Outcome } from "../shapes";
import { span } from "../time";
import { StateWord } from "./badges";
import { Block, SafeText } from "./text";

export function OutcomeView({ outcome }: { outcome: Outcome }) {
  const texts = (outcome.content ?? []).filter((part) => part.type === "text" && part.text);
  return (
    <section class="outcome" aria-label="outcome">
      <p>
        <StateWord word={outcome.status} />{outcome.error && outcome.error.kind !== outcome.status && <> <code>{outcome.error.kind}</code></>} <SafeText text={outcome.summary ?? ""} />
        {outcome.duration_ms !== undefined && <span class="dim"> {span(outcome.duration_ms)}</span>}
      </p>
      {outcome.error && outcome.error.message !== outcome.summary && <p><SafeText text={outcome.error.message} /></p>}
      {outcome.error?.advice && <p class="dim"><SafeText text={outcome.error.advice} /></p>}
      {outcome.approval && <p><a href={pathOf("waiting", outcome.approval)} onClick={follow}>It is pending approval</a></p>}
      {texts.map((part, index) => <Block key={index} text={part.text ?? ""} label="result" />)}
      {!texts.length && outcome.data !== undefined && <Block text={JSON.stringify(outcome.data, null, 2)} label="result" />}
    </section>
  );
}
