import { FakeClock, Registry, silentLogger } from "@nodekeeper/core/lib";
import { beforeEach, describe, expect, it } from "vitest";
import { Vacancies } from "./context.ts";
import { createPluginMetrics } from "./metrics.ts";
import { type PluginNameStore, PluginNames } from "./plugin-names.ts";
import type { NamedUser } from "./shares.ts";
import { RecordingHandler } from "./testing/setup.ts";

const type = "ReporterPlugin";

let clock: FakeClock;
let handler: RecordingHandler;
let stored: NamedUser[];
let vacancyCount: number;
let displaced: string[];

beforeEach(() => {
  clock = new FakeClock();
  handler = new RecordingHandler(type);
  handler.hold = 60_000;
  stored = [];
  vacancyCount = 0;
  displaced = [];
});

const store: PluginNameStore = {
  names: () => stored,
  save: ({ name, uid }) => void stored.push({ type, name, uid }),
  remove: ({ name }) => {
    stored = stored.filter((each) => each.name !== name);
  },
};

function make(nameOwners: string[] = [], ownStore = store): PluginNames {
  const vacancies = new Vacancies();
  const countVacancy = () => {
    vacancyCount++;
    vacancies.wait(countVacancy);
  };
  vacancies.wait(countVacancy);
  const names = new PluginNames({
    settings: { directories: ["/plugins"], maxPlugins: 4, nameOwners, returnMs: 10_000 },
    handlers: new Map([[type, handler]]),
    onChange: ({ name }) => void displaced.push(name),
    vacancies,
    metrics: createPluginMetrics(new Registry()),
    clock,
    log: silentLogger,
    store: ownStore,
  });
  names.start();
  return names;
}

const plugin = (name: string, uid: number, directory = "") => {
  const socket = `/plugins/${directory}${name}.sock`;
  return { type, name, uid, endpoint: socket, registrationSocket: socket, versions: [], generation: 1 };
};

describe("a name", () => {
  it("is held while the handler keeps something without a time limit, and free soon after that", async () => {
    const names = make();
    names.take(plugin("a", 1));
    handler.hold = Number.POSITIVE_INFINITY;
    names.leave(plugin("a", 1));
    expect(() => names.take(plugin("a", 2))).toThrow(
      'the ReporterPlugin name "a" belongs to user ID 1, whose plugin was lost; free when its last claim is unprepared',
    );
    await clock.step(3_600_000);
    handler.hold = 0;
    await clock.step(10_000);
    expect(vacancyCount).toBe(1);
    expect(stored).toEqual([]);
    names.take(plugin("a", 2));
    expect(stored).toEqual([{ type, name: "a", uid: 2 }]);
  });

  it("is given back if the registration fails, to the user who had it before", async () => {
    const names = make();
    names.take(plugin("a", 1))();
    expect(stored).toEqual([]);
    names.take(plugin("a", 1));
    names.leave(plugin("a", 1));
    await clock.step(1_000);
    names.take(plugin("a", 1))();
    expect(() => names.take(plugin("a", 2))).toThrow("free in 59 s");
    await clock.step(59_000);
    names.take(plugin("a", 2));
  });

  it("from before the agent's start is held for the time to return at least", async () => {
    stored = [{ type, name: "a", uid: 1 }];
    handler.hold = 0;
    const names = make();
    await clock.step(9_999);
    expect(() => names.take(plugin("A", 2))).toThrow("free in 1 s");
    names.take(plugin("a", 1));
    await clock.step(60_000);
    expect(() => names.take(plugin("a", 2))).toThrow("whose plugin is registered");
  });

  it("that is bound is taken from another user who had it before", () => {
    stored = [{ type, name: "a", uid: 1 }];
    const names = make(["a=2"]);
    names.take(plugin("a", 2));
    expect(() => names.take(plugin("a", 1))).toThrow('the name "a" is bound to user ID 2');
  });

  it("that can't be stored is held all the same", () => {
    const fail = () => {
      throw new Error("disk full");
    };
    const names = make([], { names: () => [], save: fail, remove: fail });
    names.take(plugin("a", 1));
    expect(() => names.take(plugin("a", 2))).toThrow("belongs to user ID 1");
  });
});

describe("lost plugins", () => {
  function lose(names: PluginNames, ...plugins: ReturnType<typeof plugin>[]): void {
    for (const each of plugins) {
      names.take(each);
      names.leave(each);
    }
  }

  it("of one user are at most half, whatever directories it uses", () => {
    lose(make(), plugin("a", 1, "x/"), plugin("b", 1, "y/"), plugin("c", 1));
    expect(displaced).toEqual(["a"]);
    expect(handler.calls).toEqual(["forget a"]);
  });

  it("of root in the watched directory itself displace the oldest of their own once all places are taken", () => {
    const names = make();
    lose(names, plugin("a", 1), plugin("r0", 0), plugin("r1", 0), plugin("r2", 0));
    expect(displaced).toEqual([]);
    lose(names, plugin("r3", 0), plugin("b", 2));
    expect(displaced).toEqual(["r0", "r1"]);
  });
});
