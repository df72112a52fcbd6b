import { counted, nodeTaintText } from "@nodekeeper/api/wording";
import { addressOf } from "../address.ts";
import { ask } from "../api.ts";
import type { Live, Round } from "../live.ts";
import { nodeNow } from "../node-clock.ts";
import { at } from "../text.ts";
import { addressName, groupPlugins } from "../views/plugins/groups.ts";
import { healthText, typeText } from "../views/plugins/words.ts";
import { listPods } from "../views/pod/listed-pods.ts";
import {
  type Device,
  type Driver,
  type DriverClaims,
  gridDevices,
} from "../views/resources/devices/device-state.ts";
import { kindName } from "../views/resources/objects/objects.ts";
import { driverKey } from "../views/resources/tree/driver-nodes.ts";
import { openText } from "../views/resources/tree/tree-node.ts";
import { views } from "../views.ts";
import { type Found, findItems, type Item } from "./find.ts";

/** What is searched. */
export interface Known {
  find(text: string): Found;
  /** Whether answers of the agent are still awaited. */
  readonly isReading: boolean;
  /** What could not be read. */
  readonly missing: readonly string[];
}

const HOUR_MS = 3_600_000;
const MOST_ITEMS = 1_000;
// The search reads at most so many pages of a list: 10,000 devices of each driver, for example.
const MOST_PAGES = 10;

type Source = readonly [title: string, read: () => Promise<Item[]>];

/** Reads what is searched, and calls `onKnown` with it at once and whenever there is more. */
export function readKnown(live: Live, signal: AbortSignal, onKnown: (known: Known) => void): void {
  const sources = sourcesOf(live, signal);
  const lists = [liveItems(live), ...sources.map((): Item[] => [])];
  const missing = live.node ? [] : ["plugins", "rounds"];
  let left = sources.length;
  const tell = () => {
    if (signal.aborted) return;
    const all = lists.flat();
    onKnown({
      find: (text) => findItems([...numberedRound(text, all), ...all], text),
      isReading: left > 0,
      missing: [...missing],
    });
  };
  tell();
  for (const [at, [title, read]] of sources.entries()) {
    void read()
      .then(
        (items) => {
          lists[at + 1] = items;
        },
        () => missing.push(title),
      )
      .finally(() => {
        left--;
        tell();
      });
  }
}

function sourcesOf(live: Live, signal: AbortSignal): Source[] {
  return [
    ["pods", () => podItems(live, signal)],
    ["devices", () => deviceItems(live, signal)],
    ["published objects", () => objectItems(live, signal)],
    ...(live.node?.eviction ? [["rounds", () => roundItems(live, signal)] as const] : []),
  ];
}

/** What is known without asking. */
function liveItems(live: Live): Item[] {
  return [...viewItems(), ...pluginItems(live), ...signalItems(live), ...taintItems(live)];
}

function viewItems(): Item[] {
  const tabs = ["Tree", "Objects", "Topology", "Devices"];
  return [
    ...views.map(({ name, title }) => ({ kind: "view", name: title, address: addressOf(name) })),
    ...tabs.map((tab) => ({
      kind: "view",
      name: `Resources: ${tab}`,
      address: addressOf("resources", [tab.toLowerCase()]),
    })),
  ];
}

async function podItems({ node }: Live, signal: AbortSignal): Promise<Item[]> {
  const [runtime, history] = await Promise.all([
    node?.lifecycle === null ? undefined : ask("pods", { limit: MOST_ITEMS }, signal),
    node?.eviction ? ask("eviction/pods", { limit: MOST_ITEMS }, signal) : undefined,
  ]);
  return listPods("", history?.items ?? [], runtime?.items ?? []).map(
    ({ namespace, name, uid, isRecorded, leftAt, containers }) => ({
      kind: "pod",
      name: `${namespace}/${name}`,
      note: leftAt === null ? containers : `deleted ${at(leftAt)}`,
      address: addressOf("pod", [namespace, name], { uid: isRecorded ? uid : undefined }),
    }),
  );
}

function pluginItems({ plugins = [] }: Live): Item[] {
  return groupPlugins(plugins).map(({ row, health }) => ({
    kind: "plugin",
    name: addressName(row),
    note: `${typeText(row.type)}, ${healthText[health]}`,
    address: addressOf("plugins", [addressName(row)]),
  }));
}

function signalItems({ readings }: Live): Item[] {
  const signals = new Map(
    readings.flatMap((round) =>
      round.readings.map(({ plugin, scope }): [string, Item] => [
        `${plugin}\n${scope}`,
        {
          kind: "signal",
          name: scope || plugin,
          note: `of ${plugin}`,
          address: addressOf("plugins", [plugin]),
        },
      ]),
    ),
  );
  return [...signals.values()];
}

