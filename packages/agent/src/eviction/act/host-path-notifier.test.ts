import { execFileSync } from "node:child_process";
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock, Registry, silentLogger } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createEvictionMetrics } from "../metrics.ts";
import { observeJson } from "../observe/observed-pod.ts";
import { FakePods, jsonPod } from "../testing/round-parts.ts";
import { HostPathNotifier } from "./host-path-notifier.ts";

let isDryRun: boolean;
let base: string;
let root: string;
let pods: FakePods;
let clock: FakeClock;
let registry: Registry;
let notifier: HostPathNotifier;
let stop: AbortController;
let running: Promise<void>;

const annotations = { "katalyst.kubewharf.io/pod_soft_evict_notify": "true" };
const directory = (name: string) => join(root, `${name}@@__@@default`);
const file = (name: string) => join(directory(name), "soft_eviction_notify");
const notice = (name: string) => ({ uid: name, namespace: "default", name, plugin: "p", reason: "r" });
const counted = async (result: string) =>
  Number(
    /{result="(\w+)"} (\d+)/.exec(
      (await registry.metrics()).split("\n").find((l) => l.includes(`notices_total{result="${result}"}`)) ??
        "",
    )?.[2] ?? 0,
  );

beforeEach(() => {
  isDryRun = false;
  base = mkdtempSync(join(tmpdir(), "nk-notices-"));
  root = join(base, "notices");
  pods = new FakePods("silent");
  pods.pods.set("web", observeJson(jsonPod("web", { metadata: { annotations } })));
  clock = new FakeClock(Date.UTC(2026, 10, 21, 4, 24, 22, 520));
  registry = new Registry();
  notifier = new HostPathNotifier({
    rootPath: root,
    pods,
    isDryRun: () => isDryRun,
    clock,
    log: silentLogger,
    metrics: createEvictionMetrics(registry),
  });
  stop = new AbortController();
});

afterEach(async () => {
  stop.abort();
  await running;
  rmSync(base, { recursive: true });
});

function start(): void {
  running = notifier.run(stop.signal);
}

it("a pod that asked for notice has a directory, and the time of the last notice in a file", async () => {
  start();
  await until("the directory", () => existsSync(directory("web")));
  expect(readdirSync(root)).toEqual(["web@@__@@default"]);
  notifier.notify([notice("web")]);
  await until("the file", () => existsSync(file("web")) && readFileSync(file("web"), "utf8") !== "");
  expect(readFileSync(file("web"), "utf8")).toBe("2026-11-21 04:24:22.520 +0000 UTC");
  const { ino } = statSync(file("web"));
  clock.jump(5_000);
  notifier.notify([notice("web")]);
  await until(
    "the new time",
    () => readFileSync(file("web"), "utf8") === "2026-11-21 04:24:27.520 +0000 UTC",
  );
  expect(statSync(file("web")).ino).toBe(ino);
});

it("a directory is removed after its pod, and others below the path stay", async () => {
  for (const name of ["deleted@@__@@default", "plain", "a@@__@@b@@__@@c"])
    mkdirSync(join(root, name), { recursive: true });
  writeFileSync(join(root, "deleted@@__@@default", "soft_eviction_notify"), "x");
  writeFileSync(join(root, "x@@__@@y"), "a file");
  pods.isSynced = false;
  start();
  await clock.step(60_000);
  expect(readdirSync(root)).toContain("deleted@@__@@default");
  pods.isSynced = true;
  await until("it is removed", () => !existsSync(join(root, "deleted@@__@@default")), {
    clock,
    stepMs: 10_000,
  });
  await until("the pod's directory", () => existsSync(directory("web")), { clock });
  expect(readdirSync(root).sort()).toEqual(["a@@__@@b@@__@@c", "plain", "web@@__@@default", "x@@__@@y"]);
  pods.pods.delete("web");
  await until("the pod's directory is removed", () => !existsSync(directory("web")), {
    clock,
    stepMs: 10_000,
  });
});

it("a pod that is deleted before its notice is written gets no directory", async () => {
  notifier.notify([notice("gone"), notice("web")]);
  start();
  await until("the other pod's notice", () => existsSync(file("web")));
  expect(readdirSync(root)).toEqual(["web@@__@@default"]);
  expect(await counted("failed")).toBe(0);
});

it("a notice that can't be written counts as failed, and is not written when the path can be read again", async () => {
  writeFileSync(root, "not a directory");
  notifier.notify([notice("web")]);
  start();
  await until("the failure is counted", async () => (await counted("failed")) === 1);
  rmSync(root);
  await until("the pod's directory", () => existsSync(directory("web")), { clock, stepMs: 10_000 });
  notifier.notify([]);
  await clock.step(60_000);
  expect(readdirSync(directory("web"))).toEqual([]);
  expect(await counted("written")).toBe(0);
});

it("a notice of before dry run is not written after it", async () => {
  isDryRun = true;
  notifier.notify([notice("web")]);
  start();
  await clock.step(60_000);
  isDryRun = false;
  await until("the pod's directory", () => existsSync(directory("web")), { clock, stepMs: 10_000 });
  await clock.step(60_000);
  expect(readdirSync(directory("web"))).toEqual([]);
});

it.each<[string, (path: string, target: string) => void]>([
  ["a symbolic link", (path, target) => symlinkSync(target, path)],
  ["a dangling link", (path) => symlinkSync(join(base, "new"), path)],
  ["a hard link", (path, target) => linkSync(target, path)],
  ["a FIFO", (path) => void execFileSync("mkfifo", [path])],
  ["a directory", (path) => mkdirSync(path)],
])("writes to nothing that a pod puts in the file's place: %s", async (_, put) => {
  const target = join(base, "target");
  writeFileSync(target, "untouched");
  pods.pods.set("other", observeJson(jsonPod("other", { metadata: { annotations } })));
  mkdirSync(directory("web"), { recursive: true });
  put(file("web"), target);
  start();
  notifier.notify([notice("web"), notice("other")]);
  await until("the other pod's notice", () => existsSync(file("other")));
  await until("the failure is counted", async () => (await counted("failed")) === 1);
  expect(readFileSync(target, "utf8")).toBe("untouched");
  expect(existsSync(join(base, "new"))).toBe(false);
});
