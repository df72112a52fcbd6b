import type { Address } from "./address.ts";
import type { Live } from "./live.ts";

/** Props of every view. It is rerendered when `live` changes, at most five times a second. */
export interface ViewProps {
  readonly live: Live;
  readonly address: Address;
}
