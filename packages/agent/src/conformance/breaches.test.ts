import { expect, it } from "vitest";
import { rules } from "./rules.ts";
import { hostileBreaches } from "./testing/breaches/hostile.ts";
import { preparationBreaches } from "./testing/breaches/preparation.ts";
import { registrationBreaches } from "./testing/breaches/registration.ts";
import { reportsBreaches } from "./testing/breaches/reports.ts";
import { checkTestDriver } from "./testing/check-test-driver.ts";

const breaches = [...registrationBreaches, ...reportsBreaches, ...preparationBreaches, ...hostileBreaches];

it.each(breaches)("%s is broken by %s, and no other rule", async (rule, _, driver) => {
  const findings = await checkTestDriver(driver);
  const failed = findings.filter(({ result }) => result === "fail");
  expect(failed.map((finding) => [finding.rule, finding.message])).toEqual([
    [rule, expect.stringMatching(/./)],
  ]);
});

it("each rule has a driver that breaks it", () => {
  const ofProcesses = ["restart", "restart-claims", "clean-end"];
  const broken = new Set([...breaches.map(([rule]) => rule), ...ofProcesses]);
  expect([...broken].sort()).toEqual(Object.keys(rules).sort());
});
