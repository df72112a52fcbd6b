import type { OpenPage } from "./open-page.ts";
import { WorldServer } from "./world.ts";

// The resources, zones and devices of the node, and one selected.
const ZONE = "CustomNodeResource/status/Socket 0 0";
const TREE = new URLSearchParams({
  item: `${ZONE}/Numa 0 0/cpu`,
  open: ["node", "CustomNodeResource", "CustomNodeResource/status/resources", ZONE, `${ZONE}/Numa 0 0`].join(
    "|",
  ),
});

const { namespace, name, uid, round, at } = WorldServer.evicted();
/** The views of the recorded world, each by its address and something that it shows once it has its data. */
export const worldViews: [name: string, hash: string, shows: string | RegExp][] = [
  // A stretch of time, because the last minutes move.
  ["timeline", `#/timeline?from=${at - 90_000}&to=${at + 10_000}`, /thumbnailer|crawler|search/],
  ["pods", "#/pod", /^\d+ pods$/],
  ["pod", `#/pod/${namespace}/${name}?uid=${uid}`, "Ranking"],
  ["now", "#/now", "evicted: pod deleted"],
  ["rounds", "#/round", /^Round \d+$/],
  ["round", `#/round/${round}`, "Policy of that time"],
  ["plugins", "#/plugins", "example-reporter"],
  ["plugin", "#/plugins/example-eviction", /not recorded for/],
  ["tree", `#/resources/tree?${TREE}`, /^In the object$|^Capacity$/],
  ["objects", "#/resources/objects", /fields\.$/],
  ["topology", "#/resources/topology", "NUMA node 0"],
  ["devices", "#/resources/devices", "Claims"],
  ["what-if", "#/what-if?dryRunPlugins=*", "rounds differ"],
];
/** What is opened above a view, by what is typed. */
export const worldOverlays: [...(typeof worldViews)[number], typed: string][] = [
  ["search", "#/resources/devices", "Claims", "/accelerator"],
  ["keys", "#/now", "evicted: pod deleted", "?"],
];

/** Stops both clocks of the page at the time of the world, so that ages stay the same. */
export async function stopTime({ page }: OpenPage, world: Pick<WorldServer, "at">): Promise<void> {
  await page.clock.setFixedTime(world.at);
  await page.addInitScript(() => {
    performance.now = () => 0;
  });
}
