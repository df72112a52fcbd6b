import { BinaryReader } from "@bufbuild/protobuf/wire";
import { NodekeeperError } from "@nodekeeper/core/lib";
import { BYTES, type Fields, readFields, UnknownFields, VARINT } from "./read-fields.ts";

/** A response of ListAndWatchDevices as far as it is read at once: pools and devices stay bytes. */
export interface DeviceMessage {
  /** Each a Pool; at most `MOST_POOLS`. */
  pools: Uint8Array[];
  /** How many more pools the message has. */
  otherPools: number;
  /** Of the state after the message; 0 where the driver does not number its states. */
  revision: bigint;
  delta: DeviceDelta | undefined;
  /** Fields that are not known, of a newer contract. */
  unknown: string[];
}

/** A change of what the stream has reported so far. */
export interface DeviceDelta {
  baseRevision: bigint;
  pools: PoolDelta[];
}

export interface PoolDelta {
  name: string;
  /** Each a Device. */
  upserts: Uint8Array[];
  removals: string[];
}

const poolDeltaFields: Fields<PoolDelta> = [
  undefined,
  {
    wireType: BYTES,
    read(reader, into) {
      into.name = reader.string();
    },
  },
  {
    wireType: BYTES,
    read(reader, into) {
      checkCount(into);
      into.upserts.push(reader.bytes());
    },
  },
  {
    wireType: BYTES,
    read(reader, into) {
      checkCount(into);
      into.removals.push(reader.string());
    },
  },
];

// Counted before anything is made of them: a message of two bytes a change may have millions.
function checkCount({ upserts, removals }: PoolDelta): void {
  if (upserts.length + removals.length < MOST_CHANGES) return;
  throw new NodekeeperError("invalid", `a delta has more than ${MOST_CHANGES} changes`, { id: "NK1502" });
}

function changesOf({ pools }: DeviceDelta): number {
  return pools.reduce((sum, { upserts, removals }) => sum + upserts.length + removals.length, 0);
}

const deltaFields: Fields<DeviceDelta> = [
  undefined,
  {
    wireType: VARINT,
    read(reader, into) {
      into.baseRevision = BigInt(reader.int64());
    },
  },
  {
    wireType: BYTES,
    read(reader, into, unknown) {
      const end = reader.uint32() + reader.pos;
      if (into.pools.length >= MOST_POOLS)
        throw new NodekeeperError("invalid", `a delta changes more than ${MOST_POOLS} pools`, {
          id: "NK1502",
        });
      const pool: PoolDelta = { name: "", upserts: [], removals: [] };
      unknown.enter("pools");
      readFields(reader, end, pool, poolDeltaFields, unknown);
      unknown.leave();
      into.pools.push(pool);
      if (changesOf(into) > MOST_CHANGES)
        throw new NodekeeperError("invalid", `a delta has more than ${MOST_CHANGES} changes`, {
          id: "NK1502",
        });
    },
  },
];

/** Pools of one message that are read. */
export const MOST_POOLS = 1_000;
// Changes of one delta; a driver that has more sends the whole state.
const MOST_CHANGES = 50_000;

const messageFields: Fields<DeviceMessage> = [
  undefined,
  {
    wireType: BYTES,
    read(reader, into) {
      // Counted before anything is made of them: a message of two bytes a pool may have millions.
      if (into.pools.length < MOST_POOLS) into.pools.push(reader.bytes());
      else {
        into.otherPools++;
        reader.skip(BYTES);
      }
    },
  },
  {
    wireType: VARINT,
    read(reader, into) {
      into.revision = BigInt(reader.int64());
    },
  },
  {
    wireType: BYTES,
    read(reader, into, unknown) {
      const end = reader.uint32() + reader.pos;
      into.delta ??= { baseRevision: 0n, pools: [] };
      unknown.enter("delta");
      readFields(reader, end, into.delta, deltaFields, unknown);
      unknown.leave();
    },
  },
];

/** Reads a response; what it holds are views of `bytes`. Throws where the bytes are no message. */
export function readMessage(bytes: Uint8Array): DeviceMessage {
  const message: DeviceMessage = { pools: [], otherPools: 0, revision: 0n, delta: undefined, unknown: [] };
  const unknown = new UnknownFields();
  readFields(new BinaryReader(bytes), bytes.length, message, messageFields, unknown);
  message.unknown = unknown.take();
  return message;
}
