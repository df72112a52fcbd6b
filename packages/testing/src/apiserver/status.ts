/** A cause in the details of a Status. */
export interface StatusCause {
  reason?: string;
  message?: string;
  field?: string;
}

export interface StatusDetails {
  name?: string;
  group?: string;
  kind?: string;
  uid?: string;
  causes?: StatusCause[];
  retryAfterSeconds?: number;
}

/** The `Status` object of the Kubernetes API, the response for all failures. */
export interface Status {
  kind: "Status";
  apiVersion: "v1";
  metadata: { resourceVersion?: string };
  status: "Success" | "Failure";
  message?: string;
  reason?: string;
  details?: StatusDetails;
  code: number;
}

/** A failure to be sent to the client. Contains the Status, because errors of this server are wire objects. */
export class StatusError extends Error {
  override readonly name = "StatusError";
  readonly status: Status;

  constructor(code: number, reason: string, message: string, details?: StatusDetails) {
    super(message);
    this.status = {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message,
      reason,
      ...(details ? { details } : {}),
      code,
    };
  }
}

/** Subject of an error: the plural name and group of a resource, and the name of an object. */
export interface Subject {
  group: string;
  plural: string;
  kind: string;
  name: string;
}

const qualified = (subject: Subject) =>
  subject.group ? `${subject.plural}.${subject.group}` : subject.plural;

const detailsOf = (subject: Subject): StatusDetails => ({
  name: subject.name,
  ...(subject.group ? { group: subject.group } : {}),
  kind: subject.plural,
});

export function notFound(subject: Subject): StatusError {
  const message = `${qualified(subject)} "${subject.name}" not found`;
  return new StatusError(404, "NotFound", message, detailsOf(subject));
}

export function alreadyExists(subject: Subject): StatusError {
  const message = `${qualified(subject)} "${subject.name}" already exists`;
  return new StatusError(409, "AlreadyExists", message, detailsOf(subject));
}

const STALE = "the object has been modified; please apply your changes to the latest version and try again";

/** Returns a 409: the object was modified since it was read, or another precondition does not hold. */
export function conflict(subject: Subject, why: string = STALE): StatusError {
  const message = `Operation cannot be fulfilled on ${qualified(subject)} "${subject.name}": ${why}`;
  return new StatusError(409, "Conflict", message, detailsOf(subject));
}

/** Returns a 422: a field of the object is invalid. */
export function invalid(
  subject: Subject,
  field: string,
  why: string,
  reason = "FieldValueInvalid",
): StatusError {
  const message = `${subject.kind}${subject.group ? `.${subject.group}` : ""} "${subject.name}" is invalid: ${field}: ${why}`;
  return new StatusError(422, "Invalid", message, {
    ...detailsOf(subject),
    kind: subject.kind,
    causes: [{ reason, message: why, field }],
  });
}

export function badRequest(message: string): StatusError {
  return new StatusError(400, "BadRequest", message);
}

export function expired(message: string): StatusError {
  return new StatusError(410, "Expired", message);
}

export function methodNotAllowed(): StatusError {
  const message = "the server does not allow this method on the requested resource";
  return new StatusError(405, "MethodNotAllowed", message);
}

export function unsupportedMediaType(accepted: string[]): StatusError {
  const message = `the body of the request was in an unknown format - accepted media types include: ${accepted.join(", ")}`;
  return new StatusError(415, "UnsupportedMediaType", message);
}

/** Returns the Status of a successful call that does not return an object. */
export function success(details?: StatusDetails, code = 200): Status {
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    ...(details ? { details } : {}),
    code,
  };
}
