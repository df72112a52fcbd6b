import { setInterval as every } from "node:timers/promises";
import { type FrameFloodOptions, startFrameFlood } from "../../support/frame-flood.ts";
import { rawField, startBarePlugin } from "../../support/plugins.ts";
import type { Attack } from "../attack.ts";

const MIB = 2 ** 20;
// Field 1, of length 0: an empty pod or pool takes two bytes.
const EMPTY_ENTRY = Buffer.from([0x0a, 0]);

const reporter = { type: "ReporterPlugin", version: "v1alpha1", method: "ListAndWatchReportContent" };
const driver = { type: "DRAPlugin", version: "nodekeeper.devices.v1alpha2", method: "ListAndWatchDevices" };
const eviction = { type: "EvictionPlugin", version: "v1alpha1" };

/** Of a plugin that is compromised. */
export const pluginAttacks: readonly Attack[] = [
  {
    name: "reporter-frames",
    about: "a reporter plugin that sends HTTP/2 DATA frames of one byte without end",
    isShort: true,
    run: flood({ ...reporter, name: "frames", payload: 1 }),
  },
  {
    name: "driver-frames",
    about: "a driver that does the same",
    isShort: true,
    run: flood({ ...driver, name: "frames.example.com", payload: 1 }),
  },
  {
    name: "frames-in-bounds",
    about: "a driver that sends frames of 32 bytes without end, which is within the budget",
    isShort: false,
    run: flood({ ...driver, name: "frames.example.com", payload: 32 }),
  },
  {
    name: "empty-pods",
    about: "an eviction plugin that names 8 million empty pods in each answer",
    isShort: true,
    async run({ pluginDir }) {
      const pods = Buffer.alloc(16 * MIB - 64, EMPTY_ENTRY);
      const messages = { GetEvictPods: pods, ThresholdMet: pods, GetTopEvictionPods: pods };
      await startFrameFlood(pluginDir, { ...eviction, name: "pods", method: "none", payload: 0, messages });
    },
  },
  {
    name: "empty-pools",
    about: "a driver that reports 8 million empty pools",
    isShort: true,
    async run({ pluginDir }) {
      const messages = { ListAndWatchDevices: Buffer.alloc(16 * MIB - 64, EMPTY_ENTRY) };
      const options = { ...driver, name: "pools.example.com", method: "none", payload: 0, messages };
      await startFrameFlood(pluginDir, options);
    },
  },
  {
    name: "deep-json",
    about: "a reporter plugin that reports 500 KB of nested lists, ten times a second",
    isShort: false,
    async run({ pluginDir }) {
      const nested = Buffer.from("[".repeat(250_000) + "]".repeat(250_000));
      await startBarePlugin(pluginDir, "deep", {
        getReportContent: async () => ({ content: [rawField("deep", nested)] }),
        async *listAndWatchReportContent() {
          for await (const _ of every(100)) yield { content: [rawField("deep", nested)] };
        },
      });
    },
  },
  {
    name: "messages",
    about: "a reporter plugin that sends as many messages as the agent takes",
    isShort: false,
    async run({ pluginDir }) {
      await startBarePlugin(pluginDir, "messages", {
        getReportContent: async () => ({ content: [rawField("n", "0")] }),
        async *listAndWatchReportContent() {
          for (let n = 0; ; n++) yield { content: [rawField("n", String(n))] };
        },
      });
    },
  },
];

function flood(options: FrameFloodOptions): Attack["run"] {
  return async ({ pluginDir }) => void (await startFrameFlood(pluginDir, options));
}
