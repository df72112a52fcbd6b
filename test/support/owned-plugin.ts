import { mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { give } from "./owned-directory.ts";
import { type BarePlugin, startBarePlugin } from "./plugins.ts";

type Arguments = Parameters<typeof startBarePlugin>;

/**
 * A plugin whose socket belongs to a user from the moment the agent finds it. It is served below a name with a dot in front,
 * which the agent ignores, and moved to `<file>.sock` of the directory.
 */
export async function startPluginOf(
  uid: number,
  [directory, file]: [directory: string, file: string],
  ...[name, service, info]: [Arguments[1], Arguments[2], Arguments[3]?]
): Promise<BarePlugin> {
  const staging = mkdtempSync(join(directory, ".s"));
  const plugin = await startBarePlugin(staging, name, service, info);
  give(uid, plugin.socketPath);
  const socketPath = join(directory, `${file}.sock`);
  renameSync(plugin.socketPath, socketPath);
  return {
    ...plugin,
    socketPath,
    stop() {
      plugin.stop();
      rmSync(socketPath, { force: true });
      rmSync(staging, { recursive: true, force: true });
    },
  };
}
