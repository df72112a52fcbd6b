import { ExportLogsServiceResponse } from "@nodekeeper/core/gen/opentelemetry/v1/logs.ts";
import { ExportTraceServiceResponse } from "@nodekeeper/core/gen/opentelemetry/v1/trace.ts";
import { messageOf } from "@nodekeeper/core/lib";
import { type Delivery, type OtlpRequest, shortened } from "./delivery.ts";

/**
 * Returns the result that a successful protobuf response reports. If the response can't be decoded, the request still
 * counts as accepted.
 */
export function acceptedBy(body: Uint8Array, signal: OtlpRequest["signal"]): Delivery {
  try {
    const { rejected, errorMessage } = partialSuccessOf(body, signal);
    return { kind: "accepted", rejected: Number(rejected), message: shortened(errorMessage) };
  } catch (error) {
    const message = shortened(`its answer can't be read: ${messageOf(error)}`);
    return { kind: "accepted", rejected: 0, message };
  }
}

function partialSuccessOf(body: Uint8Array, signal: OtlpRequest["signal"]) {
  if (signal === "logs") {
    const { partialSuccess } = ExportLogsServiceResponse.decode(body);
    return {
      rejected: partialSuccess?.rejectedLogRecords ?? 0n,
      errorMessage: partialSuccess?.errorMessage ?? "",
    };
  }
  const { partialSuccess } = ExportTraceServiceResponse.decode(body);
  return { rejected: partialSuccess?.rejectedSpans ?? 0n, errorMessage: partialSuccess?.errorMessage ?? "" };
}
