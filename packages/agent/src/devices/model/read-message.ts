import { checkEntries } from "@nodekeeper/core/grpc";
import { BYTES, FieldReader, type Fields, readFields } from "./read-fields.ts";

/** A response of ListAndWatchDevices, decoded only at the top level: pools and devices stay bytes. */
export interface DeviceMessage {
  /** Encoded Pools; at most `MOST_POOLS`. */
  pools: Uint8Array[];
  /** Number of pools beyond that. */
  otherPools: number;
  /** Unknown fields, of a newer API. */
  unknown: string[];
}

/** Limit of the pools read from one message. */
export const MOST_POOLS = 1_000;
// Limit of the pools counted.
const MOST_ENTRIES = 100_000;

const messageFields: Fields<DeviceMessage> = [
  undefined,
  {
    wireType: BYTES,
    read(reader, into) {
      // Counted before anything is allocated: a message with two bytes per pool may have millions.
      if (into.pools.length < MOST_POOLS) into.pools.push(reader.bytes());
      else {
        into.otherPools++;
        reader.skip(BYTES);
      }
    },
  },
];

/**
 * Decodes a response. The result has views of `bytes`. Throws if the bytes are not a message, and `exhausted` if it has
 * more fields than any driver needs: 16 MiB of empty ones would block the event loop for a second.
 */
export function readMessage(bytes: Uint8Array): DeviceMessage {
  checkEntries(bytes, { 1: {} }, MOST_ENTRIES, "pools");
  const message: DeviceMessage = { pools: [], otherPools: 0, unknown: [] };
  const reader = new FieldReader(bytes);
  readFields(reader, bytes.length, message, messageFields);
  message.unknown = reader.unknown.take();
  return message;
}
