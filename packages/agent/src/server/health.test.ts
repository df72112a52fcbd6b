import { type HealthCheck, NodekeeperError } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import { type HealthEndpoint, healthReply, singleHealthReply } from "./health.ts";

function check(name: string, kind: "live" | "ready", ok: boolean, message = ""): HealthCheck {
  return { name, kind, check: () => ({ ok, message }) };
}

const throwing: HealthCheck = {
  name: "torn",
  kind: "ready",
  check() {
    throw new Error("no\nstate");
  },
};

function ask(checks: HealthCheck[], endpoint: HealthEndpoint, query = "") {
  const { status, body } = healthReply(
    { checks, endpoint, withholdReasons: false },
    new URLSearchParams(query),
  );
  return [status, body];
}

const checks = [
  check("alive", "live", true),
  check("Fetched", "ready", false, "last fetch 90 s ago"),
  throwing,
];
const failures = "[+]alive ok\n[-]Fetched failed: last fetch 90 s ago\n[-]torn failed: no state\n";

/** A check of readiness with a fixed result. */
function ready(name: string, result: ReturnType<HealthCheck["check"]>): HealthCheck {
  return { name, kind: "ready", check: () => result };
}

describe("health", () => {
  it("livez asks live checks alone", () => expect(ask(checks, "livez")).toEqual([200, "ok"]));

  it.each(["readyz", "healthz"] as const)("%s asks all, and reports what failed", (endpoint) => {
    expect(ask(checks, endpoint)).toEqual([503, `${failures}${endpoint} check failed\n`]);
  });

  it("names each check when asked to", () => {
    expect(ask(checks, "livez", "verbose")).toEqual([200, "[+]alive ok\nlivez check passed\n"]);
  });

  it("reports only which check failed where callers are not authenticated", () => {
    const question = { checks, endpoint: "readyz", withholdReasons: true } as const;
    expect(healthReply(question, new URLSearchParams()).body).toBe(
      "[+]alive ok\n[-]Fetched failed: reason withheld\n[-]torn failed: reason withheld\nreadyz check failed\n",
    );
    expect(singleHealthReply(question, "Fetched").body).toBe("failed: reason withheld\n");
  });

  it("leaves out excluded checks", () => {
    expect(ask(checks, "readyz", "exclude=Fetched&exclude=torn")).toEqual([200, "ok"]);
    expect(ask(checks, "readyz", "exclude=torn")[0]).toBe(503);
  });

  it("warns of excluded names that no check has", () => {
    const [status, body] = ask(checks, "livez", "verbose&exclude=alive&exclude=unknown");
    expect(status).toBe(200);
    expect(body).toBe(
      '[+]alive excluded: ok\nwarn: no check named "unknown" to exclude\nlivez check passed\n',
    );
  });

  it("names what is wrong although a check passes, unless reasons are withheld", () => {
    const slow = ready("Slow", {
      ok: true,
      message: "well",
      warning: "no answer yet\nto: ListContainers for 12s",
    });
    expect(ask([slow], "readyz")).toEqual([200, "ok"]);
    expect(ask([slow], "readyz", "verbose")).toEqual([
      200,
      "[+]Slow ok, but: no answer yet to: ListContainers for 12s\nreadyz check passed\n",
    ]);
    const question = { checks: [slow], endpoint: "readyz", withholdReasons: true } as const;
    expect(healthReply(question, new URLSearchParams("verbose")).body).toBe(
      "[+]Slow ok\nreadyz check passed\n",
    );
  });

  it("has the id of what is wrong", () => {
    const failing = ready("Full", { ok: false, message: "disk is full", errorId: "NK1105" });
    const slow = ready("Slow", { ok: true, message: "well", warning: "no answer", errorId: "NK1404" });
    const refused: HealthCheck = {
      name: "Refused",
      kind: "ready",
      check: () => {
        throw new NodekeeperError("forbidden", "may not list", { id: "NK1207" });
      },
    };
    expect(ask([failing, slow, refused], "readyz")[1]).toBe(
      "[-]Full failed: disk is full [NK1105]\n[+]Slow ok, but: no answer [NK1404]\n" +
        "[-]Refused failed: may not list [NK1207]\nreadyz check failed\n",
    );
    const question = { checks: [failing], endpoint: "readyz", withholdReasons: true } as const;
    expect(healthReply(question, new URLSearchParams()).body).not.toContain("NK1105");
  });

  it("is well without any check", () => expect(ask([], "readyz")).toEqual([200, "ok"]));

  it("bounds the message of a check", () => {
    const body = ask([check("long", "ready", false, "x".repeat(100_000))], "readyz")[1] as string;
    expect(body.length).toBeLessThan(1_000);
  });

  it.each([
    ["readyz", "alive", 200],
    ["readyz", "Fetched", 503],
    ["readyz", "torn", 503],
    ["livez", "Fetched", 404],
    ["readyz", "unknown", 404],
  ] as const)("/%s/%s is %i", (endpoint, name, status) => {
    expect(singleHealthReply({ checks, endpoint, withholdReasons: false }, name).status).toBe(status);
  });
});
