import { FakeClock, silentLogger } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { OwnPlugins } from "./own-plugins.ts";

const never = new AbortController().signal;

it.each([true, false])(
  "a driver that registers with its own plugin while it is looked for stays left alone: %s",
  async (registers) => {
    const found: boolean[] = [];
    const plugins = new OwnPlugins({
      records: { of: () => [{ uid: "1" }] },
      drivers: { foundAlone: (_driver: string, isAlone: boolean) => void found.push(isAlone) },
      settings: () => ({ kubeletPlugin: { registryDirectory: "/nonexistent" } }),
      clock: new FakeClock(),
      log: silentLogger,
    } as never);
    const state = { name: "gpu.example.com", isLeftAlone: false, isFoundAlone: false };
    const looking = plugins.look(state as never, never);
    state.isLeftAlone = registers;
    await looking;
    expect(found).toEqual(registers ? [] : [false]);
  },
);
