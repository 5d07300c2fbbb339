// A data table: rows and columns where there is room, one card per row on a phone.

import type { ComponentChildren } from "preact";

/** A column: its heading, and the class of its cells. */
export interface Column {
  head: string;
  class?: string;
}

export interface TableRow {
  key: string | number;
  cells: ComponentChildren[];
  current?: boolean;
  class?: string;
}

/** A table in which the first cell of each row is its heading. The roles are explicit because the card layout would lose them. */
export function Table({ label, columns, rows }: { label: string; columns: Column[]; rows: TableRow[] }) {
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={label}>
      <table class="data" role="table">
        <thead role="rowgroup"><tr role="row">{columns.map((column) => <th key={column.head} scope="col" role="columnheader">{column.head}</th>)}</tr></thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr key={row.key} role="row" class={row.class} aria-current={row.current ? "true" : undefined}>
              {row.cells.map((cell, index) => {
                const { head = "", class: look } = columns[index] ?? {};
                const about = { class: look, "data-head": head, "data-empty": cell === undefined || cell === "" ? "" : undefined };
                return index === 0 ? <th key={head} scope="row" role="rowheader" {...about}>{cell}</th> : <td key={head} role="cell" {...about}>{cell}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
