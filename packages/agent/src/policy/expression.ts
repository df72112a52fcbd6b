import {
  type ASTNode,
  TypeError as CelTypeError,
  type Environment,
  EvaluationError,
  ParseError,
} from "@marcbachmann/cel-js";
import { messageOf } from "@nodekeeper/core/lib";
import { checkCost } from "./cost.ts";
import { createEnvironment } from "./environment.ts";
import { ExpressionError } from "./expression-error.ts";
import type { FieldTree } from "./fields.ts";
import { inspect } from "./inspect.ts";

/** What an expression answers. */
export type ResultType = "bool" | "number";

/** The value, or why there is none. */
export type Evaluated<T> = { value: T } | { problem: string };

/** An expression that was checked. */
export interface Expression<T> {
  readonly text: string;
  /** The fields it reads, sorted: "node.memory.total". They must all be there when it is evaluated. */
  readonly reads: readonly string[];
  /** Steps it takes at worst. */
  readonly steps: number;
  /** Never throws; a number is finite. @param variables plain objects by name */
  evaluate(variables: Readonly<Record<string, unknown>>): Evaluated<T>;
}

export type Condition = Expression<boolean>;
export type Formula = Expression<number>;

/** Characters of one expression. */
export const LONGEST_EXPRESSION = 2_000;

/** Compiles expressions over the same variables. */
export class Compiler {
  readonly #variables: FieldTree;
  readonly #environment: Environment;

  constructor(variables: FieldTree) {
    this.#variables = variables;
    this.#environment = createEnvironment(variables);
  }

  /** An expression that answers yes or no. Throws ExpressionError. */
  condition(text: string): Condition {
    return this.#compile<boolean>(text, "bool", (result) => {
      return typeof result === "boolean" ? { value: result } : { problem: "is neither true nor false" };
    });
  }

  /** An expression that answers a number. Throws ExpressionError. */
  formula(text: string): Formula {
    return this.#compile<number>(text, "number", (result) => {
      const value = Number(result);
      return Number.isFinite(value) ? { value } : { problem: `is ${value}` };
    });
  }

  #compile<T>(text: string, wanted: ResultType, read: (result: unknown) => Evaluated<T>): Expression<T> {
    if (text.length > LONGEST_EXPRESSION) {
      throw new ExpressionError(`has ${text.length} characters, more than ${LONGEST_EXPRESSION}`, 0);
    }
    if (text.trim() === "") throw new ExpressionError("is empty", 0);
    const run = attempt(() => this.#environment.parse(text));
    const { leaves, reads } = inspect(run.ast, this.#variables);
    const checked = run.check();
    if (!checked.valid) throw expressionErrorOf(checked.error);
    checkResult(checked.type, wanted, run.ast);
    const steps = checkCost(run.ast, leaves);
    const evaluate = (variables: Readonly<Record<string, unknown>>) => {
      try {
        return read(run(variables));
      } catch (error) {
        return { problem: summaryOf(error) };
      }
    };
    return { text, reads, steps, evaluate };
  }
}

function checkResult(type: string | undefined, wanted: ResultType, ast: ASTNode): void {
  const isWanted = wanted === "bool" ? type === "bool" : type === "double" || type === "int";
  if (isWanted) return;
  const what = wanted === "bool" ? "true or false" : "a number";
  throw new ExpressionError(`must be ${what}, and is of type ${type}`, ast.start);
}

function attempt<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw expressionErrorOf(error);
  }
}

function expressionErrorOf(error: unknown): ExpressionError {
  const offset = isCelError(error) ? (error.range?.start ?? 0) : 0;
  return new ExpressionError(summaryOf(error), offset, { cause: error });
}

// The library's own message draws the place in several lines; the loader reports it as line and column.
function summaryOf(error: unknown): string {
  return isCelError(error) ? error.summary : messageOf(error);
}

function isCelError(error: unknown): error is ParseError | CelTypeError | EvaluationError {
  return error instanceof ParseError || error instanceof CelTypeError || error instanceof EvaluationError;
}
