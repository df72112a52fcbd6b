import type { ComponentChildren } from "preact";

interface Props {
  /** Unique within the view. */
  title: string;
  /** A remark beside the title. */
  remark?: ComponentChildren;
  class?: string;
  children: ComponentChildren;
}

/** A part of a view under a heading of its own. */
export function Section({ title, remark, class: kind, children }: Props) {
  // Not `useId`: its numbers start again each time the page is rendered.
  const id = `section-${title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")}`;
  return (
    <section aria-labelledby={id} class={kind}>
      <h2 id={id}>
        {title} {remark && <small>{remark}</small>}
      </h2>
      {children}
    </section>
  );
}
