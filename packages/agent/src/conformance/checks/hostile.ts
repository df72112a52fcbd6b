import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { counted } from "@nodekeeper/api/wording";
import type {
  AllocatedDevice,
  PrepareDevicesRequest,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { codeOf, NodekeeperError } from "@nodekeeper/core/lib";
import { checkAnswer } from "../answer-check.ts";
import type { Bench } from "../bench.ts";
import type { Check } from "../check.ts";
import { claimOf, malformedRequest } from "../claims.ts";
import { RuleBroken, Skipped } from "../finding.ts";
import { HeldConnection } from "../held-connection.ts";
import type { RuleId } from "../rules.ts";
import { claimOfOne } from "./preparation.ts";

const LONG = "x".repeat(4 * 1024);
const MANY = 128;
const needs: readonly RuleId[] = ["answer", "unprepare"];
// No JSON, JSON that is no object, and an object that no driver knows.
const configurations = [
  "{",
  "[]",
  "null",
  '"text"',
  `{"nodekeeper.dev/conformance":${"[".repeat(1_000)}${"]".repeat(1_000)}}`,
];

export const hostileChecks: readonly Check[] = [
  {
    rule: "unknown-fields",
    needs,
    async run(bench) {
      const claim = claimOfOne(bench);
      // Field 2,000: text, and field 2,001: a number.
      const added = new BinaryWriter()
        .uint32((2_000 << 3) | 2)
        .string("text")
        .uint32(2_001 << 3)
        .uint32(1)
        .finish();
      const answer = await bench.preparation.prepare(claim, added);
      await bench.preparation.unprepare(claim);
      await checkAnswer(bench.known.name, claim, answer);
      return undefined;
    },
  },
  {
    rule: "no-devices",
    needs,
    run: (bench) => survives(bench, [claimOf([])]),
  },
  {
    rule: "unknown-device",
    needs,
    run: (bench) =>
      survives(bench, [claimOf([{ ...oneOf(bench), device: "no-such-device", pool: "no-such-pool" }])]),
  },
  {
    rule: "configuration",
    needs,
    run: (bench) => survives(bench, misconfigured(bench)),
  },
  {
    rule: "unprepare-refused",
    needs,
    async run(bench) {
      let refused = 0;
      for (const claim of misconfigured(bench)) {
        const isPrepared = await bench.preparation.prepare(claim).then(
          () => true,
          () => false,
        );
        bench.signal.throwIfAborted();
        if (!isPrepared) refused++;
        const unprepared = bench.preparation.unprepare(claim);
        await (isPrepared ? unprepared.catch(() => {}) : unprepared);
      }
      if (refused === 0) throw new Skipped("the driver refuses no configuration");
      return counted(refused, "claim");
    },
  },
  {
    rule: "long-names",
    needs,
    run: (bench) =>
      survives(bench, [
        claimOf([{ ...oneOf(bench), request: LONG }]),
        claimOf([{ ...oneOf(bench), pool: LONG, device: LONG }]),
      ]),
  },
  {
    rule: "many-devices",
    needs,
    run(bench) {
      const known = bench
        .streamed()
        .slice(0, MANY)
        .map((device) => bench.allocated(device));
      const others = Array.from({ length: MANY - known.length }, (_, at) => ({
        ...oneOf(bench),
        device: `no-such-device-${at}`,
      }));
      return survives(bench, [claimOf([...known, ...others])]);
    },
  },
  {
    rule: "malformed-request",
    needs,
    async run(bench) {
      using held = await HeldConnection.open(bench.socket);
      const error = await bench.preparation.call("PrepareDevices", malformedRequest).then(
        () => undefined,
        (reason) => reason,
      );
      await checkSurvived(bench, held);
      if (!error) throw new RuleBroken(`the bytes ${malformedRequest.toString("hex")} were accepted`);
      if (codeOf(error) === "deadline") throw error;
      return undefined;
    },
  },
];

function misconfigured(bench: Bench): PrepareDevicesRequest[] {
  return configurations.map((parameters) =>
    claimOf([{ ...oneOf(bench), configuration: [{ source: "FromClaim", parameters }] }]),
  );
}

function oneOf(bench: Bench): AllocatedDevice {
  return bench.allocated(bench.streamed()[0]!);
}

// Prepares and unprepares each claim and checks that the driver still serves. PrepareDevices may fail, but must not
// time out or return an invalid response. Returns in words how many claims were refused.
async function survives(bench: Bench, claims: readonly PrepareDevicesRequest[]): Promise<string> {
  let refused = 0;
  using held = await HeldConnection.open(bench.socket);
  for (const claim of claims) {
    try {
      const answer = await bench.preparation.prepare(claim);
      await checkAnswer(bench.known.name, claim, answer);
    } catch (error) {
      bench.signal.throwIfAborted();
      const isAnswered = error instanceof NodekeeperError && codeOf(error) !== "deadline";
      if (!isAnswered) throw error;
      refused++;
    }
    await checkSurvived(bench, held);
    await bench.preparation.unprepare(claim).catch((error) => {
      if (codeOf(error) === "deadline") throw error;
    });
  }
  await checkSurvived(bench, held);
  return refused === 0
    ? "answered"
    : refused === claims.length
      ? "refused"
      : `${refused} of ${claims.length} refused`;
}

// Throws unless the driver still serves, and by the same process: a crashed one may have been restarted. The call
// ensures that the end of the held connection has been received.
async function checkSurvived(bench: Bench, held: HeldConnection): Promise<void> {
  await bench.checkServes();
  if (!held.isOpen)
    throw new RuleBroken("the driver's process closed its connections: it has ended, and was started again");
}
