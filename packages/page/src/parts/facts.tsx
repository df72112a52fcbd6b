import type { ComponentChildren } from "preact";

/** A label and its value. */
export type Fact = readonly [what: string, value: ComponentChildren];

/** Facts about one object, in as many columns as fit. */
export function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl class="fact-list">
      {facts.map(([what, value], at) => (
        <div key={`${at} ${what}`}>
          <dt>{what}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
