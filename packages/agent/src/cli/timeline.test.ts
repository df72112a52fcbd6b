import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLogger, systemClock } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { apiRoute } from "../server/index.ts";
import { type ServedRoutes, serveRoutes } from "../server/testing/serve-routes.ts";
import { Marks, StateDatabase } from "../state/index.ts";
import { httpConnection } from "./agent-connection.ts";
import { runCli } from "./index.ts";
import { runCommand } from "./testing/run-command.ts";
import { timelineCommand } from "./timeline.ts";

let directory: string;
let database: StateDatabase;
let marks: Marks;
let server: ServedRoutes;

function open(): void {
  database = StateDatabase.open({ directory, clock: systemClock, log: silentLogger });
  marks = new Marks(database, systemClock, silentLogger);
}

const serve = (address?: string) => serveRoutes([apiRoute("marks", (query) => marks.page(query))], address);

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "nk-timeline-"));
  open();
  server = await serve();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await server.stop();
  database.close();
  rmSync(directory, { recursive: true });
});

async function cli(...args: string[]) {
  const argv = ["node", "nodekeeper", "timeline", ...args, "--server", server.address];
  return await runCommand((output) => runCli(argv, output));
}

it("prints what happened, over all pages, without what could change the terminal", async () => {
  expect((await cli()).out).toMatch(/^Nothing recorded since 20.*Z\.\n$/);
  expect((await cli()).stderr).toMatch(/^nodekeeper: No records before 20.*Z are kept\.\n$/);
  const { since } = database.coverage.get();
  database.coverage.addGap({ from: since, to: since + 5, why: "the disk was full" });
  expect((await cli()).stderr).toMatch(
    /\nnodekeeper: Records are missing between 20.*Z and 20.*Z: the disk was full\.\n$/,
  );
  marks.add([{ kind: "pluginLost", title: "long ago", at: Date.now() - 5 * 86_400_000 }]);
  marks.add(Array.from({ length: 700 }, (_, at) => ({ kind: "pluginLost", title: `p${at} lost` })));
  marks.add([{ kind: "evictionSelected", title: "default/web \u001b[31m selected", round: 7 }]);
  const lines = (await cli()).out.trimEnd().split("\n");
  expect(lines).toHaveLength(701);
  expect(lines[0]).toMatch(/^20\S+Z {2}p0 lost$/);
  expect(lines.at(-1)).toMatch(/selected \(round 7\)$/);
  expect(lines.at(-1)).not.toContain("\u001b");
  expect((await cli("--since", "240h")).out).toContain("long ago");
  const [first] = (await cli("-o", "json")).out.split("\n");
  expect(JSON.parse(first!)).toMatchObject({ id: 2, kind: "pluginLost", title: "p0 lost" });
  expect((await cli("--since", "yesterday")).status).toBe(2);
});

/** Starts `timeline --follow`. `titles` returns what it has printed. */
function following() {
  const controller = new AbortController();
  let text = "";
  const write = (more: string) => {
    text += more;
  };
  const agent = httpConnection({ address: server.address, name: "agent", advice: "" });
  const options = { format: "text", isFollowed: true, since: "1h" } as const;
  const output = { write, isTerminal: false, columns: 120 };
  const done = timelineCommand(agent, options, { output, clock: systemClock, signal: controller.signal });
  const titles = () => text.split("\n").flatMap((line) => line.split("  ")[1] ?? []);
  const stop = async () => {
    controller.abort();
    await done;
  };
  return { titles, stop };
}

it("followed, prints each new one once", async () => {
  const { titles, stop } = following();
  for (const title of ["one", "two"]) {
    marks.add([{ kind: "agentStopped", title }]);
    await until(title, () => titles().includes(title));
  }
  await stop();
  expect(titles()).toEqual(["one", "two"]);
});

it.each([
  { back: "with a new database", isNew: true },
  // A round's marks have the time of its start, which other marks may have preceded.
  { back: "with a mark older than the last one", isNew: false },
])("followed, continues when the agent is back $back", async ({ isNew }) => {
  const stderr = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  marks.add(["one", "two"].map((title) => ({ kind: "pluginLost", title })));
  const { titles, stop } = following();
  await until("both", () => titles().length === 2);
  const { address } = server;
  await server.stop();
  await until("its failure", () => stderr.mock.calls.some(([text]) => String(text).includes("retrying")));
  database.close();
  if (isNew) rmSync(directory, { recursive: true });
  open();
  marks.add([{ kind: "conditionSet", title: "three", at: Date.now() - (isNew ? 0 : 60_000) }]);
  server = await serve(address);
  await until("the third", () => titles().includes("three"));
  await stop();
  expect(titles()).toEqual(["one", "two", "three"]);
});
