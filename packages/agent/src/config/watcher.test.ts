import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry, silentLogger, systemClock } from "@nodekeeper/core/lib";
import { eventually } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ConfigurationWatcher, createConfigMetrics, loadConfiguration } from "./index.ts";

const header = "apiVersion: nodekeeper.dev/v1alpha1\nkind: AgentConfiguration\n";
let folder: string;
let stop: () => Promise<void>;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "nodekeeper-config-"));
  stop = async () => {};
});
afterEach(async () => {
  await stop();
  await rm(folder, { recursive: true });
});

async function start(file: string | undefined, flags: Record<string, string> = {}) {
  const sources = { file, flags, env: {} as Record<string, string>, hostname: "h" };
  const { configuration } = await loadConfiguration(sources);
  const onChange = vi.fn();
  const onRejected = vi.fn();
  const unsubscribe = vi.fn();
  const registry = new Registry();
  let hangUp = () => {};
  const watcher = new ConfigurationWatcher({
    sources,
    initial: configuration,
    clock: systemClock,
    log: silentLogger,
    subscribe(onSignal) {
      hangUp = onSignal;
      return unsubscribe;
    },
    onChange,
    onRejected,
    metrics: createConfigMetrics(registry),
  });
  const controller = new AbortController();
  const running = watcher.run(controller.signal);
  stop = async () => {
    controller.abort();
    await running;
    expect(unsubscribe).toHaveBeenCalledTimes(1);
  };
  // The first check reads the file once to detect changes since startup.
  if (file !== undefined) await eventually(() => expect(watcher.state.outcome).toBe("unchanged"));
  return { watcher, sources, onChange, onRejected, registry, hangUp: () => hangUp() };
}

describe("reload", () => {
  it("applies live settings of a changed file and reports that the others need a restart", async () => {
    const file = join(folder, "config.yaml");
    await writeFile(file, header);
    const { watcher, onChange } = await start(file);
    await writeFile(
      file,
      `${header}log: {level: debug}\nreporting: {collectInterval: 7s, maxContentSize: 1Mi}\n`,
    );
    await eventually(() => expect(onChange).toHaveBeenCalled());
    const [configuration, paths] = onChange.mock.calls[0]!;
    expect(paths).toEqual(["log.level", "reporting.collectInterval"]);
    expect(configuration.reporting).toMatchObject({ collectInterval: 7_000, maxContentSize: 4_194_304 });
    expect(watcher.configuration).toBe(configuration);
    expect(watcher.state).toMatchObject({ outcome: "applied", restartNeeded: ["reporting.maxContentSize"] });
  });

  it("keeps the running configuration when the new file is invalid, reports why once, and recovers", async () => {
    const file = join(folder, "config.yaml");
    await writeFile(file, `${header}log: {level: warn}\n`);
    const { watcher, onChange, onRejected, registry } = await start(file);
    await writeFile(file, `${header}log: {level: loud}\n`);
    await eventually(() => expect(onRejected).toHaveBeenCalled());
    expect(onRejected.mock.calls[0]![0].message).toContain(`${file}:3:14: log.level: got "loud"`);
    expect(watcher.configuration.log.level).toBe("warn");
    expect(watcher.state).toMatchObject({ outcome: "rejected", error: { code: "invalid", id: "NK1001" } });
    expect(onChange).not.toHaveBeenCalled();
    expect(await registry.metrics()).toContain('nodekeeper_config_reloads_total{outcome="rejected"} 1');

    await writeFile(file, `${header}log: {level: error}\n`);
    await eventually(() => expect(watcher.configuration.log.level).toBe("error"));
    expect(watcher.state.error).toBeUndefined();
  });

  it("detects a ConfigMap's swapped symlink", async () => {
    for (const [version, level] of Object.entries({ "..1": "info", "..2": "debug" })) {
      await mkdir(join(folder, version));
      await writeFile(join(folder, version, "config.yaml"), `${header}log: {level: ${level}}\n`);
    }
    await symlink("..1", join(folder, "..data"));
    await symlink("..data/config.yaml", join(folder, "config.yaml"));
    const { watcher } = await start(join(folder, "config.yaml"));
    await symlink("..2", join(folder, "..data_tmp"));
    await rename(join(folder, "..data_tmp"), join(folder, "..data"));
    await eventually(() => expect(watcher.configuration.log.level).toBe("debug"));
  });

  it("keeps running when the file is removed, and loads it when it exists again", async () => {
    const file = join(folder, "config.yaml");
    await writeFile(file, header);
    const { watcher, onRejected } = await start(file);
    await rm(file);
    await eventually(() => expect(onRejected).toHaveBeenCalled());
    expect(onRejected.mock.calls[0]![0].message).toContain("does not exist");
    await writeFile(file, `${header}log: {level: debug}\n`);
    await eventually(() => expect(watcher.configuration.log.level).toBe("debug"));
  });

  it("lets a flag override the changed file", async () => {
    const file = join(folder, "config.yaml");
    await writeFile(file, header);
    const { watcher, onChange } = await start(file, { logLevel: "error" });
    const before = watcher.state.at!;
    await writeFile(file, `${header}log: {level: debug}\n`);
    await eventually(() => expect(watcher.state.at).toBeGreaterThan(before));
    expect(watcher.state.outcome).toBe("unchanged");
    expect(onChange).not.toHaveBeenCalled();
  });

  it("reloads on SIGHUP although no file changed, and without any file", async () => {
    const { watcher, hangUp } = await start(undefined);
    hangUp();
    await eventually(() => expect(watcher.state.outcome).toBe("unchanged"));
    expect(watcher.state.at).toBeTypeOf("number");
  });
});
