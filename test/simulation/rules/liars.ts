import { NODE } from "../world/api-server.ts";
import { type Eviction, isEvictionRequest, type PluginCall } from "../world/history.ts";
import { protectedNames } from "../world/node.ts";
import { LONGEST_GRACE_S, taintPrefixes } from "../world/settings.ts";
import { read } from "../world/statements.ts";
import type { World } from "../world/world.ts";
import { eachEviction, eachStop, eachWrite, LONGEST_ROUND_MS } from "./acts.ts";
import type { Rule } from "./rule.ts";

// eviction.taintEffects.
const ALLOWED_EFFECTS = ["NoSchedule", "PreferNoSchedule"];
// The name part of a qualified name.
const TAINT_NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

// A round has certainly been recorded so long after a plugin's answer in it. What was answered before may be omitted.
const UNTIL_RECORDED_MS = 10_000;
const RECORDED_MS = 25_000;

export const liars: readonly Rule[] = [
  {
    promise: "A hard threshold costs one pod for each answer, however many the plugin names.",
    watch: (world) => {
      const answers = new Answers();
      const look = eachEviction((_world, eviction) => {
        const possible = eviction.isLate ? undefined : hardAnswers(world, eviction);
        return possible && !answers.assign(eviction, possible)
          ? `${eviction.what}: all answers of plugins that named it have cost a pod`
          : undefined;
      });
      return look(world);
    },
  },
  {
    promise: "The grace period of an eviction is the pod's own, or one that eviction.grace allows.",
    watch: eachWrite((_world, write) => {
      if (!isEvictionRequest(write)) return undefined;
      const { deleteOptions = write.body } = write.body as { deleteOptions?: unknown };
      const { gracePeriodSeconds: grace } = deleteOptions as { gracePeriodSeconds?: number };
      const isAllowed = grace === undefined || (grace > 0 && grace <= LONGEST_GRACE_S);
      return isAllowed ? undefined : `${write.path}: ${grace} s`;
    }),
  },
  {
    promise: "The grace period of a StopContainer is the pod's own, or one that eviction.grace allows.",
    watch: eachStop((_world, { timeoutSeconds, podName }) =>
      timeoutSeconds > 0 && timeoutSeconds <= LONGEST_GRACE_S ? undefined : `${podName}: ${timeoutSeconds} s`,
    ),
  },
  {
    promise: "Every taint of the agent has a valid name and an effect that its settings allow.",
    watch: eachWrite(({ api }, { path }) => {
      if (!path.endsWith(`/nodes/${NODE}`)) return undefined;
      const { spec } = api.store.get("nodes", NODE) as { spec?: { taints?: Taint[] } };
      const wrong = spec?.taints?.find((taint) => isOwn(taint) && !isValid(taint));
      return wrong && JSON.stringify(wrong);
    }),
  },
  {
    promise: "A request for a pod that nobody may evict is refused, and explained with the pod.",
    atRest: async (world) => {
      const { history, machine } = world;
      const until = machine.scheduler.now - UNTIL_RECORDED_MS;
      const requests = new Map<string, Set<string>>();
      for (const { at, plugin, uid } of history.falseNamings) {
        if (at > until || at < until - RECORDED_MS || !isProtected(world, uid)) continue;
        requests.set(uid, (requests.get(uid) ?? new Set()).add(plugin));
      }
      const unexplained: string[] = [];
      for (const [uid, plugins] of requests) {
        const { rounds } = (await read(world, `eviction/explain?pod=${uid}`)) as Explanation;
        const refused = new Set(rounds.flatMap(({ refusals }) => refusals.map(({ plugin }) => plugin)));
        for (const plugin of plugins)
          if (!refused.has(plugin))
            unexplained.push(
              `${plugin} asked for ${world.api.pods.all.get(uid)?.name}, which is not explained`,
            );
      }
      return unexplained;
    },
  },
];

interface Taint {
  key: string;
  effect: string;
}

interface Explanation {
  rounds: { refusals: { plugin: string }[] }[];
}

function isOwn({ key }: Taint): boolean {
  return taintPrefixes.some((prefix) => key.startsWith(`${prefix}/`));
}

function isValid({ key, effect }: Taint): boolean {
  return TAINT_NAME.test(key.split("/")[1] ?? "") && ALLOWED_EFFECTS.includes(effect);
}

function isProtected({ api }: World, uid: string): boolean {
  const { name, goneAt } = api.pods.all.get(uid) ?? { name: "", goneAt: 0 };
  return goneAt === undefined && protectedNames.some((start) => name.startsWith(start));
}

/**
 * Returns the answers for hard thresholds that may be the reason of an eviction. Undefined if it may have another one:
 * a policy, an in-tree plugin, or an answer that may cost any number of pods.
 */
function hardAnswers(world: World, { at, podName, podUid: uid }: Eviction): PluginCall[] | undefined {
  const from = at - LONGEST_ROUND_MS;
  if (world.unheard({ uid, name: podName }, from, at).length > 0) return undefined;
  const calls = world.history.namings
    .filter((naming) => naming.uid === uid && naming.at >= from)
    .map(({ call }) => call);
  return calls.some(({ topN }) => topN === 0) ? undefined : calls;
}

/** Assigns each eviction to an answer that may be its reason, and no answer to two evictions. */
class Answers {
  readonly #evictions = new Map<PluginCall, Eviction>();
  readonly #possible = new Map<Eviction, readonly PluginCall[]>();

  /** Returns whether there is an answer for this eviction too, perhaps if others are assigned to other answers. */
  assign(eviction: Eviction, possible: readonly PluginCall[]): boolean {
    this.#possible.set(eviction, possible);
    return this.#reassign(eviction, new Set());
  }

  #reassign(eviction: Eviction, tried: Set<PluginCall>): boolean {
    for (const call of this.#possible.get(eviction)!) {
      if (tried.has(call)) continue;
      tried.add(call);
      const other = this.#evictions.get(call);
      if (other && !this.#reassign(other, tried)) continue;
      this.#evictions.set(call, eviction);
      return true;
    }
    return false;
  }
}
