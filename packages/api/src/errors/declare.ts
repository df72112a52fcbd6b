import { type ErrorCode, type ErrorDetails, type ErrorId, NodekeeperError } from "./error.ts";

/** A problem that an operator can act on. The texts are plain sentences in Markdown. */
export interface Problem {
  /** Stable: never given to another problem. */
  readonly id: ErrorId;
  /** What happened: a headline without a full stop. */
  readonly title: string;
  /** Why it happens; the usual cause first. */
  readonly cause: string;
  /** What to do about it. */
  readonly remedy: string;
}

interface ErrorDeclaration<Message extends string> extends Problem {
  /** The usual code; a throw site may state another one. */
  readonly code: ErrorCode;
  /** The message, with its parameters in braces: "endpoint {endpoint} not found". Default: that of the throw site. */
  readonly message?: Message;
}

/** The parameters of a message: `{ endpoint: string | number }` for "endpoint {endpoint} not found". */
export type ParametersOf<Message extends string> = Message extends `${string}{${infer Name}}${infer Rest}`
  ? { readonly [Parameter in Name]: string | number } & ParametersOf<Rest>
  : unknown;

/** What a throw site adds: the cause, a delay, or a code other than the declared one. */
export interface DeclaredErrorDetails extends Omit<ErrorDetails, "id"> {
  code?: ErrorCode;
}

const PROBLEM = "{problem}";

/** The class of an error that is declared once, and thrown by name. */
export interface DeclaredError<Message extends string = string> extends ErrorDeclaration<Message> {
  new (parameters: ParametersOf<Message>, details?: DeclaredErrorDetails): NodekeeperError;
}

/**
 * Declares an error that is thrown:
 * `throw new PluginEndpointMissing({ endpoint: quote(endpoint) }, { cause })`.
 *
 * @__NO_SIDE_EFFECTS__
 */
export function declareError<const Message extends string = typeof PROBLEM>(
  declaration: ErrorDeclaration<Message>,
): DeclaredError<Message> {
  class Declared extends NodekeeperError {
    // Node prints it in front of the stack.
    static override readonly name = "NodekeeperError";

    constructor(parameters: ParametersOf<Message>, { code, ...details }: DeclaredErrorDetails = {}) {
      const values = parameters as Readonly<Record<string, string | number>>;
      const template = declaration.message ?? PROBLEM;
      const message = template.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name]));
      super(code ?? declaration.code, message, { ...details, id: declaration.id });
    }
  }
  return Object.assign(Declared, declaration);
}

/**
 * Declares a problem that is logged, recorded or shown as the reason of a failed check, but never thrown:
 * `log.warn({ errorId: DirectoryNotWatched.id, directory }, "...")`.
 *
 * @__NO_SIDE_EFFECTS__
 */
export function declareProblem(problem: Problem): Problem {
  return problem;
}
