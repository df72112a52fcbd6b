import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PodExplanation } from "@nodekeeper/api/records";
import { codeOf } from "@nodekeeper/core/lib";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Archive } from "../../packages/agent/src/cli/archive/archive.ts";
import { StoredRows } from "../../packages/agent/src/cli/archive/stored-rows.ts";
import { VictoriaLogs } from "../../packages/agent/src/cli/archive/victoria-logs.ts";
import type { Hour } from "../simulation/hour.ts";
import { claimOfVerdict } from "../support/endings/claims.ts";
import { missingParts } from "./support/parts.ts";
import { differencesOf, isArchived, wordsOf } from "./support/same-words.ts";
import { VictoriaLogsServer } from "./support/victoria-logs.ts";
import { virtualHour } from "./support/virtual-hour.ts";

// The whole agent on virtual time. A real VictoriaLogs receives what it exported when its node and disk are gone.
describe.skipIf(missingParts("victoriaLogs"))(
  "an hour of a node that is gone, in a real VictoriaLogs",
  () => {
    const directory = mkdtempSync(join(tmpdir(), "nk-hour-"));
    let hour: Hour;
    let store: VictoriaLogsServer;
    let rows: StoredRows;
    let archive: Archive;

    beforeAll(async () => {
      [hour, store] = await Promise.all([virtualHour(), VictoriaLogsServer.start(directory)]);
      for (const body of hour.requests) await send(body);
      const logs = new VictoriaLogs({ url: store.url, caFile: "", headersFile: "" });
      rows = new StoredRows([logs], {});
      archive = new Archive(rows);
      await store.flushed();
      await eventually(async () => {
        const stops = await store.query(`"nodekeeper.result":="agentStopped" _time:>=${hour.stoppedAt}`);
        expect(stops).toHaveLength(1);
      });
    });

    afterAll(async () => {
      await store?.child.stop();
      rmSync(directory, { recursive: true, force: true });
    });

    async function send(body: Buffer): Promise<void> {
      const response = await fetch(`${store.endpoint}/v1/logs`, {
        method: "POST",
        headers: { "content-type": "application/x-protobuf" },
        body: new Uint8Array(body),
      });
      expect(response.status).toBe(200);
    }

    /** Returns what the archive says of a pod; undefined if it has nothing of it. */
    async function archived(uid: string): Promise<PodExplanation | undefined> {
      try {
        const meant = await archive.find({ pod: { uid } });
        return (await archive.explainPod(meant, [])).answer;
      } catch (error) {
        if (codeOf(error) === "notFound") return undefined;
        throw error;
      }
    }

    it("has evictions, ends by others, evictions that did not end a pod, and agents that were killed", () => {
      const { evictions, lives, faults, explanations } = hour;
      const claims = Map.groupBy(explanations, (said) => claimOfVerdict(wordsOf(said).verdict));
      const count = Object.fromEntries([...claims].map(([claim, { length }]) => [claim, length]));
      console.log(JSON.stringify({ evictions, lives, pods: explanations.length, ...count, faults }));
      expect(evictions).toBeGreaterThan(100);
      expect(lives).toBeGreaterThan(20);
      for (const claim of ["ours", "other", "kept"] as const)
        expect([claim, (count[claim] ?? 0) > 5]).toEqual([claim, true]);
    });

    it("explains each pod in the words of the node", async () => {
      const differences: string[] = [];
      let explained = 0;
      for (const said of hour.explanations) {
        const answer = await archived(said.uid);
        if (answer) explained++;
        if (answer) differences.push(...differencesOf(said, answer));
        else if (isArchived(said)) differences.push(`${said.name} (${said.uid}) is not in the archive`);
      }
      expect([...differences, ...rows.problems]).toEqual([]);
      expect(explained).toBeGreaterThan(100);
    });
  },
);
