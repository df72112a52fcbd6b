import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface Props {
  title: ComponentChildren;
  /** A remark beside the title. */
  remark?: ComponentChildren;
  class?: string;
  children: ComponentChildren;
}

/** A part of a view under a heading of its own. */
export function Section({ title, remark, class: kind, children }: Props) {
  const id = useId();
  return (
    <section aria-labelledby={id} class={kind}>
      <h2 id={id}>
        {title} {remark && <small>{remark}</small>}
      </h2>
      {children}
    </section>
  );
}
