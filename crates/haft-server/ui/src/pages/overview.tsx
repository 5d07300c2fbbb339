// The first page: pending requests, today's failures, calls per hour, waiting times, connected clients and disk usage.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { byUrgency, moreWait, readDetail, waiting } from "../approvals";
import { useKeys } from "../keys";
import { runsChanged } from "../live";
import { follow, go, pathOf } from "../route";
import { session } from "../session";
import type { Client, Disk, Hour, Overview as Shape } from "../shapes";
import { ago, bytes, midnight, now, span } from "../time";
import { RiskWord } from "../parts/badges";
import { clientName, clientOf } from "../parts/client";
import { Deed, DeedLines } from "../parts/deed";
import { PageHead } from "../parts/head";
import { Pending, useReading } from "../parts/reading";
import { RunRow, folderName } from "../parts/runrow";
import { SafeText } from "../parts/text";
import { When } from "../parts/when";

/** Maximum number of requests listed here. */
const WAITING = 5;
const AGAIN = 30_000;

export function Overview() {
  const since = midnight(now.value).toISOString();
  const beat = useMemo(() => runsChanged.value, [Math.floor(now.value / 5000)]);
  const reading = useReading<{ overview: Shape; disk: Disk | null }>(`/overview?since=${encodeURIComponent(since)}`, beat);
  useEffect(() => {
    const timer = setInterval(reading.again, AGAIN);
    return () => clearInterval(timer);
  }, []);
  useKeys(() => [{ key: "Enter", does: "open the most urgent request", run: () => { const [first] = byUrgency(waiting.value, now.value); if (first) go(pathOf("waiting", first.id)); } }]);
  const shown = reading.value?.overview;
  return (
    <div class="page overview">
      <PageHead title="Overview" />
      <Pending reading={reading} />
      <PendingRequests />
      {shown && unused(shown) && <FirstSteps />}
      {shown && !unused(shown) && (
        <>
          <div class="figures">
            <Figure name="calls today" value={shown.today.calls.toLocaleString("en")} href="/runs?time=1" />
            <Figure name={shown.today.exits ? <>failed today<span class="unseen">,</span> <span class="small">+ {shown.today.exits.toLocaleString("en")} non-zero {shown.today.exits === 1 ? "exit" : "exits"}</span></> : "failed today"} value={shown.today.failed.toLocaleString("en")} tone={shown.today.failed ? "bad" : ""} href="/runs?time=1&status=error" />
            <Figure name="denied today" value={shown.today.denied.toLocaleString("en")} href="/runs?time=1&status=denied" />
            <Figure name={shown.today.decided === 1 ? "wait for 1 decision" : `mean wait, ${shown.today.decided.toLocaleString("en")} decisions`}
              value={shown.today.mean_wait_ms === undefined ? "–" : span(shown.today.mean_wait_ms)} href="/waiting/history" />
            <Figure name="disk used" value={reading.value?.disk ? bytes(reading.value.disk.total) : "…"} href="/health" />
          </div>
          <Chart hours={shown.hours} />
          <div class="columns">
            <section aria-label="failed or denied today"><h2>Failed or denied today</h2>
              {shown.failed.length === 0 ? <p class="note">Nothing failed or was denied since midnight.{!!shown.today.exits && ` ${exits(shown.today.exits)}`}</p>
                : <div role="list" aria-label="runs with a failed or denied call">{shown.failed.map((run) => <RunRow key={run.run} run={run} at={now.value} wrong />)}</div>}
            </section>
            <ConnectedClients clients={shown.clients} />
          </div>
        </>
      )}
    </div>
  );
}

/** Returns whether nothing has run lately and nothing could: no call, no client, no request. */
const unused = ({ hours, clients, today }: Shape) => !today.calls && !clients.length && !waiting.value.length && hours.every((hour) => !hour.calls);

/** What a first user does next. */
function FirstSteps() {
  const folder = session.value?.workspace;
  return (
    <section class="first-steps" aria-label="first steps">
      <h2>First steps</h2>
      <ol>
        <li><p>Make a call that needs your approval. In a second terminal, in {folder === undefined ? "a folder of yours" : <code><SafeText text={folder} /></code>}:</p><pre class="block" tabIndex={0}>haft call write_file path=hello.txt content=hi</pre></li>
        <li><p>The request appears on this page. Open it, look at the change, and approve it.</p></li>
        <li><p>Under <a href="/runs" onClick={follow}>Runs</a>, open the run: it shows what changed, and <em>Undo…</em> takes it back.</p></li>
        <li><p>Connect your agent: <code>haft init --client NAME</code> connects Claude Code, Cursor, VS Code and others, and <code>haft mcp snippet</code> prints the settings for any MCP client.</p></li>
      </ol>
    </section>
  );
}

/** Returns in words how many programs ended with an exit code other than 0. */
const exits = (count: number) => (count === 1 ? "1 program ended with an exit code other than 0." : `${count.toLocaleString("en")} programs ended with an exit code other than 0.`);

