import type { Address } from "./address.ts";
import type { Live } from "./live.ts";

/** What every view is given. It is drawn again when `live` has changed: at most five times a second. */
export interface ViewProps {
  readonly live: Live;
  readonly address: Address;
}
