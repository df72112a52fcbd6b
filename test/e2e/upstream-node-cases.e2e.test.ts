import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ClaimsNode, startClaimsNode } from "./support/node/claims-node.ts";
import { UpstreamCase } from "./support/node/upstream/case.ts";
import { claimRows } from "./support/node/upstream/claim-rows.ts";
import { healthRows, withoutHealthRow } from "./support/node/upstream/health-rows.ts";
import { Observed } from "./support/node/upstream/observed.ts";
import { registrationRows } from "./support/node/upstream/registration-rows.ts";
import type { AbsentRow, Row, RunRow } from "./support/node/upstream/row.ts";
import { SharedRestart } from "./support/node/upstream/shared-restart.ts";
import { sliceRows } from "./support/node/upstream/slice-rows.ts";
import { twoDriverRows } from "./support/node/upstream/two-driver-rows.ts";
import { missingForNode } from "./support/node.ts";

// The cases of Kubernetes 1.36's test/e2e_node/dra_test.go, with the agent as the kubelet's DRA plugin and drivers of the
// TypeScript SDK. Cases run at the same time, each with drivers and pods of its own, and share restarts of the kubelet.
// E2E_UPSTREAM_CASES: only those whose title has it.
const upstream: readonly Row[] = [
  ...registrationRows,
  ...claimRows,
  ...twoDriverRows,
  ...sliceRows,
  ...healthRows,
];
const UPSTREAM_CASES = 43;

const isRun = (row: Row): row is RunRow => "run" in row;
const isAbsent = (row: Row): row is AbsentRow => !isRun(row);
const wanted = (row: Row) => row.upstream.includes(process.env.E2E_UPSTREAM_CASES ?? "");
const runs = upstream.filter(isRun).filter(wanted);
const title = ({ upstream, driver, kubelet, expected, differs }: RunRow) =>
  `${upstream} | driver: ${driver} | kubelet: ${kubelet} | ${expected}${differs ? ` | differs: ${differs}` : ""}`;

it("has each case of upstream once", () => {
  const titles = [...upstream, withoutHealthRow].map((row) => row.upstream);
  expect(new Set(titles).size).toBe(titles.length);
  expect(titles).toHaveLength(UPSTREAM_CASES);
});

describe.skipIf(missingForNode("newContainerd"))("upstream's cases of DRA on a node", () => {
  let on: ClaimsNode;
  let observed: Observed;
  const results = new Map<RunRow, Promise<void>>();

  beforeAll(async () => {
    on = await startClaimsNode({ containerd: "newContainerd" });
    observed = new Observed(on);
    const restarting = runs.filter(({ restarts }) => restarts);
    const restart = new SharedRestart(on.node, restarting.length);
    start("restarts", restarting, restart);
    // What comes after the restart takes minutes, in which the others run.
    if (restarting.length > 0) await restart.done;
    start(
      "runs",
      runs.filter(({ restarts }) => !restarts),
    );
  });
  afterAll(async () => {
    await Promise.allSettled(results.values());
    await on?.stop();
  });

  function start(prefix: string, rows: readonly RunRow[], restart?: SharedRestart): void {
    for (const [at, row] of rows.entries()) {
      const result = runCase(new UpstreamCase(on, observed, `${prefix}-${at}`, restart), row);
      // Its own test reports it.
      result.catch(() => {});
      results.set(row, result);
    }
  }

  it.each(runs.map((row) => [title(row), row] as const))("%s", async (_title, row) => {
    await results.get(row);
  });

  it.runIf(wanted(withoutHealthRow))(title(withoutHealthRow), async () => {
    await Promise.allSettled(results.values());
    const file = on.node.path("/var/lib/kubelet/config.yaml");
    const configuration = JSON.parse(readFileSync(file, "utf8"));
    const off = { ResourceHealthStatus: false, ResourceHealthStatusMessage: false };
    Object.assign(configuration.featureGates, off);
    await on.node.kubelet.kill();
    writeFileSync(file, JSON.stringify(configuration));
    on.node.kubelet.start();
    await on.node.ready();
    await runCase(new UpstreamCase(on, observed, "gate"), withoutHealthRow);
  });

  it.skip.each(
    upstream.filter(isAbsent).map(({ upstream, notApplicable }) => [upstream, notApplicable] as const),
  )("not applicable: %s | %s", () => {});
});

async function runCase(own: UpstreamCase, row: RunRow): Promise<void> {
  try {
    await row.run(own);
  } finally {
    await own.end();
  }
}
