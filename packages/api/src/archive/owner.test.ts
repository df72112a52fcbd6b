import { expect, it } from "vitest";
import { ownerPattern, parseOwner } from "./owner.ts";

it.each([
  ["deployment/web", "Deployment"],
  ["deployments/web", "Deployment"],
  ["deploy/web", "Deployment"],
  ["sts/web", "StatefulSet"],
  ["ReplicaSet/web", "ReplicaSet"],
  ["Rollout/web", "Rollout"],
  ["default/web", undefined],
  ["web", undefined],
  ["deployment/", undefined],
  ["deployment/a/b", undefined],
])("%s names a %s", (text, kind) => {
  expect(parseOwner(text)?.kind).toBe(kind);
});

it.each([
  ["deployment/web", "ReplicaSet/web-5d4f9c", true],
  ["deployment/web", "ReplicaSet/web-api-5d4f9c", false],
  ["deployment/web", "Deployment/web", false],
  ["cronjob/backup", "Job/backup-29384756", true],
  ["cronjob/backup", "Job/backup-now", false],
  ["sts/db", "StatefulSet/db", true],
  ["sts/db", "StatefulSet/db2", false],
  ["Rollout/a.b", "Rollout/aXb", false],
])("%s has a pod of %s: %s", (text, owner, isIts) => {
  expect(new RegExp(ownerPattern(parseOwner(text)!)).test(owner)).toBe(isIts);
});
