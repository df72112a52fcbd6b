import { Environment, type ObjectSchema } from "@marcbachmann/cel-js";
import { parseQuantity } from "@nodekeeper/core/lib";
import type { FieldTree } from "./fields.ts";
import { matchesGlob } from "./glob.ts";

// Handwritten expressions are far below these limits.
const limits = {
  maxAstNodes: 400,
  maxDepth: 32,
  maxListElements: 64,
  maxMapEntries: 64,
  maxCallArguments: 4,
};

const arithmetic: readonly [string, (a: number, b: number) => number][] = [
  ["+", (a, b) => a + b],
  ["-", (a, b) => a - b],
  ["*", (a, b) => a * b],
  ["/", (a, b) => a / b],
];

/**
 * Creates a CEL environment with the variables and functions of policies.
 * @param variables fields by name of the variable
 */
export function createEnvironment(variables: FieldTree): Environment {
  const environment = new Environment({ limits });
  for (const [name, fields] of Object.entries(variables)) {
    environment.registerVariable(name, { schema: fields as ObjectSchema });
  }
  // All readings are doubles, which CEL does not mix with integers. Without these operators,
  // "node.memory.total / 10" would have to be written with "10.0".
  for (const [left, right] of [
    ["double", "int"],
    ["int", "double"],
  ]) {
    for (const [sign, work] of arithmetic) {
      const onNumbers = (a: number | bigint, b: number | bigint) => work(Number(a), Number(b));
      environment.registerOperator(`${left} ${sign} ${right}: double`, onNumbers);
    }
  }
  // The library derives the reversed operator from this one.
  environment.registerOperator("double == int", (a: number, b: bigint) => a === Number(b));
  environment.registerFunction(
    "quantity(string): double",
    (text) => Number(parseQuantity(text).nano) / 1e9,
    sync,
  );
  registerOnNumbers(environment, "percent", (share, whole) => (share / 100) * whole);
  registerOnNumbers(environment, "min", Math.min);
  registerOnNumbers(environment, "max", Math.max);
  environment.registerFunction("string.glob(string): bool", matchesGlob, sync);
  return environment;
}

const sync = { async: false };

function registerOnNumbers(
  environment: Environment,
  name: string,
  work: (a: number, b: number) => number,
): void {
  for (const left of ["double", "int"]) {
    for (const right of ["double", "int"]) {
      const signature = `${name}(${left}, ${right}): double`;
      environment.registerFunction(signature, (a, b) => work(Number(a), Number(b)), sync);
    }
  }
}
