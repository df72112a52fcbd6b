import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { root, runTool, withTemporaryDirectory } from "./programs.ts";

// Go code that is generated from proto/ by Go's tools, which this check does without.
const generated = "sdk-go/gen/**/*.pb.go";

/** Files of Go code in sdk-go/ that describe other messages or services than proto/ does. */
export async function findGoDrift(): Promise<string[]> {
  const wanted = await descriptorsOfProtos();
  const problems: string[] = [];
  for await (const name of glob(generated, { cwd: root })) {
    // It has the same services; its file's descriptor is in the file beside it.
    if (name.endsWith("_grpc.pb.go")) continue;
    const problem = goProblem(await readFile(join(root, name), "utf8"), wanted);
    if (problem !== undefined) problems.push(`${name} ${problem}`);
  }
  return problems.sort();
}

/**
 * How a file of protoc-gen-go differs from its proto file; undefined where it does not. Comments, which no program sees,
 * and the packages of languages may differ. @param wanted descriptors by the names of proto files
 */
export function goProblem(
  text: string,
  wanted: ReadonlyMap<string, FileDescriptorProto>,
): string | undefined {
  const found = descriptorIn(text);
  if (!found) return "has no descriptor";
  const proto = wanted.get(found.name);
  if (!proto) return `comes from ${found.name}, which is not in proto/`;
  return contractOf(found) === contractOf(proto)
    ? undefined
    : `differs from ${found.name}: run "go generate" there`;
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

/** The descriptor of a file of protoc-gen-go: a constant of Go strings, one after another. */
function descriptorIn(text: string): FileDescriptorProto | undefined {
  const [, literals] = /^const \w+_rawDesc = ""((?: \+\n\t".*")+)$/m.exec(text) ?? [];
  if (literals === undefined) return undefined;
  const bytes = [...literals.matchAll(/^\t"(.*)"(?: \+)?$/gm)].map(([, literal]) => bytesOf(literal!));
  return fromBinary(FileDescriptorProtoSchema, Buffer.concat(bytes));
}

/** Of the bytes from 7 to 13; a quote and a backslash stand for themselves. */
const CONTROL_ESCAPES = "abtnvfr";

/** The bytes of an interpreted string of Go: https://go.dev/ref/spec#String_literals. */
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

// Without the packages of languages, and without what buf adds.
function contractOf({ options: _, ...descriptor }: FileDescriptorProto): string {
  const bytes = toBinary(FileDescriptorProtoSchema, descriptor, { writeUnknownFields: false });
  return Buffer.from(bytes).toString("base64");
}
