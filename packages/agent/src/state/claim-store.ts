import { Store } from "./store.ts";

/** Devices of one driver for a ResourceClaim. */
export interface StoredClaim {
  driver: string;
  uid: string;
  namespace: string;
  name: string;
  /**
   * `preparing`: the driver was called or is about to be called. `prepared`: the claim was returned to the
   * kubelet. `unpreparing`: the driver still has to unprepare the claim, and the kubelet may be waiting.
   * `unprepared`: the driver has to unprepare the claim when it reconnects, and the kubelet is not waiting.
   */
  state: "preparing" | "prepared" | "unpreparing" | "unprepared";
  /** Boot ID of the machine when the claim was prepared. Empty: the driver has lost the preparation since. */
  boot: string;
  /** JSON of the writer, like `configuration` and `pods`. */
  devices: string;
  /** Configuration that the devices refer to. */
  configuration: string;
  /** Pods whose containers may use the devices. */
  pods: string;
  /** JSON of the claim's labels, annotations and requests; "null" if an older agent recorded the claim. */
  details: string;
  /** Content of the CDI file; empty if there is none. */
  cdi: string;
  /** Milliseconds since the epoch. */
  updatedAt: number;
}

/** Claims that are prepared, being prepared or being unprepared. */
export class ClaimStore extends Store {
  /** Whether commits survive the agent. */
  get isPersistent(): boolean {
    return this.database.isPersistent;
  }

  claims(): StoredClaim[] {
    return this.database.all(
      `SELECT driver, uid, namespace, name, state, boot, devices, configuration, pods, details, cdi,
              updated_at AS updatedAt
       FROM claim ORDER BY driver, namespace, name, uid`,
    );
  }

  /** Commits the changes that `work` makes. Throws if the disk is full; nothing is changed then. */
  together(work: () => void): void {
    this.database.transaction(work);
  }

  /** Call it within `together`. */
  save(claim: StoredClaim): void {
    const { updatedAt, ...row } = claim;
    this.database.insert("claim", { ...row, updated_at: updatedAt }, "REPLACE");
  }

  /** Call it within `together`. */
  remove(driver: string, uid: string): void {
    this.database.run("DELETE FROM claim WHERE driver = ? AND uid = ?", driver, uid);
  }
}
