import { isObject, type Json } from "./json.ts";

/** What a value takes in the stored object, bytes, about: its JSON, and its fields in managedFields. */
export function storedBytes(value: Json): number {
  return Buffer.byteLength(JSON.stringify(value)) + fieldSetBytes(value);
}

// `"f:name":{},` for each member of a map. A list is one field, whatever is in it.
function fieldSetBytes(value: Json): number {
  if (!isObject(value)) return 0;
  let bytes = 0;
  for (const key in value) bytes += Buffer.byteLength(key) + 8 + fieldSetBytes(value[key]!);
  return bytes;
}
