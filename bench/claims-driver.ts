import { createServer, type ServerHttp2Stream } from "node:http2";
import { join } from "node:path";
import {
  DeviceDriverDefinition,
  ListAndWatchDevicesResponse,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/api.ts";
import {
  DevicePreparationDefinition,
  PrepareDevicesRequest,
  PrepareDevicesResponse,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { PluginInfo, RegistrationDefinition } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";

export const CLAIMS_DRIVER = "accelerators.example.com";

const HEADER_BYTES = 5;
const nothing = new Uint8Array();

/**
 * Serves a driver that prepares claims immediately, on HTTP/2 without a gRPC library, so that the driver's share of a
 * claim's time is as small as possible.
 */
export function serveClaimsDriver(directory: string, name: string, devices: readonly string[]): void {
  const info = PluginInfo.encode({
    type: "DRAPlugin",
    name,
    endpoint: "",
    supportedVersions: ["nodekeeper.devices.v1alpha2", DevicePreparationDefinition.fullName],
  }).finish();
  const pools = ListAndWatchDevicesResponse.encode(
    ListAndWatchDevicesResponse.fromPartial({
      pools: [{ name: "", devices: devices.map((device) => ({ name: device })) }],
    }),
  ).finish();
  const preparation = DevicePreparationDefinition.fullName;
  const answers: Record<string, (request: Uint8Array) => Uint8Array> = {
    [`/${RegistrationDefinition.fullName}/GetInfo`]: () => info,
    [`/${RegistrationDefinition.fullName}/NotifyRegistrationStatus`]: () => nothing,
    [`/${preparation}/PrepareDevices`]: prepared,
    [`/${preparation}/UnprepareDevices`]: () => nothing,
  };
  const server = createServer();
  server.on("stream", (stream, { ":path": path = "" }) => {
    stream.on("error", () => {});
    if (path === `/${DeviceDriverDefinition.fullName}/ListAndWatchDevices`) {
      stream.respond({ ":status": 200, "content-type": "application/grpc" });
      stream.write(framed(pools));
      return;
    }
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => answer(stream, answers[path]!(Buffer.concat(chunks).subarray(HEADER_BYTES))));
  });
  server.listen(join(directory, `${name}.sock`));
}

function prepared(bytes: Uint8Array): Uint8Array {
  const { devices } = PrepareDevicesRequest.decode(bytes);
  return PrepareDevicesResponse.encode(
    PrepareDevicesResponse.fromPartial({
      devices: devices.map(({ request, pool, device, configuration }) => ({
        request,
        pool,
        device,
        edits: {
          env: [`ACCELERATOR=${device}`, `CONFIGURATION=${configuration[0]?.parameters}`],
          deviceNodes: [{ path: `/dev/${device}`, hostPath: "/dev/null" }],
        },
      })),
    }),
  ).finish();
}

function answer(stream: ServerHttp2Stream, message: Uint8Array): void {
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.end(framed(message));
}

function framed(message: Uint8Array): Buffer {
  const frame = Buffer.alloc(HEADER_BYTES + message.length);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, HEADER_BYTES);
  return frame;
}
