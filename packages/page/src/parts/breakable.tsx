import type { ComponentChildren } from "preact";
import { Fragment } from "preact";

/**
 * A long name, such as that of a taint, that is broken after "/", "=" and ":" before within a word. Not a component, so
 * that `hasShortWords` knows its text.
 */
export function breakable(text: string): ComponentChildren[] {
  return text.split(/(?<=[/=:])(?![/=:])/).map((piece, place) => (
    <Fragment key={place}>
      {place > 0 && <wbr />}
      {piece}
    </Fragment>
  ));
}
