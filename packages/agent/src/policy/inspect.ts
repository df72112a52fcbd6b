import type { ASTNode } from "@marcbachmann/cel-js";
import { isQuantity, quote } from "@nodekeeper/core/lib";
import { ExpressionError } from "./expression-error.ts";
import type { FieldTree, FieldType } from "./fields.ts";

/** The fields that an expression reads. */
export interface Inspection {
  /** Each node of the AST that reads a field, with the field's type. */
  leaves: ReadonlyMap<ASTNode, FieldType>;
  /** The fields, sorted: "node.memory.total". */
  reads: readonly string[];
}

/** A group of fields, which has no value itself: `node.memory`. */
interface Group {
  path: string;
  fields: FieldTree;
}

const functions: readonly string[] = [
  "has",
  "size",
  "double",
  "int",
  "string",
  "quantity",
  "percent",
  "min",
  "max",
];
const methods: readonly string[] = [
  "all",
  "exists",
  "exists_one",
  "filter",
  "map",
  "size",
  "startsWith",
  "endsWith",
  "contains",
  "glob",
];

/**
 * Finds all fields that an expression reads before it runs, so that a missing reading is detected regardless
 * of the others. Throws ExpressionError for unknown fields and unsupported functions.
 */
export function inspect(ast: ASTNode, variables: FieldTree): Inspection {
  const inspector = new Inspector(variables);
  inspector.value(ast);
  return { leaves: inspector.leaves, reads: [...inspector.reads].sort() };
}

class Inspector {
  readonly leaves = new Map<ASTNode, FieldType>();
  readonly reads = new Set<string>();
  readonly #variables: FieldTree;

  constructor(variables: FieldTree) {
    this.#variables = variables;
  }

  /** Inspects a part that must be a value, not a group. */
  value(ast: ASTNode): void {
    const group = this.#visit(ast);
    if (!group) return;
    throw new ExpressionError(`${group.path} has no value of its own: ${fieldsOf(group)}`, ast.pos);
  }

  #visit(ast: ASTNode): Group | undefined {
    switch (ast.op) {
      case "value":
        return undefined;
      case "id":
        return this.#variable(ast.args);
      case ".":
        return this.#field(ast, ast.args[0], ast.args[1]);
      case "[]":
        return this.#index(ast, ast.args[0], ast.args[1]);
      case "call":
        this.#call(ast, ast.args[0], ast.args[1]);
        return undefined;
      case "rcall":
        this.#method(ast, ast.args[0], ast.args[1]);
        this.#all([ast.args[1], ...ast.args[2]]);
        return undefined;
      case "list":
        this.#all(ast.args);
        return undefined;
      case "map":
        this.#all(ast.args.flat());
        return undefined;
      case "!_":
      case "-_":
        this.value(ast.args);
        return undefined;
      case ".?":
      case "[?]":
        throw new ExpressionError("optional values are not supported", ast.pos);
      default:
        this.#all(ast.args);
        return undefined;
    }
  }

  #all(parts: readonly ASTNode[]): void {
    for (const part of parts) this.value(part);
  }

  #variable(name: string): Group | undefined {
    const fields = Object.hasOwn(this.#variables, name) ? this.#variables[name] : undefined;
    return typeof fields === "object" ? { path: name, fields } : undefined;
  }

  #field(ast: ASTNode, owner: ASTNode, name: string): Group | undefined {
    const group = this.#visit(owner);
    if (!group) return undefined;
    const path = `${group.path}.${name}`;
    const field = Object.hasOwn(group.fields, name) ? group.fields[name] : undefined;
    if (field === undefined) {
      throw new ExpressionError(`there is no ${path}; ${fieldsOf(group)}`, ast.pos);
    }
    if (typeof field === "object") return { path, fields: field };
    this.leaves.set(ast, field);
    this.reads.add(path);
    return undefined;
  }

  #index(ast: ASTNode, owner: ASTNode, index: ASTNode): Group | undefined {
    const isName = index.op === "value" && typeof index.args === "string";
    const group = isName ? undefined : this.#visit(owner);
    if (group) {
      throw new ExpressionError(`${group.path}[...] must name a field: ${fieldsOf(group)}`, index.start);
    }
    if (isName) return this.#field(ast, owner, index.args as string);
    this.value(index);
    return undefined;
  }

  #call(ast: ASTNode, name: string, parts: readonly ASTNode[]): void {
    if (!functions.includes(name)) throw notOffered(`${name}()`, ast.pos);
    this.#all(parts);
    if (name === "quantity") checkQuantity(ast, parts);
  }

  #method(ast: ASTNode, name: string, owner: ASTNode): void {
    if (methods.includes(name)) return;
    const at = Math.max(ast.input.indexOf(name, owner.end), ast.start);
    if (name !== "matches") throw notOffered(`.${name}()`, at);
    const why = "the run time of a regular expression is unbounded";
    throw new ExpressionError(`matches() is not supported because ${why}; use glob("web-*")`, at);
  }
}

// Requires a literal, so that an invalid quantity is detected when the policy is loaded.
function checkQuantity(ast: ASTNode, [text]: readonly ASTNode[]): void {
  const literal = text?.op === "value" && typeof text.args === "string" ? text.args : undefined;
  if (text === undefined || literal === undefined) {
    throw new ExpressionError('quantity() takes one text in quotes: quantity("100Mi")', ast.pos);
  }
  if (isQuantity(literal)) return;
  throw new ExpressionError(
    `${quote(literal)} is not a quantity such as "500m", "1.5Gi" or "12e6"`,
    text.pos,
  );
}

function notOffered(what: string, at: number): ExpressionError {
  const offered = [...functions.map((name) => `${name}()`), ...methods.map((name) => `.${name}()`)];
  return new ExpressionError(`${what} is not supported; supported: ${offered.join(", ")}`, at);
}

function fieldsOf({ fields }: Group): string {
  return `its fields are: ${Object.keys(fields).join(", ")}`;
}
