import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { quote } from "@nodekeeper/core/lib";
import type { DriverContext } from "./context.ts";
import type { DriverState } from "./driver-state.ts";
import { isSocketName, pluginAt } from "./kubelet-plugin.ts";
import type { Preparation } from "./preparation.ts";

type Context = Pick<DriverContext, "drivers" | "records" | "settings" | "clock" | "log"> & {
  preparation: Preparation;
};

const MOST_SOCKETS = 64;

/**
 * Handles claims that the agent prepared for drivers that now register their own plugin: the kubelet calls that plugin,
 * and never the agent for these claims. Their records and CDI files are kept until the claims have ended according to
 * the API server, because the kubelet restarts containers with them.
 */
export class OwnPlugins {
  readonly #context: Context;

  constructor(context: Context) {
    this.#context = context;
  }

  /**
   * If a driver is not connected, detects from the sockets in the kubelet's directory whether it has its own plugin,
   * and if so removes the records of its ended claims. Returns whether to check again later. Throws as reading claims
   * does.
   */
  async look(state: DriverState, signal: AbortSignal): Promise<boolean> {
    const { records, preparation, log } = this.#context;
    const { name } = state;
    if (state.connection) return false;
    const { isLeftAlone, isFoundAlone } = state;
    if (!isLeftAlone || isFoundAlone) {
      const isAlone = records.of(name).length > 0 && (await this.#hasOwnPlugin(name, signal));
      // The driver may have registered meanwhile, also with a plugin of its own. Then it is reconciled again.
      const isSame = state.isLeftAlone === isLeftAlone && state.isFoundAlone === isFoundAlone;
      if (state.connection || !isSame) return false;
      if (isAlone && !state.isFoundAlone)
        log.info({ driver: name }, "driver has registered its own plugin with the kubelet: it is left alone");
      this.#context.drivers.foundAlone(name, isAlone);
    }
    if (state.isLeftAlone) {
      for (const { uid, namespace, name: claim } of records.of(name)) {
        if (await preparation.forgetEnded(name, uid, signal))
          log.info(
            { driver: name, claim: { namespace, name: claim } },
            "claim has ended, and the driver has its own plugin: its record and CDI file are removed",
          );
      }
    }
    return records.of(name).length > 0;
  }

  async #hasOwnPlugin(driver: string, signal: AbortSignal): Promise<boolean> {
    const { settings, log } = this.#context;
    const { registryDirectory } = settings().kubeletPlugin;
    const entries = await readdir(registryDirectory, { withFileTypes: true }).catch(() => []);
    // The kubelet ignores hidden files, as this agent's own sockets are until they are served.
    const sockets = entries.filter(
      (entry) => entry.isSocket() && !isSocketName(entry.name) && !entry.name.startsWith("."),
    );
    if (sockets.length > MOST_SOCKETS)
      log.warn(
        { directory: quote(registryDirectory), sockets: sockets.length, limit: MOST_SOCKETS },
        "kubelet's plugin registration directory has too many sockets, ignoring the rest",
      );
    const found = sockets
      .slice(0, MOST_SOCKETS)
      .map((socket) => pluginAt(join(registryDirectory, socket.name), this.#context, signal));
    return (await Promise.all(found)).some(
      (plugin) => plugin?.type === "DRAPlugin" && plugin.name === driver,
    );
  }
}
