import { type ComponentChildren, Fragment } from "preact";

/** Items in one line, separated by `by`. */
export function Joined({ items, by = ", " }: { items: readonly ComponentChildren[]; by?: string }) {
  return (
    <>
      {items.map((item, place) => (
        <Fragment key={place}>
          {place > 0 && by}
          {item}
        </Fragment>
      ))}
    </>
  );
}
