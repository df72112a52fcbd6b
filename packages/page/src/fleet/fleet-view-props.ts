import type { Address } from "../address.ts";
import type { Fleet } from "./fleet.ts";

/** What each view of all nodes gets. */
export interface FleetViewProps {
  fleet: Fleet;
  address: Address;
}
