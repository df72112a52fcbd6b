import { isObject, type Json } from "./json.ts";

/** Returns the approximate size of a value in the stored object, in bytes: its JSON and its fields in managedFields. */
export function storedBytes(value: Json): number {
  return Buffer.byteLength(JSON.stringify(value)) + fieldSetBytes(value);
}

// `"f:name":{},` for each member of a map. A list is one field, regardless of its content.
function fieldSetBytes(value: Json): number {
  if (!isObject(value)) return 0;
  let bytes = 0;
  for (const key in value) bytes += Buffer.byteLength(key) + 8 + fieldSetBytes(value[key]!);
  return bytes;
}
