import { Registry, silentLogger, systemClock } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PodLifecycleEventGenerator } from "../lifecycle/index.ts";
import { MemoryRuntime } from "../lifecycle/testing/memory-runtime.ts";
import { lifecycleRoutes } from "../server/index.ts";
import { serveRoutes } from "../server/testing/serve-routes.ts";
import { httpConnection } from "./agent-connection.ts";
import { eventsCommand } from "./events.ts";
import { runCli } from "./index.ts";
import { podsCommand } from "./pods.ts";
import { runCommand } from "./testing/run-command.ts";

// Against the routes over HTTP, and a runtime in memory.
let runtime: MemoryRuntime;
let address: string;
const ends: (() => Promise<unknown> | unknown)[] = [];

beforeEach(async () => {
  runtime = new MemoryRuntime();
  const common = { clock: systemClock, log: silentLogger, registry: new Registry() };
  const lifecycle = new PodLifecycleEventGenerator({ ...common, runtime, settings: { relistPeriod: 20 } });
  const controller = new AbortController();
  const running = lifecycle.run(controller.signal);
  const server = await serveRoutes(lifecycleRoutes(lifecycle, systemClock));
  ends.push(async () => {
    controller.abort();
    await Promise.all([running, server.stop()]);
  });
  address = server.address;
});

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function cli(...args: string[]): Promise<string> {
  const argv = ["node", "nodekeeper", ...args, "--server", address];
  const { status, out, stderr } = await runCommand((output) => runCli(argv, output));
  return status === 0 ? out : `${status}: ${stderr}`;
}

function addPod(name: string): void {
  runtime.addPod(name);
  runtime.pods.get(name)!.name = name;
}

/** A command that runs until `stop`; its lines. */
function running(work: (write: (text: string) => void, signal: AbortSignal) => Promise<void>) {
  const controller = new AbortController();
  const lines: string[] = [];
  const done = work((text) => void lines.push(...text.trimEnd().split("\n")), controller.signal);
  const stop = async () => {
    controller.abort();
    await done;
  };
  ends.push(stop);
  return { lines, stop };
}

const agent = () => httpConnection({ address, name: "agent", advice: "" });
const terminal = (write: (text: string) => void) => ({ write, isTerminal: false, columns: 120 });

describe("pods", () => {
  beforeEach(async () => {
    for (const name of ["web", "db"]) addPod(name);
    await until("they are listed", async () => (await cli("pods")).split("\n").length === 4);
  });

  it("selects by namespace, name and UID, and reports truly that there are none", async () => {
    const { namespace, uid } = runtime.pods.get("web")!;
    expect(await cli("pods", "-n", "nope")).toBe("The container runtime has no pods in namespace nope.\n");
    expect(await cli("pods", "-n", "nope", "-A")).toMatch(/ web /);
    expect(await cli("pods", "nope")).toBe("The container runtime has no pod default/nope.\n");
    const expected = expect.not.stringMatching(/ db /);
    expect(await cli("pods", `${namespace}/web`)).toEqual(expected);
    expect(await cli("pods", "-n", namespace, "web")).toMatch(/ web /);
    expect(await cli("pods", "a/b/c")).toMatch(
      /^2: nodekeeper: invalid pod "a\/b\/c": expected \[NAMESPACE\/\]NAME or a UID/,
    );
    expect(await cli("pods", "-n", namespace, "-o", "yaml")).toContain(`- uid: ${uid}\n`);
  });

  it("watched, prints a pod again when it changes and when it is removed", async () => {
    const { lines } = running((write, signal) =>
      podsCommand(
        agent(),
        { format: "table", isWatched: true, selector: {} },
        { output: terminal(write), clock: systemClock, signal },
      ),
    );
    await until("both pods", () => lines.length >= 3);
    runtime.set("web", "app", "running");
    await until("the change", () => lines.slice(3).some((line) => / web .*Running/.test(line)));
    expect(lines.filter((line) => / db /.test(line))).toHaveLength(1);
    runtime.removePod("db");
    await until("the removal", () => lines.some((line) => / db .*Removed/.test(line)));
  });

  it("watched, finds a change after more events of other pods than one response searches", async () => {
    const { namespace } = runtime.pods.get("web")!;
    const selector = { namespace, name: "web" };
    const { lines } = running((write, signal) =>
      podsCommand(
        agent(),
        { format: "table", isWatched: true, selector },
        { output: terminal(write), clock: systemClock, signal },
      ),
    );
    await until("the pod", () => lines.length >= 2);
    for (let id = 0; id < 20_500; id++) runtime.set("db", `db${id}`, "running");
    const started = async () => (await cli("pods", "db")).includes("20500/20500");
    await until("more events than one response searches", started);
    runtime.set("web", "app", "running");
    await until("the change", () => lines.some((line) => / web .*Running/.test(line)));
  });
});

describe("events", () => {
  it("of a pod, of a namespace, and followed from a cursor on", async () => {
    addPod("web");
    await until("it is listed", async () => (await cli("pods")).includes("web"));
    const { namespace } = runtime.pods.get("web")!;
    runtime.set("web", "app", "running");
    await until("it has started", async () => (await cli("events")).includes("ContainerStarted"));
    expect(await cli("events", "-n", namespace, "web")).toContain(`${namespace}/web`);
    expect(await cli("events", "other")).toMatch(
      /^No events of pod default\/other since 20.*Z, when the event log begins\.\n$/,
    );
    expect(await cli("events", "other", "--since", "0s")).toMatch(/^No events of .* since 20.*Z\.\n$/);
    expect(await cli("events", "-n", "nope", "--since", "5m")).toMatch(
      /^No events of pods in namespace nope since /,
    );
    const { cursor } = JSON.parse((await cli("events", "-o", "json")).trimEnd().split("\n").at(-1)!);

    const { lines } = running((write, signal) => {
      const options = { format: "text", isFollowed: true, since: cursor, selector: {} } as const;
      return eventsCommand(agent(), options, { output: terminal(write), clock: systemClock, signal });
    });
    runtime.set("web", "app", "exited", "container", 3);
    await until("its end", () => lines.some((line) => /ContainerDied .*exit code 3/.test(line)));
    expect(lines.some((line) => line.includes("ContainerStarted"))).toBe(false);
    expect(await cli("events", "--since", "long ago")).toMatch(/^2: .*--since must be a duration/s);
  });
});
