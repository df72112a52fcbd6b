import type { PodExplanation } from "@nodekeeper/api/records";
import { lastEvictionOf } from "@nodekeeper/api/wording";
import { allPages, read } from "../world/statements.ts";
import type { World } from "../world/world.ts";
import type { Rule } from "./rule.ts";

export const selections: readonly Rule[] = [
  {
    promise: "An outcome that is shown beside a selection is that of an eviction for its plugin.",
    atRest: async (world) => {
      const { ends, contested } = evictionsOf(world);
      const wrong: string[] = [];
      const compare = ({ uid, name, plugin }: Shown, message: string, place: string) => {
        if (!ends.has(keyOf(uid, plugin, message)))
          wrong.push(`${place}: no eviction of ${name} for ${plugin} ended with: ${message}`);
      };
      for (const eviction of await allPages(world, "eviction/evictions?since=0"))
        if (eviction.outcome && eviction.outcome.message !== NOT_RECORDED)
          compare(eviction, eviction.outcome.message, "evictions");
      for (const uid of contested) {
        const explanation: PodExplanation & Failed = await read(world, `eviction/explain?pod=${uid}`);
        const { chosen, outcome } = explanation.error ? none : lastEvictionOf(explanation);
        if (chosen && outcome) compare(chosen.victim, outcome.message, "explain");
      }
      return wrong;
    },
  },
];

const NOT_RECORDED = "its outcome was not recorded";

interface Shown {
  uid: string;
  name: string;
  plugin: string;
}

interface Failed {
  error?: unknown;
}

// Of a pod without any record.
const none = { chosen: undefined, outcome: undefined };

/** Returns how evictions ended, and the pods that were selected for several plugins, from the agents' logs. */
function evictionsOf({ agent }: World): { ends: ReadonlySet<string>; contested: string[] } {
  const ends = new Set<string>();
  const plugins = new Map<string, Set<string>>();
  for (const line of agent.log) {
    const { msg, pod, podUid, plugin, message } = JSON.parse(line);
    if (msg === "pod selected for eviction")
      plugins.set(podUid, (plugins.get(podUid) ?? new Set()).add(plugin));
    else if (pod?.uid && plugin && message) ends.add(keyOf(pod.uid, plugin, message));
  }
  const contested = [...plugins].filter(([, several]) => several.size > 1).map(([uid]) => uid);
  return { ends, contested };
}

function keyOf(uid: string, plugin: string, message: string): string {
  return JSON.stringify([uid, plugin, message]);
}
