import {
  type ASTNode,
  TypeError as CelTypeError,
  type Environment,
  EvaluationError,
  ParseError,
} from "@marcbachmann/cel-js";
import { messageOf } from "@nodekeeper/core/lib";
import { describeAt, type Place } from "@nodekeeper/core/yaml";
import { checkCost } from "./cost.ts";
import { createEnvironment } from "./environment.ts";
import { ExpressionError } from "./expression-error.ts";
import type { FieldTree } from "./fields.ts";
import { inspect } from "./inspect.ts";

/** The type of an expression's result. */
export type ResultType = "bool" | "number";

/** The value of an expression, or the reason why it has none. */
export type Evaluated<T> = { value: T } | { problem: string };

/** An expression that has passed type and cost checks. */
export interface Expression<T> {
  readonly text: string;
  /** The fields that the expression reads, sorted: "node.memory.total". Evaluation requires all of them. */
  readonly reads: readonly string[];
  /** Worst-case number of steps. */
  readonly steps: number;
  /**
   * Evaluates the expression. Never throws. Numbers are finite.
   * @param variables plain objects by name
   */
  evaluate(variables: Readonly<Record<string, unknown>>): Evaluated<T>;
}

export type Condition = Expression<boolean>;
export type Formula = Expression<number>;

/** Returns the position in the file of an offset in an expression's text. */
export type PlaceAt = (offset: number) => Place;

/** Maximum number of characters of an expression. */
export const LONGEST_EXPRESSION = 2_000;

/** Compiles expressions over the same variables. */
export class Compiler {
  readonly #variables: FieldTree;
  readonly #environment: Environment;
  readonly #file: string;

  /** @param file name of the file that contains the expressions, for evaluation problems */
  constructor(variables: FieldTree, file = "") {
    this.#variables = variables;
    this.#file = file;
    this.#environment = createEnvironment(variables);
  }

  /**
   * Compiles an expression of type bool. Throws ExpressionError.
   * @param placeAt if undefined, problems have no position
   */
  readonly condition = (text: string, placeAt?: PlaceAt): Condition => {
    const read = (result: unknown): Evaluated<boolean> =>
      typeof result === "boolean" ? { value: result } : { problem: "is neither true nor false" };
    return this.#compile(text, "bool", read, placeAt);
  };

  /**
   * Compiles a numeric expression. Throws ExpressionError.
   * @param placeAt if undefined, problems have no position
   */
  readonly formula = (text: string, placeAt?: PlaceAt): Formula => {
    const read = (result: unknown): Evaluated<number> => {
      const value = Number(result);
      return Number.isFinite(value) ? { value } : { problem: `is ${value}` };
    };
    return this.#compile(text, "number", read, placeAt);
  };

  #compile<T>(
    text: string,
    wanted: ResultType,
    read: (result: unknown) => Evaluated<T>,
    placeAt: PlaceAt | undefined,
  ): Expression<T> {
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
    const placed = (problem: string, offset: number) => ({
      problem: placeAt ? describeAt(this.#file, placeAt(offset), problem) : problem,
    });
    const evaluate = (variables: Readonly<Record<string, unknown>>) => {
      try {
        const result = read(run(variables));
        return "problem" in result ? placed(result.problem, run.ast.start) : result;
      } catch (error) {
        return placed(summaryOf(error), offsetOf(error));
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
  return new ExpressionError(summaryOf(error), offsetOf(error), { cause: error });
}

function offsetOf(error: unknown): number {
  return isCelError(error) ? (error.range?.start ?? 0) : 0;
}

// The library's own message draws the position in several lines. The loader reports it as line and column.
function summaryOf(error: unknown): string {
  return isCelError(error) ? error.summary : messageOf(error);
}

function isCelError(error: unknown): error is ParseError | CelTypeError | EvaluationError {
  return error instanceof ParseError || error instanceof CelTypeError || error instanceof EvaluationError;
}
