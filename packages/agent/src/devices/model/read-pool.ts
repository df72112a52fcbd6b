import type { NodeSelector, PoolFields } from "./model.ts";
import { nodeSelectorFields } from "./read-device.ts";
import {
  appended,
  BYTES,
  type FieldReader,
  type Fields,
  flag,
  message,
  readFields,
  text,
  VARINT,
} from "./read-fields.ts";

/** The parts of a Pool's bytes. Its devices and counter sets are not decoded. */
export interface PoolParts {
  name: string;
  fields: PoolFields;
  /** Offsets at which the fields of devices start and end. */
  starts: number[];
  ends: number[];
  /** Number of devices beyond the limit. */
  others: number;
  limit: number;
  /** Offsets at which the contents of counter sets start and end. */
  sets: { from: number; to: number }[];
  /** Why the bytes are not a message. Parts read before the error are kept. */
  error?: unknown;
}

const MOST_COUNTER_SETS = 10_000;
const MOST_OPERATIONS = 100;
// Counting stops if a pool has this many times the allowed devices.
const TIMES_TOO_MANY = 4;

const selector = message(
  "nodeSelector",
  (): NodeSelector => ({ nodeSelectorTerms: [] }),
  nodeSelectorFields,
)!;
const allNodes = flag("allNodes")!;
const perDevice = flag("perDeviceNodeSelection")!;

const poolFields: Fields<PoolParts> = [
  undefined,
  text("name"),
  {
    wireType: BYTES,
    read(reader, parts) {
      if (parts.starts.length < parts.limit) {
        // The tag takes one byte.
        parts.starts.push(reader.pos - 1);
        // Not `skip`, which allocates a view of the bytes. `readFields` detects a field that is too long.
        const length = reader.uint32();
        reader.pos += length;
        parts.ends.push(reader.pos);
        return;
      }
      if (++parts.others > TIMES_TOO_MANY * parts.limit)
        throw new RangeError(`it has more than ${TIMES_TOO_MANY * parts.limit} devices`);
      const length = reader.uint32();
      reader.pos += length;
    },
  },
  {
    wireType: BYTES,
    read(reader, { sets }) {
      const length = reader.uint32();
      const from = reader.pos;
      reader.pos = from + length;
      sets.push({ from, to: reader.pos });
      if (sets.length > MOST_COUNTER_SETS)
        throw new RangeError(`it has more than ${MOST_COUNTER_SETS} counter sets`);
    },
  },
  { wireType: BYTES, read: (reader, { fields }) => selector.read(reader, fields) },
  { wireType: VARINT, read: (reader, { fields }) => allNodes.read(reader, fields) },
  { wireType: VARINT, read: (reader, { fields }) => perDevice.read(reader, fields) },
  {
    wireType: BYTES,
    read(reader, { fields }) {
      const attribute = reader.string();
      if (attribute !== "") fields.partitionTypeAttribute = attribute;
    },
  },
  {
    wireType: BYTES,
    read(reader, { fields }) {
      const { skipNodeOperations = [] } = fields;
      if (skipNodeOperations.length >= MOST_OPERATIONS)
        throw new RangeError(`it has more than ${MOST_OPERATIONS} skipNodeOperations`);
      fields.skipNodeOperations = appended(skipNodeOperations, reader.string());
    },
  },
];

/**
 * Splits a Pool, from all bytes of the reader. Devices are counted before anything is allocated: with two bytes per
 * device, a message may have millions.
 * @param limit maximum number of devices whose offsets are stored
 */
export function readPool(reader: FieldReader, limit: number): PoolParts {
  const parts: PoolParts = {
    name: "",
    fields: {},
    starts: [],
    ends: [],
    others: 0,
    limit,
    sets: [],
  };
  try {
    readFields(reader, reader.len, parts, poolFields);
  } catch (error) {
    parts.error = error;
  }
  return parts;
}
