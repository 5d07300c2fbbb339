// The outcome of a call: what happened in one line, what the tool gave, then notes.

import { follow, pathOf } from "../route";
import { commandIn, type CommandResult } from "../result";
import type { Json, Outcome, Part } from "../shapes";
import { span } from "../time";
import { StateWord } from "./badges";
import { RenderedParts, Stream } from "./rendered";
import { Block, SafeText, Sentence } from "./text";

/** The outcome; with `rendered`, as the server renders it. */
export function OutcomeView({ outcome, rendered = [] }: { outcome: Outcome; rendered?: Part[] }) {
  const texts = (outcome.content ?? []).filter((part) => part.type === "text" && part.text);
  const command = commandIn(outcome.data);
  const hasData = outcome.data !== undefined && outcome.data !== null;
  if (rendered.length) {
    return (
      <section class="outcome" aria-label="outcome">
        <p><StateWord word={outcome.status} exit={command?.exit} />{outcome.duration_ms !== undefined && <span class="dim"> {span(outcome.duration_ms)}</span>}</p>
        <RenderedParts parts={rendered} />
        {outcome.approval && <PendingLink approval={outcome.approval} />}
      </section>
    );
  }
  return (
    <section class="outcome" aria-label="outcome">
      <p>
        <StateWord word={outcome.status} exit={command?.exit} />{outcome.error && outcome.error.kind !== outcome.status && outcome.error.kind !== "failed" && <> <code>{outcome.error.kind}</code></>} <SafeText text={outcome.summary ?? ""} />
        {outcome.duration_ms !== undefined && <span class="dim"> {span(outcome.duration_ms)}</span>}
      </p>
      {outcome.error && outcome.error.message !== outcome.summary && <p><SafeText text={outcome.error.message} lines /></p>}
      {command && <CommandOutput result={command} />}
      {!command && hasData && !texts.length && <Block text={JSON.stringify(outcome.data, null, 2)} label="result" />}
      {texts.map((part, index) => <Block key={index} text={part.text ?? ""} label={hasData ? "note" : "result"} />)}
      {!command && hasData && texts.length > 0 && <details class="plain"><summary>Data</summary><Block text={JSON.stringify(outcome.data, null, 2)} label="data" /></details>}
      {outcome.error?.advice && <p class="dim"><Sentence text={outcome.error.advice} /></p>}
      {outcome.approval && <PendingLink approval={outcome.approval} />}
    </section>
  );
}

const PendingLink = ({ approval }: { approval: string }) => <p><a href={pathOf("waiting", approval)} onClick={follow}>It is pending approval</a></p>;

/** The exit code of a command, then its streams, told apart, then what else it gave. */
export function CommandOutput({ result }: { result: CommandResult }) {
  const rest = Object.entries(result.rest);
  return (
    <div class="streams">
      <p class="exit-line"><ExitLine result={result} /></p>
      <Stream name="stdout" text={result.stdout} />
      <Stream name="stderr" text={result.stderr} />
      {!result.stdout && !result.stderr && <p class="dim">It printed nothing.</p>}
      {rest.length > 0 && <details class="plain"><summary>{rest.map(([name]) => name.replaceAll("_", " ")).join(", ")}</summary><Block text={JSON.stringify(result.rest as Json, null, 2)} label="other data" /></details>}
    </div>
  );
}

function ExitLine({ result: { exit, signal, cut } }: { result: CommandResult }) {
  const says = exit !== undefined ? `exit code ${exit}` : signal !== undefined ? `ended by signal ${signal}` : "still running";
  return <><strong>{says}</strong>{cut && <span class="dim"> · only the beginning of the output is recorded</span>}</>;
}
