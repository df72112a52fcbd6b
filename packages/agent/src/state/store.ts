import type { StateDatabase } from "./database.ts";

/** Access of one module to its tables. */
export abstract class Store {
  protected readonly database: StateDatabase;

  constructor(database: StateDatabase) {
    this.database = database;
  }
}
