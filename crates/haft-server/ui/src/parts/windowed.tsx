// A long list that draws only the rows in view.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** Number of rows drawn beyond each edge of the view. */
const AHEAD = 8;

export interface Props {
  count: number;
  /** Height of a row in pixels; all are the same. */
  height: number;
  row: (index: number) => ComponentChildren;
  label: string;
  class?: string;
  role?: "list" | "group";
  /** The row to keep in view. */
  keep?: number;
  /** Pixels at either edge that something may cover: a row that is brought into view stays clear of them. */
  covered?: number;
  /** Whether the view stays at the end as rows are added. */
  follow?: boolean;
  onScrolled?: (atEnd: boolean) => void;
  /** Called with the first row of which at least half is in view, and the one after the last. */
  onView?: (first: number, end: number) => void;
}

/** A list that scrolls smoothly through any number of rows. */
export function Windowed(props: Props) {
  const { count, height, row, keep, follow, covered = 0 } = props;
  const outer = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, room: 600 });
  const measure = () => {
    const element = outer.current;
    if (element) setView({ top: element.scrollTop, room: element.clientHeight || 600 });
  };
  useLayoutEffect(() => {
    measure();
    const watch = new ResizeObserver(measure);
    if (outer.current) watch.observe(outer.current);
    return () => watch.disconnect();
  }, []);
  const seen = [Math.ceil(view.top / height - 0.5), Math.floor((view.top + view.room) / height + 0.5)] as const;
  useLayoutEffect(() => { props.onView?.(seen[0], seen[1]); }, [seen[0], seen[1]]);
  useLayoutEffect(() => {
    const element = outer.current;
    if (!element || keep === undefined || keep < 0) return;
    const top = keep * height;
    if (top < element.scrollTop) element.scrollTop = top - covered;
    else if (top + height > element.scrollTop + element.clientHeight) element.scrollTop = top + height - element.clientHeight + covered;
  }, [keep, height, covered]);
  useLayoutEffect(() => {
    if (follow && outer.current) outer.current.scrollTop = outer.current.scrollHeight;
  }, [follow, count]);
  const first = Math.max(0, Math.floor(view.top / height) - AHEAD);
  const last = Math.min(count, Math.ceil((view.top + view.room) / height) + AHEAD);
  const rows = [];
  for (let index = first; index < last; index += 1) rows.push(row(index));
  const onScroll = () => {
    measure();
    const element = outer.current;
    if (element) props.onScrolled?.(element.scrollTop + element.clientHeight >= element.scrollHeight - 4);
  };
  return (
    <div ref={outer} class={`windowed ${props.class ?? ""}`} onScroll={onScroll} tabIndex={0} role={props.role} aria-label={props.label}>
      <div class="windowed-all" role="presentation" style={{ height: `${count * height}px` }}>
        <div class="windowed-part" role="presentation" style={{ transform: `translateY(${first * height}px)` }}>{rows}</div>
      </div>
    </div>
  );
}
