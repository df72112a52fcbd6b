import { expect, it } from "vitest";
import type { Live } from "./live.ts";
import { runtimeNotice } from "./runtime-notice.ts";

const withWarning = (name: string, warning?: string) =>
  ({
    node: { health: { ok: true, checks: [{ name, kind: "ready", ok: true, message: "", warning }] } },
  }) as Pick<Live, "node">;

it.each<[string, Pick<Live, "node">, boolean]>([
  ["nothing is known of the node", {}, false],
  ["the runtime answers", withWarning("PodLifecycleReady"), false],
  ["another check warns", withWarning("PluginsReady", "a plugin fails"), false],
  ["the runtime does not answer", withWarning("PodLifecycleReady", "relist: connection refused"), true],
])("there is a notice of the runtime if %s: %s", (_, live, isThere) => {
  expect(runtimeNotice(live) !== undefined).toBe(isThere);
});