/** The pending requests, the most urgent first: what each would do. */
function PendingRequests() {
  const list = byUrgency(waiting.value, now.value);
  const shown = list.slice(0, WAITING);
  // The list names the files; how much of them changes is in the details.
  useEffect(() => { for (const { id, fact } of shown) if (fact.kind === "diff" && fact.added === undefined) void readDetail(id).catch(() => {}); }, [shown.map(({ id }) => id).join()]);
  if (!list.length) return <section class="pressing calm" aria-label="pending"><h2>No pending requests</h2><p class="dim">Approval requests appear here as they arrive. <a href="/waiting" onClick={follow}>Waiting</a></p></section>;
  return (
    <section class="pressing" aria-label="pending">
      <h2>{list.length === 1 ? "1 pending request" : `${list.length.toLocaleString("en")} pending requests`}</h2>
      <ul>{shown.map((approval) => (
        <li key={approval.id}><a href={pathOf("waiting", approval.id)} onClick={follow}>
          <RiskWord risk={approval.risk} /> <span class="deed mono"><span class="clipped"><Deed approval={approval} /></span> <DeedLines approval={approval} /></span>
          <span class="dim clipped client"><SafeText text={clientName(approval)} /></span> <span class="dim">{ago(approval.created, now.value)}</span>
        </a></li>
      ))}</ul>
      {list.length > WAITING && <p><a href="/waiting" onClick={follow}>{moreWait(list.slice(WAITING))}</a></p>}
    </section>
  );
}

function Figure({ name, value, href, tone = "" }: { name: ComponentChildren; value: string; href: string; tone?: string }) {
  return <a class={`figure ${tone}`} href={href} onClick={follow}><span class="figure-value">{value}</span><span class="dim">{name}</span></a>;
}

const WIDTH = 720;
const HEIGHT = 120;
const HOUR = new Intl.DateTimeFormat(undefined, { hour: "2-digit", hour12: false });

/** Returns a round number that is at least `most`, for the top of the axis; it can be halved. */
export function topOf(most: number): number {
  for (let unit = 1; ; unit *= 10) {
    const top = [2, 4, 6, 10].map((step) => step * unit).find((step) => step >= most);
    if (top !== undefined) return top;
  }
}

/** A bar chart of calls per hour, with failed and denied calls marked in each bar. */
function Chart({ hours }: { hours: Hour[] }) {
  const most = Math.max(1, ...hours.map((hour) => hour.calls));
  const top = topOf(most);
  const wide = WIDTH / Math.max(1, hours.length);
  const high = (count: number) => (count / top) * HEIGHT;
  const sum = (of: (hour: Hour) => number) => hours.reduce((all, hour) => all + of(hour), 0);
  const words = `${sum((hour) => hour.calls)} calls in the last 24 hours, ${sum((hour) => hour.failed)} failed, ${sum((hour) => hour.denied)} denied; at most ${most} in an hour`;
  return (
    <section aria-label="calls per hour">
      <div class="section-head"><h2>Calls per hour</h2>
        <p class="legend" aria-hidden="true"><span><span class="key ok" />ran</span><span><span class="key failed" />failed</span><span><span class="key denied" />denied</span></p></div>
      <div class="chart">
        <div class="axis-y" aria-hidden="true">{[top, top / 2, 0].map((mark) => <span key={mark}>{mark.toLocaleString("en")}</span>)}</div>
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={words} preserveAspectRatio="none">
          {[0, 0.5, 1].map((part) => <line key={part} class="base" x1="0" x2={WIDTH} y1={HEIGHT * part} y2={HEIGHT * part} vector-effect="non-scaling-stroke" />)}
          {hours.map((hour, index) => {
            const [all, failed, denied] = [high(hour.calls), high(hour.failed), high(hour.denied)];
            const [x, width] = [index * wide + 3, wide - 6];
            return (
              <g key={hour.start}>
                <title>{`${HOUR.format(new Date(hour.start))}: ${hour.calls} calls, ${hour.failed} failed, ${hour.denied} denied${hour.exits ? `, ${hour.exits} with a non-zero exit code` : ""}`}</title>
                <rect class="reach" x={index * wide} width={wide} y={0} height={HEIGHT} />
                <rect class="ran" x={x} width={width} y={HEIGHT - all} height={Math.max(0, all - failed - denied)} />
                <rect class="failed" x={x} width={width} y={HEIGHT - failed - denied} height={failed} />
                <rect class="denied" x={x} width={width} y={HEIGHT - denied} height={denied} />
              </g>
            );
          })}
        </svg>
        <div class="hours" aria-hidden="true">{hours.map((hour, index) => <span key={hour.start}>{(hours.length - 1 - index) % 4 === 0 ? HOUR.format(new Date(hour.start)) : ""}</span>)}</div>
      </div>
    </section>
  );
}

export function ConnectedClients({ clients }: { clients: Client[] }) {
  return (
    <section aria-label="connected clients">
      <h2>Connected clients</h2>
      {clients.length === 0 ? <p class="note">No client is connected. <code>haft mcp snippet</code> prints the settings for yours.</p> : (
        <ul class="clients">{clients.map((client) => (
          <li key={client.run}><a href={pathOf("runs", client.run)} onClick={follow}><SafeText text={clientOf(client)} /></a>
            <span class="dim clipped" title={client.workspace}>{client.workspace && <SafeText text={folderName(client.workspace)} />}</span>
            <span class="dim">since <When at={client.since} /></span></li>
        ))}</ul>
      )}
    </section>
  );
}
