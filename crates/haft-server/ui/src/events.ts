// Server-sent events over `fetch`: an EventSource cannot send the session's secret.

/** Milliseconds of silence after which the connection counts as lost; the server sends something every 15 seconds. */
const SILENCE = 45_000;

/** A parser of event streams: reports the name and data of each complete event and buffers the rest. */
export class EventParser {
  private rest = "";

  constructor(private readonly onEvent: (name: string, data: string) => void) {}

  push(text: string): void {
    this.rest += text;
    for (;;) {
      const end = /\r?\n\r?\n/.exec(this.rest);
      if (!end) return;
      const block = this.rest.slice(0, end.index);
      this.rest = this.rest.slice(end.index + end[0].length);
      this.emit(block);
    }
  }

  private emit(block: string): void {
    let name = "message";
    const data: string[] = [];
    for (const line of block.split(/\r?\n/)) {
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "event") name = value;
      else if (field === "data") data.push(value);
    }
    if (data.length) this.onEvent(name, data.join("\n"));
  }
}

/** Reads a stream of events until it breaks, then throws an error; returns without one when `stop` aborts. */
export async function readEvents(
  path: string, headers: Record<string, string>, stop: AbortSignal, onEvent: (name: string, data: string) => void,
): Promise<void> {
  const silent = new AbortController();
  const either = AbortSignal.any([stop, silent.signal]);
  let timer = 0;
  const alive = () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => silent.abort(), SILENCE);
  };
  try {
    alive();
    const response = await fetch(path, { headers: { ...headers, accept: "text/event-stream" }, credentials: "same-origin", signal: either });
    if (!response.ok || !response.body) throw new Error(`status ${response.status}`);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new EventParser(onEvent);
    for (;;) {
      const { value, done } = await reader.read();
      if (done) throw new Error("the stream ended");
      alive();
      parser.push(value);
    }
  } catch (error) {
    if (!stop.aborted) throw error;
  } finally {
    clearTimeout(timer);
  }
}
