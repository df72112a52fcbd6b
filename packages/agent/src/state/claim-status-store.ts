import { Store } from "./store.ts";

/** A ResourceClaim whose status may have fields that the agent wrote for a driver. */
export interface StoredClaimStatus {
  driver: string;
  uid: string;
  namespace: string;
  name: string;
}

/** Claims whose status the agent must clean up. */
export class ClaimStatusStore extends Store {
  claims(): StoredClaimStatus[] {
    return this.database.all("SELECT driver, uid, namespace, name FROM claim_status ORDER BY driver, uid");
  }

  /** Throws if the disk is full; nothing is changed then. */
  save({ driver, uid, namespace, name }: StoredClaimStatus): void {
    this.database.insert("claim_status", { driver, uid, namespace, name }, "REPLACE");
  }

  /** Throws if the disk is full; nothing is changed then. */
  remove({ driver, uid }: Pick<StoredClaimStatus, "driver" | "uid">): void {
    this.database.run("DELETE FROM claim_status WHERE driver = ? AND uid = ?", driver, uid);
  }
}
