import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { clearField, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  FieldDescriptorProtoSchema,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { root, runTool, withTemporaryDirectory } from "./programs.ts";

/** A language whose code is generated from proto/ by tools of its own, which this check does without. */
interface Generated {
  files: string;
  /** The command that generates them. */
  command: string;
  /** Returns the encoded descriptor in a generated file. */
  bytesIn(text: string): Uint8Array | undefined;
}

export const go: Generated = {
  // A _grpc.pb.go has no descriptor: that of its services is in the file beside it.
  files: "sdk-go/gen/**/!(*_grpc).pb.go",
  command: '"go generate" in sdk-go',
  bytesIn(text) {
    const [, literals] = /^const \w+_rawDesc = ""((?: \+\n\t".*")+)$/m.exec(text) ?? [];
    if (literals === undefined) return undefined;
    return Buffer.concat([...literals.matchAll(/^\t"(.*)"(?: \+)?$/gm)].map(([, each]) => bytesOf(each!)));
  },
};

export const python: Generated = {
  files: "sdk-python/nodekeeper_sdk/gen/**/*_pb2.py",
  command: '"python3 generate.py" in sdk-python',
  bytesIn(text) {
    const [, literal] = /^DESCRIPTOR = .*\.AddSerializedFile\(b'(.*)'\)$/m.exec(text) ?? [];
    return literal === undefined ? undefined : bytesOf(literal);
  },
};

/** Files of generated code that describe other messages or services than proto/ does. */
export async function findLanguageDrift(): Promise<string[]> {
  const wanted = await descriptorsOfProtos();
  const problems: string[] = [];
  for (const language of [go, python])
    for await (const name of glob(language.files, { cwd: root })) {
      const problem = driftOf(language, await readFile(join(root, name), "utf8"), wanted);
      if (problem !== undefined) problems.push(`${name} ${problem}`);
    }
  return problems.sort();
}

/**
 * Returns how a generated file differs from its proto file. Undefined if it does not. Comments, file options and JSON
 * names of fields are not compared.
 * @param wanted descriptors by the names of proto files
 */
export function driftOf(
  { bytesIn, command }: Generated,
  text: string,
  wanted: ReadonlyMap<string, FileDescriptorProto>,
): string | undefined {
  const bytes = bytesIn(text);
  if (!bytes) return "has no descriptor";
  const found = fromBinary(FileDescriptorProtoSchema, bytes);
  const proto = wanted.get(found.name);
  if (!proto) return `comes from ${found.name}, which is not in proto/`;
  return contractOf(found) === contractOf(proto) ? undefined : `differs from ${found.name}: run ${command}`;
}

/** By the names of proto/'s files. */
export async function descriptorsOfProtos(): Promise<Map<string, FileDescriptorProto>> {
  return withTemporaryDirectory(async (directory) => {
    const path = join(directory, "all.binpb");
    await runTool("buf", ["build", "--exclude-source-info", "-o", path]);
    const { file } = fromBinary(FileDescriptorSetSchema, await readFile(path));
    return new Map(file.map((descriptor) => [descriptor.name, descriptor]));
  });
}

/** Of the bytes from 7 to 13; a quote and a backslash stand for themselves. */
const CONTROL_ESCAPES = "abtnvfr";

/** The bytes of an interpreted string of Go, https://go.dev/ref/spec#String_literals, or of Python. */
function bytesOf(literal: string): Buffer {
  const parts = literal.matchAll(/\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|\\(.)|([^\\]+)/g);
  return Buffer.concat(
    [...parts].map(([, byte, letter, escaped, plain]) => {
      if (byte) return Buffer.from(byte, "hex");
      if (letter) return Buffer.from(String.fromCharCode(Number.parseInt(letter, 16)));
      const control = escaped ? CONTROL_ESCAPES.indexOf(escaped) : -1;
      return control < 0 ? Buffer.from((escaped ?? plain)!) : Buffer.from([7 + control]);
    }),
  );
}

// Without the packages of languages, what buf adds, and the names of fields in JSON, which protoc leaves out for Python.
function contractOf({ options: _, ...descriptor }: FileDescriptorProto): string {
  for (const message of descriptor.messageType) removeJsonNames(message);
  const bytes = toBinary(FileDescriptorProtoSchema, descriptor, { writeUnknownFields: false });
  return Buffer.from(bytes).toString("base64");
}

function removeJsonNames({ field, nestedType }: DescriptorProto): void {
  for (const each of field) clearField(each, FieldDescriptorProtoSchema.field.jsonName);
  for (const nested of nestedType) removeJsonNames(nested);
}
