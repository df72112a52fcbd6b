import type { ComponentChildren } from "preact";

/** What something is, and the value. */
export type Fact = readonly [what: string, value: ComponentChildren];

/** Facts about one thing, in as many columns as there is room for. */
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
