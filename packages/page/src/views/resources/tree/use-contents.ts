import { useRef } from "preact/hooks";
import { ask, Refusal } from "../../../api.ts";
import type { Live } from "../../../live.ts";
import { type Answer, useRead } from "../../../parts/use-answer.ts";
import type { KnownDevices } from "./driver-nodes.ts";

// Of a driver. More are in the tab of devices.
const MOST_DEVICES = 1_000;

/** What the tree shows, as far as the agent has it. */
export interface Contents {
  /** Contents of published objects, by `object`. */
  readonly objects: ReadonlyMap<string, unknown>;
  /** Devices of the drivers that are open, by driver. */
  readonly devices: ReadonlyMap<string, KnownDevices>;
}

/** Reads the contents of the tree, as `useRead` does: again whenever they change, or another driver is open. */
export function useContents(live: Live, openDrivers: readonly string[]): Answer<Contents> {
  const { objects, devices, claims } = live;
  const wanted = useRef({ objects: [] as string[], drivers: openDrivers });
  wanted.current = { objects: objects?.map(({ object }) => object) ?? [], drivers: openDrivers };
  const version = [
    objects?.map(({ object, writes, lastWriteAt }) => `${object} ${writes} ${lastWriteAt}`),
    devices?.map(({ messageAt, devices: count, state }) => `${messageAt} ${count} ${state}`),
    openDrivers,
    openDrivers.length > 0 && JSON.stringify(claims),
  ].join("\n");
  return useRead({ key: objects && "tree", version }, (signal) => read(wanted.current, signal));
}

async function read(
  wanted: { objects: readonly string[]; drivers: readonly string[] },
  signal: AbortSignal,
): Promise<Contents> {
  const [objects, devices] = [new Map<string, unknown>(), new Map<string, KnownDevices>()];
  for (const object of wanted.objects) {
    const answer = await unlessGone(ask("objects/content", { object }, signal));
    if (answer) objects.set(object, answer.content);
  }
  for (const driver of wanted.drivers) {
    const page = await unlessGone(ask("devices/list", { driver, limit: MOST_DEVICES }, signal));
    if (page) devices.set(driver, { devices: page.items, hasMore: page.continue !== undefined });
  }
  return { objects, devices };
}

// An object or a driver may disappear before it is read; the stream says so next.
async function unlessGone<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof Refusal && error.isNotFound) return undefined;
    throw error;
  }
}
