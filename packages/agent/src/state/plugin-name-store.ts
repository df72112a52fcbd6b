import { Store } from "./store.ts";

/** Name of a plugin and the user it belongs to. */
export interface StoredPluginName {
  /** "ReporterPlugin", "DRAPlugin", ... */
  type: string;
  name: string;
  /** User ID. */
  uid: number;
}

/** Names of plugins that are registered, or were until recently. */
export class PluginNameStore extends Store {
  names(): StoredPluginName[] {
    return this.database.all("SELECT type, name, uid FROM plugin_name ORDER BY type, name");
  }

  /** Throws if the disk is full; nothing is changed then. */
  save({ type, name, uid }: StoredPluginName): void {
    this.database.insert("plugin_name", { type, name, uid }, "REPLACE");
  }

  /** Throws if the disk is full; nothing is changed then. */
  remove({ type, name }: Pick<StoredPluginName, "type" | "name">): void {
    this.database.run("DELETE FROM plugin_name WHERE type = ? AND name = ?", type, name);
  }
}
