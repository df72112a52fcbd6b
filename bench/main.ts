// Measures the budgets: npm run bench -- SUITE [--quick] [-o json]; fleet and archive also take --agents N
import { parseArgs } from "node:util";
import { keepProcessSmall } from "../packages/agent/src/cli/memory.ts";
import { benchArchive } from "./archive.ts";
import { benchClaims } from "./claims.ts";
import { benchDevices } from "./devices.ts";
import { benchEviction } from "./eviction.ts";
import { type Figure, printFigures } from "./figures.ts";
import { benchFleet } from "./fleet.ts";
import { benchFootprint } from "./footprint.ts";
import { benchHost } from "./host.ts";
import { benchLargeReports } from "./large-reports.ts";
import { benchLifecycle } from "./lifecycle.ts";
import { benchMemory } from "./memory.ts";
import { benchPage } from "./page.ts";
import { benchPageMemory } from "./page-memory.ts";
import { benchReporting } from "./reporting.ts";
import { limitMinutes, withTimeLimit } from "./time-limit.ts";

const suites: Record<string, (quick: boolean) => Promise<Figure[]>> = {
  reporting: benchReporting,
  "large-reports": benchLargeReports,
  lifecycle: benchLifecycle,
  devices: benchDevices,
  claims: benchClaims,
  eviction: benchEviction,
  footprint: benchFootprint,
  memory: benchMemory,
  host: benchHost,
  page: benchPage,
  "page-memory": benchPageMemory,
  fleet: (quick) => benchFleet({ agents, steadyMs: quick ? 60_000 : 600_000 }),
  archive: (quick) =>
    benchArchive({ agents, steadyMs: quick ? 30_000 : 120_000, outageMs: quick ? 20_000 : 180_000 }),
};

const usage = `usage: npm run bench -- SUITE [--quick] [-o json] [--agents N]

Measures the budgets of docs/benchmarks.md. Suites: ${Object.keys(suites).join(", ")}

  --quick       shorter runs
  -o json       prints the figures as JSON
  --agents N    agents of the suites fleet and archive; 300, with --quick 50`;

const { positionals, values } = readArguments();
const [name = ""] = positionals;
const suite = suites[name];
const agents = Number(values.agents ?? (values.quick ? 50 : 300));
if (values.help) {
  console.log(usage);
  process.exit(0);
}
if (!suite || positionals.length > 1 || !Number.isInteger(agents) || agents < 1) fail();
// These measure parts of the agent in this process: with the flags that the agent runs with.
if (name === "lifecycle" || name === "eviction") keepProcessSmall();
const minutes = limitMinutes[name]![values.quick ? "quick" : "full"];
const figures = await withTimeLimit(name, minutes, () => suite(values.quick));
if (values.output === "json") console.log(JSON.stringify(figures, null, 2));
else printFigures(figures);

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        quick: { type: "boolean", default: false },
        output: { type: "string", short: "o", default: "text" },
        agents: { type: "string" },
        help: { type: "boolean", short: "h", default: false },
      },
    });
  } catch (error) {
    return fail(error);
  }
}

/** Prints why, where the usage alone does not show it, and the usage. */
function fail(error?: unknown): never {
  if (error instanceof Error) console.error(`${error.message}\n`);
  console.error(usage);
  process.exit(2);
}
