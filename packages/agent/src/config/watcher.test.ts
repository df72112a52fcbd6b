import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger, InotifyWatches, Registry, silentLogger, systemClock } from "@nodekeeper/core/lib";
import { eventually } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ConfigurationWatcher, createConfigMetrics, loadConfiguration } from "./index.ts";
import { lastGoodPath, readLastGood } from "./last-good.ts";

const header = "apiVersion: nodekeeper.dev/v1alpha1\nkind: AgentConfiguration\n";
let directory: string;
let stop: () => Promise<void>;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "nodekeeper-config-"));
  stop = async () => {};
});
afterEach(async () => {
  await stop();
  await rm(directory, { recursive: true });
});

async function start(file: string | undefined, flags: Record<string, string> = {}) {
  const sources = {
    file,
    flags: { stateDir: directory, ...flags },
    env: {} as Record<string, string>,
    hostname: "h",
  };
  const { configuration } = await loadConfiguration(sources);
  const onChange = vi.fn();
  const onRefused = vi.fn();
  const unsubscribe = vi.fn();
  const registry = new Registry();
  const rejections: Record<string, unknown>[] = [];
  /** Returns the number of reloads with an outcome, in metrics. */
  const reloads = async (outcome: string) => {
    const { values } = await registry.getSingleMetric("nodekeeper_config_reloads_total")!.get();
    return values.find(({ labels }) => labels.outcome === outcome)?.value ?? 0;
  };
  let hangUp = () => {};
  const watcher = new ConfigurationWatcher({
    sources,
    initial: configuration,
    clock: systemClock,
    log: createLogger("error", { write: (line) => rejections.push(JSON.parse(line)) }),
    subscribe(onSignal) {
      hangUp = onSignal;
      return unsubscribe;
    },
    onChange,
    onRefused,
    metrics: createConfigMetrics(registry),
    watches: new InotifyWatches(silentLogger),
  });
  const controller = new AbortController();
  const running = watcher.run(controller.signal);
  stop = async () => {
    controller.abort();
    await running;
    expect(unsubscribe).toHaveBeenCalledTimes(1);
  };
  // The first check reads the file once to detect changes since startup.
  if (file !== undefined) await expect.poll(() => reloads("unchanged")).toBe(1);
  const kept = () => (file === undefined ? undefined : readLastGood(directory, file).text);
  const check = () => watcher.healthCheck().check();
  return { onChange, onRefused, rejections, reloads, kept, check, env: sources.env, hangUp: () => hangUp() };
}

