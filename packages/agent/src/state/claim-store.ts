import type { StatementSync } from "node:sqlite";
import type { StateDatabase } from "./database.ts";

/** What is known of a ResourceClaim's devices of one driver. */
export interface StoredClaim {
  driver: string;
  uid: string;
  namespace: string;
  name: string;
  /**
   * `preparing`: the driver was asked, or is about to be; `prepared`: what was answered to the kubelet; `unpreparing`: the
   * driver has yet to undo it, and the kubelet may wait for that; `unprepared`: the driver has yet to undo it when it is back,
   * and the kubelet does not wait.
   */
  state: "preparing" | "prepared" | "unpreparing" | "unprepared";
  /** The machine's boot in which it was prepared. */
  boot: string;
  /** The writer's own JSON. */
  devices: string;
  /** Text of the CDI file; empty where there is none. */
  cdi: string;
  /** Wall milliseconds. */
  updatedAt: number;
}

/** Claims that are prepared, or on the way to or from it. */
export class ClaimStore {
  readonly #database: StateDatabase;
  readonly #save: StatementSync;
  readonly #remove: StatementSync;

  constructor(database: StateDatabase) {
    this.#database = database;
    const { connection } = database;
    this.#save = connection.prepare(
      `INSERT OR REPLACE INTO claim (driver, uid, namespace, name, state, boot, devices, cdi, updated_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#remove = connection.prepare("DELETE FROM claim WHERE driver = ? AND uid = ?");
  }

  claims(): StoredClaim[] {
    const rows = this.#database.connection
      .prepare(
        `SELECT driver, uid, namespace, name, state, boot, devices, cdi, updated_at FROM claim
         ORDER BY driver, namespace, name, uid`,
      )
      .all();
    return rows.map((row) => ({
      driver: row.driver as string,
      uid: row.uid as string,
      namespace: row.namespace as string,
      name: row.name as string,
      state: row.state as StoredClaim["state"],
      boot: row.boot as string,
      devices: row.devices as string,
      cdi: row.cdi as string,
      updatedAt: row.updated_at as number,
    }));
  }

  /** Throws when the disk is full; nothing is changed then. */
  save({ driver, uid, namespace, name, state, boot, devices, cdi, updatedAt }: StoredClaim): void {
    this.#save.run(driver, uid, namespace, name, state, boot, devices, cdi, updatedAt);
  }

  /** Throws when the disk is full; nothing is changed then. */
  remove(driver: string, uid: string): void {
    this.#remove.run(driver, uid);
  }
}
