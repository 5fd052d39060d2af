/** Refusals of the endpoints for callers: `/v1/check` and `/v1/take`. */

/** Returns whether the status of an answer says that this page may not send such requests. */
export function isRefusal(status: number): boolean {
  return status === 401 || status === 403;
}

/** The cause of a refusal, and what to do on this page. */
export function refusalText(status: number, hasToken: boolean): string {
  return `${causeOf(status, hasToken)} To send requests from this page, sign in with a token whose role is admin.`;
}

function causeOf(status: number, hasToken: boolean): string {
  if (status === 403) return "Your token has the role read: it can see everything, but not send requests.";
  if (hasToken) return "The service does not know your token; it may have been revoked.";
  return "The service answers only callers that it knows, and you are not signed in.";
}
