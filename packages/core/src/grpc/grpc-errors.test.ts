import { createChannel, createClient } from "nice-grpc";
import { expect, it } from "vitest";
import { RegistrationDefinition } from "../gen/pluginregistration/v1/api.ts";
import { fromGrpcError, isUnsent } from "./grpc-errors.ts";

it("a call for which there is no connection is known to be unsent", async () => {
  const channel = createChannel("unix:/nonexistent/nodekeeper.sock");
  try {
    const error = await createClient(RegistrationDefinition, channel).getInfo({}).catch(fromGrpcError);
    expect(isUnsent(error)).toBe(true);
  } finally {
    channel.close();
  }
});
