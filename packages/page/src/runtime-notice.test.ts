import { expect, it } from "vitest";
import type { Live } from "./live.ts";
import { runtimeNotice } from "./runtime-notice.ts";

const withWarning = (name: string, warning?: string) =>
  ({
    node: { health: { ok: true, checks: [{ name, kind: "ready", ok: true, message: "", warning }] } },
  }) as Pick<Live, "node">;

it.each<[string, Pick<Live, "node">, string | undefined]>([
  ["nothing is known of the node", {}, undefined],
  ["the runtime answers", withWarning("PodLifecycleReady"), undefined],
  ["another check warns", withWarning("PluginsReady", "a plugin fails"), undefined],
  [
    "the runtime does not answer",
    withWarning("PodLifecycleReady", "relist: connection refused"),
    "Containers may have changed unseen: relist: connection refused",
  ],
])("the notice of the runtime, if %s", (_, live, text) => {
  expect(runtimeNotice(live)).toBe(text);
});
