import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeClock } from "../lib/index.ts";
import { hasOpenssl, makeAuthority } from "./testing/certificates.ts";
import { clientOf, nodes, sendJson, sendStatus, startServer } from "./testing/test-server.ts";

const node = { kind: "Node", metadata: { name: "n" } };

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "credentials-"));
});
afterEach(() => rm(directory, { recursive: true }));

describe("a token in a file", () => {
  let accepted: string;
  const serve = () =>
    startServer(({ request, response }) => {
      if (request.headers.authorization === `Bearer ${accepted}`) sendJson(response, node);
      else sendStatus(response, 401, "Unauthorized");
    });

  test("is read again at once after a 401, and the call made again", async () => {
    const file = join(directory, "token");
    await writeFile(file, "one\n");
    accepted = "one";
    await using server = await serve();
    using test = clientOf(server, { clock: new FakeClock(), access: { token: { file } } });
    await test.client.get(nodes, "n");
    await writeFile(file, "two\n");
    accepted = "two";
    await test.client.get(nodes, "n");
    expect(server.exchanges).toHaveLength(3);
  });

  test("that did not change is not tried twice", async () => {
    const file = join(directory, "token");
    await writeFile(file, "one");
    accepted = "other";
    await using server = await serve();
    using test = clientOf(server, { access: { token: { file } } });
    await expect(test.client.get(nodes, "n")).rejects.toMatchObject({
      code: "unauthenticated",
      id: "NK1206",
    });
    expect(server.exchanges).toHaveLength(1);
  });

  test("is looked at every few seconds, and kept while it can't be read", async () => {
    const clock = new FakeClock();
    const file = join(directory, "token");
    await writeFile(file, "one");
    accepted = "one";
    await using server = await serve();
    using test = clientOf(server, { clock, access: { token: { file } } });
    await test.client.get(nodes, "n");
    await rm(file);
    await clock.step(6_000);
    await test.client.get(nodes, "n");
    await writeFile(file, "second");
    await clock.step(6_000);
    accepted = "second";
    await test.client.get(nodes, "n");
    expect(server.exchanges).toHaveLength(3);
  });

  test("that is missing or unprintable at start is named, but not shown", async () => {
    await using server = await serve();
    const file = join(directory, "token");
    using missing = clientOf(server, { access: { token: { file } } });
    await expect(missing.client.get(nodes, "n")).rejects.toMatchObject({ code: "invalid", id: "NK1203" });
    await writeFile(file, "sec ret");
    const error = await missing.client.get(nodes, "n").catch((error) => error);
    expect(error.code).toBe("invalid");
    expect(`${error.message} ${error.cause.message}`).not.toContain("sec");
  });
});

describe.skipIf(!hasOpenssl)("certificates", () => {
  test("the authority's file is read again when the server's certificate is not trusted", async () => {
    const [first, second] = [makeAuthority(directory, "first"), makeAuthority(directory, "second")];
    const file = join(directory, "ca.crt");
    await writeFile(file, first.ca);
    await using server = await startServer(
      ({ response }) => sendJson(response, node),
      second.issue("s", "IP:127.0.0.1"),
    );
    using test = clientOf(server, { clock: new FakeClock(), access: { certificateAuthority: { file } } });
    await expect(test.client.get(nodes, "n")).rejects.toMatchObject({
      code: "unavailable",
      id: "NK1205",
      message: /authorities of test/,
    });
    await writeFile(file, "-----BEGIN CERTIFICATE-----\nhalf written");
    await expect(test.client.get(nodes, "n")).rejects.toMatchObject({ code: "unavailable" });
    await writeFile(file, second.ca);
    await test.client.get(nodes, "n");
  });

  test("a client certificate is presented, and a renewed pair gets a new connection", async () => {
    const clock = new FakeClock();
    const authority = makeAuthority(directory, "ca");
    const [certFile, keyFile] = [join(directory, "crt"), join(directory, "key")];
    const save = async ({ cert, key }: { cert: string; key: string }) => {
      await writeFile(certFile, cert);
      await writeFile(keyFile, key);
    };
    await save(authority.issue("old"));
    const tls = { ...authority.issue("server", "DNS:kubernetes"), ca: authority.ca, requestCert: true };
    await using server = await startServer(({ request, response }) => {
      const { subject } = (request.socket as TLSSocket).getPeerCertificate();
      sendJson(response, { metadata: { name: subject?.CN } });
    }, tls);
    using test = clientOf(server, {
      clock,
      access: {
        serverName: "kubernetes",
        certificateAuthority: { text: authority.ca },
        clientCertificate: { file: certFile },
        clientKey: { file: keyFile },
      },
    });
    expect((await test.client.get(nodes, "n")).metadata.name).toBe("old");
    await test.client.get(nodes, "n");
    expect(server.connections).toBe(1);
    const renewed = authority.issue("new");
    await writeFile(certFile, renewed.cert);
    await clock.step(6_000);
    expect((await test.client.get(nodes, "n")).metadata.name).toBe("old");
    await save(renewed);
    await clock.step(6_000);
    expect((await test.client.get(nodes, "n")).metadata.name).toBe("new");
    expect(server.connections).toBe(2);
  });

  test("are checked against the server's name unless configured not to", async () => {
    const authority = makeAuthority(directory, "ca");
    const tls = authority.issue("server", "DNS:elsewhere");
    await using server = await startServer(({ response }) => sendJson(response, node), tls);
    using strict = clientOf(server, { access: { certificateAuthority: { text: authority.ca } } });
    await expect(strict.client.get(nodes, "n")).rejects.toMatchObject({
      code: "unavailable",
      message: /127\.0\.0\.1/,
    });
    using lax = clientOf(server, { access: { insecureSkipTlsVerify: true } });
    await lax.client.get(nodes, "n");
  });
});