function taintItems(live: Live): Item[] {
  const known = live["eviction/node"];
  if (!known) return [];
  const address = addressOf("now");
  return [
    ...known.conditions.map(({ name, plugin }) => ({
      kind: "condition",
      name,
      note: `of ${plugin}`,
      address,
    })),
    ...(known.taints ?? []).map((taint) => ({
      kind: "taint",
      name: taint.taint,
      note: nodeTaintText(taint, known).slice(taint.taint.length + 2),
      address,
    })),
  ];
}

// Some views follow what others have to ask for.
async function deviceItems({ devices: known, claims: held }: Live, signal: AbortSignal): Promise<Item[]> {
  const [drivers, claims] = await Promise.all([
    known ?? ask("devices", {}, signal),
    held ?? ask("claims", {}, signal),
  ]);
  const devices = await Promise.all(drivers.map((driver) => devicesOf(driver, claims, signal)));
  return [...drivers.flatMap(poolItems), ...claims.flatMap(claimItems), ...devices.flat()];
}

function poolItems({ name: driver, pools }: Driver): Item[] {
  return pools.map(({ name, devices }) => {
    const item = `${driverKey(driver)}/${name}`;
    return {
      kind: "pool",
      name: `${driver}/${name}`,
      note: counted(devices, "device"),
      address: addressOf("resources", ["tree"], { item, open: openText(["node", driverKey(driver), item]) }),
    };
  });
}

function claimItems({ driver, claims }: DriverClaims): Item[] {
  return claims.map(({ namespace, name, state, pods = [], devices }) => ({
    kind: "claim",
    name: `${namespace}/${name}`,
    note: [state, ...(pods.length > 0 ? [`for ${pods.join(", ")}`] : [])].join(" "),
    address: deviceAddress(driver, devices[0]),
  }));
}

async function devicesOf(
  driver: Driver,
  claims: readonly DriverClaims[],
  signal: AbortSignal,
): Promise<Item[]> {
  const devices: Device[] = [];
  let next: string | undefined;
  for (let pages = 0; pages < MOST_PAGES && (pages === 0 || next !== undefined); pages++) {
    const query = { driver: driver.name, limit: MOST_ITEMS, continue: next };
    const page = await ask("devices/list", query, signal);
    devices.push(...page.items);
    next = page.continue;
  }
  const ofDriver = claims.find((each) => each.driver === driver.name);
  return gridDevices(driver, devices, ofDriver).map(({ key, state }) => ({
    kind: "device",
    name: `${driver.name}/${key}`,
    note: state,
    address: deviceAddress(driver.name, key),
  }));
}

function deviceAddress(driver: string, key: string | undefined): string {
  return addressOf("resources", ["devices"], { driver, device: key && `${driver}/${key}` });
}

async function objectItems(live: Live, signal: AbortSignal): Promise<Item[]> {
  const objects = live.objects ?? (await ask("objects", {}, signal));
  return objects.map(({ object }) => ({
    kind: "object",
    name: kindName(object),
    note: object,
    address: addressOf("resources", ["objects"], { object }),
  }));
}

async function roundItems(live: Live, signal: AbortSignal): Promise<Item[]> {
  const byId = new Map<number, Round>();
  let after: number | undefined;
  for (let pages = 0; pages < MOST_PAGES; pages++) {
    const page: Round[] = await ask("eviction/rounds", { since: nodeNow() - HOUR_MS, after }, signal);
    for (const round of page) byId.set(round.id, round);
    after = page.at(-1)?.id;
    if (after === undefined) break;
  }
  for (const round of live.rounds) byId.set(round.id, round);
  return [...byId.values()].sort((a, b) => b.id - a.id).map(roundItem);
}

function roundItem({ id, at: time, met, victims, dryRunVictims }: Round): Item {
  const pods = [...victims, ...dryRunVictims].map(({ namespace, name }) => `${namespace}/${name}`);
  const note = [at(time), ...(pods.length > 0 ? [`selected ${pods.join(", ")}`] : []), ...met].join("; ");
  return { kind: "round", name: `Round ${id}`, note, address: addressOf("round", [String(id)]) };
}

// A round of any time is found by its number, which logs and `explain` name.
function numberedRound(text: string, known: readonly Item[]): Item[] {
  const number = /^(?:round\s*)?#?(\d{1,15})$/i.exec(text.trim())?.[1];
  if (number === undefined) return [];
  const name = `Round ${number}`;
  if (known.some((item) => item.name === name)) return [];
  return [{ kind: "round", name, address: addressOf("round", [number]) }];
}
