import type { ComponentChildren } from "preact";

interface Props {
  /** Unique within the view. */
  title: string;
  /** A remark next to the title. */
  remark?: ComponentChildren;
  children: ComponentChildren;
}

/** A card of a view, with a heading. */
export function Section({ title, remark, children }: Props) {
  // Not `useId`: its numbers restart each time the page is rendered.
  const id = `section-${title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")}`;
  return (
    <section class="card" aria-labelledby={id}>
      <h2 id={id}>
        {title} {remark && <small>{remark}</small>}
      </h2>
      {children}
    </section>
  );
}
