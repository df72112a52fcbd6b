import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { FakeClock, Registry, silentLogger, stopped } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Authority, hasOpenssl, makeAuthority } from "../../../core/src/kube/testing/certificates.ts";
import { ServingCertificate, StatusServer } from "./index.ts";

describe.skipIf(!hasOpenssl)("the certificate of a server beyond loopback", () => {
  let directory: string;
  let authority: Authority;
  const file = (name: string) => join(directory, name);

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "serving-"));
    authority = makeAuthority(directory, "ca");
  });

  afterEach(() => rmSync(directory, { recursive: true }));

  function renew(name: string): void {
    const { cert, key } = authority.issue(name, "IP:127.0.0.1");
    writeFileSync(file("tls.key"), key);
    writeFileSync(file("tls.crt"), cert);
  }

  /** The name on the certificate that a new connection meets. */
  function served(port: number): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: "127.0.0.1", ca: authority.ca }, () => {
        resolve(socket.getPeerCertificate().subject.CN as string);
        socket.destroy();
      });
      socket.once("error", reject);
    });
  }

  it("is replaced when its files are, and stays where they do not belong together", async () => {
    const clock = new FakeClock();
    const warnings: string[] = [];
    const log = { ...silentLogger, warn: (_: unknown, message: string) => void warnings.push(message) };
    renew("first");
    const certificate = new ServingCertificate({
      certFile: file("tls.crt"),
      privateKeyFile: file("tls.key"),
      clock,
      log: log as unknown as typeof silentLogger,
    });
    const server = new StatusServer({
      context: { registry: new Registry(), clock, log: silentLogger },
      served: { checks: [], routes: [] },
      address: "0.0.0.0:0",
      remote: { certificate, check: async () => {} },
    });
    const controller = new AbortController();
    const running = server.run(controller.signal);
    const port = Number((await server.ready()).split(":").at(-1));
    expect(await served(port)).toBe("first");

    writeFileSync(file("tls.key"), authority.issue("stray").key);
    await until("the refusal is logged", () => warnings.length > 0, { clock, stepMs: 10_000 });
    expect(warnings[0]).toMatch(/^failed to reload the serving certificate/);
    expect(await served(port)).toBe("first");

    renew("second");
    await until("it is served", async () => (await served(port)) === "second", { clock, stepMs: 10_000 });
    controller.abort(stopped("test is over"));
    await until("the server has stopped", () => server.address === undefined, { clock, stepMs: 1_000 });
    await running;
  });
});
