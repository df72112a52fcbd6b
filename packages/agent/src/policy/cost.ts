import type { ASTNode } from "@marcbachmann/cel-js";
import { ExpressionError } from "./expression-error.ts";
import { type FieldType, MOST_ENTRIES } from "./fields.ts";

/**
 * Maximum number of steps of an expression, about 20 ms in the worst case. Typical expressions take fewer
 * than a thousand.
 */
export const MOST_STEPS = 200_000;

// The longest annotation key: a prefix of 253 characters, a slash, and a name of 63 characters.
const LONGEST_TEXT = 317;
// Number of characters that are compared in the time of one step.
const CHARACTERS_PER_STEP = 64;

/** Upper bound for the size of a value: its characters, or its elements and their shape. */
interface Shape {
  size: number;
  element?: Shape;
}

/** Upper bounds for the evaluation of a part: steps, and size of the result. */
interface Estimate {
  steps: number;
  shape: Shape;
}

type Scope = ReadonlyMap<string, Shape>;

const small: Shape = { size: 1 };
const text: Shape = { size: LONGEST_TEXT };
const shapes: Readonly<Record<FieldType, Shape>> = {
  double: small,
  string: text,
  "list<string>": { size: MOST_ENTRIES, element: text },
  "map<string, string>": { size: MOST_ENTRIES, element: text },
};

/**
 * Returns the worst-case number of steps of an expression, from the bounds of all fields that it reads.
 * Nested loops multiply. Throws ExpressionError if it exceeds MOST_STEPS.
 */
export function checkCost(ast: ASTNode, leaves: ReadonlyMap<ASTNode, FieldType>): number {
  const { steps } = new Estimator(leaves).estimate(ast, new Map());
  if (steps <= MOST_STEPS) return steps;
  const message = `takes up to ${steps.toExponential(1)} steps, more than ${MOST_STEPS}: loops inside loops multiply`;
  throw new ExpressionError(message, ast.start);
}

class Estimator {
  readonly #leaves: ReadonlyMap<ASTNode, FieldType>;

  constructor(leaves: ReadonlyMap<ASTNode, FieldType>) {
    this.#leaves = leaves;
  }

  estimate(ast: ASTNode, scope: Scope): Estimate {
    const leaf = this.#leaves.get(ast);
    if (leaf) return { steps: 3, shape: shapes[leaf] };
    switch (ast.op) {
      case "value":
        return { steps: 1, shape: typeof ast.args === "string" ? { size: ast.args.length } : small };
      case "id":
        return { steps: 1, shape: scope.get(ast.args) ?? small };
      case ".":
        return this.#elementOf(this.estimate(ast.args[0], scope));
      case "[]":
        return this.#elementOf(this.estimate(ast.args[0], scope), this.estimate(ast.args[1], scope).steps);
      case "list":
        return this.#collection(ast.args, scope);
      case "map":
        return this.#collection(ast.args.flat(), scope);
      case "?:":
        return this.#either(ast.args, scope);
      case "!_":
      case "-_":
        return { steps: 1 + this.estimate(ast.args, scope).steps, shape: small };
      case "call":
        return this.#call(ast.args[1], scope);
      case "rcall":
        return this.#method(ast.args[0], ast.args[1], ast.args[2], scope);
      default:
        return this.#operator(ast.op, ast.args as [ASTNode, ASTNode], scope);
    }
  }

  #elementOf({ steps, shape }: Estimate, more = 0): Estimate {
    return { steps: steps + more + 1, shape: shape.element ?? small };
  }

  #collection(parts: readonly ASTNode[], scope: Scope): Estimate {
    const estimates = parts.map((part) => this.estimate(part, scope));
    const element = estimates.map(({ shape }) => shape).reduce(larger, small);
    return { steps: 1 + parts.length + sum(estimates), shape: { size: parts.length, element } };
  }

  #either(parts: readonly ASTNode[], scope: Scope): Estimate {
    const [condition, whether, otherwise] = parts.map((part) => this.estimate(part, scope));
    const steps = 1 + condition!.steps + Math.max(whether!.steps, otherwise!.steps);
    return { steps, shape: larger(whether!.shape, otherwise!.shape) };
  }

  #operator(op: string, parts: readonly ASTNode[], scope: Scope): Estimate {
    const [left, right] = parts.map((part) => this.estimate(part, scope)) as [Estimate, Estimate];
    const steps = 1 + left.steps + right.steps;
    if (op === "&&" || op === "||") return { steps, shape: small };
    const looks = weight(left.shape) + weight(right.shape);
    return { steps: steps + looks, shape: op === "+" ? joined(left.shape, right.shape) : small };
  }

  #call(parts: readonly ASTNode[], scope: Scope): Estimate {
    const estimates = parts.map((part) => this.estimate(part, scope));
    const looks = estimates.map(({ shape }) => weight(shape)).reduce(add, 0);
    // string() of a number returns up to 25 characters.
    const size = Math.max(25, ...estimates.map(({ shape }) => shape.size));
    return { steps: 1 + sum(estimates) + looks, shape: { size } };
  }

  #method(name: string, owner: ASTNode, parts: readonly ASTNode[], scope: Scope): Estimate {
    const over = this.estimate(owner, scope);
    const [first, ...bodies] = parts;
    if (bodies.length === 0 && name !== "size" && first) {
      const argument = this.estimate(first, scope);
      // In the worst case each character is compared at each position. A prefix or suffix has one position.
      const places = name === "startsWith" || name === "endsWith" ? 1 : over.shape.size;
      const looks = Math.ceil((places * Math.max(argument.shape.size, 1)) / CHARACTERS_PER_STEP);
      return { steps: 1 + over.steps + argument.steps + looks, shape: small };
    }
    if (first?.op !== "id") return { steps: 1 + over.steps + weight(over.shape), shape: small };
    const inner = new Map(scope).set(first.args, over.shape.element ?? small);
    const estimates = bodies.map((body) => this.estimate(body, inner));
    const steps = 1 + over.steps + over.shape.size * (2 + sum(estimates));
    if (name === "filter") return { steps, shape: over.shape };
    if (name === "map") return { steps, shape: { size: over.shape.size, element: estimates.at(-1)!.shape } };
    return { steps, shape: small };
  }
}

/** Returns the number of steps for reading a whole value. */
function weight({ size, element }: Shape): number {
  return element ? size * (1 + weight(element)) : Math.ceil(size / CHARACTERS_PER_STEP);
}

function joined(a: Shape, b: Shape): Shape {
  const size = a.size + b.size;
  if (!a.element && !b.element) return { size };
  return { size, element: larger(a.element ?? small, b.element ?? small) };
}

function larger(a: Shape, b: Shape): Shape {
  const size = Math.max(a.size, b.size);
  if (!a.element && !b.element) return { size };
  return { size, element: larger(a.element ?? small, b.element ?? small) };
}

function sum(estimates: readonly Estimate[]): number {
  return estimates.map(({ steps }) => steps).reduce(add, 0);
}

function add(a: number, b: number): number {
  return a + b;
}
