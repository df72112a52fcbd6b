import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { useExport } from "../export/exports.ts";
import { rowsOfFacts } from "../export/shown-rows.ts";

/** A label and its value. */
export type Fact = readonly [what: string, value: ComponentChildren];

interface Props {
  facts: readonly Fact[];
  /** Their name in an export. Undefined: they are not exported. */
  exportedAs?: string;
}

/** Facts about one object, in as many columns as fit. */
export function Facts({ facts, exportedAs }: Props) {
  const list = useRef<HTMLDListElement>(null);
  useExport(exportedAs, () => (list.current ? rowsOfFacts(list.current) : []));
  return (
    <dl ref={list} class="fact-list">
      {facts.map(([what, value], at) => (
        <div key={`${at} ${what}`}>
          <dt>{what}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