describe("reload", () => {
  it("applies live settings of a changed file and reports that the others need a restart", async () => {
    const file = join(directory, "config.yaml");
    await writeFile(file, header);
    const { onChange, reloads, kept } = await start(file);
    expect(kept()).toBe(header);
    await writeFile(
      file,
      `${header}log: {level: debug}\nreporting: {collectInterval: 7s, maxContentSize: 1Mi}\n`,
    );
    await eventually(() => expect(onChange).toHaveBeenCalled());
    const [configuration, paths] = onChange.mock.calls[0]!;
    expect(paths).toEqual(["log.level", "reporting.collectInterval"]);
    expect(configuration.reporting).toMatchObject({ collectInterval: 7_000, maxContentSize: 4_194_304 });
    await expect.poll(() => reloads("applied")).toBe(1);
    // A restart would use it too.
    expect(kept()).toContain("maxContentSize: 1Mi");
  });

  it("forgets the last good text if a later one can't be kept, and keeps that as soon as it can", async () => {
    const file = join(directory, "config.yaml");
    await writeFile(file, header);
    const { kept, onChange } = await start(file);
    // A directory where the temporary file would be written.
    await mkdir(`${lastGoodPath(directory)}.new`);
    await writeFile(file, `${header}log: {level: debug}\n`);
    await eventually(() => expect(onChange).toHaveBeenCalled());
    expect(kept()).toBeUndefined();
    await rm(`${lastGoodPath(directory)}.new`, { recursive: true });
    await eventually(() => expect(kept()).toContain("debug"));
  });

  it("is tried again while it is refused, also if the file has not changed, and reports each reason once", async () => {
    const file = join(directory, "config.yaml");
    await writeFile(file, header);
    const { check, rejections, reloads, env } = await start(file);
    env.NODEKEEPER_LOG_LEVEL = "loud";
    await writeFile(file, `${header}log: {level: warn}\n`);
    await eventually(() => expect(rejections).toHaveLength(1));
    await writeFile(join(directory, "another"), "");
    await writeFile(file, `${header}log: {level: error}\n`);
    await writeFile(join(directory, "another"), "more");
    delete env.NODEKEEPER_LOG_LEVEL;
    // As the check every 10 s.
    await eventually(async () => {
      await writeFile(join(directory, "another"), "");
      expect(check()).toEqual({ ok: true, message: "" });
    });
    expect(rejections).toHaveLength(1);
    expect(await reloads("rejected")).toBe(1);
  });

  it("keeps the running configuration when the new file is invalid, reports why once, and recovers", async () => {
    const file = join(directory, "config.yaml");
    await writeFile(file, `${header}log: {level: warn}\n`);
    const { onChange, onRefused, rejections, reloads, kept, check } = await start(file);
    expect(check()).toEqual({ ok: true, message: "" });
    await writeFile(file, `${header}log: {level: loud}\n`);
    await eventually(() => expect(rejections).toHaveLength(1));
    const err = expect.stringContaining(`${file}:3:14: log.level: got "loud"`);
    expect(rejections[0]).toMatchObject({ err, errCode: "invalid", errorId: "NK1001" });
    expect(onChange).not.toHaveBeenCalled();
    expect(await reloads("rejected")).toBe(1);
    const message = `The last good configuration is in force: ${file}:3:14: log.level: got "loud", expected one of debug, info, warn, error`;
    expect(check()).toEqual({ ok: false, message, errorId: "NK1001" });
    expect(onRefused.mock.calls).toEqual([[message]]);
    expect(kept()).toBe(`${header}log: {level: warn}\n`);

    await writeFile(file, `${header}log: {level: error}\n`);
    await eventually(() => expect(onChange).toHaveBeenCalledTimes(1));
    await eventually(() => expect(check().ok).toBe(true));
    expect(kept()).toBe(`${header}log: {level: error}\n`);
    expect(onChange.mock.calls[0]![0].log.level).toBe("error");
  });

  it("detects a ConfigMap's swapped symlink", async () => {
    for (const [version, level] of Object.entries({ "..1": "info", "..2": "debug" })) {
      await mkdir(join(directory, version));
      await writeFile(join(directory, version, "config.yaml"), `${header}log: {level: ${level}}\n`);
    }
    await symlink("..1", join(directory, "..data"));
    await symlink("..data/config.yaml", join(directory, "config.yaml"));
    const { onChange } = await start(join(directory, "config.yaml"));
    await symlink("..2", join(directory, "..data_tmp"));
    await rename(join(directory, "..data_tmp"), join(directory, "..data"));
    await eventually(() => expect(onChange.mock.lastCall?.[0].log.level).toBe("debug"));
  });

  it("keeps running when the file is removed, and loads it when it exists again", async () => {
    const file = join(directory, "config.yaml");
    await writeFile(file, header);
    const { onChange, rejections } = await start(file);
    await rm(file);
    await eventually(() => expect(rejections).toHaveLength(1));
    expect(rejections[0]!.err).toContain("does not exist");
    await writeFile(file, `${header}log: {level: debug}\n`);
    await eventually(() => expect(onChange.mock.lastCall?.[0].log.level).toBe("debug"));
  });

  it("lets a flag override the changed file", async () => {
    const file = join(directory, "config.yaml");
    await writeFile(file, header);
    const { onChange, reloads } = await start(file, { logLevel: "error" });
    await writeFile(file, `${header}log: {level: debug}\n`);
    await expect.poll(() => reloads("unchanged")).toBe(2);
    expect(onChange).not.toHaveBeenCalled();
  });

  it("reloads on SIGHUP although no file changed, and without any file", async () => {
    const { reloads, hangUp } = await start(undefined);
    hangUp();
    await expect.poll(() => reloads("unchanged")).toBe(1);
  });
});
